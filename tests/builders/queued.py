"""Calls of a level of load that nobody made: a queue with one server, on a clock of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from heapq import heapreplace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench_load.engine.generator import Generator, Level, LevelCalls, Process
from retrieval_bench_load.engine.schedule import Pace, due_ns
from retrieval_bench_load.engine.stamps import ANSWERED, Calls

SERVICE_S = 0.002


def served(due: NDArray[np.int64], service_ns: NDArray[np.int64]) -> Calls:
    """Calls that one server answers in their order: Lindley's recursion, all at once."""
    total = np.cumsum(service_ns)
    # An answer is there when the longest chain of services since some arrival has ended.
    done = total + np.maximum.accumulate(due - (total - service_ns))
    n = len(due)
    zeros = np.zeros(n, dtype=np.int64)
    sent = done - service_ns
    return Calls(due, sent, done, zeros, zeros, np.full(n, ANSWERED), *[zeros] * 4)


@dataclass(frozen=True)
class Service:
    """A service that answers in the order asked.

    Attributes:
        workers: that answer one call each at a time; 0 = any number.
        takes_s: of a worker, for a call.
        constant: always so long; else with an exponential distribution.
        delay_s: on the way, besides.
        stall_s, each_s: none begins a call for so long, so often.
    """

    workers: int = 1
    takes_s: float = 0.005
    constant: bool = True
    delay_s: float = 0.0
    stall_s: float = 0.0
    each_s: float = 0.0

    def calls(self, due: NDArray[np.int64], slots: int, seed: int) -> Calls:
        """What it makes of calls of a generator of so many slots."""
        rng = np.random.default_rng([seed, 7])
        takes = np.full(len(due), self.takes_s)
        takes = takes if self.constant else rng.exponential(self.takes_s, len(due))
        phase, each = float(rng.uniform()) * self.each_s * 1e9, self.each_s * 1e9
        free, workers = [0.0] * slots, [0.0] * (self.workers or slots)
        sent, done = np.empty_like(due), np.empty_like(due)
        for i, (at, span) in enumerate(zip(due.tolist(), (takes * 1e9).tolist(), strict=True)):
            begin = sent[i] = max(at, free[0])
            start = max(begin, workers[0])
            if each and (start + phase) % each < self.stall_s * 1e9:
                start += self.stall_s * 1e9 - (start + phase) % each
            heapreplace(workers, start + span)
            done[i] = start + span + self.delay_s * 1e9
            heapreplace(free, float(done[i]))
        zeros = np.zeros(len(due), dtype=np.int64)
        return Calls(due, sent, done, zeros, zeros, np.full(len(due), ANSWERED), *[zeros] * 4)


def level_of(
    calls: Calls,
    seconds: float,
    warm_up_s: float,
    *,
    rate: float,
    process: Process | None = None,
    slots: int = 1,
) -> LevelCalls:
    """What a generator would hand over of them."""
    begin, end = int(warm_up_s * 1e9), int((warm_up_s + seconds) * 1e9)
    level = Level(Pace(rate), slots, seconds, warm_up_s)
    spans = np.minimum(calls.done, end) - np.maximum(calls.sent, begin)
    integral = int(np.maximum(spans, 0).sum())
    one = process or Process(0, integral, 1, seconds / 10, seconds, 0)
    return LevelCalls(level, calls, begin, end, [one])


def queue(
    load: float,
    seconds: float,
    seed: int,
    *,
    constant: bool = False,
    warm_up_s: float = 5.0,
    slower: float = 1.0,
    server: int = 1,
) -> LevelCalls:
    """An M/M/1 queue, or M/D/1 where service is ``constant``, of 2 ms a call; ``slower`` times as
    much, at the same rate. Calls of one seed are due at the same times, and another
    ``server`` takes other times for them."""
    rate = load / SERVICE_S
    due = due_ns(Pace(rate), seconds + warm_up_s, seed)
    rng = np.random.default_rng([seed, server])
    service = np.full(len(due), SERVICE_S) if constant else rng.exponential(SERVICE_S, len(due))
    calls = served(due, np.maximum((slower * service * 1e9).astype(np.int64), 1))
    return level_of(calls, seconds, warm_up_s, rate=rate)


@dataclass
class Queued:
    """In place of the processes of the generator: queues of 2 ms a call, in no time.

    Attributes:
        slower: service times of that.
        overridden: times that, of a retriever with parameters of its own.
        hits: the answer to each query that is asked, in turn.
        stop: Ctrl-C comes in this level, counted from 1.
    """

    slower: float = 1.0
    hits: Sequence[tuple[str, ...]] = (("1",),)
    overridden: float = 1.0
    stop: int = 0
    made: int = 0

    def run(self, level: Level, spec: Mapping[str, Any]) -> LevelCalls:
        """The calls of a level; clients in turn get 250 answers a second."""
        self.made += 1
        if self.made == self.stop:
            raise KeyboardInterrupt
        rate = 250.0 if level.pace is None else level.pace.rate or 0.0
        server, slower = 1, self.slower
        if spec["overrides"]:
            server, slower = 2, slower * self.overridden
        made = queue(
            rate * SERVICE_S,
            level.seconds,
            level.seed,
            warm_up_s=1.0,
            slower=slower,
            server=server,
        )
        asked = np.resize(np.arange(len(self.hits)), len(made.calls))
        answers = {(0, at): (at, ids) for at, ids in enumerate(self.hits)}
        calls = replace(made.calls, query=asked, answer=asked.copy())
        return replace(made, level=replace(level, slots=1), calls=calls, answers=answers)

    def instead(self, monkeypatch: pytest.MonkeyPatch) -> Queued:
        """Until the test ends."""
        where = "retrieval_bench_load.engine.load.LocalMember"
        monkeypatch.setattr(where, lambda spec: SimpleNamespace(spec=spec))
        monkeypatch.setattr(Generator, "run", lambda of, level: self.run(level, of._start([]).spec))
        monkeypatch.setattr(Generator, "prepare", lambda *_: None)
        return self


def by_hand(due: Sequence[int], service: Sequence[int]) -> list[int]:
    """When each call is answered, one after the other."""
    free, done = 0, []
    for at, takes in zip(due, service, strict=True):
        free = max(free, at) + takes
        done.append(free)
    return done


def sojourn_ms(load: float, level: float, *, constant: bool) -> float:
    """The percentile of the time from arrival to answer, by theory. Source: Erlang (1909) for
    constant service, Kleinrock, Queueing Systems I, for an exponential one."""
    p = level / 100
    if not constant:
        return -math.log(1 - p) * SERVICE_S * 1e3 / (1 - load)

    def waits_at_most(services: float) -> float:
        # Terms of alternating signs: near full load they are far larger than their sum.
        with localcontext(prec=60):
            rho, waited = Decimal(load), Decimal(services)
            terms = (
                (rho * (n - waited)) ** n / math.factorial(n) * (rho * (waited - n)).exp()
                for n in range(int(services) + 1)
            )
            return float((1 - rho) * sum(terms, Decimal(0)))

    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if waits_at_most(middle) >= p else (middle, high)
    return (1 + high) * SERVICE_S * 1e3
