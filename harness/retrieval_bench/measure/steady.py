"""Test of when a system is warm: the time of a call has stopped changing.

Times of different queries differ by far more than warming up changes them. So each time is compared
with the one before of its own query: what is left is on one scale for all queries, and no change is
0 whatever the query. Three successive windows of 50 such ratios whose medians are within 2 % of no
change, and of each other, are called steady.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median

WINDOW = 50
"""Calls of one window."""

WINDOWS = 3
"""Successive windows that must agree."""

TOLERANCE = 0.02
"""By how much the medians of the windows may differ from each other and from none, as a ratio."""


class SteadyState:
    """Watches the calls of one system; a query's first call says nothing yet."""

    def __init__(self) -> None:
        self._last: dict[int, float] = {}
        self._window: list[float] = []
        self._medians: deque[float] = deque(maxlen=WINDOWS)
        self.calls = 0
        self.steady_after: int | None = None
        """Calls until it was first steady, None while it is not."""

    def add(self, query: int, nanoseconds: int) -> None:
        """One more call of the query with this number."""
        self.calls += 1
        logarithm = math.log(max(1, nanoseconds))
        if query in self._last:
            self._window.append(logarithm - self._last[query])
        self._last[query] = logarithm
        if len(self._window) == WINDOW:
            self._medians.append(median(self._window))
            self._window.clear()
            if self.steady_after is None and self._agree():
                self.steady_after = self.calls

    @property
    def steady(self) -> bool:
        """True if it has been steady."""
        return self.steady_after is not None

    def _agree(self) -> bool:
        if len(self._medians) < WINDOWS:
            return False
        highest, lowest = max(self._medians), min(self._medians)
        limit = math.log1p(TOLERANCE)
        return highest - lowest <= limit and -limit <= lowest and highest <= limit
