"""Standstills and outages of a service are told in a line; of noise nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from heapq import heapreplace

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.core.notices import Code, says
from retrieval_bench_load.engine.generator import LevelCalls
from retrieval_bench_load.engine.schedule import Pace, due_ns
from retrieval_bench_load.engine.stalls import Stalls
from retrieval_bench_load.engine.stamps import ANSWERED, FAILED, Calls
from tests.builders.queued import Service, level_of

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

TAKES: dict[str, Draw] = {
    "exponential": lambda rng, n: rng.exponential(0.005, n),
    "uniform": lambda rng, n: rng.uniform(0.001, 0.009, n),
    "lognormal": lambda rng, n: rng.lognormal(-6.5, 1.5, n),
    "Pareto 1.5": lambda rng, n: 0.0017 * (1 + rng.pareto(1.5, n)),
    "Pareto 2.5": lambda rng, n: 0.003 * (1 + rng.pareto(2.5, n)),
    "one in thirty slow": lambda rng, n: np.where(rng.random(n) < 0.03, 0.15, 0.003),
}


def _served(due: NDArray[np.int64], draw: Draw, workers: int, seed: int) -> Calls:
    """Calls of a service of so many workers, 0 = any number, that takes what is drawn."""
    takes = (draw(np.random.default_rng([seed, 3]), len(due)) * 1e9).tolist()
    free, done = [0.0] * (workers or len(due)), np.empty_like(due)
    for i, (at, span) in enumerate(zip(due.tolist(), takes, strict=True)):
        done[i] = max(at, free[0]) + span
        heapreplace(free, float(done[i]))
    zeros = np.zeros(len(due), dtype=np.int64)
    return Calls(due, due.copy(), done, zeros, zeros, np.full(len(due), ANSWERED), *[zeros] * 4)


def _told(made: list[tuple[LevelCalls, str]]) -> list[str]:
    stalls = Stalls()
    for level, name in made:
        stalls.add(level, name)
    found = stalls.warnings()
    assert all(says([text], Code.STANDS_STILL) for text in found)
    return found


def _level(calls: Calls, rate: float) -> tuple[LevelCalls, str]:
    return level_of(calls, 10.0, 2.0, rate=rate, slots=256), f"{rate:g}/s"


def _of(service: Service, rates: tuple[float, ...], seed: int = 0) -> list[tuple[LevelCalls, str]]:
    numbered = [(rate, 10 * seed + n) for n, rate in enumerate(rates)]
    return [
        _level(service.calls(due_ns(Pace(rate), 12.0, number), 256, number), rate)
        for rate, number in numbered
    ]


@pytest.mark.parametrize(
    ("service", "each", "least", "most"),
    [
        (Service(stall_s=0.1, each_s=2.0), "2 s", 80, 110),
        (Service(1, 0.005, constant=False, stall_s=0.1, each_s=2.0), "2 s", 75, 130),
        (Service(0, 0.4, stall_s=0.4, each_s=3.0), "3 s", 380, 450),
        (Service(1, 0.003, stall_s=0.06, each_s=0.1), "100 ms", 50, 62),
        (Service(1, 0.005, stall_s=0.03, each_s=1.0), "1 s", 20, 35),
    ],
)
def test_a_service_that_stands_still_each_so_often(
    service: Service, each: str, least: float, most: float
) -> None:
    """L4: the hidden stall was told nowhere."""
    for seed in (3, 4):
        (text,) = _told(_of(service, (50.0, 100.0), seed))
        ms, _, rest = text.removeprefix("The service stands still for ").partition(" ms each ")
        assert rest.startswith(f"{each}:"), text
        assert least <= float(ms) <= most, text


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_no_period_is_invented_in_noise(name: str, arrivals: str) -> None:
    """L4: queues of one worker, of four and of any number, at three rates."""
    for workers, seed in [(workers, seed) for workers in (1, 4, 0) for seed in range(3)]:
        made = []
        for n, rate in enumerate((20.0, 60.0, 100.0)):
            due = due_ns(Pace(rate, arrivals), 12.0, 10 * seed + n)
            made.append(_level(_served(due, TAKES[name], workers, 10 * seed + n), rate))
        assert _told(made) == []


def test_the_rhythm_of_the_calls_is_not_the_services() -> None:
    """Thirty calls at once at each second, of which some are slow."""
    due = np.sort(np.tile(np.arange(12) * 1_000_000_000, 30))
    for seed in range(5):
        assert _told([_level(_served(due, TAKES["one in thirty slow"], 1, seed), 30.0)]) == []


def test_a_standstill_that_does_not_come_again_is_told_by_itself() -> None:
    service = Service(1, 0.005, stall_s=2.0, each_s=40.0)
    told = [text for seed in range(6) for text in _told(_of(service, (50.0,), seed))]
    assert told
    assert all(text.startswith("50/s: the service stood still, for ") for text in told)
    assert all("calls waited for an answer" in text for text in told)


def test_an_outage_is_told_and_failures_here_and_there_are_none() -> None:
    ((made, name),) = _of(Service(), (100.0,))
    due = made.calls.due / 1e9
    status = np.where((due > 5) & (due < 7), FAILED, ANSWERED)
    (text,) = _told([(replace(made, calls=replace(made.calls, status=status)), name)])
    assert text.startswith("100/s: ")
    assert "calls behind each other had no answer, for 2 s from 3 s after its begin on." in text
    often = np.where(np.random.default_rng(1).random(len(due)) < 0.6, FAILED, ANSWERED)
    assert _told([(replace(made, calls=replace(made.calls, status=often)), name)]) == []


def test_waits_before_a_repetition_are_not_the_services() -> None:
    ((made, name),) = _of(Service(stall_s=0.1, each_s=2.0), (100.0,))
    waited = np.full(len(made.calls), 1, np.int64)
    assert _told([(replace(made, calls=replace(made.calls, waited=waited)), name)]) == []
