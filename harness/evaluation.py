"""A run and its judgements become values per query and means with intervals.

Nothing is measured and nothing decided here. One denominator for all metrics: every evaluated
query counts in every mean; a query without hits or that failed has the metric's default, 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics import Metric, judge
from harness.stats import bootstrap_mean_ci
from harness.types import Qrels

CONVENTION = "trec"
"""Which definitions are behind the names; see harness/docs/metrics.md."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over queries with its 95 % interval (None below two queries)."""

    mean: float
    ci95: tuple[float, float] | None
    n: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Quality of one run.

    Attributes:
        query_ids: the evaluated queries.
        metrics: in the order asked for.
        per_query: float64 (queries, metrics).
        means: one for each metric.
    """

    query_ids: tuple[str, ...]
    metrics: tuple[Metric, ...]
    per_query: NDArray[np.float64]
    means: tuple[Mean, ...]

    def mean(self, metric: Metric) -> Mean:
        """The mean of one metric."""
        return self.means[self.metrics.index(metric)]

    def values(self, metric: Metric) -> NDArray[np.float64]:
        """float64 (queries,) of one metric."""
        return np.asarray(self.per_query[:, self.metrics.index(metric)])


def evaluate(
    ranking: NDArray[np.int32],
    doc_ids: Sequence[str],
    query_ids: Sequence[str],
    qrels: Qrels,
    metrics: Sequence[Metric],
) -> Evaluation:
    """Score rankings of the queries that count.

    Args:
        ranking: (queries, depth) positions in ``doc_ids``, -1 behind the last hit.
        query_ids: the evaluated queries, one for each row.
    """
    run = judge(ranking, doc_ids, query_ids, qrels)
    per_query = np.column_stack([metric.compute(run) for metric in metrics])
    intervals = bootstrap_mean_ci(per_query)
    n = len(query_ids)
    means = tuple(
        Mean(
            float(column.mean()) if n else float("nan"),
            None if np.isnan(low) else (float(low), float(high)),
            n,
        )
        for column, (low, high) in zip(per_query.T, intervals, strict=True)
    )
    return Evaluation(tuple(query_ids), tuple(metrics), per_query, means)
