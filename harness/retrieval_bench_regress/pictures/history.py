"""Figures over time: from run to run, and from duet to duet, with what changed between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.text import clean, cut, number
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.lettering import width_of
from retrieval_bench_pictures.vega import Spec, mark
from retrieval_bench_regress.history.facts import Figure
from retrieval_bench_regress.history.trends import P50, P95, Subject
from retrieval_bench_regress.tables.history import line_words, trend_words

_LEFT, _PLOT, _HEIGHT = 44, 640, 112
_MARKED = 60
"""More points have no markers of their own, and more changes no lines through the panel."""

_LEAST_SPREAD = 0.05
"""Of a time, to either side of its middle: noise is to look like noise."""

_NOTES = (
    "Runs from the oldest to the newest, at equal distances.",
    "Vertical lines: another revision (solid), another config (dashed); + files not as committed.",
    "Bars: intervals within a run (95 %) or a duet (98 %).",
    "Saved times of equal code lie further apart: a step is no verdict, a duet decides.",
)


Panel = tuple[str, str, Sequence[Spec]]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Panels above each other over the same runs, which are counted from 0.

    Attributes:
        title: what was done at each place, such as "12 runs".
        dates: of each, the oldest first.
        changes: what is otherwise from run ``at`` on: ``name`` of a revision or (``config``) of the
            settings.
        panels: kind of a figure ("quality", "time", or "ratio": percent, 0 = no difference), its
            title and points, with ``system`` (the line that joins those that may be held against
            each other), ``at``, ``value``, and the ends ``low`` and ``high`` of its interval.
        legend: name of each line and what it is, in words.
    """

    title: str
    dates: Sequence[str]
    changes: Sequence[Spec]
    panels: Sequence[Panel]
    legend: Sequence[tuple[str, str]]


def history_picture(subject: Subject) -> Spec:
    """The metrics, p50 and p95 of each run, and the ratios of the duets."""
    duets = [duet for duet in subject.duets if duet.trend is not None]
    timelines = [_runs(subject)] if subject.runs else []
    if duets:
        title, trends = "duet {}, % slower than the pinned revision", [duet.trend for duet in duets]
        panels: list[Panel] = []
        for gate in (P50, P95):
            ratios = [duet.ratios.get(gate) for duet in duets]
            points = _points(trends, ratios, lambda ratio: 100 * (ratio - 1))
            panels.append(("ratio", title.format(gate), points))
        legend = [
            (f"line {trend.label}", f"against {trend_words(trend)}") for trend in subject.trends
        ]
        dates = [f"{duet.created:%Y-%m-%d}" for duet in duets]
        changes = _changes([(duet.revision, None) for duet in duets])
        timelines.append(Timeline(counted(len(duets), "duet"), dates, changes, panels, legend))
    return history(f"{subject.retriever} {on_dataset(subject.dataset)}", timelines, _NOTES)


def _runs(subject: Subject) -> Timeline:
    runs = subject.runs
    panels: list[Panel] = []
    for metric in subject.metrics:
        figures = [run.metrics.get(metric) for run in runs]
        points = _points([run.quality_line for run in runs], figures)
        panels.append(("quality", f"mean {metric}", points))
    for level in (P50, P95):
        figures = [run.latency.get(level) for run in runs]
        points = _points([run.latency_line for run in runs], figures)
        panels.append(("time", f"{level}, milliseconds", points))
    settings = [(run.revision, f"cfg {subject.configs.index(run.config) + 1}") for run in runs]
    dates = [f"{run.created:%Y-%m-%d}" for run in runs]
    title = counted(len(runs), "run")
    return Timeline(title, dates, _changes(settings), panels, line_words(subject))


def _points(
    lines: Iterable[str | None],
    figures: Iterable[Figure | None],
    shown: Callable[[float], float] = float,
) -> list[Spec]:
    """A point for each place that has the figure and stands on a line, line by line."""
    points = []
    for at, (line, figure) in enumerate(zip(lines, figures, strict=True)):
        if line is not None and figure is not None:
            ends = (figure.value, *(figure.interval or (figure.value, figure.value)))
            named = dict(zip(("value", "low", "high"), map(shown, ends), strict=True))
            points.append({"system": f"line {line}", "at": at, **named})
    return sorted(points, key=lambda point: str(point["system"]))


def _changes(settings: Sequence[tuple[str, str | None]]) -> list[Spec]:
    """The first revision, and all that came later."""
    changes: list[Spec] = [{"at": 0, "name": settings[0][0], "config": False}]
    for at, (before, after) in enumerate(pairwise(settings), start=1):
        both = zip(before, after, (False, True), strict=True)
        changes += [{"at": at, "name": b, "config": of} for a, b, of in both if a != b]
    return changes


def history(title: str, timelines: Sequence[Timeline], notes: Sequence[str] = ()) -> Spec:
    """Runs from left to right in their order, at equal distances; a panel for each figure.

    Vertical lines stand where the revision (solid) or the config (dashed) is another one than
    before. Panels have axes of their own that need not begin at 0.
    """
    views, said = [], []
    for timeline in timelines:
        panels = [panel for panel in timeline.panels if panel[2]]
        for at, panel in enumerate(panels, start=1):
            views.append(_panel(timeline, panel, first=at == 1, last=at == len(panels)))
            said += _described(panel)
    apart = dict.fromkeys(("color", "shape", "strokeDash"), "independent")
    resolve = {"scale": apart, "legend": dict.fromkeys(("color", "shape"), "independent")}
    content = {"vconcat": views, "spacing": 12, "resolve": resolve}
    return vega.picture(content, title=title, notes=notes, said=said, width=vega.WIDTH)


def _panel(timeline: Timeline, panel: Panel, *, first: bool, last: bool) -> Spec:
    """One figure; the last one of a time line has the dates and the legend, the first the names of
    what changed."""
    (kind, title, points), n = panel, len(timeline.dates)
    known = [(clean(name), words) for name, words in timeline.legend][: len(vega.STYLES)]
    names = [name for name, _ in known]
    key = vega.legend(names, [cut(f"{name}: {words}", 100) for name, words in known])
    color, dash, shape = vega.told_apart(names, key=key if last else None)
    dates = f"{json.dumps([clean(date) for date in timeline.dates])}[datum.value]"
    look: Spec = {
        "values": vega.whole(0, n - 1, 6),
        "labelExpr": dates,
        "labels": last,
        "grid": False,
    }
    place = vega.linear(-0.5, max(n, 1) - 0.5)
    x = vega.axis("at", place, timeline.title if last else None, **look)
    y = vega.axis("value", _scale(kind, points), tickCount=4, minExtent=_LEFT, maxExtent=_LEFT)
    points = [{**point, "system": clean(point["system"])} for point in points]
    told = [point for point in points if point["system"] in names]
    rest = [point for point in points if point["system"] not in names]
    zero = [{"value": 0}] if kind == "ratio" else []
    lines = [{**change, "at": change["at"] - 0.5} for change in timeline.changes if change["at"]]
    dashes = {"condition": {"test": "datum.config", "value": [3, 3]}, "value": [1, 0]}
    down = _HEIGHT if len(lines) <= _MARKED else 8  # lines that stand close would hide figures
    through = {"y": {"value": 0}, "y2": {"value": down}, "strokeDash": dashes}
    above = {"y": {"value": -8}, "text": {"field": "name"}}
    return {
        "width": _PLOT,
        "height": _HEIGHT,
        "title": {"text": cut(title, 60), "fontSize": 11, "offset": 20 if first else 6},
        "encoding": {"x": x, "y": y},
        "layer": [
            mark("rule", lines, through, color=vega.DOT, strokeWidth=0.7),
            mark("text", _names(timeline) if first else [], above, color=vega.SOFT, align="left"),
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
        name = cut(change["name"], 20)
        x = _PLOT * change["at"] / max(len(timeline.dates), 1)
        if x >= free and x + width_of(name) <= _PLOT:
            shown.append({"at": change["at"] - 0.5, "name": name})
            free = x + width_of(name) + 8
    return shown


def _scale(kind: str, points: Sequence[Spec]) -> Spec:
    """Return the scale of the values; intervals may leave it, one that is far too wide would hide
    all others."""
    values = [point["value"] for point in points]
    if kind == "ratio":
        reach = max([5.0, *(abs(point[end]) for point in points for end in ("low", "high"))])
        return vega.linear(-1.1 * reach, 1.1 * reach)
    if kind == "quality":
        margin = max(0.15 * (max(values) - min(values)), 0.01)
        return vega.linear(min(values) - margin, max(values) + margin)
    scale = vega.scale_for([np.array(values)])
    low, high = scale["domain"]
    if scale["type"] == "log" or low == 0:
        return scale
    middle = (min(values) + max(values)) / 2
    return vega.linear(
        min(low, (1 - _LEAST_SPREAD) * middle), max(high, (1 + _LEAST_SPREAD) * middle)
    )


def _described(panel: Panel) -> list[str]:
    _, title, points = panel
    said = []
    lines = {name: list(of) for name, of in groupby(points, key=lambda point: point["system"])}
    for name, line in lines.items():
        of = f", {name}" * (len(lines) > 1)
        first, last = (number(point["value"]) for point in (line[0], line[-1]))
        said.append(f"{title}{of}: {first} at first, {last} at last, {len(line)} points.")
    return said
