"""Percentiles of what is known between two ends, and shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrieval_bench_writes.delays import Delay, Share, refreshes


def waits(gaps: Callable[[int], Any], rate: float, n: int, rng: Any) -> tuple[Any, Any]:
    """When writes come, and how long each waits for the next refresh."""
    refreshed = np.cumsum(gaps(30 * n)) - 9.0
    at = np.cumsum(rng.exponential(1 / rate, n)) + rng.uniform(0.0, 9.0)
    return at, refreshed[np.searchsorted(refreshed, at)] - at


RNG = np.random.default_rng(1)
GAPS: dict[str, Callable[[int], Any]] = {
    "1 s": np.ones,
    "mostly 1 s": lambda n: np.where(RNG.random(n) < 0.1, 4.0, 1.0),
    "at random": lambda n: RNG.exponential(1.0, n),
}


@pytest.mark.parametrize("name", list(GAPS))
def test_intervals_hold_where_many_writes_wait_for_the_same_refresh(name: str) -> None:
    """Taken as independent, 400 writes have an interval that covers 44 % here."""
    rng = np.random.default_rng(1)
    median = float(np.median(waits(GAPS[name], 20.0, 100_000, rng)[1]))
    covered = printed = 0
    for _ in range(100):
        at, delays = waits(GAPS[name], 5.0, 400, rng)
        delay = Delay.of(at, delays / 1.05, delays * 1.05, 50.0)
        if delay.at_least_ci95 is not None and delay.surely_by is not None:
            printed += 1
            covered += delay.surely_after <= median <= delay.surely_by
    assert printed == 100
    assert covered >= 90


def test_too_fewrefreshes_give_a_figure_and_no_interval() -> None:
    rng = np.random.default_rng(1)
    at, delays = waits(GAPS["1 s"], 40.0, 400, rng)
    delay = Delay.of(at, delays, delays, 50.0)
    assert delay.at_most_s == pytest.approx(0.5, rel=0.2)
    assert (delay.at_least_ci95, delay.at_most_ci95, delay.reason) == (None, None, None)
    assert (delay.surely_after, delay.surely_by) == (0.0, None)
    assert (delay.unsure or "").endswith("refresh times seen, the interval of p50 takes 30")
    assert Delay.of(at, delays, delays, 95.0).unsure is not None


def test_the_fewestrefreshes_that_explain_what_was_seen() -> None:
    assert refreshes(np.array([1.0, 2.0, 3.0]), np.array([2.5, 4.0, 5.0])) == 2
    assert refreshes(np.array([1.0, 2.0]), np.array([math.inf, math.inf])) == 1


@pytest.mark.parametrize(("gap", "agree"), [(0.09, True), (0.11, False)])
def test_ends_that_differ_by_at_most_a_tenth_are_one_figure(gap: float, agree: bool) -> None:
    after = np.linspace(1.0, 2.0, 100)
    delay = Delay.of(np.arange(100.0), (1 - gap) * after, after, 50.0)
    assert delay.agrees is agree


def test_what_never_showed_stands_in_the_last_ranks() -> None:
    before = [0.9] * 190 + [60.0] * 10
    after = [1.0] * 190 + [math.inf] * 10
    median, tail = (Delay.of(np.arange(200.0), before, after, level) for level in (50.0, 95.0))
    assert (median.at_least_s, median.at_most_s) == (0.9, 1.0)
    assert median.at_most_ci95 == pytest.approx((1.0, 1.0))
    assert tail.at_most_s is None, "between a second and never there is no figure"
    assert tail.at_most_ci95 == (1.0, None)
    assert tail.at_least_s is not None
    assert tail.at_least_s <= 60.0


def test_a_percentile_that_the_writes_cannot_support_is_refused() -> None:
    delay = Delay.of(np.arange(199.0), [0.0] * 199, [1.0] * 199, 95.0)
    assert delay.at_most_s is delay.at_least_s is None
    assert delay.reason == "199 writes, p95 needs 200: 1 more write"
    assert not delay.agrees


def test_no_zombie_in_two_thousand_bounds_their_share() -> None:
    share = Share.of(0, 2_000)
    assert share.at_most == pytest.approx(1 - 0.05 ** (1 / 2_000))
    assert share.at_most == pytest.approx(0.0015, abs=0.00001)
    assert (share.ci95 or (1.0, 0.0))[0] == 0.0


def test_of_nothing_there_is_no_share() -> None:
    assert (Share.of(0, 0).at_most, Share.of(0, 0).ci95) == (None, None)
