"""Tables of slices: systems beside each other, group by group, and their differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from retrieval_bench.reports.frames import Row, mean_row
from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY, Content, Form
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.render.words import metric_label, on_dataset, unit_note
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench_explain.slices import FEW, FEWEST, Slice, SliceDifference, Slicing

LABEL_SHOWN = 50
"""Characters of the name of a slice."""

_HOW = (
    "Slices are for looking: 95 % intervals of each slice by itself, no test, nothing "
    "corrected for their number. All queries: as compared above."
)


def slice_tables(slicings: Sequence[Slicing]) -> list[Table]:
    """For each slicing the means of the first metric and the differences from the baseline."""
    return [table for slicing in slicings for table in tables_of(slicing)]


def tables_of(slicing: Slicing) -> list[Table]:
    """The means, then the differences where there is a baseline; the last one has the notes."""
    metric = metric_label(slicing.metrics[0])
    by = f"by {slicing.what} {on_dataset(slicing.dataset)}"
    # The one that the others are compared with stands first, where a small screen shows it.
    order = sorted(slicing.systems, key=lambda name: name != slicing.baseline)
    tables = [_table(f"{metric} {by}", slicing, order, QUALITY, lambda slice_: slice_.means)]
    others = [name for name in slicing.systems if name in slicing.whole.differences]
    if others and slicing.slices:
        title = f"Difference in {metric} from {slicing.baseline}, {by}"
        tables.append(_table(title, slicing, others, DIFFERENCE, lambda slice_: slice_.differences))
    return [*tables[:-1], tables[-1].with_notes(_notes(slicing))]


def _table(
    title: str,
    slicing: Slicing,
    systems: Sequence[str],
    form: Form,
    means_of: Callable[[Slice], Mapping[str, tuple[Mean | SliceDifference, ...]]],
) -> Table:
    rows: list[list[Content]] = []
    for slice_ in (slicing.whole, *slicing.slices) if slicing.slices else ():
        means = [means_of(slice_)[name][0] for name in systems]
        rows.append(
            [
                slice_.label
                if len(slice_.label) <= LABEL_SHOWN
                else f"{slice_.label[: LABEL_SHOWN - 1]}…",
                COUNT(slice_.n, marks="*" if slice_.units < FEW else ""),
                *(
                    form(
                        mean.mean if slice_.n else None,
                        mean.ci if isinstance(mean, SliceDifference) else mean.ci95,
                    )
                    for mean in means
                ),
            ]
        )
    return Table(title, ["", "n", *systems], rows, [1])


def _notes(slicing: Slicing) -> list[str]:
    every = (slicing.whole, *slicing.slices)
    notes: list[str] = list(slicing.warnings)
    if not slicing.slices:
        return notes
    fewest, whole = min(slice_.units for slice_ in every), slicing.whole
    clusters = whole.units < whole.n
    if fewest < FEW:
        none = f", no interval below {FEWEST}" if fewest < FEWEST else ""
        unit = "clusters" if clusters else "queries"
        notes.append(f"*: fewer than {FEW} {unit}, n is small{none}.")
    return [*notes, _HOW, *unit_note(whole.units if clusters else None)]


def slice_rows(slicing: Slicing) -> Iterator[Row]:
    """A row of CSV for each slice, system and metric."""
    for slice_ in slicing.slices:
        for name, values in slice_.means.items():
            for metric, mean in zip(slicing.metrics, values, strict=True):
                row = mean_row((slicing.dataset, name, str(metric)), mean.mean, mean.ci95, slice_.n)
                yield row | {"queries": f"{slicing.by}: {slice_.label}"}
