"""The command ``report``: a page on runs, written to its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.capabilities import service
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import Recommendation
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.needs_judgements import unjudged
from retrieval_bench.reports.file import check_place, write_page
from retrieval_bench.reports.render.table import Table, next_step, result, warning
from retrieval_bench.reports.tables.run_facts import without_folders
from retrieval_bench.runs.dataset import datasets_of
from retrieval_bench.runs.run import from_here
from retrieval_bench_pages.analysis import analyse
from retrieval_bench_pages.html_page import report_page
from retrieval_bench_pages.methods import methods as methods_of
from retrieval_bench_pages.provenance import source_of

METHODS = (".tex", ".bib")
"""What is written beside the page."""


@dataclass(frozen=True, slots=True)
class Report(Documented):
    """A page that was written.

    Attributes:
        path: of the file.
        n_bytes: its size.
        recommendations: the answer on each dataset.
        others: files beside it, such as those of ``--methods``.
        no_pictures: the reason why the page has none; empty where it has some.
    """

    KEYS = "report=path bytes=n_bytes others no_pictures? recommendations"

    path: Path
    n_bytes: int
    recommendations: tuple[Recommendation, ...]
    others: tuple[Path, ...] = ()
    no_pictures: str = ""

    def tables(self) -> list[Table]:
        """Show the path of the page, and the answers."""
        sentences = [result(answer.sentence) for answer in self.recommendations]
        sentences += [next_step(f"also: {path}") for path in self.others]
        if self.no_pictures:
            sentences.append(warning(f"The page has no pictures: {self.no_pictures}."))
        return [Table(f"{self.path}, {self.n_bytes / 1e6:.2f} MB", (), (), notes=sentences)]


def check_out(path: Path, *, methods: bool) -> None:
    """Find out whether the page, and with ``methods`` what is written beside it, has a place.

    Raises:
        HarnessError: it has none, or one would replace the other.
    """
    if methods and path.suffix.lower() in METHODS:
        raise ConfigError(
            f"the report would be replaced by its methods: {path}",
            where="--out",
            accepted=f"a file of another name than {' and '.join(METHODS)}, which lie beside it",
            fix=f"name the report, such as {path.with_suffix('.html')}",
        )
    check_place(path)


def write_report(
    comparison: Comparison,
    path: Path,
    datasets: Sequence[str | Path | Dataset] = (),
    *,
    loads: Sequence[str | Path] = (),
    metrics: Sequence[str] = (),
    title: str = "",
    with_text: bool = True,
    methods: bool = False,
) -> Report:
    """Everything about ``comparison`` as one HTML file, which replaces an earlier one.

    Args:
        datasets: where those of the runs are, unless the runs say it; without one the page has no
            slices and no single queries.
        loads: names or folders of saved loads, a section each.
        metrics: those that were chosen among the ones of the runs, for the page to say it.
        with_text: False leaves out the texts of queries and documents.
        methods: also write how it was made, for an article, beside it: ``.tex`` and ``.bib``.

    Raises:
        HarnessError: it cannot be written, or ``datasets`` are not those of the runs.
    """
    check_out(path, methods=methods)
    for group in comparison.groups if methods else ():
        if not group.judged:
            split = str(group.runs[0].summary.dataset.split)
            raise unjudged(group.dataset, split, "--methods", instead="leave --methods out")
    sources = datasets_of([group.runs for group in comparison.groups], datasets)
    analysis = analyse(comparison, sources)
    under_load = [service("show a load in a report")(name) for name in loads]
    source = source_of(
        comparison,
        under_load,
        metrics=tuple(metrics),
        title=title,
        with_text=with_text,
        datasets=tuple(
            name
            for data in datasets
            if not isinstance(data, Dataset)
            if not (name := without_folders(from_here(data))).startswith("…")
        ),
    )
    why_not: list[str] = []
    page = report_page(
        analysis,
        under_load,
        title=title,
        with_text=with_text,
        source=source,
        no_pictures=why_not.append,
    )
    write_page(path, page)
    others = []
    if methods:
        for suffix, text in zip(METHODS, methods_of(comparison), strict=True):
            others.append(path.with_suffix(suffix))
            write_page(others[-1], text, "text on methods")
    return Report(path, len(page.encode()), analysis.recommendations, tuple(others), *why_not)
