"""Runs whose queries were asked until every pair was decided: verdicts that hold at every look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from retrieval_bench.comparison.group import DatasetComparison, Recommendation, Systems
from retrieval_bench.comparison.modes.fixed import Fixed, one_question
from retrieval_bench.comparison.pairs.anytime import anytime_deltas, until_of
from retrieval_bench.comparison.pairs.delta import ANYTIME, Delta
from retrieval_bench.comparison.pairs.holm import Pair
from retrieval_bench.comparison.pairs.verdicts import Rules
from retrieval_bench.comparison.recommendation import recommended
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run


@dataclass(frozen=True, slots=True)
class Asked(Documented):
    """Calls of systems that were measured until decided: made, and saved.

    Attributes:
        target: "split" (the mean of all its queries) or "population" (of queries like these).
        asked, queries: of the queries that count, those that were asked, and all.
        calls, calls_saved: of all systems together.
        decided: whether it is: every pair, by the first metric.
    """

    target: str
    asked: int
    queries: int
    calls: int
    calls_saved: int
    decided: bool

    @classmethod
    def of(cls, runs: Sequence[Run], deltas: Sequence[Delta]) -> Asked:
        """Judge ``runs`` that were measured together.

        Args:
            deltas: of their pairs, in the metric that decides.
        """
        shown = (Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT)
        decided = all(delta.verdict in shown for delta in deltas)
        facts = until_of(runs[0])
        calls = (facts.asked * len(runs), (facts.queries - facts.asked) * len(runs))
        return cls(facts.target, facts.asked, facts.queries, *calls, decided)

    @property
    def sentence(self) -> str:
        """The queries that it took, and the calls that it saved."""
        of = f"{self.asked:,} of {counted(self.queries, 'query')}"
        saved = f"{self.calls_saved:,} of {counted(self.calls + self.calls_saved, 'call')} saved"
        if self.decided:
            return f"Decided after {of}: {saved}."
        if self.asked == self.queries:
            return f"Not decided, though all {counted(self.queries, 'query')} were asked."
        return f"Not decided: it ended after {of}."

    @property
    def mean(self) -> str:
        """The mean that is meant."""
        return {
            "split": "the mean of all queries of this split",
            "population": "the mean of queries like these",
        }[self.target]


@dataclass(frozen=True, slots=True, kw_only=True)
class UntilDecided(DatasetComparison):
    """Differences with anytime-valid intervals and verdicts, without times.

    Attributes:
        asked: how many queries it took.
    """

    asked: Asked

    means_have_intervals: ClassVar[bool] = False
    without_failures: ClassVar[str] = "with the queries that failed on either side as ties"

    @property
    def sentence(self) -> str:
        """The queries that it took, and the calls that it saved."""
        return self.asked.sentence

    @property
    def meaning(self) -> str:
        """The meaning of verdicts and intervals, and of what they are."""
        return f"anytime-valid intervals by betting, of {self.asked.mean}"

    def brackets(self, metric: Metric | str) -> str:
        """Kind of the intervals of the differences."""
        del metric
        return ANYTIME

    @property
    def extent(self) -> str:
        """The number of queries that were asked, and of all."""
        return f"{self.asked.asked:,} of {counted(self.asked.queries, 'query')}"

    def recommended(self, margin: float, baseline: str | None = None) -> Recommendation:
        """The best mean, or one that is shown to be equivalent to it."""
        return recommended(self, margin, baseline)


def compare_until_decided(
    systems: Systems, pairs: Sequence[Pair], rules: Rules, warnings: Sequence[str]
) -> UntilDecided | Fixed:
    """Every pair on every metric; beside runs that were measured otherwise, they are no measurement
    until decided, and none of these is held against them."""
    deltas = tuple(anytime_deltas(*systems, pairs, margin=rules.margin))
    if any(run.asked is None for run in systems.runs):
        return Fixed(*systems, deltas, warnings=tuple(warnings))
    deciding = [delta for delta in deltas if delta.metric == str(systems.metrics[0])]
    asked = Asked.of(systems.runs, deciding)
    alike: tuple[tuple[Delta, ...], list[str]] = (), []
    if asked.target == "population":
        alike = one_question(systems, pairs, rules, deltas)
    warnings, by_question = (*warnings, *alike[1]), alike[0]
    return UntilDecided(*systems, deltas, warnings=warnings, by_question=by_question, asked=asked)
