"""Where two systems differ: the difference on every query, from the largest loss to the largest
gain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.pictures.canvas import (
    WIDTH,
    Canvas,
    Frame,
    Scale,
    canvas,
    frame_for,
    is_wide,
    set_scale,
    width_of_ticks,
)
from retrieval_bench.reports.pictures.palette import INK, SOFT, STYLES
from retrieval_bench.reports.render.text import clean, cut, fitted, tick, width_of
from retrieval_bench.stats.randomization import signs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = 3
"""Queries named at either end."""

_ROW = 16
_GAIN, _LOSS = STYLES[0].color, STYLES[1].color


def gains(
    differences: NDArray[np.float64],
    labels: Sequence[str],
    *,
    a: str,
    b: str,
    metric: str,
    about: str = "",
    width: int = WIDTH,
) -> str:
    """The differences b - a as bars in rising order, the queries at both ends by name, as SVG.

    Args:
        differences: one for each query, finite.
        labels: how the queries are called, any text.
        a, b: names of the systems.
        metric: what is subtracted.
        width: of the sheet, in px.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    order = np.argsort(differences, kind="stable")
    values = differences[order]
    named = [labels[at] for at in order]
    notes = _notes(values, a, b)
    wide = is_wide(width)
    largest = 1.08 * float(np.abs(values).max(initial=0.0)) or 1.08
    scale = Scale(-largest, largest, log=False)
    frame = frame_for(width, 240, labels=width_of_ticks(scale, ticks=9))
    height = frame.bottom + 50 + (0 if wide else _height_of_lists(values))
    title = f"Differences in {metric}, per query"
    with canvas(height, width, title=title, about=about, notes=notes) as sheet:
        axes = sheet.panel(*frame, grid="y")
        _draw(axes, values, scale, int(frame.width))
        sheet.label(
            frame,
            across=f"{counted(len(values), 'query')}, from the largest loss to the largest gain",
            upwards=f"{fitted(b, 150)} − {fitted(a, 150)}",
            below=22,
        )
        (_name_ends if wide else _list_ends)(sheet, frame, values, named)
        return sheet.svg(
            title=f"Differences in {metric} between {clean(b)} and {clean(a)}, per query",
            description=" ".join([*notes, *_ends_in_words(values, named)]),
        )


def _notes(values: NDArray[np.float64], a: str, b: str) -> list[str]:
    sign = signs(values)
    won, lost = int((sign > 0).sum()), int((sign < 0).sum())
    counts = (
        f"{fitted(b, 190)} is above {fitted(a, 190)} on {counted(won, 'query')}, below it on "
        f"{lost:,} and equal to it on {len(values) - won - lost:,}."
    )
    if not len(values):
        return [counts]
    return [counts, f"Dashed line: the mean difference is {signed(values.mean())}."]


def _draw(axes: Axes, values: NDArray[np.float64], scale: Scale, most: int) -> None:
    from matplotlib.ticker import FuncFormatter

    set_scale(axes.yaxis, scale, ticks=9)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value).replace("-", "−")))
    axes.set_xlim(0, max(len(values), 1))
    axes.set_xticks([])
    edges, heights = _thinned(values, most)
    for sign, color in ((1, _GAIN), (-1, _LOSS)):
        axes.stairs(
            np.maximum(sign * heights, 0) * sign, edges, fill=True, color=color,
            linewidth=0, clip_on=False,
        )  # fmt: skip
    axes.axhline(0, color=INK, linewidth=0.8, clip_on=False)
    if len(values):
        mean = float(values.mean())
        axes.axhline(mean, color=SOFT, linewidth=1.0, linestyle=(0, (4, 3)), clip_on=False)


def _thinned(
    values: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges and heights of the bars; of more queries than px, those one px apart."""
    n = len(values)
    if n <= most:
        return np.arange(n + 1, dtype=np.float64), values
    at = np.unique(np.linspace(0, n - 1, most).round().astype(np.int64))
    return np.append(at, n).astype(np.float64), values[at]


def _ends(values: NDArray[np.float64]) -> list[tuple[str, list[int]]]:
    """Places of the largest losses and of the largest gains, the largest first."""
    n = len(values)
    losses = [at for at in range(min(_LABELS, n)) if values[at] < 0]
    gained = [at for at in range(n - 1, max(n - 1 - _LABELS, -1), -1) if values[at] > 0]
    return [("losses", losses), ("gains", gained)]


def _name_ends(
    sheet: Canvas, frame: Frame, values: NDArray[np.float64], labels: Sequence[str]
) -> None:
    """Largest losses written above the axis on the left, where no bar of a loss stands; largest
    gains below it on the right."""
    (_, losses), (_, gained) = _ends(values)
    middle = frame.top + frame.height / 2
    for row, at in enumerate(losses):
        text = f"{fitted(labels[at], 190)} ({signed(values[at], 3)})"
        y = middle - 14 - 15 * (len(losses) - 1 - row)
        sheet.write(frame.left + 8, y, text, color=SOFT)
    for row, at in enumerate(gained):
        text = f"{fitted(labels[at], 190)} ({signed(values[at], 3)})"
        sheet.write(frame.right - 8, middle + 20 + 15 * row, text, color=SOFT, anchor="right")


def _list_ends(
    sheet: Canvas, frame: Frame, values: NDArray[np.float64], labels: Sequence[str]
) -> None:
    """The same queries below the plot, which is too narrow to hold them."""
    y = frame.bottom + 52
    ends = (*values[:1], *values[-1:])
    widest = max((width_of(signed(value, 3)) for value in ends), default=0.0)
    left = sheet.margin + widest + 10
    for what, places in _ends(values):
        if places:
            sheet.write(sheet.margin, y, f"Largest {what}", bold=True)
        for row, at in enumerate(places, start=1):
            sheet.write(left - 10, y + _ROW * row, signed(values[at], 3), anchor="right")
            text = fitted(labels[at], sheet.width - sheet.margin - left)
            sheet.write(left, y + _ROW * row, text, color=SOFT)
        y += _height_of_list(places)


def _height_of_lists(values: NDArray[np.float64]) -> int:
    return 4 + sum(_height_of_list(places) for _, places in _ends(values))


def _height_of_list(places: Sequence[int]) -> int:
    return _ROW * (len(places) + 1) + 8 if places else 0


def _ends_in_words(values: NDArray[np.float64], labels: Sequence[str]) -> list[str]:
    return [
        f"Largest {what}: "
        + ", ".join(f"{cut(labels[at], 60)} {signed(values[at], 3)}" for at in places)
        + "."
        for what, places in _ends(values)
        if places
    ]
