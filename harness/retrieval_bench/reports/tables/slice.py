"""What is shown of slices: systems beside each other, group by group, and their differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from retrieval_bench.comparison.slices import FEW, FEWEST, Slice, Slicing
from retrieval_bench.core.figures import interval_of, quality_text, short_quality, signed
from retrieval_bench.reports.render.table import Marked, Table

COLUMNS_PER_TABLE = 4
"""As many as fit beside each other in 80 columns."""

DIFFERENCES_PER_TABLE = 3

HOW = (
    "slices are for looking: 95 % bootstrap intervals of each slice by itself, no test, nothing "
    "corrected for their number"
)
"""Stands once, below the last slices."""

LABEL_SHOWN = 50
"""Characters of the name of a slice."""

_Column = tuple[str, Callable[[Slice], tuple[str, str]]]
"""Its head; of a slice, the figure and the interval below it."""


def slice_tables(slicings: Sequence[Slicing]) -> list[Table]:
    """For each slicing the means of the first metric and the differences from the baseline."""
    tables: list[Table] = []
    telling = [slicing for slicing in slicings if slicing.slices]
    for slicing in slicings:
        made = _tables(slicing)
        notes = [*_notes(slicing), *([HOW] if slicing in telling[-1:] else [])]
        made[-1] = replace(made[-1], notes=notes)
        tables += made
    return tables


def _tables(slicing: Slicing) -> list[Table]:
    metric = slicing.metrics[0]
    title = f"{metric} by {slicing.what} on {slicing.dataset}"
    means = [_mean_column(name) for name in slicing.systems]
    compared = [name for name in slicing.systems if name in slicing.whole.differences]
    if not slicing.slices:
        return [Table(title, (), ())]
    if len(means) + len(compared) <= COLUMNS_PER_TABLE:
        heads = [f"{name} - {slicing.baseline}" for name in compared]
        columns = [*means, *map(_difference_column, compared, heads)]
        return [_table(title, slicing, columns)]
    columns = list(map(_difference_column, compared, compared))
    return [
        *(_table(title, slicing, some) for some in _parts(means, COLUMNS_PER_TABLE)),
        *(
            _table(f"Difference from {slicing.baseline} in {title}", slicing, some)
            for some in _parts(columns, DIFFERENCES_PER_TABLE)
        ),
    ]


def _parts(columns: Sequence[_Column], size: int) -> list[Sequence[_Column]]:
    return [columns[start : start + size] for start in range(0, len(columns), size)]


def _table(title: str, slicing: Slicing, columns: Sequence[_Column]) -> Table:
    rows: list[Sequence[str]] = []
    sections = []
    for one in (slicing.whole, *slicing.slices):
        figures = [figures_of(one) for _, figures_of in columns]
        n = f"{one.n:,}"
        rows.append(
            [
                _shortened(one.label),
                Marked(n, "*") if one.n < FEW else n,
                *(value for value, _ in figures),
            ]
        )
        if any(below for _, below in figures):
            rows.append(["", "", *(below for _, below in figures)])
        sections.append(len(rows))
    return Table(title, ["", "n", *(head for head, _ in columns)], rows, sections[:1])


def _shortened(label: str) -> str:
    """What data say may be a whole answer; the JSON document has all of it."""
    return label if len(label) <= LABEL_SHOWN else label[: LABEL_SHOWN - 1] + "…"


def _mean_column(name: str) -> _Column:
    def figures(one: Slice) -> tuple[str, str]:
        mean = one.means[name][0]
        return quality_text(mean.mean) if one.n else "-", interval_of(mean.ci95, short_quality)

    return name, figures


def _difference_column(name: str, head: str) -> _Column:
    def figures(one: Slice) -> tuple[str, str]:
        mean = one.differences[name][0]
        interval = interval_of(mean.ci95, lambda value: f"{value:+.3f}")
        return signed(mean.mean) if one.n else "-", interval

    return head, figures


def _notes(slicing: Slicing) -> list[str]:
    every = (slicing.whole, *slicing.slices)
    notes = list(slicing.warnings)
    if slicing.slices and any(one.n < FEW for one in every):
        none = f", no interval below {FEWEST}" if any(one.n < FEWEST for one in every) else ""
        notes.append(f"*: fewer than {FEW} queries, n is small{none}")
    return notes
