"""Quality against time: which systems no other one beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted, distinct_names
from retrieval_bench.reports.pictures.canvas import (
    WIDTH,
    Canvas,
    Scale,
    canvas,
    dashed,
    marked,
    scale_for,
    set_scale,
)
from retrieval_bench.reports.pictures.labels import Box, placed
from retrieval_bench.reports.pictures.palette import DOT, FILL, INK, SOFT, STYLES, Style
from retrieval_bench.reports.pictures.text import cut, in_words, interval, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 64, 58, 640, 330
_ROW = 16
_NAME_CELLS = 26

_NAMED = 12
"""Systems that stand beside their dots by name; of more only those on the front, and the others
by a number that a list below explains."""

_KEYS = 3
"""Columns of that list."""

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
    """

    name: str
    quality: float
    ms: float | None
    quality_ci: tuple[float, float] | None = None
    ms_ci: tuple[float, float] | None = None


class _Drawn(NamedTuple):
    """A spot that has a place; ``number`` counts from 1 in the order given."""

    number: int
    name: str
    quality: float
    ms: float
    quality_ci: tuple[float, float]
    ms_ci: tuple[float, float]
    front: bool


def front(quality: Sequence[float], ms: Sequence[float]) -> list[bool]:
    """Whether no other system is as good and as fast, and better in one of both."""
    q, t = np.array(quality, dtype=np.float64), np.array(ms, dtype=np.float64)
    as_good = (q[:, None] >= q) & (t[:, None] <= t)
    better = (q[:, None] > q) | (t[:, None] < t)
    unbeaten = ~np.any(as_good & better, axis=0)
    return [bool(best) for best in np.atleast_1d(unbeaten)]


def pareto(systems: Sequence[Spot], *, metric: str, level: str = "p95", about: str = "") -> str:
    """Every system as a dot at its time and quality in the box of its two intervals; a step line
    joins those that no other one beats in both, as SVG.

    Args:
        metric: name of the quality.
        level: what the times are, such as "p95".
        about: a line under the heading, such as dataset and machine.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    names = distinct_names([spot.name for spot in systems])
    drawn = _drawn(names, systems)
    missing = [n for n, s in zip(names, systems, strict=True) if not _has_place(s)]
    times = _times(drawn)
    quality = _qualities(drawn)
    keys = [d for d in drawn if not d.front] if len(drawn) > _NAMED else []
    rows = -(-len(keys) // _KEYS)
    notes = _notes(drawn, missing, level)
    below = _TOP + _PLOT_HEIGHT + 58
    height = below + _ROW * rows + 18 * len(notes) + (8 if rows else 0)
    with canvas(height) as sheet:
        sheet.head(f"{metric} against {level}", about)
        axes = sheet.panel(_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT)
        set_scale(axes.xaxis, times)
        set_scale(axes.yaxis, quality, ticks=6)
        _draw(axes, drawn)
        _name(sheet, drawn, times, quality)
        unit = f"{level} of all calls, milliseconds" + (", logarithmic" if times.log else "")
        sheet.write(
            _LEFT + _PLOT_WIDTH / 2, _TOP + _PLOT_HEIGHT + 34, f"{unit} (faster: left)",
            anchor="center",
        )  # fmt: skip
        sheet.write(
            16, _TOP + _PLOT_HEIGHT / 2, f"mean {metric}", anchor="center", upwards=True
        )  # fmt: skip
        for at, one in enumerate(keys):
            column, row = divmod(at, rows)
            x = 16 + (WIDTH - 32) / _KEYS * column
            sheet.write(x + 20, below + _ROW * row, str(one.number), color=SOFT, anchor="right")
            sheet.write(x + 26, below + _ROW * row, cut(one.name, 30))
        for at, note in enumerate(notes):
            y = below + _ROW * rows + (8 if rows else 0) + 18 * at
            sheet.write(16, y, cut(note, 110), color=SOFT)
        return sheet.svg(title=f"{metric} against {level}", description=_described(drawn, notes))


def _has_place(spot: Spot) -> bool:
    return spot.ms is not None and bool(np.isfinite([spot.ms, spot.quality]).all()) and spot.ms > 0


def _drawn(names: Sequence[str], systems: Sequence[Spot]) -> list[_Drawn]:
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
        )
        for (at, name, spot, ms), best in zip(known, on_front, strict=True)
    ]


def _times(drawn: Sequence[_Drawn]) -> Scale:
    values = np.array([value for d in drawn for value in (d.ms, *d.ms_ci) if value > 0])
    if len(values) and values.max() / values.min() >= _LOG_FROM:
        return Scale(float(values.min()) / 1.25, float(values.max()) * 1.25, True)
    return scale_for([values])


def _qualities(drawn: Sequence[_Drawn]) -> Scale:
    values = np.array([value for d in drawn for value in (d.quality, *d.quality_ci)])
    if not len(values):
        return Scale(0.0, 1.0, False)
    margin = 0.08 * float(np.ptp(values)) or 0.05
    return Scale(float(values.min()) - margin, float(values.max()) + margin, False)


def _style(one: _Drawn, n: int) -> Style:
    """Each its own while they can be told apart; of many, only the front stands out."""
    if n <= len(STYLES):
        return STYLES[(one.number - 1) % len(STYLES)]
    return STYLES[0]._replace(color=INK) if one.front else STYLES[0]._replace(color=DOT)


def _draw(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    from matplotlib.patches import Rectangle

    low = axes.get_xlim()[0]
    for one in drawn:
        style = _style(one, len(drawn))
        left, right = (max(end, low) for end in one.ms_ci)
        bottom, top = one.quality_ci
        axes.add_patch(
            Rectangle(
                (left, bottom),
                right - left,
                top - bottom,
                facecolor=FILL if len(drawn) > len(STYLES) else style.color,
                fill=True,
                alpha=0.12,
                linewidth=0,
                clip_on=False,
            )
        )
        axes.plot(
            (left, right, right, left, left), (bottom, bottom, top, top, bottom),
            color=style.color, linewidth=0.7, clip_on=False,
        )  # fmt: skip
    x, y = _steps([one for one in drawn if one.front])
    axes.plot(x, y, color=INK, linewidth=1.4, linestyle=dashed((5, 2.5)), clip_on=False)
    for one in sorted(drawn, key=lambda d: d.front):
        axes.plot([one.ms], [one.quality], **marked(_style(one, len(drawn))))


def _steps(best: Sequence[_Drawn]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The front from the fastest to the best: what quality a given time buys."""
    order = sorted(best, key=lambda one: (one.ms, one.quality))
    x = np.repeat([one.ms for one in order], 2)[1:]
    y = np.repeat([one.quality for one in order], 2)[:-1]
    return x, y


def _name(sheet: Canvas, drawn: Sequence[_Drawn], times: Scale, quality: Scale) -> None:
    """Names beside the dots, those of the front first, for they get the better places."""
    x = _LEFT + _PLOT_WIDTH * times.place(np.array([one.ms for one in drawn]))
    y = _TOP + _PLOT_HEIGHT * (1 - quality.place(np.array([one.quality for one in drawn])))
    order = sorted(range(len(drawn)), key=lambda i: (not drawn[i].front, i))
    all_named = len(drawn) <= _NAMED
    texts = [
        cut(drawn[i].name, _NAME_CELLS) if all_named or drawn[i].front else str(drawn[i].number)
        for i in order
    ]
    spots = [(float(x[i]), float(y[i]), text) for i, text in zip(order, texts, strict=True)]
    corners = sorted((float(x[i]), -float(y[i])) for i in order if drawn[i].front)
    line = [
        box
        for (left, low), (right, high) in pairwise(corners)
        for box in (
            Box(left, -low - 3, right, -low + 3),
            Box(right - 3, -high, right + 3, -low),
        )
    ]
    area = Box(_LEFT + 2, _TOP, WIDTH - 4, _TOP + _PLOT_HEIGHT - 2)
    for i, text, box in zip(order, texts, placed(spots, area, line), strict=True):
        sheet.write(
            box.left, box.bottom - 2, text,
            bold=drawn[i].front, color=INK if drawn[i].front else SOFT,
        )  # fmt: skip


def _notes(drawn: Sequence[_Drawn], missing: Sequence[str], level: str) -> list[str]:
    if not drawn:
        return [f"there is no system with a mean and a {level} to show"]
    notes = ["dashed line, bold: no other system is as good and as fast; box: 95 % intervals"]
    if missing:
        shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" * (len(missing) > 4))
        notes.append(f"not shown, for there is no {level} or no mean: {shown}")
    return notes


def _described(drawn: Sequence[_Drawn], notes: Sequence[str]) -> str:
    order = sorted(drawn, key=lambda one: (not one.front, -one.quality))
    best = sum(one.front for one in drawn)
    said = [f"{counted(best, 'system')} on the front."] if drawn else []
    said += [
        f"{one.name}{', on the front' if one.front else ''}: quality {one.quality:.4f} "
        f"[{one.quality_ci[0]:.4f}, {one.quality_ci[1]:.4f}], {number(one.ms)} ms "
        f"{interval(one.ms_ci)}."
        for one in order
    ]
    return in_words([*said, *(f"{note}." for note in notes)])
