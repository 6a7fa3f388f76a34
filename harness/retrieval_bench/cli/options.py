"""Options that several commands share, and what they say in terms of the library."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from retrieval_bench.capabilities import capabilities, named

if TYPE_CHECKING:
    from retrieval_bench.measure.protocol import Protocol

FORMATS = ("table", "json", "markdown", "latex", "csv")


_SPEAKING = """
--full  with --format json: also what queries, stages and records say one by one
| -v, --verbose  show all there is, where the usual output is short
| -q, --quiet  show the answer and its warnings alone, and no progress
--debug  show tracebacks of errors, which may hold secrets
"""

LANGUAGE = """
--language CODE  of the dataset, such as fr, for stems and stop words (default: what it names)
"""

SELF_HITS = """
--self-hits {keep,drop}  drop: leave out hits with the id of their query
    (default: what the dataset names)
"""

RETRIEVER = """
retriever, --retriever RETRIEVER [needed]  name of a config, YAML file or module:Class
--set KEY=VALUE ...  parameters by dotted path, values as in YAML
"""

SPLIT = "--split SPLIT [test]  split of the judgements (default: test)"
DEPTH = f"{SPLIT}\n--k K [{{k}}]  hits per query (default: {{k}})"

LIMITS = """
--timeout S  seconds; a call that takes longer has failed (default: 60)
--threads N  threads of numerical libraries while searching (default: 1)
"""

MEASURING = f"""
{LANGUAGE}
{SELF_HITS}
--metrics METRIC ...  such as nDCG@10 R@100, the first decides (default: by k)
--no-leaks  exit code 1 when a hit lies outside of its query's filter
--no-pictures [pictures]  draw no pictures into the run's folder
--dry-run  check everything, ask each retriever once, say how many calls a run makes
--no-calls  with --dry-run: ask no external retriever
measuring:
--profile NAME [default]  smoke (one round), default, release (10,000 calls), or a YAML file
--min-calls N  measured calls per retriever (default: 1000)
--rounds N  rounds of a launch, instead of --min-calls
--max-calls N  calls per retriever at most, warm-up included
--max-minutes M  begin no round after so many minutes
--max-cost MONEY  spend no more than this, by the usage that the retriever reports
--launches N  fresh processes that share the calls (default: none)
--warm-up S  seconds after which the warm-up ends, steady or not (default: 10)
{LIMITS}
--collector {{on,off}} [off]  Python's garbage collector during timed calls (default: off)
--percentiles P ...  to report, such as 50 90 99.9 (default: 50 95 99)
"""

_ENTRY = re.compile(
    r"(?:([|!]) )?((?:-?\w+, )?[-a-z_]+)(?: ([^\s[]\S*))?(?: (\.{3}|[*+?]))?(?: \[(.*?)\])?  +(.*)"
)


def _path(text: str) -> Path:
    """A path, in which ``~`` is a home folder also where no shell says so: ``--out=~/x.html``."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"no home folder is known of {text!r}") from None


def _money(text: str) -> float:
    """An amount of any currency."""
    with suppress(ValueError):
        if 0 <= (amount := float(text)) < math.inf:
            return amount
    raise argparse.ArgumentTypeError(f"{text} is no amount of money: 0 or more")


_TYPES: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("N", "K", "SEED", "DEPTH", "GRADE"), int),
    **dict.fromkeys(("S", "R", "D", "M", "P", "DAYS"), float),
    **dict.fromkeys(("FILE", "DIR", "FOLDER", "YAML"), _path),
    "MONEY": _money,
}
"""Types of values by their metavar; those of others are texts."""

Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Added:
    """Options that a package adds to the command of another one.

    Attributes:
        text: as :func:`add` reads them; they stand where that command's text has a line ``+``.
        asked: which of them asks for ``run``, if one does.
        run: what runs in place of the command then; gives the exit code.
        accepted, fix: of the error where others of them are given without that one.
        example: what may stand behind the command.
        more: as of :func:`add`.
    """

    text: str
    asked: str = ""
    run: Run | None = None
    accepted: str = ""
    fix: str = ""
    example: str = ""
    more: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def is_asked(self, options: argparse.Namespace) -> bool:
        """Say whether it is to run.

        Raises:
            ConfigError: it is not, and others of its options would silently do nothing.
        """
        if getattr(options, self.asked) != options.parser.get_default(self.asked):
            return True
        others = " ".join(name for name in defaults(self.text) if name != self.asked)
        why = f"without --{self.asked.replace('_', '-')}"
        refuse(options, others, why, accepted=self.accepted, fix=self.fix)
        return False


def added_to(words: str) -> list[Added]:
    """List the options that packages add to a command."""
    return [named(package.options[words]) for package in capabilities() if words in package.options]


def words_of(parser: argparse.ArgumentParser) -> str:
    """The command that ``parser`` reads, such as ``data index``."""
    return parser.prog.partition(" ")[2]


@dataclass(frozen=True, eq=False)
class Command:
    """A command.

    Attributes:
        run: what it does, with its options; gives the exit code.
        text: its options, as :func:`add` reads them; where it has a line ``+``, others add theirs.
        formats: of its own, beside :data:`FORMATS`.
        more: as of :func:`add`.
    """

    run: Run
    text: str
    formats: tuple[str, ...]
    more: Mapping[str, Mapping[str, Any]]

    def __call__(self, options: argparse.Namespace) -> int:
        added = [of for of in added_to(words_of(options.parser)) if of.run is not None]
        asked = [of for of in added if of.is_asked(options)]
        for other in asked[1:]:
            what = f"with --{other.asked.replace('_', '-')}"
            refuse(options, asked[0].asked, what, accepted="one of the two", fix="leave one out")
        run = asked[0].run if asked else None
        return self.run(options) if run is None else run(options)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add its options, and those that every command has."""
        formats, added = ",".join((*FORMATS, *self.formats)), added_to(words_of(parser))
        text = self.text.replace("\n+\n", "\n".join(["", *(more.text for more in added), ""]))
        details = dict(self.more)
        for more in added:
            details |= more.more
        add(parser, text, **details)
        add(parser, f"--format {{{formats}}} [table]  output format\n{_SPEAKING}")
        parser.set_defaults(run=self)


def command(
    text: str = "", /, *formats: str, **more: Mapping[str, Any]
) -> Callable[[Run], Command]:
    """Make a command of the function that runs it; see :class:`Command`."""
    return lambda run: Command(run, text, formats, more)


def add(parser: argparse.ArgumentParser, text: str, /, **more: Mapping[str, Any]) -> None:
    """Add arguments to a parser as its help will show them, one a line::

        runs RUN +  one by its place, at least one value; * and ? are those of argparse
        dataset, --dataset NAME [needed]  by its place or as an option, one of them "needed"
        --out DIR  folder of the record
        --metrics METRIC ...  one value or several, and it may be given again
        --arrivals {poisson,constant} [poisson]  the default stands in brackets, or "required"
        --soak  without a value it is a switch
        --no-pictures [pictures]  a switch that turns `pictures` off
        | --offline FILE  at most one of those with a bar; exactly one of those with !
        measuring:
        --rounds N  an option of this group, up to the next one or "options:"

    Two blanks stand before the help; a line that begins with blanks goes on with the one before.
    The metavar says the type of the values, see :data:`_TYPES`.

    Args:
        more: by the name of an option: what else ``add_argument`` takes.
    """
    into: Any = parser
    alone: Any = None
    for line in re.sub(r"\n +", " ", text).splitlines():
        if line.endswith(":"):
            into = parser if line == "options:" else parser.add_argument_group(line[:-1])
        elif line:
            mark, flags, given = _read(line)
            if mark:
                alone = alone or parser.add_mutually_exclusive_group(required=mark == "!")
            name = flags[-1].lstrip("-").replace("-", "_")
            if len(flags) > 1 and not flags[0].startswith("-"):
                name = flags[0]
                _add_named(parser, *flags, **given | dict(more.get(name, {})))
            else:
                (alone if mark else into).add_argument(*flags, **given | dict(more.get(name, {})))


def _read(line: str) -> tuple[str, list[str], dict[str, Any]]:
    """Its mark, the flags of an option, and the arguments that argparse takes."""
    if (entry := _ENTRY.fullmatch(line)) is None:
        raise AssertionError(f"an option that cannot be read: {line}")
    mark, flags, metavar, several, usual, text = entry.groups()
    hidden = text == argparse.SUPPRESS  # which argparse knows by its identity
    given: dict[str, Any] = {"help": argparse.SUPPRESS if hidden else text}
    if metavar is None:
        off = {"action": "store_false", "dest": usual}
        return mark, flags.split(", "), given | (off if usual else {"action": "store_true"})
    kind = _TYPES.get(metavar, str)
    if metavar.startswith("{"):
        given["choices"] = metavar[1:-1].split(",")
    else:
        given |= {"metavar": metavar, "type": kind}
    if several == "...":
        given |= {"nargs": "+", "action": "extend", "default": []}
    elif several:
        given["nargs"] = several
    if usual in ("required", "needed"):
        given[usual] = True
    elif usual is not None:
        given["default"] = [] if several else kind(usual)
    return mark, flags.split(", "), given


class Needed(NamedTuple):
    """What a command is about and must be told: its argument, the option for it, and what that
    takes."""

    name: str
    option: str
    accepted: str


def _add_named(
    parser: argparse.ArgumentParser,
    name: str,
    option: str,
    *,
    help: str,  # noqa: A002 - argparse calls it so
    needed: bool = False,
    **given: Any,
) -> None:
    """Add the argument that names what a command is about, by its place or as an option."""
    text = f"{help}; also {option}"
    parser.add_argument(name, nargs="?", action=_Once, help=text, **given)
    del given["metavar"]
    parser.add_argument(option, action=_Once, dest=name, help=argparse.SUPPRESS, **given)
    if needed:
        parser.set_defaults(needs=Needed(name, option, help))


def defaults(text: str) -> dict[str, Any]:
    """What each option of ``text`` is unless somebody gives it."""
    parser = argparse.ArgumentParser()
    add(parser, text)
    return vars(parser.parse_args([]))


def dataset(default: str | None = "science-mini", k: int = 10) -> str:
    """The options for the data, and how deep; without ``default`` a dataset has to be named."""
    if default:
        named = f"[{default}]  name or folder (default: {default})"
    else:
        named = "[required]  name or folder"
    return f"--dataset NAME_OR_PATH {named}\n{DEPTH.format(k=k)}"


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


HOW_MANY = {"type": how_many}


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


def values(options: argparse.Namespace, names: str) -> dict[str, Any]:
    """The options of these names, for a function whose arguments are called as they are."""
    return {name: getattr(options, name) for name in names.split()}


def bench_of(options: argparse.Namespace) -> str:
    """The command that measures the same retriever on the same dataset."""
    from retrieval_bench.core.installed.installation import typed

    return typed("bench", options.retriever, **values(options, "dataset split language set"))


def protocol_of(options: argparse.Namespace) -> Protocol:
    """The protocol that the options of :data:`MEASURING` describe."""
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


def refuse(options: argparse.Namespace, names: str, why: str, **parts: str) -> None:
    """Refuse options that are given where they would silently do nothing.

    Args:
        names: of the options, separated by blanks.
        why: what stands behind those that are given.
        **parts: of the error.

    Raises:
        ConfigError: one of them is not as it is unless given.
    """
    from retrieval_bench.core.errors import ConfigError

    read = options.parser
    given = [
        name
        for name in names.split()
        if getattr(options, name, None) != read.get_default(name)  # a package may not be here
    ]
    if given:
        written = {action.dest: action.option_strings for action in read._actions}
        what = f"{', '.join(written[name][-1] for name in given)} {why}"
        raise ConfigError(what, kind="bad-option", **parts)
