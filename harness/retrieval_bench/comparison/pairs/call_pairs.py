"""Two systems' calls in pairs, and estimators of how many times as long one takes as the other.

Calls that were made beside each other share the state of the machine, which therefore cancels in
their ratio. The module knows no run and no verdict.

Source: Bulej et al. (2020), Duet Benchmarking, for paired calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.measure.calls import Timings
from retrieval_bench.stats.percentiles import Clusters, clusters, medians

TRIM = 0.2
"""Share of the queries that is left out at either end."""

STALL = 2.0
"""Standard deviations from what is usual for its query, at which a call counts for the tail."""

_SD_OF_MAD = 1.4826
"""The standard deviation of normal values over the median of their distances from the middle."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two systems' calls of the same query in the same round of the same launch.

    Attributes:
        log_a, log_b: natural logarithm of nanoseconds; arrays of one length, by launch, round and
            query.
        launch, round, position, query: as in :class:`Timings`; the position is that of a.
        failed: how many pairs are not in them because a call failed.
    """

    log_a: NDArray[np.float64]
    log_b: NDArray[np.float64]
    launch: NDArray[np.int32]
    round: NDArray[np.int32]
    position: NDArray[np.int32]
    query: NDArray[np.int32]
    failed: int = 0

    @property
    def log_ratio(self) -> NDArray[np.float64]:
        """Time of b over time of a."""
        return np.asarray(self.log_b - self.log_a)

    @property
    def launches(self) -> int:
        """The number of processes."""
        return len(np.unique(self.launch))

    @classmethod
    def joined(cls, launches: Sequence[Pairs]) -> Pairs:
        """Join the pairs of several launches, which are numbered in the given order."""
        arrays = (
            np.concatenate([getattr(launch, name) for launch in launches])
            for name in ("log_a", "log_b", "round", "position", "query")
        )
        log_a, log_b, round_, position, query = arrays
        numbers = np.arange(len(launches), dtype=np.int32)
        launch = np.repeat(numbers, [len(launch.query) for launch in launches])
        return cls(
            log_a, log_b, launch, round_, position, query, sum(launch.failed for launch in launches)
        )

    def take(self, which: NDArray[np.bool_]) -> Pairs:
        """Some of them."""
        return Pairs(
            self.log_a[which],
            self.log_b[which],
            self.launch[which],
            self.round[which],
            self.position[which],
            self.query[which],
            self.failed,
        )


def log_ratios(a: Timings, b: Timings) -> Pairs:
    """The pairs of which neither call failed.

    A call that the other side did not make is in no pair: a failed query is not asked again, and a
    run may have been interrupted.
    """
    shape = [
        int(max(of_a.max(initial=0), of_b.max(initial=0))) + 1
        for of_a, of_b in zip(_place(a), _place(b), strict=True)
    ]
    _, at_a, at_b = np.intersect1d(
        np.ravel_multi_index(_place(a), shape),
        np.ravel_multi_index(_place(b), shape),
        return_indices=True,
    )
    fine = ~(a.failed[at_a] | b.failed[at_b])
    at_a, at_b = at_a[fine], at_b[fine]
    return Pairs(
        np.log(np.maximum(a.wall_ns[at_a], 1)),
        np.log(np.maximum(b.wall_ns[at_b], 1)),
        a.launch[at_a],
        a.round[at_a],
        a.position[at_a],
        a.query[at_a],
        int(np.count_nonzero(~fine)),
    )


def _place(timings: Timings) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    return timings.launch, timings.round, timings.query


def whole_clusters(pairs: Pairs) -> tuple[Pairs, Clusters]:
    """``pairs``, at least one, with what was repeated in them (see
    :func:`.clusters`); without the clusters that an interruption left with under
    half of the queries, which may be another mix."""
    while True:
        groups = clusters(pairs.round, pairs.position, pairs.launch)
        width = int(pairs.query.max()) + 1
        present = np.unique(groups.label * width + pairs.query) // width
        queries = np.bincount(present, minlength=groups.n)
        thin = 2 * queries < queries.max()
        if not thin.any():
            return pairs, groups
        pairs = pairs.take(~thin[groups.label])


def typical_thetas(pairs: Pairs, groups: Clusters) -> NDArray[np.float64]:
    """:func:`theta` of each cluster."""
    ratios = pairs.log_ratio
    return np.array(
        [theta(ratios[groups.label == i], pairs.query[groups.label == i]) for i in range(groups.n)]
    )


def tail_thetas(pairs: Pairs, level: float = 95.0) -> NDArray[np.float64]:
    """For each launch the log ratio of the two sides' ``level``-th percentile over queries, each
    by the median of its calls, once :func:`stalls_cut` has been there."""
    pairs = stalls_cut(pairs)
    launches = np.unique(pairs.launch)
    return np.array([_tail_theta(pairs.take(pairs.launch == launch), level) for launch in launches])


def _tail_theta(pairs: Pairs, level: float) -> float:
    ends = [
        harrell_davis(np.exp(medians(log, pairs.query)), level)
        for log in (pairs.log_a, pairs.log_b)
    ]
    return math.log(ends[1] / ends[0])


def stalls_cut(pairs: Pairs) -> Pairs:
    """Cut stalls: count calls that took far longer, or shorter, than is usual for their query on
    their side as :data:`STALL` standard deviations from there.

    The machine stalls some calls. Among a few calls of each query these would be the slow queries,
    and one launch's 95th percentile a matter of luck. What is usual is the query's median over all
    launches times the pace of the launch on this side: how much longer its calls take in the
    middle, so that launches stay as different as they are. The standard deviation is that of the
    query's own calls, and at least that of all, by the median of distances. Source: Tukey &
    McLaughlin (1963) for winsorising; decision record 0036.
    """
    _, query = np.unique(pairs.query, return_inverse=True)
    _, launch = np.unique(pairs.launch, return_inverse=True)
    usual = []
    for log in (pairs.log_a, pairs.log_b):
        of_query = medians(log, query)[query]
        usual.append(of_query + medians(log - of_query, launch)[launch])
    away = np.stack([pairs.log_a - usual[0], pairs.log_b - usual[1]])
    distance = np.abs(away)
    own = medians(distance.ravel(), np.tile(query, 2))[query]
    most = STALL * _SD_OF_MAD * np.maximum(own, np.median(distance))
    cut = np.clip(away, -most, most)
    return replace(pairs, log_a=usual[0] + cut[0], log_b=usual[1] + cut[1])


def theta(log_ratio: NDArray[np.float64], query: NDArray[np.integer]) -> float:
    """The typical log ratio: each query by the median of its pairs, then the trimmed mean."""
    return trimmed_mean(medians(log_ratio, query))


def trimmed_mean(values: NDArray[np.float64], cut: float = TRIM) -> float:
    """Mean of what is left without the share ``cut`` of the values, rounded down, at either end.

    Source: Wilcox (2012), Introduction to Robust Estimation and Hypothesis Testing, ch. 3.
    """
    n = len(values)
    out = int(cut * n)
    return float(np.sort(values)[out : n - out].mean())


def harrell_davis(values: NDArray[np.float64], level: float) -> float:
    """The ``level``-th percentile as a weighted mean of all ordered values, steadier than one or
    two of them. Source: Harrell & Davis (1982), Biometrika 69:635-640."""
    return float(_shares(len(values), level) @ np.sort(values))


@lru_cache(maxsize=64)
def _shares(n: int, level: float) -> NDArray[np.float64]:
    from scipy.special import betainc

    p = level / 100
    return np.diff(betainc((n + 1) * p, (n + 1) * (1 - p), np.arange(n + 1) / n))
