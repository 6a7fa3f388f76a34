"""Functions that read what was measured, here or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval_bench.api.results import BenchResult, Result, run_of
from retrieval_bench.core.types import Dataset

if TYPE_CHECKING:  # a function that is called loads what it needs
    from retrieval_bench.runs.run import Run
    from retrieval_bench_explain.diff import Order
    from retrieval_bench_explain.differences import Differences


def diff(
    runs: Sequence[BenchResult | Run | str | Path],
    dataset: str | Path | Dataset | None = None,
    *,
    metric: str | None = None,
    queries: int | None = 10,
    query_ids: Sequence[str] = (),
    group: str | None = None,
    order: Order = "largest",
    texts: bool = True,
) -> Result[Differences]:
    """Explain where two runs differ, or one run of a hybrid and its legs, query by query.

    Args:
        runs: what :func:`retrieval_bench.bench` gave, or folders of saved runs.
        dataset: where it is now; None = as measured.
        metric: None = the first of the runs.
        queries: so many are shown; None = all.
        query_ids: show these instead.
        group: show only queries of this group, such as "lost by fusion".
        order: largest difference first, or where the second run is worse, or better.
        texts: False leaves out the texts of queries and documents.

    Raises:
        HarnessError: everything that is wrong with the input.
    """
    from retrieval_bench.metrics import one_metric
    from retrieval_bench.runs.dataset import dataset_of
    from retrieval_bench_explain.differences import differences
    from retrieval_bench_explain.tables.diff import diff_tables

    chosen = None if metric is None else one_metric(metric)
    read = [run_of(run) for run in runs]
    value = differences(
        read,
        dataset_of(read, dataset),
        chosen,
        queries=queries,
        query_ids=query_ids,
        group=group,
        order=order,
        texts=texts,
    )
    return Result(value, value.as_dict, lambda: diff_tables(value))
