"""Percentiles that say how well they are known; none that the sample cannot support.

Two kinds of sample, two intervals. Independent values (one for each query) get the interval from
order statistics. Calls are no independent values: a fixed set of queries comes back in every
round, and all calls of a round, or of a launch, share the state of the machine. Their interval
takes rounds, or launches, as what was repeated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, counted

FEWEST_ROUNDS = 4
"""Rounds from which their differences say how far a percentile moves."""

MOST_ROUNDS = 10
"""More rounds than these are taken in groups of neighbours: the state of a machine that drifts is
shared by more than one round, and the more rounds, the more of them."""

FEWEST_LAUNCHES = 5
"""Launches from which the interval holds for any launch of the same code."""

PARTS = 6
"""Equal parts that a run of fewer than :data:`FEWEST_ROUNDS` rounds is cut into, at least."""

_TAIL = 0.025
_Z = 1.959963984540054

_FLOOR = 0.75
"""Least width of an interval, of what it would be if rounds did not differ: few rounds may agree by
chance, and that is no precision. From simulation: 1 covers 98 % where rounds are all alike, 0 lets
intervals of no width through (python -m tests.benchmarks.coverage)."""

_LEAST_CALLS = 2
"""Least width to either side, in calls. Where a percentile falls between two queries (the 99th of
100 or 300), every round has the same calls below it, and the gap between the two is what is not
known."""


class Needs(NamedTuple):
    """Numbers of values: for a finite 95 % interval, to be printed, to take part in a gate."""

    finite: int
    printed: int
    gated: int


NEEDS = {50.0: Needs(6, 30, 100), 95.0: Needs(72, 200, 1_000), 99.0: Needs(368, 1_000, 5_000)}
"""The measuring protocol's own three rows; :func:`needs` has the rule for all others."""


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile with its 95 % interval, in the unit of the values.

    Attributes:
        level: 0 to 100, both excluded.
        value: None when ``reason`` says how many more values it takes.
        ci95: None with ``value``.
        gates: the sample is large enough to decide whether something got slower.
    """

    level: float
    value: float | None
    ci95: tuple[float, float] | None
    reason: str | None = None
    gates: bool = False


def needs(level: float) -> Needs:
    """Return how many values the ``level``-th percentile takes.

    A row of :data:`NEEDS`, or by the rule that gives the same rows: finite where the smallest and
    the largest value enclose the percentile with 97.5 % each; printed when 10 values are expected
    beyond it, and 30 in all; gated with 50 beyond it.

    Raises:
        ConfigError: no such percentile.
    """
    if not 0 < level < 100:
        raise ConfigError(
            f"percentile {level:g}",
            accepted="a number above 0 and below 100, such as 50, 95 or 99.9",
            fix="correct the percentile; for the extremes read min and max",
        )
    if level in NEEDS:
        return NEEDS[level]
    beyond = min(level, 100 - level) / 100
    finite = math.ceil(math.log(_TAIL) / math.log1p(-beyond))
    return Needs(finite, max(30, _ceil(10 / beyond)), _ceil(50 / beyond))


def _ceil(ratio: float) -> int:
    return math.ceil(round(ratio, 6))  # 10 / (1 - 0.999) is 10,000 and a rounding error


def quantiles(
    values: NDArray[Any], shares: float | Sequence[float], *, observed: bool = False, **of: Any
) -> Any:
    """The values that ``shares`` (0 to 1) of ``values`` lie below, without intervals, by linear
    interpolation (Hyndman and Fan's type 7); ``observed``: a value that occurs, the next above.

    Args:
        **of: ``axis``; the shape is that of numpy's.
    """
    return np.quantile(values, shares, method="higher" if observed else "linear", **of)


def percentile(values: NDArray[np.float64], level: float, noun: str = "call") -> Percentile:
    """The ``level``-th percentile of independent ``values`` by linear interpolation (Hyndman and
    Fan's type 7), with the distribution-free interval from order statistics.

    The interval covers the percentile of the population that the values were drawn from with at
    least 95 %, whatever the shape of the distribution. ``noun`` names a value in the reason why a
    sample is too small. Source: Hyndman & Fan (1996); David & Nagaraja (2003), ch. 7.
    """
    n = len(values)
    reason = _too_few(n, level, noun)
    if reason:
        return Percentile(level, None, None, reason)
    ordered = np.sort(values)
    value = float(quantiles(ordered, level / 100))
    ends = _order_statistics(ordered, level / 100)
    return Percentile(level, value, ends, gates=n >= needs(level).gated)


def _too_few(n: int, level: float, noun: str) -> str | None:
    needed = needs(level).printed
    if n >= needed:
        return None
    return f"{counted(n, noun)}, p{level:g} needs {needed:,}: {counted(needed - n, f'more {noun}')}"


def _order_statistics(ordered: NDArray[np.float64], p: float) -> tuple[float, float] | None:
    from scipy.special import bdtr

    n = len(ordered)
    below = bdtr(np.arange(n + 1), n, p)  # P(at most i of n values lie below the percentile)
    lower = int(np.searchsorted(below, _TAIL, side="right")) - 1
    upper = int(np.searchsorted(below, 1 - _TAIL, side="left"))
    if lower < 0 or upper >= n:
        return None
    return float(ordered[lower]), float(ordered[upper])


def medians(values: NDArray[np.float64], group: NDArray[np.integer]) -> NDArray[np.float64]:
    """The median of each group that occurs, by rising number of the group."""
    order = np.lexsort((values, group))
    ordered, group = values[order], group[order]
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]][: len(group)])
    sizes = np.diff(starts, append=len(group))
    return np.asarray((ordered[starts + (sizes - 1) // 2] + ordered[starts + sizes // 2]) / 2)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Calls that share the state of the machine.

    Attributes:
        label: for each call the number of its cluster, 0 to ``n`` - 1.
        n: number of clusters.
        words: all of them in words, such as "7 rounds".
        repeated: each of them holds the whole set of queries again.
    """

    label: NDArray[np.int64]
    n: int
    words: str
    repeated: bool = True


def clusters(
    round_: NDArray[np.int32], position: NDArray[np.int32], launch: NDArray[np.int32]
) -> Clusters:
    """Choose the units that a measurement repeated: launches where there are at least five,
    otherwise rounds where there are at least four (groups of neighbouring ones where there are more
    than ten), otherwise equal parts of the rounds.

    Args:
        round_: for each call its round within its launch.
        position: its place within the round.
        launch: its process.
    """
    starts, by_launch = np.unique(launch, return_inverse=True)
    if len(starts) >= FEWEST_LAUNCHES:
        return Clusters(by_launch, len(starts), f"{len(starts)} launches")
    by_round, n = _numbered(by_launch, round_)
    if n > MOST_ROUNDS:
        size = -(-n // MOST_ROUNDS)
        groups, n = _numbered(by_launch, round_ // size)
        return Clusters(groups, n, f"{n} groups of {size} rounds")
    if n >= FEWEST_ROUNDS or n == 0:
        return Clusters(by_round, n, f"{n} rounds")
    parts = -(-PARTS // n)
    length = np.zeros(n, dtype=np.int64)
    np.maximum.at(length, by_round, position.astype(np.int64) + 1)
    by_part, n = _numbered(by_round, position.astype(np.int64) * parts // length[by_round])
    return Clusters(by_part, n, "parts of the rounds", repeated=False)


def _numbered(
    outer: NDArray[np.int64], inner: NDArray[np.integer]
) -> tuple[NDArray[np.int64], int]:
    """The pairs of ``outer`` and ``inner`` numbered by rising value, and how many there are."""
    width = int(inner.max(initial=0)) + 1
    pairs, label = np.unique(outer * width + inner, return_inverse=True)
    return label, len(pairs)


class CallSample:
    """Calls of a fixed set of queries, ready for any percentile of them.

    Args:
        values: one for each call, any order.
        query: the query of each call, from 0.
        groups: the clusters of the calls.
    """

    def __init__(
        self, values: NDArray[np.float64], query: NDArray[np.int32], groups: Clusters
    ) -> None:
        self.values = values
        self.query = query
        self.groups = groups
        self.ordered = np.sort(values)
        self.visits = np.bincount(query)

    def percentile(self, level: float) -> Percentile:
        """The ``level``-th percentile over all calls (Hyndman and Fan's type 7) with an interval
        that knows rounds and launches.

        What the interval covers: the percentile of one call, its query drawn from *these* queries,
        under the same conditions; with fewer than five launches, for *these* launches. Queries are
        not drawn anew, so that it does not widen with how much they differ.

        How: the share of calls below the percentile is a mean over clusters, each of which holds
        all queries. Its standard error comes from what each cluster has more or less than its
        queries have on average, with Student's t for so few clusters; clusters that agree by chance
        do not make it arbitrarily narrow. What drifts more slowly than the whole measurement takes
        cannot show in it. The ends of the interval for the share, those of the beta
        distribution with this spread, are read off the ordered calls. With fewer than four rounds
        parts of the rounds are the clusters: such an interval does not show how far rounds differ,
        and never gates.

        Source: Woodruff (1952), JASA 47:635-646, for the inversion; the standard error is that of
        a stratified cluster sample, Cochran (1977), Sampling Techniques, ch. 9.
        """
        n = len(self.ordered)
        reason = _too_few(n, level, "call")
        if reason:
            return Percentile(level, None, None, reason)
        value = float(quantiles(self.ordered, level / 100))
        ends = self._ends(value, level / 100)
        return Percentile(
            level, value, ends, gates=self.groups.repeated and n >= needs(level).gated
        )

    def _ends(self, value: float, p: float) -> tuple[float, float]:
        from scipy.special import betaincinv

        n = len(self.ordered)
        spread = max(self._half_width(self.values <= value), _LEAST_CALLS / n) / _Z
        size = max(p * (1 - p) / spread**2 - 1, 1e-6)
        shares = betaincinv(p * size, (1 - p) * size, np.array([_TAIL, 1 - _TAIL]))
        # The i-th call, from 0, stands for the share (i + 0.5) / n; beyond the last there is none.
        lower, upper = np.interp(n * shares - 0.5, np.arange(n), self.ordered)
        return min(float(lower), value), max(float(upper), value)

    def _half_width(self, below: NDArray[np.bool_]) -> float:
        """Return half the width of the 95 % interval of the share of calls for which ``below``
        holds."""
        from scipy.special import stdtrit

        n, groups = len(below), self.groups
        if groups.repeated:
            share = np.bincount(self.query, weights=below) / np.maximum(self.visits, 1)
            excess = below - share[self.query]
            alone = float(excess @ excess) / max(1, n - int(np.count_nonzero(self.visits)))
        else:  # the parts hold different queries
            excess = below - below.mean()
            alone = float(excess @ excess) / (n - 1)
        if groups.n < 2:
            return _Z * math.sqrt(alone / n)
        sums = np.bincount(groups.label, weights=excess)
        together = float(sums @ sums) / n * groups.n / (groups.n - 1)
        t = float(stdtrit(groups.n - 1, 1 - _TAIL))
        return max(t * math.sqrt(together / n), _FLOOR * _Z * math.sqrt(alone / n))
