"""The extra work that a duet has to find is as much as its label says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_duet import slowed
from retrieval_bench_duet.slowed import Slowed

UNIT_NS, CLOCK_NS = 250, 10
"""What a unit of work and a look at the clock take."""


class Clock:
    """Stands still but for what is done."""

    def __init__(self) -> None:
        self.now = 0
        self.unit_ns = UNIT_NS

    def perf_counter_ns(self) -> int:
        self.now += CLOCK_NS
        return self.now

    def blake2b(self, _: bytes) -> None:
        self.now += self.unit_ns


class Steady(Retriever):
    """Takes a millisecond, and one more for each letter of the query."""

    clock: Clock

    def index(self, documents: Iterable[Document]) -> None:
        pass

    def search(self, query: Query, k: int) -> Ranking:
        self.clock.now += 1_000_000 * (1 + len(query.text))
        return Ranking(())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(Steady, "clock", clock, raising=False)
    monkeypatch.setattr(slowed, "time", clock)
    monkeypatch.setattr(slowed, "hashlib", clock)
    return clock


def _took(retriever: Slowed, clock: Clock, letters: int) -> float:
    before = clock.now
    retriever.search(Query(id=str(letters), text="가" * letters), 10)
    return (clock.now - before) / (1_000_000 * (1 + letters))


def _made(share: float, queries: Sequence[str] | None = None) -> Slowed:
    return Slowed({"target": f"{__name__}:Steady"}, share, queries)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.05, 0.1])
def test_each_call_takes_longer_by_the_share(clock: Clock, share: float) -> None:
    retriever = _made(share)
    for letters in (1, 2, 7):
        assert _took(retriever, clock, letters) == pytest.approx(1 + share, abs=0.001)


def test_only_the_named_queries_take_longer(clock: Clock) -> None:
    retriever = _made(0.1, queries=["8", "9"])
    times = [_took(retriever, clock, letters) for letters in range(10)]
    assert times[:8] == pytest.approx([1.0] * 8, abs=0.001)
    assert times[8:] == pytest.approx([1.1] * 2, abs=0.001)


def test_one_slow_call_does_not_change_what_is_usual(clock: Clock) -> None:
    retriever = _made(0.1)
    for _ in range(2):
        _took(retriever, clock, 3)
    original = Steady.search

    def stalled(self: Steady, query: Query, k: int) -> Ranking:
        self.clock.now += 40_000_000
        return original(self, query, k)

    retriever.inner.search = stalled.__get__(retriever.inner)  # type: ignore[method-assign]
    assert _took(retriever, clock, 3) == pytest.approx(11.1, abs=0.001)


def test_work_stays_the_share_when_the_processor_changes_its_speed(clock: Clock) -> None:
    retriever = _made(0.1)
    clock.unit_ns = 2 * UNIT_NS
    times = [_took(retriever, clock, 3) for _ in range(40)]
    assert times[0] == pytest.approx(1.2, abs=0.001)
    assert times[-1] == pytest.approx(1.1, abs=0.001)
