"""When a system is warm: the time of a call has stopped changing.

Times of different queries differ by far more than warming up changes them. So each time is compared
with the earlier ones of its own query: what is left is on one scale for all queries. The medians of
three successive windows of 50 such ratios within 2 % of each other are called steady.
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
"""By how much the medians of the windows may differ, as a ratio."""


class SteadyState:
    """Watches the calls of one system; a query's first call says nothing yet."""

    def __init__(self) -> None:
        self._sum: dict[int, float] = {}
        self._seen: dict[int, int] = {}
        self._window: list[float] = []
        self._medians: deque[float] = deque(maxlen=WINDOWS)
        self.calls = 0
        self.steady_after: int | None = None
        """Calls until it was first steady, None while it is not."""

    def add(self, query: int, nanoseconds: int) -> None:
        """One more call of the query with this number."""
        self.calls += 1
        logarithm = math.log(max(1, nanoseconds))
        seen = self._seen.get(query, 0)
        if seen:
            self._window.append(logarithm - self._sum[query] / seen)
        self._sum[query] = self._sum.get(query, 0.0) + logarithm
        self._seen[query] = seen + 1
        if len(self._window) == WINDOW:
            self._medians.append(median(self._window))
            self._window.clear()
            if self.steady_after is None and self._agree():
                self.steady_after = self.calls

    @property
    def steady(self) -> bool:
        """Whether it has been steady."""
        return self.steady_after is not None

    def _agree(self) -> bool:
        if len(self._medians) < WINDOWS:
            return False
        return max(self._medians) - min(self._medians) <= math.log1p(TOLERANCE)
