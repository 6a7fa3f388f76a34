"""Percentiles of what is known between two ends, and shares."""

from __future__ import annotations

import math

import numpy as np
import pytest

from retrieval_bench.stats.percentiles import percentile
from retrieval_bench_writes.delays import Delay, Share


def test_both_ends_are_percentiles_of_the_house_with_its_exact_intervals() -> None:
    rng = np.random.default_rng(3)
    after = rng.exponential(1.0, 500)
    before = 0.9 * after
    delay = Delay.of(before.tolist(), after.tolist(), 95.0)
    low, high = percentile(before, 95.0), percentile(after, 95.0)
    assert (delay.at_least_s, delay.at_least_ci95) == (low.value, low.ci95)
    assert (delay.at_most_s, delay.at_most_ci95) == (high.value, high.ci95)


@pytest.mark.parametrize(("gap", "agree"), [(0.09, True), (0.11, False)])
def test_ends_that_differ_by_at_most_a_tenth_are_one_figure(gap: float, agree: bool) -> None:
    after = np.linspace(1.0, 2.0, 100)
    delay = Delay.of(((1 - gap) * after).tolist(), after.tolist(), 50.0)
    assert delay.agrees is agree


def test_what_never_showed_stands_in_the_last_ranks() -> None:
    before = [0.9] * 190 + [60.0] * 10
    after = [1.0] * 190 + [math.inf] * 10
    median, tail = Delay.of(before, after, 50.0), Delay.of(before, after, 95.0)
    assert (median.at_least_s, median.at_most_s, median.at_most_ci95) == (0.9, 1.0, (1.0, 1.0))
    assert tail.at_most_s is None, "between a second and never there is no figure"
    assert tail.at_most_ci95 == (1.0, None)
    assert tail.at_least_s is not None
    assert tail.at_least_s <= 60.0


def test_a_percentile_that_the_writes_cannot_support_is_refused() -> None:
    delay = Delay.of([0.0] * 199, [1.0] * 199, 95.0)
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
