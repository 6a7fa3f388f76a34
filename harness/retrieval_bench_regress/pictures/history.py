"""Figures over time: a panel for each, from run to run and from duet to duet."""

from __future__ import annotations

import json
from collections.abc import Sequence

from retrieval_bench.reports.render.text import clean, cut, number
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.vega import Spec, mark
from retrieval_bench_regress.history.facts import Figure, Same, SavedDuet, SavedRun
from retrieval_bench_regress.history.history import P50, P95, Subject

_LEFT, _PLOT, _HEIGHT = 44, 608, 112
_MARKED = 60
"""More points have no markers of their own."""
_NAMED = 6
"""Names of more keys would lie on top of each other: those of the newest stand."""

_NOTES = (
    "From the oldest to the newest, at equal distances; + files not as committed.",
    "A line joins what has the same key: nothing else may be held against each other.",
    "Bars: intervals within a run (95 %) or a duet (98 %); they may leave a panel.",
    "Saved times of equal code lie further apart: whether one moved is decided by a duet.",
)

Place = tuple[SavedRun | SavedDuet, Same | None, Figure | None]
"""A run or duet, and its key and value of one figure."""


def history_picture(subject: Subject) -> Spec:
    """The metrics, p50 and p95 of each run, and the ratios of the duets: a panel for each that
    there is. Its axis need not begin at 0."""
    runs, duets = subject.runs, subject.duets
    panels: dict[str, list[Place]] = {}
    for metric in subject.metrics:
        panels[f"mean {metric}"] = [(r, r.same_quality, r.metrics.get(metric)) for r in runs]
    for level in (P50, P95):
        panels[f"{level}, milliseconds"] = [(r, r.same_times, r.latency.get(level)) for r in runs]
    for gate in (P50, P95):
        title = f"duet {gate}, ratio to side a"
        panels[title] = [(d, d.same_times, d.ratios.get(gate)) for d in duets]
    drawn = {title: points for title, places in panels.items() if (points := _points(places))}
    return vega.picture(
        {"vconcat": [_panel(title, panels[title], drawn[title]) for title in drawn], "spacing": 12},
        title=f"{subject.retriever} {on_dataset(subject.dataset)}",
        notes=_NOTES,
        said=[text for title in drawn for text in _said(title, drawn[title])],
        width=vega.WIDTH,
    )


def _points(places: Sequence[Place]) -> dict[str, list[Spec]]:
    """Key -> its points, from left to right."""
    points: dict[str, list[Spec]] = {}
    for at, (_, key, figure) in enumerate(places):
        if key is not None and figure is not None:
            low, high = figure.interval or (figure.value, figure.value)
            point = {"at": at, "value": figure.value, "low": low, "high": high}
            points.setdefault(str(key), []).append({"key": str(key), **point})
    return points


def _panel(title: str, places: Sequence[Place], lines: dict[str, list[Spec]]) -> Spec:
    """One figure; a line for each key, of several with the names of the newest at their ends."""
    n, points = len(places), [point for line in lines.values() for point in line]
    labels = json.dumps([[saved.created[:10], clean(saved.revision)] for saved, *_ in places])
    x = vega.axis(
        "at", vega.linear(-0.5, n - 0.5), values=vega.whole(0, n - 1, 6), grid=False,
        labelExpr=f"{labels}[datum.value]",
    )  # fmt: skip
    # Intervals may leave the scale, since one that is far too wide would hide all else; and 5 % to
    # either side are on it, so that noise looks like noise.
    values = [point["value"] for point in points]
    middle = (min(values) + max(values)) / 2
    scale = vega.around([*values, 0.95 * middle, 1.05 * middle], 0.1)
    y = vega.axis("value", scale, tickCount=4, minExtent=_LEFT, maxExtent=_LEFT)
    newest = sorted(lines.items(), key=lambda item: -item[1][-1]["at"])
    named = newest[:_NAMED] if len(lines) > 1 else []
    ends = [{**line[-1], "name": key[:6]} for key, line in named]
    marked = [point for line in lines.values() if n <= _MARKED or len(line) == 1 for point in line]
    color = vega.STYLES[0].color
    return {
        "width": _PLOT,
        "height": _HEIGHT,
        "title": {"text": cut(title, 60), "fontSize": 11, "offset": 6},
        "encoding": {"x": x, "y": y},
        "layer": [
            mark("rule", points, vega.span("y", y, "low", "high"), color=color, clip=True),
            mark("line", points, {"detail": {"field": "key"}}, color=color, strokeWidth=1.2),
            mark("point", marked, color=color),
            mark("text", ends, {"text": {"field": "name"}}, align="left", dx=7),
        ],
    }


def _said(title: str, lines: dict[str, list[Spec]]) -> list[str]:
    """The course of each line, in a sentence."""
    said = []
    for key, line in lines.items():
        of = f", {key[:6]}" * (len(lines) > 1)
        first, last = (number(point["value"]) for point in (line[0], line[-1]))
        said.append(f"{title}{of}: {first} at first, {last} at last, {len(line)} points.")
    return said
