"""A retriever whose time a test decides, to the nanosecond."""

from __future__ import annotations

from collections.abc import Callable

from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query, Ranking


class MockClock:
    """Stands still but for what a retriever adds to it."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Timed(Retriever):
    """Takes ``cost`` nanoseconds of its clock, and does what ``act`` does.

    Args:
        cost: a number, or a function of how many calls went before and of the query.
        act: a function of the number of the call, from 1, and of the query; gives the ranking,
            or None for the usual one.
    """

    def __init__(
        self,
        cost: float | Callable[[int, Query], float] = 1_000,
        act: Callable[[int, Query], Ranking | None] = lambda n, query: None,
        clock: MockClock | None = None,
    ) -> None:
        self.cost = cost
        self.act = act
        self.clock = clock or MockClock()
        self.calls: list[str] = []

    def search(self, query: Query, k: int) -> Ranking:
        cost = int(self.cost(len(self.calls), query) if callable(self.cost) else self.cost)
        self.calls.append(query.id)
        self.clock.now += cost
        usual = Ranking(["d1", "d2"][:k], [2.0, 1.0][:k], stages={"sparse": cost // 2})
        return self.act(len(self.calls), query) or usual
