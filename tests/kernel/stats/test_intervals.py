"""Intervals of means by what a value can be."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from retrieval_bench.metrics.definitions import DEFINITIONS
from retrieval_bench.stats.intervals import (
    HIT,
    SHARE,
    Scale,
    clopper_pearson,
    gaffke,
    mean_intervals,
    methods,
    resamples_for,
)

Floats = NDArray[np.float64]


def one(values: list[float] | Floats, scale: Scale | None, alpha: float = 0.05) -> list[float]:
    column = np.asarray(values, dtype=np.float64)[:, None]
    found: list[float] = mean_intervals(column, [scale], alpha=alpha)[0].tolist()
    return found


def bounds(values: Floats, alpha: float = 0.05) -> Floats:
    columns = values.shape[1]
    return gaffke(values, np.zeros(columns), np.ones(columns), alpha=alpha)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (3, 10), (1, 300), (150, 300)])
def test_hits_have_the_exact_binomial_interval(hits: int, n: int) -> None:
    expected = scipy.stats.binomtest(hits, n).proportion_ci(0.95, "exact")
    assert clopper_pearson(hits, n) == pytest.approx((expected.low, expected.high))
    assert one([1.0] * hits + [0.0] * (n - hits), HIT) == pytest.approx(expected)


def test_ten_hits_of_ten_leave_room_for_a_miss() -> None:
    assert one([1.0] * 10, HIT) == pytest.approx([0.6915, 1.0], abs=1e-4)
    low, high = one([1.0] * 10, SHARE)
    assert low == pytest.approx(0.69, abs=0.003)
    assert high == 1.0


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 6, 0.05 / 780])
@pytest.mark.parametrize("n", [2, 5, 10, 30, 100, 1000])
def test_the_bound_of_zeros_and_ones_is_the_binomial_one(n: int, alpha: float) -> None:
    hits = np.unique(np.linspace(0, n, 11).astype(int))
    values = (np.arange(n)[:, None] < hits).astype(np.float64)
    exact = np.array([clopper_pearson(int(k), n, alpha=alpha) for k in hits])
    # The saddle point is off by up to 2 % of p: most with few values.
    assert np.abs(bounds(values, alpha) - exact).max() < 0.003


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 10, 50])
def test_the_bound_is_a_quantile_of_exponentially_weighted_means(n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.beta(0.7, 1.1, size=(n, 3))
    weights = rng.exponential(size=(200_000, n + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    inner, outer = weights[:, :n] @ values, weights[:, n:]
    expected = np.column_stack(
        [np.quantile(inner, 0.025, axis=0), np.quantile(inner + outer, 0.975, axis=0)]
    )
    assert np.abs(bounds(values) - expected).max() < 0.005


def test_no_interval_on_a_known_range_has_no_width() -> None:
    for n in (2, 3, 10, 140, 1000):
        for value in (0.0, 0.25, 1.0):
            for scale in (SHARE, HIT) if value != 0.25 else (SHARE,):
                low, high = one([value] * n, scale)
                assert 0 <= low <= value <= high <= 1
                assert high - low > 1 / n**1.2
    low, high = one([0.0] * 300, SHARE.of_differences)
    assert (low, high) == pytest.approx((-0.0122, 0.0122), abs=1e-4)  # 0.025 ** (1 / 300)


def test_the_bounds_turn_with_the_values() -> None:
    values = np.random.default_rng(3).beta(0.5, 2, size=(40, 1))
    (low, high), (other_low, other_high) = bounds(values)[0], bounds(1 - values)[0]
    assert (low, high) == pytest.approx((1 - other_high, 1 - other_low), abs=1e-6)
    shifted = mean_intervals(100 * values, [Scale(0.0, 100.0)])[0]
    assert shifted == pytest.approx(100 * bounds(values)[0], abs=1e-4)


def test_a_higher_level_gives_a_wider_interval_and_the_mean_is_inside() -> None:
    values = np.random.default_rng(4).random((25, 1))
    mean = values.mean()
    narrow, wide = bounds(values, 0.05)[0], bounds(values, 0.05 / 45)[0]
    assert wide[0] < narrow[0] < mean < narrow[1] < wide[1]


def test_columns_do_not_change_each_other() -> None:
    values = np.random.default_rng(5).random((30, 4))
    scales = [SHARE, None, SHARE, HIT]
    values[:, 3] = values[:, 3] > 0.5
    together = mean_intervals(values, scales)
    for at, scale in enumerate(scales):
        alone = mean_intervals(values[:, at : at + 1], [scale])[0]
        assert together[at] == pytest.approx(alone, abs=1e-12)


def test_a_value_outside_shows_that_the_range_is_not_known() -> None:
    values = [0.2, 0.4, 1.3, 0.9]
    assert one(values, SHARE) == one(values, None)
    assert one([0.2, 0.4, 1.0 + 1e-12, 0.9], SHARE) != one([0.2, 0.4, 1.0 + 1e-12, 0.9], None)


def test_one_value_or_none_has_no_interval() -> None:
    for n in (0, 1):
        assert np.isnan(mean_intervals(np.ones((n, 2)), [SHARE, None])).all()


def test_a_small_level_takes_more_resamples() -> None:
    assert resamples_for(0.05) == 10_000
    assert resamples_for(0.05 / 780) == 624_000


def test_the_names_of_the_methods() -> None:
    assert methods([HIT, SHARE, None, SHARE]) == (
        "Clopper-Pearson and Gaffke's bound and percentile bootstrap"
    )


def test_metrics_without_an_upper_end_say_no_range() -> None:
    ranged = {name for name, definition in DEFINITIONS.items() if definition.scale}
    assert {"nDCG", "AP", "RR", "R", "Success"} <= ranged
    assert not ranged & {"GMAP", "GMBpref", "YAAP", "Utility", "NumRet"}
    assert DEFINITIONS["Success"].scale == HIT
    assert not any(DEFINITIONS[name].scale == HIT for name in ("nDCG", "AP", "RR", "R"))


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-12, 1e-9, 2e-9, 1e-8, 2e-7, 1e-6, 1e-3])
@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_values_that_nearly_are_equal_are_no_trouble(value: float, gap: float) -> None:
    values = np.full((12, 1), value)
    values[0] = abs(value - gap)
    (low, high) = mean_intervals(values, [SHARE])[0]
    assert 0 <= low <= values.mean() <= high <= 1
    assert (low, high) == pytest.approx(one([value] * 12, SHARE), abs=1e-4 + gap)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_values_the_interval_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, columns = int(rng.integers(2, 60)), 40
    spread = 10.0 ** rng.integers(-14, 1, size=columns)
    values = np.clip(rng.random(columns) + spread * rng.normal(size=(n, columns)), 0, 1)
    values[:, rng.random(columns) < 0.3] = rng.integers(0, 2)
    for alpha in (0.05, 0.05 / 780):
        ends = mean_intervals(values, [SHARE] * columns, alpha=alpha)
        mean = values.mean(axis=0)
        assert (ends[:, 0] <= mean + 1e-9).all()
        assert (mean - 1e-9 <= ends[:, 1]).all()
        assert ((ends >= 0) & (ends <= 1)).all()
        assert (ends[:, 1] - ends[:, 0] > 1e-4).all()
