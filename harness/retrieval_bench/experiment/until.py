"""Ask no more than needed: each query once of every system, until somebody has seen enough."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from enum import StrEnum

from retrieval_bench.core.types import Ranking
from retrieval_bench.measure.calls import Measurement
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.runs.summary import UntilFacts


class Target(StrEnum):
    """Whose mean is meant."""

    SPLIT = "split"
    POPULATION = "population"


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


class Asking(typing.Protocol):
    """A measurement that ends when enough is known; the runner calls it after each query."""

    def __call__(self, at: int, rankings: Sequence[Ranking | None]) -> bool:
        """Return whether it is to end.

        Args:
            at: the number of the query.
            rankings: one for each system, None where it failed.
        """

    def whole_queries(self, measurement: Measurement) -> Measurement:
        """Leave out the query that not every system was asked, when it was interrupted there."""

    def facts(self) -> UntilFacts:
        """``until_decided`` of a summary."""
