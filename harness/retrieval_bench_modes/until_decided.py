"""Runs whose queries were asked until every pair was decided: verdicts that hold at every look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from retrieval_bench.comparison.fixed import Fixed, one_question
from retrieval_bench.comparison.group import DatasetComparison, Recommendation, Systems
from retrieval_bench.comparison.pairs.comparability import not_comparable, nothing_can_differ
from retrieval_bench.comparison.pairs.delta import ANYTIME, Delta
from retrieval_bench.comparison.pairs.holm import Pair
from retrieval_bench.comparison.pairs.verdicts import Rules
from retrieval_bench.comparison.recommendation import recommended
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.measure.calls import OK
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.summary import UntilFacts
from retrieval_bench.stats.intervals import Floats
from retrieval_bench_modes.anytime import Bools, deltas_in_order, scale_to_bet_on


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
    def estimand(self) -> str:
        """The mean that is meant."""
        split = self.asked.target == "split"
        return f"the mean of {'all queries of this split' if split else 'queries like these'}"

    @property
    def meaning(self) -> str:
        """The meaning of verdicts and intervals, and of what they are."""
        return f"anytime-valid intervals by betting, of {self.estimand}"

    @property
    def method(self) -> Mapping[str, str]:
        """The intervals that verdicts rest on."""
        return {"test": self.meaning, "family": "the pairs of one metric on one dataset"}

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


def anytime_deltas(
    dataset: str,
    runs: Sequence[Run],
    names: Sequence[str],
    metrics: Sequence[Metric],
    pairs: Sequence[Pair],
    *,
    margin: float,
) -> list[Delta]:
    """Every pair on every metric, in the order of ``pairs``."""
    comparable = [pair for pair in pairs if not _refused(runs, pair).reason]
    by_pair: dict[tuple[Pair, Metric], Delta] = {}
    for metric in metrics:
        if comparable and metric.scale is not None:
            deltas = _judged(runs, names, metric, comparable, margin=margin)
            by_pair |= {
                (pair, metric): delta for pair, delta in zip(comparable, deltas, strict=True)
            }
    return [
        replace(
            by_pair.get((pair, metric)) or _refused(runs, pair, metric),
            metric=str(metric),
            a=names[pair[0]],
            b=names[pair[1]],
            dataset=dataset,
        )
        for pair in pairs
        for metric in metrics
    ]


def _refused(runs: Sequence[Run], pair: Pair, metric: Metric | None = None) -> Delta:
    """Return a difference without figures, and why; no reason where there is none."""
    a, b = (runs[at] for at in pair)
    verdict, reason = Verdict.MISSING, ""
    if why := not_comparable(a, b):
        verdict, reason = Verdict.NOT_COMPARABLE, why
    elif a.asked is None:
        verdict, reason = Verdict.NOT_COMPARABLE, "beside runs that were measured until decided"
    elif not a.asked:
        reason = "no evaluated query"
    elif metric is not None:
        reason = f"nothing can be bet on {metric}: its values have no known range"
    return Delta("", "", "", verdict, reason=reason)


def _judged(
    runs: Sequence[Run],
    names: Sequence[str],
    metric: Metric,
    pairs: Sequence[Pair],
    *,
    margin: float,
) -> list[Delta]:
    """Judge ``pairs`` in one metric."""
    systems = sorted({at for pair in pairs for at in pair})
    place = {at: row for row, at in enumerate(systems)}
    told = [_in_order(runs[at], metric) for at in systems]
    until = until_of(runs[pairs[0][0]])
    deltas = deltas_in_order(
        [names[at] for at in systems],
        np.stack([values for values, _ in told]),
        np.stack([answered for _, answered in told]),
        [(place[i], place[j]) for i, j in pairs],
        scale_to_bet_on(metric),
        margin=margin,
        total=until.queries if until.target == "split" else None,
    )
    return [
        Delta("", "", "", Verdict.MISSING, n=delta.n, reason=why)
        if (why := nothing_can_differ(runs[i], runs[j], metric))
        else delta
        for (i, j), delta in zip(pairs, deltas, strict=True)
    ]


def until_of(run: Run) -> UntilFacts:
    """Return how far a run that was measured until decided came."""
    assert run.summary.until_decided is not None  # such runs alone are looked at here
    return run.summary.until_decided


def _in_order(run: Run, metric: Metric) -> tuple[Floats, Bools]:
    """Values, and whether it answered, in the order asked."""
    status = dict(zip(run.rankings.query_ids, run.status, strict=True))
    asked = run.asked or ()
    return run.evaluation.values(metric, asked), np.array(
        [status[query_id] == OK for query_id in asked]
    )
