"""Functions for Python users: the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval_bench.api.results import BenchResult, Result, run_of
from retrieval_bench.core.types import Dataset
from retrieval_bench.stats.defaults import MARGIN

if TYPE_CHECKING:  # a function that is called loads what it needs
    from retrieval_bench.runs.run import Run
    from retrieval_bench_pages.report import Report


def report(
    runs: Sequence[BenchResult | Run | str | Path],
    out: str | Path = "results/report.html",
    dataset: str | Path | Dataset | Sequence[str | Path | Dataset] = (),
    *,
    title: str = "",
    metrics: Sequence[str] = (),
    margin: float = MARGIN,
    baseline: str | None = None,
    with_text: bool = True,
) -> Result[Report]:
    """Write one HTML file on runs: the answer, tables, pictures, single queries.

    Args:
        runs: what :func:`retrieval_bench.bench` gave, or folders of saved runs.
        out: the file, replaced when it is there.
        dataset: where those of the runs are, unless the runs say it; without one the page has no
            slices and no single queries.
        title: heading of the page; empty = the systems and datasets.
        metrics: choose among those that the runs have; empty = all.
        margin, baseline: as in :func:`retrieval_bench.compare`.
        with_text: False leaves out the texts of queries and documents.

    Raises:
        HarnessError: it cannot be written, or what was given cannot be used.
    """
    from retrieval_bench.comparison.comparison import compare_runs
    from retrieval_bench.runs.run import only_metrics
    from retrieval_bench_pages.report import write_report

    read = [run_of(run) for run in runs]
    comparison = compare_runs(
        only_metrics(read, metrics) if metrics else read, margin=margin, baseline=baseline
    )
    datasets = [dataset] if isinstance(dataset, str | Path | Dataset) else dataset
    value = write_report(comparison, Path(out), datasets, title=title, with_text=with_text)
    return Result(value, value.as_dict, value.tables)
