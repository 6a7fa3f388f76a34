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
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics.names import label_of
from retrieval_bench.runs.dataset import n_alike, told_alike
from retrieval_bench.runs.run import clusters_of
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
    rules = replace(rules, resamples=resamples)
    deltas = PairJudge.of_runs(*systems).judged(pairs, rules)
    by_question, told = one_question(systems, pairs, rules, deltas)
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
        (*warnings, *told),
        by_question,
    )


def _even(delta: Delta) -> bool:
    return delta.difference is not None and not delta.wins and not delta.losses


def _identical(delta: Delta) -> Delta:
    """``delta`` without what more queries would show of rankings that nothing tells apart."""
    nothing: dict[str, Any] = dict.fromkeys(("bound", "resolvable_from", "queries_needed"))
    return replace(delta, **nothing, needed_for="", identical=True)


def one_question(
    systems: Systems, pairs: Sequence[Pair], rules: Rules, deltas: Sequence[Delta]
) -> tuple[tuple[Delta, ...], list[str]]:
    """Judge the deciding metric anew where queries are nearly the same question and nothing says
    so; return that where a verdict is another, and a warning."""
    run, alone = systems.runs[0], systems._replace(metrics=systems.metrics[:1])
    of = run.rankings.labels
    labels = [of[query_id] for query_id in run.evaluation.query_ids if of]
    if clusters_of(systems.runs) or not n_alike(labels):
        return (), []
    again = PairJudge.of_runs(*alone, of).judged(pairs, rules)
    own = deltas[:: len(systems.metrics)]
    turned, told = told_with_verdicts(labels, own, again)
    return tuple(again) if turned else (), [told]


def told_with_verdicts(
    labels: Sequence[str], own: Sequence[Delta], again: Sequence[Delta]
) -> tuple[bool, str]:
    """Return whether verdicts of ``own`` would be others, were ``labels`` counted as the questions
    that they are, as in ``again``; and say which."""
    other = [
        f"{new.b} against {new.a}: {_word(new.verdict)} in place of {_word(old.verdict)}"
        for old, new in zip(own, again, strict=True)
        if _word(old.verdict) != _word(new.verdict)
    ]
    change = f"{label_of(own[0].metric)} says {'; '.join(other[:3])}" if other else ""
    change = change or "no verdict is another"
    return bool(other), told_alike(len(labels), n_alike(labels), change)


def _word(verdict: Verdict) -> str:
    return "can't tell" if verdict.open else str(verdict.value)


def resamples_for(rows: int) -> int:
    """So many that forty of them are beyond the smallest level that Holm sets."""
    return min(MOST_RESAMPLES, intervals.resamples_for(QUALITY_ALPHA / max(1, rows)))
