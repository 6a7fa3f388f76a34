"""The command ``report``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, REGRESSION, show
from retrieval_bench.cli.measure.compare import (
    add_deciding,
    add_systems,
    code_of,
    decided,
    moved,
    name_systems,
    runs_asked_for,
)

if TYPE_CHECKING:
    from retrieval_bench.runs.run import Run

DEFAULT = Path("results") / "report.html"


def add_report(commands: Any, name: str, **texts: str) -> None:
    """One HTML file on runs, or on retrievers that are measured first."""
    report = commands.add_parser(name, **texts)
    report.add_argument(
        "--out",
        type=Path,
        default=DEFAULT,
        metavar="FILE",
        help=f"the file, overwritten when it is there (default: {DEFAULT.as_posix()})",
    )
    report.add_argument(
        "--title", default="", help="heading of the page (default: systems and datasets)"
    )
    report.add_argument(
        "--no-text",
        action="store_false",
        dest="with_text",
        help="leave out the texts of queries and documents",
    )
    report.add_argument(
        "--loads",
        nargs="+",
        action="extend",
        default=[],
        metavar="LOAD",
        help="saved loads, a section each: a folder, @load, NAME@load",
    )
    report.add_argument(
        "--methods",
        action="store_true",
        help="also write how it was made as a paragraph, a table (.tex) and sources (.bib)",
    )
    report.add_argument(
        "--verify",
        type=Path,
        metavar="FILE",
        help="work out every figure of a report again from the runs that it names",
    )
    add_deciding(report)
    add_systems(report)
    only_when_measuring = dict(report.get_default("only_when_measuring"))
    del only_when_measuring["metrics"]  # of saved runs, it chooses among those they have
    report.set_defaults(run=_report, command="report", only_when_measuring=only_when_measuring)


def _report(options: argparse.Namespace) -> int:
    if options.verify is not None:
        return _verify(options)
    from retrieval_bench.reports.page.file import check_place
    from retrieval_bench.reports.page.report import write_report
    from retrieval_bench.runs.run import only_metrics

    check_place(options.out)
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
    report = write_report(
        comparison,
        options.out,
        moved(options),
        loads=options.loads,
        metrics=options.metrics or () if options.runs else (),
        title=options.title,
        with_text=options.with_text,
        methods=options.methods,
    )
    show(options, report, report.tables)
    return code_of(options, runs, comparison)


def _verify(options: argparse.Namespace) -> int:
    from retrieval_bench.reports.page.verify import verify
    from retrieval_bench.runs.find import find_runs

    runs = [folder for given in options.systems for folder in find_runs(given)]
    found = verify(options.verify, runs, options.dataset or [])
    show(options, found, found.tables)
    return OK if found.holds else NOT_MEASURED if found.problems else REGRESSION
