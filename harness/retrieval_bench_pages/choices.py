"""One table for each metric and each slice, of which a reader chooses what to look at.

All of them are made here, from what the comparison says: the script only shows one and hides the
others. Without it the first one is there, and the tables below have the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from retrieval_bench.metrics import Metric
from retrieval_bench.reports.render.cells import SHORT_DIFFERENCE, SHORT_QUALITY, Content
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.reports.tables.brief import beside_leader
from retrieval_bench_explain.slices import Slice, Slicing
from retrieval_bench_explain.tables.slice import LABEL_SHOWN
from retrieval_bench_pages.analysis import GroupAnalysis
from retrieval_bench_pages.html import whole
from retrieval_bench_pages.markup import Markup, el

ALL = "all queries"

MOST_SYSTEMS = 12
"""Rows of a table; the full ones below have all."""

MOST_TABLES = 150
"""Slices beyond so many tables are left to the tables below."""


def choices_html(analysis: GroupAnalysis, baseline: str | None) -> Markup:
    """The tables, each under the metric and the slice that it is about; only the first is seen.

    Args:
        baseline: the system that alone the others were compared with, if there was one.
    """
    group = analysis.group
    leader = baseline or analysis.recommendation.system or group.ranked(group.metrics[0])[0][0]
    choices: list[tuple[str, str, Table]] = []
    for metric in group.metrics:
        columns, rows = beside_leader(group, metric, leader, MOST_SYSTEMS)
        # The verdict stands last, where a small screen holds it in view.
        columns, rows = (
            [*columns[:3], *columns[4:], "verdict"],
            [[*row[:3], *row[4:], row[3]] for row in rows],
        )
        n = group.runs[0].evaluation.means[0].n
        title = f"{metric_label(metric)} over all {n:,} queries"
        table = Table(title, columns, rows, words=(0, len(columns) - 1))
        choices.append((metric_label(metric), ALL, table))
    # A slice is there for every metric or for none: each choice of the two finds a table.
    whole_slices = max(MOST_TABLES - len(choices), 0) // len(group.metrics)
    choices += islice(_slices(analysis), whole_slices * len(group.metrics))
    return el(
        "div",
        *(
            el("div", whole(table), data_metric=metric, data_slice=label, hidden=at > 0)
            for at, (metric, label, table) in enumerate(choices)
        ),
        class_="choices",
    )


def _slices(analysis: GroupAnalysis) -> Iterator[tuple[str, str, Table]]:
    """Slice by slice the table of each metric."""
    for slicing in analysis.slicings:
        for slice_ in slicing.slices:
            label = (
                slice_.label
                if len(slice_.label) <= LABEL_SHOWN
                else f"{slice_.label[:LABEL_SHOWN]}…"
            )
            shown = f"{slicing.what}: {label} ({slice_.n:,})"
            for at, metric in enumerate(slicing.metrics):
                yield metric_label(metric), shown, _table(slicing, slice_, at, metric)


def _table(slicing: Slicing, slice_: Slice, at: int, metric: Metric) -> Table:
    order = sorted(slicing.systems, key=lambda name: -slice_.means[name][at].mean)
    rows: list[list[Content]] = []
    for name in order[:MOST_SYSTEMS]:
        mean = slice_.means[name][at]
        gap = slice_.differences[name][at] if name in slice_.differences else None
        rows.append(
            [
                name,
                SHORT_QUALITY(mean.mean, mean.ci95),
                "-" if gap is None else SHORT_DIFFERENCE(gap.mean, gap.ci),
            ]
        )
    return Table(
        f"{metric_label(metric)} over {slice_.n:,} queries, {slicing.what}: {slice_.label}",
        ["system", metric_label(metric), f"against {slicing.baseline}"],
        rows,
        notes=["Slices are for looking: intervals, but no verdicts."],
    )
