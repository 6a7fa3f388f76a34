"""Periods are found where moments come again, and not in noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench_load.periods import period


@pytest.mark.parametrize("jitter", [0.0, 0.003, 0.02])
def test_what_comes_again_has_a_period(jitter: float) -> None:
    rng = np.random.default_rng(4)
    each, chance = period([3 + 2.0 * np.arange(12) + rng.normal(0, jitter, 12)])
    assert each == pytest.approx(2.0, rel=0.01)
    assert chance < 1e-6


def test_moments_may_be_missed_and_others_may_be_between() -> None:
    moments = np.arange(20) * 1.5
    kept = np.delete(moments, [3, 4, 9, 15])
    each, chance = period([np.sort([*kept, 7.1]), kept + 100.0])
    assert each == pytest.approx(1.5, rel=0.01)
    assert chance < 1e-6


def test_of_independent_moments_hardly_any_are_as_regular() -> None:
    rng = np.random.default_rng(5)
    n, found = 400, 0
    for _ in range(n):
        found += period([np.sort(rng.uniform(0, 60, int(rng.integers(3, 40))))])[1] < 0.01
    assert found <= 0.01 * n


def test_moments_on_a_grid_are_no_period() -> None:
    rng, found = np.random.default_rng(6), 0
    for _ in range(200):
        grid = np.sort(rng.choice(600, 30, replace=False)) / 50.0
        found += period([grid], grain=1 / 50.0)[1] < 0.01
    assert found <= 2


@pytest.mark.parametrize("moments", [[], [np.empty(0)], [np.array([1.0])], [np.array([1.0, 2.0])]])
def test_few_moments_have_none(moments: list[NDArray[np.float64]]) -> None:
    assert period(moments)[1] >= 1.0
