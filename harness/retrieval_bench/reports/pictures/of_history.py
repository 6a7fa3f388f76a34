"""The picture of a history: what is drawn of which runs and duets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from retrieval_bench.core.errors import counted
from retrieval_bench.regression.history.facts import Figure, SavedDuet, SavedRun
from retrieval_bench.regression.history.trends import P50, P95, Line, Subject
from retrieval_bench.reports.pictures.history import Change, Course, Panel, Point, Timeline, history
from retrieval_bench.reports.pictures.vega import Spec
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench.reports.tables.guard.history import line_words, trend_words

_NOTES = (
    "Vertical lines: another revision (solid), another config (dashed); + files not as committed.",
    "Bars: intervals within a run (95 %) or a duet (98 %).",
    "Saved times of equal code lie further apart: a step is no verdict, a duet decides.",
)


def history_picture(subject: Subject) -> Spec:
    """The metrics, p50 and p95 of each run, and the ratios of the duets."""
    timelines = []
    if subject.runs:
        timelines.append(_runs(subject))
    pinned = [duet for duet in subject.duets if subject.trend(duet) is not None]
    if pinned:
        timelines.append(_duets(subject, pinned))
    return history(
        f"{subject.retriever} {on_dataset(subject.dataset)}",
        timelines,
        about="runs from the oldest to the newest, at equal distances",
        notes=_NOTES,
    )


def _runs(subject: Subject) -> Timeline:
    runs = subject.runs
    quality = (subject.quality_lines, subject.quality_line)
    latency = (subject.latency_lines, subject.latency_line)
    panels = [
        Panel(f"mean {metric}", "quality", _courses(runs, *quality, _mean(metric)))
        for metric in subject.metrics
    ]
    panels += [
        Panel(f"{level}, milliseconds", "time", _courses(runs, *latency, _percentile(level)))
        for level in (P50, P95)
    ]
    shown = [panel for panel in panels if any(course.points for course in panel.courses)]
    return Timeline(
        counted(len(runs), "run"),
        [f"{run.created:%Y-%m-%d}" for run in runs],
        _changes(runs, subject.configs),
        shown,
        line_words(subject),
    )


def _mean(metric: str) -> Callable[[SavedRun], Figure | None]:
    return lambda run: run.metrics.get(metric)


def _percentile(level: str) -> Callable[[SavedRun], Figure | None]:
    return lambda run: run.latency.get(level)


def _courses(
    runs: Sequence[SavedRun],
    lines: Sequence[Line],
    line_of: Callable[[SavedRun], Line | None],
    figure_of: Callable[[SavedRun], Figure | None],
) -> list[Course]:
    points: dict[str, list[Point]] = {line.label: [] for line in lines}
    for at, run in enumerate(runs):
        line, figure = line_of(run), figure_of(run)
        if line is not None and figure is not None:
            points[line.label].append(Point(at, figure.value, figure.interval))
    return [Course(f"line {label}", found) for label, found in points.items()]


def _changes(runs: Sequence[SavedRun], configs: Sequence[str | None]) -> list[Change]:
    """The first run's revision, and all that came later."""
    changes = [Change(0, runs[0].revision)]
    for at, (before, run) in enumerate(pairwise(runs), start=1):
        if run.revision != before.revision:
            changes.append(Change(at, run.revision))
        if run.config != before.config:
            changes.append(Change(at, f"cfg {configs.index(run.config) + 1}", config=True))
    return changes


def _duets(subject: Subject, duets: Sequence[SavedDuet]) -> Timeline:
    courses: dict[str, list[Course]] = {}
    for gate in (P50, P95):
        points: dict[str, list[Point]] = {line.label: [] for line in subject.trends}
        for at, duet in enumerate(duets):
            line, figure = subject.trend(duet), duet.ratios.get(gate)
            if line is not None and figure is not None:
                points[line.label].append(_percent(at, figure))
        courses[gate] = [Course(f"line {label}", found) for label, found in points.items()]
    return Timeline(
        counted(len(duets), "duet"),
        [f"{duet.created:%Y-%m-%d}" for duet in duets],
        [
            Change(at, duet.revision)
            for at, duet in enumerate(duets)
            if at == 0 or duet.revision != duets[at - 1].revision
        ],
        [
            Panel(f"duet {gate}, % slower than the pinned revision", "ratio", of_gate)
            for gate, of_gate in courses.items()
            if any(course.points for course in of_gate)
        ],
        [(f"line {line.label}", f"against {trend_words(line)}") for line in subject.trends],
    )


def _percent(at: int, ratio: Figure) -> Point:
    ends = ratio.interval
    percent = None if ends is None else (100 * (ends[0] - 1), 100 * (ends[1] - 1))
    return Point(at, 100 * (ratio.value - 1), percent)
