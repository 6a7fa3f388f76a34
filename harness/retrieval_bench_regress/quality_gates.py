"""Verdict on whether rankings got worse than those of a baseline, metric by metric.

Identical rankings pass. So does a metric that fell on no query, for there is no drop whose size
could be in question. Where the policy asks for shown rises, neither passes. Otherwise the paired
test decides; decision record 0035 says why like this:

* FAIL: the mean dropped by more than the limit, and the drop is shown to be no chance: the paired
  randomisation test of ``compare``, after Holm over the metrics of the policy.
* PASS: shown to be better; or the drop is shown to be smaller than the limit, also on queries that
  were not seen (:func:`retrieval_bench.stats.resampling.mean_below_p`).
* INCONCLUSIVE: neither; but a mean that rose here passes, unless the policy says otherwise. Where
  it asks for shown rises, what is neither worse nor shown to be better is INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.brackets import Brackets
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA, corrected
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import end_text
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import bracket, resamples_for
from retrieval_bench.stats.paired import PairedTests, paired_tests
from retrieval_bench.stats.randomization import ROUNDING, fewest_rows, smallest_p
from retrieval_bench.stats.resampling import mean_below_p
from retrieval_bench_duet.account import MOST_FAILED
from retrieval_bench_duet.result import WORDS, Word
from retrieval_bench_regress.baseline import FAILED, QualityBaseline
from retrieval_bench_regress.policy import Rise

_SAME = ("split", "fingerprint")
_FIGURES = ("difference", "ci", "level", "bound", "p", "p_limit")
"""Of a gate, what belongs to the queries that it was decided on."""
_SETTLED = ("k", "convention", "metrics_version")


@dataclass(frozen=True, slots=True)
class QualityGate(Documented):
    """One metric.

    Attributes:
        metric: its name.
        verdict: WORSE fails, EQUIVALENT and BETTER pass.
        limit: largest acceptable drop, above 0.
        before, now: means.
        difference: now minus before.
        ci: interval of the difference; it is below 0 exactly where a drop is shown, and holds
            by itself.
        level: of ``ci`` and ``bound``, one for all metrics: what Holm leaves to them, 95 % or more.
        bound: Gaffke's interval at the same level; where few queries carry the difference.
        p: that the difference is chance, two-sided, after Holm over the metrics of the policy.
        p_limit: that the mean of all such queries drops by the limit or more, one-sided.
        higher, lower: queries on which it rose and fell.
        queries_needed: further queries that would show a difference of this size and spread.
        reason: why there is no verdict, or what else to know.
    """

    KEYS = (
        "metric verdict=word limit=shown_limit before now difference ci level bound p p_limit "
        "higher lower queries_needed reason"
    )

    metric: str
    verdict: Verdict
    limit: float
    before: float | None = None
    now: float | None = None
    difference: float | None = None
    ci: tuple[float, float] | None = None
    level: float | None = None
    bound: tuple[float, float] | None = None
    p: float | None = None
    p_limit: float | None = None
    higher: int = 0
    lower: int = 0
    queries_needed: int | None = None
    reason: str = ""

    @property
    def word(self) -> Word:
        """The verdict as shown."""
        return WORDS[self.verdict]

    @property
    def shown_limit(self) -> float:
        """Largest acceptable drop, below 0 as policies say it."""
        return -self.limit


@dataclass(frozen=True, slots=True)
class ChangedQuery(Documented):
    """A query with another ranking.

    Attributes:
        query_id: the query.
        values: metric -> value before and now; empty for a query that no document answers.
        failed: it was answered before, or is now, and the other time it failed.
    """

    query_id: str
    values: Mapping[str, tuple[float, float]]
    failed: bool = False

    @property
    def largest_drop(self) -> float:
        """The largest drop over its metrics; below 0 where all rose."""
        return max((before - now for before, now in self.values.values()), default=0.0)


@dataclass(frozen=True, slots=True)
class QualityResult(Documented):
    """Quality against the baseline.

    Attributes:
        gates: one for each metric of the policy.
        n: evaluated queries.
        changed: queries with another ranking, largest drop first.
        reason: why it is what it is; empty where the gates say it.
        unanswered: queries that were answered in the baseline and failed now.
        failed: evaluated queries that failed now.
        failing: why those that were answered do not stand for all; empty where they do.
    """

    KEYS = "gates n changed unanswered failed reason=why"

    gates: tuple[QualityGate, ...]
    n: int = 0
    changed: tuple[ChangedQuery, ...] = ()
    reason: str = ""
    unanswered: int = 0
    failed: int = 0
    failing: str = ""

    @property
    def why(self) -> str:
        """The reason for its verdict; empty where the gates say it."""
        return self.reason or self.failing


def not_measured(
    limits: Mapping[Metric, float], reason: str, verdict: Verdict = Verdict.MISSING
) -> QualityResult:
    """No metric of ``limits`` can be judged."""
    return QualityResult(
        tuple(QualityGate(str(m), verdict, limit, reason=reason) for m, limit in limits.items()),
        reason=reason,
    )


def incomparable(
    before: QualityBaseline, *, split: str, fingerprint: str, k: int, rules: Mapping[str, Any]
) -> str:
    """Return why quality cannot be held against ``before``; empty when it can.

    Args:
        rules: ``convention`` and ``metrics_version`` of today.
    """
    now: dict[str, Any] = {"split": split, "fingerprint": fingerprint, "k": k, **rules}
    for name in _SAME:
        was = getattr(before.dataset, name)
        if was != now[name]:
            what = {"fingerprint": "its content has changed"}.get(name, f"{was}, now {now[name]}")
            return f"the baseline is of another dataset {name}: {what}"
    for name in _SETTLED:
        was = getattr(before, name)
        if was != now[name]:
            return f"the baseline has {name.replace('_', ' ')} {was}, now it is {now[name]}"
    return ""


_PASSES = (Verdict.BETTER, Verdict.EQUIVALENT)
Test = Callable[
    [QualityBaseline, QualityBaseline, Mapping[Metric, float], Sequence[str] | None],
    dict[str, QualityGate],
]
"""Gives the gate of each metric by then and now, limits, and queries (None = all)."""


def judge_quality(
    before: QualityBaseline,
    now: QualityBaseline,
    limits: Mapping[Metric, float],
    rise: Rise = Rise.PASS,
    *,
    equal: str = "same rankings",
) -> QualityResult:
    """Every metric of ``limits`` on the queries of both, which :func:`incomparable` finds equal.

    Args:
        rise: what a mean that rose here comes to, where nothing more is shown.
        equal: what it says of both where every query has the same hash.
    """
    if set(before.queries) != set(now.queries) or before.evaluated != now.evaluated:
        return not_measured(limits, "other queries were finished", Verdict.NOT_COMPARABLE)
    unanswered = sum(FAILED == now.ranking(q) != before.ranking(q) for q in now.queries)
    failed, failing = _failed(now), why_failing(now)
    if failed == len(now.evaluated):
        nothing = not_measured(limits, "no evaluated query was answered")
        return replace(nothing, unanswered=unanswered, failed=failed, failing=failing)
    if not failing and (then := why_failing(before)):
        failing = f"in the baseline {then}"
    changed = _changed(before, now)
    missing = {m: why for m in limits if (why := _why_missing(str(m), before, now))}
    known = [m for m in limits if m not in missing]
    test = _TESTS[rise]
    tested = test(before, now, {m: limits[m] for m in known}, None) if changed else {}
    gates = []
    for metric, limit in limits.items():
        name = str(metric)
        if metric in missing:
            gates.append(QualityGate(name, Verdict.MISSING, limit, reason=missing[metric]))
        elif changed:
            gates.append(tested[name])
        else:
            same = (before.metrics[name], now.metrics[name])
            gate = QualityGate(name, Verdict.EQUIVALENT, limit, *same, 0.0, reason=equal)
            gates.append(_open_unless_shown(gate) if rise is Rise.SHOWN else gate)
    why = failing
    if unanswered:
        # Whether its values would have fallen is not known, also where they were 0 before.
        why = f"{counted(unanswered, 'query')} that had an answer failed"
    if why or _failed(before):
        there = _where_answered(before, now, {m: limits[m] for m in known}, test)
        gates = [_second_look(gate, there.get(gate.metric), why) for gate in gates]
    return QualityResult(
        tuple(gates), len(now.evaluated), tuple(changed), "", unanswered, failed, failing
    )


def _passing_rises(*given: Any) -> dict[str, QualityGate]:
    """The gates of :func:`_tested`; an open one passes where the mean rose."""
    return {name: _passed_if_risen(gate) for name, gate in _tested(*given).items()}


def _passed_if_risen(gate: QualityGate) -> QualityGate:
    if not gate.verdict.open or gate.difference is None or gate.difference <= 0:
        return gate
    why = "rose on these queries, which passes (`rise` in the policy)"
    if gate.ci is not None:
        why += f"; on all such queries the change may be as low as {end_text(gate.ci[0], 4)}"
        why += ", the lower end of its interval"
    return replace(gate, verdict=Verdict.EQUIVALENT, queries_needed=None, reason=why)


def _shown_rises(*given: Any) -> dict[str, QualityGate]:
    """The gates of :func:`_tested`; one that is not worse is open unless it is shown to be
    better."""
    return {name: _open_unless_shown(gate) for name, gate in _tested(*given).items()}


def _open_unless_shown(gate: QualityGate) -> QualityGate:
    rose = gate.difference is not None and gate.difference > 0
    shown = rose and gate.p is not None and gate.p < QUALITY_ALPHA
    if shown or gate.verdict not in _PASSES:
        return gate
    begin = "rose on these queries, and is" if rose else f"{gate.reason}:"
    why = f"{begin} not shown to be better (`rise` in the policy)"
    return replace(gate, verdict=Verdict.UNDECIDED, reason=why)


def why_failing(of: QualityBaseline) -> str:
    """Return why the evaluated queries that were answered do not stand for all; empty where they
    do. Two measurements in which the same queries fail have identical rankings."""
    if not of.evaluated:
        return "no query is judged"
    n, failed = len(of.evaluated), _failed(of)
    return f"{failed} of {counted(n, 'judged query')} failed" if failed > MOST_FAILED * n else ""


def _failed(of: QualityBaseline) -> int:
    return sum(of.ranking(query) == FAILED for query in of.evaluated)


def _why_missing(name: str, before: QualityBaseline, now: QualityBaseline) -> str:
    """Return why a metric cannot be judged; empty when it can."""
    if name not in before.metrics or name not in now.metrics:
        return f"the baseline does not have {name}"
    values = [baseline.values(name, now.evaluated) for baseline in (before, now)]
    return "" if np.isfinite(values).all() else "a value is no number"


def _changed(before: QualityBaseline, now: QualityBaseline) -> list[ChangedQuery]:
    names = [name for name in before.metrics if name in now.metrics]
    changed = []
    for query in sorted(now.queries):
        hashes = (before.ranking(query), now.ranking(query))
        if hashes[0] == hashes[1]:
            continue
        values = {}
        if len(now.queries[query]) > 1:
            for name in names:
                old, new = (baseline.values(name, [query])[0] for baseline in (before, now))
                values[name] = (float(old), float(new))
        changed.append(ChangedQuery(query, values, FAILED in hashes))
    return sorted(changed, key=lambda change: (-change.largest_drop, change.query_id))


def _where_answered(
    before: QualityBaseline, now: QualityBaseline, limits: Mapping[Metric, float], test: Test
) -> dict[str, QualityGate]:
    """The gates on the queries that were answered both times."""
    answered = [q for q in now.evaluated if FAILED not in (before.ranking(q), now.ranking(q))]
    return test(before, now, limits, answered) if answered else {}


def _second_look(gate: QualityGate, there: QualityGate | None, why: str) -> QualityGate:
    """Hold a gate against what it is without the queries that failed then or now.

    A failed query counts 0: it makes a drop that says nothing of the rankings, and where it failed
    in the baseline a rise that hides one.

    Args:
        there: the gate on the queries that were answered both times; None where there are none.
        why: why nothing but a drop can be judged in any case; empty where it can.
    """
    if gate.verdict is Verdict.MISSING:
        return gate
    if there is not None and there.verdict is Verdict.WORSE:
        reason = "worse on the queries that were answered both times"
        of_these = () if gate.verdict is Verdict.WORSE else _FIGURES
        figures: dict[str, Any] = {name: getattr(there, name) for name in of_these}
        return replace(gate, verdict=Verdict.WORSE, queries_needed=None, reason=reason, **figures)
    same = there is not None and (
        gate.verdict is there.verdict or (gate.verdict in _PASSES and there.verdict in _PASSES)
    )
    if not why and (same or gate.verdict.open):
        return gate
    reason = why or "it rests on queries that failed in the baseline"
    return replace(gate, verdict=Verdict.MISSING, queries_needed=None, reason=reason)


def _tested(
    before: QualityBaseline,
    now: QualityBaseline,
    limits: Mapping[Metric, float],
    queries: Sequence[str] | None = None,
) -> dict[str, QualityGate]:
    """The paired test of each metric on ``queries``; None = on all that are evaluated."""
    if not limits:
        return {}
    names = [str(metric) for metric in limits]
    queries = now.evaluated if queries is None else queries
    values = np.stack(
        [
            np.column_stack([baseline.values(name, queries) for name in names])
            for baseline in (before, now)
        ]
    )
    clusters = Clusters.of_queries(now.clusters or before.clusters, queries)
    tested = paired_tests(
        values,
        [(0, 1)],
        clusters=clusters,
        scales=[metric.scale for metric in limits],
        resamples=resamples_for(QUALITY_ALPHA / len(limits)),
    )
    p, _ = corrected([tested.p.T])  # the family are the metrics
    own = Brackets.of(tested, bracket(p).T)
    drops = values[0] - values[1]
    drops[np.abs(drops) <= ROUNDING] = 0.0
    needed = tested.queries_needed(QUALITY_ALPHA)[0]
    gates = {}
    for at, (name, limit) in enumerate(zip(names, limits.values(), strict=True)):
        chance, p_limit = float(p[at, 0]), _beyond_limit_p(drops[:, [at]], limit, clusters)
        difference = float(tested.difference[0, at])
        gate = replace(
            _gate(name, limit, tested, own, at),
            before=before.metrics[name],
            now=now.metrics[name],
            difference=difference,
            p=chance,
            p_limit=p_limit,
            queries_needed=needed[at].difference,
        )
        judged = _judged(gate, difference, chance, p_limit)
        gates[name] = _resolvable(judged, tested, QUALITY_ALPHA / len(limits))
    return gates


def _gate(
    name: str, limit: float, paired_tests: PairedTests, own: Brackets, at: int
) -> QualityGate:
    of_metric = own.at((0, at))
    return QualityGate(
        name,
        Verdict.UNDECIDED,
        limit,
        ci=of_metric.ci,
        level=of_metric.level,
        bound=of_metric.bound,
        higher=int(paired_tests.wins[0, at]),
        lower=int(paired_tests.losses[0, at]),
    )


def _beyond_limit_p(drops: NDArray[np.float64], limit: float, clusters: Clusters | None) -> float:
    """A query that was not seen may drop by 1, or by as much as any seen one if that is more."""
    largest = np.array([max(1.0, float(np.abs(drops).max()))])
    return float(mean_below_p(drops, limit, largest, clusters=clusters)[0])


def _resolvable(gate: QualityGate, tested: PairedTests, level: float) -> QualityGate:
    """``gate``, unless it is open because so few queries show nothing, whatever they say."""
    if not gate.verdict.open or smallest_p(tested.units) < level:
        return gate
    unit = "query" if tested.clusters is None else "cluster"
    queries, fewest = counted(tested.units, unit), fewest_rows(level)
    why = f"{queries} can't show any drop, whatever they say; {fewest:,} could"
    return replace(gate, verdict=Verdict.UNRESOLVABLE, queries_needed=None, reason=why)


def _judged(gate: QualityGate, difference: float, p: float, p_limit: float) -> QualityGate:
    """Return the gate with its verdict; see the module."""
    queries = counted(gate.higher + gate.lower, "query")
    if not gate.lower:
        why = f"rose on {queries}, fell on none" if gate.higher else "no value changed"
        verdict = Verdict.BETTER if gate.higher else Verdict.EQUIVALENT
        return replace(gate, verdict=verdict, queries_needed=None, reason=why)
    shown = p < QUALITY_ALPHA
    if shown and difference > 0:
        return replace(
            gate, verdict=Verdict.BETTER, queries_needed=None, reason="shown to be better"
        )
    if shown and -difference > gate.limit:
        return replace(
            gate,
            verdict=Verdict.WORSE,
            queries_needed=None,
            reason="dropped by more than the limit, and not by chance",
        )
    if p_limit < QUALITY_ALPHA:
        why = "a drop as large as the limit is ruled out"
        return replace(gate, verdict=Verdict.EQUIVALENT, queries_needed=None, reason=why)
    if -difference > gate.limit:
        why = "dropped by more than the limit, but that may be chance"
    elif shown:
        why = "shown to be worse; whether by less than the limit on all such queries is open"
    else:
        why = "within the limit on these queries, but a larger drop can't be ruled out"
    return replace(gate, reason=why)


_TESTS: Mapping[Rise, Test] = {
    Rise.PASS: _passing_rises,
    Rise.UNDECIDED: _tested,
    Rise.SHOWN: _shown_rises,
}
