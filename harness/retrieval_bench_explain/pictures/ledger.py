"""Gains and costs of the parts of a retriever: for each its gain with an interval, beside it its
share of a call."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.figures import short_ms, signed
from retrieval_bench.reports.render.text import clean
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.runs.records import PICTURES, add_files
from retrieval_bench.stats.intervals import levels_text
from retrieval_bench_explain.parts import Ledger, Row, Worth
from retrieval_bench_explain.tables.ledger import worth_label
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.draw import svg
from retrieval_bench_pictures.lettering import fitted
from retrieval_bench_pictures.rows import COLUMN, STEP, rows_of
from retrieval_bench_pictures.vega import Spec, mark

_NAMES, _WORTH = 130, 70
"""Px for the name of a part, and for what is said of it."""

_LOOKS = {Worth.HELPS: 0, Worth.HARMFUL: 1, Worth.DEAD: 1, Worth.UNDECIDED: 7, Worth.UNKNOWN: 7}
"""Places of their styles: a part that should go is told from one that helps."""


def parts(
    rows: Sequence[Row], *, name: str, metric: str, about: str = "", width: int = vega.WIDTH
) -> Spec:
    """Gains as dots with their intervals beside the line of no gain, times as bars.

    Args:
        rows: of the ledger.
        name: of the retriever.
        metric: of the gains.
    """
    wide, room = vega.is_wide(width), width - 2 * vega.MARGIN
    across = int(0.62 * room) if wide else room
    times = _times(rows, room - across - 20, names=0) if wide else _times(rows, room, names=_NAMES)
    levels = [row.level for row in rows if row.level]
    line = f", its line the {levels_text(levels)} interval, each by itself" if levels else ""
    note = ""
    if any(row.gain is not None for row in rows):
        note = f"A dot is the mean with the part minus the mean without it{line}. "
    if any(row.cost.p50_ms is not None for row in rows):
        note += "Times are computed from the stages of the measured calls."
    return vega.picture(
        {"hconcat" if wide else "vconcat": [_gains(rows, metric, across), times], "spacing": 20},
        title=f"What each part of {fitted(name, 240)} buys",
        about=about,
        notes=[note] if note else [],
        said=[clean(_described(row, metric)) for row in rows],
        width=width,
    )


def part_bars(ledger: Ledger, *, about: str = "", width: int = vega.WIDTH) -> Spec:
    """Draw the gain and the cost of the parts of a retriever."""
    name, metric = ledger.run.name, metric_label(ledger.metric)
    return parts(ledger.rows, name=name, metric=metric, about=about, width=width)


def keep_parts(ledger: Ledger) -> None:
    """Put the picture of its parts into the folder of a saved run.

    Raises:
        MissingDependencyError: vl-convert-python is not installed, or does not run here.
        RecordError: it cannot be written; the run itself is complete.
    """
    if ledger.run.folder is not None:
        about = f"{ledger.run.summary.dataset.name}, k = {ledger.run.summary.k}"
        add_files(ledger.run.folder, {f"{PICTURES}/parts.svg": svg(part_bars(ledger, about=about))})


def _described(row: Row, metric: str) -> str:
    gain = "gain not known" if row.gain is None else f"{signed(row.gain, 3)} {metric}"
    time = "" if row.cost.p50_ms is None else f", {short_ms(row.cost.p50_ms)} ms"
    return f"{row.name}: {gain}, {worth_label(row.worth)}{time}."


def _gains(rows: Sequence[Row], metric: str, across: int) -> Spec:
    data: list[Spec] = [
        {"row": at, "system": row.worth.value, "gain": row.gain, "low": low, "high": high}
        for at, row in enumerate(rows)
        if row.gain is not None
        for low, high in [row.ci or (row.gain, row.gain)]
    ]
    ends = [point[end] for point in data for end in ("low", "high")]
    x = vega.axis("gain", vega.around([0.0, *ends], 0.08), tickCount=4)
    styles = [vega.STYLES[at] for at in _LOOKS.values()]
    color, _, shape = vega.told_apart([worth.value for worth in _LOOKS], styles)
    down = {"y": {"value": 0}, "y2": {"value": STEP * max(len(rows), 1)}}
    return {
        "title": {"text": f"Gain in {fitted(metric, 180)}", "fontSize": 11, "offset": 6},
        **rows_of(
            [row.name for row in rows],
            [
                mark("rule", [{"gain": 0}], {"x": x, **down}),
                mark("rule", data, {**vega.span("x", x, "low", "high"), "color": color}),
                mark("point", data, {"x": x, "color": color, "shape": shape}),
            ],
            names=_NAMES,
            width=across - _NAMES - _WORTH,
            figures={"": [worth_label(row.worth) for row in rows]},
            align="left",
        ),
    }


def _times(rows: Sequence[Row], across: int, *, names: int) -> Spec:
    times = [row.cost.p50_ms for row in rows]
    most = max((ms or 0.0 for ms in times), default=0.0)
    x = vega.axis("ms", vega.linear(0.0, 1.05 * most or 1.0), tickCount=3)
    data = [{"row": at, "ms": ms} for at, ms in enumerate(times) if ms is not None]
    return {
        "title": {"text": "ms of the median call", "fontSize": 11, "offset": 6},
        **rows_of(
            [row.name for row in rows],
            [mark("bar", data, {"x": x}, color=vega.FILL, height=11)],
            names=names,
            width=across - names - COLUMN,
            figures={"": ["not known" if ms is None else short_ms(ms) for ms in times]},
        ),
    }
