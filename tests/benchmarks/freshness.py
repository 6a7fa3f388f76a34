"""Whether ``bench --writes`` finds a known lag on a real clock: an engine that refreshes every R
seconds, 400 documents. ``python -m tests.benchmarks.freshness [R ...]`` prints, for each R and kind
of write, the mean of the middles over R/2, the longest time and what it may be: 1.1 R and the
longest call."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_writes.freshness import polling_of, shown_of
from retrieval_bench_writes.study import Kind
from tests.builders.fresh_engine import FreshEngine, RealClock, every, studied

WRITES, RATE = 400, 20.0


class Timed(FreshEngine):
    """Remembers how long its longest search took."""

    longest_s = 0.0

    def search(self, query: Query, k: int) -> Ranking:
        start = time.perf_counter()
        ranking = super().search(query, k)
        self.longest_s = max(self.longest_s, time.perf_counter() - start)
        return ranking


def rows(period: float, engine: Callable[..., Any] = Timed) -> list[str]:
    """A line for each kind of write."""
    asked = engine(RealClock(), every(period), call_s=0.0)
    seen = studied(WRITES, asked, rate=RATE, limit_s=4 * period + 10)
    polling, lines = polling_of(seen), []
    for kind in Kind:
        shown = shown_of(seen, kind)
        mean, longest = shown.mean_s or 0.0, shown.longest_s or 0.0
        lines.append(
            f"R {period:g} s  {kind:8}{shown.n:5} writes  mean/(R/2) {2 * mean / period:.3f}  "
            f"longest {longest:.3f} s of [{0.9 * period:.3f}, {1.1 * period + asked.longest_s:.3f}]"
        )
    busy = f"calls took {polling.busy or 0:.0%} of the time"
    return [*lines, f"{polling.per_second or 0:,.0f} polls a second; {busy}"]


if __name__ == "__main__":
    for given in map(float, sys.argv[1:] or ("0.2", "1", "5")):
        print("\n".join(rows(given)), flush=True)
