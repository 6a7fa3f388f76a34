"""``bench --no-forbidden`` and ``compare --no-forbidden``: a forbidden hit is a failure."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from retrieval_bench.cli.console import INTERRUPTED, NOT_MEASURED, OK, REGRESSION, say
from retrieval_bench.cli.options import Added

if TYPE_CHECKING:
    from retrieval_bench.comparison.comparison import Comparison
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.reports.finish import Finished
    from retrieval_bench.runs.run import Run


def run_bench(options: argparse.Namespace) -> int:
    """Measure; then look for forbidden hits."""
    from retrieval_bench.cli.measure.bench import benched

    runs: list[Run] = []

    def further(_experiment: Experiment) -> Callable[[Finished], Finished]:
        def keep(done: Finished) -> Finished:
            runs.append(done.run)
            return done

        return keep

    return code_of(benched(options, further), runs)


def run_compare(options: argparse.Namespace) -> int:
    """Compare; then look for forbidden hits."""
    from retrieval_bench.cli.measure.compare import Further, compared

    runs: list[Run] = []

    def further(comparison: Comparison) -> Further:
        runs.extend(comparison.runs)
        return Further()

    return code_of(compared(options, further=further), runs)


def code_of(code: int, runs: Sequence[Run]) -> int:
    """The exit code, where a forbidden hit counts for more than what else came to ``code``, but for
    an interruption; says what there are."""
    from retrieval_bench_rules.facts import facts_kept

    if code == INTERRUPTED:
        return code
    codes = [OK]
    for run in runs:
        facts = facts_kept(run)
        hits = None if facts is None else facts.forbidden
        if hits is None:
            say(
                f"retrieval-bench: --no-forbidden shows nothing of {run.name}: nothing is forbidden"
            )
            codes.append(NOT_MEASURED)
        elif hits.with_hit:
            say(f"retrieval-bench: {run.name}: {hits.text} --no-forbidden")
            codes.append(REGRESSION)
        elif hits.failed:
            say(
                f"retrieval-bench: --no-forbidden does not know of {run.name}: "
                f"{hits.of_failed} got no answer"
            )
            codes.append(NOT_MEASURED)
    return REGRESSION if REGRESSION in codes else code or max(codes)


_TEXT = "--no-forbidden  exit code 1 when a hit came that its query forbids"
BENCH = Added(_TEXT, "no_forbidden", run_bench)
COMPARE = Added(_TEXT, "no_forbidden", run_compare)
