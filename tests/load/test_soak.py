"""A level over time: memory, drift, outages."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.reports.render.terminal import plain
from retrieval_bench_load.engine.generator import LevelCalls
from retrieval_bench_load.engine.load import LoadResult, Plan, load
from retrieval_bench_load.engine.saved import read_load
from retrieval_bench_load.engine.soak import course_of, watch
from retrieval_bench_load.engine.stamps import FAILED
from retrieval_bench_load.tables.load import load_tables
from tests.builders.queued import queue

MB = 1e6


def _made(readings: list[list[float | None]] | None = None) -> LevelCalls:
    made = queue(0.3, 100.0, 3)
    (process,) = made.processes
    assert process is not None
    return replace(made, processes=[replace(process, memory=readings or [])])


@pytest.mark.slow
def test_a_level_has_ten_parts_with_all_of_its_calls() -> None:
    made = _made()
    found = course_of(made)
    inside = (made.calls.due >= made.begin) & (made.calls.due < made.end)
    assert [part.until_s for part in found.parts] == pytest.approx(list(range(10, 101, 10)))
    assert sum(part.calls for part in found.parts) == inside.sum()
    assert all(part.p50_ms for part in found.parts)
    assert (found.drift, found.outages, found.memory_mb_a_minute) == (None, (), None)


def test_memory_grows_by_the_slope_of_its_readings() -> None:
    # Seconds count from the start, 5 s before the window; the first tenth of it is not settled.
    readings: list[list[float | None]] = [
        [float(s), (100 + max(0.0, s - 5) * 0.05 + (80 if s < 10 else 0)) * MB, 500 * MB]
        for s in range(1, 105)
    ]
    found = course_of(_made(readings))
    assert found.memory_mb_a_minute == pytest.approx(3.0)
    assert found.server_mb_a_minute == pytest.approx(0.0, abs=1e-6)
    assert found.parts[-1].memory_mb == pytest.approx(100 + 99 * 0.05, abs=0.1)


def test_a_server_that_is_gone_for_a_while_has_no_memory_then() -> None:
    readings: list[list[float | None]] = [
        [float(s), 100 * MB, None if 50 <= s < 60 else 500 * MB] for s in range(1, 105)
    ]
    assert course_of(_made(readings)).server_mb_a_minute == pytest.approx(0.0, abs=1e-6)


def test_latency_that_rises_drifts() -> None:
    made = _made()
    calls = made.calls
    slow = ((calls.due - calls.due[0]) * 0.0001).astype(np.int64)  # 10 ms in 100 s
    found = course_of(replace(made, calls=replace(calls, done=calls.done + slow)))
    assert found.drift is not None
    assert found.drift > 3


def test_an_outage_is_counted_with_its_end() -> None:
    made = _made()
    calls = made.calls
    inside = np.flatnonzero(calls.due >= made.begin)
    status = calls.status.copy()
    status[inside[1_000:1_050]] = FAILED
    status[inside[2_000]] = FAILED
    status[inside[-20:]] = FAILED
    found = course_of(replace(made, calls=replace(calls, status=status)))
    first, last = found.outages
    assert (first.calls, last.calls, last.seconds) == (50, 20, None)
    due = calls.due[inside]
    assert first.seconds == pytest.approx((due[1_050] - due[1_000]) / 1e9)
    assert sum(part.failed for part in found.parts) == 71


def test_memory_of_this_process_is_read_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval_bench_load.engine.soak._EVERY_S", 0.01)
    over = threading.Event()
    readings = watch(over, None)
    for _ in range(500):
        if len(readings) > 2:
            break
        threading.Event().wait(0.01)
    over.set()
    if Path("/proc/self/status").exists():
        assert (readings[0][1] or 0) > 5 * MB
        assert readings[0][2] is None


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadResult, Path]:
    """A load of two seconds and where it is saved."""
    out = tmp_path_factory.mktemp("soak") / "load"
    given = {"target": "tests.builders.troubled:Troubled", "retry": {"times": 0}}
    plan = Plan(clients=[1], seconds=2.0, warm_up_s=0.0, soak=True)
    return load(given, "science-mini", plan, out=out), out


@pytest.mark.slow
def test_a_soak_is_saved_and_read_back(soaked: tuple[LoadResult, Path]) -> None:
    found, out = soaked
    level = found.levels[0]
    assert found.unloaded.course is None
    assert level.course is not None
    assert read_load(out).levels[0].course == level.course
    text = plain(load_tables(found))
    assert "1 client over 2 s" in text
    assert "Nothing was lost" in text


@pytest.mark.slow
def test_what_is_shown_says_when_it_was_answered_again(soaked: tuple[LoadResult, Path]) -> None:
    found, _ = soaked
    made = _made()
    status = made.calls.status.copy()
    status[3_000:3_050] = FAILED
    course = course_of(replace(made, calls=replace(made.calls, status=status)))
    text = plain(load_tables(replace(found, levels=(replace(found.levels[0], course=course),))))
    assert "50 calls had no answer" in text
    assert "answered again" in text
