"""How often 95 % intervals cover the truth in 2,000 simulated runs; the study of all cases is
``python -m tests.benchmarks.coverage``.

The seed is fixed.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.coverage import (
    LEVELS,
    OTHERS,
    WORLDS,
    Tally,
    call_tally,
    mix_tally,
    other_tally,
)

RUNS = 2_000

CHANCE = 0.01
"""Two standard errors of a share near 95 % in 2,000 runs."""


def _shares(tally: Tally) -> list[float]:
    return [float(covered / n) for covered, n in zip(tally.covered, tally.n, strict=True) if n]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "p99_gates"),
    [((166, 7), False), pytest.param((300, 17), True, marks=[pytest.mark.slow, pytest.mark.long])],
)
def test_intervals_over_calls_cover_what_they_say(size: tuple[int, int], p99_gates: bool) -> None:
    tally = call_tally(WORLDS["usual"], size, 1, RUNS)
    assert tally.gates.tolist() == [True, True, p99_gates]
    assert len(_shares(tally)) == len(LEVELS)
    assert all(0.93 <= share <= 0.97 for share in _shares(tally)), _shares(tally)


@pytest.mark.slow
@pytest.mark.long
def test_intervals_over_queries_cover_at_least_what_they_say() -> None:
    tally = mix_tally(WORLDS["usual"], (1_000, 3), RUNS)
    assert tally.gates.tolist() == [True, True, False]
    assert len(_shares(tally)) == len(LEVELS)
    assert all(share >= 0.95 - CHANCE for share in _shares(tally)), _shares(tally)


@pytest.mark.slow
@pytest.mark.long
def test_a_percentile_that_falls_between_two_queries_is_covered() -> None:
    shares = _shares(call_tally(WORLDS["wide"], (100, 12), 1, RUNS))
    assert all(0.93 <= share <= 0.98 for share in shares), shares


@pytest.mark.parametrize("method", ["calls as independent", "bootstrap of rounds"])
@pytest.mark.slow
@pytest.mark.long
def test_the_check_tells_an_interval_that_does_not_know_rounds(method: str) -> None:
    tally = other_tally(OTHERS[method], WORLDS["usual"], (166, 7), 200)
    assert not any(0.93 <= share <= 0.97 for share in _shares(tally)[:2]), _shares(tally)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("world", ["usual", "stalls", "wide", "calm"])
@pytest.mark.parametrize(
    ("size", "launches"),
    [((300, 4), 1), ((300, 17), 1), ((1_000, 5), 1), ((100, 50), 1), ((166, 7), 5)],
)
def test_call_intervals_that_gate_cover_what_they_say(
    world: str, size: tuple[int, int], launches: int
) -> None:
    tally = call_tally(WORLDS[world], size, launches, RUNS)
    shares = np.array(_shares(tally))
    gated = shares[tally.gates]
    assert gated.size
    assert (gated >= 0.93 - CHANCE).all(), shares
    assert (gated <= 0.97 + CHANCE).all(), shares


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("world", ["usual", "stalls", "bimodal"])
def test_intervals_over_5_000_queries_cover_p99(world: str) -> None:
    tally = mix_tally(WORLDS[world], (5_000, 1), RUNS)
    assert tally.gates.all()
    assert all(share >= 0.95 - CHANCE for share in _shares(tally)), _shares(tally)
