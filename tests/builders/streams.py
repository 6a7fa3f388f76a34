"""Differences of two systems on the queries of a split, in the shapes that metrics give them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHAPES = ("ties", "hits", "rare losses", "equal")
"""Differences of nDCG, most of them 0; of a hit or none; small gains with rare large losses; of
systems that never differ."""


def centred(shape: str, mean: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """``n`` differences in [-1, 1] whose mean is ``mean`` (of hits the nearest there is), or 0 of
    systems that never differ."""
    if shape == "equal":
        return np.zeros(n)
    if shape == "hits":
        differing = round(0.3 * n)
        won = round((differing + mean * n) / 2)
        return np.repeat([1.0, -1.0, 0.0], [won, differing - won, n - differing])
    if shape == "rare losses":
        values = np.where(np.arange(n) < n // 25, rng.uniform(-1, -0.6, n), rng.uniform(0, 0.1, n))
        return _moved(values, mean, np.ones(n, dtype=bool))
    values = rng.normal(mean / 0.4, 0.3, n)
    return _moved(values, mean, np.arange(n) < round(0.4 * n))


def _moved(
    values: NDArray[np.float64], mean: float, where: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """``values`` with that ``mean``, 0 but ``where``."""
    for _ in range(50):  # what is cut off at the ends of the range is made up for by the others
        values = np.clip(np.where(where, values, 0.0), -1, 1)
        values = values + np.where(where, (mean - values.mean()) / where.mean(), 0.0)
    assert np.abs(values).max() <= 1
    return values
