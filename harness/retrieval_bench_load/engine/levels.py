"""What a level of load shows: measured, overloaded, or not measured, since the generator's own part
is judged before the system's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import three_digits
from retrieval_bench.experiment.accounting import FAILURES
from retrieval_bench.stats.percentiles import needs
from retrieval_bench_load.engine.clients import KINDS
from retrieval_bench_load.engine.generator import LevelCalls, Process
from retrieval_bench_load.engine.stamps import ANSWERED, FAILED, NEVER, OPEN, Calls
from retrieval_bench_load.engine.tails import (
    BLOCKS,
    LEVELS,
    Floats,
    Ints,
    Tail,
    block_of,
    effective_calls,
    of_all,
    tail,
)

LEAST_SENT = 0.99

MOST_OF_A_CORE = 0.7
"""That a process may take which only calls a service: its threads share one lock, and from there on
they wait for each other between a call and its answer, where no lag shows it."""

LAG_MS, LAG_SHARE = 0.25, 0.05
"""How far the generator's own lag may move a percentile: the larger of the two."""

MOST_WAITED = 0.1
"""Share of the time of all calls that the generator's threads may wait for a core between them."""

LITTLE = 0.03
"""Difference by which calls under way, counted and from the stamps, may differ."""

_WAITED = 0.01
"""Share of calls that found every slot taken, above which their number is what was measured."""

_SPARE, _FULL, _FEW, _SLOWER = 1.25, 0.9, 5, 1.5
"""Of the slots that are needed as many are advised. A system is the reason that all are taken where
calls that found so large a share of them taken, and are no fewer, took so much longer than those
that found less than half."""

_THREADS = 256
"""That a process has at most."""

_GROWTH = 0.01
"""Calls by which those under way grow over the window, of all calls, to be called growing."""

_NS_PER_MS = 1e6


class State(StrEnum):
    """What a level is evidence of."""

    MEASURED = "measured"
    OVERLOADED = "overloaded"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class LevelResult(Documented):
    """One level of load.

    Attributes:
        planned: calls a second that were asked for; None of clients, and of recorded times.
        rate: calls a second that were due; None where clients called in turn.
        clients: that called in turn; None where calls were due at times.
        seconds: of the window.
        state: what it is evidence of.
        reasons: why it was overloaded, or not measured.
        calls: due in the window.
        answered: of these, within the time-out.
        errors: the others, by kind; "open" = no answer by then, "unsent" = not even made.
        answered_rate: answers a second, in the window.
        under_way: mean number of calls under way.
        latency: from when a call was due to its answer; empty unless it was measured.
        service: from when it was made.
        lag: what the generator itself added.
        interpreter_bound: the processes of the generator, in which the retriever runs, took all of
            one core each, with several slots: the interpreter's lock is the limit.
        seed: of the level.
        refused: requests that failed, by kind: those of a call that was answered in the end, too.
        requests_rate: requests a second that the system got.
        waiting: mean number of calls that waited before a request was repeated, with nothing under
            way.
        slots_needed: of each process, about, where all that the generator has were taken.
        troubled: calls that were refused at least once, or had no answer.
        troubled_of: independent calls of which their share is known as well as of these; 0 where
            it is not known. It may be where times are not: whoever hears an answer late counts it.
    """

    planned: float | None
    rate: float | None
    clients: int | None
    seconds: float
    state: State
    reasons: tuple[str, ...]
    calls: int
    answered: int
    errors: Mapping[str, int]
    answered_rate: float
    under_way: float
    latency: tuple[Tail, ...]
    service: tuple[Tail, ...]
    lag: tuple[Tail, ...]
    interpreter_bound: bool
    seed: int
    refused: Mapping[str, int] = field(default_factory=dict)
    requests_rate: float = 0.0
    waiting: float = 0.0
    slots_needed: int = 0
    troubled: int = 0
    troubled_of: float = 0.0

    @property
    def failed(self) -> int:
        """Calls without an answer."""
        return sum(self.errors.values())

    @property
    def rate_without_waits(self) -> float:
        """Answers a second that clients in turn would have got, had none of them waited before it
        repeated a request."""
        calling = (self.clients or math.inf) - self.waiting
        return self.answered_rate * (1 + self.waiting / calling) if calling > 0 else 0.0

    @property
    def name(self) -> str:
        """What it was, in words."""
        if self.clients is not None:
            return counted(self.clients, "client")
        return f"{three_digits(self.planned or self.rate or 0.0)}/s"


@dataclass(frozen=True, slots=True)
class Times:
    """The calls of a window in milliseconds; infinite where no end was seen.

    Attributes:
        latency: from when a call was due.
        service: from when it was made.
        lag: of its latency, what the generator itself added, see :func:`undelayed`.
        waited: it was due while every slot was taken.
        failed: it had no answer.
        block: its part of the window.
    """

    latency: Floats
    service: Floats
    lag: Floats
    waited: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    block: Ints

    @classmethod
    def of(cls, made: LevelCalls) -> Times:
        """Those of the calls that are due in the window."""
        calls, inside, slots = made.calls, made.inside, made.level.slots
        free = undelayed(calls, slots)[inside]
        waited = _all_taken(calls, slots)[inside]
        calls = calls[inside]
        ended = calls.status != OPEN
        latency = np.where(ended, (calls.done - calls.due) / _NS_PER_MS, np.inf)
        service = np.where(ended, (calls.done - calls.sent) / _NS_PER_MS, np.inf)
        sent = calls.sent != NEVER
        lag = np.where(sent, np.maximum(calls.sent - free, 0) / _NS_PER_MS, 0.0)
        block = block_of(calls.due, made.begin, made.end)
        return cls(latency, service, lag, waited, calls.status != ANSWERED, block)


def _all_taken(calls: Calls, slots: int) -> NDArray[np.bool_]:
    """Which calls were due while every one of the ``slots`` of their process was taken."""
    taken = np.zeros(len(calls), dtype=np.bool_)
    for own in _by_process(calls, slots):
        done = np.sort(calls.done[own][calls.done[own] != NEVER])
        before = np.arange(len(own)) - np.searchsorted(done, calls.due[own])
        taken[own] = before >= slots
    return taken


def _by_process(calls: Calls, slots: int) -> list[Ints]:
    process = calls.worker // slots
    return [np.flatnonzero(process == number) for number in np.unique(process)]


def undelayed(calls: Calls, slots: int) -> Ints:
    """When each call would have been made, in nanoseconds, had the generator itself taken no time:
    as soon as it is due and one of the ``slots`` of its process is free, each call taking as long
    as it did. One that is not answered keeps its slot."""
    begin = calls.due.copy()
    last = int(max(calls.due.max(initial=0), calls.done.max(initial=0))) + 1
    ended = (calls.done != NEVER) & (calls.sent != NEVER)
    takes = np.where(ended, calls.done - calls.sent, last)
    for own in _by_process(calls, slots):
        due, service = calls.due[own], takes[own]
        if slots == 1 and ended[own].all():
            total = np.cumsum(service)
            begin[own] = np.maximum.accumulate(due - (total - service)) + (total - service)
            continue
        free = [0] * slots
        made = []
        for at, span in zip(due.tolist(), service.tolist(), strict=True):
            start = max(at, free[0])
            heapreplace(free, start + span)
            made.append(start)
        begin[own] = made
    return begin


def judged(
    made: LevelCalls, *, in_process: bool = False, percentiles: Sequence[float] = LEVELS
) -> LevelResult:
    """What the calls of a level show.

    Args:
        in_process: the retriever runs in the processes of the generator.
        percentiles: that the generator's own lag must not move.
    """
    level, calls, times = made.level, made.calls, Times.of(made)
    due = calls[made.inside]
    timeout_ms = level.timeout_s * 1e3
    unmade = _not_made(made, times, due)
    ours = unmade + _our_fault(made, due, service=not in_process)
    theirs = _overload(made, due)
    needed = 0 if in_process else _slots_needed(made, times, due, grows=bool(theirs))
    if needed:
        ours.append(_more_slots(made, times, due, needed))
    latency, service, lag = (
        [tail(ms, times.block, percentile, timeout_ms) for percentile in percentiles]
        for ms in (times.latency, times.service, times.lag)
    )
    if 2 * np.count_nonzero(times.failed) > len(due):
        latency = service = [Tail(p, None, None, 0.0, reason=FAILURES) for p in percentiles]
    troubled = times.failed | (due.refused > 0)
    moved = _moved(times, percentiles)
    if not theirs and moved:
        ours.append(moved)
    state = State.NOT_MEASURED if ours else State.OVERLOADED if theirs else State.MEASURED
    shown = state is State.MEASURED
    done = (calls.done >= made.begin) & (calls.done < made.end) & (calls.status == ANSWERED)
    cpu = [made_by.cpu_s / made_by.took_s for made_by in made.processes if made_by is not None]
    return LevelResult(
        planned=None if level.pace is None else level.pace.rate,
        rate=None if level.pace is None else len(due) / made.seconds,
        clients=level.slots * level.processes if level.pace is None else None,
        seconds=made.seconds,
        state=state,
        reasons=tuple(ours or theirs),
        calls=len(due),
        answered=int((due.status == ANSWERED).sum()),
        errors=_errors(due),
        answered_rate=float(done.sum()) / made.seconds,
        under_way=_under_way(calls, made.begin, made.end) / (made.end - made.begin),
        latency=tuple(latency) if shown else (),
        service=tuple(service) if shown else (),
        lag=tuple(lag),
        interpreter_bound=in_process and level.slots > 1 and _one_core(cpu),
        seed=level.seed,
        refused={
            str(kind): n
            for at, kind in enumerate(KINDS)
            if (n := int(due.refused[due.why == FAILED + at].sum()))
        },
        requests_rate=_requests(due) / made.seconds,
        waiting=_waiting(calls, made.begin, made.end),
        slots_needed=needed,
        troubled=int(np.count_nonzero(troubled)),
        troubled_of=0.0
        if unmade or needed or not len(due)
        else effective_calls(troubled, times.block),
    )


def _requests(calls: Calls) -> int:
    """How many requests they were: of a call that failed, the last one was refused, too."""
    last = (calls.status == ANSWERED) | ((calls.status == OPEN) & (calls.sent != NEVER))
    return int(calls.refused.sum() + np.count_nonzero(last))


def _one_core(cpu: list[float]) -> bool:
    """Whether processes with several threads used all of one core each, and no more."""
    return bool(cpu) and min(cpu) > 0.9 and max(cpu) < 1.15


def _errors(calls: Calls) -> dict[str, int]:
    found = {
        str(kind): int(np.count_nonzero(calls.status == FAILED + at))
        for at, kind in enumerate(KINDS)
    }
    unfinished = calls.status == OPEN
    found["open"] = int(np.count_nonzero(unfinished & (calls.sent != NEVER)))
    found["unsent"] = int(np.count_nonzero(unfinished & (calls.sent == NEVER)))
    return {kind: n for kind, n in found.items() if n}


def _not_made(made: LevelCalls, times: Times, due: Calls) -> list[str]:
    """Why the calls are not those that were asked for, in words; none where they are."""
    found = [f"a process of the generator {one}" for one in made.lost]
    if not len(due) and not _all_wait(made):
        found.append("no call was due in the window")
    if made.lost or not len(due) or made.level.pace is None:
        return found
    late = (due.sent == NEVER) | (due.sent >= made.end)
    late &= ~times.waited & (due.due < made.end - 1_000_000)
    in_time = 1 - float(np.mean(late))
    free = made.level.slots - max(process.most for process in made.processes if process)
    if in_time < LEAST_SENT and free > 0:
        found.append(f"only {in_time:.1%} of the calls were made in time, with slots free")
    return found


def _our_fault(made: LevelCalls, due: Calls, *, service: bool) -> list[str]:
    """Why the times of calls that were made say nothing of the system, in words; none where they
    do."""
    if made.lost or not len(due):
        return []
    found = list[str]()
    here = [process for process in made.processes if process is not None]
    busy = max(process.cpu_s / process.took_s for process in here)
    if service and busy > MOST_OF_A_CORE:
        advice = "" if made.level.pace is None else " (--processes)"
        found.append(
            f"a process of the generator took {busy:.0%} of a core, so that its own work is in the "
            f"times{advice}"
        )
    if service and (waited := _waited_for_a_core(made, here)):
        found.append(waited)
    stamped = _under_way(made.calls, made.begin, made.end)
    counted_ns = sum(process.integral for process in here)
    whole = not made.level.once  # else it was counted beyond the end of the window, too
    if whole and abs(stamped - counted_ns) > LITTLE * max(stamped, counted_ns):
        found.append(
            f"calls under way: {counted_ns / made.seconds / 1e9:,.2f} counted, "
            f"{stamped / made.seconds / 1e9:,.2f} by the stamps, so stamps are lost"
        )
    return found


def _waited_for_a_core(made: LevelCalls, processes: Sequence[Process]) -> str | None:
    """A service looks slow, or overloaded, where whoever calls it gets no core to hear the answer:
    no stamp shows that, but the system counts it."""
    if not (calls := int(np.count_nonzero(made.calls.sent != NEVER))):
        return None
    over = max(made.end, int(made.calls.done.max()))
    took_ms = _under_way(made.calls, 0, over) / calls / _NS_PER_MS
    waited_ms = 1e3 * sum(process.waited_s for process in processes) / calls
    if waited_ms <= max(LAG_MS, MOST_WAITED * took_ms):
        return None
    return (
        f"the generator waited for a core for {waited_ms:,.2f} ms of the {took_ms:,.2f} ms that a "
        "call took"
    )


def _all_wait(made: LevelCalls) -> bool:
    """Whether each of the clients that call in turn waits for one answer all the time."""
    return made.level.pace is None and bool(len(made.calls))


def _under_way(calls: Calls, begin: int, end: int) -> int:
    """Call-nanoseconds of the window by the stamps of the calls."""
    sent = calls.sent != NEVER
    done = np.where(calls.done == NEVER, end, calls.done)[sent]
    spans = np.minimum(done, end) - np.maximum(calls.sent[sent], begin)
    return int(np.maximum(spans, 0).sum())


def _waiting(calls: Calls, begin: int, end: int) -> float:
    """The mean number of calls that wait to be repeated; waits are spread over their call."""
    some = calls[(calls.waited > 0) & (calls.sent != NEVER)]
    done = np.where(some.done == NEVER, end, some.done)
    inside = np.maximum(np.minimum(done, end) - np.maximum(some.sent, begin), 0)
    shares = inside / np.maximum(done - some.sent, 1)
    return float(shares @ some.waited) / (end - begin)


def _overload(made: LevelCalls, due: Calls) -> list[str]:
    """Why the system did not keep up, in words; none where it did."""
    if not len(due):
        return ["no client had an answer all the while"] if _all_wait(made) else []
    if made.level.pace is None:
        return []
    growth, surely = growth_of(made.calls, made.begin, made.end)
    # As many calls as independent callers have under way vary by the root of that.
    usual = 3 * math.sqrt(_under_way(made.calls, made.begin, made.end) / (made.end - made.begin))
    if surely > 0 and growth > max(5.0, _GROWTH * len(due), usual):
        return [f"calls under way grew by {growth:,.0f} over the window, and would grow on"]
    return []


def _slots_needed(made: LevelCalls, times: Times, due: Calls, *, grows: bool) -> int:
    """About how many slots each process needs, where all it has were taken and the system is not
    the reason; 0 where they were enough, or where calls take longer the more are under way."""
    if made.level.pace is None or not len(due):
        return 0
    if np.mean(times.waited | (due.sent == NEVER)) <= _WAITED:
        return 0
    calls, processes = made.calls, made.level.processes
    ended = (calls.sent != NEVER) & (calls.done != NEVER)
    if not grows:
        before = np.arange(len(calls)) - np.searchsorted(np.sort(calls.done[ended]), calls.due)
        return math.ceil(_SPARE * int(before.max()) / processes)
    calls = calls[ended]
    takes, sent = calls.done - calls.sent, np.sort(calls.sent)
    beside = np.searchsorted(sent, calls.sent) - np.searchsorted(np.sort(calls.done), calls.sent)
    most = made.level.slots * processes
    few, many = (takes[which] for which in (beside < most / 2, beside > _FULL * most))
    if len(few) < _FEW or len(many) < _FEW or np.median(many) > _SLOWER * np.median(few):
        return 0
    under_way = len(due) / made.seconds * float(np.median(takes)) / 1e9
    return math.ceil(_SPARE * under_way / processes)


def _more_slots(made: LevelCalls, times: Times, due: Calls, needed: int) -> str:
    waited, slots = float(np.mean(times.waited | (due.sent == NEVER))), made.level.slots
    advice = f"--slots {needed}"
    if needed > _THREADS:
        advice = f"--processes {math.ceil(needed * made.level.processes / _THREADS)}"
    return (
        f"{waited:.0%} of the calls found all {counted(slots * made.level.processes, 'slot')} of "
        f"the generator taken; about {needed * made.level.processes:,} are needed ({advice})"
    )


def growth_of(calls: Calls, begin: int, end: int) -> tuple[float, float]:
    """By how many calls those that are due and not answered grow over the window, and the least
    growth by a one-sided 99 % interval: a line through the means of :data:`BLOCKS` parts."""
    from scipy.special import stdtrit

    edges = np.linspace(begin, end, BLOCKS + 1).astype(np.int64)
    done = np.where((calls.done == NEVER) | (calls.status == OPEN), 2 * end, calls.done)
    means = (_area(calls.due, edges) - _area(np.sort(done), edges)) / np.diff(edges)
    x = np.arange(BLOCKS) - (BLOCKS - 1) / 2
    slope = float(x @ means / (x @ x))
    residual = means - means.mean() - slope * x
    error = float(np.sqrt(residual @ residual / (BLOCKS - 2) / (x @ x)))
    least = slope - float(stdtrit(BLOCKS - 2, 0.99)) * error
    return slope * BLOCKS, least * BLOCKS


def _area(times: Ints, edges: Ints) -> Floats:
    """The integral of the number of ``times`` that have passed, between neighbouring ``edges``."""
    ordered = np.sort(times)
    sums = np.concatenate([[0.0], np.cumsum(ordered - edges[0], dtype=np.float64)])
    n = np.searchsorted(ordered, edges)
    upto = n * (edges - edges[0]).astype(np.float64) - sums[n]
    return np.diff(upto)


def _moved(times: Times, percentiles: Sequence[float]) -> str | None:
    """Which percentile the generator's lag moves too far, in words.

    That of all calls counts, also where the calls are too dependent for it to be given: a generator
    that stops now and then makes them so itself.
    """
    for level in percentiles:
        if len(times.latency) < needs(level).printed:
            continue
        ms, free = (of_all(each, level) for each in (times.latency, times.latency - times.lag))
        if math.isfinite(ms) and ms - free > max(LAG_MS, LAG_SHARE * ms):
            return f"the generator's own lag moves p{level:g} by {ms - free:,.2f} ms of {ms:,.2f}"
    return None
