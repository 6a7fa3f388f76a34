"""Options that several commands share, and what they say in terms of the library."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrieval_bench.duets.revisions.environments import Setup
    from retrieval_bench.measure.protocol import Protocol

FORMATS = ("table", "json", "markdown", "latex", "csv")


def add_format(parser: argparse.ArgumentParser, more: Sequence[str] = ()) -> None:
    """The options that every command has; ``more`` formats are the command's own."""
    parser.add_argument(
        "--format", choices=(*FORMATS, *more), default="table", help="of what is printed"
    )
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="show all there is, where the usual output is short",
    )
    loudness.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="show the answer and its warnings alone, and no progress",
    )
    parser.add_argument(
        "--debug", action="store_true", help="show tracebacks of errors, which may hold secrets"
    )


def add_junit(parser: argparse.ArgumentParser) -> None:
    """Add the option for where gates are written for a CI service."""
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="also write the gates as a JUnit report"
    )


def how_many(text: str) -> int | None:
    """A number of things to show; None = all.

    Raises:
        ArgumentTypeError: neither a number nor `all`.
    """
    if text == "all":
        return None
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor `all`")


def add_several(parser: Any, name: str, metavar: str, text: str) -> None:
    """An option that takes one value or several, and may be given again."""
    parser.add_argument(name, nargs="+", action="extend", default=[], metavar=metavar, help=text)


def add_limits(parser: Any) -> None:
    """Add the options that limit what a call may take."""
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="seconds; a call that takes longer has failed (default: 60)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads of numerical libraries while searching (default: 1)",
    )


class _Once(argparse.Action):
    """A positional that may also be given as an option, but not both."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest, None)
        if option_string is None and values is None:
            return
        if before is not None:
            parser.error(f"two values for {self.dest}: {before} and {values}")
        setattr(namespace, self.dest, values)


def add_named(
    parser: argparse.ArgumentParser,
    name: str,
    metavar: str,
    text: str,
    *,
    option: str = "",
    needed: bool = True,
    kind: Callable[[str], Any] = str,
) -> None:
    """Add the argument that names what a command is about, by its place or as an option; where it
    is ``needed``, by one of them."""
    option = option or f"--{name}"
    help_text = f"{text}; also {option}"
    parser.add_argument(name, nargs="?", action=_Once, metavar=metavar, type=kind, help=help_text)
    parser.add_argument(option, action=_Once, dest=name, type=kind, help=argparse.SUPPRESS)
    if needed:
        parser.set_defaults(needs=name)


def add_retriever(parser: argparse.ArgumentParser) -> None:
    """Add the options for the retriever and for changes to it."""
    add_named(parser, "retriever", "RETRIEVER", "name of a config, YAML file or module:Class")
    add_several(parser, "--set", "KEY=VALUE", "parameters by dotted path, values as in YAML")


def add_dataset(
    parser: argparse.ArgumentParser, default: str | None = "science-mini", *, k: int = 10
) -> None:
    """Add on which data, and how deep; without ``default`` a dataset has to be named."""
    parser.add_argument(
        "--dataset",
        default=default,
        required=default is None,
        metavar="NAME_OR_PATH",
        help="name or folder" + (f" (default: {default})" if default else ""),
    )
    _add_depth(parser, k)


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add the language of the dataset, where its files do not name it."""
    parser.add_argument(
        "--language",
        metavar="CODE",
        help="of the dataset, such as fr, for stems and stop words (default: what it names)",
    )


def add_self_hits(parser: Any) -> None:
    """Add whether a query may find itself."""
    parser.add_argument(
        "--self-hits",
        choices=("keep", "drop"),
        help="drop: leave out a hit with the id of its query before the first k are scored, as "
        "BEIR does (default: what the dataset names, or keep)",
    )


def _add_depth(parser: argparse.ArgumentParser, k: int) -> None:
    parser.add_argument("--split", default="test", help="split of the judgements (default: test)")
    parser.add_argument("--k", type=int, default=k, help=f"hits per query (default: {k})")


def add_measuring(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add the options for how to measure and on what; with ``several``, on several datasets."""
    if several:
        parser.add_argument(
            "--dataset",
            nargs="+",
            metavar="NAME_OR_PATH",
            help="names or folders; of saved runs, where they are now (default: science-mini)",
        )
        _add_depth(parser, 10)
    else:
        add_dataset(parser)
    add_language(parser)
    add_self_hits(parser)
    add_several(
        parser, "--metrics", "METRIC", "such as nDCG@10 R@100, the first decides (default: by k)"
    )
    parser.add_argument(
        "--no-leaks",
        action="store_true",
        help="exit code 1 when a hit lies outside of its query's filter",
    )
    timing = parser.add_argument_group("measuring")
    timing.add_argument(
        "--profile",
        default="default",
        metavar="NAME",
        help="smoke (one round), default, release (10,000 calls in 5 processes), or a YAML file",
    )
    timing.add_argument(
        "--min-calls",
        type=int,
        metavar="N",
        help="measured calls per retriever, all launches together (default: 1000)",
    )
    timing.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of a launch, instead of --min-calls"
    )
    timing.add_argument(
        "--max-calls",
        type=int,
        metavar="N",
        help="never more calls per retriever than this, warm-up included",
    )
    timing.add_argument(
        "--max-minutes",
        type=float,
        metavar="M",
        help="begin no round after so many minutes; what was finished is kept",
    )
    timing.add_argument(
        "--max-cost",
        type=float,
        metavar="MONEY",
        help="make no call that might spend more than this, by the usage that the retriever "
        "reports; what was finished is kept",
    )
    timing.add_argument(
        "--launches",
        type=int,
        metavar="N",
        help="fresh processes that share the calls; 0 measures in this one (default: 0)",
    )
    timing.add_argument(
        "--warm-up",
        type=float,
        metavar="S",
        help="seconds after which the warm-up ends, steady or not (default: 10)",
    )
    add_limits(timing)
    timing.add_argument(
        "--collector",
        choices=("on", "off"),
        default="off",
        help="Python's garbage collector during timed calls (default: off)",
    )
    timing.add_argument(
        "--percentiles",
        type=float,
        nargs="+",
        action="extend",
        default=[],
        metavar="P",
        help="to report, such as 50 90 99.9 (default: 50 95 99)",
    )
    parser.add_argument(
        "--no-pictures",
        action="store_false",
        dest="pictures",
        help="draw no pictures of the times into the run's folder",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="build and check everything, ask each retriever once, say how many calls a run makes",
    )
    parser.add_argument(
        "--no-calls",
        action="store_true",
        help="with --dry-run: ask no external retriever, whose calls may cost",
    )
    add_format(parser)


def protocol_of(options: argparse.Namespace) -> Protocol:
    """The protocol that the options of :func:`add_measuring` describe."""
    from retrieval_bench.measure.protocol import Protocol

    return Protocol.of(
        options.profile,
        min_calls=options.min_calls,
        rounds=options.rounds,
        max_calls=options.max_calls,
        launches=options.launches,
        warm_up_s=options.warm_up,
        timeout_s=options.timeout,
        max_s=None if options.max_minutes is None else 60 * options.max_minutes,
        max_cost=options.max_cost,
        threads=options.threads,
        collector=options.collector == "on" or None,
        levels=tuple(options.percentiles) or None,
    )


def add_environments(parser: argparse.ArgumentParser) -> None:
    """Add the options for how the code of a revision gets the packages it needs."""
    prepared = parser.add_argument_group("environments of revisions whose dependencies differ")
    prepared.add_argument(
        "--extras",
        nargs="*",
        metavar="NAME",
        help="optional dependencies to install (default: those that are installed now)",
    )
    prepared.add_argument(
        "--setup",
        default="",
        metavar="COMMAND",
        help="run this once in the folder of each revision instead of installing",
    )


def setup_of(options: argparse.Namespace) -> Setup:
    """Read the options of :func:`add_environments`."""
    from retrieval_bench.duets.revisions.environments import Setup

    return Setup(None if options.extras is None else tuple(options.extras), options.setup)


def given_options(options: argparse.Namespace, usual: Mapping[str, Any]) -> str:
    """Name the options whose value is not the ``usual`` one: "--cold, --no-text"."""
    names = [name for name, value in usual.items() if getattr(options, name) != value]
    written = [f"--{name.replace('_', '-')}" for name in names]
    return ", ".join(written).replace("--texts", "--no-text")
