"""Values of the queries that count in a mean."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset
from retrieval_bench.experiment.tie_warnings import tie_keys
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
    can: Capabilities,
    intervals: bool = False,
) -> Evaluation:
    """Score the rankings of the queries that count.

    Args:
        rows: those of the queries that count.
        k: hits asked for.
        can: of the retriever.
        intervals: see :func:`.averaged`.
    """
    return evaluate(
        rankings.ranking[rows],
        rankings.doc_ids,
        [rankings.query_ids[row] for row in rows],
        dataset.qrels,
        metrics,
        scores=tie_keys(rankings, can)[rows],
        judged_at=min(k, JUDGED_AT),
        intervals=intervals,
    )
