"""Percentiles of calls that are queued behind each other: how well they are known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.stats.percentiles import needs

BLOCKS = 20
"""Equal parts of a window: calls that wait for each other are near each other, and the parts differ
by what is left of that."""

LEVELS = (50.0, 95.0, 99.0)
_TAIL = 0.025

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tail(Documented):
    """A percentile of a level of load, in milliseconds.

    Attributes:
        level: 0 to 100.
        ms: None where ``reason`` says why, and where it lies above ``above_ms``.
        ci95: of it; an end is None where it lies above the time-out.
        effective_calls: independent calls that know it as well as these calls do.
        above_ms: the time-out, where the percentile is among calls that were not answered in it.
        reason: why it is not given.
    """

    level: float
    ms: float | None
    ci95: tuple[float, float | None] | None
    effective_calls: float
    above_ms: float | None = None
    reason: str | None = None


def block_of(due: Ints, begin: int, end: int) -> Ints:
    """The part of the window that each call is due in, from 0."""
    return np.asarray(np.minimum((due - begin) * BLOCKS // max(1, end - begin), BLOCKS - 1))


def tail(ms: Floats, block: Ints, level: float, timeout_ms: float) -> Tail:
    """The ``level``-th percentile with a 95 % interval that knows that calls wait for each other.

    The calls above the percentile are counted in :data:`BLOCKS` parts of the window. How far the
    parts differ gives the number of independent calls that would differ as far; the interval is
    that of order statistics for so many, with Student's t for so few parts, and the percentile is
    given where they are as many as independent values would have to be.

    Args:
        ms: one for each call, infinite where it was not answered.
        block: its part of the window.

    Source: batch means, Law & Kelton, Simulation Modeling and Analysis, ch. 9; the interval of a
    share turned into one of a percentile, Woodruff (1952), JASA 47:635-646.
    """
    from scipy.special import betaincinv, stdtrit

    n, p, needed = len(ms), level / 100, needs(level).printed
    if n < needed:
        reason = f"{counted(n, 'call')}, p{level:g} needs {needed:,}"
        return Tail(level, None, None, float(n), reason=reason)
    ordered, value = np.sort(ms), of_all(ms, level)
    effective = effective_calls(ms > value, block)
    if effective < needed:
        reason = f"calls that wait for each other count as {effective:,.0f}, of {needed:,} needed"
        return Tail(level, None, None, effective, reason=reason)
    wider = float(stdtrit(BLOCKS - 1, 1 - _TAIL)) / 1.959963984540054
    size = max(effective / wider**2, 2.0)
    shares = betaincinv(p * size, (1 - p) * size, np.array([_TAIL, 1 - _TAIL]))
    low, high = (_at(ordered, float(share) * n - 0.5) for share in shares)
    if math.isinf(value):
        return Tail(level, None, None, effective, above_ms=timeout_ms)
    return Tail(level, value, (low, None if math.isinf(high) else high), effective)


def effective_calls(above: NDArray[np.bool_], block: Ints) -> float:
    """How many independent calls have a share of ``above`` that is known as well as this one."""
    n, share = len(above), float(np.mean(above))
    if not 0 < share < 1:
        return float(n)
    sizes = np.bincount(block, minlength=BLOCKS)
    excess = np.bincount(block, weights=above - share, minlength=BLOCKS)
    used = int(np.count_nonzero(sizes))
    if used < 2:
        return float(n)
    variance = float(excess @ excess) / n**2 * used / (used - 1)
    return min(float(n), share * (1 - share) / max(variance, 1e-300))


def of_all(ms: Floats, level: float) -> float:
    """The ``level``-th percentile of these calls, whether or not they are enough for one that is
    given; infinite where it lies among those without an answer."""
    return _at(np.sort(ms), level / 100 * (len(ms) - 1))


def _at(ordered: Floats, place: float) -> float:
    """The value at a place between 0 and the last; infinite where one of its neighbours is."""
    place = min(max(place, 0.0), len(ordered) - 1.0)
    low = math.floor(place)
    a, b = float(ordered[low]), float(ordered[min(low + 1, len(ordered) - 1)])
    if place == low:
        return a
    return math.inf if math.isinf(b) else a + (place - low) * (b - a)
