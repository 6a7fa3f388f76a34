"""The command ``report``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval_bench.cli.console import NOT_MEASURED, OK, REGRESSION, show
from retrieval_bench.cli.measure.compare import (
    DECIDING,
    SYSTEMS,
    code_of,
    decided,
    moved,
    name_systems,
    runs_asked_for,
)
from retrieval_bench.cli.options import command, defaults, refuse, values

if TYPE_CHECKING:
    from retrieval_bench.runs.run import Run

DEFAULT = Path("results") / "report.html"


_REPORT = f"""
--out FILE [{DEFAULT}]  the file, overwritten when it is there (default: {DEFAULT.as_posix()})
--title TITLE []  heading of the page (default: systems and datasets)
--no-text [with_text]  leave out the texts of queries and documents
+
--methods  also write how it was made as a paragraph, a table (.tex) and sources (.bib)
--verify FILE  work out the figures of a report again from the runs that it names
{DECIDING}
{SYSTEMS}
"""


@command(_REPORT)
def run_report(options: argparse.Namespace) -> int:
    """Write one HTML file on runs, or on retrievers that are measured first."""
    if options.verify is not None:
        return _verify(options)
    from retrieval_bench.runs.run import only_metrics
    from retrieval_bench_pages.report import check_out, write_report
    from retrieval_bench_pictures.draw import ahead
    from retrieval_bench_pictures.of_runs import pictures_of

    check_out(options.out, methods=options.methods)
    name_systems(options)

    def print_runs(runs: Sequence[Run]) -> None:
        from retrieval_bench.reports.tables.understand.comparison import comparison_tables

        comparison = decided(options, runs)
        show(options, comparison, lambda: comparison_tables(comparison))

    runs = runs_asked_for(options, print_runs)
    if runs is None:
        return OK
    if options.runs and options.metrics:
        runs = only_metrics(runs, options.metrics)
    comparison = decided(options, runs)
    if options.pictures and not options.runs:
        ahead(spec for specs in pictures_of(runs).values() for spec in specs.values())
    report = write_report(
        comparison,
        options.out,
        moved(options),
        **values(options, "title with_text methods"),
        loads=getattr(options, "loads", ()),
        metrics=options.metrics or () if options.runs else (),
    )
    show(options, report, report.tables)
    return code_of(options, runs, comparison.why_nothing)


def _verify(options: argparse.Namespace) -> int:
    from retrieval_bench.runs.find import find_runs
    from retrieval_bench_pages.verify import verify

    others = {*defaults(_REPORT.replace("\n+\n", "\n")), "loads"} - {"systems", "dataset", "verify"}
    refuse(
        options,
        " ".join(sorted(others)),
        "with --verify",
        accepted="--dataset, and where the runs are now; all else stands in the page",
        fix="leave it out",
    )
    runs = [folder for given in options.systems for folder in find_runs(given)]
    verified = verify(options.verify, runs, options.dataset or [])
    show(options, verified, verified.tables)
    return OK if verified.holds else REGRESSION if verified.differences else NOT_MEASURED
