"""Measurements that end as soon as every pair is decided: what they refuse, and who looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.capabilities import service
from retrieval_bench.comparison.comparison import pairs_of
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.types import Dataset, Ranking, kind_of_truth
from retrieval_bench.data.needs_judgements import require_all_judged, require_judged
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.several import prepare_several
from retrieval_bench.experiment.until import Target, asking_once
from retrieval_bench.measure.calls import NOT_RUN, Measurement
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import Judgements, judge_lists
from retrieval_bench.runs.summary import UntilFacts
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench_modes.anytime import PairWatch, scale_to_bet_on


def target_of(name: str) -> Target:
    """The target called ``name``.

    Raises:
        ConfigError: there is none.
    """
    if name not in list(Target):
        raise ConfigError(
            f"target {name!r}",
            where="--until-decided",
            kind="unknown-name",
            accepted=f"{near_names(name, list(Target))}: the mean of this split, or of queries "
            "like these",
            fix="correct the name, or leave it out; systems stand before the option",
        )
    return Target(name)


class Asking:
    """One measurement that ends when every pair is decided; see :class:`.until.Asking`.

    Args:
        target: whose mean is meant.
        pairs: those that are to be decided, by the first metric.

    Attributes:
        asked: numbers of the queries that every system was asked, in this order.
        enough: whether it was ended.
    """

    def __init__(self, target: Target, pairs: PairWatch, experiment: Experiment) -> None:
        self._target, self._pairs, self._queries = target, pairs, experiment.queries
        self._metric, self._qrels, self._k = (
            experiment.metrics[0],
            experiment.dataset.qrels,
            experiment.k,
        )
        self._judgements = Judgements(self._qrels)
        self.asked: list[int] = []
        self.enough = False

    def __call__(self, at: int, rankings: Sequence[Ranking | None]) -> bool:
        self.asked.append(at)
        query_id = self._queries[at].id
        values = np.array([self._value(query_id, ranking) for ranking in rankings])
        answered = np.array([ranking is not None for ranking in rankings])
        self.enough = self._pairs.add(values, answered)
        return self.enough

    def _value(self, query_id: str, ranking: Ranking | None) -> float:
        lists = {} if ranking is None else {query_id: list(ranking.doc_ids)}
        judgements = self._judgements
        rules = {query_id: self._qrels[query_id]}
        if kind := kind_of_truth(rules):  # what came decides, as in the run
            decide = service(f"decide by {kind}")
            judgements = Judgements(decide(rules, [query_id], [ranking], [0], self._k).qrels)
        judged = judge_lists(lists, [query_id], judgements)
        return float(self._metric.compute(judged)[0])

    def whole_queries(self, measurement: Measurement) -> Measurement:
        """Leave out the query that not every system was asked, when it was interrupted there."""
        asked = set(self.asked)
        places = range(len(measurement.status))
        return replace(
            measurement,
            rankings=[measurement.rankings[at] if at in asked else None for at in places],
            status=[measurement.status[at] if at in asked else NOT_RUN for at in places],
        )

    def facts(self) -> UntilFacts:
        """``until_decided`` of a summary."""
        return UntilFacts(
            target=self._target.value,
            queries=len(self._queries),
            asked=len(self.asked),
            interrupted=not self.enough and len(self.asked) < len(self._queries),
        )


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
    meant, watched = target_of(target), list[PairWatch]()

    def check_and_watch(experiment: Experiment) -> None:
        require_judged(experiment.dataset, "--until-decided")
        require_all_judged(experiment.dataset, "--until-decided")
        check(experiment)
        total = len(experiment.counted) if meant is Target.SPLIT else None
        scale = scale_to_bet_on(experiment.metrics[0])
        _check_independent(experiment.dataset, meant)
        watched.append(PairWatch(pairs_of(experiment.names, baseline), scale, margin, total))

    once = asking_once(protocol or Protocol())
    experiments = prepare_several(retrievers, datasets, check_and_watch, protocol=once, **options)
    return [
        experiment.ending(partial(Asking, meant, pairs))
        for experiment, pairs in zip(experiments, watched, strict=True)
    ]


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
