"""How far a perfect choice or fusion of legs could go: two oracles that know the judgements.

The *perfect choice* takes for each query the leg that is best by the metric. The *perfect fusion*
takes all documents that any leg returned, however deep, and puts those with the highest grades
first. No fusion that only reorders what the legs return can be above the second, and no router that
picks one leg above the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import EMPTY
from retrieval_bench.metrics import Judgements, Metric, judge
from retrieval_bench.metrics.judged import NONE, Hits, JudgedRun, ordinals
from retrieval_bench.runs.evaluation import Mean, averaged

Positions = NDArray[np.int32]

_SMALLEST_DISTANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Ceiling(Documented):
    """One metric of the legs, of their fusion and of the two oracles.

    Attributes:
        metric: by which.
        legs: the mean of each leg, cut like the fused ranking.
        fused: the mean of the fused ranking; None where there is none.
        choice: the mean of the best leg of each query.
        fusion: the mean of the ideal order of all documents of all legs.
    """

    KEYS = (
        "legs best_leg fused perfect_choice=choice perfect_fusion=fusion realised_of_choice "
        "realised_of_fusion"
    )

    metric: Metric
    legs: Mapping[str, Mean]
    fused: Mean | None
    choice: Mean
    fusion: Mean

    @property
    def best_leg(self) -> str:
        """The leg with the highest mean, the first of equal ones."""
        return max(self.legs, key=lambda leg: self.legs[leg].mean)

    def realised(self, oracle: Mean) -> float | None:
        """How much of the distance between the best leg and ``oracle`` the fused ranking covers.

        0 = no better than the best leg, 1 = as good as the oracle, below 0 = worse than the best
        leg. None without a fused ranking or without a distance.
        """
        if self.fused is None:
            return None
        best = self.legs[self.best_leg].mean
        distance = oracle.mean - best
        if not distance > _SMALLEST_DISTANCE:  # also NaN
            return None
        return (self.fused.mean - best) / distance

    @property
    def realised_of_choice(self) -> float | None:
        """:meth:`realised` of the best leg of each query."""
        return self.realised(self.choice)

    @property
    def realised_of_fusion(self) -> float | None:
        """:meth:`realised` of the ideal order."""
        return self.realised(self.fusion)


def ceilings(
    legs: Mapping[str, Positions],
    fused: Positions | None,
    doc_ids: Sequence[str],
    query_ids: Sequence[str],
    judgements: Judgements,
    *,
    metrics: Sequence[Metric],
    k: int,
    clusters: Mapping[str, str] = EMPTY,
) -> tuple[Ceiling, ...]:
    """The ceiling by each of ``metrics``; intervals as everywhere, all from the same resamples.

    Args:
        legs: at least one; name -> (queries, depth) positions in ``doc_ids``, best first, -1 behind
            the last, no document twice in a row.
        fused: likewise, up to ``k`` wide.
        doc_ids: distinct.
        query_ids: one for each row.
        k: legs and oracles are cut there before they are scored.
        clusters: query -> label of its cluster.
    """
    runs = [judge(lists[:, :k], doc_ids, query_ids, judgements) for lists in legs.values()]
    ideal = perfect_fusion(list(legs.values()), doc_ids, query_ids, judgements, k)
    others = [ideal]
    if fused is not None:
        others.append(judge(fused[:, :k], doc_ids, query_ids, judgements))
    columns: list[NDArray[np.float64]] = []
    for metric in metrics:
        of_legs = [metric.compute(run) for run in runs]
        columns += [*of_legs, np.maximum.reduce(of_legs), *(metric.compute(run) for run in others)]
    width = len(runs) + 1 + len(others)
    repeated = [metric for metric in metrics for _ in range(width)]
    means: tuple[Mean, ...] = ()
    if columns:
        means = averaged(query_ids, repeated, np.column_stack(columns), clusters=clusters).means
    by_metric = []
    for at, metric in enumerate(metrics):
        own = means[at * width : (at + 1) * width]
        by_metric.append(
            Ceiling(
                metric,
                dict(zip(legs, own, strict=False)),
                None if fused is None else own[len(runs) + 2],
                own[len(runs)],
                own[len(runs) + 1],
            )
        )
    return tuple(by_metric)


def perfect_fusion(
    lists: Sequence[Positions],
    doc_ids: Sequence[str],
    query_ids: Sequence[str],
    judgements: Judgements,
    k: int,
) -> JudgedRun:
    """All documents of ``lists`` as one ranking for each query: highest grades first, documents
    without a judgement last, cut at ``k``."""
    pool = _pooled(lists)
    run = judge(pool, doc_ids, query_ids, judgements)
    order = np.lexsort((-run.judged.grade, run.judged.row))
    row, grade = run.judged.row[order], run.judged.grade[order]
    rank = ordinals(row, len(query_ids))
    hits = Hits(row, rank, grade, np.zeros(len(row), dtype=np.bool_))
    return JudgedRun(hits, run.lengths, run.ideal, run.n_judged, hits).as_if(k)


def _pooled(lists: Sequence[Positions]) -> Positions:
    """Each document of a row once, in no order that matters; -1 elsewhere."""
    pool = np.sort(np.hstack(lists), axis=1)
    pool[:, 1:][pool[:, 1:] == pool[:, :-1]] = NONE
    return pool
