"""What a level is evidence of: the generator is judged before the system."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench_load.engine.clients import CoreWaits
from retrieval_bench_load.engine.levels import LevelResult, State, Times, judged
from retrieval_bench_load.engine.schedule import Pace, due_ns
from retrieval_bench_load.engine.stamps import FAILED, NEVER, OPEN
from retrieval_bench_load.engine.tails import effective_calls, tail
from tests.builders.queued import Service, by_hand, level_of, queue, served, sojourn_ms


def test_a_steady_queue_is_measured_and_a_growing_one_is_overloaded() -> None:
    assert judged(queue(0.7, 30.0, 1), in_process=True).state is State.MEASURED
    growing = judged(queue(1.1, 30.0, 1), in_process=True)
    assert growing.state is State.OVERLOADED
    assert not growing.latency, "an overloaded level has no percentiles"
    assert "grew by" in growing.reasons[0]


def test_the_queue_of_the_builder_is_the_one_by_hand() -> None:
    rng = np.random.default_rng(5)
    due = np.sort(rng.integers(0, 10**9, 500))
    service = rng.integers(1, 4 * 10**6, 500)
    assert served(due, service).done.tolist() == by_hand(due.tolist(), service.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("constant", [False, True])
def test_intervals_hold_the_theory_of_a_queue(constant: bool) -> None:
    """Of a few seeds here; 200 of them in ``tests/benchmarks/load.py``."""
    held = 0
    for seed in range(20):
        _, p95, _ = judged(queue(0.5, 60.0, seed, constant=constant), in_process=True).latency
        low, high = p95.ci95 or (np.inf, None)
        held += low <= sojourn_ms(0.5, 95.0, constant=constant) <= (high or np.inf)
    assert held >= 16


def test_failed_calls_have_their_time_in_the_ranks() -> None:
    made = queue(0.3, 30.0, 3)
    status = made.calls.status.copy()
    status[::4] = FAILED
    level = judged(replace(made, calls=replace(made.calls, status=status)), in_process=True)
    _, p95, _ = level.latency
    assert p95.ms == judged(made, in_process=True).latency[1].ms
    assert level.errors == {"429": level.calls - level.answered}


def test_what_is_still_open_and_what_was_never_made_are_told_apart() -> None:
    made = queue(0.3, 30.0, 3)
    calls = made.calls
    status, sent, done = calls.status.copy(), calls.sent.copy(), calls.done.copy()
    status[-8:], done[-8:] = OPEN, NEVER
    sent[-3:] = NEVER
    level = judged(replace(made, calls=replace(calls, status=status, sent=sent, done=done)))
    assert level.errors == {"open": 5, "unsent": 3}


def test_lost_stamps_are_found_by_littles_law() -> None:
    made = queue(0.5, 30.0, 4)
    whole = made.processes[0]
    assert whole is not None
    process = replace(whole, integral=int(whole.integral * 1.05))
    level = judged(replace(made, processes=[process]), in_process=True)
    assert level.state is State.NOT_MEASURED
    assert "stamps are lost" in level.reasons[0]


def test_a_generator_that_stops_now_and_then_has_measured_nothing() -> None:
    made = queue(0.3, 30.0, 5)
    calls = made.calls
    # For 100 ms of each second no call is made: all that are due then are made at its end.
    late = np.where(calls.due % 10**9 < 10**8, calls.due // 10**9 * 10**9 + 10**8, calls.due)
    served_late = replace(served(late, calls.done - calls.sent), due=calls.due)
    level = judged(level_of(served_late, 30.0, 5.0, rate=150.0), in_process=True)
    assert level.state is State.NOT_MEASURED
    assert "own lag" in level.reasons[0]
    assert level.troubled_of == level.calls, "who hears an answer late counts it"


@pytest.mark.parametrize("seed", range(4))
def test_stops_count_also_where_they_leave_too_few_calls_for_a_percentile(seed: int) -> None:
    made = queue(0.1, 20.0, seed)
    calls, each, stop = made.calls, 4 * 10**9, 3 * 10**8
    late = np.where(calls.due % each < stop, calls.due // each * each + stop, calls.due)
    served_late = replace(served(late, calls.done - calls.sent), due=calls.due)
    level = judged(level_of(served_late, 20.0, 5.0, rate=50.0), in_process=True)
    assert level.state is State.NOT_MEASURED
    assert "own lag moves p95" in level.reasons[0]


def test_a_lost_process_says_nothing_of_the_system() -> None:
    level = judged(replace(queue(0.3, 30.0, 6), processes=[None], lost=["ended with code -9"]))
    assert level.state is State.NOT_MEASURED
    assert level.reasons[0] == "a process of the generator ended with code -9"
    assert level.troubled_of == 0


def test_a_wait_for_a_taken_slot_is_no_lag() -> None:
    due = np.array([0, 10, 20], dtype=np.int64) * 10**6
    calls = served(due, np.full(3, 50 * 10**6))
    times = Times.of(level_of(calls, 1.0, 0.0, rate=3.0))
    assert times.lag.tolist() == [0, 0, 0]
    assert times.latency.tolist() == [50, 90, 130]
    assert times.waited.tolist() == [False, True, True]


def _asked(service: Service, rate: float, slots: int) -> LevelResult:
    calls = service.calls(due_ns(Pace(rate), 12.0, 3), slots, 3)
    return judged(level_of(calls, 10.0, 2.0, rate=rate, slots=slots))


@pytest.mark.parametrize(
    ("service", "rate"),
    [
        (Service(0, 0.4), 100.0),
        (Service(0, 0.0001, stall_s=0.4, each_s=3.0), 200.0),
        (Service(0, 0.8), 60.0),
    ],
)
def test_a_lack_of_slots_is_the_generators(service: Service, rate: float) -> None:
    """L2: a service that answers any number at once was called overloaded by its 32 slots."""
    few = _asked(service, rate, 32)
    assert few.state is State.NOT_MEASURED
    assert few.slots_needed > 32
    assert f"--slots {few.slots_needed}" in few.reasons[0]
    assert _asked(service, rate, few.slots_needed + 40).state is State.MEASURED


@pytest.mark.parametrize(("workers", "slots"), [(1, 32), (4, 32), (1, 256), (4, 256), (40, 256)])
def test_a_service_whose_queue_grows_is_overloaded_also_where_slots_are_all_taken(
    workers: int, slots: int
) -> None:
    service = Service(workers, 0.02 * workers)
    level = _asked(service, 100.0, slots)
    assert level.state is State.OVERLOADED
    assert "grew by" in level.reasons[0]


def test_neighbours_that_wait_for_each_other_count_as_fewer() -> None:
    rng = np.random.default_rng(1)
    block = np.repeat(np.arange(20), 500)
    alone = effective_calls(rng.random(10_000) < 0.5, block)
    together = effective_calls(np.repeat(rng.random(200) < 0.5, 50), block)
    assert together < 600
    assert 4_000 < alone <= 10_000
    few = tail(np.repeat(rng.random(200), 50), block, 99.0, 1e4)
    assert few.ms is None
    assert "of 1,000 needed" in str(few.reason)


def test_a_generator_without_processor_time_says_nothing_of_a_service() -> None:
    made = queue(0.3, 30.0, 9)
    whole = made.processes[0]
    assert whole is not None
    busy = replace(made, processes=[replace(whole, cpu_s=0.8 * whole.took_s)])
    assert judged(busy, in_process=True).state is State.MEASURED
    level = judged(busy)
    assert level.state is State.NOT_MEASURED
    assert "80% of a core" in level.reasons[0]
    assert "--processes" in level.reasons[0]
    in_turn = judged(replace(busy, level=replace(busy.level, pace=None)))
    assert "--processes" not in in_turn.reasons[0], "all clients are in one process"


@pytest.mark.parametrize("load", [0.3, 2.0])
def test_a_generator_that_waits_for_a_core_says_nothing_of_a_service(load: float) -> None:
    made = queue(load, 30.0, 9)
    whole = made.processes[0]
    assert whole is not None
    calls = made.calls
    took_s = float(np.sum(calls.done - calls.sent)) / 1e9
    for share, ours in ((0.05, False), (0.2, True)):
        waiting = replace(made, processes=[replace(whole, waited_s=share * took_s)])
        assert ("waited for a core for 0.4" in " ".join(judged(waiting).reasons)) is ours
    assert judged(waiting).state is State.NOT_MEASURED
    assert judged(waiting, in_process=True).state is not State.NOT_MEASURED


def test_only_what_a_thread_waits_during_a_call_counts(tmp_path: Path) -> None:
    own = tmp_path / str(threading.get_native_id()) / "schedstat"
    own.parent.mkdir()

    def waits_until(ns: int) -> None:
        own.write_text(f"813569 {ns} 3\n", "ascii")

    waits_until(54_561)
    waits = CoreWaits(tmp_path)
    waits.begin()
    waits_until(100_000)
    waits.end()
    waits_until(900_000_000)  # it slept until the next call was due
    waits.begin()
    waits_until(900_000_500)
    assert waits.seconds() == pytest.approx((100_000 - 54_561 + 500) / 1e9)
    waits.end()
    waits_until(999_999_999)
    assert waits.seconds() == pytest.approx((100_000 - 54_561 + 500) / 1e9)
    waits.leave()
    silent = CoreWaits(tmp_path / "none")
    silent.begin()
    assert silent.seconds() == 0
    silent.end()
    assert silent.seconds() == 0, "a system that does not say"
