"""The command ``report``: a page on runs, written to its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.comparison.analysis import analyse
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.recommendation import Recommendation
from retrieval_bench.core.types import Dataset
from retrieval_bench.reports.page.document import report_page
from retrieval_bench.reports.page.file import check_place, write_page
from retrieval_bench.reports.render.table import Table, result
from retrieval_bench.runs.dataset import datasets_of


@dataclass(frozen=True, slots=True)
class Report:
    """A page that was written.

    Attributes:
        path: of the file.
        n_bytes: its size.
        recommendations: the answer on each dataset.
    """

    path: Path
    n_bytes: int
    recommendations: tuple[Recommendation, ...]

    def as_dict(self) -> dict[str, Any]:
        """The document of ``report --format json``."""
        return {
            "report": str(self.path),
            "bytes": self.n_bytes,
            "recommendations": [answer.as_dict() for answer in self.recommendations],
        }

    def tables(self) -> list[Table]:
        """Where it is, and the answers."""
        sentences = [result(answer.sentence) for answer in self.recommendations]
        return [Table(f"{self.path}, {self.n_bytes / 1e6:.2f} MB", (), (), notes=sentences)]


def write_report(
    comparison: Comparison,
    path: Path,
    datasets: Sequence[str | Path | Dataset] = (),
    *,
    title: str = "",
    with_text: bool = True,
) -> Report:
    """Everything about ``comparison`` as one HTML file, which replaces an earlier one.

    Args:
        datasets: where those of the runs are, unless the runs say it; without one the page has no
            slices and no single queries.
        with_text: False leaves out the texts of queries and documents.

    Raises:
        HarnessError: it cannot be written, or ``datasets`` are not those of the runs.
    """
    check_place(path)
    sources = datasets_of([group.runs for group in comparison.groups], datasets)
    analysis = analyse(comparison, sources)
    page = report_page(analysis, title=title, with_text=with_text)
    write_page(path, page)
    return Report(path, len(page.encode()), analysis.recommendations)
