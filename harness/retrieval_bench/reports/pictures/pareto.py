"""Quality against time: which systems no other one beats in both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

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
    margin,
    marked,
    scale_for,
    set_scale,
    width_of_ticks,
)
from retrieval_bench.reports.pictures.labels import LINE, Box, Label, placed
from retrieval_bench.reports.pictures.palette import DOT, FILL, INK, PAPER, SOFT, STYLES, Style
from retrieval_bench.reports.render.text import fitted, in_words, interval, number, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 16
_NAMED_WIDE, _NAMED_NARROW = 12, 8
"""Systems that all stand beside their dots by name. Of more, which are named the recommended and,
where there is room, those on the front; the others have a number that a list below explains."""

_KEY = 26
"""Px of a number in that list."""

_RING, _DOT = 9.0, 5.0
"""Radius of the ring around a recommended system and of the room that a dot takes."""

_LEADER_FROM = 10.0
"""Px between a dot and its label from which a line joins them."""

_FREE = 4.0
"""Px on either side of a line that a name should leave free."""

_LOG_FROM = 4.0
"""Largest to smallest time from which the axis of times is logarithmic."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a system stands.

    Attributes:
        name: shown as it is; equal names are told apart by a number.
        quality: its mean; NaN = not known.
        ms: its time; None = not known.
        quality_ci, ms_ci: 95 % intervals, None where there is none.
        path: of a pipeline, where it is after each step but the last: the name of the step,
            quality, time; a time that is None is left out.
    """

    name: str
    quality: float
    ms: float | None
    quality_ci: tuple[float, float] | None = None
    ms_ci: tuple[float, float] | None = None
    path: tuple[tuple[str, float, float | None], ...] = ()


class _Drawn(NamedTuple):
    """A spot that has a place; ``number`` counts from 1 in the order given."""

    number: int
    name: str
    quality: float
    ms: float
    quality_ci: tuple[float, float]
    ms_ci: tuple[float, float]
    front: bool
    recommended: bool
    path: tuple[tuple[str, float, float], ...] = ()

    @property
    def stands_out(self) -> bool:
        return self.front or self.recommended


def front(quality: Sequence[float], ms: Sequence[float]) -> list[bool]:
    """Whether no other system is as good and as fast, and better in one of both."""
    q, t = np.array(quality, dtype=np.float64), np.array(ms, dtype=np.float64)
    as_good = (q[:, None] >= q) & (t[:, None] <= t)
    better = (q[:, None] > q) | (t[:, None] < t)
    unbeaten = ~np.any(as_good & better, axis=0)
    return [bool(best) for best in np.atleast_1d(unbeaten)]


def pareto(
    systems: Sequence[Spot],
    *,
    metric: str,
    level: str = "p95",
    unit: str = "",
    about: str = "",
    recommended: Collection[str] = (),
    width: int = WIDTH,
) -> str:
    """Every system as a dot at its time and quality in the box of its two intervals; a step line
    joins those that no other one beats in both, as SVG.

    Args:
        metric: name of the quality.
        level: what the times are, such as "p95".
        unit: what stands below the axis, where that is no time.
        about: a line under the heading, such as dataset and machine.
        recommended: names of the systems to mark by a ring and the word.
        width: of the sheet, in px.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    names = distinct_names([spot.name for spot in systems])
    drawn = _drawn(names, systems, recommended)
    missing = [n for n, s in zip(names, systems, strict=True) if not _has_place(s)]
    times, quality = _times(drawn), _qualities(drawn)
    wide = is_wide(width)
    labels = width_of_ticks(quality, ticks=6)
    frame = frame_for(width, 330 if wide else 300, labels=labels, right=16 if wide else 20)
    keys = [one for one in drawn if not _is_named(one, len(drawn), wide)]
    columns = _columns(keys, width)
    rows = -(-len(keys) // columns)
    below = frame.bottom + 58
    notes = _notes(drawn, missing, level)
    title = f"{metric} against {level}"
    height = below + _ROW * rows + (8 if rows else 0)
    with canvas(height, width, title=title, about=about, notes=notes) as sheet:
        axes = sheet.panel(*frame)
        set_scale(axes.xaxis, times, ticks=7 if wide else 4)
        set_scale(axes.yaxis, quality, ticks=6)
        _draw(axes, drawn)
        _name(sheet, drawn, _Place(frame, times, quality))
        told = unit or f"{level} of all calls in ms"
        told += ", logarithmic" if times.log else ""
        better = "less: left" if unit else "faster: left"
        sheet.label(frame, across=f"{told} ({better})", upwards=f"Mean {metric}")
        _list(sheet, keys, columns, below)
        return sheet.svg(title=title, description=_described(drawn, notes, money=bool(unit)))


def _is_named(one: _Drawn, n: int, wide: bool) -> bool:
    """Whether a system stands beside its dot by its name."""
    if n <= (_NAMED_WIDE if wide else _NAMED_NARROW):
        return True
    return one.recommended or (wide and one.front)


def _columns(keys: Sequence[_Drawn], width: int) -> int:
    """Columns of the list of names; on a narrow sheet one, if that saves a name of few from being
    cut."""
    if is_wide(width):
        return 3
    room = width / 2 - margin(width) - _KEY
    return 1 if len(keys) <= _NAMED_WIDE and any(width_of(k.name) > room for k in keys) else 2


def _list(sheet: Canvas, keys: Sequence[_Drawn], columns: int, top: float) -> None:
    """The names that the numbers stand for, column by column."""
    across = (sheet.width - 2 * sheet.margin) / columns
    rows = -(-len(keys) // columns)
    for at, one in enumerate(keys):
        column, row = divmod(at, rows)
        x, y = sheet.margin + across * column, top + _ROW * row
        sheet.write(x + _KEY - 6, y, str(one.number), color=SOFT, anchor="right", bold=one.front)
        name = fitted(one.name, across - _KEY - 4, bold=one.front)
        sheet.write(x + _KEY, y, name, bold=one.front)


def _has_place(spot: Spot) -> bool:
    return spot.ms is not None and bool(np.isfinite([spot.ms, spot.quality]).all()) and spot.ms > 0


def _drawn(
    names: Sequence[str], systems: Sequence[Spot], recommended: Collection[str]
) -> list[_Drawn]:
    known = [
        (at, name, spot, spot.ms)
        for at, (name, spot) in enumerate(zip(names, systems, strict=True), start=1)
        if _has_place(spot) and spot.ms is not None
    ]
    on_front = front([spot.quality for _, _, spot, _ in known], [ms for *_, ms in known])
    return [
        _Drawn(
            at,
            name,
            spot.quality,
            ms,
            spot.quality_ci or (spot.quality, spot.quality),
            spot.ms_ci or (ms, ms),
            best,
            spot.name in recommended,
            tuple((step, q, ms) for step, q, ms in spot.path if ms is not None and ms > 0),
        )
        for (at, name, spot, ms), best in zip(known, on_front, strict=True)
    ]


def _times(drawn: Sequence[_Drawn]) -> Scale:
    values = np.array(
        [v for d in drawn for v in (d.ms, *d.ms_ci, *(ms for *_, ms in d.path)) if v > 0]
    )
    if len(values) and values.max() / values.min() >= _LOG_FROM:
        return Scale(float(values.min()) / 1.25, float(values.max()) * 1.25, True)
    return scale_for([values])


def _qualities(drawn: Sequence[_Drawn]) -> Scale:
    values = np.array(
        [v for d in drawn for v in (d.quality, *d.quality_ci, *(q for _, q, _ in d.path))]
    )
    if not len(values):
        return Scale(0.0, 1.0, False)
    margin = 0.08 * float(np.ptp(values)) or 0.05
    return Scale(float(values.min()) - margin, float(values.max()) + margin, False)


def _style(one: _Drawn, n: int) -> Style:
    """Each its own while they can be told apart; of many, only the front stands out."""
    if n <= len(STYLES):
        return STYLES[(one.number - 1) % len(STYLES)]
    return STYLES[0]._replace(color=INK) if one.stands_out else STYLES[0]._replace(color=DOT)


def _draw(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    """The front at the back, then the boxes, which cover it, and the dots on top."""
    dash = dashed((5, 3))
    axes.plot(*_steps(drawn), color=SOFT, linewidth=1.2, linestyle=dash, clip_on=False, zorder=1.1)
    low = axes.get_xlim()[0]
    for one in drawn:
        style = _style(one, len(drawn))
        tint = FILL if len(drawn) > len(STYLES) else style.color
        ms, y = _outline(one)
        x = np.maximum(ms, low)
        axes.fill(x, y, color=PAPER, alpha=0.7, linewidth=0, clip_on=False, zorder=1.2)
        axes.fill(x, y, color=tint, alpha=0.12, linewidth=0, clip_on=False, zorder=1.3)
        axes.plot(x, y, color=style.color, linewidth=0.7, clip_on=False, zorder=1.4)
        if one.path:
            across = [*(at for *_, at in one.path), one.ms]
            up = [*(at for _, at, _ in one.path), one.quality]
            axes.plot(across, up, color=style.color, linewidth=1.1, clip_on=False, zorder=1.5)
            axes.plot(
                across[:-1], up[:-1], "o", markersize=4.5, markerfacecolor=PAPER,
                markeredgecolor=style.color, markeredgewidth=1.1, clip_on=False, zorder=1.6,
            )  # fmt: skip
    for one in sorted(drawn, key=lambda d: d.stands_out):
        axes.plot([one.ms], [one.quality], **marked(_style(one, len(drawn))))
        if one.recommended:
            axes.plot(
                [one.ms], [one.quality], "o", markersize=2 * _RING - 2, markerfacecolor="none",
                markeredgecolor=INK, markeredgewidth=1.6, clip_on=False,
            )  # fmt: skip


_Line = tuple[Sequence[float], Sequence[float]]
"""Times and qualities of its points."""


def _steps(drawn: Sequence[_Drawn]) -> _Line:
    """The front from the fastest to the best: what quality a given time buys."""
    order = sorted((one.ms, one.quality) for one in drawn if one.front)
    x = np.repeat([ms for ms, _ in order], 2)[1:]
    y = np.repeat([quality for _, quality in order], 2)[:-1]
    return x.tolist(), y.tolist()


def _outline(one: _Drawn) -> _Line:
    """The box of both intervals, once around."""
    (left, right), (bottom, top) = one.ms_ci, one.quality_ci
    return (left, right, right, left, left), (bottom, bottom, top, top, bottom)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where on the sheet a time and a quality are."""

    frame: Frame
    times: Scale
    quality: Scale

    def points(self, ms: Sequence[float], quality: Sequence[float]) -> list[tuple[float, float]]:
        x = self.frame.left + self.frame.width * self.times.place(np.array(ms))
        y = self.frame.bottom - self.frame.height * self.quality.place(np.array(quality))
        return list(zip(x.tolist(), y.tolist(), strict=True))


def _name(sheet: Canvas, drawn: Sequence[_Drawn], place: _Place) -> None:
    """Names beside the dots, the recommended first, then the front: they get the better places."""
    wide, frame = is_wide(sheet.width), place.frame
    labels = []
    for one in sorted(drawn, key=lambda d: (not d.recommended, not d.front)):
        [dot] = place.points([one.ms], [one.quality])
        lines = [str(one.number)]
        if _is_named(one, len(drawn), wide):
            lines = [fitted(one.name, 166 if wide else 130, bold=one.stands_out)]
        lines += ["recommended"] if one.recommended else []
        radius = _RING if one.recommended else _DOT
        labels.append(Label(*dot, tuple(lines), one.stands_out, radius))
    for one in drawn if wide else ():
        for step, quality, ms in one.path:
            [(x, y)] = place.points([ms], [quality])
            labels.append(Label(x, y, (fitted(f"{one.name}: {step}", 150),), False, _DOT))
    paths = [place.points(*_steps(drawn)), *(place.points(*_outline(one)) for one in drawn)]
    strips = [_strip(*ends) for path in paths for ends in pairwise(path)]
    area = Box(frame.left + 2, frame.top, sheet.width - 4, frame.bottom - 2)
    for label, box in zip(labels, placed(labels, area, strips), strict=True):
        _lead(sheet, label, box)
        color = INK if label.bold else SOFT
        x, anchor = (box.right, "right") if box.right <= label.x else (box.left, "left")
        for row, text in enumerate(label.lines):
            y = box.top + 10 + LINE * row
            sheet.write(x, y, text, anchor=anchor, bold=label.bold, color=color)


def _strip(start: tuple[float, float], end: tuple[float, float]) -> Box:
    """A line across or down with some room around it."""
    (left, right), (top, bottom) = (sorted(pair) for pair in zip(start, end, strict=True))
    return Box(left - _FREE, top - _FREE, right + _FREE, bottom + _FREE)


def _lead(sheet: Canvas, label: Label, box: Box) -> None:
    """A line from a dot to its label, where that lies apart."""
    x, y = box.nearest(label.x, label.y)
    away = hypot(x - label.x, y - label.y)
    if away > label.radius + _LEADER_FROM:
        part = np.array([label.radius / away, 1 - 2 / away])
        across, down = label.x + part * (x - label.x), label.y + part * (y - label.y)
        sheet.line(across.tolist(), down.tolist(), color=SOFT, width=0.7)


def _notes(drawn: Sequence[_Drawn], missing: Sequence[str], level: str) -> list[str]:
    if not drawn:
        return [f"No system has both a mean and a {level}."]
    notes = ["Dashed line: no other system is both as good and as fast. Boxes: 95 % intervals."]
    if level == "money":
        notes = [
            "Dashed line: no other system is both as good and as cheap. Boxes: 95 % intervals."
        ]
    if any(one.path for one in drawn):
        notes.append("Small rings and solid lines: a pipeline after each of its steps.")
    if missing:
        shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" * (len(missing) > 4))
        what = level if level == "money" else f"a {level}"
        notes.append(f"Systems without a mean or {what} are not shown: {shown}.")
    return notes


def _described(drawn: Sequence[_Drawn], notes: Sequence[str], *, money: bool) -> str:
    order = sorted(drawn, key=lambda one: (not one.recommended, not one.front, -one.quality))
    best = sum(one.front for one in drawn)
    said = [f"{counted(best, 'system')} on the front."] if drawn else []
    said += [
        f"{one.name}{', recommended' * one.recommended}{', on the front' * one.front}: "
        f"quality {one.quality:.4f} [{one.quality_ci[0]:.4f}, {one.quality_ci[1]:.4f}], "
        f"{number(one.ms)} {'' if money else 'ms '}{interval(one.ms_ci)}."
        for one in order
    ]
    said += [
        f"{one.name} after {step}: quality {quality:.4f}, {number(ms)} ms."
        for one in drawn
        for step, quality, ms in one.path
    ]
    return in_words([*said, *notes])
