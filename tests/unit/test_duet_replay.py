"""Duets put together from recorded times of real launches: false alarms and power.

``recorded/equal-sides.npz``: 40 launches of the probe on both sides (2 cores of a shared virtual
machine, nothing else started, Nov. 2026), up to two rounds of 200 queries each, in units of 100 ns.
A replay draws launches with replacement and hands them to the decision as it is; slower sides are
made by multiplying every time of side b, or of its slowest queries. What a machine does with real
extra work is shown by live duets: ``python -m tests.benchmarks.duets``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.call_pairs import Pairs, medians
from harness.duet.decision import Trial, overall
from harness.duet.gates import GATES, thetas
from harness.duet.launch import Measured
from harness.duet.result import WORDS

RECORD = Path(__file__).parent / "recorded" / "equal-sides.npz"

Slower = Callable[[NDArray[np.int64], NDArray[np.int32]], NDArray[np.float64]]


@cache
def launches() -> list[Measured]:
    with np.load(RECORD) as arrays:
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
    return lambda wall, query: np.full(len(query), 1 + share)


def in_the_slowest_fifth(share: float) -> Slower:
    wall = np.concatenate([one.wall_ns[0] for one in launches()]).astype(np.float64)
    usual = medians(wall, np.concatenate([one.query for one in launches()]))
    slow = np.flatnonzero(usual >= np.quantile(usual, 0.8))
    return lambda _, query: np.where(np.isin(query, slow), 1 + share, 1.0)


@cache
def pool(slower: Slower, rounds: int) -> list[Pairs]:
    """Every launch; either side may be the slowed one."""
    found = []
    for one in launches():
        own = one.round < rounds
        wall, query = one.wall_ns[:, own].astype(np.float64), one.query[own]
        for side in (0, 1):
            both = wall[[1 - side, side]]
            both[1] *= slower(one.wall_ns[0, own], query)
            first = one.first[own] ^ (side == 0)
            made = Measured(both.astype(np.int64), query, one.round[own], first, 1.0)
            found.append(made.pairs(0))
    return found


def verdicts(slower: Slower, replays: int, seed: int, rounds: int = 1) -> dict[str, float]:
    """Word -> share, and the mean number of launches."""
    rng, known = np.random.default_rng(seed), pool(slower, rounds)
    counts = dict.fromkeys(WORDS.values(), 0)
    made = 0
    for _ in range(replays):
        trial = Trial({name: gate.limit for name, gate in GATES.items()}, thetas)
        while not trial.over:
            trial.add(known[int(rng.integers(len(known)))])
        counts[WORDS[overall(trial.results())]] += 1
        made += len(trial.first) + len(trial.again)
    return {word: n / replays for word, n in counts.items()} | {"launches": made / replays}


def test_the_record_is_what_it_says() -> None:
    assert RECORD.stat().st_size < 200_000
    assert len(launches()) == 40
    assert {len(np.unique(one.query)) for one in launches()} == {200}


@pytest.mark.parametrize("rounds", [1, 2])
def test_equal_sides_raise_no_alarm(rounds: int) -> None:
    found = verdicts(everywhere(0.0), 400, seed=1, rounds=rounds)
    assert found["FAIL"] <= 0.01
    assert found["PASS"] >= 0.97


@pytest.mark.slow
def test_false_alarms_in_many_replays() -> None:
    found = verdicts(everywhere(0.0), 5_000, seed=2)
    assert found["FAIL"] <= 0.001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "least"), [(0.02, 0.2), (0.03, 0.9), (0.05, 0.99), (0.10, 0.999)]
)
def test_the_power_curve(share: float, least: float) -> None:
    found = verdicts(everywhere(share), 1_000, seed=3)
    assert found["FAIL"] >= least
    assert found["launches"] <= 24


@pytest.mark.slow
def test_a_slower_tail_is_found() -> None:
    found = verdicts(in_the_slowest_fifth(0.10), 500, seed=4)
    assert found["FAIL"] >= 0.90


def test_five_per_cent_is_found() -> None:
    assert verdicts(everywhere(0.05), 100, seed=5)["FAIL"] >= 0.98
