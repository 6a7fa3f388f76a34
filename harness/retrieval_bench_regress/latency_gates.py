"""Verdict on whether calls got slower: a look at the stored times, and a duet where they give cause
for it.

Two measurements of the same code at two times differ by more than what is to be found, so that a
stored time never fails anything. It may only pass where nothing looks slower; otherwise both
revisions are measured side by side, and that verdict counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from retrieval_bench.comparison.pairs.call_pairs import Pairs
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, HarnessError, counted
from retrieval_bench.core.figures import change_text
from retrieval_bench.core.types import Verdict
from retrieval_bench_duet.account import MEAN_DELTA
from retrieval_bench_duet.decision import GATES, thetas
from retrieval_bench_duet.result import WORDS, DuetResult, Word
from retrieval_bench_regress.baseline import LatencyBaseline, protocol_of

SHARE = 1 / 3
"""Of the limit: slower by more than this starts a duet. Faster by the whole limit does, too: stored
times that are so far above those of today would hide a slow-down."""

Duet = Callable[[], DuetResult]
"""Measures the revision of the baseline and today's files side by side."""


class When(StrEnum):
    """Rule for when a duet is made."""

    SUSPICION = "suspicion"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class LatencyGate(Documented):
    """One figure.

    Attributes:
        gate: its name, such as "p50".
        verdict: WORSE fails, EQUIVALENT and BETTER pass.
        limit: largest acceptable slow-down, a share.
        stored: time now over stored time; None where they cannot be held against each other.
        ratio, interval: of the duet, time now over that of the baseline's revision; None without.
        reason: why there is no verdict, or what else to know.
        starts_at: slow-down against the stored times that starts a duet.
    """

    KEYS = "gate verdict=word limit starts_at stored ratio interval reason"

    gate: str
    verdict: Verdict
    limit: float
    stored: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    reason: str = ""

    @property
    def starts_at(self) -> float:
        """The slow-down against the stored times that starts a duet."""
        return SHARE * self.limit

    @property
    def outdated(self) -> bool:
        """True if the stored time is too far above that of today to clear anything."""
        return self.stored is not None and self.stored < 1 / (1 + self.limit)

    @property
    def suspicious(self) -> bool:
        """True if the stored time does not clear it."""
        slower = self.stored is not None and not self.stored <= 1 + self.starts_at
        return slower or self.outdated

    @property
    def word(self) -> Word:
        """The verdict as shown."""
        return WORDS[self.verdict]


@dataclass(frozen=True, slots=True)
class StoredMean:
    """The mean of all calls beside that of the baseline.

    Attributes:
        stored: time now over stored time.
        starts_at: the slow-down that starts a duet.
    """

    stored: float | None
    starts_at: float


@dataclass(frozen=True, slots=True)
class LatencyResult(Documented):
    """Latency against the baseline.

    Attributes:
        verdict: the worst of the gates, or what keeps them from being judged.
        gates: one for each figure of the policy.
        reason: in one sentence.
        mean: stored mean of all calls beside that of now: who pauses now and then shows in no gate.
            It is no gate, and has a limit only to say where a duet starts; None where it is not
            known.
        unsupported: gates of the policy that so few queries cannot be judged by, and why.
        duet: what it found; None where there was none.
        broken: a duet was to be made and could not be.
        unanswered: queries that the baseline has a time of and today none.
    """

    KEYS = "verdict=word reason gates mean=shown_mean unsupported unanswered duet"

    verdict: Verdict
    gates: tuple[LatencyGate, ...]
    reason: str
    mean: LatencyGate | None = None
    unsupported: tuple[str, ...] = ()
    duet: DuetResult | None = None
    broken: bool = False
    unanswered: int = 0

    @property
    def figures(self) -> tuple[LatencyGate, ...]:
        """All that stored times are held against those of now by."""
        return (*self.gates, *([self.mean] if self.mean else []))

    @property
    def suspicious(self) -> bool:
        """True if any stored time does not clear it."""
        return any(figure.suspicious for figure in self.figures)

    @property
    def word(self) -> Word:
        """The verdict as shown."""
        return WORDS[self.verdict]

    @property
    def shown_mean(self) -> StoredMean | None:
        """The stored mean of all calls beside that of now; None where it is not known."""
        mean = self.mean
        return None if mean is None else StoredMean(mean.stored, mean.starts_at)


def not_measured(
    limits: Mapping[str, float], reason: str, verdict: Verdict = Verdict.MISSING
) -> LatencyResult:
    """Nothing of ``limits`` can be judged."""
    gates = tuple(LatencyGate(name, verdict, limit) for name, limit in limits.items())
    return LatencyResult(verdict, gates, reason)


def other_data(before: Any, split: str, fingerprint: str) -> str:
    """Return what of ``before``, which has the same attributes, is another; empty of the same."""
    for name, now in (("split", split), ("fingerprint", fingerprint)):
        if getattr(before, name) != now:
            return f"the times are of another dataset {name}"
    return ""


def incomparable(before: LatencyBaseline, *, split: str, fingerprint: str, k: int) -> str:
    """Return why times of now cannot be held against ``before``; empty when they can. The machine
    is right where the file was found, and its protocol is used again."""
    if other := other_data(before.dataset, split, fingerprint):
        return other
    if before.k != k:
        return f"the baseline has k {before.k}, now it is {k}"
    try:
        again = protocol_of(before).as_dict()
    except ConfigError as problem:
        return f"the times were measured by a protocol that is not known here: {problem.given}"
    for name, now in again.items():  # what is no parameter but a rule of the version
        was = before.protocol.get(name)
        if was != now:
            return f"measured by another protocol: {name.replace('_', ' ')} {was}, now {now}"
    return ""


def judge_latency(
    before: LatencyBaseline | None,
    now: LatencyBaseline | None,
    limits: Mapping[str, float],
    *,
    duet: Duet | None,
    when: When = When.SUSPICION,
    reason: str = "",
) -> LatencyResult:
    """The verdict on ``limits``, each in the terms of :data:`retrieval_bench_duet.decision.GATES`.

    Args:
        before: stored times that may be held against those of now; None where there are none.
        now: times of now.
        duet: measures both sides; None where no revision can be got back.
        reason: why there is no ``before``, or no ``duet``, and what to do.
    """
    if when is When.ALWAYS:
        if duet is None:
            return not_measured(limits, reason)
        return _by_duet(not_measured(limits, ""), duet)
    if before is None or now is None:
        return not_measured(limits, reason or "no call was answered")
    result = _looked_at(before, now, limits)
    if result.suspicious:
        result = _suspected(result, duet, when, reason)
    return _with_unanswered(result, len(set(before.queries) - set(now.queries)))


def _with_unanswered(latency_result: LatencyResult, n: int) -> LatencyResult:
    """A query that fails or times out takes longer than any limit: those that are left clear
    nothing."""
    if not n:
        return latency_result
    why = f"{counted(n, 'query')} with a stored time failed or timed out"
    told = why if latency_result.duet is None else f"{latency_result.reason}; {why}"
    if latency_result.verdict is not Verdict.WORSE:
        latency_result = _unjudged(latency_result, told)
    return replace(latency_result, reason=told, unanswered=n)


def _suspected(looked: LatencyResult, duet: Duet | None, when: When, reason: str) -> LatencyResult:
    """Judge stored times that look slower."""
    signs = ", ".join(
        f"{figure.gate} {_percent(figure.stored)}" for figure in looked.figures if figure.suspicious
    )
    message = f"against the stored times: {signs}"
    if when is When.NEVER:
        gates = tuple(
            replace(gate, verdict=Verdict.UNDECIDED) if gate.suspicious else gate
            for gate in looked.gates
        )
        why = f"{message}; only a duet can tell, and none was to be made"
        return replace(looked, verdict=Verdict.UNDECIDED, gates=gates, reason=why)
    if duet is None:
        return _unjudged(looked, f"{message}; only a duet can tell: {reason}")
    return _by_duet(replace(looked, reason=message), duet)


def _looked_at(
    before: LatencyBaseline, now: LatencyBaseline, limits: Mapping[str, float]
) -> LatencyResult:
    """The stored times beside those of now, by the figures that a duet takes."""
    queries = sorted(set(before.queries) & set(now.queries))
    pairs = _pairs(
        [before.queries[query] for query in queries], [now.queries[query] for query in queries]
    )
    gates, unsupported = [], []
    for name, limit in limits.items():
        if len(queries) < GATES[name].queries:
            unsupported.append(f"{name}: {len(queries)} queries, it takes {GATES[name].queries}")
        else:
            ratio = math.exp(*thetas(name, [pairs]))
            gates.append(LatencyGate(name, Verdict.EQUIVALENT, limit, ratio))
    if not gates:
        why = f"too few queries: {'; '.join(unsupported)}"
        return replace(not_measured(limits, why), unsupported=tuple(unsupported))
    latency_result = LatencyResult(
        Verdict.EQUIVALENT, tuple(gates), "", _mean(before, now, limits), tuple(unsupported)
    )
    shown = ", ".join(
        f"{figure.gate} {_percent(figure.stored)} "
        f"(a duet starts at {_percent(1 + figure.starts_at)})"
        for figure in latency_result.figures
    )
    return replace(latency_result, reason=f"no sign of it getting slower: {shown}")


def _mean(
    before: LatencyBaseline, now: LatencyBaseline, limits: Mapping[str, float]
) -> LatencyGate | None:
    """Judge the mean of all calls. A duet that it starts objects to no less than
    :data:`MEAN_DELTA`, and it moves with every pause of the machine: the widest limit is its own.
    Of other queries it is another."""
    if not before.mean or set(before.queries) != set(now.queries):
        return None
    limit = max([MEAN_DELTA / SHARE, *limits.values()])
    return LatencyGate("mean", Verdict.EQUIVALENT, limit, now.mean / before.mean)


def _pairs(before: list[int], now: list[int]) -> Pairs:
    """Medians of queries as one call of each."""
    n = len(before)
    zeros, numbers = np.zeros(n, dtype=np.int32), np.arange(n, dtype=np.int32)
    logs = [np.log(np.maximum(np.array(side, dtype=np.float64), 1.0)) for side in (before, now)]
    return Pairs(logs[0], logs[1], zeros, zeros, numbers, numbers)


def _by_duet(looked: LatencyResult, duet: Duet) -> LatencyResult:
    """Judge by the duet; a duet that cannot be made says nothing."""
    try:
        outcome = duet()
    except HarnessError as problem:
        why = " ".join(problem.render().split())
        return replace(
            _unjudged(looked, f"{looked.reason}; the duet cannot be made: {why}".lstrip("; ")),
            broken=True,
        )
    judged = {gate.gate: gate for gate in outcome.gates}
    gates = []
    for gate in looked.gates:
        result = judged.get(gate.gate)
        gates.append(
            replace(gate, verdict=Verdict.MISSING, reason=outcome.reason)
            if result is None
            else replace(
                gate,
                verdict=result.verdict,
                ratio=result.ratio,
                interval=result.interval,
                reason=result.reason,
            )
        )
    verdict = outcome.verdict
    missed = [
        f"{gate.gate} was not judged: {gate.reason}"
        for gate in gates
        if gate.verdict is Verdict.MISSING and outcome.queries >= GATES[gate.gate].queries
    ]
    if verdict in (Verdict.MISSING, Verdict.NOT_COMPARABLE):
        missed = []  # the duet says why
    elif (outcome.interrupted or missed) and verdict is not Verdict.WORSE:
        verdict = Verdict.MISSING
    told = (looked.reason, f"side by side: {WORDS[verdict]}", outcome.reason)
    reason = "; ".join(dict.fromkeys(filter(None, (*told, *missed))))
    return replace(looked, verdict=verdict, gates=tuple(gates), reason=reason, duet=outcome)


def _unjudged(looked: LatencyResult, reason: str) -> LatencyResult:
    gates = tuple(replace(gate, verdict=Verdict.MISSING) for gate in looked.gates)
    return replace(looked, verdict=Verdict.MISSING, gates=gates, reason=reason)


def _percent(ratio: float | None) -> str:
    return change_text(None if ratio is None else ratio - 1)


def p_share_no_larger(now: tuple[int, int], then: tuple[int, int]) -> float:
    """p of "the share is no larger now", by Fisher's exact test; 1 where either is of none.

    Args:
        now, then: how many, and of how many.
    """
    from scipy.stats import hypergeom

    (a, n), (b, before) = now, then
    return float(hypergeom.sf(a - 1, n + before, a + b, n)) if n and before else 1.0
