"""Who wins which queries, and how far a perfect choice or fusion of the winners could go.

A partition puts each query into exactly one group, by who wins it: one of two systems, one of the
legs of a hybrid, or legs against fusion. Its counts add up to all queries. What the legs do and
what fusion makes of it are two partitions, independent of each other: a query won by one leg may be
lost or gained by fusion.

The ceiling is that of two oracles that know the judgements. The *perfect choice* takes for each
query the leg that is best by the metric. The *perfect fusion* takes all documents that any leg
returned, however deep, and puts those with the highest grades first. No fusion that only reorders
what the legs return can be above the second, and no router that picks one leg above the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import distinct_names
from retrieval_bench.core.types import EMPTY
from retrieval_bench.metrics import Judgements, Metric, judge
from retrieval_bench.metrics.judged import NONE, Hits, JudgedRun, ordinals
from retrieval_bench.runs.evaluation import Mean, averaged
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


Positions = NDArray[np.int32]

_SMALLEST_DISTANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Ceiling(Documented):
    """One metric of the legs, of their fusion and of the two oracles.

    Attributes:
        metric: by which.
        legs: the mean of each leg, cut like the fused ranking.
        fused: the mean of the fused ranking; None where there is none.
        choice: the mean of the best leg of each query.
        fusion: the mean of the ideal order of all documents of all legs.
    """

    KEYS = (
        "legs best_leg fused perfect_choice=choice perfect_fusion=fusion realised_of_choice "
        "realised_of_fusion"
    )

    metric: Metric
    legs: Mapping[str, Mean]
    fused: Mean | None
    choice: Mean
    fusion: Mean

    @property
    def best_leg(self) -> str:
        """The leg with the highest mean, the first of equal ones."""
        return max(self.legs, key=lambda leg: self.legs[leg].mean)

    def realised(self, oracle: Mean) -> float | None:
        """How much of the distance between the best leg and ``oracle`` the fused ranking covers.

        0 = no better than the best leg, 1 = as good as the oracle, below 0 = worse than the best
        leg. None without a fused ranking or without a distance.
        """
        if self.fused is None:
            return None
        best = self.legs[self.best_leg].mean
        distance = oracle.mean - best
        if not distance > _SMALLEST_DISTANCE:  # also NaN
            return None
        return (self.fused.mean - best) / distance

    @property
    def realised_of_choice(self) -> float | None:
        """:meth:`realised` of the best leg of each query."""
        return self.realised(self.choice)

    @property
    def realised_of_fusion(self) -> float | None:
        """:meth:`realised` of the ideal order."""
        return self.realised(self.fusion)


def ceilings(
    legs: Mapping[str, Positions],
    fused: Positions | None,
    doc_ids: Sequence[str],
    query_ids: Sequence[str],
    judgements: Judgements,
    *,
    metrics: Sequence[Metric],
    k: int,
    clusters: Mapping[str, str] = EMPTY,
) -> tuple[Ceiling, ...]:
    """The ceiling by each of ``metrics``; intervals as everywhere, all from the same resamples.

    Args:
        legs: at least one; name -> (queries, depth) positions in ``doc_ids``, best first, -1 behind
            the last, no document twice in a row.
        fused: likewise, up to ``k`` wide.
        doc_ids: distinct.
        query_ids: one for each row.
        k: legs and oracles are cut there before they are scored.
        clusters: query -> label of its cluster.
    """
    runs = [judge(lists[:, :k], doc_ids, query_ids, judgements) for lists in legs.values()]
    ideal = perfect_fusion(list(legs.values()), doc_ids, query_ids, judgements, k)
    others = [ideal]
    if fused is not None:
        others.append(judge(fused[:, :k], doc_ids, query_ids, judgements))
    columns: list[NDArray[np.float64]] = []
    for metric in metrics:
        of_legs = [metric.compute(run) for run in runs]
        columns += [*of_legs, np.maximum.reduce(of_legs), *(metric.compute(run) for run in others)]
    width = len(runs) + 1 + len(others)
    repeated = [metric for metric in metrics for _ in range(width)]
    means: tuple[Mean, ...] = ()
    if columns:
        means = averaged(query_ids, repeated, np.column_stack(columns), clusters=clusters).means
    found = []
    for at, metric in enumerate(metrics):
        own = means[at * width : (at + 1) * width]
        found.append(
            Ceiling(
                metric,
                dict(zip(legs, own, strict=False)),
                None if fused is None else own[len(runs) + 2],
                own[len(runs)],
                own[len(runs) + 1],
            )
        )
    return tuple(found)


def perfect_fusion(
    lists: Sequence[Positions],
    doc_ids: Sequence[str],
    query_ids: Sequence[str],
    judgements: Judgements,
    k: int,
) -> JudgedRun:
    """All documents of ``lists`` as one ranking for each query: highest grades first, documents
    without a judgement last, cut at ``k``."""
    pool = _pooled(lists)
    run = judge(pool, doc_ids, query_ids, judgements)
    order = np.lexsort((-run.judged.grade, run.judged.row))
    row, grade = run.judged.row[order], run.judged.grade[order]
    rank = ordinals(row, len(query_ids))
    hits = Hits(row, rank, grade, np.zeros(len(row), dtype=np.bool_))
    return JudgedRun(hits, run.lengths, run.ideal, run.n_judged, hits).as_if(k)


def _pooled(lists: Sequence[Positions]) -> Positions:
    """Each document of a row once, in no order that matters; -1 elsewhere."""
    pool = np.sort(np.hstack(lists), axis=1)
    pool[:, 1:][pool[:, 1:] == pool[:, :-1]] = NONE
    return pool
