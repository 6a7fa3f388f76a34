"""A retriever with real extra work in each call: what a duet must find, for a test of the duet."""

from __future__ import annotations

import hashlib
import time
from bisect import insort
from collections import deque
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from retrieval_bench.core.config import build_retriever
from retrieval_bench.core.retriever import Capabilities, RankingLike, Retriever
from retrieval_bench.core.types import Document, Query

_BLOCK = bytes(256)
_UNITS, _BLOCKS = 300, 31
"""Of the work in a block that is timed before the first call, and how many blocks there are. What
the last so many pieces of work took says what a unit takes."""


class Slowed(Retriever):
    """Another retriever that takes longer by a share of what each query usually takes.

    The work is done by the processor within the call, as that of a regression would be: no time is
    multiplied afterwards.

    Args:
        retriever: a name of a config, or an inline ``{target, params}``.
        share: extra time as a share of the median call of the same query so far; 0 adds nothing.
        queries: ids of those that are slowed; None = all.
    """

    def __init__(
        self,
        retriever: str | dict[str, Any],
        share: float = 0.0,
        queries: Sequence[str] | None = None,
    ) -> None:
        self.inner = build_retriever(retriever)
        self.share = share
        self.slowed = None if queries is None else frozenset(queries)
        self._times: dict[str, list[int]] = {}
        self._unit_ns = deque((_unit_ns(_UNITS) for _ in range(_BLOCKS)), maxlen=_BLOCKS)

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    def use_k(self, k: int) -> None:
        self.inner.use_k(k)

    def use_language(self, language: str | None) -> None:
        self.inner.use_language(language)

    def use_filters(self, fields: Sequence[str]) -> None:
        self.inner.use_filters(fields)

    def index(self, documents: Iterable[Document]) -> None:
        self.inner.index(documents)

    def search(self, query: Query, k: int) -> RankingLike:
        start = time.perf_counter_ns()
        ranking = self.inner.search(query, k)
        took = time.perf_counter_ns() - start
        usual = self._usual(query.id, took)
        if self.slowed is None or query.id in self.slowed:
            self._work(self.share * usual)
        return ranking

    def _work(self, ns: float) -> None:
        """Work of so many nanoseconds, at the speed that the processor has by now."""
        units = round(ns / median(self._unit_ns))
        if units:
            self._unit_ns.append(_unit_ns(units))

    def _usual(self, query_id: str, took: int) -> int:
        """The median call of the query, of an even number the lower one: the first call is slow."""
        times = self._times.setdefault(query_id, [])
        insort(times, took)
        return times[(len(times) - 1) // 2]

    def close(self) -> None:
        self.inner.close()


def _unit_ns(units: int) -> float:
    """Do so many units of work; what one took."""
    start = time.perf_counter_ns()
    for _ in range(units):
        hashlib.blake2b(_BLOCK)
    return (time.perf_counter_ns() - start) / units
