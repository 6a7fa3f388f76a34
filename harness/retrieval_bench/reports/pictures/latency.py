"""How the latency of all calls is distributed, with its percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted, distinct_names
from retrieval_bench.reports.pictures.canvas import (
    SMALL,
    WIDTH,
    Canvas,
    Scale,
    canvas,
    dashed,
    marked,
    scale_for,
    set_scale,
)
from retrieval_bench.reports.pictures.palette import DOT, FILL, SOFT, STYLES, Style
from retrieval_bench.reports.pictures.text import cut, in_words, interval, number
from retrieval_bench.stats.percentiles import Percentile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 64, 58, 600, 290
_ROW = 18
_ROWS_LEFT, _ROWS_TOP, _ROWS_WIDTH = 230, 74, 290
_NOTES = 8
_NAME_CELLS = 24
_CALLS = 296
"""Right end of the column with the number of calls."""

_COLUMNS = 4
"""Percentiles written out beside each name; more are drawn and not written."""

_EXACT_STEPS = 150
"""Calls up to which every step of a distribution function is drawn."""


@dataclass(frozen=True, slots=True)
class Calls:
    """All measured calls of one system.

    Attributes:
        name: shown as it is; equal names are told apart by a number.
        ms: milliseconds, one for each call, failed ones included. Values that are not finite are
            left out and counted.
        failed: one for each call; None = none failed.
        query: position of the query, one for each call; None = not told.
        round: one for each call; None = all in one.
        percentiles: what is marked; one without a value is not, and its reason is written.
    """

    name: str
    ms: NDArray[np.float64]
    failed: NDArray[np.bool_] | None = None
    query: NDArray[np.int32] | None = None
    round: NDArray[np.int32] | None = None
    percentiles: Sequence[Percentile] = ()


def ecdf(systems: Sequence[Calls], *, about: str = "") -> str:
    """Share of calls finished within a given time, percentiles and their intervals, as SVG.

    Up to eight systems are curves in one pair of axes; more, which no reader could tell apart,
    are one row each, from the fastest to the slowest median. Of very many calls
    no more are drawn than can be seen.

    Args:
        about: a line under the heading, such as dataset and machine.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    shown = [
        _Shown(name, np.sort(calls.ms[np.isfinite(calls.ms)]), calls)
        for name, calls in zip(distinct_names([s.name for s in systems]), systems, strict=True)
    ]
    if len(shown) > len(STYLES):
        return _rows(shown, about)
    return _curves(shown, about)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A system under the name it is shown by; ``ms`` is sorted and finite."""

    name: str
    ms: NDArray[np.float64]
    calls: Calls

    @property
    def count(self) -> str:
        failed = 0 if self.calls.failed is None else int(self.calls.failed.sum())
        return f"{len(self.ms):,}" + (f" ({failed:,} failed)" if failed else "")

    @property
    def median(self) -> float:
        return float(np.median(self.ms)) if len(self.ms) else np.inf

    @property
    def extent(self) -> NDArray[np.float64]:
        """All that has to find room on the axis."""
        given = (x for p in self.calls.percentiles for x in (p.value, *(p.ci95 or ())))
        return np.append(self.ms, [x for x in given if x is not None])

    def described(self) -> str:
        figures = [
            f"{_level(p)} {number(p.value)} ms" + (f" {interval(p.ci95)}" if p.ci95 else "")
            for p in self.calls.percentiles
            if p.value is not None
        ]
        return f"{self.name}: " + ", ".join([f"{self.count} calls", *figures]) + "."

    def notes(self) -> list[str]:
        lost = len(self.calls.ms) - len(self.ms)
        reasons = [f"{self.name}: {p.reason}" for p in self.calls.percentiles if p.reason]
        return reasons + ([f"{self.name}: {counted(lost, 'call')} without a time"] if lost else [])


def _curves(systems: Sequence[_Shown], about: str) -> str:
    scale = scale_for([s.extent for s in systems])
    notes = _notes(systems, scale)
    table_top = _TOP + _PLOT_HEIGHT + 66
    height = table_top + _ROW * (len(systems) + len(notes)) + 12
    levels = sorted({p.level for s in systems for p in s.calls.percentiles})
    with canvas(height) as sheet:
        sheet.head("Share of calls finished within a given time", about)
        axes = sheet.panel(_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT)
        set_scale(axes.xaxis, scale)
        _share_axis(sheet, axes, levels)
        _below(sheet, "milliseconds per call" + (", logarithmic" if scale.log else ""))
        for system, style in zip(systems, STYLES, strict=False):
            _curve(axes, system, style, scale)
        # Marks last: no curve may cover one.
        for system, style in zip(systems, STYLES, strict=False):
            for percentile in system.calls.percentiles:
                _mark(axes, percentile, percentile.level / 100, style)
        _table(sheet, systems, levels[:_COLUMNS], table_top)
        _write_notes(sheet, notes, table_top + _ROW * len(systems) + 8)
        return sheet.svg(
            title="Latency: share of calls finished within a given time",
            description=_described(systems, notes),
        )


def _curve(axes: Axes, system: _Shown, style: Style, scale: Scale) -> None:
    x, y = _steps(system.ms, scale)
    axes.plot(x, y, color=style.color, linewidth=1.6, linestyle=dashed(style.dash), clip_on=False)


def _steps(
    ordered: NDArray[np.float64], scale: Scale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The empirical distribution function of sorted values as a line.

    Of many values, those one and a half px to the right or up are taken: the curve looks the same,
    and steps that can be seen as such stay steps.
    """
    n = len(ordered)
    if n <= _EXACT_STEPS:
        x = np.repeat(ordered, 2)
        y = np.repeat(np.arange(n + 1) / max(n, 1), 2)[1:-1]
    else:
        ranks = np.linspace(1, n, 2 * _PLOT_HEIGHT // 3).round().astype(np.int64)
        columns = scale.value(np.arange(0, 1, 1.5 / _PLOT_WIDTH))
        ranks = np.unique(np.concatenate([ranks, np.searchsorted(ordered, columns, side="right")]))
        ranks = ranks[ranks > 0]
        x, y = ordered[ranks - 1], ranks / n
        wide = np.flatnonzero(np.diff(scale.place(x)) > 3 / _PLOT_WIDTH) + 1
        x, y = np.insert(x, wide, x[wide]), np.insert(y, wide, y[wide - 1])
        x, y = np.concatenate([x[:1], x]), np.concatenate([[0.0], y])
    return np.maximum(x, scale.low), y


def _mark(axes: Axes, percentile: Percentile, y: float, style: Style) -> None:
    """A percentile at height ``y``, and its interval as a bar with ends."""
    if percentile.value is None:
        return
    low = max(percentile.value, axes.get_xlim()[0])
    if percentile.ci95 is not None:
        axes.plot(
            np.maximum(percentile.ci95, axes.get_xlim()[0]),
            (y, y),
            color=style.color,
            linewidth=1.2,
            marker="|",
            markersize=7,
            markeredgewidth=1.2,
            clip_on=False,
        )
    axes.plot([low], [y], **marked(style))


def _share_axis(sheet: Canvas, axes: Axes, levels: Sequence[float]) -> None:
    """Share of calls upwards, and on the right the names of the percentiles."""
    shares = (0, 25, 50, 75, 100)
    axes.set_ylim(0, 1)
    axes.set_yticks([s / 100 for s in shares], [f"{s} %" for s in shares])
    sheet.write(18, _TOP + _PLOT_HEIGHT / 2, "share of calls", anchor="center", upwards=True)
    lowest = float(_TOP + _PLOT_HEIGHT)
    for level in levels:
        axes.axhline(level / 100, color=DOT, linewidth=0.7, linestyle=dashed((2, 2)), clip_on=False)
        lowest = min(lowest, _TOP + _PLOT_HEIGHT * (1 - level / 100) + 4)
        sheet.write(_LEFT + _PLOT_WIDTH + 8, lowest, f"p{level:g}", size=10, color=SOFT)
        lowest -= 11


def _below(sheet: Canvas, label: str) -> None:
    sheet.write(_LEFT + _PLOT_WIDTH / 2, _TOP + _PLOT_HEIGHT + 34, label, anchor="center")


def _table(sheet: Canvas, systems: Sequence[_Shown], levels: Sequence[float], top: float) -> None:
    """The legend: how each system is drawn, its name, calls and percentiles."""
    ends = [_CALLS + (WIDTH - 16 - _CALLS) * (i + 1) / len(levels) for i in range(len(levels))]
    sheet.write(_CALLS, top - 12, "calls", color=SOFT, anchor="right")
    for level, x in zip(levels, ends, strict=True):
        sheet.write(x, top - 12, f"p{level:g} ms [95 % interval]", color=SOFT, anchor="right")
    for i, (system, style) in enumerate(zip(systems, STYLES, strict=False)):
        y = top + _ROW * i + 8
        sheet.sample(34, y - 4, style)
        sheet.write(60, y, cut(system.name, _NAME_CELLS))
        sheet.write(_CALLS, y, system.count, anchor="right")
        found = {p.level: p for p in system.calls.percentiles}
        for level, x in zip(levels, ends, strict=True):
            sheet.write(x, y, _figure(found.get(level)), anchor="right")


def _figure(percentile: Percentile | None) -> str:
    if percentile is None or percentile.value is None:
        return "–"
    ends = f" {interval(percentile.ci95)}" if percentile.ci95 is not None else ""
    return number(percentile.value) + ends


def _rows(systems: Sequence[_Shown], about: str) -> str:
    systems = sorted(systems, key=lambda s: s.median)
    scale = scale_for([s.extent for s in systems])
    notes = _notes(systems, scale)
    down = _ROW * len(systems)
    bottom = _ROWS_TOP + down
    levels = sorted({p.level for s in systems for p in s.calls.percentiles})[:_COLUMNS]
    with canvas(bottom + 58 + _ROW * len(notes)) as sheet:
        sheet.head(f"Latency of {len(systems)} systems, by median", about)
        axes = sheet.panel(_ROWS_LEFT, _ROWS_TOP, _ROWS_WIDTH, down, grid="x")
        set_scale(axes.xaxis, scale, ticks=5)
        axes.set_ylim(len(systems) - 0.5, -0.5)
        axes.set_yticks([])
        for i, system in enumerate(systems):
            _row(axes, system, i, levels, scale)
        _row_texts(sheet, systems, levels)
        label = "milliseconds per call" + (", logarithmic" if scale.log else "")
        sheet.write(_ROWS_LEFT + _ROWS_WIDTH / 2, bottom + 34, label, anchor="center")
        legend = "bar: 5 to 95 %, line: all"
        sheet.write(WIDTH - 16, bottom + 34, legend, color=SOFT, anchor="right")
        _write_notes(sheet, notes, bottom + 54)
        return sheet.svg(
            title=f"Latency of {len(systems)} systems", description=_described(systems, notes)
        )


def _row_texts(sheet: Canvas, systems: Sequence[_Shown], levels: Sequence[float]) -> None:
    """Names and calls on the left, percentiles on the right, column by column."""
    heights = [_ROWS_TOP + _ROW * (i + 0.5) + 4 for i in range(len(systems))]
    sheet.write(_ROWS_LEFT - 8, _TOP + 8, "system, calls", color=SOFT, anchor="right")
    for system, y in zip(systems, heights, strict=True):
        name = cut(system.name, 16)
        sheet.write(_ROWS_LEFT - 8, y, f"{name}, {system.count}", anchor="right")
    step = (WIDTH - 16 - _ROWS_LEFT - _ROWS_WIDTH) / max(len(levels), 1)
    for i, (level, style) in enumerate(zip(levels, STYLES, strict=False)):
        x = _ROWS_LEFT + _ROWS_WIDTH + step * (i + 1)
        sheet.sample(x - 30, _TOP + 4, style, line=False)
        sheet.write(x, _TOP + 8, f"p{level:g}", color=SOFT, anchor="right")
        for system, y in zip(systems, heights, strict=True):
            values = [p.value for p in system.calls.percentiles if p.level == level]
            known = bool(values) and values[0] is not None
            sheet.write(x, y, number(values[0] or 0.0) if known else "–", anchor="right")


def _row(axes: Axes, system: _Shown, y: int, levels: Sequence[float], scale: Scale) -> None:
    if not len(system.ms):
        return
    inside = np.maximum(np.percentile(system.ms, [0, 5, 95, 100]), scale.low)
    axes.plot(inside[[0, 3]], (y, y), color=DOT, linewidth=0.8, clip_on=False)
    axes.plot(inside[1:3], (y, y), color=FILL, linewidth=7, solid_capstyle="butt", clip_on=False)
    for percentile in system.calls.percentiles:
        if percentile.level in levels:
            _mark(axes, percentile, y, STYLES[levels.index(percentile.level)])


def _notes(systems: Sequence[_Shown], scale: Scale) -> list[str]:
    """What the picture does not show; of many systems the first few notes."""
    notes = [note for s in systems for note in s.notes()]
    zeros = sum(int((s.ms < scale.low).sum()) for s in systems)
    if scale.log and zeros:
        notes.insert(0, f"{counted(zeros, 'call')} of 0 ms: at the left end of the axis")
    if not any(len(s.ms) for s in systems):
        notes.insert(0, "there are no calls to show")
    more = len(notes) - _NOTES
    return notes if more <= 0 else [*notes[:_NOTES], f"and {counted(more, 'more note')}"]


def _described(systems: Sequence[_Shown], notes: Sequence[str]) -> str:
    return in_words([*(f"{note}." for note in notes), *(s.described() for s in systems)])


def _write_notes(sheet: Canvas, notes: Sequence[str], top: float) -> None:
    for i, note in enumerate(notes):
        sheet.write(16, top + _ROW * i, cut(note, 110), color=SOFT, size=SMALL)


def _level(percentile: Percentile) -> str:
    return f"p{percentile.level:g}"
