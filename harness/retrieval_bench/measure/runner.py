"""One timed ``search`` per query and round: the ranking of the first call, the time of every call.

Only ``search`` stands between the two readings of the clock. Checking and keeping the result,
progress and bookkeeping come after the second reading.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.measure.budget import Budget
from retrieval_bench.measure.calls import Clock, Measurement, System, Timings
from retrieval_bench.measure.deadline import Deadline, deadline
from retrieval_bench.measure.machine.clock import clock_warnings
from retrieval_bench.measure.machine.noise import NoiseRecorder
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Plan, Protocol, plan
from retrieval_bench.measure.recorder import Recorder

Progress = Callable[[int, int], None]
"""Called between calls with (calls made, calls planned)."""

Enough = Callable[[int, Sequence[Ranking | None]], bool]
"""Called when every system has answered a query: its number, and each ranking, None where it
failed. True ends the measurement."""


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
    it (:func:`_turns`). A query that raises or runs past the time-out is failed, and the run goes
    on. It is asked again in the next round if what made it fail may pass, and after the last one,
    with the waits that ``retry`` asks for; where no time is judged, at once. Ctrl-C ends the
    measurement early and keeps what was finished; so does ``enough``.

    Raises:
        ContractError: a retriever broke the contract; such a run has no meaning.
    """
    calls = plan(protocol, len(queries))
    at_once = protocol.profile == RANKINGS_ONLY
    budget = Budget(protocol.max_cost)
    recorders = [
        Recorder(system, queries, k, calls, at_once=at_once, budget=budget) for system in systems
    ]
    rng = np.random.default_rng(protocol.seed)
    turns = _turns(len(systems), protocol.seed)
    done, total = 0, calls.total * len(systems)
    interrupted, too_dear, warm_up = False, False, 0
    overhead = _overhead(clock)
    round_ns: list[int] = []
    noise = NoiseRecorder(
        servers=[system.server for system in systems if system.server is not None]
    )
    end = math.inf if protocol.max_s is None else clock() + 1e9 * protocol.max_s
    with deadline(protocol.timeout_s) as timer, _collector(on=protocol.collector):
        warming = _WarmUp(recorders, queries, calls, protocol.warm_up_s, budget)
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
                    _begin_round(recorders)
                    begin = time.monotonic_ns()
                    for position, query in enumerate(rng.permutation(len(queries)).tolist()):
                        if not round_ and clock() > end:
                            raise KeyboardInterrupt
                        for at in next(turns):
                            _check_budget(budget)
                            recorders[at].call(query, round_, position, timer, clock)
                            done += 1
                            if progress:
                                progress(done, total)
                        _end_if(enough, query, recorders)
                    round_ns.append(time.monotonic_ns() - begin)
            _ask_again(recorders, timer, clock, end)
        except (KeyboardInterrupt, _EnoughError, _TooDearError) as end_of_it:
            interrupted = isinstance(end_of_it, KeyboardInterrupt)
            too_dear = isinstance(end_of_it, _TooDearError)
    told = []
    if len(round_ns) < calls.rounds:
        rounds = f"{len(round_ns):,} of {calls.rounds:,} rounds were finished when"
        told = _ended_by(rounds, budget if too_dear else None, late=clock() > end)
    results = []
    for recorder in recorders:
        result = recorder.result(warm_up, interrupted, overhead)
        result.noise = noise.record
        result.warnings += told
        if clock is time.perf_counter_ns:
            result.warnings += _clock_warnings(result.timings, round_ns)
        results.append(result)
    return results


def _ended_by(rounds: str, budget: Budget | None, *, late: bool) -> list[str]:
    reasons = [f"{rounds} the time was up: --max-minutes"] if late else []
    if budget is not None:
        reasons.append(
            f"{rounds} {budget.spent:,.4g} of {budget.limit or 0.0:,.4g} were spent: --max-cost"
        )
    return reasons


def _ask_again(recorders: Sequence[Recorder], timer: Deadline, clock: Clock, end: float) -> None:
    _begin_round(recorders)
    for recorder in recorders:
        recorder.ask_again(timer, clock, end)


def _begin_round(recorders: Sequence[Recorder]) -> None:
    for recorder in recorders:
        recorder.begin_round()


def _turns(systems: int, seed: int) -> Iterator[list[int]]:
    """Draw the order in which the systems take each query: a random order, then the same backwards,
    and so on. So each of two goes first as often as the other, exactly, and each has every other
    before it equally often on average. In a rotation it would always be the same one, which leaves
    the processor's caches to it full or empty: of two equal systems beside a third that uses much
    memory, one seemed a fifth faster."""
    rng = np.random.default_rng([seed, systems])
    while True:
        order = rng.permutation(systems).tolist()
        yield order
        yield order[::-1]


def _clock_warnings(timings: Timings, round_ns: Sequence[int]) -> list[str]:
    """Return the clock warnings of the finished rounds: an interrupted one has no length to compare
    with."""
    finished = timings.round < len(round_ns)
    lengths = np.asarray(round_ns, dtype=np.int64)
    return clock_warnings(timings.wall_ns[finished], lengths[timings.round[finished]])


class _EnoughError(Exception):
    """All that was asked of the measurement is known."""


class _TooDearError(Exception):
    """Another call might take more money than may be spent."""


def _check_budget(budget: Budget) -> None:
    if budget.empty:
        raise _TooDearError


def _end_if(enough: Enough | None, query: int, recorders: Sequence[Recorder]) -> None:
    if enough is not None and enough(query, [recorder.rankings[query] for recorder in recorders]):
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
        recorders: Sequence[Recorder],
        queries: Sequence[Query],
        plan: Plan,
        seconds: float,
        budget: Budget,
    ) -> None:
        self.recorders = recorders
        self.queries = queries
        self.plan = plan
        self.seconds = seconds
        self.budget = budget

    def calls(self, rng: np.random.Generator, timer: Deadline, clock: Clock) -> Iterator[int]:
        """The number of calls per system so far, after each turn of all systems."""
        start = clock()
        order = rng.permutation(len(self.queries)).tolist()
        n = 0
        while not self._enough(n):
            if clock() - start > self.seconds * 1e9 * len(self.recorders):
                return
            n_systems = len(self.recorders)
            if not self.budget.spares(n_systems * (len(order) + 1), n * n_systems):
                return  # it must not take what a round needs
            for recorder in self.recorders:
                recorder.try_out(order[n % len(order)], timer, clock)
            n += 1
            yield n

    def _enough(self, n: int) -> bool:
        if self.plan.warm_up_most is not None and n >= self.plan.warm_up_most:
            return True
        return n >= self.plan.warm_up and all(r.warming.steady for r in self.recorders)


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


_PYTHONS_OWN = 5_000
"""Objects that are frozen though nobody asked for it: some hundreds at the start of Python 3.12. A
caller who freezes freezes all that was imported, tens of thousands."""


def _frozen() -> bool:
    return gc.get_freeze_count() > _PYTHONS_OWN  # which counts one by one


@contextmanager
def _collector(*, on: bool) -> Iterator[None]:
    """No collection inside a timed call, unless ``on``; one is made between rounds in any case."""
    was_on = gc.isenabled()
    gc.collect()
    # What a caller froze stays frozen: there is no way to thaw only what came after it. All else is
    # frozen in any case, since a measurement may have thousands of rounds of few queries.
    thawing = not _frozen()
    gc.freeze()
    if not on:
        gc.disable()
    try:
        yield
    finally:
        if thawing:
            gc.unfreeze()
        if was_on:
            gc.enable()
