"""The pictures of systems side by side: quality against time, and metric by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.core.types import EMPTY
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.runs.run import Run
from retrieval_bench_pages.pictures.pareto import Spot, Step, pareto
from retrieval_bench_pages.pictures.quality import quality
from retrieval_bench_pictures.vega import WIDTH, Spec

MOST_METRICS = 6
"""Panels of the picture of quality where there are more systems than can be told apart."""

_MANY = 8


def front(
    group: DatasetComparison,
    leaders: tuple[str, ...],
    width: int = WIDTH,
    paths: Mapping[str, Sequence[Step]] = EMPTY,
) -> Spec | None:
    """Quality against time, with ``leaders`` marked; None where no system has a time, or
    nothing is judged.

    Args:
        paths: of pipelines, how far they are after each step but the last.
    """
    level, metric = time_level(group.runs), group.metrics[0]
    if not level or not group.judged:
        return None
    spots = []
    for name, run in zip(group.names, group.runs, strict=True):
        mean, time = run.evaluation.mean(metric), run.summary.latency_ms.at(level)
        ends = None if time.ci95 is None else (time.ci95[0], time.ci95[1])
        steps = tuple(paths.get(name, ()))
        spots.append(Spot(name, mean.mean, time.value, mean.ci95, ends, steps))
    return against(spots, group, leaders, width, level=level)


def against(
    spots: Sequence[Spot],
    group: DatasetComparison,
    leaders: tuple[str, ...],
    width: int,
    **what: str,
) -> Spec:
    """Draw quality against what the spots say."""
    metric = metric_label(group.metrics[0])
    about = about_of(group)
    return pareto(spots, metric=metric, about=about, recommended=leaders, width=width, **what)


def metrics(group: DatasetComparison, width: int = WIDTH) -> Spec | None:
    """Quality metric by metric; None where nothing is judged."""
    if not group.judged:
        return None
    shown = group.metrics[: MOST_METRICS if len(group.names) > _MANY else None]
    estimates: dict[str, list[tuple[float, tuple[float, float] | None]]] = {
        metric_label(metric): [
            (run.evaluation.mean(metric).mean, run.evaluation.mean(metric).ci95)
            for run in group.runs
        ]
        for metric in shown
    }
    return quality(list(group.names), estimates, about=about_of(group), width=width)


def about_of(group: DatasetComparison) -> str:
    """Name the dataset of a picture, and how deep."""
    cuts = sorted({run.summary.k for run in group.runs})
    return f"{group.dataset}, k = {' / '.join(map(str, cuts))}"


def time_level(runs: Sequence[Run]) -> str:
    """Which percentile quality is held against: p95, where any run has it, or p50; empty where
    none has a time."""
    reports = [run.summary.latency_ms for run in runs]
    others = (name for one in reports for name in one.levels)
    for level in ("p95", "p50", *others):
        if any(one.at(level).value is not None for one in reports):
            return level
    return ""
