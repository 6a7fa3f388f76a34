"""Runs on queries that were fixed beforehand: paired tests, corrected over all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from retrieval_bench.comparison.group import DatasetComparison, Recommendation, Systems
from retrieval_bench.comparison.pairs.comparability import identical_rankings
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA, Pair
from retrieval_bench.comparison.pairs.speed import latencies
from retrieval_bench.comparison.pairs.verdicts import PairJudge, Rules
from retrieval_bench.comparison.recommendation import recommended
from retrieval_bench.stats import intervals

MOST_RESAMPLES = 200_000
"""However many pairs a table has; enough for p of 10,000 of them, and for the ends of 250."""


@dataclass(frozen=True, slots=True)
class Fixed(DatasetComparison):
    """Differences with p and verdict of Holm's family, and ratios of times."""

    def recommended(self, margin: float, baseline: str | None = None) -> Recommendation:
        """The best mean, or one that is shown to be equivalent to it and faster."""
        return recommended(self, margin, baseline)


def compare_fixed(
    systems: Systems, pairs: Sequence[Pair], rules: Rules, warnings: Sequence[str]
) -> Fixed:
    """Every pair on every metric, and in time."""
    resamples = resamples_for(len(pairs))
    if len(pairs) / (resamples + 1) >= QUALITY_ALPHA:
        too_many = (
            f"{len(pairs):,} pairs: {resamples:,} resamples can show no difference between any of "
            "them; name a baseline, to compare fewer"
        )
        warnings = [*warnings, too_many]
    deltas = PairJudge.of_runs(*systems).judged(pairs, replace(rules, resamples=resamples))
    run_of = dict(zip(systems.names, systems.runs, strict=True))
    same = cache(lambda a, b: identical_rankings(run_of[a], run_of[b]))
    return Fixed(
        *systems,
        tuple(
            _identical(delta) if _even(delta) and same(delta.a, delta.b) else delta
            for delta in deltas
        ),
        latencies(systems.runs, systems.names, pairs),
        resamples,
        tuple(warnings),
    )


def _even(delta: Delta) -> bool:
    return delta.difference is not None and not delta.wins and not delta.losses


def _identical(delta: Delta) -> Delta:
    """``delta`` without what more queries would show of rankings that nothing tells apart."""
    nothing: dict[str, Any] = dict.fromkeys(("bound", "resolvable_from", "queries_needed"))
    return replace(delta, **nothing, needed_for="", identical=True)


def resamples_for(rows: int) -> int:
    """So many that forty of them are beyond the smallest level that Holm sets."""
    return min(MOST_RESAMPLES, intervals.resamples_for(QUALITY_ALPHA / max(1, rows)))
