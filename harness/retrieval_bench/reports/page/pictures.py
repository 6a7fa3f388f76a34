"""The pictures of the page: what is drawn of a group of runs, and how it stands in HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from retrieval_bench.comparison.analysis import GroupAnalysis, QueryValues
from retrieval_bench.comparison.explain.ledger import Ledger
from retrieval_bench.comparison.explain.steps import Reached, time_level
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.modes.unjudged import Unjudged
from retrieval_bench.core.types import EMPTY
from retrieval_bench.reports.pictures import of_runs
from retrieval_bench.reports.pictures.draw import svg
from retrieval_bench.reports.pictures.gains import gains
from retrieval_bench.reports.pictures.pareto import Spot, pareto
from retrieval_bench.reports.pictures.quality import quality
from retrieval_bench.reports.pictures.vega import NARROW, WIDTH, Spec
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
    """Pictures of one dataset.

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
    about, names, runs = _about(group), list(group.names), list(group.runs)

    def both(draw: Callable[[int], Spec | None]) -> Drawing:
        wide, narrow = draw(WIDTH), draw(NARROW)
        return ("", "") if wide is None or narrow is None else (svg(wide), svg(narrow))

    def buys(ledger: Ledger) -> Drawing:
        return both(lambda w: of_runs.part_bars(ledger, about=about, width=w))

    shown: dict[str, Callable[[int], Spec | None]] = {
        "Distribution of call times": lambda w: of_runs.side_by_side(names, runs, width=w),
        "Stages of a call": lambda w: of_runs.stage_bars(names, runs, about=about, width=w),
        "Drift from round to round": lambda w: of_runs.drift(names, runs, about=about, width=w),
    }
    if answer.system is not None:
        best, run = answer.system, runs[names.index(answer.system)]
        shown[f"Queries of {best}"] = lambda w: of_runs.slow_queries(
            best, run, about=about, width=w
        )
    times = tuple((name, both(draw)) for name, draw in shown.items())
    times = tuple((name, drawing) for name, drawing in times if drawing[0])
    if isinstance(group, Unjudged):
        return Pictures(times=times)
    return Pictures(
        both(lambda w: front(group, answer.leaders, w, analysis.paths)),
        both(lambda w: metrics(group, w)),
        both(lambda w: _differences(queries, about, w)),
        times,
        both(lambda w: money(group, answer.leaders, w)),
        tuple(map(buys, analysis.ledgers)),
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
        ends = None if time.ci95 is None else (time.ci95[0], time.ci95[1])
        steps = tuple((item.step, item.quality, item.ms) for item in paths.get(name, ()))
        spots.append(Spot(name, mean.mean, time.value, mean.ci95, ends, steps))
    return _against(spots, group, leaders, width, level=level)


def money(group: DatasetComparison, leaders: tuple[str, ...], width: int = WIDTH) -> Spec | None:
    """Quality against money; None where fewer than two systems say what they take."""
    metric = group.metrics[0]
    each = [money_of(run.summary) for run in group.runs]
    if len([item for item in each if item]) < 2:
        return None
    means = [run.evaluation.mean(metric) for run in group.runs]
    both = zip(group.names, means, each, strict=True)
    spots = [Spot(name, mean.mean, value, mean.ci95) for name, mean, value in both]
    unit = "Money for 1,000 queries"
    return _against(spots, group, leaders, width, level="money", unit=unit)


def _against(
    spots: Sequence[Spot],
    group: DatasetComparison,
    leaders: tuple[str, ...],
    width: int,
    **what: str,
) -> Spec:
    metric = metric_label(group.metrics[0])
    about = _about(group)
    return pareto(spots, metric=metric, about=about, recommended=leaders, width=width, **what)


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
    differences = queries.values[:, b] - queries.values[:, a]
    pair = {"a": queries.names[a], "b": queries.names[b], "metric": metric_label(queries.metric)}
    return gains(differences, queries.query_ids, **pair, about=about, width=width)


def _about(group: DatasetComparison) -> str:
    cuts = sorted({run.summary.k for run in group.runs})
    return f"{group.dataset}, k = {' / '.join(map(str, cuts))}"
