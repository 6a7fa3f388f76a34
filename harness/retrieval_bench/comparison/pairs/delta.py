"""The difference of two systems in one metric, with its verdict, as tables and JSON show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from retrieval_bench.comparison.pairs.both_answered import Answered
from retrieval_bench.core.as_json.document import Documented, Spelt
from retrieval_bench.core.types import Verdict
from retrieval_bench.stats.intervals import levels_text

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
        clusters: that these are; None where queries are independent. They are the unit of tests and
            intervals.
        difference: mean of b minus mean of a; None when the two cannot be compared.
        ci: the means that the test does not reject: it excludes 0 exactly where the verdict is
            better or worse. It holds by itself; only the verdicts hold together. Where the verdict
            rests on failures, of the queries that both answered. None where the mean is geometric.
        level: of ``ci``, ``bound`` and ``ratio``, one for all pairs of a metric and dataset: 1 -
            .05 / (m - R) of m pairs of which Holm decides R, 95 % where he decides all.
        bound: Gaffke's interval at the same level, which assumes nothing but the range; given
            where ``ci`` is not enough: few queries carry the difference, or only it is within
            the margin.
        few: few queries carry the difference.
        ratio: of b's mean to a's, and the ends of its interval, of a metric whose mean is
            geometric; the interval excludes 1 exactly where ``ci`` would exclude 0.
        p: paired randomisation test, two-sided.
        p_adjusted: after Holm over all pairs of the same metric and dataset: those that one table
            shows. Where either failed on queries, of the larger p: of all, or of those that both
            answered.
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
        resolvable_from: queries, or clusters, from which on the test can show any difference at
            the level that the table leaves to a pair; only for an unresolvable one.
        queries_needed: further queries, at least 1, with which a difference of this size and
            spread would be decided with 80 % power; only for an undecided one.
        needed_for: what these queries would show: "a difference" or "equivalence".
        answered: the same on the queries that both answered; None where neither failed on any.
        rests_on_failures: what would be decided over all queries is not on those that both
            answered, and so is undecided.
        anytime: the interval and the verdict are those of a betting confidence sequence, since the
            values decided how many queries were asked; nothing has a p then.
        identical: the two returned the same lists; missing where they did not.
        reason: why there is no difference: not comparable, or nothing to compare; or why the
            verdict rests on failures.
    """

    KEYS = (
        "dataset metric a b n clusters? difference ci level bound decides? p p_adjusted "
        "effect_size wins ties losses p_equivalence within_margin verdict queries_needed "
        "*p_of_tests ratio? interval? resolvable_from? needed_for? answered? "
        "rests_on_failures?=resting identical? reason?"
    )

    metric: str
    a: str
    b: str
    verdict: Verdict
    dataset: str = ""
    n: int = 0
    clusters: int | None = None
    difference: float | None = None
    ci: tuple[float, float] | None = None
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
    identical: bool | None = None
    reason: str = ""

    @property
    def units(self) -> int:
        """Number of clusters, else of queries."""
        return self.n if self.clusters is None else self.clusters

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
    def decides(self) -> str:
        """The interval that the verdict goes by, where ``bound`` stands beside ``ci``: better and
        worse by ``ci`` alone, equivalent by both; empty without ``bound``."""
        if self.bound is None:
            return ""
        return "ci" if self.verdict in (Verdict.BETTER, Verdict.WORSE) else "ci and bound"

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


def how_bracketed(deltas: Sequence[Delta]) -> str:
    """Kind of the intervals of a table, those of a metric all of one level."""
    levels = [delta.level for delta in deltas if delta.level is not None]
    share = f"{levels_text(levels)} " if levels else ""
    alone = "; each holds by itself, all together do not" if len(levels) > 1 else ""
    return f"{share}by the same test{alone}"
