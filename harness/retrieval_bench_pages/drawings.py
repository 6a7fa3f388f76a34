"""The pictures of the page: what is drawn of a group of runs, and how it stands in HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from retrieval_bench.capabilities import offered
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.reports.tables.usage import money_of
from retrieval_bench_explain.pictures.gains import gains
from retrieval_bench_explain.pictures.ledger import part_bars
from retrieval_bench_pages.analysis import GroupAnalysis, QueryValues
from retrieval_bench_pages.markup import Markup, el
from retrieval_bench_pages.pictures.of_comparison import about_of, against, front, metrics
from retrieval_bench_pages.pictures.pareto import Spot
from retrieval_bench_pictures import of_runs
from retrieval_bench_pictures.draw import svgs
from retrieval_bench_pictures.vega import NARROW, WIDTH, Spec

FRONT = "Quality against time"


@dataclass(frozen=True, slots=True)
class Planned:
    """A picture of the page, before it is drawn.

    Attributes:
        section: of the page.
        label: what it shows.
        wide, narrow: for a desk and for a phone.
    """

    section: str
    label: str
    wide: Spec
    narrow: Spec


class Figures:
    """The pictures of a page, all drawn in one process.

    Attributes:
        why_not: the reason why none was drawn.
    """

    def __init__(self, planned: Sequence[Planned]) -> None:
        self._planned, self._texts, self.why_not = planned, list[str](), ""
        try:
            self._texts = svgs([spec for plan in planned for spec in (plan.wide, plan.narrow)])
        except MissingDependencyError as problem:
            self.why_not = problem.given

    def of(self, section: str) -> list[tuple[str, Markup]]:
        """What the pictures of a section show, and each of them as HTML: the page shows the drawing
        that fits."""
        texts = zip(self._texts[::2], self._texts[1::2], strict=True)
        both = zip(self._planned, texts, strict=False)
        return [
            (one.label, _figure(one.label, *texts)) for one, texts in both if one.section == section
        ]


def _figure(label: str, wide: str, narrow: str) -> Markup:
    return el(
        "figure",
        el("div", Markup(wide), class_="wide"),
        el("div", Markup(narrow), class_="narrow"),
        aria_label=label,
    )


def planned_of(id_: str, analysis: GroupAnalysis) -> list[Planned]:
    """The pictures of one dataset, whose sections begin with ``id_``."""
    group, queries, answer = analysis.group, analysis.queries, analysis.recommendation
    about, names, runs = about_of(group), list(group.names), list(group.runs)
    planned: list[Planned] = []
    bars, stages, drift, slow = (
        partial(draw, about=about)
        for draw in (part_bars, of_runs.stage_bars, of_runs.drift, of_runs.slow_queries)
    )

    def plan(section: str, label: str, draw: Callable[..., Spec | None], *of: Any) -> None:
        wide, narrow = (draw(*of, width=width) for width in (WIDTH, NARROW))
        if wide is not None and narrow is not None:
            planned.append(Planned(f"{id_}-{section}", label, wide, narrow))

    if group.judged:
        plan("front", FRONT, partial(front, paths=analysis.paths), group, answer.leaders)
        plan("front", "Quality against money", money, group, answer.leaders)
        plan("systems", "Quality, metric by metric", metrics, group)
        if (recall := offered("draw recall over tokens")) is not None:
            plan("systems", "Recall of spans over tokens", recall, names, runs)
        plan("differences", "Differences query by query", _differences, queries, about)
        for ledger in analysis.ledgers:
            plan("parts", f"The parts of {ledger.run.name}", bars, ledger)
    plan("times", "Distribution of call times", of_runs.side_by_side, names, runs)
    plan("times", "Stages of a call", stages, names, runs)
    plan("times", "Drift from round to round", drift, names, runs)
    if (best := answer.system or group.highest(group.metrics[0])) is not None:
        plan("times", f"Queries of {best}", slow, best, runs[names.index(best)])
    return planned


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
    return against(spots, group, leaders, width, level="money", unit=unit)


def _differences(queries: QueryValues | None, about: str, width: int) -> Spec | None:
    if queries is None:
        return None
    a, b = queries.pair
    differences = queries.values[:, b] - queries.values[:, a]
    pair = {"a": queries.names[a], "b": queries.names[b], "metric": metric_label(queries.metric)}
    return gains(differences, queries.query_ids, **pair, about=about, width=width)
