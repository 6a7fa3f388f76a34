"""The pictures of the page: what is drawn of a group of runs, and how it stands in HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from retrieval_bench.comparison.analysis import GroupAnalysis, QueryValues
from retrieval_bench.comparison.explain.ledger import Ledger
from retrieval_bench.comparison.explain.steps import Reached, time_level
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.modes.unjudged import Unjudged
from retrieval_bench.core.types import EMPTY
from retrieval_bench.reports.pictures import (
    NARROW,
    WIDTH,
    Spec,
    Spot,
    gains,
    pareto,
    quality,
    svg,
)
from retrieval_bench.reports.pictures.of_runs import (
    drift,
    part_bars,
    side_by_side,
    slow_queries,
    stage_bars,
)
from retrieval_bench.reports.render.markup import Markup, el
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.reports.tables.usage import money_of

MOST_METRICS = 6
"""Panels of the picture of quality where there are more systems than can be told apart."""

_MANY = 8


Drawing = tuple[str, str]
"""One picture for a desk and for a phone, as SVG; empty where there is nothing to draw."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """What is drawn of one dataset.

    Attributes:
        front: quality against time.
        quality: metric by metric.
        differences: query by query, of the pair that is looked at first.
        times: name -> distribution, drift, stages, slow queries.
        money: quality against money.
        parts: of each system that is made of parts, what they buy.
    """

    front: Drawing = ("", "")
    quality: Drawing = ("", "")
    differences: Drawing = ("", "")
    times: tuple[tuple[str, Drawing], ...] = ()
    money: Drawing = ("", "")
    parts: tuple[Drawing, ...] = ()


def drawn(analysis: GroupAnalysis) -> Pictures:
    """The pictures of one dataset.

    Raises:
        MissingDependencyError: vl-convert-python is not installed.
    """
    group, queries, answer = analysis.group, analysis.queries, analysis.recommendation
    about = _about(group)
    names, runs = list(group.names), list(group.runs)

    def both(draw: Callable[[int], Spec | None]) -> Drawing:
        wide, narrow = draw(WIDTH), draw(NARROW)
        return ("", "") if wide is None or narrow is None else (svg(wide), svg(narrow))

    shown: list[tuple[str, Callable[[int], Spec | None]]] = [
        ("Distribution of call times", lambda w: side_by_side(names, runs, width=w)),
        ("Stages of a call", lambda w: stage_bars(names, runs, about=about, width=w)),
        ("Drift from round to round", lambda w: drift(names, runs, about=about, width=w)),
    ]
    if answer.system is not None:
        best, run = answer.system, runs[names.index(answer.system)]
        name = f"Queries of {best}"
        shown.append((name, lambda w: slow_queries(best, run, about=about, width=w)))
    times = ((name, both(draw)) for name, draw in shown)
    if isinstance(group, Unjudged):
        return Pictures(times=tuple((name, drawing) for name, drawing in times if drawing[0]))
    return Pictures(
        both(lambda w: front(group, answer.leaders, w, analysis.paths)),
        both(lambda w: metrics(group, w)),
        both(lambda w: _differences(queries, about, w)),
        tuple((name, drawing) for name, drawing in times if drawing[0]),
        both(lambda w: money(group, answer.leaders, w)),
        tuple(both(partial(_parts, one, about)) for one in analysis.ledgers),
    )


def figure(drawing: Drawing, label: str) -> Markup:
    """A picture, of which the page shows the drawing that fits; nothing where there is none."""
    wide, narrow = drawing
    if not wide:
        return Markup()
    return el(
        "figure",
        el("div", Markup(wide), class_="wide"),
        el("div", Markup(narrow), class_="narrow"),
        aria_label=label,
    )


def front(
    group: DatasetComparison,
    leaders: tuple[str, ...],
    width: int = WIDTH,
    paths: Mapping[str, Sequence[Reached]] = EMPTY,
) -> Spec | None:
    """Quality against time, with ``leaders`` marked; None where no system has a time, or
    nothing is judged.

    Args:
        paths: of pipelines, how far they are after each step.
    """
    level, metric = time_level(group.runs), group.metrics[0]
    if not level or isinstance(group, Unjudged):
        return None
    spots = []
    for name, run in zip(group.names, group.runs, strict=True):
        mean, time = run.evaluation.mean(metric), run.summary.latency_ms.at(level)
        ends = time.ci95
        spots.append(
            Spot(
                name,
                mean.mean,
                time.value,
                mean.ci95,
                None if ends is None else (ends[0], ends[1]),
                tuple((one.step, one.quality, one.ms) for one in paths.get(name, ())),
            )
        )
    return pareto(
        spots,
        metric=metric_label(metric),
        level=level,
        about=_about(group),
        recommended=leaders,
        width=width,
    )


def money(group: DatasetComparison, leaders: tuple[str, ...], width: int = WIDTH) -> Spec | None:
    """Quality against money; None where fewer than two systems say what they take."""
    metric = group.metrics[0]
    each = [money_of(run.summary) for run in group.runs]
    if len([one for one in each if one]) < 2:
        return None
    means = [run.evaluation.mean(metric) for run in group.runs]
    return pareto(
        [
            Spot(name, mean.mean, value, mean.ci95)
            for name, mean, value in zip(group.names, means, each, strict=True)
        ],
        metric=metric_label(metric),
        level="money",
        unit="Money for 1,000 queries",
        about=_about(group),
        recommended=leaders,
        width=width,
    )


def metrics(group: DatasetComparison, width: int = WIDTH) -> Spec | None:
    """Quality metric by metric; None where nothing is judged."""
    if isinstance(group, Unjudged):
        return None
    shown = group.metrics[: MOST_METRICS if len(group.names) > _MANY else None]
    estimates: dict[str, list[tuple[float, tuple[float, float] | None]]] = {
        metric_label(metric): [
            (run.evaluation.mean(metric).mean, run.evaluation.mean(metric).ci95)
            for run in group.runs
        ]
        for metric in shown
    }
    return quality(list(group.names), estimates, about=_about(group), width=width)


def _differences(queries: QueryValues | None, about: str, width: int) -> Spec | None:
    if queries is None:
        return None
    a, b = queries.pair
    return gains(
        queries.values[:, b] - queries.values[:, a],
        queries.query_ids,
        a=queries.names[a],
        b=queries.names[b],
        metric=metric_label(queries.metric),
        about=about,
        width=width,
    )


def _parts(ledger: Ledger, about: str, width: int) -> Spec:
    return part_bars(ledger, about=about, width=width)


def _about(group: DatasetComparison) -> str:
    cuts = sorted({run.summary.k for run in group.runs})
    return f"{group.dataset}, k = {' / '.join(map(str, cuts))}"
