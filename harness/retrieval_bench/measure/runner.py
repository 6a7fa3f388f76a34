"""One timed ``search`` per query and round: the ranking of the first call, the time of every call.

Only ``search`` stands between the two readings of the clock. Checking and keeping the result,
progress and bookkeeping come after the second reading.
"""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ContractError, HarnessError
from retrieval_bench.core.foreign import end_if_forked, message_of
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.measure.clock import clock_warnings
from retrieval_bench.measure.deadline import Deadline, QueryTimeoutError, deadline
from retrieval_bench.measure.noise import NoiseRecorder
from retrieval_bench.measure.protocol import Plan, Protocol, plan
from retrieval_bench.measure.steady import SteadyState

Clock = Callable[[], int]
"""Nanoseconds of a monotonic clock."""

Progress = Callable[[int, int], None]
"""Called between calls with (calls made, calls planned)."""

Enough = Callable[[int, Sequence[Ranking | None]], bool]
"""Called when every system has answered a query: its number, and each ranking, None where it
failed. True ends the measurement."""

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
    """Every measured call, in the order made. Arrays of one length.

    Attributes:
        wall_ns: int64 nanoseconds.
        round: of its launch, from 0.
        position: place in its round, from 0.
        query: number of the query, from 0.
        failed: True where the call raised or took too long.
        stages: stage -> int64 nanoseconds, -1 where the call did not report it.
        launch: the process that made the call, from 0; without it there was one.
        first_ns: int64 (launches, queries), the first call of each query, which the warm-up made;
            -1 where it made none.
    """

    wall_ns: NDArray[np.int64]
    round: NDArray[np.int32]
    position: NDArray[np.int32]
    query: NDArray[np.int32]
    failed: NDArray[np.bool_]
    stages: dict[str, NDArray[np.int64]]
    launch: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    first_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    def __post_init__(self) -> None:
        if len(self.launch) != len(self.wall_ns):
            self.launch = np.zeros(len(self.wall_ns), dtype=np.int32)


@dataclass(slots=True)
class Measurement:
    """What was seen of one retriever.

    Attributes:
        rankings: one for each query, None where it failed or was not reached.
        status: one for each query: "ok", "not run", or why it failed.
        timings: all measured calls, failed ones included.
        warm_up_calls: calls before the measured ones.
        steady_after: calls of the warm-up until times had stopped changing, None where they had
            not when it ended.
        unstable: queries whose later calls returned another ranking than the first.
        interrupted: the user stopped the run.
        overhead_ns: what the same measurement says of a retriever that does nothing (median).
        noise: what else went on while calls were timed, see :mod:`retrieval_bench.measure.noise`.
    """

    rankings: list[Ranking | None]
    status: list[str]
    timings: Timings
    warm_up_calls: int
    unstable: int
    interrupted: bool
    overhead_ns: int
    steady_after: int | None = None
    noise: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def measure(
    systems: Sequence[System],
    queries: Sequence[Query],
    k: int,
    protocol: Protocol,
    *,
    clock: Clock = time.perf_counter_ns,
    progress: Progress | None = None,
    enough: Enough | None = None,
) -> list[Measurement]:
    """Run all ``queries`` on all ``systems``; one measurement for each system.

    Every system is warmed up until its times are steady, all with the same calls, before the first
    call counts. Each round visits the queries in a fresh seeded order. Several systems alternate
    query by query, in an order that gives none an advantage from its place, or from the one before
    it (:func:`_turns`). A query that raises or runs past the time-out is failed, is not repeated,
    and the run goes on. Ctrl-C ends the measurement early and keeps what was finished; so does
    ``enough``.

    Raises:
        ContractError: a retriever broke the contract; such a run has no meaning.
    """
    calls = plan(protocol, len(queries))
    recorders = [_Recorder(system, queries, k, calls) for system in systems]
    rng = np.random.default_rng(protocol.seed)
    turns = _turns(len(systems), protocol.seed)
    done, total = 0, calls.total * len(systems)
    interrupted = False
    warm_up = 0
    overhead = _overhead(clock)
    round_ns: list[int] = []
    noise = NoiseRecorder()
    end = math.inf if protocol.max_s is None else clock() + 1e9 * protocol.max_s
    with deadline(protocol.timeout_s) as timer, _collector(on=protocol.collector):
        warming = _WarmUp(recorders, queries, calls, protocol.warm_up_s)
        try:
            for warm_up in warming.calls(rng, timer, clock):
                done = min(warm_up, calls.warm_up) * len(systems)
                if progress:
                    progress(done, total)
            done = calls.warm_up * len(systems)  # a shorter warm-up must not end below 100 %
            with noise:
                for round_ in range(calls.rounds):
                    if round_ and clock() > end:
                        break
                    gc.collect()
                    begin = time.monotonic_ns()
                    for position, query in enumerate(rng.permutation(len(queries)).tolist()):
                        if not round_ and clock() > end:
                            raise KeyboardInterrupt
                        for at in next(turns):
                            recorders[at].call(query, round_, position, timer, clock)
                            done += 1
                            if progress:
                                progress(done, total)
                        _end_if(enough, query, recorders)
                    round_ns.append(time.monotonic_ns() - begin)
        except (KeyboardInterrupt, _EnoughError) as end_of_it:
            interrupted = isinstance(end_of_it, KeyboardInterrupt)
    results = []
    for recorder in recorders:
        result = recorder.result(warm_up, interrupted, overhead)
        result.noise = noise.record
        if clock() > end and len(round_ns) < calls.rounds:
            rounds = f"{len(round_ns):,} of {calls.rounds:,} rounds"
            result.warnings.append(f"{rounds} were finished when the time was up: --max-minutes")
        if clock is time.perf_counter_ns:
            result.warnings += _clock_warnings(result.timings, round_ns)
        results.append(result)
    return results


def _turns(systems: int, seed: int) -> Iterator[list[int]]:
    """In which order the systems take each query: a random order, then the same backwards, and so
    on. So each of two goes first as often as the other, exactly, and each has every other before
    it equally often on average. In a rotation it would always be the same one, which leaves the
    processor's caches to it full or empty: of two equal systems beside a third that uses much
    memory, one seemed a fifth faster."""
    rng = np.random.default_rng([seed, systems])
    while True:
        order = rng.permutation(systems).tolist()
        yield order
        yield order[::-1]


def _clock_warnings(timings: Timings, round_ns: Sequence[int]) -> list[str]:
    """Of the finished rounds: an interrupted one has no length to compare with."""
    finished = timings.round < len(round_ns)
    lengths = np.asarray(round_ns, dtype=np.int64)
    return clock_warnings(timings.wall_ns[finished], lengths[timings.round[finished]])


class _EnoughError(Exception):
    """All that was asked of the measurement is known."""


def _end_if(enough: Enough | None, query: int, recorders: Sequence[_Recorder]) -> None:
    if enough is not None and enough(query, [one.rankings[query] for one in recorders]):
        raise _EnoughError


class _WarmUp:
    """Calls that nothing is kept of, over queries in an order of their own, the same number for
    every system.

    Ends when every system has been steady, after one full pass and at least 50 calls; or after
    some seconds for each of them, since a service that hangs must not cost a time-out for each
    query before the first one counts.
    """

    def __init__(
        self,
        recorders: Sequence[_Recorder],
        queries: Sequence[Query],
        plan: Plan,
        seconds: float,
    ) -> None:
        self.recorders = recorders
        self.queries = queries
        self.plan = plan
        self.seconds = seconds

    def calls(self, rng: np.random.Generator, timer: Deadline, clock: Clock) -> Iterator[int]:
        """The number of calls per system so far, after each turn of all systems."""
        start = clock()
        order = rng.permutation(len(self.queries)).tolist()
        n = 0
        while not self._enough(n):
            if clock() - start > self.seconds * 1e9 * len(self.recorders):
                return
            for recorder in self.recorders:
                recorder.try_out(order[n % len(order)], timer, clock)
            n += 1
            yield n

    def _enough(self, n: int) -> bool:
        if self.plan.warm_up_most is not None and n >= self.plan.warm_up_most:
            return True
        return n >= self.plan.warm_up and all(r.warming.steady for r in self.recorders)


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
        self.warming = SteadyState()
        self.first_ns = np.full(len(queries), -1, dtype=np.int64)
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

    def try_out(self, at: int, timer: Deadline, clock: Clock) -> None:
        """One call of the warm-up: failures show again, and are told, when they count."""
        query = self.queries[at]
        raw, elapsed, failure = self._attempt(query, timer, clock)
        self.warming.add(at, elapsed)
        if self.first_ns[at] < 0:
            self.first_ns[at] = elapsed
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
                notes = getattr(problem, "__notes__", ())
                failure = "; ".join([message_of(problem), *notes])
        except QueryTimeoutError:  # also when it comes while another exception is handled
            stop = clock()
            timer.disarm()
            failure = timer.complaint
        end_if_forked(self.pid)
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
            first_ns=self.first_ns[None, :],
        )
        return Measurement(
            self.rankings,
            self.status,
            timings,
            warm_up,
            len(self.unstable),
            interrupted,
            overhead_ns,
            steady_after=self.warming.steady_after,
            warnings=warnings,
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
def _collector(*, on: bool) -> Iterator[None]:
    """No collection inside a timed call, unless ``on``; one is made between rounds in any case."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    if not on:
        gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
