"""A saved load as a section of the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables.run_facts import without_folders
from retrieval_bench.runs.run import relative_folder
from retrieval_bench_load.engine.load import LoadResult
from retrieval_bench_load.engine.saved import find_load, read_load
from retrieval_bench_load.pictures.load import load_curve
from retrieval_bench_load.tables.load import load_tables
from retrieval_bench_pictures.vega import Spec


@dataclass(frozen=True, slots=True)
class LoadSection:
    """Its levels, and how well their times are known.

    Attributes:
        load: what is shown.
        label: what its picture shows.
    """

    load: LoadResult
    label: str = "latency against load"

    @property
    def heading(self) -> str:
        """The retriever."""
        return f"{self.load.retriever} under load"

    @property
    def folder(self) -> Path | None:
        """The folder of its record."""
        return self.load.folder

    def picture(self, width: int) -> Spec:
        """Latency against the rate."""
        return load_curve(self.load, width=width)

    def tables(self, *, with_text: bool) -> list[Table]:
        """All there is; without warnings, which may quote a query, unless ``with_text``."""
        load = replace(
            self.load,
            warnings=without_folders(self.load.warnings) if with_text else (),
            folder=self.folder and Path(without_folders(relative_folder(self.load))),
        )
        return load_tables(load, full=True)


def section_of(given: str | Path, shown_as: Path | None = None) -> LoadSection:
    """The section on a saved load.

    Args:
        given: what names it.
        shown_as: the folder that the page names; None = where it lies.

    Raises:
        HarnessError: it is not there, or cannot be read.
    """
    load = read_load(find_load(given))
    return LoadSection(load if shown_as is None else replace(load, folder=shown_as))
