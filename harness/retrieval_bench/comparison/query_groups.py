"""Groups of queries by who wins them: of two systems, of the legs of a hybrid, or legs and fusion.

A partition puts each query into exactly one group, so its counts add up to all queries. What the
legs do and what fusion makes of it are two partitions, independent of each other: a query won by
one leg may be lost or gained by fusion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.metrics import Metric

Values = NDArray[np.float64]

SAME = 1e-9
"""Values of a metric that differ by no more are equal: sums may be rounded in another order."""

LOST_BY_FUSION, GAINED_BY_FUSION = "lost by fusion", "gained by fusion"


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """One group of a partition.

    Attributes:
        means: one for each of ``Partition.columns``, NaN where the group is empty.
        gain: mean of ``Partition.gain``, NaN likewise.
    """

    label: str
    n: int
    means: tuple[float, ...]
    gain: float


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Groups of queries; each query is in exactly one, some groups may be empty.

    Attributes:
        kind: ``outcome`` (which of two runs is better), ``best leg`` (which leg of a hybrid is best
            alone) or ``fusion`` (what fusion made of the best leg).
        of: the run that it speaks of, two for legs that they share; for ``outcome`` the second.
        labels: of the groups, in the order to show them.
        member: int64 (queries,), place in ``labels``.
        columns: names of the systems whose values explain the groups.
        values: float64 (queries, columns).
        gain: float64 (queries,): second run minus first; (last) fused ranking minus best leg.
    """

    kind: Literal["outcome", "best leg", "fusion"]
    of: str
    labels: tuple[str, ...]
    member: NDArray[np.int64]
    columns: tuple[str, ...]
    values: Values
    gain: Values

    def groups(self, metric: Metric) -> list[QueryGroup]:
        """The groups with their sizes and means, the empty ones included."""
        return [
            self._group(label, self.member == at, metric) for at, label in enumerate(self.labels)
        ]

    def whole(self, metric: Metric) -> QueryGroup:
        """All queries as one group."""
        return self._group("all", np.ones(len(self.member), dtype=np.bool_), metric)

    def _group(self, label: str, inside: NDArray[np.bool_], metric: Metric) -> QueryGroup:
        n = int(inside.sum())
        if not n:
            nan = float("nan")
            return QueryGroup(label, 0, (nan,) * len(self.columns), nan)
        columns = self.values[inside].T
        means = (metric.from_additive(metric.additive(column).mean()) for column in columns)
        return QueryGroup(label, n, tuple(map(float, means)), float(self.gain[inside].mean()))


def outcome(names: Sequence[str], values: Values, floor: Values) -> Partition:
    """Which of two systems is better.

    Args:
        names: two.
        values: (queries, 2).
        floor: (queries,), the value of an empty ranking: no more than that is a miss.
    """
    gain = values[:, 1] - values[:, 0]
    sign = _sign(gain)
    miss = (values <= floor[:, None] + SAME).all(axis=1)
    member = np.select([miss, sign < 0, sign > 0], [3, 0, 1], 2)
    labels = (f"won by {names[0]}", f"won by {names[1]}", "tie", "both miss")
    return Partition("outcome", names[1], labels, member, tuple(names), values, gain)


def best_leg(
    runs: Mapping[str, Values], legs: Sequence[str], of_legs: Values, floor: Values
) -> Partition:
    """Which leg is best alone.

    Args:
        runs: (queries,) values of the fused rankings of these legs, by name; one, or more where
            hybrids share them.
        of_legs: (queries, legs).
        floor: as in :func:`outcome`.
    """
    best, fused = of_legs.max(axis=1), list(runs.values())
    miss = (of_legs <= floor[:, None] + SAME).all(axis=1)
    wins = of_legs >= best[:, None] - SAME
    n = len(legs)
    member = np.select([miss, wins.sum(axis=1) > 1], [n + 1, n], wins.argmax(axis=1))
    labels = (*(f"won by {leg}" for leg in legs), "legs tie", "every leg misses")
    values = np.column_stack([of_legs, *fused])
    of = " and ".join(runs)
    return Partition("best leg", of, labels, member, (*legs, *runs), values, fused[-1] - best)


def by_fusion(run: str, of_legs: Values, fused: Values, floor: Values) -> Partition:
    """What fusion made of the best leg of each query.

    Args:
        of_legs: (queries, legs).
        fused: (queries,).
        floor: as in :func:`outcome`.
    """
    best = of_legs.max(axis=1)
    gain = fused - best
    sign = _sign(gain)
    miss = np.maximum(best, fused) <= floor + SAME
    member = np.select([miss, sign < 0, sign > 0], [3, 0, 2], 1)
    labels = (LOST_BY_FUSION, "as its best leg", GAINED_BY_FUSION, "all miss")
    values = np.column_stack([best, fused])
    return Partition("fusion", run, labels, member, ("best leg", run), values, gain)


def _sign(difference: Values) -> NDArray[np.int64]:
    return np.where(np.abs(difference) <= SAME, 0, np.sign(difference)).astype(np.int64)
