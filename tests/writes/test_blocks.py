"""Searches while documents are written, beside quiet ones: times, answers, and settling."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.types import Document, Query, Ranking, Verdict
from retrieval_bench_writes.blocks import Block, Blocks, judged
from retrieval_bench_writes.executors import Beside, InTurn
from retrieval_bench_writes.tables.writes import _slower
from retrieval_bench_writes.while_writing import WhileWriting
from tests.builders.fresh_engine import RealClock, VirtualClock

SOURCES = [Document(f"d{n}", f"topic{n}") for n in range(20)]
QUERIES = [Query(f"q{n}", f"topic{n}") for n in range(20)]
QRELS = {f"q{n}": {f"d{n}": 1} for n in range(20)}


class Shelf:
    """Holds documents by their one word; a write is seen ``lag`` later.

    Args:
        slower: so much longer, a share, a search takes within a second of a write.
        noise: standard deviation of the logarithm of the time of a search.
        zombies: what is deleted stays.
        fails: of the n-th search, and whether it is within a second of a write.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        lag: float = 0.0,
        slower: float = 0.0,
        noise: float = 0.0,
        zombies: bool = False,
        fails: Callable[[int, bool], bool] = lambda n, writing: False,
        seed: int = 0,
    ) -> None:
        self.clock, self.lag, self.slower, self.noise = clock, lag, slower, noise
        self.fails, self.asked = fails, 0
        self.zombies, self.rng, self.written = zombies, np.random.default_rng(seed), -math.inf
        self.held = {item.id: (item.text, -math.inf, math.inf) for item in SOURCES}

    def add(self, documents: Sequence[Document]) -> None:
        self._write()
        for one in documents:
            self.held[one.id] = (one.text, self.clock.now + self.lag, math.inf)

    def delete(self, ids: Sequence[str]) -> None:
        self._write()
        for name in () if self.zombies else ids:
            text, begin, _ = self.held[name]
            self.held[name] = (text, begin, self.clock.now + self.lag)

    def search(self, query: Query, k: int) -> Ranking:
        busy = self.clock.now - self.written < 1.0
        self.asked += 1
        if self.fails(self.asked, busy):
            raise ConnectionError("the line broke")
        usual = 0.02 * (1 + len(query.text) % 3)
        taken = usual * (1 + self.slower * busy) * math.exp(self.noise * self.rng.normal())
        self.clock.sleep(taken)
        now = self.clock.now
        ids = [n for n, (text, a, b) in self.held.items() if text == query.text and a <= now < b]
        return Ranking(sorted(ids)[:k], [1.0] * min(k, len(ids)))

    def _write(self) -> None:
        self.clock.sleep(0.001)
        self.written = self.clock.now


def how(shelf: Shelf, n: int, seconds: float, seed: int) -> dict[str, Any]:
    clock = shelf.clock
    return {
        **{"writer": shelf, "queries": QUERIES, "sources": SOURCES, "token": "cafe", "n": n},
        **{"seconds": seconds, "rate": 10.0, "k": 10, "limit_s": 20.0, "clock": clock},
        **{"sleep": clock.sleep, "rng": np.random.default_rng(seed)},
    }


def measured(n: int = 10, seed: int = 3, **engine: Any) -> list[tuple[Block, Block]]:
    clock = VirtualClock()
    shelf = Shelf(clock, seed=seed, **engine)
    blocks = Blocks(**how(shelf, n, 5.0, seed))
    pairs = blocks.run()
    assert bool(blocks.seen.left) is bool(engine.get("zombies"))
    return pairs


def summed(pairs: Sequence[tuple[Block, Block]]) -> WhileWriting:
    return WhileWriting.of(pairs, 5.0, QUERIES, QRELS, 10)


@pytest.mark.slow
def test_of_20_runs_without_an_effect_none_says_that_there_is_one() -> None:
    verdicts = [summed(measured(seed=seed, noise=0.2)).verdict for seed in range(20)]
    assert Verdict.WORSE not in verdicts


@pytest.mark.slow
def test_searches_that_take_a_fifth_longer_while_writing_are_found_in_18_of_20_runs() -> None:
    runs = [summed(measured(seed=seed, noise=0.2, slower=0.2)) for seed in range(20)]
    assert sum(run.verdict is Verdict.WORSE for run in runs) >= 18
    ratios = [run.gates[0].ratio for run in runs]
    assert np.mean([ratio for ratio in ratios if ratio is not None]) == pytest.approx(1.2, rel=0.03)


def test_both_blocks_of_a_pair_ask_the_same_queries_and_take_turns_in_being_first() -> None:
    clock = VirtualClock()
    shelf = Shelf(clock)
    order: list[bool] = []

    class Told(Blocks):
        def _block(self, order_: Sequence[int], writing: bool) -> Block:
            order.append(writing)
            return Blocks._block(self, order_, writing)

    pairs = Told(**how(shelf, 4, 2.0, 1)).run()
    assert order == [False, True, True, False] * 2
    for quiet, writing in pairs:
        assert quiet.query[:20] == writing.query[:20]
        assert (quiet.writes, quiet.settled_s, quiet.there[0]) == (0, None, {})
        assert writing.writes > 10


@pytest.mark.parametrize("threads", [True, False])
def test_where_threads_may_call_it_searches_go_on_while_a_write_is_made(threads: bool) -> None:
    asked, during = threading.Event(), list[bool]()

    class Waiting(Shelf):
        def _write(self) -> None:
            asked.clear()
            during.append(asked.wait(0.5))

        def search(self, query: Query, k: int) -> Ranking:
            asked.set()
            return super().search(query, k)

    with Beside(1) as pool:
        told = how(Waiting(RealClock()), 1, 0.8, 1)
        ((_, writing),) = Blocks(**told, beside=pool if threads else InTurn()).run()
    assert writing.writes == len(during) > 0
    assert any(during) is threads


def test_answers_of_an_engine_that_shows_writes_at_once_are_as_good_while_writing() -> None:
    ndcg, recall = summed(measured(4)).answers
    assert (ndcg.quiet, ndcg.writing, recall.writing) == pytest.approx((1.0, 1.0, 1.0))
    assert ndcg.ci95 == pytest.approx((0.0, 0.0))
    assert ndcg.queries == 20


def test_truth_is_what_was_acknowledged_when_the_query_was_due() -> None:
    """A copy that is acknowledged and not found yet is missed; what is deleted and still found is
    no longer relevant."""
    late, zombies = summed(measured(4, lag=1.0)), summed(measured(4, zombies=True))
    assert late.answers[1].writing < 1.0
    assert late.answers[1].quiet == pytest.approx(1.0)
    assert zombies.answers[1].writing == pytest.approx(1.0)
    assert zombies.unsettled == 4
    missed = late.answers[1]
    assert missed.difference == pytest.approx(missed.writing - missed.quiet)
    assert missed.ci95 is not None
    assert missed.ci95[0] <= missed.difference <= missed.ci95[1]


def test_settling_is_from_the_last_write_until_nothing_deleted_is_found() -> None:
    whole = summed(measured(4, lag=2.0))
    assert whole.settled_s == pytest.approx(2.0, rel=0.2)
    assert (whole.settled_most_s or 0) <= 2.0 * 1.1 + 3 * 0.06
    assert whole.unsettled == 0


def test_too_few_queries_give_no_verdict() -> None:
    assert judged([]) == ()
    whole = WhileWriting.of([], 5.0, QUERIES, QRELS, 10)
    assert (whole.verdict, whole.answers, whole.quiet.p50_ms) == (Verdict.MISSING, (), None)


def test_copies_that_are_found_at_once_change_no_answer_also_beyond_k() -> None:
    """Ten are relevant to each query, and k is ten: copies take the places of others."""
    qrels = {f"q{n}": {f"d{n}": 1, **{f"none {m}": 1 for m in range(9)}} for n in range(20)}
    whole = WhileWriting.of(measured(4), 5.0, QUERIES, qrels, 1)
    assert [one.difference for one in whole.answers] == pytest.approx([0.0, 0.0])


def test_an_engine_without_a_lag_settles_at_once() -> None:
    assert summed(measured(2)).settled_most_s == 0.0


def test_pairs_in_which_searching_failed_do_not_pass() -> None:
    whole = summed(measured(10, fails=lambda n, writing: writing and n % 2 == 0))
    assert whole.gates[0].verdict is Verdict.EQUIVALENT
    assert whole.verdict is Verdict.UNDECIDED
    assert whole.writing.failed > 0
    title = _slower(whole)
    assert title.startswith("While writing it is not decided whether searches take longer: p50")
    assert f"{whole.writing.failed:,} of them failed, {whole.quiet.failed} in quiet" in title


def test_the_answer_shows_the_figure_of_the_gate_that_decides() -> None:
    whole = summed(measured(4))
    p50 = whole.gates[0]
    p95 = replace(p50, gate="p95", verdict=Verdict.WORSE, ratio=1.8, interval=(1.7, 1.9))
    worse = replace(whole, verdict=Verdict.WORSE, gates=(p50, p95))
    assert _slower(worse) == (
        "While writing searches take longer: p95 +80.0% [+70.0%, +90.0%], a 98% interval"
    )
    assert "do not take 5% longer: p50" in _slower(replace(whole, verdict=Verdict.EQUIVALENT))


def test_no_write_begins_behind_its_block() -> None:
    class Slow(Shelf):
        def _write(self) -> None:
            began.append(self.clock.now)
            super()._write()
            self.clock.sleep(0.2)

    began = list[float]()
    told = how(Slow(RealClock()), 1, 0.5, 1) | {"rate": 50.0}
    start = time.perf_counter()
    with Beside(1) as pool:
        ((_, writing),) = Blocks(**told, beside=pool).run()
    assert writing.writes <= 2 * 4  # each is deleted behind the block
    assert len(began) == writing.writes
    assert start < began[0]


def test_a_write_beside_that_never_returns_ends_the_blocks() -> None:
    never = threading.Event()

    class Hanging(Shelf):
        def _write(self) -> None:
            never.wait()

    with Beside(1) as pool, pytest.raises(HarnessError, match="did not return within"):
        Blocks(**how(Hanging(RealClock()), 1, 0.3, 1), beside=pool, timeout_s=0.2).run()
    never.set()


@pytest.mark.parametrize(
    ("settled", "told"),
    [
        ((0.01, 0.02, 0.03), (0.02, 0.03, 0)),
        ((0.01, 0.02, math.inf), (0.02, None, 1)),
        ((0.01, math.inf, math.inf), (None, None, 2)),
    ],
)
def test_blocks_that_do_not_settle_count_for_the_median(
    settled: Sequence[float], told: tuple[float | None, float | None, int]
) -> None:
    whole = summed([(Block(False), Block(True, writes=1, settled_s=at)) for at in settled])
    assert (whole.settled_s, whole.settled_most_s, whole.unsettled) == told
