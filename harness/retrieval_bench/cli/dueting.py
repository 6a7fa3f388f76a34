"""The command ``duet``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import (
    INTERRUPTED,
    NOT_MEASURED,
    OK,
    REGRESSION,
    UNDECIDED,
    add_format,
    output_kept_clean,
    reporter,
    say,
    show,
)
from retrieval_bench.cli.environments import add_environments, setup_of
from retrieval_bench.cli.measuring import add_dataset

if TYPE_CHECKING:
    from retrieval_bench.duets.controller import DuetProtocol
    from retrieval_bench.duets.result import DuetResult
    from retrieval_bench.duets.sides import Place, Side


def add_duet(commands: Any) -> None:
    """Two configs, or two revisions: is one slower?"""
    duet = commands.add_parser(
        "duet", help="is b slower than a? two configs, or two revisions, call beside call"
    )
    duet.add_argument(
        "--retriever", metavar="NAME_OR_YAML", help="of both sides, when revisions are compared"
    )
    for side in "ab":
        duet.add_argument(
            f"--{side}", metavar="NAME_OR_YAML", help=f"retriever of side {side}, if not both"
        )
        duet.add_argument(
            f"--rev-{side}",
            metavar="REV",
            help=f"git revision of side {side}; WORKTREE: the files as they are (default)",
        )
        duet.add_argument(
            f"--set-{side}",
            nargs="+",
            action="extend",
            default=[],
            metavar="KEY=VALUE",
            help=f"override parameters on side {side}",
        )
    duet.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="override parameters of both sides by dotted path",
    )
    add_dataset(duet)
    duet.add_argument("--out", type=Path, metavar="DIR", help="folder of the record")
    add_environments(duet)
    duet.add_argument(
        "--limit",
        nargs="+",
        action="extend",
        default=[],
        metavar="GATE=SHARE",
        help="largest acceptable slow-down, such as p50=5%% p95=10%%; only these are judged, and "
        "all of them must be",
    )
    timing = duet.add_argument_group("measuring")
    timing.add_argument(
        "--seconds", type=float, metavar="S", help="of measuring in a launch (default: 1)"
    )
    timing.add_argument("--most", type=float, metavar="S", help="seconds of measuring, at most")
    timing.add_argument(
        "--queries", type=int, metavar="N", help="queries to ask, chosen by seed (default: 220)"
    )
    timing.add_argument("--timeout", type=float, metavar="S", help="seconds per call (default: 60)")
    timing.add_argument(
        "--threads", type=int, metavar="N", help="threads while searching (default: 1)"
    )
    add_format(duet)
    duet.set_defaults(run=_duet)


def _duet(options: argparse.Namespace) -> int:
    from retrieval_bench.core.errors import RecordError
    from retrieval_bench.data import pinned
    from retrieval_bench.duets.controller import duet
    from retrieval_bench.duets.result import check_place, write_duet
    from retrieval_bench.reports.tables.duet import duet_tables

    protocol = _protocol(options)
    check_place(options.out)
    with output_kept_clean(), reporter() as told:
        a, b = _sides(options, told)
        result = duet(
            a,
            b,
            pinned(options.dataset),
            split=options.split,
            k=options.k,
            protocol=protocol,
            reporter=told,
        )
    document = result.as_dict()
    try:
        if result.launched:
            document = {"folder": str(write_duet(result, options.out)), **document}
    except RecordError:
        show(options, document, lambda: duet_tables(result))
        raise
    show(options, document, lambda: duet_tables(result))
    return exit_code(result)


def exit_code(result: DuetResult) -> int:
    """Of a duet: 0, 1, 3 or 4 as its verdict says, 130 when it was interrupted undecided."""
    word = result.word
    if word == "FAIL":
        return REGRESSION
    if result.interrupted:
        say("retrieval-bench: interrupted before it was decided")
        return INTERRUPTED
    return {"PASS": OK, "INCONCLUSIVE": UNDECIDED}.get(word, NOT_MEASURED)


def _protocol(options: argparse.Namespace) -> DuetProtocol:
    from retrieval_bench.duets.controller import DuetProtocol

    given: dict[str, Any] = {
        "seconds": options.seconds,
        "most_s": options.most,
        "queries": options.queries,
        "timeout_s": options.timeout,
        "threads": options.threads,
        "limits": _limits(options.limit),
    }
    given["all_judged"] = bool(options.limit)
    return DuetProtocol(**{name: value for name, value in given.items() if value is not None})


def _limits(texts: list[str]) -> dict[str, float] | None:
    """ "p50=5%" as {"p50": 0.05}; None for no limit at all.

    Raises:
        ConfigError: anything else, or a gate that is named twice.
    """
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.duets.decision import GATES, acceptable

    found: dict[str, float] = {}
    for text in texts:
        name, _, share = text.partition("=")
        try:
            if name not in GATES:
                raise ValueError(f"no gate is called {name!r}")
            if name in found:
                raise ValueError(f"{name} has a limit already")
            found[name] = acceptable(name, share)
        except ValueError as problem:
            raise ConfigError(
                f"limit {text!r}: {problem}",
                where="--limit",
                accepted=f"GATE=SHARE with a gate of {', '.join(GATES)}, such as p50=5%",
                fix="correct it",
            ) from None
    return found or None


def _sides(options: argparse.Namespace, told: Any) -> tuple[Side, Side]:
    """Raises:
    ConfigError: no retriever, two sides that are the same thing, or options without effect.
    """
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.duets.revisions.revisions import same_code

    if options.retriever and options.a and options.b:
        raise ConfigError(
            f"--retriever {options.retriever} beside --a and --b",
            accepted="--a and --b, or --retriever with at most one of them",
            fix="leave out --retriever, which neither side would use",
        )
    revisions = options.rev_a is not None or options.rev_b is not None
    if not revisions and (options.extras is not None or options.setup):
        raise ConfigError(
            "--extras or --setup without a revision",
            accepted="them beside --rev-a or --rev-b",
            fix="leave them out: both sides use the packages that are installed now",
        )
    given = {side: getattr(options, side) or options.retriever for side in "ab"}
    if not all(given.values()):
        raise ConfigError(
            "no retriever for " + " and ".join(f"side {side}" for side in "ab" if not given[side]),
            accepted="--a NAME --b NAME, or --retriever NAME with --rev-a and --rev-b, or with "
            "--set-a and --set-b",
            fix="name what is to be compared",
        )
    a, b = (_side(options, side, given[side], told) for side in "ab")
    if (a.retriever, a.overrides) == (b.retriever, b.overrides) and (
        a.place == b.place or same_code(a.place, b.place)
    ):
        raise ConfigError(
            same_code(a.place, b.place) or f"both sides are {a.name}",
            accepted="sides that differ in --a and --b, in --rev-a and --rev-b, or in --set-a "
            "and --set-b",
            fix="change one of them; `selftest` measures a thing beside itself",
        )
    return a, b


def _side(options: argparse.Namespace, side: str, retriever: str, told: Any) -> Side:
    from retrieval_bench.duets.sides import Side

    overrides = (*options.set, *getattr(options, f"set_{side}"))
    return Side(retriever, _place(options, side, told), overrides)


def _place(options: argparse.Namespace, side: str, told: Any) -> Place:
    from retrieval_bench.duets.revisions.revisions import WORKTREE, place_of
    from retrieval_bench.duets.sides import Place

    if options.rev_a is None and options.rev_b is None:
        return Place.here()
    setup = setup_of(options)
    return place_of(getattr(options, f"rev_{side}") or WORKTREE, setup=setup, reporter=told)
