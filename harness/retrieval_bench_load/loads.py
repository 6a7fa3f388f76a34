"""Two loads level by level: what ``compare`` says of them, and ``regress`` of one that was kept.

The interval of a ratio is made of those of both percentiles, which know that calls wait for each
other. Times of two moments differ by what else the machine did, too: a level fails only where it is
shown to be slower than a limit that is wider than that, twice.

Source: intervals of a difference from those of its parts, Zou & Donner (2008), Statistics in
Medicine 27:1693-1702.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.measure.environment import git_revision
from retrieval_bench.metrics import parse_metric
from retrieval_bench.runs.run import relative_folder
from retrieval_bench_load.engine.levels import LevelResult, State
from retrieval_bench_load.engine.load import Loaded, LoadResult, Plan, load
from retrieval_bench_load.engine.quality import paired
from retrieval_bench_load.engine.saved import find_load, means_of, read_load
from retrieval_bench_load.engine.tails import Tail
from retrieval_bench_load.refusals import REFUSALS, SHOWN, SIGN, Share, p_no_larger, told
from retrieval_bench_regress.baseline import QualityBaseline
from retrieval_bench_regress.gate import Regression, Subject, worst
from retrieval_bench_regress.latency_gates import LatencyGate, LatencyResult
from retrieval_bench_regress.policy import Policy, load_policy
from retrieval_bench_regress.quality_gates import QualityGate, QualityResult, judge_quality
from retrieval_bench_regress.regress import Request

LEAST_LIMIT = 0.2
"""Slower than a stored load by less is no failure, whatever the policy says: the same code differs
by a few percent from day to day, and at half of capacity a queue makes twice that of it."""

_APART = 1 + LEAST_LIMIT
_AGAIN = 1_000_003
"""Added to the seed of the second measurement."""

_P95 = 1

_SHOWN = ("faster", "slower", "can't tell")


@dataclass(frozen=True, slots=True)
class PercentilePair(Documented):
    """A percentile of the latency of two loads at one level.

    Attributes:
        level: 0 to 100.
        a, b: of each, in milliseconds; None where it is not known.
        ratio: of b over a; None where either is not known.
        interval: of it, 95 %; an end is None where it has no bound.
        verdict: of b: "faster", "slower" (by more than :data:`LEAST_LIMIT`) or "can't tell".
    """

    level: float
    a: float | None
    b: float | None
    ratio: float | None
    interval: tuple[float | None, float | None] | None
    verdict: str

    @classmethod
    def of(cls, a: Tail, b: Tail) -> PercentilePair:
        """Compare the same percentile of both."""
        ends = _ends(a, b)
        if ends is None:
            return cls(a.level, a.ms, b.ms, None, None, _SHOWN[2])
        low, high = ends
        verdict = _SHOWN[0 if high < 1 / _APART else 1 if low > _APART else 2]
        bounds = (low or None, None if math.isinf(high) else high)
        ratio = b.ms / a.ms if a.ms and b.ms else None  # None: b is above the time-out
        return cls(a.level, a.ms, b.ms, ratio, bounds, verdict)


def _ends(a: Tail, b: Tail) -> tuple[float, float] | None:
    """Return the ends of the ratio of b over a; 0 and infinite where there is no bound; None where
    nothing is known. What is not answered in time is above the time-out."""
    if a.ms is None or a.ci95 is None:
        return None
    a_low, a_high = math.log(a.ms / a.ci95[0]), _log(a.ci95[1], a.ms)
    if b.ms is None or b.ci95 is None:
        return None if b.above_ms is None else (b.above_ms / a.ms * math.exp(-a_high), math.inf)
    ratio = math.log(b.ms / a.ms)
    low = ratio - math.hypot(math.log(b.ms / b.ci95[0]), a_high)
    high = ratio + math.hypot(_log(b.ci95[1], b.ms), a_low)
    return math.exp(low), math.inf if math.isinf(high) else math.exp(high)


def _log(end: float | None, of: float) -> float:
    return math.inf if end is None else math.log(end / of)


@dataclass(frozen=True, slots=True)
class LevelPair(Documented):
    """One level of two loads.

    Attributes:
        level: what both have in common: "50/s", "4 clients", "one at a time".
        places: number of the level in each; 0 = one at a time.
        a, b: the level of each.
        percentiles: p50, p95, p99; empty unless both were measured.
        verdict: of b where one of the two was overloaded: "slower" or "faster"; empty otherwise.
        difference: of the means of quality over the same queries, b minus a.
        ci95: of it.
    """

    KEYS = (
        "level state_a=a.result.state state_b=b.result.state answered_a=a.result.answered_rate "
        "answered_b=b.result.answered_rate percentiles verdict difference ci95"
    )

    level: str
    places: tuple[int, int]
    a: Loaded
    b: Loaded
    percentiles: tuple[PercentilePair, ...]
    verdict: str
    difference: float | None
    ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ComparedLoads(Documented):
    """Two saved loads beside each other.

    Attributes:
        a, b: folders.
        levels: that both have.
        alone: levels that only one has, in words.
        notes: what else is not the same.
        capacity: verdict on the highest rate that keeps the limit of both: "higher", "lower" or
            "can't tell"; empty where they have none in common.
        loads: both.
    """

    KEYS = "a b levels alone notes capacity"

    levels: tuple[LevelPair, ...]
    alone: tuple[str, ...]
    notes: tuple[str, ...]
    capacity: str
    loads: tuple[LoadResult, LoadResult]

    @property
    def a(self) -> str:
        """The folder of the first."""
        return relative_folder(self.loads[0])

    @property
    def b(self) -> str:
        """The folder of the second."""
        return relative_folder(self.loads[1])


def compare_loads(given: Sequence[str | Path]) -> ComparedLoads:
    """Two saved loads, level by level.

    Raises:
        ConfigError: others than two, or of other queries.
        RecordError: one cannot be read.
    """
    if len(given) != 2:
        raise ConfigError(
            f"{len(given)} loads", accepted="compare LOAD LOAD", fix="name two, a and b"
        )
    a, b = (read_load(find_load(item)) for item in given)
    for name in ("fingerprint", "split", "k"):
        then, now = getattr(a, name), getattr(b, name)
        if then != now:
            raise ConfigError(
                f"loads of another {name}: {then} and {now}",
                accepted="loads of the same dataset, split and k",
                fix="measure one of them again",
            )
    levels = tuple(_pairs(a, b))
    both = {pair.level for pair in levels}
    alone = tuple(
        f"{level.result.name} ({side})"
        for side, of in (("a", a), ("b", b))
        for level in of.levels
        if level.result.name not in both
    )
    return ComparedLoads(levels, alone, tuple(_unlike(a, b)), _capacity(a, b), (a, b))


def _pairs(a: LoadResult, b: LoadResult) -> Iterator[LevelPair]:
    """The levels that both have; of those made twice the last one."""
    sides = [
        {"one at a time": 0} | {level.result.name: n for n, level in enumerate(of.levels, start=1)}
        for of in (a, b)
    ]
    for name, at in sides[0].items():
        if (there := sides[1].get(name)) is not None:
            yield _pair(name, a, at, b, there)


def _pair(name: str, a: LoadResult, at: int, b: LoadResult, there: int) -> LevelPair:
    first, other = [a.unloaded, *a.levels][at], [b.unloaded, *b.levels][there]
    states = (first.result.state, other.result.state)
    measured = [state is State.MEASURED for state in states]
    pairs = zip(first.result.latency, other.result.latency, strict=True) if all(measured) else ()
    verdict = ""
    if State.NOT_MEASURED not in states and any(measured) and not all(measured):
        verdict = _SHOWN[1] if measured[0] else _SHOWN[0]
    difference, ci95 = _quality(a, at, b, there)
    figures = tuple(PercentilePair.of(*pair) for pair in pairs)
    return LevelPair(name, (at, there), first, other, figures, verdict, difference, ci95)


def _quality(
    a: LoadResult, at: int, b: LoadResult, there: int
) -> tuple[float | None, tuple[float, float] | None]:
    before, now = means_of(a, at), means_of(b, there)
    metric = a.metric
    if before is None or now is None or metric is None or metric != b.metric:
        return None, None
    apart = now - before
    return paired(apart[~np.isnan(apart)], parse_metric(metric))


_ROUGH = 1.5
"""So far apart, a step of the search, brackets have to be where an end of one is rough."""


def _capacity(a: LoadResult, b: LoadResult) -> str:
    first, other = a.capacity, b.capacity
    if first is None or other is None or first.limit != other.limit:
        return ""
    if first.beyond is not other.beyond:
        return ("higher", "lower")[other.beyond] if first.keeps or other.keeps else _SHOWN[2]
    apart = _ROUGH if first.rough or other.rough else 1.0
    if other.keeps and first.breaks and other.keeps >= apart * first.breaks:
        return "higher"
    lower = first.keeps and other.breaks and first.keeps >= apart * other.breaks
    return "lower" if lower else _SHOWN[2]


def _unlike(a: LoadResult, b: LoadResult) -> list[str]:
    """List in words how two loads differ besides the retriever."""
    of = ("arrivals", "ramp_s", "seconds", "warm_up_s", "timeout_s", "processes", "once")
    pairs = [(name, getattr(a.plan, name), getattr(b.plan, name)) for name in of]
    pairs.append(("slots", a.slots, b.slots))
    pairs.append(("threads", a.threads, b.threads))
    pairs.append(("on", a.on or "this machine", b.on or "this machine"))
    pairs.append(("status", a.status, b.status))
    messages = [f"{name} {own} and {other}" for name, own, other in pairs if own != other]
    machines = [item.environment.get("machine", {}).get("fingerprint") for item in (a, b)]
    if machines[0] != machines[1]:
        messages.append("two machines: what differs is theirs, too")
    return messages


def regress_load(request: Request, given: str, *, reporter: Reporter | None = None) -> Regression:
    """Make the levels of a kept load again, and judge by it and by the limits of the policy.

    Raises:
        HarnessError: what was given cannot be used, or nothing was measured.
    """
    kept = read_load(find_load(given))
    for name in ("split", "k"):
        if getattr(kept, name) != getattr(request, name):
            raise _other(name, getattr(kept, name), getattr(request, name))
    policy = load_policy(request.policy, k=request.k)
    plan = _plan_of(kept)
    metrics = [str(metric) for metric in policy.quality] if kept.metric is None else [kept.metric]

    def make(plan: Plan) -> LoadResult:
        measured = load(
            request.relative_retriever,
            request.dataset,
            plan,
            split=request.split,
            k=request.k,
            metrics=metrics,
            overrides=request.overrides,
            language=kept.language,
            threads=kept.threads,
            on=kept.on,
            require=lambda experiment: _require_same(kept, experiment),
            reporter=reporter,
        )
        if measured.status != "complete":
            raise HarnessError("it ended early: nothing was judged", fix="measure again")
        return measured

    now = make(plan)
    result = judge_load(kept, now, policy)
    latency = result.latency
    if latency and latency.verdict is Verdict.WORSE:  # a moment of the machine never comes twice
        again = make(replace(plan, seed=plan.seed + _AGAIN))
        result = _both(result, judge_load(kept, again, policy, before=now))
    return result


def _require_same(kept: LoadResult, now: Experiment) -> None:
    (candidate,) = now.candidates
    if kept.retriever != candidate.name:
        raise ConfigError(
            f"{candidate.name} beside a load of {kept.retriever}",
            accepted="a load of the same retriever",
            fix=f"name the load: --load {candidate.name}@load; or `compare LOAD LOAD`",
        )
    if kept.fingerprint != now.dataset.fingerprint:
        raise _other("dataset", kept.dataset, now.dataset.name)


def _other(name: str, then: Any, now: Any) -> ConfigError:
    return ConfigError(
        f"{name} {now} beside a load of {then}",
        accepted="what the load was made with",
        fix=f"give --{name} {then}",
    )


def _plan_of(kept: LoadResult) -> Plan:
    """The levels to be made again; of a search the rate that it kept."""
    plan = kept.plan
    rates = [*plan.rates, *([kept.capacity.keeps] if kept.capacity and kept.capacity.keeps else [])]
    if not (rates or plan.clients):
        raise ConfigError(
            "a load without a level that can be made again",
            where=str(kept.folder),
            accepted="levels of --rate or --clients, or a search that found a rate",
            fix="make such a load, and name it",
        )
    return replace(plan, rates=rates, recorded=(), limit=None)


def judge_load(
    kept: LoadResult, now: LoadResult, policy: Policy, *, before: LoadResult | None = None
) -> Regression:
    """A load of now against a kept one, level by level.

    Args:
        before: the one that this one repeats: what was refused is that of both.
    """
    pairs = [pair for pair in _pairs(kept, now) if pair.level != "one at a time"]
    limits = {
        name: max(LEAST_LIMIT, policy.latency.get(name, 0.0)) for name in ("p50", "p95", "p99")
    }
    same = not any("machines" in item for item in _unlike(kept, now))
    first = {} if before is None else {level.result.name: level.result for level in before.levels}
    gates = [
        gate
        for pair in pairs
        for gate in (
            *_gates(pair, limits, same_machine=same),
            *_refusals(pair, first.get(pair.level)),
        )
    ]
    latency = LatencyResult(
        worst(gate.verdict for gate in gates), tuple(gates), _why(gates), unsupported=()
    )
    subject: Subject = {
        "retriever": now.retriever,
        "dataset": {
            "name": now.dataset,
            "split": now.split,
            "fingerprint": now.fingerprint,
            "n_queries": now.unloaded.quality.queries if now.unloaded.quality else 0,
        },
        "k": now.k,
        "machine": str(now.environment.get("machine", {}).get("fingerprint")),
        "revision": cast("Any", git_revision()),
    }
    folder = None if now.folder is None else relative_folder(now)
    quality = _judged_quality(kept, now, pairs, policy)
    notes = tuple(f"Not the same: {item}." for item in _unlike(kept, now))
    return Regression(
        subject, policy, {}, quality, latency, run=folder, notes=notes,
        advice=_advice(gates), warnings=now.warnings,
    )  # fmt: skip


def _gates(
    pair: LevelPair, limits: Mapping[str, float], *, same_machine: bool
) -> Iterator[LatencyGate]:
    then, now = pair.a.result, pair.b.result
    for at, (name, limit) in enumerate(limits.items()):
        gate = LatencyGate(f"{name} at {pair.level}", Verdict.MISSING, limit)
        if not same_machine:
            yield replace(gate, reason="it was measured on another machine")
        elif then.state is not State.MEASURED or now.state is State.NOT_MEASURED:
            side = "the kept level" if then.state is not State.MEASURED else "it"
            yield replace(gate, reason=f"{side} was {(then if side != 'it' else now).state}")
        elif now.state is State.OVERLOADED:
            yield replace(gate, verdict=Verdict.WORSE, reason=f"overloaded: {now.reasons[0]}")
        elif (ends := _ends(then.latency[at], now.latency[at])) is not None:
            judged = replace(gate, **_judged(then.latency[at], now.latency[at], ends, limit))
            if at != _P95 or not judged.verdict.open:  # it fails what it is shown of, and no more
                yield judged
        elif at == 0:
            own, kept = now.latency[0].reason, then.latency[0].reason or "above the time-out"
            yield replace(gate, reason=own or f"the kept load: {kept}")


def _refusals(pair: LevelPair, first: LevelResult | None) -> Iterator[LatencyGate]:
    """Say whether more calls were refused or failed than then: a sign, or, with the ``first`` level
    that this one repeats, a verdict."""
    then, now = pair.a.result, pair.b.result
    levels = [then, now] if first is None else [then, now, first]
    if any(level.state is State.NOT_MEASURED and not level.troubled_of for level in levels):
        return
    share = Share.joined([now] if first is None else [first, now])
    before = Share.joined([then])
    rises = p_no_larger(share, before) < (SIGN if first is None else SHOWN)
    verdict = Verdict.WORSE if rises else Verdict.EQUIVALENT
    yield LatencyGate(f"{REFUSALS} at {pair.level}", verdict, 0.0, reason=told(share, before))


def _judged(a: Tail, b: Tail, ends: tuple[float, float], limit: float) -> dict[str, Any]:
    low, high = ends
    verdict = Verdict.UNDECIDED
    if low > 1 + limit:
        verdict = Verdict.WORSE
    elif high < 1 + limit:
        verdict = Verdict.BETTER if high < 1 else Verdict.EQUIVALENT
    stored = None if a.ms is None or b.ms is None else b.ms / a.ms
    interval = None if math.isinf(high) else ends
    reason = "" if b.above_ms is None else "above the time-out"
    figures = {"stored": stored, "ratio": stored, "interval": interval}
    return {"verdict": verdict, "reason": reason} | figures


def _why(gates: Sequence[LatencyGate]) -> str:
    messages = [f"{gate.gate}: {gate.reason}" for gate in gates if gate.reason]
    ends = [
        f"{gate.gate} [{gate.interval[0] - 1:+.0%}, {gate.interval[1] - 1:+.0%}]"
        for gate in gates
        if gate.interval
    ]
    return "; ".join([*messages, f"95 % intervals: {', '.join(ends)}" if ends else ""]).strip("; ")


def _advice(gates: Sequence[LatencyGate]) -> tuple[str, ...]:
    if not any(gate.verdict.open for gate in gates):
        return ()
    return ("Two moments can't tell: put both side by side with duet --rate.",)


def _judged_quality(
    kept: LoadResult, now: LoadResult, pairs: Sequence[LevelPair], policy: Policy
) -> QualityResult | None:
    """The paired test of ``regress`` on the means of queries at each level."""
    limits = {m: limit for m, limit in policy.quality.items() if str(m) == kept.metric}
    if not limits or kept.metric != now.metric:
        return None
    gates: list[QualityGate] = []
    n = 0
    for pair in pairs:
        sides = [means_of(kept, pair.places[0]), means_of(now, pair.places[1])]
        if sides[0] is None or sides[1] is None:
            continue
        both = np.flatnonzero(~np.isnan(sides[0] + sides[1]))
        before, after = (_as_baseline(side, both, str(kept.metric)) for side in sides)
        result = judge_quality(before, after, limits, policy.rise, equal="same values")
        gates += [replace(gate, metric=f"{gate.metric} at {pair.level}") for gate in result.gates]
        n = max(n, result.n)
    told = "; ".join(f"{gate.metric}: {gate.reason}" for gate in gates if gate.reason)
    return QualityResult(tuple(gates), n, reason=told) if gates else None


def _as_baseline(means: Any, rows: Any, metric: str) -> QualityBaseline:
    values = means[rows].tolist()
    queries = {f"{row:09d}": [repr(value), value] for row, value in zip(rows, values, strict=True)}
    mean = float(np.mean(values)) if values else math.nan
    return QualityBaseline.model_construct(metrics={metric: mean}, queries=queries)


def _both(first: Regression, again: Regression) -> Regression:
    """A sign that the second measurement does not show again is no failure."""

    def settled(gate: Any) -> Any:
        other = repeated.get(gate.gate)  # none: it had too few calls, or nothing was shown
        if other is not None and gate.gate.startswith(REFUSALS):
            return other
        if gate.verdict is not Verdict.WORSE or (other and other.verdict is Verdict.WORSE):
            return gate
        once = "worse once, and not shown again when repeated"
        return replace(gate, verdict=Verdict.UNDECIDED, reason=once)

    if first.latency is None or again.latency is None:
        return first
    repeated = {gate.gate: gate for gate in again.latency.gates}
    gates = tuple(map(settled, first.latency.gates))
    latency = LatencyResult(worst(gate.verdict for gate in gates), gates, _why(gates))
    return replace(first, latency=latency, advice=_advice(gates))
