"""Values of the queries that count in a mean."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.types import Dataset
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.evaluation import JUDGED_AT, Evaluation, evaluate
from retrieval_bench.runs.run import Rankings


def evaluated(
    rankings: Rankings,
    rows: Sequence[int],
    dataset: Dataset,
    metrics: Sequence[Metric],
    k: int,
    *,
    intervals: bool = False,
) -> Evaluation:
    """Score the rankings of the queries that count.

    Args:
        rows: those of the queries that count.
        k: hits asked for.
        intervals: see :func:`.averaged`.
    """
    return evaluate(
        rankings.ranking[rows],
        rankings.doc_ids,
        [rankings.query_ids[row] for row in rows],
        dataset.qrels,
        metrics,
        scores=rankings.scores[rows],
        judged_at=min(k, JUDGED_AT),
        intervals=intervals,
    )
