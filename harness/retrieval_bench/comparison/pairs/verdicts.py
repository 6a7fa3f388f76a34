"""Pairs of runs on one dataset become differences with verdicts: better, worse, equivalent,
undecided.

A difference is b minus a, and the verdict says what b is beside a. Holm's correction looks at all
pairs of one metric: those that one table shows.

A failed query counts 0. A network that fails now and then thereby becomes a difference in quality,
and a paired test is certain of it. So a difference is looked at a second time, without the queries
that either side failed on: a verdict that is not the same there rests on failures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.both_answered import Answered, answered_queries
from retrieval_bench.comparison.pairs.brackets import Bracket, Brackets, hull
from retrieval_bench.comparison.pairs.comparability import not_comparable, nothing_can_differ
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.holm import (
    QUALITY_ALPHA,
    Corrected,
    Pair,
    stepped,
    with_larger,
)
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run, clusters_of
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.defaults import EQUIVALENCE
from retrieval_bench.stats.intervals import as_far_as
from retrieval_bench.stats.paired import PairedTests, paired_tests
from retrieval_bench.stats.power import Needed
from retrieval_bench.stats.randomization import ROUNDING, fewest_rows, smallest_p


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules by which differences are judged.

    Attributes:
        margin: up to this absolute difference two systems are as good as equal.
        tests: further tests beside the randomisation test, of :data:`.EXTRA`.
        resamples: sign patterns of the randomisation test.
        equivalence: the test of it, of :data:`.EQUIVALENCE`.
    """

    margin: float
    tests: tuple[str, ...]
    resamples: int
    equivalence: str = EQUIVALENCE[0]


Refusal = Callable[[int, int], tuple[Verdict, str]]
"""Of a pair: the verdict without a test, and why; no reason where it can be tested."""


def held_against(delta: Delta, answered: Answered) -> Delta:
    """``delta`` with what the answered queries say; a verdict that these do not share rests on
    failures, and is none."""
    delta = replace(delta, answered=answered)
    if delta.verdict.open or delta.verdict is answered.verdict:
        return delta
    ends = answered.ci
    if answered.verdict in (Verdict.BETTER, Verdict.WORSE):  # and the other way round over all
        ends = hull(ends, delta.ci)
    return replace(
        delta,
        ci=ends,
        bound=None,
        ratio=None,
        verdict=Verdict.UNDECIDED,
        within_margin=False,
        rests_on_failures=True,
        reason=answered.reason(delta.a, delta.b),
    )


class PairJudge:
    """Judges pairs of systems.

    Args:
        values: of each system (queries, metrics) as the metrics give them; paired row by row.
        refusal: which pairs cannot be tested.
        answered: of each system (queries,), whether it answered; None = all of them did.
        fixed: why a pair cannot differ in a metric, whatever was returned; "" where it can.
        clusters: of the queries of each system; None where each is independent of all others.
    """

    def __init__(
        self,
        dataset: str,
        names: Sequence[str],
        metrics: Sequence[Metric],
        values: Sequence[NDArray[np.float64]],
        refusal: Refusal | None = None,
        *,
        answered: Sequence[NDArray[np.bool_]] | None = None,
        fixed: Callable[[int, int, Metric], str] | None = None,
        clusters: Sequence[Clusters | None] | None = None,
    ) -> None:
        self._dataset, self._names, self._metrics = dataset, names, metrics
        self._values = [_additive(value, metrics) for value in values]
        self._refusal = refusal or (lambda i, j: (Verdict.UNDECIDED, ""))
        self._answered = answered or [np.ones(len(value), dtype=bool) for value in values]
        self._fixed = fixed or (lambda i, j, metric: "")
        self._clusters = clusters or [None] * len(self._values)

    @classmethod
    def of_runs(
        cls,
        dataset: str,
        runs: Sequence[Run],
        names: Sequence[str],
        metrics: Sequence[Metric],
        clusters: Mapping[str, str] | None = None,
    ) -> PairJudge:
        """For ``runs``, all of which have ``metrics``.

        Args:
            clusters: query -> label of its cluster; None = as the runs say.
        """
        of = clusters_of(runs) if clusters is None else clusters

        def refusal(i: int, j: int) -> tuple[Verdict, str]:
            reason = not_comparable(runs[i], runs[j])
            if reason:
                return Verdict.NOT_COMPARABLE, reason
            if not runs[i].evaluation.query_ids:
                return Verdict.MISSING, "no evaluated query"
            for run in (runs[i], runs[j]):
                for metric in metrics:
                    n = int(np.count_nonzero(~np.isfinite(run.evaluation.values(metric))))
                    if n:
                        return Verdict.MISSING, f"{metric} has no value on {counted(n, 'query')}"
            return Verdict.UNDECIDED, ""

        return cls(
            dataset,
            names,
            metrics,
            [_by_id(run, metrics) for run in runs],
            refusal,
            answered=[answered_queries(run) for run in runs],
            fixed=lambda i, j, metric: nothing_can_differ(runs[i], runs[j], metric),
            clusters=[Clusters.of_queries(of, sorted(run.evaluation.query_ids)) for run in runs],
        )

    def judged(self, pairs: Sequence[Pair], rules: Rules) -> list[Delta]:
        """Every pair on every metric, in the order of ``pairs``."""
        deltas = {pair: self._untested(*pair) for pair in pairs}
        testable = [pair for pair in pairs if not deltas[pair][0].reason]
        blocks = self._blocks(testable)
        hardest = QUALITY_ALPHA / max(1, len(testable))
        tested = [(block, self._statistics(block, rules)) for block in blocks]
        again = self._without_failures([pair for block in blocks for pair in block], rules)
        corrected = Corrected.of([with_larger(block, tests, again) for block, tests in tested])
        start = 0
        for block, tests in tested:
            part = corrected.rows(start, start + len(block))
            needed = stepped(
                tests.queries_needed(part.level, equivalence_alpha=part.bracket / 2), part
            )
            brackets = Brackets.of(tests, part.bracket)
            equivalence = as_far_as(part.bracket, tests.p_equivalence)
            for row, pair in enumerate(block):
                for at, metric in enumerate(self._metrics):
                    delta = self._delta(
                        pair,
                        metric,
                        paired_tests=tests,
                        corrected=part,
                        needed=needed[row][at],
                        bracket=brackets.at((row, at), equivalence[row, at]),
                        equivalence=float(equivalence[row, at]),
                        at=(row, at),
                        hardest=hardest,
                    )
                    if pair in again:
                        delta = self._second_look(pair, delta, again[pair], part, (row, at))
                    deltas[pair][at] = self._varying(pair, delta, metric)
            start += len(block)
        return [delta for pair in pairs for delta in deltas[pair]]

    def _varying(self, pair: Pair, delta: Delta, metric: Metric) -> Delta:
        """``delta``, without figures where nothing can differ."""
        why = self._fixed(*pair, metric)
        return self._missing(delta, why) if why else delta

    def _missing(self, delta: Delta, why: str) -> Delta:
        return Delta(
            delta.metric, delta.a, delta.b, Verdict.MISSING, delta.dataset, n=delta.n, reason=why
        )

    def _without_failures(
        self, pairs: Sequence[Pair], rules: Rules
    ) -> dict[Pair, PairedTests | None]:
        """The tests of each pair with failures on the queries that both answered."""
        return {
            (i, j): self._on_both(i, j, rules)
            for i, j in pairs
            if not (self._answered[i].all() and self._answered[j].all())
        }

    def _on_both(self, i: int, j: int, rules: Rules) -> PairedTests | None:
        """The tests on what both answered; None where that is nothing."""
        both = self._answered[i] & self._answered[j]
        return self.tests_of((i, j), [(0, 1)], rules, both) if both.any() else None

    def _second_look(
        self,
        pair: Pair,
        delta: Delta,
        paired_tests: PairedTests | None,
        corrected: Corrected,
        at: tuple[int, int],
    ) -> Delta:
        """Hold a verdict against what the queries say that both answered."""
        failed_a, failed_b = (int(np.count_nonzero(~self._answered[side])) for side in pair)
        answered = Answered(0, failed_a, failed_b)
        if paired_tests is None:
            return self._missing(delta, answered.reason(delta.a, delta.b))
        answered = self._on_answered(pair, paired_tests, corrected, at, answered)
        # More queries would show how often it fails.
        return held_against(replace(delta, queries_needed=None, needed_for=""), answered)

    def _on_answered(
        self,
        pair: Pair,
        paired_tests: PairedTests,
        corrected: Corrected,
        at: tuple[int, int],
        answered: Answered,
    ) -> Answered:
        metric = self._metrics[at[1]]
        difference = float(paired_tests.difference[0, at[1]])
        alpha, place = corrected.bracket[at[0] : at[0] + 1], (0, at[1])
        equivalence = as_far_as(alpha, paired_tests.p_equivalence)
        bracket = Brackets.of(paired_tests, alpha).at(place, float(equivalence[place]))
        if metric.geometric:
            bracket = bracket._replace(ci=None, within=False)
            both = self._answered[pair[0]] & self._answered[pair[1]]
            a, b = (metric.from_additive(self._values[side][both, at[1]].mean()) for side in pair)
            difference = float(b - a)
        seen = Delta(
            str(metric),
            "",
            "",
            Verdict.UNDECIDED,
            n=paired_tests.n,
            clusters=paired_tests.clusters,
            difference=difference,
            p=float(paired_tests.p[place]),
            level=bracket.level,
            within_margin=bracket.within,
        )
        return replace(
            answered,
            n=paired_tests.n,
            difference=difference,
            ci=bracket.ci,
            level=bracket.level,
            p=seen.p,
            verdict=_decided(seen, Needed(None, None)).verdict,
        )

    def _untested(self, i: int, j: int) -> list[Delta]:
        verdict, reason = self._refusal(i, j)
        return [
            Delta(str(m), self._names[i], self._names[j], verdict, self._dataset, reason=reason)
            for m in self._metrics
        ]

    def _blocks(self, pairs: Sequence[Pair]) -> list[list[Pair]]:
        """``pairs`` by what was measured: all systems of a block finished the same queries."""
        blocks: dict[int, list[Pair]] = {}
        for i, j in pairs:
            known = (c for c in range(i + 1) if not self._refusal(c, i)[1])
            blocks.setdefault(next(known), []).append((i, j))
        return list(blocks.values())

    def _statistics(self, pairs: Sequence[Pair], rules: Rules) -> PairedTests:
        systems = sorted({at for pair in pairs for at in pair})
        place = {at: i for i, at in enumerate(systems)}
        return self.tests_of(systems, [(place[i], place[j]) for i, j in pairs], rules)

    def tests_of(
        self,
        systems: Sequence[int],
        pairs: Sequence[Pair],
        rules: Rules,
        rows: NDArray[np.bool_] | None = None,
    ) -> PairedTests:
        """The tests of ``pairs``, places among ``systems``, on all queries or on these ``rows``;
        what a judge by other tests has of its own."""
        values = np.stack([self._values[at] for at in systems])
        clusters = self._clusters[systems[0]]
        if rows is not None:
            values, clusters = values[:, rows], clusters and clusters.at(rows)
        return paired_tests(
            values,
            pairs,
            margin=rules.margin,
            extra=rules.tests,
            resamples=rules.resamples,
            scales=[metric.scale for metric in self._metrics],
            equivalence=rules.equivalence,
            clusters=clusters,
        )

    def _delta(
        self,
        pair: Pair,
        metric: Metric,
        *,
        paired_tests: PairedTests,
        corrected: Corrected,
        needed: Needed,
        bracket: Bracket,
        equivalence: float,
        at: tuple[int, int],
        hardest: float,
    ) -> Delta:
        i, j = pair
        difference, ratio = float(paired_tests.difference[at]), None
        if metric.geometric:
            if bracket.ci is not None:
                low, high = bracket.ci
                ratio = (math.exp(difference), math.exp(low), math.exp(high))
            bracket = Bracket(None, bracket.level, None, within=False)
            a, b = (metric.from_additive(self._values[side][:, at[1]].mean()) for side in pair)
            difference = 0.0 if abs(b - a) <= ROUNDING else float(b - a)
        effect = float(paired_tests.effect_size[at])
        delta = Delta(
            str(metric),
            self._names[i],
            self._names[j],
            Verdict.UNDECIDED,
            self._dataset,
            n=paired_tests.n,
            clusters=paired_tests.clusters,
            difference=difference,
            ci=bracket.ci,
            level=bracket.level,
            bound=bracket.bound,
            few=bracket.few,
            ratio=ratio,
            p=float(paired_tests.p[at]),
            p_adjusted=float(corrected.p[at]),
            effect_size=None if math.isnan(effect) else effect,
            wins=int(paired_tests.wins[at]),
            ties=int(paired_tests.ties[at]),
            losses=int(paired_tests.losses[at]),
            p_equivalence=None if metric.geometric else equivalence,
            within_margin=bracket.within,
            tests={
                name: (float(p[at]), float(corrected.tests[name][at]))
                for name, p in paired_tests.extra.items()
            },
        )
        return _decided(delta, needed, hardest)


def _by_id(run: Run, metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """(queries, metrics) in the order of the ids: the order in which queries were given changes
    no p and no interval."""
    by_id = sorted(run.evaluation.query_ids)
    return np.column_stack([run.evaluation.values(metric, by_id) for metric in metrics])


def _additive(values: NDArray[np.float64], metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """``values`` on the scale whose mean counts."""
    columns = zip(metrics, values.T, strict=True)
    return np.column_stack([metric.additive(column) for metric, column in columns])


def _decided(delta: Delta, needed: Needed, level: float = QUALITY_ALPHA) -> Delta:
    """Return ``delta`` with its verdict; if undecided, with what takes the fewest further queries.

    Args:
        level: what the table leaves to its smallest p; if that cannot be below, nothing can.
    """
    assert delta.p is not None
    assert delta.level is not None
    if delta.difference and delta.p < 1 - delta.level:
        return replace(delta, verdict=Verdict.BETTER if delta.difference > 0 else Verdict.WORSE)
    if delta.within_margin:
        return replace(delta, verdict=Verdict.EQUIVALENT)
    if smallest_p(delta.units) >= level:
        return replace(delta, verdict=Verdict.UNRESOLVABLE, resolvable_from=fewest_rows(level))
    ways = [(needed.difference, "a difference")]
    if delta.p_equivalence is not None:
        ways.append((needed.equivalence, "equivalence"))
    if not (needs := [(n, what) for n, what in ways if n is not None]):
        return delta
    n, what = min(needs)
    return replace(delta, queries_needed=n, needed_for=what)
