"""Intervals and tests by resampling, seeded: the same data give the same answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEED = 20_240_521
"""Seed of every resampling unless another is given: same data, same interval."""

RESAMPLES = 10_000

_CHUNK_DRAWS = 4_000_000


def bootstrap_mean_ci(
    values: NDArray[np.float64], *, seed: int = SEED, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """95 % percentile-bootstrap intervals of column means, resampling rows.

    All columns see the same resamples, so that intervals of several metrics belong together.

    Args:
        values: (queries, columns).

    Returns:
        (columns, 2), lower and upper end; NaN when there are fewer than two rows.

    Source: Efron & Tibshirani (1993), An Introduction to the Bootstrap, ch. 13.
    """
    n, columns = values.shape
    if n < 2:
        return np.full((columns, 2), np.nan)
    return interval(bootstrap_means(values, seed=seed, resamples=resamples))


def bootstrap_means(
    values: NDArray[np.float64], *, seed: int = SEED, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Column means of ``resamples`` samples of the rows, drawn with replacement.

    Args:
        values: (queries, columns), at least one row.

    Returns:
        (resamples, columns).
    """
    n, columns = values.shape
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, columns))
    step = max(1, _CHUNK_DRAWS // n)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        draws = rng.integers(0, n, size=(size, n), dtype=np.int32)
        offsets = np.arange(size, dtype=np.int64)[:, None] * n
        counts = np.bincount((draws + offsets).ravel(), minlength=size * n).reshape(size, n)
        means[start : start + size] = counts @ values / n
    return means


def interval(resampled: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle 95 % of each column of ``resampled``, (columns, 2)."""
    return np.quantile(resampled, [0.025, 0.975], axis=0).T


def randomization_p(
    differences: NDArray[np.float64], *, seed: int = SEED, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Two-sided p-values of the paired randomisation test of each column's mean against 0.

    Under the null the sign of each query's difference is a coin flip. With at most 13 rows all
    sign patterns are counted, so that p is exact; otherwise ``resamples`` seeded ones, and the
    observed pattern is one of them. Source: Fisher (1935); Smucker, Allan & Carterette (2007).

    Args:
        differences: (queries, columns).

    Returns:
        (columns,); 1 where there are no rows.
    """
    n, columns = differences.shape
    if n == 0:
        return np.ones(columns)
    observed = np.abs(differences.sum(axis=0))
    # Sums that differ only by rounding are the same sum.
    threshold = observed - 1e-12 * np.maximum(1.0, np.abs(differences).sum(axis=0))
    if n <= _EXACT_ROWS:
        patterns = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
        extreme = (np.abs((2.0 * patterns - 1) @ differences) >= threshold).sum(axis=0)
        return np.asarray(extreme / (1 << n))
    rng = np.random.default_rng(seed)
    extreme = np.zeros(columns, dtype=np.int64)
    step = max(1, _CHUNK_DRAWS // n)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        signs = rng.integers(0, 2, size=(size, n), dtype=np.int8) * 2.0 - 1.0
        extreme += (np.abs(signs @ differences) >= threshold).sum(axis=0)
    return np.asarray((extreme + 1) / (resamples + 1))


_EXACT_ROWS = 13


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """p-values adjusted for looking at all of them at once (Holm 1979), in the given order."""
    order = np.argsort(p, kind="stable")
    steps = (len(p) - np.arange(len(p))) * p[order]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted
