"""How good the systems are: for each metric a dot with its interval, the best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrieval_bench.core.errors import distinct_names
from retrieval_bench.reports.pictures.canvas import (
    WIDTH,
    Canvas,
    Frame,
    Scale,
    canvas,
    is_wide,
    marked,
    set_scale,
)
from retrieval_bench.reports.pictures.palette import DOT, INK, STYLES, Style
from retrieval_bench.reports.render.text import fitted, in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Estimate = tuple[float, tuple[float, float] | None]
"""A mean and its 95 % interval; NaN = not known."""

_TOP, _ROW = 46, 17
_NAME, _NAME_ALONE, _FIGURE = 118, 140, 48
"""Px for the name on the left of a panel, also of one that has the sheet for itself, and for the
figure on the right."""

_HEAD, _FOOT = 26, 30
_DESCRIBED = 4
"""Systems of each metric that are read aloud."""


class _Row(NamedTuple):
    name: str
    mean: float
    ci95: tuple[float, float] | None
    style: Style


def quality(
    names: Sequence[str],
    metrics: Mapping[str, Sequence[Estimate]],
    *,
    about: str = "",
    width: int = WIDTH,
) -> str:
    """A panel for each metric, two beside each other where there is room; in each the systems from
    best to worst, as SVG. Panels have axes of their own: lengths compare within one, not between
    two.

    Args:
        names: of the systems, shown as they are; equal ones are told apart by a number.
        metrics: name -> one estimate for each system.
        about: a line under the heading.
        width: of the sheet, in px.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    shown = distinct_names(names)
    panels = {name: _sorted(shown, estimates) for name, estimates in metrics.items()}
    columns = 2 if is_wide(width) else 1
    across = width // columns - 8 * (columns - 1)
    down = _HEAD + _ROW * max(len(shown), 1) + _FOOT
    height = _TOP + down * -(-len(panels) // columns) + 14
    title = "Quality, metric by metric"
    with canvas(height, width, title=title, about=about, notes=[_NOTE]) as sheet:
        for at, (name, rows) in enumerate(panels.items()):
            below, beside = divmod(at, columns)
            left = sheet.margin - 8 + (across + 8) * beside
            _panel(sheet, name, rows, Frame(left, _TOP + down * below, across, down))
        return sheet.svg(
            title="Quality of the systems, metric by metric",
            description=in_words([_described(name, rows) for name, rows in panels.items()]),
        )


_NOTE = (
    "A dot is a mean, its line the 95 % interval. Each metric is sorted and has an axis of its own."
)


def _sorted(names: Sequence[str], estimates: Sequence[Estimate]) -> list[_Row]:
    rows = [
        _Row(name, mean, ci95, _style(at, len(names)))
        for at, (name, (mean, ci95)) in enumerate(zip(names, estimates, strict=True))
    ]
    return sorted(rows, key=lambda row: -row.mean if np.isfinite(row.mean) else np.inf)


def _style(at: int, n: int) -> Style:
    """As in the other pictures, while systems can be told apart."""
    return STYLES[at] if n <= len(STYLES) else STYLES[0]._replace(color=INK)


def _panel(sheet: Canvas, metric: str, rows: Sequence[_Row], place: Frame) -> None:
    scale = _scale(rows)
    head = fitted(metric, place.width - 16, bold=True)
    sheet.write(place.left + 8, place.top + 18, head, bold=True)
    name = _NAME if is_wide(sheet.width) else _NAME_ALONE
    left, top, plot = place.left + name, place.top + _HEAD, place.width - name - _FIGURE - 16
    axes = sheet.panel(left, top, plot, _ROW * max(len(rows), 1), grid="x")
    set_scale(axes.xaxis, scale, ticks=4)
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_yticks([])
    for at, row in enumerate(rows):
        y = top + _ROW * (at + 0.5) + 4
        known = bool(np.isfinite(row.mean))
        sheet.write(left - 8, y, fitted(row.name, name - 16), anchor="right")
        sheet.write(place.right - 10, y, f"{row.mean:.4f}" if known else "–", anchor="right")
        if known:
            _dot(axes, row, at)


def _dot(axes: Axes, row: _Row, y: int) -> None:
    if row.ci95 is not None:
        axes.plot(row.ci95, (y, y), color=row.style.color, linewidth=1.4, clip_on=False)
    else:
        axes.plot([row.mean], [y], ".", color=DOT, markersize=1, clip_on=False)
    axes.plot([row.mean], [y], **marked(row.style))


def _scale(rows: Sequence[_Row]) -> Scale:
    values = np.array([value for row in rows for value in (row.mean, *(row.ci95 or ()))])
    values = values[np.isfinite(values)]
    if not len(values):
        return Scale(0.0, 1.0, False)
    margin = 0.06 * float(np.ptp(values)) or 0.05
    return Scale(float(values.min()) - margin, float(values.max()) + margin, False)


def _described(metric: str, rows: Sequence[_Row]) -> str:
    known = [row for row in rows if np.isfinite(row.mean)]
    said = [
        f"{row.name} {row.mean:.4f}"
        + ("" if row.ci95 is None else f" [{row.ci95[0]:.4f}, {row.ci95[1]:.4f}]")
        for row in known[:_DESCRIBED]
    ]
    more = len(known) - _DESCRIBED
    return f"{metric}: " + ", ".join([*said, *([f"and {more} more"] if more > 0 else [])]) + "."
