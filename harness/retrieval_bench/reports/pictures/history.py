"""Figures over time: from run to run, with what changed between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

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
from retrieval_bench.reports.pictures.palette import DOT, INK, SOFT, STYLES, Style
from retrieval_bench.reports.render.text import cells_of, cut, in_words, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _PLOT_WIDTH = 64, 614
_HEIGHT, _APART = 112, 26
_TOP = 84
"""Of the first panel of a time line, below the names of the revisions."""

_ROW = 18
_CELL = 6.4
_TICKS = 6
_MARKED = 60
"""More points have no markers of their own, and more changes no lines through the panel."""

_LEAST_SPREAD = 0.05
"""Of a time, to either side of its middle: noise is to look like noise."""


class Point(NamedTuple):
    """A figure of run number ``at``, from 0; ``ends`` of its interval, None where there is none."""

    at: int
    value: float
    ends: tuple[float, float] | None = None


class Course(NamedTuple):
    """Points that may be held against each other, the oldest first. Courses of the same name are
    drawn alike in every panel."""

    name: str
    points: Sequence[Point]


class Panel(NamedTuple):
    """One figure.

    Attributes:
        title: what it is, with its unit.
        kind: "quality", "time", or "ratio" (percent, 0 = no difference).
    """

    title: str
    kind: str
    courses: Sequence[Course]


class Change(NamedTuple):
    """What is otherwise from run ``at`` on: a revision, or (``config``) the settings."""

    at: int
    name: str
    config: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """Panels above each other over the same runs.

    Attributes:
        title: what was done at each place, such as "12 runs".
        dates: of each, the oldest first.
        legend: name of each course and what it is, in words.
    """

    title: str
    dates: Sequence[str]
    changes: Sequence[Change]
    panels: Sequence[Panel]
    legend: Sequence[tuple[str, str]]

    @property
    def height(self) -> int:
        legend = 34 + _ROW * len(self._known)
        return _TOP - 46 + (_HEIGHT + _APART) * len(self.panels) + legend

    @property
    def _known(self) -> list[tuple[str, str]]:
        return list(self.legend)[: len(STYLES)]

    def style(self, name: str) -> Style | None:
        """How a course is drawn; None for one of those that cannot be told apart any more."""
        names = [known for known, _ in self._known]
        return STYLES[names.index(name)] if name in names else None


def history(title: str, timelines: Sequence[Timeline], *, about: str = "",
            notes: Sequence[str] = ()) -> str:  # fmt: skip
    """Runs from left to right in their order, at equal distances; a panel for each figure, as SVG.

    Vertical lines stand where the revision (solid) or the config (dashed) is another one than
    before. Panels have axes of their own that need not begin at 0.

    Args:
        about: a line under the heading.
        notes: lines at the foot.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    height = 46 + sum(one.height for one in timelines) + 16 * len(notes) + 10
    with canvas(height, title=title, about=about) as sheet:
        top = 46.0
        for timeline in timelines:
            _timeline(sheet, timeline, top)
            top += timeline.height
        for at, note in enumerate(notes):
            sheet.write(16, top + 10 + 16 * at, cut(note, 112), color=SOFT)
        said = [text for one in timelines for text in _described(one)]
        return sheet.svg(title=title, description=in_words([*said, *(f"{n}." for n in notes)]))


def _timeline(sheet: Canvas, timeline: Timeline, top: float) -> None:
    n = len(timeline.dates)
    place = Scale(-0.5, max(n, 1) - 0.5, log=False)
    first = top + _TOP - 46
    for at, panel in enumerate(timeline.panels):
        y = first + (_HEIGHT + _APART) * at
        axes = sheet.panel(_LEFT, y, _PLOT_WIDTH, _HEIGHT, grid="y")
        axes.set_xlim(place.low, place.high)
        set_scale(axes.yaxis, _scale(panel), ticks=4)
        sheet.write(_LEFT, y - 5, cut(panel.title, 60), bold=True)
        if panel.kind == "ratio":
            axes.axhline(0, color=INK, linewidth=0.8)
        for config in (False, True):
            _changes(axes, [c.at - 0.5 for c in timeline.changes if c.config == config], config)
        for course in panel.courses:
            _draw(axes, course, timeline.style(course.name), n)
        _dates(axes, timeline.dates, shown=at == len(timeline.panels) - 1)
    _name_changes(sheet, timeline, place, first - 20)
    below = first + (_HEIGHT + _APART) * len(timeline.panels) + 10
    sheet.write(_LEFT + _PLOT_WIDTH / 2, below - 4, timeline.title, anchor="center", color=SOFT)
    for at, (name, words) in enumerate(timeline._known):
        style = STYLES[at]
        y = below + _ROW * (at + 1)
        sheet.sample(34, y - 4, style)
        sheet.write(60, y, cut(f"{name}: {words}", 100))


def _changes(axes: Axes, at: Sequence[float], config: bool) -> None:
    axes.vlines(
        at,
        0 if len(at) <= _MARKED else 0.94,  # lines that stand close would hide the figures
        1,
        transform=axes.get_xaxis_transform(),
        colors=DOT,
        linewidth=0.7,
        linestyle=dashed((3, 3) if config else ()),
        zorder=0.6,
    )


def _draw(axes: Axes, course: Course, style: Style | None, n: int) -> None:
    at = [point.at for point in course.points]
    values = [point.value for point in course.points]
    if style is None:
        axes.plot(at, values, color=SOFT, linewidth=0.5, clip_on=False)
        return
    bars = [(point.at, *point.ends) for point in course.points if point.ends is not None]
    if bars:
        across, low, high = zip(*bars, strict=True)
        axes.vlines(across, low, high, colors=style.color, linewidth=0.8)
    look = {**marked(style), "linestyle": dashed(style.dash), "linewidth": 1.2}
    if n > _MARKED and len(at) > 1:
        look["marker"] = "None"
    axes.plot(at, values, **look)


def _scale(panel: Panel) -> Scale:
    """Of the values; intervals may leave it, one that is far too wide would hide all others."""
    values = np.array([point.value for course in panel.courses for point in course.points])
    if not len(values):
        return Scale(0.0, 1.0, log=False)
    if panel.kind == "time":
        scale = scale_for([values])
        if scale.log or scale.low == 0:
            return scale
        middle = (float(values.min()) + float(values.max())) / 2
        spread = _LEAST_SPREAD * middle
        return Scale(min(scale.low, middle - spread), max(scale.high, middle + spread), log=False)
    if panel.kind == "ratio":
        ends = [e for c in panel.courses for p in c.points if p.ends for e in p.ends]
        reach = 1.1 * max(5.0, float(np.abs(np.array([*values, *ends])).max()))
        return Scale(-reach, reach, log=False)
    margin = max(0.15 * float(np.ptp(values)), 0.01)
    return Scale(float(values.min()) - margin, float(values.max()) + margin, log=False)


def _dates(axes: Axes, dates: Sequence[str], *, shown: bool) -> None:
    n = len(dates)
    places = sorted({round(i * (n - 1) / (_TICKS - 1)) for i in range(_TICKS)}) if n > 1 else [0]
    axes.set_xticks(places)
    axes.set_xticklabels([dates[at] if shown and n else "" for at in places])


def _name_changes(sheet: Canvas, timeline: Timeline, place: Scale, y: float) -> None:
    """Names above the lines, as many as there is room for."""
    free = 0.0
    for change in timeline.changes:
        x = _LEFT + _PLOT_WIDTH * float(place.place(np.array([max(change.at - 0.5, -0.5)]))[0])
        name = cut(change.name, 20)
        width = _CELL * cells_of(name)
        if x >= free and x + width <= WIDTH - 4:
            sheet.write(x, y, name, color=SOFT)
            free = x + width + 8


def _described(timeline: Timeline) -> list[str]:
    said = []
    for panel in timeline.panels:
        for course in panel.courses:
            if course.points:
                first, last = course.points[0].value, course.points[-1].value
                of = f", {course.name}" if len(panel.courses) > 1 else ""
                said.append(
                    f"{panel.title}{of}: {number(first)} at first, {number(last)} at last, "
                    f"{len(course.points)} points."
                )
    return said
