"""What the clock can resolve, and readings that no clock could have given."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_READINGS = 2_000
"""Readings for the facts: a fraction of a millisecond where a reading takes 50 ns."""


def clock_facts(clock: Callable[[], int] = time.perf_counter_ns) -> dict[str, Any]:
    """Describe ``clock`` (nanoseconds): its kind, its own words, and the steps it was seen to make.

    Returns:
        ``implementation``, ``monotonic``, ``adjustable`` and ``stated_resolution_ns`` are the
        system's words, None for a clock that is not ``time.perf_counter_ns``. ``resolution_ns``
        is the smallest step seen (None: it never moved), ``reading_ns`` the median step from one
        reading to the next: what one reading costs, or 0 where that is below the resolution.
        ``backwards`` counts the steps below zero.
    """
    readings = np.asarray([clock() for _ in range(_READINGS)], dtype=np.int64)
    steps = np.diff(readings)
    forward = steps[steps > 0]
    info = time.get_clock_info("perf_counter") if clock is time.perf_counter_ns else None
    return {
        "name": getattr(clock, "__name__", type(clock).__name__),
        "implementation": info.implementation if info else None,
        "monotonic": info.monotonic if info else None,
        "adjustable": info.adjustable if info else None,
        "stated_resolution_ns": info.resolution * 1e9 if info else None,
        "resolution_ns": int(forward.min()) if len(forward) else None,
        "reading_ns": int(np.median(steps)),
        "backwards": int((steps < 0).sum()),
    }


def impossible_times(
    wall_ns: NDArray[np.int64], limit_ns: int | NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which calls took less than no time, or longer than what they are a part of.

    Args:
        wall_ns: time of each call.
        limit_ns: elapsed time of the round that holds the call, by a second monotonic clock; one
            for all or one for each (``round_ns[timings.round]``).

    Returns:
        One truth value for each call.
    """
    wall = np.asarray(wall_ns, dtype=np.int64)
    return (wall < 0) | (wall > np.asarray(limit_ns, dtype=np.int64))


def clock_warnings(wall_ns: NDArray[np.int64], limit_ns: int | NDArray[np.int64]) -> list[str]:
    """Put the findings of :func:`impossible_times` in words; empty when the clock ran as it
    should."""
    wall = np.asarray(wall_ns, dtype=np.int64)
    wrong = impossible_times(wall, limit_ns)
    if not wrong.any():
        return []
    backwards = int((wall < 0).sum())
    beyond = int(wrong.sum()) - backwards
    parts = []
    if backwards:
        far = f"by up to {-wall.min() / 1e6:,.3f} ms"
        parts.append(f"went back in {backwards:,} of {len(wall):,} calls ({far})")
    if beyond:
        far = f"up to {wall[wrong].max() / 1e6:,.3f} ms"
        parts.append(f"gave {beyond:,} of {len(wall):,} calls more time than their round ({far})")
    text = " and ".join(parts)
    remedy = "do not use these times, measure again; on a virtual machine look at its clock source"
    return [f"the clock jumped: it {text}; {remedy}"]
