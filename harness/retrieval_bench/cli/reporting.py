"""The command ``report``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.comparing import add_deciding, add_systems, decided, judged, runs_asked_for
from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.measuring import exit_code

if TYPE_CHECKING:
    from retrieval_bench.comparison.recommendation import Recommendation
    from retrieval_bench.runs.run import Run

DEFAULT = Path("results") / "report.html"


def add_report(commands: Any) -> None:
    """One HTML file on runs, or on retrievers that are measured first."""
    report = commands.add_parser(
        "report", help="one HTML file: the answer, tables, pictures, single queries"
    )
    report.add_argument(
        "--out",
        type=Path,
        default=DEFAULT,
        metavar="FILE",
        help=f"the file, overwritten when it is there (default: {DEFAULT.as_posix()})",
    )
    report.add_argument("--title", default="", help="heading of the page")
    report.add_argument(
        "--no-text",
        action="store_false",
        dest="with_text",
        help="leave out the texts of queries and documents",
    )
    add_deciding(report)
    add_systems(report)
    only_when_measuring = dict(report.get_default("only_when_measuring"))
    del only_when_measuring["metrics"]  # of saved runs, it chooses among those they have
    report.set_defaults(run=_report, command="report", only_when_measuring=only_when_measuring)


def _report(options: argparse.Namespace) -> int:
    from retrieval_bench.reports.page.file import check_place, write_page

    check_place(options.out)

    def show_unsaved(runs: Sequence[Run]) -> None:
        from retrieval_bench.reports.tables.comparison import comparison_tables

        comparison = decided(options, runs)
        show(options, comparison.as_dict(), lambda: comparison_tables(comparison))

    runs = runs_asked_for(options, show_unsaved)
    if runs is None:
        return OK
    if options.runs and options.metrics:
        runs = _by_metrics(runs, options.metrics)
    from retrieval_bench.comparison.analysis import analyse
    from retrieval_bench.reports.page import report_page
    from retrieval_bench.runs.dataset import datasets_of

    comparison = decided(options, runs)
    named = options.dataset or [] if options.runs else []
    sources = datasets_of([group.runs for group in comparison.groups], named)
    analysis = analyse(comparison, sources)
    page = report_page(analysis, title=options.title, with_text=options.with_text)
    write_page(options.out, page)
    _show_answers(options, len(page.encode()), analysis.recommendations)
    code = OK if options.runs else exit_code(runs)
    return judged(comparison) if code == OK else code


def _show_answers(
    options: argparse.Namespace, n_bytes: int, answers: Sequence[Recommendation]
) -> None:
    from retrieval_bench.reports.render.table import Table

    document = {
        "report": str(options.out),
        "bytes": n_bytes,
        "recommendations": [answer.as_dict() for answer in answers],
    }
    title = f"{options.out}, {n_bytes / 1e6:.2f} MB"
    sentences = [answer.sentence for answer in answers]
    show(options, document, lambda: [Table(title, (), (), notes=sentences)])


def _by_metrics(runs: Sequence[Run], names: Sequence[str]) -> list[Run]:
    """``runs`` with the metrics called ``names`` alone, in that order.

    Raises:
        ConfigError: a run does not have one of them.
    """
    from dataclasses import replace

    from retrieval_bench.core.errors import ConfigError, near_names
    from retrieval_bench.metrics import parse_metrics

    wanted = tuple(dict.fromkeys(parse_metrics(names)))
    chosen = []
    for run in runs:
        found = run.evaluation
        missing = [metric for metric in wanted if metric not in found.metrics]
        if missing:
            raise ConfigError(
                f"metric {str(missing[0])!r} of a saved run that does not have it",
                where=str(run.folder or run.name),
                accepted=near_names(str(missing[0]), map(str, found.metrics)),
                fix="name some of these, or measure again with --retrievers",
            )
        places = [found.metrics.index(metric) for metric in wanted]
        evaluation = replace(
            found,
            metrics=wanted,
            per_query=found.per_query[:, places],
            means=tuple(found.means[at] for at in places),
        )
        chosen.append(replace(run, evaluation=evaluation))
    return chosen
