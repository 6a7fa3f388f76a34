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
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.both_answered import Answered, answered_queries
from retrieval_bench.comparison.pairs.brackets import Bracket, Brackets, hull
from retrieval_bench.comparison.pairs.comparability import not_comparable, nothing_can_differ
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA, Corrected, Pair, stepped, with_rows
from retrieval_bench.core.as_json.document import Documented, Spelt
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.defaults import EQUIVALENCE
from retrieval_bench.stats.paired import PairedTests, paired_tests
from retrieval_bench.stats.power import Needed
from retrieval_bench.stats.randomization import ROUNDING, fewest_rows, smallest_p

HOW_BRACKETED = "intervals by the same test, each of 95 % or more"
"""What the interval is of a difference that was tested once."""

FigureOfTest = Annotated[str, Spelt("^p_(t|wilcoxon)(_adjusted)?$")]
"""The name of the p of a further test, or of that after Holm."""

ANYTIME = "anytime-valid, betting"
"""What the interval is of a difference that was looked at after every query."""


@dataclass(frozen=True, slots=True)
class Delta(Documented):
    """One metric of two systems, paired by query.

    Attributes:
        metric: its name.
        a: the system that is subtracted.
        b: the one that the verdict speaks of.
        verdict: of b beside a.
        dataset: its name.
        n: queries.
        difference: mean of b minus mean of a; None when the two cannot be compared.
        ci95: the means that the test does not reject: it excludes 0 exactly where the verdict is
            better or worse. It holds by itself; only the verdicts hold together. Where the verdict
            rests on failures, of the queries that both answered. None where the mean is geometric.
        level: of ``ci95``, ``bound`` and ``ratio``, at least 95 %: what Holm leaves to the pair.
        bound: Gaffke's interval at the same level, which assumes nothing but the range; given
            where ``ci95`` is not enough: few queries carry the difference, or only it is within
            the margin.
        few: few queries carry the difference.
        ratio: of b's mean to a's, and the ends of its interval, of a metric whose mean is
            geometric; the interval excludes 1 exactly where ``ci95`` would exclude 0.
        p: paired randomisation test, two-sided.
        p_adjusted: after Holm over all pairs of the same metric and dataset: those that one table
            shows.
        effect_size: mean of the differences over their standard deviation (Cohen's d for pairs);
            None where they do not vary.
        wins, ties, losses: queries on which b is above, equal to, below a.
        p_equivalence: two one-sided tests against the margin, each at half of what ``level``
            leaves: the larger p, doubled, and corrected as far as ``level`` is; None for a metric
            whose mean is geometric, where an absolute margin means nothing.
        within_margin: shown to differ by less than the margin, by the interval and by
            ``p_equivalence``; may stand beside better and worse, for a difference can be real and
            small.
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

    KEYS = (
        "dataset metric a b n difference ci95 level bound p p_adjusted effect_size wins ties "
        "losses p_equivalence within_margin verdict queries_needed *p_of_tests ratio? interval? "
        "resolvable_from? needed_for? answered? rests_on_failures?=resting reason?"
    )

    metric: str
    a: str
    b: str
    verdict: Verdict
    dataset: str = ""
    n: int = 0
    difference: float | None = None
    ci95: tuple[float, float] | None = None
    level: float | None = None
    bound: tuple[float, float] | None = None
    few: bool = False
    ratio: tuple[float, float, float] | None = None
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
    def small(self) -> bool:
        """Shown to be within the margin, beside a verdict that does not say so."""
        return self.within_margin and self.verdict is not Verdict.EQUIVALENT

    @property
    def doubted(self) -> bool:
        """Better or worse, though few queries carry it and the bound holds 0."""
        shown = self.few and self.verdict in (Verdict.BETTER, Verdict.WORSE)
        return shown and self.bound is not None and self.bound[0] <= 0 <= self.bound[1]

    @property
    def p_of_tests(self) -> dict[FigureOfTest, float]:
        """The figures of :attr:`tests`, each under its name."""
        p_of_tests: dict[str, float] = {}
        for name, (p, adjusted) in self.tests.items():
            p_of_tests |= {f"p_{name}": p, f"p_{name}_adjusted": adjusted}
        return p_of_tests

    @property
    def interval(self) -> str:
        """The kind of interval that decides in place of a p; empty where the usual one stands
        beside it."""
        return ANYTIME if self.anytime else ""

    @property
    def resting(self) -> bool | None:
        """True if the verdict rests on failures; None where neither failed on any query."""
        return None if self.answered is None else self.rests_on_failures


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
    ends = answered.ci95
    if answered.verdict in (Verdict.BETTER, Verdict.WORSE):  # and the other way round over all
        ends = hull(ends, delta.ci95)
    return replace(
        delta,
        ci95=ends,
        level=answered.level if delta.level is None else delta.level,
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
        self._values = [_additive(value, metrics) for value in values]
        self._refusal = refusal or (lambda i, j: (Verdict.UNDECIDED, ""))
        self._answered = answered or [np.ones(len(value), dtype=bool) for value in values]
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
        hardest = QUALITY_ALPHA / max(1, len(testable))
        tested = [(block, self._statistics(block, rules)) for block in blocks]
        again = self._without_failures([pair for block in blocks for pair in block], rules)
        first = Corrected.of([tests for _, tests in tested])
        # Pairs with failures take part a second time, with the p of what both sides answered: by
        # this correction all others are judged, for a p that rests on failures rejects nothing.
        second = Corrected.of([with_rows(block, tests, again) for block, tests in tested])
        start = 0
        for block, tests in tested:
            part = second.rows(start, start + len(block))
            needed = stepped(
                tests.queries_needed(part.level, equivalence_alpha=part.bracket / 2), part
            )
            whole = first.rows(start, start + len(block))
            failed = np.array([pair in again for pair in block])[:, None]
            alpha = np.where(failed, whole.bracket, part.bracket)
            brackets = Brackets.of(tests, alpha)
            for row, pair in enumerate(block):
                for at, metric in enumerate(self._metrics):
                    delta = self._delta(
                        pair,
                        metric,
                        paired_tests=tests,
                        corrected=whole if pair in again else part,
                        needed=needed[row][at],
                        bracket=brackets.at((row, at), part.equivalence[row, at]),
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
        if not both.any():
            return None
        return self._tests(
            np.stack([self._values[i][both], self._values[j][both]]), [(0, 1)], rules
        )

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
        brackets = Brackets.of(paired_tests, corrected.bracket[at[0] : at[0] + 1])
        bracket = brackets.at((0, at[1]), float(corrected.equivalence[at]))
        if metric.geometric:
            bracket = bracket._replace(ci95=None, within=False)
            both = self._answered[pair[0]] & self._answered[pair[1]]
            a, b = (metric.from_additive(self._values[side][both, at[1]].mean()) for side in pair)
            difference = float(b - a)
        seen = Delta(
            str(metric),
            "",
            "",
            Verdict.UNDECIDED,
            n=paired_tests.n,
            difference=difference,
            p_adjusted=float(corrected.p[at]),
            within_margin=bracket.within,
        )
        return replace(
            answered,
            n=paired_tests.n,
            difference=difference,
            ci95=bracket.ci95,
            level=bracket.level,
            p_adjusted=seen.p_adjusted,
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
            equivalence=rules.equivalence,
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
        at: tuple[int, int],
        hardest: float,
    ) -> Delta:
        i, j = pair
        difference, ratio = float(paired_tests.difference[at]), None
        if metric.geometric:
            if bracket.ci95 is not None:
                low, high = bracket.ci95
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
            difference=difference,
            ci95=bracket.ci95,
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
            p_equivalence=None if metric.geometric else float(corrected.equivalence[at]),
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
    if delta.difference and delta.p_adjusted is not None and delta.p_adjusted < QUALITY_ALPHA:
        return replace(delta, verdict=Verdict.BETTER if delta.difference > 0 else Verdict.WORSE)
    if delta.within_margin:
        return replace(delta, verdict=Verdict.EQUIVALENT)
    if smallest_p(delta.n) >= level:
        return replace(delta, verdict=Verdict.UNRESOLVABLE, resolvable_from=fewest_rows(level))
    ways = [(needed.difference, "a difference")]
    if delta.p_equivalence is not None:
        ways.append((needed.equivalence, "equivalence"))
    if not (needs := [(n, what) for n, what in ways if n is not None]):
        return delta
    n, what = min(needs)
    return replace(delta, queries_needed=n, needed_for=what)
