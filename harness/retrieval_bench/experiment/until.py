"""Ask no more than needed: each query once of every system, until somebody has seen enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.types import Qrels, Query, Ranking
from retrieval_bench.measure.calls import NOT_RUN, Measurement
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.metrics import Judgements, Metric, judge_lists
from retrieval_bench.runs.summary import UntilFacts
from retrieval_bench.stats.sequential import Watch


class Target(StrEnum):
    """Whose mean is meant."""

    SPLIT = "split"
    POPULATION = "population"


def target_of(name: str) -> Target:
    """The target called ``name``.

    Raises:
        ConfigError: there is none.
    """
    if name not in list(Target):
        raise ConfigError(
            f"target {name!r}",
            where="--until-decided",
            accepted=f"{near_names(name, list(Target))}: the mean of this split, or of queries "
            "like these",
            fix="correct the name, or leave it out; systems stand before the option",
        )
    return Target(name)


def asking_once(protocol: Protocol) -> Protocol:
    """One call per query, the first of which counts; of ``protocol`` what a call may take, when the
    measurement ends in any case, and the seed of the order."""
    return Protocol(
        RANKINGS_ONLY,
        rounds=1,
        warm_up_s=0.0,
        timeout_s=protocol.timeout_s,
        max_s=protocol.max_s,
        max_cost=protocol.max_cost,
        threads=protocol.threads,
        seed=protocol.seed,
    )


@dataclass(frozen=True, slots=True)
class Until:
    """Rule by which a measurement ends.

    Attributes:
        target: whose mean is meant.
        watch: looks at each query.
    """

    target: Target
    watch: Watch


class Asking:
    """One measurement that ends when enough is known; called by the runner after each query.

    Attributes:
        asked: numbers of the queries that every system was asked, in this order.
        enough: whether it was ended.
    """

    def __init__(
        self, until: Until, queries: Sequence[Query], qrels: Qrels, metrics: Sequence[Metric]
    ) -> None:
        self._until, self._queries, self._metrics = until, queries, metrics
        self._judgements = Judgements(qrels)
        self.asked: list[int] = []
        self.enough = False

    def __call__(self, at: int, rankings: Sequence[Ranking | None]) -> bool:
        self.asked.append(at)
        query_id = self._queries[at].id
        values = np.array([self._values(query_id, ranking) for ranking in rankings])
        answered = np.array([ranking is not None for ranking in rankings])
        self.enough = self._until.watch(query_id, values, answered)
        return self.enough

    def _values(self, query_id: str, ranking: Ranking | None) -> list[float]:
        lists = {} if ranking is None else {query_id: list(ranking.doc_ids)}
        judged = judge_lists(lists, [query_id], self._judgements)
        return [float(metric.compute(judged)[0]) for metric in self._metrics]

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
            target=self._until.target.value,
            queries=len(self._queries),
            asked=len(self.asked),
            interrupted=not self.enough and len(self.asked) < len(self._queries),
        )
