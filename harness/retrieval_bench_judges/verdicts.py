"""Verdicts of people alone, and beside them of people and model together: the rules of ``compare``,
with another test where the switch lets the model count.

Which of the two decides a pair on a metric is fixed by :func:`.judge_counts` before Holm, which all
pairs enter together, each with its own p, at the table's one level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.comparison.fixed import resamples_for
from retrieval_bench.comparison.pairs.comparability import not_comparable
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.holm import Pair
from retrieval_bench.comparison.pairs.verdicts import PairJudge, Refusal, Rules
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import Scale
from retrieval_bench.stats.paired import PairedTests, paired_tests
from retrieval_bench.stats.power import Needed
from retrieval_bench_judges.estimate import (
    Bools,
    Estimate,
    both,
    centred,
    chosen,
    judge_counts,
    people_alone,
    stratified,
)
from retrieval_bench_judges.evidence import FEWEST_QUERIES, Evidence

Floats = NDArray[np.float64]


class Powered(NamedTuple):
    """What a model's labels add; arrays (pairs, metrics), NaN where too few queries have both.

    Attributes:
        estimate: of both.
        alone: of people alone, by Student's t.
        counts: whether the switch lets the model count.
        rho: correlation of the differences, people's and the model's; NaN where one has no spread.
        worth: queries judged by people alone that give as small an error as both.
    """

    estimate: Estimate
    alone: Estimate
    counts: Bools
    rho: Floats
    worth: Floats


def powered(
    evidence: Evidence, systems: Sequence[int], pairs: Sequence[Pair], rows: Bools | None = None
) -> Powered:
    """Estimate each difference from people's labels and the model's of changing queries, each
    stratum by the share of its changing queries among all (:mod:`.evidence`).

    Args:
        systems: places of them in ``evidence``.
        pairs: places of a and b among ``systems``.
        rows: bool, people's queries that count; the model's others are then those that all of
            ``systems`` answered, too.
    """
    n, metrics = len(evidence.query_ids), evidence.systems.metrics
    inside = np.ones(n, dtype=np.bool_) if rows is None else rows
    shared, others = inside & evidence.both, np.ones(len(evidence.more_ids), dtype=np.bool_)
    if rows is not None:
        others = np.all([evidence.answered(at, evidence.more_ids) for at in systems], axis=0)
    people, judged, more, every = (
        _differences([values[at][kept] for at in systems], pairs)
        for values, kept in (
            (evidence.people, shared),
            (evidence.model, inside[evidence.both]),
            (evidence.more, others),
            (evidence.people, inside),
        )
    )
    own, rest = evidence.strata_of(evidence.query_ids), evidence.strata_of(evidence.more_ids)
    shares = evidence.shares(() if rows is None else systems)
    parts = [(own[shared] == name, rest[others] == name, own[inside] == name) for name in shares]
    weights, nothing = [*shares.values()], np.full((len(pairs), len(metrics)), np.nan)
    alone = estimate = Estimate(*[nothing] * 5)
    if min((e.sum() for *_, e in parts), default=0) > 1:
        alone = stratified([people_alone(every[..., e]) for *_, e in parts], weights)
    if min((min(s.sum(), m.sum()) for s, m, _ in parts), default=0) < FEWEST_QUERIES:
        none = np.zeros(nothing.shape, dtype=np.bool_)
        return Powered(estimate, alone, none, nothing, nothing)
    estimate = stratified(
        [both(people[..., s], judged[..., s], more[..., m]) for s, m, _ in parts], weights
    )
    counts = judge_counts(people, judged, alone, estimate)
    counts &= ~np.array([metric.geometric for metric in metrics]) & (not evidence.why_people)
    rho = _correlation(people, judged)
    ratio = np.divide(alone.error, estimate.error, out=rho * np.nan, where=estimate.error > 0)
    return Powered(estimate, alone, counts, rho, every.shape[-1] * ratio**2)


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedTests(PairedTests):
    """Tests of which some go by an estimate and Student's t; arrays (pairs, metrics).

    Attributes:
        estimate: of each difference.
        where: whether it counts.
    """

    estimate: Estimate
    where: Bools

    @classmethod
    def of(
        cls, tests: PairedTests, estimate: Estimate, where: Bools, margin: float
    ) -> EstimatedTests:
        """Give ``tests``, with those of ``estimate`` in their place ``where`` it counts."""
        own = {field.name: getattr(tests, field.name) for field in fields(PairedTests)}
        changed: dict[str, Any] = {
            "difference": np.where(where, estimate.mean, tests.difference),
            "p": np.where(where, estimate.p(), tests.p),
            "p_equivalence": np.where(where, estimate.p_within(margin), tests.p_equivalence),
            "weighty": np.where(where, np.inf, tests.weighty),
        }
        if isinstance(tests, EstimatedTests):
            estimate, where = chosen(where, estimate, tests.estimate), where | tests.where
        return cls(**own | changed, estimate=estimate, where=where)

    def intervals(self, alpha: Floats) -> Floats:
        """Student's of the estimate where it counts."""
        own = PairedTests.intervals(self, alpha)
        half, middle = self.estimate.half_width(alpha), self.estimate.mean
        return np.where(self.where[..., None], np.stack([middle - half, middle + half], -1), own)

    def bounds(self, alpha: Floats) -> Floats:
        """Gaffke's; none where the estimate counts."""
        return np.where(self.where[..., None], np.nan, PairedTests.bounds(self, alpha))

    def queries_needed(
        self, alpha: ArrayLike, *, equivalence_alpha: ArrayLike | None = None
    ) -> list[list[Needed]]:
        """Give those of the tests; nothing where the estimate counts."""
        own = PairedTests.queries_needed(self, alpha, equivalence_alpha=equivalence_alpha)
        for row, at in np.argwhere(self.where):
            own[row][at] = Needed(None, None)
        return own


class LabelJudge(PairJudge):
    """Judges pairs by people's labels, or by the labels of people and of a model.

    Args:
        evidence: values by both.
        refusal: which pairs cannot be tested.
        people: the same by people's labels alone, whose work is not done twice; None = this is it.
    """

    def __init__(
        self, evidence: Evidence, refusal: Refusal, people: LabelJudge | None = None
    ) -> None:
        super().__init__(
            evidence.labels.pool.dataset,
            evidence.systems.names,
            evidence.systems.metrics,
            evidence.people,
            refusal,
            clusters=[Clusters.of_queries(evidence.systems.clusters, evidence.query_ids)]
            * len(evidence.people),
            answered=[
                evidence.answered(at, evidence.query_ids) for at in range(len(evidence.people))
            ],
        )
        self._evidence, self._alone = evidence, people is None
        self._done: dict[object, tuple[PairedTests, Powered]] = people._done if people else {}

    def tests_of(
        self, systems: Sequence[int], pairs: Sequence[Pair], rules: Rules, rows: Bools | None = None
    ) -> PairedTests:
        """See :meth:`.PairJudge.tests_of`; of strata, Student's t of their weighted means."""
        tests, power = self.powered_tests(systems, pairs, rules, rows)
        if self._alone:
            return tests
        return EstimatedTests.of(tests, power.estimate, power.counts, rules.margin)

    def powered_tests(
        self, systems: Sequence[int], pairs: Sequence[Pair], rules: Rules, rows: Bools | None = None
    ) -> tuple[PairedTests, Powered]:
        """The tests by people alone, and what the model adds.

        What is alike differs by 0, so all of a difference is that of changing queries by their
        share: values and their range are multiplied by it.
        """
        key = (*systems, *pairs, rules, None if rows is None else rows.tobytes())
        if key not in self._done:
            share = sum(self._evidence.shares(() if rows is None else systems).values())
            values = share * np.stack([self._values[at] for at in systems])
            clusters = self._clusters[systems[0]]
            if rows is not None:
                values, clusters = values[:, rows], clusters and clusters.at(rows)
            tests = paired_tests(
                values,
                pairs,
                margin=rules.margin,
                resamples=rules.resamples,
                scales=[
                    of and Scale(share * of.low, share * of.high)
                    for of in (metric.scale for metric in self._metrics)
                ],
                clusters=clusters,
            )
            power = powered(self._evidence, systems, pairs, rows)
            if self._evidence.labels.strata:
                known = np.isfinite(power.alone.error)
                tests = EstimatedTests.of(tests, power.alone, known, rules.margin)
            self._done[key] = (tests, power)
        return self._done[key]

    def _on_both(self, i: int, j: int, rules: Rules) -> PairedTests | None:
        """Also nothing where people judged too little of a stratum that both answered; and a
        difference of 0 where all is alike that both answered."""
        of = self._evidence
        if not of.shares((i, j)):
            n = np.count_nonzero(of.answered(i, of.asked) & of.answered(j, of.asked))
            none = np.zeros((2, n, len(self._metrics)))
            return paired_tests(none, [(0, 1)], margin=rules.margin, clusters=None) if n else None
        tests = super()._on_both(i, j, rules)
        known = not isinstance(tests, EstimatedTests) or np.isfinite(tests.estimate.error).all()
        return tests if known or not of.labels.strata else None


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair on a metric.

    Attributes:
        people: what people's labels say alone.
        both: what they say with the model's; where the model does not count it is people's, in one
            family with the pairs where it does.
        decided_by: "people and model" or "people".
        rho: correlation of the differences of queries, people's and the model's; None where either
            has no spread, or the model judged too little.
        worth: queries judged by people that give as small an error as both; None without rho.
        slope: of the model's values; None without rho.
        leverage: of the query that weighs most in the slope; None without rho.
    """

    people: Delta
    both: Delta
    decided_by: str = "people"
    rho: float | None = None
    worth: float | None = None
    slope: float | None = None
    leverage: float | None = None


def judged_pairs(
    evidence: Evidence, runs: Sequence[Run], *, margin: float, pairs: Sequence[Pair] | None = None
) -> list[JudgedPair]:
    """Every pair on every metric, by people alone and by both.

    Args:
        margin: up to this absolute difference two systems are as good as equal.
        pairs: places of a and b; None = all.
    """
    places = list(combinations(range(len(runs)), 2)) if pairs is None else list(pairs)

    def refusal(i: int, j: int) -> tuple[Verdict, str]:
        why = "; ".join(evidence.refused[at] for at in (i, j) if at in evidence.refused)
        if why := why or not_comparable(runs[i], runs[j]):
            return Verdict.NOT_COMPARABLE, why
        if not evidence.changing:
            return Verdict.MISSING, "all return the same, so that there is nothing to judge"
        why = evidence.why_nobody if evidence.query_ids else "people judged no query to the end"
        return (Verdict.MISSING if why else Verdict.UNDECIDED), why

    rules = Rules(margin, (), resamples_for(len(places)))
    alone = LabelJudge(evidence, refusal)
    judge = LabelJudge(evidence, refusal, alone)
    deltas = zip(alone.judged(places, rules), judge.judged(places, rules), strict=True)
    testable = [pair for pair in places if not refusal(*pair)[1]]
    systems = sorted({at for pair in testable for at in pair})
    inside = [(systems.index(i), systems.index(j)) for i, j in testable]
    power = alone.powered_tests(systems, inside, rules)[1] if testable else None
    cells = [(pair, at) for pair in places for at in range(len(evidence.systems.metrics))]
    made = []
    for (pair, at), (people, together) in zip(cells, deltas, strict=True):
        cell, of = (testable.index(pair) if pair in testable else -1, at), list[Floats]()
        whose = "people"
        if power is not None and pair in testable and np.isfinite(power.rho[cell]):
            of = [power.rho, power.worth, power.estimate.slope, power.estimate.leverage]
            whose += " and model" * bool(power.counts[cell])
        made.append(JudgedPair(people, together, whose, *(finite(float(x[cell])) for x in of)))
    return made


def finite(value: float) -> float | None:
    """The value, or None for a NaN and what has no bound."""
    return value if np.isfinite(value) else None


def _differences(values: Sequence[Floats], pairs: Sequence[Pair]) -> Floats:
    """(pairs, metrics, queries), b minus a."""
    return np.stack([(values[b] - values[a]).T for a, b in pairs])


def _correlation(people: Floats, judged: Floats) -> Floats:
    a, b = centred(people), centred(judged)
    whole = np.asarray(np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1)))
    ratio = np.divide((a * b).sum(axis=-1), whole, out=whole * np.nan, where=whole > 0)
    return np.asarray(ratio)
