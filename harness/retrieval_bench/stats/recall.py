"""How much of what is right is found: the mean over queries, and its tail, for a high mean hides
queries that find nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.figures import share_text
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import HIT, SHARE, mean_interval

TAIL = 0.9
"""The recall of one query from which on it is served well, unless another is asked for."""

_ROUNDING = 1e-9
"""9 of 10 are a recall of .9, however they are divided."""


def check_tail(tail: float) -> None:
    """Check that a recall of one query can be asked for.

    Raises:
        ConfigError: it is none.
    """
    if not 0 < tail <= 1:
        raise ConfigError(
            f"--tail {tail:g}",
            accepted="the recall of one query, above 0 and at most 1",
            fix="such as --tail 0.9",
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """The recall of a search, over queries for which there is something to find.

    Attributes:
        mean: of the queries; None without one.
        ci95: its interval; None of fewer than two queries or clusters.
        tail: the share of queries whose own recall is at least that of the tail.
        tail_ci95: its interval.
    """

    mean: float | None
    ci95: tuple[float, float] | None
    tail: float | None
    tail_ci95: tuple[float, float] | None

    def text(self, k: int) -> str:
        """Say what is found of the first ``k`` of an exact search; the tail is :data:`TAIL`."""
        return (
            f"{share_text(self.mean, self.ci95)} of the exact top {k}, the mean over queries; "
            f"{share_text(self.tail, self.tail_ci95)} of queries find {TAIL:g} of it"
        )

    @classmethod
    def of(
        cls, recalls: Sequence[float], least: float = TAIL, clusters: Clusters | None = None
    ) -> Recall:
        """Average the recalls of queries, and count those of ``least`` and more.

        Args:
            clusters: of the queries, where these are not independent.
        """
        known = np.asarray(recalls, dtype=np.float64)
        if not len(known):
            return cls(None, None, None, None)
        served = (known >= least - _ROUNDING).astype(np.float64)
        return cls(
            float(known.mean()),
            mean_interval(known, SHARE, clusters=clusters),
            float(served.mean()),
            mean_interval(served, HIT, clusters=clusters),
        )
