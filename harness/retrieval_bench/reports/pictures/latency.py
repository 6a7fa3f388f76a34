"""How the latency of all calls is distributed, with its percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted, distinct_names
from retrieval_bench.reports.pictures.canvas import (
    WIDTH,
    Canvas,
    Frame,
    Scale,
    canvas,
    dashed,
    frame_for,
    is_wide,
    marked,
    scale_for,
    set_scale,
)
from retrieval_bench.reports.pictures.palette import DOT, FILL, SOFT, STYLES, Style
from retrieval_bench.reports.render.text import fitted, in_words, interval, number, width_of
from retrieval_bench.stats.percentiles import Percentile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 18
_SYSTEM = 40
"""Px of a system on a narrow sheet: its name, and below that its figures or its row."""

_NOTES = 8
_NAME = 150
_CALLS = 296
"""Right end of the column with the number of calls."""

_COLUMNS = 4
"""Percentiles written out beside each name; more are drawn and not written."""

_FIGURE = 48
"""Px of a percentile without its interval."""

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
        query: position of the query, one for each call; None = not known.
        round: one for each call; None = all in one.
        percentiles: what is marked; one without a value is not, and its reason is written.
    """

    name: str
    ms: NDArray[np.float64]
    failed: NDArray[np.bool_] | None = None
    query: NDArray[np.int32] | None = None
    round: NDArray[np.int32] | None = None
    percentiles: Sequence[Percentile] = ()


def ecdf(systems: Sequence[Calls], *, about: str = "", width: int = WIDTH) -> str:
    """Share of calls finished within a given time, percentiles and their intervals, as SVG.

    Up to eight systems are curves in one pair of axes; more, which no reader could tell apart,
    are one row each, from the fastest to the slowest median. Of very many calls
    no more are drawn than can be seen.

    Args:
        about: a line under the heading, such as dataset and machine.
        width: of the sheet, in px.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    shown = [
        _Shown(name, np.sort(calls.ms[np.isfinite(calls.ms)]), calls)
        for name, calls in zip(distinct_names([s.name for s in systems]), systems, strict=True)
    ]
    if len(shown) > len(STYLES):
        return _rows(shown, about, width)
    return _curves(shown, about, width)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A system under the name it is shown by; ``ms`` is sorted and finite."""

    name: str
    ms: NDArray[np.float64]
    calls: Calls

    @property
    def failed(self) -> str:
        failed = 0 if self.calls.failed is None else int(self.calls.failed.sum())
        return f" ({failed:,} failed)" if failed else ""

    @property
    def count(self) -> str:
        return f"{len(self.ms):,}{self.failed}"

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

    def figures(self, levels: Sequence[float]) -> list[Percentile | None]:
        known = {p.level: p for p in self.calls.percentiles}
        return [known.get(level) for level in levels]

    @property
    def reasons(self) -> str:
        """Why percentiles are missing."""
        return "; ".join(p.reason for p in self.calls.percentiles if p.reason)

    def lost(self) -> list[str]:
        """A note on calls without a time."""
        lost = len(self.calls.ms) - len(self.ms)
        return [f"{fitted(self.name, 240)} has {counted(lost, 'call')} without a time."] * bool(
            lost
        )


def _curves(systems: Sequence[_Shown], about: str, width: int) -> str:
    scale = scale_for([s.extent for s in systems])
    notes = _notes(systems, scale)
    levels = sorted({p.level for s in systems for p in s.calls.percentiles})
    wide = is_wide(width)
    frame = frame_for(width, 290 if wide else 260, right=56 if wide else 42)
    top = frame.bottom + 66
    height = top + (_ROW if wide else _SYSTEM) * len(systems) + 10
    title = "Share of calls finished within a given time"
    with canvas(height, width, title=title, about=about, notes=notes) as sheet:
        axes = sheet.panel(*frame)
        set_scale(axes.xaxis, scale, ticks=7 if wide else 5)
        _share_axis(sheet, axes, frame, levels)
        sheet.label(frame, across=_milliseconds(scale), upwards="Share of calls")
        for system, style in zip(systems, STYLES, strict=False):
            _curve(axes, system, style, scale, frame)
        # Marks last: no curve may cover one.
        for system, style in zip(systems, STYLES, strict=False):
            for percentile in system.calls.percentiles:
                _mark(axes, percentile, percentile.level / 100, style)
        (_table if wide else _list)(sheet, systems, levels[:_COLUMNS], top)
        return sheet.svg(title=f"Latency: {title.lower()}", description=_described(systems, notes))


def _milliseconds(scale: Scale) -> str:
    return "Milliseconds per call" + (", logarithmic" if scale.log else "")


def _curve(axes: Axes, system: _Shown, style: Style, scale: Scale, frame: Frame) -> None:
    x, y = _steps(system.ms, scale, frame)
    axes.plot(x, y, color=style.color, linewidth=1.6, linestyle=dashed(style.dash), clip_on=False)


def _steps(
    ordered: NDArray[np.float64], scale: Scale, frame: Frame
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
        ranks = np.linspace(1, n, int(frame.height / 1.5)).round().astype(np.int64)
        columns = scale.value(np.arange(0, 1, 1.5 / frame.width))
        ranks = np.unique(np.concatenate([ranks, np.searchsorted(ordered, columns, side="right")]))
        ranks = ranks[ranks > 0]
        x, y = ordered[ranks - 1], ranks / n
        wide = np.flatnonzero(np.diff(scale.place(x)) > 3 / frame.width) + 1
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


def _share_axis(sheet: Canvas, axes: Axes, frame: Frame, levels: Sequence[float]) -> None:
    """Share of calls upwards, and on the right the names of the percentiles."""
    shares = (0, 25, 50, 75, 100)
    axes.set_ylim(0, 1)
    axes.set_yticks([s / 100 for s in shares], [f"{s} %" for s in shares])
    lowest = frame.bottom
    for level in levels:
        axes.axhline(level / 100, color=DOT, linewidth=0.7, linestyle=dashed((2, 2)), clip_on=False)
        lowest = min(lowest, frame.bottom - frame.height * level / 100 + 4)
        sheet.write(frame.right + 8, lowest, f"p{level:g}", size=10, color=SOFT)
        lowest -= 11


def _table(sheet: Canvas, systems: Sequence[_Shown], levels: Sequence[float], top: float) -> None:
    """The legend: how each system is drawn, its name, calls and percentiles."""
    step = (sheet.width - sheet.margin - _CALLS) / max(len(levels), 1)
    ends = [_CALLS + step * (i + 1) for i in range(len(levels))]
    whole = _have_room(systems, levels, step)
    sheet.write(_CALLS, top - 12, "Calls", color=SOFT, anchor="right")
    for level, x in zip(levels, ends, strict=True):
        sheet.write(x, top - 12, _head(level, step, whole), color=SOFT, anchor="right")
    for i, (system, style) in enumerate(zip(systems, STYLES, strict=False)):
        y = top + _ROW * i + 8
        sheet.sample(34, y - 4, style)
        sheet.write(60, y, fitted(system.name, _NAME))
        sheet.write(_CALLS, y, system.count, anchor="right")
        for found, x in zip(system.figures(levels), ends, strict=True):
            sheet.write(x, y, _figure(found, whole=whole), anchor="right")


def _list(sheet: Canvas, systems: Sequence[_Shown], levels: Sequence[float], top: float) -> None:
    """The same in two lines for each system."""
    left, right = sheet.margin, sheet.width - sheet.margin
    step = (right - left) / max(len(levels), 1)
    whole = _have_room(systems, levels, step)
    for at, level in enumerate(levels, start=1):
        sheet.write(
            left + step * at, top - 8, _head(level, step, whole), color=SOFT, anchor="right"
        )
    for i, (system, style) in enumerate(zip(systems, STYLES, strict=False)):
        y = top + _SYSTEM * i + 12
        count = f"{counted(len(system.ms), 'call')}{system.failed}"
        sheet.sample(left + 16, y - 4, style)
        room = right - left - 40 - 12 - width_of(count)
        sheet.write(left + 40, y, fitted(system.name, room))
        sheet.write(right, y, count, color=SOFT, anchor="right")
        for at, percentile in enumerate(system.figures(levels), start=1):
            figure = _figure(percentile, whole=whole)
            sheet.write(left + step * at, y + 16, figure, anchor="right")


def _have_room(systems: Sequence[_Shown], levels: Sequence[float], step: float) -> bool:
    """Whether all intervals can be written in columns that are ``step`` px wide."""
    written = (_figure(percentile) for system in systems for percentile in system.figures(levels))
    return all(width_of(text) < step - 8 for text in written)


def _head(level: float, step: float, whole: bool) -> str:
    """The longest head that has room over a column of figures."""
    heads = [f"p{level:g} ms [95 % interval]", f"p{level:g} ms [95 %]"] if whole else []
    fitting = (head for head in heads if width_of(head) < step - 8)
    return next(fitting, f"p{level:g} ms")


def _figure(percentile: Percentile | None, *, whole: bool = True) -> str:
    """A percentile, and its interval if the ``whole`` of it is to be written."""
    if percentile is None or percentile.value is None:
        return "–"
    ends = f" {interval(percentile.ci95)}" if whole and percentile.ci95 is not None else ""
    return number(percentile.value) + ends


def _rows(systems: Sequence[_Shown], about: str, width: int) -> str:
    systems = sorted(systems, key=lambda s: s.median)
    scale = scale_for([s.extent for s in systems])
    notes = _notes(systems, scale)
    levels = sorted({p.level for s in systems for p in s.calls.percentiles})[:_COLUMNS]
    wide = is_wide(width)
    step = _ROW if wide else _SYSTEM
    frame = Frame(16, 74, width - 38, step * len(systems))
    if wide:
        frame = frame._replace(left=230, width=290)
    title = f"Latency of {len(systems)} systems"
    legend = "A bar holds 5 to 95 % of the calls, its line all of them."
    with canvas(
        frame.bottom + 58, width, title=f"{title}, by median", about=about, notes=[legend, *notes]
    ) as sheet:
        axes = sheet.panel(*frame, grid="x" if wide else None)
        set_scale(axes.xaxis, scale, ticks=5)
        axes.set_ylim(len(systems), 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(wide)
        for i, system in enumerate(systems):
            _row(axes, system, i + (0.5 if wide else 0.7), levels, scale)
        _row_texts(sheet, systems, levels, frame)
        sheet.write(frame.middle, frame.bottom + 34, _milliseconds(scale), anchor="center")
        return sheet.svg(title=title, description=_described(systems, notes))


def _row_texts(
    sheet: Canvas, systems: Sequence[_Shown], levels: Sequence[float], frame: Frame
) -> None:
    """Names and calls on the left, percentiles on the right, column by column; on a narrow sheet
    all of it above the row."""
    wide = is_wide(sheet.width)
    step = frame.height / len(systems)
    heights = [frame.top + step * i + (13 if wide else 15) for i in range(len(systems))]
    end = sheet.width - sheet.margin
    columns = (end - frame.right) / max(len(levels), 1) if wide else _FIGURE
    edge, anchor = (frame.left - 8, "right") if wide else (float(sheet.margin), "left")
    room = (edge if wide else end - columns * len(levels) - 8) - sheet.margin
    sheet.write(edge, 66, "System, calls", color=SOFT, anchor=anchor)
    for system, y in zip(systems, heights, strict=True):
        name = fitted(system.name, room - width_of(f", {system.count}"))
        sheet.write(edge, y, f"{name}, {system.count}", anchor=anchor)
    for i, (level, style) in enumerate(zip(levels, STYLES, strict=False)):
        x = end - columns * (len(levels) - 1 - i)
        sheet.sample(x - 30, 62, style, line=False)
        sheet.write(x, 66, f"p{level:g}", color=SOFT, anchor="right")
        for system, y in zip(systems, heights, strict=True):
            [found] = system.figures([level])
            sheet.write(x, y, _figure(found, whole=False), anchor="right")


def _row(axes: Axes, system: _Shown, y: float, levels: Sequence[float], scale: Scale) -> None:
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
    missing: dict[str, list[str]] = {}
    for system in systems:
        if system.reasons:
            missing.setdefault(system.reasons, []).append(fitted(system.name, 120))
    notes = [
        f"{reason}." if len(names) == len(systems) else f"{', '.join(names)}: {reason}."
        for reason, names in missing.items()
    ]
    notes += [note for s in systems for note in s.lost()]
    zeros = sum(int((s.ms < scale.low).sum()) for s in systems)
    if scale.log and zeros:
        notes.insert(0, f"The left end of the axis also holds {counted(zeros, 'call')} of 0 ms.")
    if not any(len(s.ms) for s in systems):
        notes.insert(0, "There are no calls to show.")
    more = len(notes) - _NOTES
    if more <= 0:
        return notes
    return [
        *notes[:_NOTES],
        f"{counted(more, 'more note')} {'is' if more == 1 else 'are'} left out.",
    ]


def _described(systems: Sequence[_Shown], notes: Sequence[str]) -> str:
    return in_words([*notes, *(s.described() for s in systems)])


def _level(percentile: Percentile) -> str:
    return f"p{percentile.level:g}"
