"""A run and its judgements become values per query and means with intervals.

Nothing is measured and nothing decided here. One denominator for all metrics: every evaluated
query counts in every mean; a query without hits or that failed has the metric's default, 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented, plain
from retrieval_bench.core.types import EMPTY, Qrels, kind_of_truth
from retrieval_bench.metrics import Judgements, Metric, judge
from retrieval_bench.metrics.tied import TieEffect
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import graded, mean_intervals, methods

JUDGED_AT = 10
"""Cut-off of ``Judged``, unless rankings are shorter."""


@dataclass(frozen=True, slots=True)
class Mean(Documented):
    """A mean over queries, of a count the sum.

    Attributes:
        mean: NaN of no query.
        ci95: 95 % interval; None below two queries.
        n: queries.
    """

    KEYS = "mean=known ci95 n"

    mean: float
    ci95: tuple[float, float] | None
    n: int

    @property
    def known(self) -> float | None:
        """The mean; None of no query."""
        return float(self.mean) if np.isfinite(self.mean) else None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Quality of one run.

    Attributes:
        query_ids: the evaluated queries.
        metrics: in the order asked for.
        per_query: float64 (queries, metrics).
        means: one for each metric.
        judged: ``Judged@k`` -> its mean, a fact beside the metrics; empty where truth is by rule.
        ties: what equal scores decide; None where that is little, or not known.
        clustered: whether intervals are of clusters of queries.
    """

    query_ids: tuple[str, ...]
    metrics: tuple[Metric, ...]
    per_query: NDArray[np.float64]
    means: tuple[Mean, ...]
    judged: Mapping[str, float] = field(default_factory=lambda: EMPTY)
    ties: TieEffect | None = None
    clustered: bool = False

    @property
    def by_metric(self) -> dict[str, Mean]:
        """Means by the names of metrics."""
        return dict(zip(map(str, self.metrics), self.means, strict=True))

    def as_dict(self) -> dict[str, Any]:
        """Means with intervals, by metric name."""
        return plain(self.by_metric)  # type: ignore[no-any-return]

    @property
    def interval(self) -> str:
        """The methods that made the intervals of the means, in words."""
        scales = [metric.scale for metric in self.metrics]
        return methods(map(graded, scales) if self.clustered else scales)

    def mean(self, metric: Metric) -> Mean:
        """The mean of one metric."""
        return self.means[self.metrics.index(metric)]

    def values(self, metric: Metric, query_ids: Sequence[str] | None = None) -> NDArray[np.float64]:
        """float64 (queries,) of one metric, in the order of ``query_ids`` where these are given."""
        values = np.asarray(self.per_query[:, self.metrics.index(metric)])
        if query_ids is None:
            return values
        place = {query_id: at for at, query_id in enumerate(self.query_ids)}
        return np.asarray(values[[place[query_id] for query_id in query_ids]])

    def only(self, metrics: Sequence[Metric]) -> Evaluation:
        """The same by ``metrics`` alone, in their order."""
        places = [self.metrics.index(metric) for metric in metrics]
        means = tuple(self.means[at] for at in places)
        per_query = self.per_query[:, places]
        return replace(self, metrics=tuple(metrics), per_query=per_query, means=means)


def evaluate(
    ranking: NDArray[np.int32],
    doc_ids: Sequence[str],
    query_ids: Sequence[str],
    qrels: Qrels,
    metrics: Sequence[Metric],
    *,
    judged_at: int = JUDGED_AT,
    intervals: bool = True,
    clusters: Mapping[str, str] = EMPTY,
) -> Evaluation:
    """Score rankings of the queries that count.

    Args:
        ranking: (queries, depth) positions in ``doc_ids``, -1 behind the last hit.
        query_ids: the evaluated queries, one for each row.
        judged_at: cut-off of ``Judged``.
        intervals, clusters: see :func:`averaged`.
    """
    run = judge(ranking, doc_ids, query_ids, Judgements(qrels))
    per_query = np.column_stack([metric.compute(run) for metric in metrics])
    means = averaged(query_ids, metrics, per_query, intervals=intervals, clusters=clusters)
    if kind_of_truth(qrels) or not query_ids:
        return means
    judged = Metric("Judged", judged_at)
    return replace(means, judged={str(judged): float(judged.compute(run).mean())})


def averaged(
    query_ids: Sequence[str],
    metrics: Sequence[Metric],
    per_query: NDArray[np.float64],
    *,
    intervals: bool = True,
    clusters: Mapping[str, str] = EMPTY,
) -> Evaluation:
    """Values with their means and intervals, see :mod:`retrieval_bench.stats.intervals`.

    Args:
        per_query: (queries, metrics).
        intervals: whether there are any; those of a number of queries that the values themselves
            decided would not hold.
        clusters: query -> label, where queries with the same are not independent.
    """
    n = len(query_ids)
    additive = np.column_stack(
        [metric.additive(column) for metric, column in zip(metrics, per_query.T, strict=True)]
    )
    # In the order of the ids: the order in which queries were given changes no interval.
    by_id = sorted(range(n), key=query_ids.__getitem__)
    ends = np.full((len(metrics), 2), np.nan)
    of = Clusters.of_queries(clusters, [query_ids[at] for at in by_id])
    if intervals:
        sample, scales = additive[by_id], [metric.scale for metric in metrics]
        ends = mean_intervals(sample, scales, clusters=of)
    means = []
    for metric, column, both in zip(metrics, additive.T, ends, strict=True):
        scale = n if metric.counts else 1
        mean = scale * float(metric.from_additive(column.mean())) if n else float("nan")
        low, high = (scale * float(end) for end in metric.from_additive(both))
        means.append(Mean(mean, None if np.isnan(low) else (low, high), n))
    evaluation = Evaluation(tuple(query_ids), tuple(metrics), per_query, tuple(means))
    return replace(evaluation, clustered=of is not None)
