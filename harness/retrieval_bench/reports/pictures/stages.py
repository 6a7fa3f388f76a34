"""Where the time of a call goes: one bar for each stage of each system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrieval_bench.core.errors import distinct_names
from retrieval_bench.reports.pictures.canvas import (
    WIDTH,
    Canvas,
    Frame,
    canvas,
    is_wide,
    margin,
    scale_for,
    set_scale,
)
from retrieval_bench.reports.pictures.palette import FILL, INK, PAPER, SOFT
from retrieval_bench.reports.render.text import fitted, in_words, number, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Times = tuple[float, float]
"""Median and 95th percentile, ms; NaN = not known."""

_FIGURE = 60
"""Px of a column of figures."""

_LEGEND, _SAMPLE = 18, 22
"""Px of a line of the legend, and of a sample in it."""


class _Pitch(NamedTuple):
    """Heights in px.

    Attributes:
        top: of the sheet, above the axes.
        name, bar: of the name of a system, and of a bar with its label.
        name_line, label_line: from the top of these down to the base line of their text.
        middle, thick: from the top of a bar with its label down to its middle, and of the bar.
    """

    top: float
    name: float
    bar: float
    name_line: float
    label_line: float
    middle: float
    thick: float


_BESIDE = _Pitch(58, 30.4, 19, 21, 4, 0, 12.5)
"""Labels stand beside their bars."""

_ABOVE = _Pitch(64, 26, 30, 18, 11, 20, 9)
"""Labels stand above their bars, for the sheet has no room beside them."""


@dataclass(frozen=True, slots=True)
class StageTimes:
    """What one system says of its parts.

    Attributes:
        name: shown as it is; equal names are told apart by a number.
        stages: the parts in the order shown.
        legs: what is made of such parts, such as the legs of a hybrid, or all of them one after
            the other and side by side; shown apart, for their time is in ``stages`` already.
        call: the whole call, as measured from outside.
    """

    name: str
    stages: Mapping[str, Times]
    legs: Mapping[str, Times] = field(default_factory=dict)
    call: Times | None = None


class _Kind(NamedTuple):
    fill: str
    hatch: str
    legend: str


_CALL = _Kind(SOFT, "", "Whole call")
_STAGE = _Kind(FILL, "", "Stage")
_LEG = _Kind(PAPER, "////", "Leg, or legs together: made of stages")
_KINDS = (_CALL, _STAGE, _LEG)


class _Bar(NamedTuple):
    label: str
    times: Times
    kind: _Kind
    top: float = 0.0
    """Px below the upper end of the axes."""


def stages(systems: Sequence[StageTimes], *, about: str = "", width: int = WIDTH) -> str:
    """A bar as long as the median of each stage and a line to its 95th percentile, as SVG.

    All bars begin at 0 on one linear axis, so that lengths compare, also between systems; the
    figures stand beside them for those too short to see.

    Args:
        about: a line under the heading, such as dataset and machine.
        width: of the sheet, in px.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    names = distinct_names([s.name for s in systems])
    groups = [list(_bars(s)) for s in systems]
    wide = is_wide(width)
    pitch = _BESIDE if wide else _ABOVE
    starts = np.cumsum([0.0, *(pitch.name + pitch.bar * len(bars) for bars in groups)]).tolist()
    bars = [
        bar._replace(top=start + pitch.name + pitch.bar * at)
        for start, group in zip(starts[:-1], groups, strict=True)
        for at, bar in enumerate(group)
    ]
    left, right = (190, width - 160) if wide else (margin(width), width - 20)
    frame = Frame(left, pitch.top, right - left, max(starts[-1], pitch.bar))
    kinds = [kind for kind in _KINDS if any(bar.kind is kind for bar in bars)]
    legend = _legend(kinds, frame.left, width - margin(width))
    height = frame.bottom + 74 + _LEGEND * max((row for _, row in legend), default=0)
    title = "Where the time of a call goes"
    with canvas(height, width, title=title, about=about) as sheet:
        axes = sheet.panel(*frame, grid="x" if wide else None)
        values = np.array([t for bar in bars for t in bar.times])
        largest = values[np.isfinite(values)].max(initial=0.0)
        set_scale(axes.xaxis, scale_for([np.array([0.0, largest])]), ticks=6)
        axes.set_ylim(frame.height, 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(wide)
        for name, start in zip(names, starts, strict=False):
            shown = fitted(name, width - 2 * sheet.margin, bold=True)
            sheet.write(sheet.margin, frame.top + start + pitch.name_line, shown, bold=True)
        _draw(axes, bars, pitch)
        _write(sheet, frame, bars, pitch)
        sheet.write(frame.middle, frame.bottom + 34, "Milliseconds per call", anchor="center")
        for kind, (x, row) in zip(kinds, legend, strict=True):
            y = frame.bottom + 49 + _LEGEND * row
            sheet.box(x, y, 16, 10, fill=kind.fill, edge=INK, hatch=kind.hatch)
            sheet.write(x + _SAMPLE, y + 9, kind.legend, color=SOFT)
        return sheet.svg(
            title=f"{title}: stages",
            description=in_words(
                [
                    f"{name}: " + "; ".join(f"{b.label} {_in_words(b.times)}" for b in group) + "."
                    for name, group in zip(names, groups, strict=True)
                ]
            ),
        )


def _legend(kinds: Sequence[_Kind], left: float, right: float) -> list[tuple[float, int]]:
    """Where each entry begins and in which line; one that has no room begins a new line."""
    places: list[tuple[float, int]] = []
    x, row = left, 0
    for kind in kinds:
        end = x + _SAMPLE + width_of(kind.legend)
        if end > right and x > left:
            end, x, row = end - x + left, left, row + 1
        places.append((x, row))
        x = end + 18
    return places


def _bars(system: StageTimes) -> Iterator[_Bar]:
    parts = [] if system.call is None else [("whole call", system.call, _CALL)]
    parts += [(label, times, _STAGE) for label, times in system.stages.items()]
    parts += [(label, times, _LEG) for label, times in system.legs.items()]
    for label, times, kind in parts:
        yield _Bar(label, times, kind)


def _draw(axes: Axes, bars: Sequence[_Bar], pitch: _Pitch) -> None:
    for kind in _KINDS:
        alike = [bar for bar in bars if bar.kind is kind and np.isfinite(bar.times[0])]
        axes.barh(
            [bar.top + pitch.middle for bar in alike],
            [bar.times[0] for bar in alike],
            height=pitch.thick,
            color=kind.fill,
            edgecolor=INK,
            linewidth=0.8,
            hatch=kind.hatch,
            clip_on=False,
        )
    tails = [bar for bar in bars if np.isfinite(bar.times).all()]
    if not tails:
        return
    at = np.array([bar.top + pitch.middle for bar in tails])
    medians, ends = np.array([bar.times for bar in tails]).T
    axes.hlines(at, medians, ends, color=INK, linewidth=1, clip_on=False)
    axes.vlines(ends, at - 4, at + 4, color=INK, linewidth=1.2, clip_on=False)


def _write(sheet: Canvas, frame: Frame, bars: Sequence[_Bar], pitch: _Pitch) -> None:
    """Labels and figures, column by column: neighbours of one kind take little room in the file."""
    end = sheet.width - sheet.margin
    columns = (end - _FIGURE, end)
    for x, head in zip(columns, ("Median", "p95"), strict=True):
        sheet.write(x, frame.top - 4, head, color=SOFT, anchor="right")
    heights = [frame.top + bar.top + pitch.label_line for bar in bars]
    for bar, y in zip(bars, heights, strict=True):
        if pitch is _BESIDE:
            label = fitted(bar.label, frame.left - 8 - sheet.margin)
            sheet.write(frame.left - 8, y, label, anchor="right")
        else:
            label = fitted(bar.label, end - 2 * _FIGURE - sheet.margin - 12)
            sheet.write(sheet.margin, y, label)
    for x, i in zip(columns, (0, 1), strict=True):
        for bar, y in zip(bars, heights, strict=True):
            sheet.write(x, y, number(bar.times[i]), anchor="right")


def _in_words(times: Times) -> str:
    median, p95 = times
    if not np.isfinite(median):
        return "not known"
    return number(median) + (f", p95 {number(p95)}" if np.isfinite(p95) else "") + " ms"
