"""Which queries are slow: every call of every query, queries by their median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.pictures.canvas import Canvas, Scale, canvas, scale_for, set_scale
from retrieval_bench.reports.pictures.palette import DOT, INK, SOFT
from retrieval_bench.reports.pictures.text import clean, cut, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 64, 58, 420, 310
_LABELS = 6
_LABEL_CELLS = 24
_MOST_DOTS = 7_000
_WIDE_SLOT = 6.0
"""Pixels of a query from which its calls stand side by side in the order made."""

_NUMBERED_SLOT = 12.0
"""Pixels of a query from which its place on the axis tells it, and no line has to lead there."""


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Calls by query, the queries from the fastest to the slowest median.

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

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    data = _by_median(ms, query, failed)
    scale = scale_for([data.ms])
    n = len(data.medians)
    x = data.rank + 1 + _offsets(data, _PLOT_WIDTH / max(n, 1))
    drawn = _visible(x, data, scale)
    notes = _notes(data, len(drawn), scale, len(ms))
    height = _TOP + _PLOT_HEIGHT + 50 + 18 * len(notes)
    with canvas(height) as sheet:
        sheet.head("Every call, by query" + (f": {cut(name, 50)}" if name else ""), about)
        axes = sheet.panel(_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT, grid="y")
        axes.set_xlim(0.5, max(n, 1) + 0.5)
        set_scale(axes.yaxis, scale, ticks=6)
        _query_ticks(axes, n)
        _draw(axes, x[drawn], data, drawn, scale)
        sheet.write(
            16,
            _TOP + _PLOT_HEIGHT / 2,
            "milliseconds per call" + (", logarithmic" if scale.log else ""),
            anchor="center",
            upwards=True,
        )
        sheet.write(
            _LEFT + _PLOT_WIDTH / 2,
            _TOP + _PLOT_HEIGHT + 34,
            f"{counted(n, 'query')}, from the fastest to the slowest median",
            anchor="center",
        )
        _name_slowest(sheet, data, labels, scale)
        for i, note in enumerate(notes):
            sheet.write(16, _TOP + _PLOT_HEIGHT + 56 + 18 * i, note, color=SOFT)
        return sheet.svg(
            title="Latency of every call, by query" + (f": {clean(name)}" if name else ""),
            description=_described(data, labels, notes),
        )


def _name_slowest(sheet: Canvas, data: _Sorted, labels: Sequence[str], scale: Scale) -> None:
    """The slowest queries beside the panel, each with its median and where it stands."""
    n = len(data.medians)
    if not n:
        return
    slowest = _slowest(n)
    numbered = _PLOT_WIDTH / n >= _NUMBERED_SLOT
    right = _LEFT + _PLOT_WIDTH
    heights = _label_heights([float(data.medians[i]) for i in slowest], scale)
    if numbered:
        heights = [_TOP + 14 + 18.0 * i for i in range(len(slowest))]
        sheet.write(right + 38, heights[0] - 20, "no.", color=SOFT, anchor="right")
    sheet.write(right + 82, heights[0] - 20, "median", color=SOFT, anchor="right")
    sheet.write(right + 90, heights[0] - 20, "slowest queries", color=SOFT)
    for rank, y in zip(slowest, heights, strict=True):
        if numbered:
            sheet.write(right + 38, y, str(rank + 1), anchor="right")
        else:
            at = _LEFT + _PLOT_WIDTH * (rank + 0.5) / n
            there = _TOP + _PLOT_HEIGHT * (1 - _place(scale, data.medians[rank]))
            sheet.line((at, right + 14, right + 34), (there, y - 4, y - 4), color=SOFT, width=0.6)
        sheet.write(right + 82, y, number(data.medians[rank]), anchor="right")
        sheet.write(right + 90, y, cut(labels[data.queries[rank]], _LABEL_CELLS))


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


def _visible(x: NDArray[np.float64], data: _Sorted, scale: Scale) -> NDArray[np.int64]:
    """Calls to draw: one for each cell of a grid that some call lies in, failed ones apart.

    The cells are as small as the number of dots allows, so that a dot that stands alone is never
    left out.
    """
    across = _PLOT_WIDTH * x / max(len(data.medians), 1)
    up = _PLOT_HEIGHT * scale.place(data.ms)
    size = 1.0
    while True:
        columns, rows = (across / size).astype(np.int64), (up / size).astype(np.int64)
        cells = (columns * (2 * _PLOT_HEIGHT) + rows) * 2 + data.failed
        first = np.unique(cells, return_index=True)[1]
        if len(first) <= _MOST_DOTS:
            return np.asarray(np.sort(first))
        size *= max(1.02, (len(first) / _MOST_DOTS) ** 0.4)


def _draw(
    axes: Axes, x: NDArray[np.float64], data: _Sorted, drawn: NDArray[np.int64], scale: Scale
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
        at = np.unique(np.linspace(0, n - 1, 2 * _PLOT_WIDTH // 3).round().astype(np.int64))
        edges = np.append(at + 0.5, n + 0.5)
        steps = np.maximum(data.medians[at], scale.low)
        axes.stairs(steps, edges, baseline=None, color=INK, linewidth=1.5, clip_on=False)


def _query_ticks(axes: Axes, n: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"{v:,.0f}" if 1 <= v <= max(n, 1) else "")
    )


def _label_heights(medians: Sequence[float], scale: Scale) -> list[float]:
    """Base lines of the labels, the slowest first: at its median, 18 px apart, in the panel."""
    heights: list[float] = []
    lowest = _TOP + _PLOT_HEIGHT - 18.0 * (len(medians) - 1)
    for i, median in enumerate(medians):
        wanted = _TOP + _PLOT_HEIGHT * (1 - _place(scale, median)) + 4
        wanted = min(max(wanted, _TOP + 26), lowest + 18 * i)
        heights.append(max(wanted, heights[-1] + 18) if heights else wanted)
    return heights


def _place(scale: Scale, value: float) -> float:
    return float(scale.place(np.array([value]))[0])


def _notes(data: _Sorted, drawn: int, scale: Scale, given: int) -> list[str]:
    dots = f"dot: a call; {drawn:,} of {len(data.ms):,} drawn, the others lie under or beside these"
    if drawn == len(data.ms):
        dots = f"dot: a call, n = {len(data.ms):,}"
    notes = [f"{dots}; line: median of the query" if drawn else "there are no calls to show"]
    if data.failed.any():
        notes.append(f"cross: a failed call, n = {int(data.failed.sum()):,}")
    zeros = int((data.ms < scale.low).sum())
    if scale.log and zeros:
        notes.append(f"{counted(zeros, 'call')} of 0 ms: at the lower end of the axis")
    if lost := given - len(data.ms):
        notes.append(f"{counted(lost, 'call')} without a time left out")
    return notes


def _described(data: _Sorted, labels: Sequence[str], notes: Sequence[str]) -> str:
    n = len(data.medians)
    if not n:
        return ". ".join(notes) + "."
    slowest = "; ".join(
        f"{cut(labels[data.queries[i]], 60)} ({number(data.medians[i])} ms)" for i in _slowest(n)
    )
    return (
        f"Medians of {counted(n, 'query')} lie between {number(data.medians[0])} and "
        f"{number(data.medians[-1])} ms. Slowest: {slowest}. " + ". ".join(notes) + "."
    )
