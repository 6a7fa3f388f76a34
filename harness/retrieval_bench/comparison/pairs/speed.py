"""Verdict on which of two runs is faster: paired ratios of times with verdicts.

Two runs are judged only when they were measured in one session, side by side: two blocks that
were timed apart differ also where the code does not. What was repeated says how far a ratio can be
trusted: launches, where there are at least five; otherwise rounds, which do not show how far two
processes differ, so that only a large difference is told. Nothing is read or printed here.

Source: Kalibera & Jones (2013), Rigorous Benchmarking in Reasonable Time, for the launch as a level
of the design; Bulej et al. (2020), Duet Benchmarking, for paired calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.claims import Claim
from retrieval_bench.comparison.pairs.call_pairs import (
    Pairs,
    log_ratios,
    tail_thetas,
    typical_thetas,
    whole_clusters,
)
from retrieval_bench.comparison.pairs.holm import Pair
from retrieval_bench.comparison.pairs.voided import first_calls, small_only, void
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.percentiles import FEWEST_LAUNCHES, NEEDS
from retrieval_bench.stats.resampling import holm, student_p

TYPICAL, TAIL = "typical", "p95"
"""What is judged: the time of a usual query, and of the slow ones."""

LATENCY_ALPHA = 0.01
"""Level of each one-sided test; also of intervals, 1 % on either side."""

DELTA = {TYPICAL: 0.01, TAIL: 0.03}
"""Slower or faster by no more than this counts as no difference, with five launches or more."""

ALLOWANCE = 0.10
"""In place of :data:`DELTA` with fewer than five launches: what two processes, and two copies in
one process, may differ by though the code is the same. Decision record 0025 has the figures."""

LIMIT = 0.05
"""Two systems are equivalent when they are shown to differ by less."""

MOST_LAUNCHES = 24
"""More are not proposed: what needs them is too small to matter."""

_APART = (
    "measured apart, where times differ though the code does not: measure both in one "
    "compare --retrievers"
)
_POWER_Z = 0.8416212335729143  # 80 %
_TIMED_HOW = ("threads", "collector", "launches", "timeout_s")


@dataclass(frozen=True, slots=True)
class LatencyDelta(Documented):
    """The times of two systems, paired call by call.

    Attributes:
        a: the system that b is held against.
        b: the one that the verdict speaks of.
        what: "typical" (usual queries) or "p95" (slow ones).
        verdict: b beside a; better is faster.
        ratio: time of b over time of a.
        ci98: interval of the ratio for this pair alone, 1 % on either side.
        launches: processes in which both were measured.
        reason: why there is no verdict, and what to do; which calls are not in it.
        over: what was repeated, whose differences the interval comes from, such as "7 rounds".
        pairs: pairs of calls behind the ratio.
        failed: pairs that were left out because one of the two calls failed.
        beyond: a ratio must be shown to be above 1 + this, or below its inverse.
        p: one-sided, of the ratio not being beyond that, on the side where it lies; after Holm in
            what :func:`corrected` returns.
        p_equivalence: the larger of two one-sided tests against :data:`LIMIT`; None where there
            are too few launches to show it.
        void: there would be a ratio, but a warning of one of the two makes it void.
    """

    KEYS = (
        "what a b ratio ci98 beyond p p_equivalence launches over pairs failed_pairs=failed "
        "verdict reason?"
    )

    a: str
    b: str
    what: str
    verdict: Verdict
    ratio: float | None = None
    ci98: tuple[float, float] | None = None
    launches: int = 0
    reason: str = ""
    over: str = ""
    pairs: int = 0
    failed: int = 0
    beyond: float | None = None
    p: float | None = None
    p_equivalence: float | None = None
    void: bool = False


def latency_deltas(a: Run, b: Run, name_a: str, name_b: str) -> list[LatencyDelta]:
    """The typical time and the tail of two runs, in this order, each judged alone.

    Where several pairs are looked at, :func:`corrected` has the verdicts that count.
    """
    verdict, reason = _refused(a, b)
    empty = LatencyDelta(name_a, name_b, TYPICAL, verdict, reason=reason)
    pairs = None if reason else log_ratios(a.timings, b.timings)
    if pairs is None or not len(pairs.query):
        if pairs is not None:
            why = "no query was answered by both: there is no pair of calls"
            empty = replace(empty, verdict=Verdict.MISSING, reason=why, failed=pairs.failed)
        return [empty, replace(empty, what=TAIL)]
    pairs, groups = whole_clusters(pairs)
    latency_deltas = []
    for what in (TYPICAL, TAIL):
        start = replace(
            empty,
            what=what,
            launches=pairs.launches,
            over=groups.words,
            pairs=len(pairs.query),
            failed=pairs.failed,
        )
        why_not = "" if what == TYPICAL else _no_tail(pairs)
        if why_not:
            latency_deltas.append(replace(start, reason=why_not))
        else:
            thetas = typical_thetas(pairs, groups) if what == TYPICAL else tail_thetas(pairs)
            beyond = ALLOWANCE if small_only(a, b) else 0.0
            latency_deltas.append(_judged(_tested(start, thetas, beyond)))
    return latency_deltas


def latencies(
    runs: Sequence[Run], names: Sequence[str], pairs: Sequence[Pair]
) -> tuple[LatencyDelta, ...]:
    """Compare the latencies of all ``pairs``, corrected together; a ratio that a warning of the
    runs makes void is not told."""
    times = [d for i, j in pairs for d in latency_deltas(runs[i], runs[j], names[i], names[j])]
    return tuple(_without_void(delta, runs, names) for delta in corrected(times))


def _without_void(delta: LatencyDelta, runs: Sequence[Run], names: Sequence[str]) -> LatencyDelta:
    if delta.ratio is None:
        return delta
    pair = (delta.b, delta.a) if delta.ratio < 1 else (delta.a, delta.b)
    ahead, behind = (runs[names.index(name)] for name in pair)
    why = void(Claim.SPEED, ahead, behind, pair)
    if not why:
        return delta
    empty = LatencyDelta(delta.a, delta.b, delta.what, Verdict.NOT_COMPARABLE)
    reason = "; ".join(filter(None, (why, first_calls(ahead, behind, pair))))
    return replace(empty, launches=delta.launches, reason=reason, void=True)


def corrected(deltas: Sequence[LatencyDelta]) -> list[LatencyDelta]:
    """The verdicts that hold for all ``deltas`` together, in the given order; give it all those
    that are shown together, once.

    Holm's correction over both figures of every pair that were tested: the chance of any false
    "faster" or "slower" among them is at most 2 %, 1 % on either side, and of any false
    "equivalent" 1 %. Intervals stay those of each pair alone.
    """
    tested = [i for i, delta in enumerate(deltas) if delta.p is not None]
    after = list(deltas)
    for name in ("p", "p_equivalence"):
        places = [i for i in tested if getattr(deltas[i], name) is not None]
        values = np.array([getattr(deltas[i], name) for i in places], dtype=np.float64)
        for i, p in zip(places, holm(values).tolist(), strict=True):
            changed: dict[str, Any] = {name: p}
            after[i] = replace(after[i], **changed)
    for i in tested:
        after[i] = _judged(after[i], len(tested))
    return after


def timed_differently(runs: Sequence[Run]) -> str:
    """Return why the times of ``runs`` cannot be held against each other, in words; empty when they
    can.

    Another machine, or a setting that changes what a call takes; what a record does not hold is
    not known, and no difference.
    """
    surroundings = [run.manifest.get("environment", {}) for run in runs]
    if len({known.get("machine", {}).get("fingerprint") for known in surroundings}) > 1:
        return "measured on different machines"
    settings = [
        {"k": run.summary.k, "threads": known.get("threads")} | run.manifest.get("protocol", {})
        for run, known in zip(runs, surroundings, strict=True)
    ]
    different = [
        name.removesuffix("_s").replace("_", "-")
        for name in ("k", *_TIMED_HOW)
        if len({str(each[name]) for each in settings if name in each}) > 1
    ]
    return f"measured with different {', '.join(different)}" if different else ""


def timed_together(runs: Sequence[Run]) -> bool:
    """Return whether ``runs`` were measured in one session, alternating call by call."""
    sessions = {run.manifest.get("session") for run in runs}
    return len(sessions) == 1 and None not in sessions


def _refused(a: Run, b: Run) -> tuple[Verdict, str]:
    """The verdict and the reason of a pair that is not judged; no reason when it is."""
    replayed = [run.name for run in (a, b) if _replayed(run)]
    if replayed:
        names = " and ".join(dict.fromkeys(replayed))
        return Verdict.MISSING, f"no times of {names}: the rankings were read from a saved run"
    if _stand_in(a) != _stand_in(b):
        stand_in, name = (_stand_in(a), a.name) if _stand_in(a) else (_stand_in(b), b.name)
        why = f"{name} is a stand-in of {stand_in}, whose times are not those of a server"
        return Verdict.NOT_COMPARABLE, why
    for what in ("fingerprint", "split"):
        if getattr(a.summary.dataset, what) != getattr(b.summary.dataset, what):
            return Verdict.NOT_COMPARABLE, f"different dataset {what}"
    different = timed_differently([a, b])
    if different:
        return Verdict.NOT_COMPARABLE, different
    if not timed_together([a, b]) or a.rankings.query_ids != b.rankings.query_ids:
        return Verdict.UNDECIDED, _APART
    return Verdict.UNDECIDED, ""


def _replayed(run: Run) -> bool:
    latency = run.summary.latency_ms
    return latency.mean is None and latency.n > 0


def _stand_in(run: Run) -> str:
    """The engines that what was timed only stands in for; empty where it is the thing itself."""
    return ", ".join(dict.fromkeys(_stand_ins(run.manifest.get("retriever", {}).get("facts"))))


def _stand_ins(facts: Any) -> Iterator[str]:
    """Return the stand-ins of a retriever, and of what it is made of."""
    if isinstance(facts, Mapping):
        if facts.get("stand_in"):
            yield str(facts.get("kind"))
        for value in facts.values():
            yield from _stand_ins(value)


def _no_tail(pairs: Pairs) -> str:
    """Return why the tail is not judged; empty when it is."""
    if pairs.launches < FEWEST_LAUNCHES:
        return f"judged from {FEWEST_LAUNCHES} launches on: --launches {FEWEST_LAUNCHES}"
    n, needed = len(np.unique(pairs.query)), NEEDS[95.0].printed
    return "" if n >= needed else f"judged from {needed} queries on, here {n}"


def _tested(delta: LatencyDelta, thetas: NDArray[np.float64], least: float) -> LatencyDelta:
    """Return ``delta`` with the ratio and the result of Student's t over ``thetas``; no difference
    below ``least`` is shown."""
    from scipy.special import stdtrit

    n, centre = len(thetas), float(thetas.mean())
    enough = delta.launches >= FEWEST_LAUNCHES
    beyond = max(DELTA[delta.what] if enough else ALLOWANCE, least)
    delta = replace(delta, ratio=math.exp(centre), beyond=beyond)
    if n < 2:
        return delta
    error, df = float(thetas.std(ddof=1)) / math.sqrt(n), n - 1
    half = float(stdtrit(df, 1 - LATENCY_ALPHA)) * error
    equivalent = float(student_p(abs(centre) - math.log1p(LIMIT), error, df)) if enough else None
    return replace(
        delta,
        ci98=(math.exp(centre - half), math.exp(centre + half)),
        p=float(student_p(math.log1p(beyond) - abs(centre), error, df)),
        p_equivalence=equivalent,
    )


def _judged(delta: LatencyDelta, together: int = 1) -> LatencyDelta:
    """Return ``delta`` with the verdict of its ratio and p, which is one of ``together``."""
    if delta.ratio is not None and delta.p is not None and delta.p < LATENCY_ALPHA:
        verdict = Verdict.BETTER if delta.ratio < 1 else Verdict.WORSE
        return replace(delta, verdict=verdict, reason=_left_out(delta))
    if delta.p_equivalence is not None and delta.p_equivalence < LATENCY_ALPHA:
        return replace(delta, verdict=Verdict.EQUIVALENT, reason=_left_out(delta))
    reasons = [_advice(delta, together), _left_out(delta)]
    return replace(delta, verdict=Verdict.UNDECIDED, reason="; ".join(filter(None, reasons)))


def _left_out(delta: LatencyDelta) -> str:
    return f"without {counted(delta.failed, 'pair')} in which a call failed" if delta.failed else ""


def _advice(delta: LatencyDelta, together: int) -> str:
    """Say how an undecided pair could be decided."""
    if delta.launches < FEWEST_LAUNCHES:
        n = "one process shows" if delta.launches == 1 else f"{delta.launches} processes show"
        least = f"{100 * ALLOWANCE:g} %"
        return (
            f"{n} only differences beyond {least}: --launches {FEWEST_LAUNCHES} shows smaller ones"
        )
    needed = launches_needed(delta, LATENCY_ALPHA / together)
    if needed is None:
        return f"more than {MOST_LAUNCHES} launches would decide"
    return f"about {needed} launches would decide: --launches {needed}"


def launches_needed(delta: LatencyDelta, alpha: float = LATENCY_ALPHA) -> int | None:
    """Return how many launches in all would decide with 80 % power, were ratio and spread as found;
    None where it takes more than :data:`MOST_LAUNCHES`."""
    from scipy.special import stdtrit

    if delta.ratio is None or delta.ci98 is None or delta.beyond is None:
        return None
    n = delta.launches
    half = math.log(delta.ci98[1] / delta.ratio)
    sd = half / float(stdtrit(n - 1, 1 - LATENCY_ALPHA)) * math.sqrt(n)
    size = abs(math.log(delta.ratio))
    room = max(size - math.log1p(delta.beyond), math.log1p(LIMIT) - size)
    for more in range(n + 1, MOST_LAUNCHES + 1):
        if (float(stdtrit(more - 1, 1 - alpha)) + _POWER_Z) * sd <= room * math.sqrt(more):
            return more
    return None
