"""One timed ``search`` per query and round: the ranking of the first call, the time of every call.

Only ``search`` stands between the two readings of the clock. Checking and keeping the result,
progress and bookkeeping come after the second reading.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import ContractError, HarnessError
from harness.measure.deadline import Deadline, QueryTimeoutError, deadline
from harness.measure.protocol import WARM_UP_SECONDS, Plan, Protocol, plan
from harness.ranking import checked_ranking
from harness.retriever import Retriever
from harness.types import Query, Ranking

Clock = Callable[[], int]
"""Nanoseconds of a monotonic clock."""

Progress = Callable[[int, int], None]
"""Called between calls with (calls made, calls planned)."""

OK = "ok"
NOT_RUN = "not run"

_BLOCK = 1 << 16
"""Calls that there is room for at first."""


@dataclass(slots=True)
class System:
    """One retriever in a measurement; ``known_ids`` is None where the corpus is not known."""

    name: str
    retriever: Retriever
    known_ids: Container[str] | None = None


@dataclass(slots=True)
class Timings:
    """Every measured call, in the order made. Arrays of one length."""

    wall_ns: NDArray[np.int64]
    round: NDArray[np.int32]
    position: NDArray[np.int32]
    query: NDArray[np.int32]
    failed: NDArray[np.bool_]
    stages: dict[str, NDArray[np.int64]]


@dataclass(slots=True)
class Measurement:
    """What was seen of one retriever.

    Attributes:
        rankings: one for each query, None where it failed or was not reached.
        status: one for each query: "ok", "not run", or why it failed.
        timings: all measured calls, failed ones included.
        warm_up_calls: calls before the measured ones.
        unstable: queries whose later calls returned another ranking than the first.
        interrupted: the user stopped the run.
        overhead_ns: what the same measurement says of a retriever that does nothing (median).
    """

    rankings: list[Ranking | None]
    status: list[str]
    timings: Timings
    warm_up_calls: int
    unstable: int
    interrupted: bool
    overhead_ns: int
    warnings: list[str] = field(default_factory=list)


def measure(
    systems: Sequence[System],
    queries: Sequence[Query],
    k: int,
    protocol: Protocol,
    *,
    clock: Clock = time.perf_counter_ns,
    progress: Progress | None = None,
) -> list[Measurement]:
    """Run all ``queries`` on all ``systems``; one measurement for each system.

    Each round visits the queries in a fresh seeded order. Several systems alternate query by
    query, and which of them goes first rotates, so that none has an advantage from its place.
    A query that raises or runs past the time-out is failed, is not repeated, and the run goes on.
    Ctrl-C ends the measurement early and keeps what was finished.

    Raises:
        ContractError: a retriever broke the contract; such a run has no meaning.
    """
    calls = plan(protocol, len(queries))
    recorders = [_Recorder(system, queries, k, calls) for system in systems]
    rng = np.random.default_rng(protocol.seed)
    done, total = 0, calls.total * len(systems)
    interrupted = False
    warm_up = 0
    overhead = _overhead(clock)
    with deadline(protocol.timeout_s) as timer, _collector_off():
        try:
            for warm_up in _warm_up(recorders, queries, calls, rng=rng, timer=timer, clock=clock):
                done = warm_up * len(systems)
                if progress:
                    progress(done, total)
            done = calls.warm_up * len(systems)  # a shorter warm-up must not end below 100 %
            for round_ in range(calls.rounds):
                gc.collect()
                for position, query in enumerate(rng.permutation(len(queries)).tolist()):
                    for turn in range(len(systems)):
                        recorder = recorders[(turn + position + round_) % len(systems)]
                        recorder.call(query, round_, position, timer, clock)
                        done += 1
                        if progress:
                            progress(done, total)
        except KeyboardInterrupt:
            interrupted = True
    return [recorder.result(warm_up, interrupted, overhead) for recorder in recorders]


def _warm_up(
    recorders: Sequence[_Recorder],
    queries: Sequence[Query],
    calls: Plan,
    *,
    rng: np.random.Generator,
    timer: Deadline,
    clock: Clock,
) -> Iterator[int]:
    """Calls that nothing is kept of, over queries in an order of their own; gives the number per
    system so far. Ends after one full pass and at least 50 calls, or after 10 s: a service that
    hangs must not cost a time-out for each query before the first one counts."""
    start = clock()
    order = rng.permutation(len(queries))
    for n in range(calls.warm_up):
        if clock() - start > WARM_UP_SECONDS * 1e9:
            return
        for recorder in recorders:
            recorder.try_out(queries[order[n % len(queries)]], timer, clock)
        yield n + 1


class _Recorder:
    """Calls one system and keeps what came of it, in arrays of the planned size."""

    def __init__(self, system: System, queries: Sequence[Query], k: int, calls: Plan) -> None:
        self.system = system
        self.queries = queries
        self.k = k
        self.has_scores = system.retriever.capabilities.has_scores
        self.rankings: list[Ranking | None] = [None] * len(queries)
        self.status = [NOT_RUN] * len(queries)
        self.unstable: set[int] = set()
        self.late_failures = 0
        self.pid = os.getpid()
        self.n = 0
        self.planned = calls.measured
        size = min(calls.measured, _BLOCK)
        self.wall = np.zeros(size, dtype=np.int64)
        self.round = np.zeros(size, dtype=np.int32)
        self.position = np.zeros(size, dtype=np.int32)
        self.query = np.zeros(size, dtype=np.int32)
        self.failed = np.zeros(size, dtype=bool)
        self.stages: dict[str, NDArray[np.int64]] = {}

    def try_out(self, query: Query, timer: Deadline, clock: Clock) -> None:
        """One call of the warm-up: failures show again, and are told, when they count."""
        raw, _, failure = self._attempt(query, timer, clock)
        if failure is None:
            self._check(raw, query)

    def call(self, at: int, round_: int, position: int, timer: Deadline, clock: Clock) -> None:
        """One measured call of the query at index ``at``."""
        if self.status[at] not in (OK, NOT_RUN):
            return
        raw, elapsed, failure = self._attempt(self.queries[at], timer, clock)
        self._keep(at, round_, position, elapsed, failure)
        if failure is None:
            self._keep_result(at, raw)
        elif self.status[at] == NOT_RUN:
            self.status[at] = failure
        else:
            self.late_failures += 1

    def _attempt(self, query: Query, timer: Deadline, clock: Clock) -> tuple[Any, int, str | None]:
        """One timed ``search``: what it returned, nanoseconds, and why it failed, if so."""
        search, k = self.system.retriever.search, self.k
        raw: Any = None
        failure = None
        start = stop = None
        try:
            try:
                timer.arm()
                start = clock()
                raw = search(query, k)
                stop = clock()
                timer.disarm()
            except (KeyboardInterrupt, QueryTimeoutError):
                raise
            except HarnessError as problem:
                timer.disarm()
                raise self._named(problem, query) from problem
            except BaseException as problem:  # also SystemExit: it must not end the measurement
                stop = clock()
                timer.disarm()
                if os.getpid() != self.pid:
                    raise  # a process that the retriever forked has no business here
                notes = getattr(problem, "__notes__", ())
                failure = "; ".join([f"{type(problem).__name__}: {problem}", *notes])
        except QueryTimeoutError:  # also when it comes while another exception is handled
            stop = clock()
            timer.disarm()
            failure = timer.complaint
        elapsed = 0 if start is None or stop is None else stop - start
        if failure is None and timer.exceeded(elapsed):
            failure = timer.complaint
        return raw, elapsed, failure

    def _keep(self, at: int, round_: int, position: int, elapsed: int, failure: str | None) -> None:
        i = self.n
        if i == len(self.wall):
            self._grow()
        self.wall[i] = elapsed
        self.round[i] = round_
        self.position[i] = position
        self.query[i] = at
        self.failed[i] = failure is not None
        self.n += 1

    def _grow(self) -> None:
        """Twice the room: a plan of many calls must not take memory before they are made."""
        more = min(len(self.wall), self.planned - len(self.wall))
        for name in ("wall", "round", "position", "query", "failed"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(more, dtype=old.dtype)]))
        for stage, old in self.stages.items():
            self.stages[stage] = np.concatenate([old, np.full(more, -1, dtype=np.int64)])

    def _keep_result(self, at: int, raw: Any) -> None:
        ranking = self._check(raw, self.queries[at])
        for stage, nanoseconds in ranking.stages.items():
            if stage not in self.stages:
                self.stages[stage] = np.full(len(self.wall), -1, dtype=np.int64)
            self.stages[stage][self.n - 1] = nanoseconds
        first = self.rankings[at]
        if first is None:
            self.rankings[at] = ranking
            self.status[at] = OK
        elif list(ranking.doc_ids) != list(first.doc_ids):
            self.unstable.add(at)

    def _check(self, raw: Any, query: Query) -> Ranking:
        try:
            return checked_ranking(raw, self.k, self.system.known_ids, has_scores=self.has_scores)
        except ContractError as problem:
            raise self._named(problem, query) from problem

    def _named(self, problem: HarnessError, query: Query | None = None) -> HarnessError:
        place = f"retriever {self.system.name!r}" + (f", query {query.id!r}" if query else "")
        problem.where = f"{place}; {problem.where}" if problem.where else place
        problem.args = (problem.render(),)
        return problem

    def result(self, warm_up: int, interrupted: bool, overhead_ns: int) -> Measurement:
        warnings = []
        if self.unstable:
            warnings.append(
                f"{len(self.unstable)} queries got another ranking in a later call: the retriever "
                "is not deterministic, quality is that of the first call"
            )
        if self.late_failures:
            warnings.append(f"{self.late_failures} repeated calls failed after a first success")
        n = self.n
        timings = Timings(
            self.wall[:n],
            self.round[:n],
            self.position[:n],
            self.query[:n],
            self.failed[:n],
            {name: values[:n] for name, values in self.stages.items()},
        )
        return Measurement(
            self.rankings,
            self.status,
            timings,
            warm_up,
            len(self.unstable),
            interrupted,
            overhead_ns,
            warnings,
        )


class _Null(Retriever):
    def search(self, query: Query, k: int) -> Ranking:
        return _NOTHING


_NOTHING = Ranking(())


def _overhead(clock: Clock, calls: int = 200) -> int:
    search, query = _Null().search, Query("", "")
    elapsed = []
    for _ in range(calls):
        start = clock()
        search(query, 1)
        elapsed.append(clock() - start)
    return int(np.median(elapsed))


@contextmanager
def _collector_off() -> Iterator[None]:
    """No collection inside a timed call; one is made between rounds."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
