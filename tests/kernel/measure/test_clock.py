"""The clock: what it resolves, and times that it cannot have measured."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from retrieval_bench.measure.machine.clock import clock_facts, clock_warnings, impossible_times


def test_the_steps_of_a_clock_are_seen_and_one_that_runs_back_or_stands_is_told() -> None:
    coarse = itertools.chain.from_iterable(itertools.repeat(t, 4) for t in itertools.count(0, 100))
    facts = clock_facts(lambda: next(coarse))
    assert facts["resolution_ns"] == 100
    assert facts["reading_ns"] == 0, "most readings are below its resolution"
    assert facts["backwards"] == 0
    assert facts["monotonic"] is None, "only the system's own clock says so of itself"
    back = itertools.count(0, -5)
    assert clock_facts(lambda: next(back))["backwards"] > 0
    assert clock_facts(lambda: 7)["resolution_ns"] is None


def test_the_clock_of_this_machine_can_time_a_call() -> None:
    facts = clock_facts()
    assert facts["name"] == "perf_counter_ns"
    assert facts["monotonic"] is True
    assert facts["implementation"] == time.get_clock_info("perf_counter").implementation
    assert facts["backwards"] == 0
    assert 0 < facts["resolution_ns"] < 1_000_000


def test_less_than_no_time_and_more_than_the_round_are_impossible() -> None:
    wall = np.array([5, -1, 0, 100, 101, 60], dtype=np.int64)
    assert impossible_times(wall, 100).tolist() == [False, True, False, False, True, False]
    each = np.array([100, 100, 100, 100, 200, 50], dtype=np.int64)
    assert impossible_times(wall, each).tolist() == [False, True, False, False, False, True]


def test_a_jump_is_told_with_its_size_and_a_remedy() -> None:
    wall = np.array([1_000_000, -3_000_000, 2_000_000, 9_000_000_000], dtype=np.int64)
    [told] = clock_warnings(wall, 10_000_000)
    assert "went back in 1 of 4 calls (by up to 3.000 ms)" in told
    assert "gave 1 of 4 calls more time than their round (up to 9,000.000 ms)" in told
    assert "measure again" in told


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_a_clock_that_runs_as_it_should_gives_no_warning(n: int) -> None:
    assert clock_warnings(np.full(n, 50, dtype=np.int64), 100) == []
