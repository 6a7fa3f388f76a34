"""The pictures of the page: what is drawn of a group of runs, and how it stands in HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from retrieval_bench.comparison.analysis import QueryValues
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.reports.pictures import Spot, gains, pareto, quality
from retrieval_bench.reports.pictures.of_runs import drift, side_by_side, slow_queries, stage_bars
from retrieval_bench.reports.render.markup import Markup, el
from retrieval_bench.reports.tables.labels import metric_label
from retrieval_bench.reports.tables.run_facts import latency_of, levels
from retrieval_bench.runs.run import Run

MOST_METRICS = 6
"""Panels of the picture of quality where there are more systems than can be told apart."""

_MANY = 8


@dataclass(frozen=True, slots=True)
class Pictures:
    """SVG texts, empty where there is nothing to draw.

    Attributes:
        front: quality against time.
        quality: metric by metric.
        differences: query by query, of the pair that is looked at first.
        times: name -> distribution, drift, stages, slow queries.
    """

    front: str = ""
    quality: str = ""
    differences: str = ""
    times: tuple[tuple[str, str], ...] = ()


def drawn(group: DatasetComparison, queries: QueryValues | None, best: str | None) -> Pictures:
    """The pictures of one dataset.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    about = f"{group.dataset}, {_cuts(group)}"
    names, runs = list(group.names), list(group.runs)
    shown: list[tuple[str, Callable[[], str]]] = [
        ("Distribution of call times", lambda: side_by_side(names, runs)),
        ("Stages of a call", lambda: stage_bars(names, runs, about=about)),
        ("Drift from round to round", lambda: drift(names, runs, about=about)),
    ]
    if best is not None:
        run = runs[names.index(best)]
        shown.append((f"Queries of {best}", lambda: slow_queries(best, run, about=about)))
    return Pictures(
        _front(group, about),
        _quality(group, about),
        _differences(queries, about),
        tuple((name, svg) for name, draw in shown if (svg := draw())),
    )


def figure(svg: str, label: str) -> Markup:
    """A picture in a box that scrolls sideways on a small screen; nothing where there is none."""
    if not svg:
        return Markup()
    box = el("div", Markup(svg), class_="scroll", role="region", tabindex="0", aria_label=label)
    return el("figure", box)


def time_level(group: DatasetComparison) -> str:
    """Which percentile quality is held against: p95, where any system has it, or p50."""
    for level in ("p95", "p50", *_levels(group.runs)):
        if any(latency_of(run).get(level, {}).get("value") is not None for run in group.runs):
            return level
    return ""


def _levels(runs: tuple[Run, ...]) -> Iterator[str]:
    return (level for run in runs for level in levels(latency_of(run)))


def _front(group: DatasetComparison, about: str) -> str:
    level, metric = time_level(group), group.metrics[0]
    if not level:
        return ""
    spots = []
    for name, run in zip(group.names, group.runs, strict=True):
        mean, time = run.evaluation.mean(metric), latency_of(run).get(level, {})
        ends = time.get("ci95")
        spots.append(
            Spot(
                name,
                mean.mean,
                time.get("value"),
                mean.ci95,
                None if ends is None else (ends[0], ends[1]),
            )
        )
    return pareto(spots, metric=metric_label(metric), level=level, about=about)


def _quality(group: DatasetComparison, about: str) -> str:
    metrics = group.metrics[: MOST_METRICS if len(group.names) > _MANY else None]
    estimates: dict[str, list[tuple[float, tuple[float, float] | None]]] = {
        metric_label(metric): [
            (run.evaluation.mean(metric).mean, run.evaluation.mean(metric).ci95)
            for run in group.runs
        ]
        for metric in metrics
    }
    return quality(list(group.names), estimates, about=about)


def _differences(queries: QueryValues | None, about: str) -> str:
    if queries is None:
        return ""
    a, b = queries.pair
    return gains(
        queries.values[:, b] - queries.values[:, a],
        queries.query_ids,
        a=queries.names[a],
        b=queries.names[b],
        metric=metric_label(queries.metric),
        about=about,
    )


def _cuts(group: DatasetComparison) -> str:
    cuts = sorted({int(run.summary["k"]) for run in group.runs})
    return f"k = {' / '.join(map(str, cuts))}"
