"""The randomisation test and its inversion: what is outside the interval is what is rejected."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import retrieval_bench.stats.randomization
from retrieval_bench.stats.randomization import Randomization, randomization_p

Floats = NDArray[np.float64]
PAIR = np.array([[0, 1]])


def inverted(differences: Floats, resamples: int = 10_000) -> Randomization:
    """One pair whose second system is ahead by ``differences``, (queries, columns)."""
    return Randomization(np.stack([np.zeros_like(differences), differences]), PAIR, resamples)


def ends(test: Randomization, alpha: float = 0.05) -> Floats:
    """Of each column, (columns, 2)."""
    return np.asarray(test.intervals(np.full((1, test.values.shape[2]), alpha))[0])


def populations(n: int, draws: int) -> Floats:
    """Differences as they come: normal, mostly ties, of one sign, hits, and in whole tenths."""
    rng = np.random.default_rng(n)
    kinds = [
        rng.normal(0.08, 0.2, (n, draws)),
        rng.normal(0.08, 0.3, (n, draws)) * (rng.random((n, draws)) < 0.4),
        -1.0 * (rng.random((n, draws)) < 0.1),
        rng.integers(-1, 2, (n, draws)).astype(np.float64),
        rng.integers(-3, 5, (n, draws)) / 10,
    ]
    return np.column_stack(kinds)


@pytest.mark.parametrize("n", [2, 5, 6, 10, 13, 14, 30, 100])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 7])
def test_0_is_outside_exactly_where_p_is_below_the_level(n: int, alpha: float) -> None:
    test = inverted(populations(n, 60), resamples=3_000)
    low, high = ends(test, alpha).T
    assert np.array_equal((low > 0) | (high < 0), test.p()[0] < alpha)


@pytest.mark.parametrize("n", [7, 13, 20])
def test_a_mean_is_inside_exactly_where_the_test_does_not_reject_it(n: int) -> None:
    d = np.random.default_rng(n).normal(0.1, 0.3, (n, 1))
    low, high = ends(inverted(d))[0]
    for end, out in ((low, -1e-6), (high, 1e-6)):
        assert randomization_p(d - end + out)[0] >= 0.05
        assert randomization_p(d - end - out)[0] < 0.05


def test_with_too_few_queries_no_mean_is_rejected() -> None:
    d = np.ones((5, 1))
    assert ends(inverted(d)).tolist() == [[-np.inf, np.inf]]
    assert ends(inverted(np.vstack([d, [[0.5]]]))).min() > 0
    assert np.isnan(ends(inverted(np.empty((0, 1))))).all()


def test_levels_and_pairs_keep_to_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).random((3, 40, 2))
    places = np.array([[0, 1], [1, 2]])
    alpha = np.array([[0.05, 0.01], [0.2, 0.05]])
    whole = Randomization(values, places, 2_000).intervals(alpha)
    for row, pair in enumerate(places):
        for at in range(2):
            alone = Randomization(values[pair][:, :, [at]], PAIR, 2_000)
            assert whole[row, at] == pytest.approx(ends(alone, alpha[row, at])[0], abs=1e-13)
    monkeypatch.setattr(retrieval_bench.stats.randomization, "_CELLS", 40 * 300)
    pieces = Randomization(values, places, 2_000).intervals(alpha)
    assert pieces == pytest.approx(whole, abs=1e-13)
