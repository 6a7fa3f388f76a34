"""Figures over time: from run to run, with what changed between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from retrieval_bench.reports.pictures import vega
from retrieval_bench.reports.pictures.vega import Spec, mark
from retrieval_bench.reports.render.text import clean, cut, number, width_of

_LEFT, _PLOT, _HEIGHT = 44, 640, 112
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


def history(
    title: str, timelines: Sequence[Timeline], *, about: str = "", notes: Sequence[str] = ()
) -> Spec:
    """Runs from left to right in their order, at equal distances; a panel for each figure.

    Vertical lines stand where the revision (solid) or the config (dashed) is another one than
    before. Panels have axes of their own that need not begin at 0.

    Args:
        about: a line under the heading.
        notes: lines below that.
    """
    views = [
        _panel(timeline, panel, at)
        for timeline in timelines
        for at, panel in enumerate(timeline.panels)
    ]
    apart = dict.fromkeys(("color", "shape", "strokeDash"), "independent")
    resolve = {"scale": apart, "legend": dict.fromkeys(("color", "shape"), "independent")}
    return vega.picture(
        {"vconcat": views, "spacing": 12, "resolve": resolve},
        title=title,
        about=about,
        notes=notes,
        said=[text for one in timelines for text in _described(one)],
        width=vega.WIDTH,
    )


def _panel(timeline: Timeline, panel: Panel, at: int) -> Spec:
    """One figure; the last one of a time line has the dates and the legend, the first the names of
    what changed."""
    last, n = at == len(timeline.panels) - 1, len(timeline.dates)
    known = [(clean(name), words) for name, words in timeline.legend][: len(vega.STYLES)]
    names = [name for name, _ in known]
    key = vega.legend(names, [cut(f"{name}: {words}", 100) for name, words in known])
    color, dash, shape = vega.told_apart(names, key=key if last else None)
    dates = f"{json.dumps([clean(date) for date in timeline.dates])}[datum.value]"
    look: Spec = {"tickMinStep": 1, "labelExpr": dates, "labels": last, "grid": False}
    place = vega.linear(-0.5, max(n, 1) - 0.5)
    x = vega.axis("at", place, timeline.title if last else None, **look)
    y = vega.axis("value", _scale(panel), tickCount=4, minExtent=_LEFT, maxExtent=_LEFT)
    rows = [
        {"system": clean(course.name), "at": p.at, "value": p.value, "low": low, "high": high}
        for course in panel.courses
        for p in course.points
        for low, high in [p.ends or (p.value, p.value)]
    ]
    told = [row for row in rows if row["system"] in names]
    rest = [row for row in rows if row["system"] not in names]
    zero = [{"value": 0}] if panel.kind == "ratio" else []
    changes = [{"at": c.at - 0.5, "config": c.config} for c in timeline.changes if c.at]
    dashes = {"condition": {"test": "datum.config", "value": [3, 3]}, "value": [1, 0]}
    down = _HEIGHT if len(changes) <= _MARKED else 8  # lines that stand close would hide figures
    through = {"y": {"value": 0}, "y2": {"value": down}, "strokeDash": dashes}
    above = {"y": {"value": -8}, "text": {"field": "name"}}
    return {
        "width": _PLOT,
        "height": _HEIGHT,
        "title": {"text": cut(panel.title, 60), "fontSize": 11, "offset": 6 if at else 20},
        "encoding": {"x": x, "y": y},
        "layer": [
            mark("rule", changes, through, color=vega.DOT, strokeWidth=0.7),
            mark("text", [] if at else _names(timeline), above, color=vega.SOFT, align="left"),
            mark("rule", zero, {"x": {"value": 0}, "x2": {"value": _PLOT}}, strokeWidth=0.8),
            mark("line", rest, {"detail": {"field": "system"}}, color=vega.SOFT, strokeWidth=0.5),
            mark("rule", told, {**vega.span("y", y, "low", "high"), "color": color}, clip=True),
            mark("line", told, {"color": color, "strokeDash": dash}, strokeWidth=1.2),
            mark("point", told if n <= _MARKED else [], {"color": color, "shape": shape}),
        ],
    }


def _names(timeline: Timeline) -> list[Spec]:
    """Names above the lines, as many as there is room for."""
    shown, free = [], 0.0
    for change in timeline.changes:
        name = cut(change.name, 20)
        x = _PLOT * change.at / max(len(timeline.dates), 1)
        if x >= free and x + width_of(name) <= _PLOT:
            shown.append({"at": change.at - 0.5, "name": name})
            free = x + width_of(name) + 8
    return shown


def _scale(panel: Panel) -> Spec:
    """Of the values; intervals may leave it, one that is far too wide would hide all others."""
    points = [point for course in panel.courses for point in course.points]
    values = [point.value for point in points]
    if not values:
        return vega.linear(0.0, 1.0)
    if panel.kind == "ratio":
        reach = [abs(end) for point in points for end in (point.value, *(point.ends or ()))]
        return vega.linear(-1.1 * max(5.0, *reach), 1.1 * max(5.0, *reach))
    if panel.kind == "quality":
        margin = max(0.15 * (max(values) - min(values)), 0.01)
        return vega.linear(min(values) - margin, max(values) + margin)
    scale = vega.scale_for([np.array(values)])
    low, high = scale["domain"]
    if scale["type"] == "log" or low == 0:
        return scale
    spread = _LEAST_SPREAD * (min(values) + max(values)) / 2
    middle = (min(values) + max(values)) / 2
    return vega.linear(min(low, middle - spread), max(high, middle + spread))


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
