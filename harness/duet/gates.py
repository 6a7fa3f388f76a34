"""What a duet looks at: three figures, each a log ratio of the two sides in every launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.call_pairs import Pairs, medians, tail_theta, theta

SLOWEST = 0.2
"""Share of the queries that are the slow ones."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One figure.

    Attributes:
        name: as in a policy.
        about: what it is, in words.
        delta: slower by no more than this counts as no difference.
        limit: slower by less than this is acceptable, where no policy says otherwise.
        queries: fewest queries it can be told from.
        of: the log ratio of one launch.
    """

    name: str
    about: str
    delta: float
    limit: float
    queries: int
    of: Callable[[Pairs], float]


def _typical(pairs: Pairs) -> float:
    return theta(pairs.log_ratio, pairs.query)


def _slowest(pairs: Pairs) -> float:
    """The typical log ratio of the queries that take longest on both sides together: neither side
    has a say of its own in which they are."""
    together = medians(pairs.log_a + pairs.log_b, pairs.query)
    queries = np.unique(pairs.query)
    n = max(1, int(SLOWEST * len(queries)))
    slow = np.isin(pairs.query, queries[np.argsort(-together, kind="stable")[:n]])
    return theta(pairs.log_ratio[slow], pairs.query[slow])


GATES = {
    gate.name: gate
    for gate in (
        Gate("p50", "usual queries", 0.01, 0.05, 10, _typical),
        Gate("p95", "95th percentile over queries", 0.03, 0.10, 200, tail_theta),
        Gate("slowest-fifth", "the slowest fifth of the queries", 0.02, 0.10, 50, _slowest),
    )
}
"""By name. The figures delta are those of the measuring protocol, ``harness/docs/measuring.md``."""
