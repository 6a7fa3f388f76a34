"""Clocks: several sides take turns in one loop, so that a busy machine slows all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]
Result = TypeVar("Result")


def race(
    sides: Mapping[str, Callable[[int], object]], turns: int, every: Mapping[str, int] | None = None
) -> dict[str, Seconds]:
    """Seconds of ``side(turn)`` for turns 0, 1, ...; who goes first rotates.

    Args:
        every: a slow side runs at every n-th turn only, behind the others: it leaves cold caches.
    """
    every = every or {}
    fast = [name for name in sides if name not in every]
    elapsed: dict[str, list[int]] = {name: [] for name in sides}
    with _collector_off():
        for turn in range(turns):
            first = turn % max(1, len(fast))
            slow = [name for name, n in every.items() if turn % n == 0]
            for name in fast[first:] + fast[:first] + slow:
                side = sides[name]
                start = time.perf_counter_ns()
                side(turn)
                elapsed[name].append(time.perf_counter_ns() - start)
    return {name: np.array(values) / 1e9 for name, values in elapsed.items()}


def middle(values: Sequence[float] | Seconds) -> float:
    """The median."""
    return float(np.median(values))


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of ``work``, and what it gives."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


@contextmanager
def _collector_off() -> Iterator[None]:
    """No garbage collection inside a measured call, as in the harness itself."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
