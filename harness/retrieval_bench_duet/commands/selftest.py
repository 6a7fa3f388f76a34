"""The command ``selftest``."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import INTERRUPTED, NOT_MEASURED, OK, UNDECIDED, say, show, working
from retrieval_bench.cli.options import Added, command, dataset, refuse

_SELFTEST = f"""
--time S [120]  seconds in all (default: 120)
retriever, --retriever RETRIEVER  measure this one (default: a matrix product of about 2 ms)
{dataset()}
"""


@command(_SELFTEST)
def run_selftest(options: argparse.Namespace) -> int:
    """Play duets on this machine and say what they show."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_duet.selftest import selftest
    from retrieval_bench_duet.tables.selftest import selftest_tables

    if not options.time > 0:
        raise ConfigError(f"--time {options.time}", accepted="seconds, above 0")
    with working(options) as bars:
        result = selftest(
            options.retriever,
            options.dataset,
            seconds=options.time,
            k=options.k,
            split=options.split,
            reporter=bars,
        )
    show(options, result, lambda: selftest_tables(result))
    if result.interrupted:
        return INTERRUPTED
    if result.false_alarms or result.missed:
        say("retrieval-bench: the duet failed its check on this machine: trust none of it there")
        return UNDECIDED
    if result.unable:
        say(f"retrieval-bench: {result.unable}: this machine is too busy to judge")
        measured = any(result.launched for played in result.played for result in played.results)
        return UNDECIDED if measured else NOT_MEASURED
    return OK


def run_only_selftest(options: argparse.Namespace) -> int:
    """Play these duets in place of the look of ``doctor``."""
    refuse(
        options,
        "set language self_hits ask",
        "with --selftest",
        accepted="a retriever as its config has it, and --time",
        fix="leave it out, or look at everything first, without --selftest",
    )
    return run_selftest(options)


SELFTEST = Added(
    """
--selftest  only play duets of equal and of slowed sides, to see what this machine can show
--time S [120]  seconds for that (default: 120)
""",
    "selftest",
    run_only_selftest,
    accepted="both of them",
    fix="leave it out",
    example="--selftest",
)
