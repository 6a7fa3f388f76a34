"""Duets put together from recorded times of real launches: false alarms and power.

``recorded/equal-sides.npz``: 40 launches of the probe on both sides (2 cores of a shared virtual
machine, nothing else started, Nov. 2026), up to two rounds of 200 queries each, in units of 100 ns.
``recorded/busy-host.npz``: 30 launches on another one, whose host took its cores away now and then.
A replay draws launches in random order, sides swapped by chance, and hands them to the decision as
they are; slower sides are made by multiplying every time of side b, or of its slowest queries. What
a machine does with real extra work is shown by live duets: ``python -m tests.benchmarks.duets``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.call_pairs import Pairs
from retrieval_bench.stats.percentiles import medians
from retrieval_bench_duet.account import slower_on_average
from retrieval_bench_duet.decision import GATES, Trial, overall, thetas
from retrieval_bench_duet.launch import Measured
from retrieval_bench_duet.result import WORDS

RECORDED = Path(__file__).parent / "recorded"
QUIET, BUSY = "equal-sides", "busy-host"

Slower = Callable[[str, NDArray[np.int32]], NDArray[np.float64]]
"""Record, queries -> how many times as long side b takes."""


@cache
def launches(record: str) -> list[Measured]:
    with np.load(RECORDED / f"{record}.npz") as arrays:
        whole = {name: arrays[name] for name in arrays.files}
    found = []
    for number in np.unique(whole["launch"]):
        own = whole["launch"] == number
        found.append(
            Measured(
                whole["wall_100ns"][:, own].astype(np.int64) * 100,
                whole["query"][own].astype(np.int32),
                whole["round"][own].astype(np.int32),
                whole["first"][own],
                seconds=1.0,
            )
        )
    return found


def everywhere(share: float) -> Slower:
    return lambda _, query: np.full(len(query), 1 + share)


def in_the_slowest_fifth(share: float) -> Slower:
    def slower(record: str, query: NDArray[np.int32]) -> NDArray[np.float64]:
        return np.where(np.isin(query, slow_queries(record)), 1 + share, 1.0)

    return slower


@cache
def slow_queries(record: str) -> NDArray[np.int64]:
    wall = np.concatenate([one.wall_ns[0] for one in launches(record)]).astype(np.float64)
    usual = medians(wall, np.concatenate([one.query for one in launches(record)]))
    return np.flatnonzero(usual >= np.quantile(usual, 0.8))


@cache
def pool(record: str, slower: Slower, rounds: int) -> list[list[Pairs]]:
    """Every launch twice: either side is the slowed one."""
    found = []
    for one in launches(record):
        own = one.round < rounds
        wall, query = one.wall_ns[:, own].astype(np.float64), one.query[own]
        times = slower(record, query)
        sides = []
        for side in (0, 1):
            both = wall[[1 - side, side]]
            both[1] *= times
            first = one.first[own] ^ (side == 0)
            made = Measured(both.astype(np.int64), query, one.round[own], first, 1.0)
            sides.append(made.pairs(0))
        found.append(sides)
    return found


def verdicts(
    slower: Slower, replays: int, seed: int, *, rounds: int = 1, record: str = QUIET
) -> dict[str, float]:
    """Word -> share, and the mean number of launches. No launch comes a second time before all
    were there: beside itself a launch is no other one."""
    rng, known = np.random.default_rng(seed), pool(record, slower, rounds)
    counts = dict.fromkeys(WORDS.values(), 0)
    made = 0
    for _ in range(replays):
        trial = Trial({name: gate.limit for name, gate in GATES.items()}, thetas)
        order = [at for _ in range(2) for at in rng.permutation(len(known)).tolist()]
        while not trial.over:
            trial.add(known[order.pop()][int(rng.integers(2))])
        counts[WORDS[overall(trial.results())]] += 1
        made += len(trial.first) + len(trial.again)
    return {word: n / replays for word, n in counts.items()} | {"launches": made / replays}


@pytest.mark.parametrize(("record", "n"), [(QUIET, 40), (BUSY, 30)])
def test_the_records_are_what_they_say(record: str, n: int) -> None:
    assert (RECORDED / f"{record}.npz").stat().st_size < 200_000
    assert len(launches(record)) == n
    assert {len(np.unique(one.query)) for one in launches(record)} == {200}


@pytest.mark.slow
@pytest.mark.parametrize(("record", "rounds"), [(QUIET, 1), (QUIET, 2), (BUSY, 1)])
def test_equal_sides_raise_no_alarm(record: str, rounds: int) -> None:
    found = verdicts(everywhere(0.0), 50, seed=1, rounds=rounds, record=record)
    assert found["FAIL"] == 0
    assert found["PASS"] >= 0.97
    assert found["launches"] < 7


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("record", [QUIET, BUSY])
def test_false_alarms_in_many_replays(record: str) -> None:
    found = verdicts(everywhere(0.0), 5_000, seed=2, record=record)
    assert found["FAIL"] <= 0.001


POWER = [(0.02, 0.2, 0.1), (0.03, 0.9, 0.85), (0.05, 0.99, 0.98), (0.10, 0.999, 0.99)]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("share", "quiet", "busy"), POWER)
def test_the_power_curve(share: float, quiet: float, busy: float) -> None:
    for record, least in ((QUIET, quiet), (BUSY, busy)):
        found = verdicts(everywhere(share), 1_000, seed=3, record=record)
        assert found["FAIL"] >= least
        assert found["launches"] <= 16


@pytest.mark.slow
@pytest.mark.long
def test_three_per_cent_is_found_beside_a_busy_host_too() -> None:
    assert verdicts(everywhere(0.03), 100, seed=6, record=BUSY)["FAIL"] >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("record", [QUIET, BUSY])
@pytest.mark.parametrize("replays", [100, pytest.param(500, marks=pytest.mark.long)])
def test_a_slower_tail_is_found(record: str, replays: int) -> None:
    found = verdicts(in_the_slowest_fifth(0.10), replays, seed=4, record=record)
    assert found["FAIL"] >= 0.95


def slower_means(record: str, share: float, times: float, replays: int = 200) -> float:
    """In how many duets of eight launches side b is told to be slower on average, when a random
    ``share`` of its calls takes so many ``times`` as long."""
    rng, told = np.random.default_rng(7), 0
    for _ in range(replays):
        some = rng.choice(len(launches(record)), 8, replace=False)
        chosen = []
        for one in (launches(record)[at] for at in some.tolist()):
            wall = one.wall_ns[rng.permutation(2)].astype(np.float64)
            wall[1, rng.random(wall.shape[1]) < share] *= times
            chosen.append(replace(one, wall_ns=wall.astype(np.int64)))
        told += bool(slower_on_average(chosen))
    return told / replays


@pytest.mark.slow
def test_pauses_for_whatever_query_are_told_and_those_of_the_machine_are_not() -> None:
    for record, found in ((QUIET, 0.95), (BUSY, 0.85)):
        assert slower_means(record, 0.0, 1.0, replays=1_000) == 0
        assert slower_means(record, 0.12, 3.0) >= found


@pytest.mark.slow
def test_five_per_cent_is_found() -> None:
    assert verdicts(everywhere(0.05), 30, seed=5)["FAIL"] >= 0.98
