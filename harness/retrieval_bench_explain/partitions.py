"""Who wins which queries.

A partition puts each query into exactly one group, by who wins it: one of two systems, one of the
legs of a hybrid, or legs against fusion. Its counts add up to all queries. What the legs do and
what fusion makes of it are two partitions, independent of each other: a query won by one leg may be
lost or gained by fusion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import distinct_names
from retrieval_bench.metrics import Metric
from retrieval_bench.stats.randomization import ROUNDING, signs

Values = NDArray[np.float64]

LOST_BY_FUSION, GAINED_BY_FUSION = "lost by fusion", "gained by fusion"


@dataclass(frozen=True, slots=True)
class Gap:
    """One system beside another, over queries.

    Attributes:
        one: the system that is spoken of.
        other: the one beside it.
        difference: mean of ``one`` minus mean of ``other``.
        higher: queries on which ``one`` is above.
        lower: queries on which it is below.
    """

    one: str
    other: str
    difference: float
    higher: int
    lower: int

    @classmethod
    def of(cls, names: Sequence[str], one: Values, other: Values, metric: Metric) -> Gap:
        """From their values of ``metric``, query by query."""
        sign, difference = signs(one - other), _difference(metric, one, other) or 0.0
        return cls(names[0], names[1], difference, int((sign > 0).sum()), int((sign < 0).sum()))


def _mean(metric: Metric, values: Values) -> float:
    return float(metric.from_additive(metric.additive(values).mean()))


def _difference(metric: Metric, later: Values, before: Values) -> float | None:
    """Mean of ``later`` minus mean of ``before``; None of no query."""
    if not len(later):
        return None
    if metric.geometric:  # the difference of two such means is no mean of differences
        return _mean(metric, later) - _mean(metric, before)
    return float((later - before).mean())


@dataclass(frozen=True, slots=True)
class QueryGroup(Documented):
    """Queries with the same label.

    Attributes:
        label: of the group.
        n: queries.
        means: by system; None of none.
        gain: mean of the difference; None of none.
    """

    KEYS = "group=label n means difference=gain"

    label: str
    n: int
    means: Mapping[str, float | None]
    gain: float | None


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
        later, before: float64 (queries,), what is held against what: the second run and the first;
            the (last) fused ranking and the best leg.
    """

    kind: Literal["outcome", "best leg", "fusion"]
    of: str
    labels: tuple[str, ...]
    member: NDArray[np.int64]
    columns: tuple[str, ...]
    values: Values
    later: Values
    before: Values

    @property
    def gain(self) -> Values:
        """float64 (queries,): ``later`` minus ``before``."""
        return self.later - self.before

    def groups(self, metric: Metric) -> list[QueryGroup]:
        """The groups with their sizes and means, the empty ones included."""
        return [
            self._group(label, self.member == at, metric) for at, label in enumerate(self.labels)
        ]

    def whole(self, metric: Metric) -> QueryGroup:
        """All queries as one group."""
        return self._group("all", np.ones(len(self.member), dtype=np.bool_), metric)

    def _group(self, label: str, inside: NDArray[np.bool_], metric: Metric) -> QueryGroup:
        n, names = int(inside.sum()), distinct_names(self.columns)
        if not n:
            return QueryGroup(label, 0, dict.fromkeys(names), None)
        columns = zip(names, self.values[inside].T, strict=True)
        means = {name: _mean(metric, column) for name, column in columns}
        gain = _difference(metric, self.later[inside], self.before[inside])
        return QueryGroup(label, n, means, gain)


def outcome(names: Sequence[str], values: Values, floor: Values) -> Partition:
    """Which of two systems is better.

    Args:
        names: two.
        values: (queries, 2).
        floor: (queries,), the value of an empty ranking: no more than that is a miss.
    """
    first, second = values.T
    sign = signs(second - first)
    miss = (values <= floor[:, None] + ROUNDING).all(axis=1)
    member = np.select([miss, sign < 0, sign > 0], [3, 0, 1], 2)
    labels = (f"won by {names[0]}", f"won by {names[1]}", "tie", "both miss")
    return Partition("outcome", names[1], labels, member, tuple(names), values, second, first)


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
    miss = (of_legs <= floor[:, None] + ROUNDING).all(axis=1)
    wins = of_legs >= best[:, None] - ROUNDING
    n = len(legs)
    member = np.select([miss, wins.sum(axis=1) > 1], [n + 1, n], wins.argmax(axis=1))
    labels = (*(f"won by {leg}" for leg in legs), "legs tie", "every leg misses")
    values = np.column_stack([of_legs, *fused])
    of = " and ".join(runs)
    return Partition("best leg", of, labels, member, (*legs, *runs), values, fused[-1], best)


def by_fusion(
    run: str, of_legs: Values, fused: Values, floor: Values, *, by: str = "fusion"
) -> Partition:
    """What fusion, or another step, made of the best leg of each query.

    Args:
        by: which of them, in a word.
        of_legs: (queries, legs).
        fused: (queries,).
        floor: as in :func:`outcome`.
    """
    best = of_legs.max(axis=1)
    sign = signs(fused - best)
    miss = np.maximum(best, fused) <= floor + ROUNDING
    member = np.select([miss, sign < 0, sign > 0], [3, 0, 2], 1)
    best_leg = "best leg" if by == "fusion" else "best list before"
    labels = (f"lost by {by}", f"as its {best_leg}", f"gained by {by}", "all miss")
    values = np.column_stack([best, fused])
    return Partition("fusion", run, labels, member, (best_leg, run), values, fused, best)
