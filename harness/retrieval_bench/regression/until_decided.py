"""Drops that are looked at after every query: gates that hold at every look, so that asking may end
at any of them.

A difference is now minus then. It is bet on (:mod:`retrieval_bench.stats.sequential`) with the
limits of all metrics together at 5 %. It ends when one metric is shown to have dropped by more than
its limit, which fails the whole, or when for every one a drop as large as its limit is ruled out;
both over all queries, a failed one counting 0, and with the queries that failed then or now taken
as ties.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.anytime import Asked, scale_to_bet_on
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.regression.baseline import FAILED, QualityBaseline
from retrieval_bench.regression.policy import Rise
from retrieval_bench.regression.worse import QualityGate, QualityResult, judge_quality
from retrieval_bench.stats.intervals import Floats
from retrieval_bench.stats.randomization import ROUNDING
from retrieval_bench.stats.sequential import Betting, anytime_intervals

PASSES = (Verdict.BETTER, Verdict.EQUIVALENT)


class DropWatch:
    """The differences of every metric, query by query; told of each as a :data:`.Watch` is.

    Args:
        before: the baseline.
        limits: metric -> largest acceptable drop, above 0.
        metrics: those that are measured, in the order of the values.
        total: queries of the split whose mean is meant; None = the mean of queries like these.

    Raises:
        ConfigError: nothing can be bet on a metric.
    """

    def __init__(
        self,
        before: QualityBaseline,
        limits: Mapping[Metric, float],
        metrics: Sequence[Metric],
        total: int | None,
    ) -> None:
        self._before = before
        known = {metric: limits[metric] for metric in limits if str(metric) in before.metrics}
        self._columns = [(metrics.index(metric), str(metric)) for metric in known]
        self._bets = [_bets(metric, limit, len(known), total, 2) for metric, limit in known.items()]

    def __call__(self, query_id: str, values: Floats, answered: NDArray[np.bool_]) -> bool:
        both = answered[0] and self._before.ranking(query_id) != FAILED
        for (column, name), bets in zip(self._columns, self._bets, strict=True):
            then = self._before.values(name, [query_id])
            bets.add(_differences(then, values[0, column]) * [1, both])
        found = [[_verdict(bets, at) for at in range(2)] for bets in self._bets]
        if any(set(two) == {Verdict.WORSE} for two in found):
            return True
        return all(one in PASSES for two in found for one in two)


def judge_asked(
    before: QualityBaseline,
    now: QualityBaseline,
    limits: Mapping[Metric, float],
    order: Sequence[str],
    asked: Asked,
    *,
    rise: Rise = Rise.PASS,
) -> QualityResult:
    """Every metric of ``limits`` on the queries of a measurement until decided.

    Args:
        now: of that measurement.
        order: ids of the queries, in the order asked.
        asked: how far it came; whether it is decided is said anew.
        rise: as of :func:`.judge_quality`, once all queries were asked.
    """
    then, today = _only(before, order), _only(now, order)
    # Were all asked, and is nothing changed, no drop is in question: as with every measurement.
    complete = asked.asked == asked.queries
    known = complete and then.queries == today.queries
    test = None if known else _AnytimeTest(order, asked.total)
    found = judge_quality(then, today, limits, test, Rise.UNDECIDED)
    verdicts = [gate.verdict for gate in found.gates]
    decided = Verdict.WORSE in verdicts or all(one in PASSES for one in verdicts)
    if complete and not decided:
        found = judge_quality(then, today, limits, test, rise)
    return replace(found, asked=replace(asked, decided=decided))


@dataclass(frozen=True, slots=True)
class _AnytimeTest:
    """In place of the paired test: what was shown when asking ended.

    Attributes:
        order: ids of the queries, in the order asked.
        total: as of :class:`DropWatch`.
    """

    order: Sequence[str]
    total: int | None

    def __call__(
        self,
        before: QualityBaseline,
        now: QualityBaseline,
        limits: Mapping[Metric, float],
        queries: Collection[str] | None = None,
    ) -> dict[str, QualityGate]:
        """The gates with all others than ``queries`` taken as ties."""
        answered = self.order if queries is None else queries
        kept = set(answered)
        tied = [query not in kept for query in self.order]
        return {
            str(metric): self._gate(before, now, metric, limits, np.array(tied))
            for metric in limits
        }

    def _gate(
        self,
        before: QualityBaseline,
        now: QualityBaseline,
        metric: Metric,
        limits: Mapping[Metric, float],
        tied: NDArray[np.bool_],
    ) -> QualityGate:
        name, limit = str(metric), limits[metric]
        then, today = (one.values(name, self.order) for one in (before, now))
        differences = np.where(tied, 0.0, _differences(then, today))
        bets = _bets(metric, limit, len(limits), self.total, 1)
        for value in differences:
            bets.add([value])
        ends = anytime_intervals(
            differences[:, None],
            scale_to_bet_on(metric).of_differences,
            alpha=QUALITY_ALPHA / len(limits),
            total=self.total,
        )
        verdict = _verdict(bets, 0)
        return QualityGate(
            name,
            verdict,
            limit,
            before=float(then.mean()),
            now=float(today.mean()),
            difference=float(differences.mean()),
            ci95=(float(ends[0, 0]), float(ends[0, 1])),
            higher=int(np.count_nonzero(differences > 0)),
            lower=int(np.count_nonzero(differences < 0)),
            reason=(_KNOWN if bets.complete else _SHOWN)[verdict],
        )


_SHOWN = {
    Verdict.WORSE: "dropped by more than the limit, and not by chance",
    Verdict.EQUIVALENT: "a drop as large as the limit is ruled out",
    Verdict.BETTER: "shown to be better",
    Verdict.UNDECIDED: "neither a drop beyond the limit is shown, nor is one ruled out",
}
_KNOWN = {
    Verdict.WORSE: "dropped by more than the limit on the queries of this split",
    Verdict.EQUIVALENT: "dropped by no more than the limit on the queries of this split",
    Verdict.BETTER: "better on the queries of this split",
}


def _bets(metric: Metric, limit: float, metrics: int, total: int | None, streams: int) -> Betting:
    return Betting(
        [-limit, 0.0],
        scale_to_bet_on(metric, where="the policy").of_differences,
        streams=streams,
        alpha=QUALITY_ALPHA / metrics,
        total=total,
    )


def _verdict(bets: Betting, at: int) -> Verdict:
    if bets.too_high[at, 0] and not bets.too_low[at, 0]:
        return Verdict.WORSE
    if bets.too_low[at, 1] and not bets.too_high[at, 1]:
        return Verdict.BETTER
    ruled_out = bets.too_low[at, 0] or bets.complete  # then it is the limit itself
    return Verdict.EQUIVALENT if ruled_out else Verdict.UNDECIDED


def _differences(then: Floats, now: Floats | float) -> Floats:
    found = np.asarray(now - then)
    found[np.abs(found) <= ROUNDING] = 0.0
    return found


def _only(baseline: QualityBaseline, queries: Collection[str]) -> QualityBaseline:
    wanted = set(queries)
    kept = {query: row for query, row in baseline.queries.items() if query in wanted}
    return baseline.model_copy(update={"queries": kept})
