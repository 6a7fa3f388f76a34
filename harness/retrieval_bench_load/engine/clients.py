"""Making the calls: slots that make one call at a time, and who hands them the next one."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.calls.failures import Kind, Retry, kind_of, retry_after
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query
from retrieval_bench_load.engine.stamps import (
    ANSWER,
    ANSWERED,
    DONE,
    DUE,
    FAILED,
    NEVER,
    QUERY,
    REFUSED,
    SENT,
    STATUS,
    WAITED,
    WHY,
    WORKER,
    CallFile,
)

KINDS = tuple(Kind)
"""``status`` of a failed call is its place here, after :data:`.FAILED`."""

NANOSECONDS = 1_000_000_000
_STAGES = 1_000
"""Calls whose stages are kept."""

_NEAR_S = 0.05
"""From so near on a moment is slept for, which is more exact than to wait for the end as well."""
_READY_NS, _READY_SHARE = 500_000, 0.05
"""So long before its moment a call is made ready, which then looks at the clock: a machine at rest
wakes a thread some tenths of a millisecond late. At most this share of the mean gap between calls,
for it takes a core."""


class InFlight:
    """How many calls are under way, and the integral of that over the window; counted beside the
    stamps, so that one that is lost shows."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin, self._end = begin, end
        self._lock = threading.Lock()
        self._now = self._integral = 0
        self.most = 0

    def change(self, by: int, at: int) -> None:
        """One more or one fewer, from the moment ``at`` on."""
        with self._lock:
            # What a call has left of the window, in any order of the threads.
            self._integral += by * (self._end - min(max(at, self._begin), self._end))
            self._now += by
            self.most = max(self.most, self._now)

    def total(self) -> int:
        """Call-nanoseconds of the window."""
        with self._lock:
            return self._integral


class Answers:
    """Distinct answers of one process, each with a number, a line of JSON each in a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._numbers: dict[tuple[int, tuple[str, ...]], int] = {}
        self._lock = threading.Lock()

    def number(self, query: int, ids: tuple[str, ...]) -> int:
        """Of an answer to ``query``; a new one is written at once."""
        key = (query, ids)
        number = self._numbers.get(key)
        if number is None:
            with self._lock:
                if self._file.closed:
                    return NEVER
                number = self._numbers.setdefault(key, len(self._numbers))
                if number == len(self._numbers) - 1:
                    self._file.write(json.dumps([number, query, list(ids)]) + "\n")
                    self._file.flush()
        return number

    def close(self) -> None:
        """No more are written."""
        with self._lock:
            self._file.close()


class CoreWaits:
    """How long threads could have run while a call of theirs was under way, and got no core: the
    second number of the kernel's ``schedstat`` of a thread. 0 where the system doesn't say.

    Args:
        tasks: a folder for each thread of this process, by its native id.
    """

    def __init__(self, tasks: Path = Path("/proc/self/task")) -> None:
        self._tasks = tasks
        self._own = threading.local()  # a file for each thread, which ends with it
        self._totals: dict[int, int] = {}
        self._begun: dict[int, int] = {}

    def begin(self) -> None:
        """This thread makes a call."""
        self._begun[threading.get_native_id()] = self._now()

    def end(self) -> None:
        """It has the answer."""
        thread = threading.get_native_id()
        since = self._now() - self._begun.pop(thread)
        self._totals[thread] = self._totals.get(thread, 0) + since

    def seconds(self) -> float:
        """Of all threads together, with calls that are still under way."""
        still = 0
        for thread, begin in self._begun.copy().items():
            with suppress(OSError), self._open(thread) as file:
                still += max(0, _waited_ns(file) - begin)
        return (sum(self._totals.copy().values()) + still) / NANOSECONDS

    def leave(self) -> None:
        """This thread makes no more calls."""
        if file := getattr(self._own, "file", None):
            file.close()

    def _now(self) -> int:
        if not hasattr(self._own, "file"):
            try:
                self._own.file = self._open(threading.get_native_id())
            except OSError:
                self._own.file = None
        return 0 if self._own.file is None else _waited_ns(self._own.file)

    def _open(self, thread: int) -> FileIO:
        return FileIO(self._tasks / str(thread) / "schedstat")


def _waited_ns(file: FileIO) -> int:
    return int(os.pread(file.fileno(), 100, 0).split()[1])


class Slots:
    """Threads that make one call each at a time, and write down what came of it.

    Args:
        retrievers: one for each slot, or one that all share.
        retry: which failed calls are made again; that is part of their latency.
        waits: counts what calls of a service wait for a core; None = it is not counted.
        stages: gets those of answered calls, until it has enough of them.
    """

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        queries: Sequence[Query],
        k: int,
        *,
        file: CallFile,
        answers: Answers,
        flight: InFlight,
        retry: Retry,
        waits: CoreWaits | None = None,
        stages: list[Mapping[str, int]] | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.retrievers = retrievers
        self.queries = queries
        self.k = k
        self.file = file
        self.answers = answers
        self.flight = flight
        self.retry = retry
        self.waits = waits
        self.stages = [] if stages is None else stages
        self.clock = clock
        self.stopped = threading.Event()
        self.faults: list[BaseException] = []
        """What is nobody's answer: a broken contract, a full disk."""

    def call(self, i: int, slot: int, *, due: int = 0, begin: int | None = None) -> None:
        """Make the ``i``-th call, not before ``due``; ``begin`` is its start where it is known
        already."""
        row = self.file.row(i)
        row[WORKER] = slot
        retriever = self.retrievers[slot % len(self.retrievers)]
        at = int(row[QUERY])
        if self.waits is not None:
            self.waits.begin()
        while self.clock() < due:
            os.sched_yield()  # others may run; a sleep of 0 takes many times as long
        sent = self.clock() if begin is None else begin
        row[SENT] = sent
        self.flight.change(1, sent)
        raw, failure = self._asked(retriever, self.queries[at], row)
        done = self.clock()
        self.flight.change(-1, done)
        if self.waits is not None:
            self.waits.end()
        if failure is None:
            ranking = checked_ranking(raw, self.k, has_scores=retriever.capabilities.has_scores)
            if len(self.stages) < _STAGES:
                self.stages.append(ranking.stages)
            number = self.answers.number(at, tuple(ranking.doc_ids))
            if number == NEVER:
                return  # the level is over, and this call was open at its end
            row[ANSWER] = number
        row[DONE] = done
        row[STATUS] = ANSWERED if failure is None else FAILED + KINDS.index(failure)

    def _asked(
        self, retriever: Retriever, query: Query, row: NDArray[np.int64]
    ) -> tuple[Any, Kind | None]:
        failures = 0
        while True:
            try:
                return retriever.search(query, self.k), None
            except Exception as problem:
                kind = kind_of(problem)
                failures += 1
                row[REFUSED], row[WHY] = failures, FAILED + KINDS.index(kind)
                if kind not in self.retry.when or failures > self.retry.times:
                    return None, kind
                since = self.clock()
                over = self.stopped.wait(self.retry.wait_s(failures, retry_after(problem)))
                row[WAITED] += self.clock() - since
                if over:
                    return None, kind

    def run(self, work: Callable[[int], None], n: int, first: int = 0) -> list[threading.Thread]:
        """Start ``n`` threads on ``work``, each told its slot, from ``first`` on."""

        def guarded(slot: int) -> None:
            try:
                work(slot)
            except BaseException as problem:
                self.faults.append(problem)
                self.stopped.set()
            finally:
                if self.waits is not None:
                    self.waits.leave()

        numbers = range(first, first + n)
        threads = [threading.Thread(target=guarded, args=(at,), daemon=True) for at in numbers]
        for thread in threads:
            thread.start()
        return threads


def wait_until(at: int, slots: Slots) -> bool:
    """Wait for the moment ``at``; False where nothing is to be made any more."""
    while not slots.stopped.is_set() and (left := (at - slots.clock()) / NANOSECONDS) > 0:
        if left > 2 * _NEAR_S:
            slots.stopped.wait(left - _NEAR_S)
        else:
            time.sleep(left)
    return not slots.stopped.is_set()


def call_when_due(
    due: NDArray[np.int64], slots: Slots, n: int, most: int
) -> list[threading.Thread]:
    """Open loop: each call is made when it is due, whether the ones before it are answered or not;
    where no slot is free, calls wait for one in their order. Gives the threads, which end when
    every call is made.

    A free slot takes the next call and itself sleeps until that is due: nobody has to be woken by
    somebody who was woken. Where the last free one makes its call, another one is added.

    Args:
        due: for each row of the file, by ``slots.clock``.
        n: slots at first.
        most: slots at last.
    """
    calls = Numbers()
    times = due.tolist()
    ready = min(_READY_NS, int(_READY_SHARE * np.ptp(due) / len(due))) if times else 0

    threads: list[threading.Thread] = []
    lock, free = threading.Lock(), n

    def work(slot: int) -> None:
        nonlocal free
        while (i := calls.take()) < len(times) and wait_until(times[i] - ready, slots):
            with lock:
                free -= 1
                if not free and len(threads) < most:
                    free += 1
                    threads.extend(slots.run(work, 1, len(threads)))
            slots.call(i, slot, due=times[i])
            with lock:
                free += 1

    with lock:
        threads += slots.run(work, n)
    return threads


class Numbers:
    """0, 1, 2 and so on, each to one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0

    def take(self, ready: Callable[[int], None] = lambda n: None) -> int:
        """The next number; ``ready`` is told it before anybody gets another."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            ready(self._next)
        return number


def call_in_turn(
    begin: int, end: int, query: Callable[[int, int], int | None], slots: Slots, n: int
) -> list[threading.Thread]:
    """Closed loop: each of ``n`` clients makes its next call when it has the answer to the last
    one, until ``end``. A call is due when its client is free.

    Args:
        query: that of a call, by its number and moment; None = there is none left.
    """
    calls = Numbers()

    def work(slot: int) -> None:
        wait_until(begin, slots)
        while (now := slots.clock()) < end and not slots.stopped.is_set():
            i = calls.take(slots.file.make_room)
            row = slots.file.row(i)
            if (at := query(i, now)) is None:
                return
            row[QUERY], row[DUE] = at, now
            slots.call(i, slot, begin=now)

    return slots.run(work, n)


def join(threads: Sequence[threading.Thread], until: int, clock: Callable[[], int]) -> int:
    """Wait for ``threads`` until the moment ``until``; how many have not ended."""
    for thread in threads:
        thread.join(max(0.0, (until - clock()) / NANOSECONDS))
    return sum(thread.is_alive() for thread in threads)
