"""Measurements that end as soon as every pair is decided: what they refuse, and who looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from retrieval_bench.comparison.comparison import pairs_of
from retrieval_bench.comparison.pairs.anytime import PairWatch, scale_to_bet_on
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.needs_judgements import require_all_judged, require_judged
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.several import prepare_several
from retrieval_bench.experiment.until import Target, Until, asking_once, target_of
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.stats.defaults import MARGIN


def prepare_until_decided(
    target: str,
    retrievers: Sequence[Any],
    datasets: Sequence[str | Path | Dataset],
    check: Callable[[Experiment], None],
    *,
    margin: float = MARGIN,
    baseline: str | None = None,
    protocol: Protocol | None = None,
    **options: Any,
) -> list[Experiment]:
    """Prepare as :func:`.prepare_several` does, to ask each query once until every pair is decided
    by the first metric.

    Args:
        target: a :class:`.Target`: whose mean is meant.
        margin, baseline: of the pairs, looked at after every query; :func:`.compare_runs` comes to
            the same of the runs.
        check, protocol, options: as of :func:`.prepare_several`.

    Raises:
        HarnessError: also where queries cannot be bet on.
    """
    meant, rules = target_of(target), list[Until]()

    def check_and_watch(experiment: Experiment) -> None:
        require_judged(experiment.dataset, "--until-decided")
        require_all_judged(experiment.dataset, "--until-decided")
        check(experiment)
        total = len(experiment.counted) if meant is Target.SPLIT else None
        scale = scale_to_bet_on(experiment.metrics[0])
        _check_independent(experiment.dataset, meant)
        pairs = PairWatch(pairs_of(experiment.names, baseline), scale, margin, total)
        rules.append(Until(meant, lambda _, values, answered: pairs.add(values[:, 0], answered)))

    once = asking_once(protocol or Protocol())
    experiments = prepare_several(retrievers, datasets, check_and_watch, protocol=once, **options)
    return [asked.ending(until) for asked, until in zip(experiments, rules, strict=True)]


def _check_independent(dataset: Dataset, target: Target) -> None:
    """Raise where bets on queries like these would be on clusters; the mean of a split is that of
    these very queries, drawn one by one."""
    if dataset.cluster_key is not None and target is Target.POPULATION:
        raise ConfigError(
            f"--until-decided on {dataset.name!r}, whose queries come in clusters "
            f"(cluster_key: {dataset.cluster_key})",
            accepted="queries that are independent: a bet on each of a cluster would count one "
            "question several times",
            fix="measure without --until-decided, or ask for the mean of these very queries alone: "
            "--until-decided split",
        )
