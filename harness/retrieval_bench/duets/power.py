"""Which slow-downs a duet finds, by how much its launches differ: its rules, played with chance.

:func:`visible` plays many duets of one gate at once, with normal log ratios, through the looks of
:mod:`retrieval_bench.duets.decision`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.duets.decision import ALPHA, CONFIRM, EARLY, LEANS, SEARCH
from retrieval_bench.stats.resampling import student_p

FOUND = 0.9
"""What is found in so many of all duets counts as visible."""

_TRIALS, _SEED, _STEPS = 1000, 42, 14
_SPREADS = 15


@lru_cache(maxsize=256)
def visible(spread: float, delta: float, limit: float) -> float:
    """The smallest slow-down, a share, that :data:`FOUND` of all duets say FAIL to.

    Args:
        spread: of the log ratio from launch to launch, one standard deviation.
    """
    noise = np.random.default_rng(_SEED).standard_normal((_TRIALS, SEARCH[-1] + CONFIRM[-1]))
    low = math.log1p(delta)
    high = max(low, math.log1p(limit)) + _SPREADS * spread
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = fails(middle + spread * noise, delta, limit).mean()
        low, high = (low, middle) if found >= FOUND else (middle, high)
    return math.expm1(high)


def fails(thetas: NDArray[np.float64], delta: float, limit: float) -> NDArray[np.bool_]:
    """Which duets of one gate end with FAIL.

    Args:
        thetas: (duets, launches) log ratios: those of the first part, then those of the second.
    """
    n = len(thetas)
    first, again = thetas[:, : SEARCH[-1]], thetas[:, SEARCH[-1] :]
    going, sign = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for look in (*EARLY, *SEARCH):
        worse, beyond = _tests(first[:, :look], delta, limit)
        sign |= going & (worse < EARLY.get(look, LEANS))
        going &= ~sign
        if look in SEARCH:
            going &= beyond >= ALPHA / len(SEARCH)
    going, failed = sign, np.zeros(n, dtype=bool)
    for look in CONFIRM:
        worse, beyond = _tests(again[:, :look], delta, limit)
        failed |= going & (worse < ALPHA / len(CONFIRM))
        cleared = (beyond < ALPHA / len(CONFIRM)) & (worse >= LEANS)
        going = going & ~failed & ~cleared
    return failed


def _tests(
    thetas: NDArray[np.float64], delta: float, limit: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """p of "slower by no more than delta" and of "slower by the limit or more", by duet."""
    n = thetas.shape[1]
    mean = thetas.mean(axis=1)
    error = thetas.std(axis=1, ddof=1) / math.sqrt(n)
    return (
        student_p(math.log1p(delta) - mean, error, n - 1),
        student_p(mean - math.log1p(limit), error, n - 1),
    )
