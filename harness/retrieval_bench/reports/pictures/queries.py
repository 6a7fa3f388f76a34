"""Which queries are slow: every call of every query, queries by their median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.pictures.canvas import (
    WIDTH,
    Canvas,
    Frame,
    Scale,
    canvas,
    frame_for,
    is_wide,
    scale_for,
    set_scale,
    width_of_ticks,
)
from retrieval_bench.reports.pictures.palette import DOT, INK, SOFT
from retrieval_bench.reports.render.text import clean, cut, fitted, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS, _LABEL = 6, 18
"""Queries that are named, and px of a line for each."""

_PX_PER_DOT = 18.6
"""Square px of the axes for each dot, at most: 7,000 dots on a wide sheet."""

_WIDE_SLOT = 6.0
"""Pixels of a query from which its calls stand side by side in the order made."""

_NUMBERED_SLOT = 12.0
"""Pixels of a query from which its place on the axis tells it, and no line has to lead there."""


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Calls per query, the queries from the fastest to the slowest median.

    Attributes:
        ms, rank, failed: one for each call, in the order made; ``rank`` counts queries from 0.
        medians, queries, calls: one for each rank; ``queries`` are the numbers given.
    """

    ms: NDArray[np.float64]
    rank: NDArray[np.int64]
    failed: NDArray[np.bool_]
    medians: NDArray[np.float64]
    queries: NDArray[np.int64]
    calls: NDArray[np.int64]


def per_query(
    ms: NDArray[np.float64],
    query: NDArray[np.int32],
    labels: Sequence[str],
    *,
    failed: NDArray[np.bool_] | None = None,
    name: str = "",
    about: str = "",
    width: int = WIDTH,
) -> str:
    """Every call as a dot over its query, the medians as a line, the slowest queries by name, SVG.

    Of calls that would hide each other one is drawn, and how many are is written below; failed
    ones are crosses.

    Args:
        ms, query: one for each call; ``query`` is a position in ``labels``. Times that are not
            finite are left out.
        labels: how the queries are called, any text; equal ones are different queries.
        failed: one for each call; None = none failed.
        name: of the system.
        about: a line under the heading.
        width: of the sheet, in px.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    data = _by_median(ms, query, failed)
    scale = scale_for([data.ms])
    n = len(data.medians)
    wide = is_wide(width)
    ticks = width_of_ticks(scale, ticks=6)
    frame = frame_for(width, 310 if wide else 260, labels=ticks, right=236 if wide else 20)
    x = data.rank + 1 + _offsets(data, frame.width / max(n, 1))
    drawn = _visible(x, data, scale, frame)
    notes = _notes(data, len(drawn), scale, len(ms))
    height = frame.bottom + 56 + (0 if wide or not n else 34 + _LABEL * len(_slowest(n)))
    of = f": {clean(name)}" if name else ""
    title = f"Every call, per query{of}"
    with canvas(height, width, title=title, about=about, notes=notes) as sheet:
        axes = sheet.panel(*frame, grid="y")
        axes.set_xlim(0.5, max(n, 1) + 0.5)
        set_scale(axes.yaxis, scale, ticks=6)
        _query_ticks(axes, n, 8 if wide else 5)
        _draw(axes, x[drawn], data, drawn, scale, steps=int(frame.width / 1.5))
        sheet.label(
            frame,
            across=f"{counted(n, 'query')}, from the fastest to the slowest median",
            upwards="Milliseconds per call" + (", logarithmic" if scale.log else ""),
        )
        if n:
            _name_slowest(sheet, data, labels, scale, frame)
        return sheet.svg(
            title=f"Latency of every call, per query{of}",
            description=_described(data, labels, notes),
        )


def _name_slowest(
    sheet: Canvas, data: _Sorted, labels: Sequence[str], scale: Scale, frame: Frame
) -> None:
    """The slowest queries beside or below the axes, each with its median and where it stands."""
    n = len(data.medians)
    slowest = _slowest(n)
    wide = is_wide(sheet.width)
    numbered = not wide or frame.width / n >= _NUMBERED_SLOT
    left = frame.right + 38 if wide else sheet.margin + 38
    if numbered:
        first = frame.top + 14 if wide else frame.bottom + 80
        heights = [first + float(_LABEL * i) for i in range(len(slowest))]
        sheet.write(left, heights[0] - 20, "No.", color=SOFT, anchor="right")
    else:
        heights = _label_heights([float(data.medians[i]) for i in slowest], scale, frame)
    sheet.write(left + 44, heights[0] - 20, "Median", color=SOFT, anchor="right")
    sheet.write(left + 52, heights[0] - 20, "Slowest queries", color=SOFT)
    for rank, y in zip(slowest, heights, strict=True):
        if numbered:
            sheet.write(left, y, f"{rank + 1:,}", anchor="right")
        else:
            at = frame.left + frame.width * (rank + 0.5) / n
            there = _height(frame, scale, data.medians[rank])
            sheet.line((at, left - 24, left - 4), (there, y - 4, y - 4), color=SOFT, width=0.6)
        sheet.write(left + 44, y, number(data.medians[rank]), anchor="right")
        room = sheet.width - 8 - left - 52
        sheet.write(left + 52, y, fitted(labels[data.queries[rank]], room))


def _slowest(n: int) -> range:
    """Ranks of the slowest queries of ``n``, the slowest first."""
    return range(n - 1, max(n - 1 - _LABELS, -1), -1)


def _by_median(
    ms: NDArray[np.float64], query: NDArray[np.int32], failed: NDArray[np.bool_] | None
) -> _Sorted:
    keep = np.isfinite(ms)
    ms, query = ms[keep], query[keep]
    seen, position, calls = np.unique(query, return_inverse=True, return_counts=True)
    medians = np.array([])
    if len(ms):
        grouped = ms[np.lexsort((ms, position))]
        ends = np.cumsum(calls)
        starts = ends - calls
        medians = (grouped[starts + (calls - 1) // 2] + grouped[starts + calls // 2]) / 2
    order = np.argsort(medians, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _Sorted(
        ms,
        rank[position],
        np.zeros(len(ms), dtype=bool) if failed is None else failed[keep],
        medians[order],
        seen[order].astype(np.int64),
        calls[order],
    )


def _offsets(data: _Sorted, slot: float) -> NDArray[np.float64]:
    """Where in the slot of its query a call stands, -0.35 to 0.35: in the order made."""
    if slot < _WIDE_SLOT:
        return np.zeros(len(data.ms))
    order = np.argsort(data.rank, kind="stable")
    starts = np.cumsum(data.calls) - data.calls
    visit = np.empty(len(data.ms))
    visit[order] = np.arange(len(data.ms)) - np.repeat(starts, data.calls)
    return np.asarray(0.7 * ((visit + 0.5) / data.calls[data.rank] - 0.5))


def _visible(
    x: NDArray[np.float64], data: _Sorted, scale: Scale, frame: Frame
) -> NDArray[np.int64]:
    """Calls to draw: one for each cell of a grid that some call lies in, failed ones apart.

    The cells are as small as the number of dots allows, so that a dot that stands alone is never
    left out.
    """
    across = frame.width * x / max(len(data.medians), 1)
    up = frame.height * scale.place(data.ms)
    most = frame.width * frame.height / _PX_PER_DOT
    size = 1.0
    while True:
        columns, rows = (across / size).astype(np.int64), (up / size).astype(np.int64)
        cells = (columns * int(2 * frame.height) + rows) * 2 + data.failed
        first = np.unique(cells, return_index=True)[1]
        if len(first) <= most:
            return np.asarray(np.sort(first))
        size *= max(1.02, (len(first) / most) ** 0.4)


def _draw(
    axes: Axes,
    x: NDArray[np.float64],
    data: _Sorted,
    drawn: NDArray[np.int64],
    scale: Scale,
    *,
    steps: int,
) -> None:
    y, failed = np.maximum(data.ms[drawn], scale.low), data.failed[drawn]
    # All dots are one path of lines without length, drawn with a round pen: a tenth of the bytes.
    ends = np.repeat(np.column_stack([x, y])[~failed], 2, axis=0)
    if len(ends):
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        codes = np.tile(np.array([Path.MOVETO, Path.LINETO], dtype=np.uint8), len(ends) // 2)
        axes.add_patch(
            PathPatch(
                Path(ends, codes),
                facecolor="none",
                edgecolor=DOT,
                linewidth=2.6 if len(data.ms) > 300 else 4.0,
                capstyle="round",
                clip_on=False,
            )
        )
    axes.plot(
        x[failed], y[failed], "x", color=INK, markersize=5, markeredgewidth=1.2, clip_on=False
    )
    n = len(data.medians)
    if n:
        at = np.unique(np.linspace(0, n - 1, steps).round().astype(np.int64))
        edges = np.append(at + 0.5, n + 0.5)
        heights = np.maximum(data.medians[at], scale.low)
        axes.stairs(heights, edges, baseline=None, color=INK, linewidth=1.5, clip_on=False)


def _query_ticks(axes: Axes, n: int, most: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(
        MaxNLocator(most, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10])
    )
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"{v:,.0f}" if 1 <= v <= max(n, 1) else "")
    )


def _label_heights(medians: Sequence[float], scale: Scale, frame: Frame) -> list[float]:
    """Base lines of the labels, the slowest first: at its median, 18 px apart, in the panel."""
    heights: list[float] = []
    lowest = frame.bottom - _LABEL * (len(medians) - 1.0)
    for i, median in enumerate(medians):
        wanted = _height(frame, scale, median) + 4
        wanted = min(max(wanted, frame.top + 26), lowest + _LABEL * i)
        heights.append(max(wanted, heights[-1] + _LABEL) if heights else wanted)
    return heights


def _height(frame: Frame, scale: Scale, ms: float) -> float:
    """Where on the sheet a time is."""
    return frame.bottom - frame.height * float(scale.place(np.array([ms]))[0])


def _notes(data: _Sorted, drawn: int, scale: Scale, given: int) -> list[str]:
    all_ = counted(len(data.ms), "call")
    dots = f"Dots are {drawn:,} of {all_}; the others lie under or beside these."
    if drawn == len(data.ms):
        dots = f"Dots are all {all_}."
    notes = [f"{dots} The line is the median of each query."]
    if not drawn:
        notes = ["There are no calls to show."]
    if data.failed.any():
        notes.append(f"Crosses are failed calls: {int(data.failed.sum()):,}.")
    zeros = int((data.ms < scale.low).sum())
    if scale.log and zeros:
        notes.append(f"The lower end of the axis also holds {counted(zeros, 'call')} of 0 ms.")
    if lost := given - len(data.ms):
        notes.append(f"The picture leaves out {counted(lost, 'call')} without a time.")
    return notes


def _described(data: _Sorted, labels: Sequence[str], notes: Sequence[str]) -> str:
    n = len(data.medians)
    if not n:
        return " ".join(notes)
    slowest = "; ".join(
        f"{cut(labels[data.queries[i]], 60)} ({number(data.medians[i])} ms)" for i in _slowest(n)
    )
    return (
        f"Medians of {counted(n, 'query')} lie between {number(data.medians[0])} and "
        f"{number(data.medians[-1])} ms. Slowest: {slowest}. " + " ".join(notes)
    )
