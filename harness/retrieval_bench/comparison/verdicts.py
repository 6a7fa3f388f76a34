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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.answered import Answered, answered_queries
from retrieval_bench.comparison.comparability import not_comparable, nothing_can_differ
from retrieval_bench.comparison.holm import QUALITY_ALPHA, Corrected, Pair, stepped, with_rows
from retrieval_bench.core.document import document
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.intervals import ALPHA, interval
from retrieval_bench.stats.paired import EQUIVALENCE, PairedTests, paired_tests
from retrieval_bench.stats.power import ROUNDING, Needed
from retrieval_bench.stats.resampling import bootstrap_means, fewest_rows, smallest_p

ANYTIME = "anytime-valid, betting"
"""What the interval is of a difference that was looked at after every query."""


@dataclass(frozen=True, slots=True)
class Delta:
    """One metric of two systems, paired by query.

    Attributes:
        metric: its name.
        a: the system that is subtracted.
        b: the one that the verdict speaks of.
        verdict: of b beside a.
        dataset: its name.
        n: queries.
        difference: mean of b minus mean of a; None when the two cannot be compared.
        ci95: interval of the difference; those of all pairs of the same metric and dataset hold
            together with 95 % (Bonferroni), and that of an undecided one reaches 0.
        p: paired randomisation test, two-sided.
        p_adjusted: after Holm over all pairs of the same metric and dataset: those that one table
            shows.
        effect_size: mean of the differences over their standard deviation (Cohen's d for pairs);
            None where they do not vary.
        wins, ties, losses: queries on which b is above, equal to, below a.
        p_equivalence: two one-sided tests against the margin, after Holm as ``p_adjusted``; None
            for a metric whose mean is geometric, where an absolute margin means nothing.
        within_margin: shown to differ by less than the margin; may stand beside better and worse,
            for a difference can be real and small.
        tests: further tests that were asked for: name -> (p, p after Holm).
        resolvable_from: queries from which on the test can show any difference at the level that
            the table leaves to a pair; only for an unresolvable one.
        queries_needed: further queries, at least 1, with which a difference of this size and
            spread would be decided with 80 % power; only for an undecided one.
        needed_for: what these queries would show: "a difference" or "equivalence".
        answered: the same on the queries that both answered; None where neither failed on any.
        rests_on_failures: what would be decided over all queries is not on those that both
            answered, and so is undecided.
        anytime: the interval and the verdict are those of a betting confidence sequence, since the
            values decided how many queries were asked; nothing has a p then.
        reason: why there is no difference: not comparable, or nothing to compare; or why the
            verdict rests on failures.
    """

    metric: str
    a: str
    b: str
    verdict: Verdict
    dataset: str = ""
    n: int = 0
    difference: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    p_adjusted: float | None = None
    effect_size: float | None = None
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    p_equivalence: float | None = None
    within_margin: bool = False
    tests: dict[str, tuple[float, float]] = field(default_factory=dict)
    resolvable_from: int | None = None
    queries_needed: int | None = None
    needed_for: str = ""
    answered: Answered | None = None
    rests_on_failures: bool = False
    anytime: bool = False
    reason: str = ""

    @property
    def reaches_zero(self) -> bool:
        """Whether the interval of a difference that is shown holds 0: it assumes less than the
        test, nothing but the range of the values."""
        shown = self.verdict in (Verdict.BETTER, Verdict.WORSE)
        return shown and self.ci95 is not None and self.ci95[0] <= 0 <= self.ci95[1]

    @property
    def small(self) -> bool:
        """Shown to be within the margin, beside a verdict that does not say so."""
        return self.within_margin and self.verdict is not Verdict.EQUIVALENT

    def as_dict(self) -> dict[str, Any]:
        """The row of ``compare --format json``."""
        row = document(
            self,
            "dataset metric a b n difference ci95 p p_adjusted effect_size wins ties losses "
            "p_equivalence within_margin verdict queries_needed",
        )
        for name, (p, adjusted) in self.tests.items():
            row |= {f"p_{name}": p, f"p_{name}_adjusted": adjusted}
        if self.anytime:
            row["interval"] = ANYTIME
        if self.resolvable_from is not None:
            row["resolvable_from"] = self.resolvable_from
        if self.needed_for:
            row["needed_for"] = self.needed_for
        if self.answered is not None:
            row |= document(self, "answered rests_on_failures")
        return row | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True, slots=True)
class Rules:
    """How differences are judged.

    Attributes:
        margin: up to this absolute difference two systems are as good as equal.
        tests: further tests beside the randomisation test, of :data:`.EXTRA`.
        resamples: sign patterns of the randomisation test.
        interval_alpha: 1 minus the level of each interval.
        equivalence: the test of it, of :data:`.EQUIVALENCE`.
    """

    margin: float
    tests: tuple[str, ...]
    resamples: int
    interval_alpha: float = ALPHA
    equivalence: str = EQUIVALENCE[0]


Refusal = Callable[[int, int], tuple[Verdict, str]]
"""Of a pair: the verdict without a test, and why; no reason where it can be tested."""


def held_against(delta: Delta, answered: Answered) -> Delta:
    """``delta`` with what the answered queries say; a verdict that these do not share rests on
    failures, and is none."""
    delta = replace(delta, answered=answered)
    if delta.verdict.open or delta.verdict is answered.verdict:
        return delta
    return replace(
        delta,
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
    ) -> None:
        self._dataset, self._names, self._metrics = dataset, names, metrics
        self._values = [_additive(one, metrics) for one in values]
        self._resampled: dict[int, dict[int, NDArray[np.float64]]] = {}
        self._refusal = refusal or (lambda i, j: (Verdict.UNDECIDED, ""))
        self._answered = answered or [np.ones(len(one), dtype=bool) for one in values]
        self._fixed = fixed or (lambda i, j, metric: "")

    @classmethod
    def of_runs(
        cls, dataset: str, runs: Sequence[Run], names: Sequence[str], metrics: Sequence[Metric]
    ) -> PairJudge:
        """For ``runs``, all of which have ``metrics``."""

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
        )

    def judged(self, pairs: Sequence[Pair], rules: Rules) -> list[Delta]:
        """Every pair on every metric, in the order of ``pairs``."""
        deltas = {pair: self._untested(*pair) for pair in pairs}
        testable = [pair for pair in pairs if not deltas[pair][0].reason]
        blocks = self._blocks(testable)
        rules = replace(rules, interval_alpha=ALPHA / max(1, len(testable)))
        tested = [(block, self._statistics(block, rules)) for block in blocks]
        again = self._without_failures([pair for block in blocks for pair in block], rules)
        first = Corrected.of([found for _, found in tested])
        # Pairs with failures take part a second time, with the p of what both sides answered: by
        # this correction all others are judged, for a p that rests on failures rejects nothing.
        second = Corrected.of([with_rows(block, found, again) for block, found in tested])
        start = 0
        for block, found in tested:
            part = second.rows(start, start + len(block))
            needed = stepped(
                found.queries_needed(part.level, equivalence_alpha=part.equivalence_level), part
            )
            whole = first.rows(start, start + len(block))
            for row, pair in enumerate(block):
                for at, metric in enumerate(self._metrics):
                    delta = self._delta(
                        pair,
                        metric,
                        found=found,
                        corrected=whole if pair in again else part,
                        needed=needed[row][at],
                        at=(row, at),
                        rules=rules,
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
        if not both.any():
            return None
        return self._tests(
            np.stack([self._values[i][both], self._values[j][both]]), [(0, 1)], rules
        )

    def _second_look(
        self,
        pair: Pair,
        delta: Delta,
        found: PairedTests | None,
        corrected: Corrected,
        at: tuple[int, int],
    ) -> Delta:
        """Hold a verdict against what the queries say that both answered."""
        failed_a, failed_b = (int(np.count_nonzero(~self._answered[side])) for side in pair)
        answered = Answered(0, failed_a, failed_b)
        if found is None:
            return self._missing(delta, answered.reason(delta.a, delta.b))
        answered = self._on_answered(pair, found, corrected, at, answered)
        # More queries would show how often it fails.
        return held_against(replace(delta, queries_needed=None, needed_for=""), answered)

    def _on_answered(
        self,
        pair: Pair,
        found: PairedTests,
        corrected: Corrected,
        at: tuple[int, int],
        answered: Answered,
    ) -> Answered:
        metric = self._metrics[at[1]]
        difference, ends = float(found.difference[0, at[1]]), found.ci95[0, at[1]]
        if metric.geometric:
            both = self._answered[pair[0]] & self._answered[pair[1]]
            a, b = (metric.from_additive(self._values[side][both, at[1]].mean()) for side in pair)
            difference, ends = float(b - a), np.full(2, np.nan)
        seen = Delta(
            str(metric),
            "",
            "",
            Verdict.UNDECIDED,
            n=found.n,
            difference=difference,
            p_adjusted=float(corrected.p[at]),
            within_margin=not metric.geometric and bool(corrected.equivalence[at] < QUALITY_ALPHA),
        )
        return replace(
            answered,
            n=found.n,
            difference=difference,
            ci95=None if np.isnan(ends[0]) else (float(ends[0]), float(ends[1])),
            p_adjusted=seen.p_adjusted,
            verdict=_decided(seen, Needed(None, None), geometric=metric.geometric).verdict,
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
        pairs = [(place[i], place[j]) for i, j in pairs]
        return self._tests(np.stack([self._values[at] for at in systems]), pairs, rules)

    def _tests(
        self, values: NDArray[np.float64], pairs: Sequence[Pair], rules: Rules
    ) -> PairedTests:
        return paired_tests(
            values,
            pairs,
            margin=rules.margin,
            extra=rules.tests,
            resamples=rules.resamples,
            scales=[metric.scale for metric in self._metrics],
            alpha=rules.interval_alpha,
            equivalence=rules.equivalence,
        )

    def _delta(
        self,
        pair: Pair,
        metric: Metric,
        *,
        found: PairedTests,
        corrected: Corrected,
        needed: Needed,
        at: tuple[int, int],
        rules: Rules,
    ) -> Delta:
        i, j = pair
        difference, ends = float(found.difference[at]), found.ci95[at]
        if metric.geometric:
            difference, ends = self._in_means(pair, metric, at[1], rules.interval_alpha)
        effect = float(found.effect_size[at])
        delta = Delta(
            str(metric),
            self._names[i],
            self._names[j],
            Verdict.UNDECIDED,
            self._dataset,
            n=found.n,
            difference=difference,
            ci95=None if np.isnan(ends[0]) else (float(ends[0]), float(ends[1])),
            p=float(found.p[at]),
            p_adjusted=float(corrected.p[at]),
            effect_size=None if math.isnan(effect) else effect,
            wins=int(found.wins[at]),
            ties=int(found.ties[at]),
            losses=int(found.losses[at]),
            p_equivalence=None if metric.geometric else float(corrected.equivalence[at]),
            within_margin=not metric.geometric and bool(corrected.equivalence[at] < QUALITY_ALPHA),
            tests={
                name: (float(p[at]), float(corrected.tests[name][at]))
                for name, p in found.extra.items()
            },
        )
        return _decided(delta, needed, geometric=metric.geometric, level=rules.interval_alpha)

    def _in_means(
        self, pair: Pair, metric: Metric, column: int, alpha: float
    ) -> tuple[float, NDArray[np.float64]]:
        """Mean of b minus mean of a, and its interval, for a metric whose mean is geometric: the
        difference of two such means is not the mean of differences."""
        if column not in self._resampled:
            self._resampled[column] = self._resample(column)
        a, b = (metric.from_additive(self._values[at][:, column].mean()) for at in pair)
        ends = np.full(2, np.nan)
        if len(self._values[pair[0]]) > 1:
            drawn = [metric.from_additive(self._resampled[column][at]) for at in pair]
            ends = interval((drawn[1] - drawn[0])[:, None], alpha)[0]
        difference = float(b - a)
        return (0.0 if abs(difference) <= ROUNDING else difference), ends

    def _resample(self, column: int) -> dict[int, NDArray[np.float64]]:
        """Resampled means of every system, on the additive scale; systems with equally many
        queries see the same resamples."""
        lengths: dict[int, list[int]] = {}
        for at, values in enumerate(self._values):
            lengths.setdefault(len(values), []).append(at)
        found: dict[int, NDArray[np.float64]] = {}
        for n, systems in lengths.items():
            if n > 1:
                means = bootstrap_means(
                    np.column_stack([self._values[at][:, column] for at in systems])
                )
                found |= dict(zip(systems, means.T, strict=True))
        return found


def _by_id(run: Run, metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """(queries, metrics) in the order of the ids: the order in which queries were given changes
    no p and no interval."""
    evaluation = run.evaluation
    by_id = sorted(range(len(evaluation.query_ids)), key=evaluation.query_ids.__getitem__)
    return np.column_stack([evaluation.values(metric)[by_id] for metric in metrics])


def _additive(values: NDArray[np.float64], metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """``values`` on the scale whose mean counts."""
    columns = zip(metrics, values.T, strict=True)
    return np.column_stack([metric.additive(column) for metric, column in columns])


def _decided(
    delta: Delta, needed: Needed, *, geometric: bool, level: float = QUALITY_ALPHA
) -> Delta:
    """With the verdict; an undecided one with what takes the fewest further queries.

    Args:
        level: what the table leaves to its smallest p; if that cannot be below, nothing can.
    """
    if delta.difference and delta.p_adjusted is not None and delta.p_adjusted < QUALITY_ALPHA:
        return replace(delta, verdict=Verdict.BETTER if delta.difference > 0 else Verdict.WORSE)
    if delta.within_margin:
        return replace(delta, verdict=Verdict.EQUIVALENT)
    if delta.ci95 is not None:  # the test decides, and an interval beside it does not contradict it
        delta = replace(delta, ci95=(min(delta.ci95[0], 0.0), max(delta.ci95[1], 0.0)))
    if smallest_p(delta.n) >= level:
        return replace(delta, verdict=Verdict.UNRESOLVABLE, resolvable_from=fewest_rows(level))
    ways = [(needed.difference, "a difference")]
    if not geometric:
        ways.append((needed.equivalence, "equivalence"))
    found = [(n, what) for n, what in ways if n is not None]
    if not found:
        return delta
    n, what = min(found)
    return replace(delta, queries_needed=n, needed_for=what)
