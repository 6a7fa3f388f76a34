"""The command ``duet``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import (
    INTERRUPTED,
    NOT_MEASURED,
    OK,
    REGRESSION,
    UNDECIDED,
    say,
    show,
    working,
)
from retrieval_bench.cli.options import LIMITS, command, dataset, values
from retrieval_bench_duet.commands.revisions import ENVIRONMENTS, JUNIT, setup_of, write_junit

if TYPE_CHECKING:
    from retrieval_bench_duet.controller import DuetProtocol
    from retrieval_bench_duet.result import DuetResult


_SIDE = """
--{0} NAME_OR_YAML  retriever of side {0}, if not both
--rev-{0} REV  git revision of side {0}; WORKTREE: files as they are (default: WORKTREE)
--set-{0} KEY=VALUE ...  override parameters on side {0}
"""
_DUET = f"""
sides RETRIEVER *  two, a and b, or one for both sides when revisions are compared; also
    --retriever
--retriever RETRIEVER  {argparse.SUPPRESS}
{_SIDE.format("a")}{_SIDE.format("b")}
--set KEY=VALUE ...  override parameters of both sides by dotted path
{dataset()}
--out DIR  folder of the record (default: a new one in results/duets)
--limit GATE=SHARE ...  largest acceptable slow-down, such as p50=5%% p95=10%%; only these are
    judged, and all of them must be
{JUNIT}
{ENVIRONMENTS}
measuring:
+
--seconds S  seconds of measuring in a launch (default: 1); with --rate of a block (10)
--most S  seconds of measuring in all, at most; indexes are built besides
--queries N  queries to ask at most, chosen by seed (default: 220)
{LIMITS}
"""


@command(_DUET)
def run_duet(options: argparse.Namespace) -> int:
    """Play two configs, or two revisions, against each other: is one slower?"""
    from retrieval_bench_duet.duet import duet

    return played(options, duet, protocol_of(options))


def played(
    options: argparse.Namespace, play: Callable[..., DuetResult], protocol: DuetProtocol
) -> int:
    """Play a duet, print it, and give the exit code."""
    from retrieval_bench.core.errors import RecordError
    from retrieval_bench.core.types import Verdict
    from retrieval_bench_duet.duet import Request
    from retrieval_bench_duet.result import GateResult, PrintedDuet
    from retrieval_bench_duet.tables.duet import duet_tables

    def print_result(result: DuetResult) -> None:
        show(options, PrintedDuet(result), lambda: duet_tables(result))
        suite = f"duet {result.b.name} beside {result.a.name}"
        gates = list(result.gates)
        if result.verdict in (Verdict.MISSING, Verdict.NOT_COMPARABLE):  # whatever each gate says
            gates.append(GateResult("duet", Verdict.MISSING, 0.0, 0.0, reason=result.reason))
        write_junit(options, suite, [(gate.gate, gate) for gate in gates])

    name_sides(options)
    sides = ("retriever", "a", "b", "rev_a", "rev_b", "set_a", "set_b")
    request = Request(
        **{name: getattr(options, name) for name in sides},
        overrides=options.set,
        setup=setup_of(options),
    )
    try:
        with working(options) as bars:
            result = play(
                request,
                options.dataset,
                **values(options, "split k out"),
                protocol=protocol,
                reporter=bars,
            )
    except RecordError as problem:
        for unsaved in problem.runs:
            print_result(unsaved)
        raise
    print_result(result)
    return exit_code(result)


def name_sides(options: argparse.Namespace) -> None:
    """``a`` and ``b``, or ``retriever``, from the names that have no option.

    Raises:
        ConfigError: more than two, or some beside those of options.
    """
    from retrieval_bench.core.errors import ConfigError

    named: list[str] = options.sides
    given = [name for name in ("retriever", "a", "b") if getattr(options, name) is not None]
    if len(named) > 2 or (named and given):
        raise ConfigError(
            f"{' '.join(named)}{''.join(f' with --{name}' for name in given)}",
            accepted="two retrievers, or one and --rev-a or --rev-b",
            fix="leave the others out",
        )
    if len(named) == 2:
        options.a, options.b = named
    elif named:
        (options.retriever,) = named


def exit_code(result: DuetResult) -> int:
    """Return the exit code of a duet: 0, 1, 3 or 4 as its verdict says, 130 when it was interrupted
    undecided."""
    word = result.word
    if word == "FAIL":
        return REGRESSION
    if result.interrupted:
        say("retrieval-bench: interrupted before it was decided")
        return INTERRUPTED
    return {"PASS": OK, "INCONCLUSIVE": UNDECIDED}.get(word, NOT_MEASURED)


def protocol_of(options: argparse.Namespace, **usual: Any) -> DuetProtocol:
    """The protocol that the options describe.

    Args:
        usual: what holds where no option says otherwise.
    """
    from retrieval_bench_duet.controller import DuetProtocol

    given: dict[str, Any] = {
        "seconds": options.seconds,
        "most_s": options.most,
        "queries": options.queries,
        "timeout_s": options.timeout,
        "threads": options.threads,
        "limits": _limits(options.limit),
    }
    given["all_judged"] = bool(options.limit)
    told = {name: value for name, value in given.items() if value is not None}
    return DuetProtocol(**(usual | told))


def _limits(texts: list[str]) -> dict[str, float] | None:
    """ "p50=5%" as {"p50": 0.05}; None for no limit at all.

    Raises:
        ConfigError: anything else, or a gate that is named twice.
    """
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_duet.decision import GATES, acceptable

    limits: dict[str, float] = {}
    for text in texts:
        name, _, share = text.partition("=")
        try:
            if name not in GATES:
                raise ValueError(f"no gate is called {name!r}")
            if name in limits:
                raise ValueError(f"{name} has a limit already")
            limits[name] = acceptable(name, share)
        except ValueError as problem:
            raise ConfigError(
                f"limit {text!r}: {problem}",
                where="--limit",
                accepted=f"GATE=SHARE with a gate of {', '.join(GATES)}, such as p50=5%",
                fix="correct it",
            ) from None
    return limits or None
