"""Legs of a hybrid, each seen by itself: a late one is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.types import Document, LegTrace, Query, Ranking
from retrieval_bench_writes.freshness import legs_of, shown_of
from retrieval_bench_writes.probes import probes
from retrieval_bench_writes.study import Kind, Seen, Study, Write
from tests.builders.fresh_engine import FreshEngine, VirtualClock

OTHERS = [f"other {number}" for number in range(40)]
"""Both legs have them behind what is fresh, so that two ranks there beat one first rank."""


class Fused:
    """Two engines under RRF (k = 60), as the target ``hybrid`` fuses: k of the fused list."""

    def __init__(
        self, clock: VirtualClock, lags: dict[str, Callable[[float], float]], write_s: float
    ) -> None:
        self.legs = {name: FreshEngine(clock, lag, call_s=0.0) for name, lag in lags.items()}
        self.clock, self.write_s = clock, write_s

    def add(self, documents: Sequence[Document]) -> None:
        for leg in self.legs.values():
            self.clock.sleep(self.write_s)
            leg.add(documents)

    def delete(self, ids: Sequence[str]) -> None:
        self.clock.sleep(0.001)
        for leg in self.legs.values():
            leg.delete(ids)

    def search(self, query: Query, k: int) -> Ranking:
        self.clock.sleep(0.001)
        lists = {
            name: [
                doc_id
                for doc_id in leg.search(query, 100).doc_ids
                if doc_id.startswith("retrieval")
            ][:1]
            + OTHERS
            for name, leg in self.legs.items()
        }
        scores: dict[str, float] = {}
        for ids in lists.values():
            for rank, one in enumerate(ids, start=1):
                scores[one] = scores.get(one, 0.0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda one: (-scores[one], one))[:k]
        traces = {
            name: LegTrace(
                [0] * len(best), [0.0] * len(best), ids, [-float(at) for at in range(len(ids))]
            )
            for name, ids in lists.items()
        }
        return Ranking(best, [scores[one] for one in best], legs=traces)


def studied(seed: int = 7, write_s: float = 0.0005, rate: float = 20.0, **lags: float) -> Seen:
    clock = VirtualClock()
    engine = Fused(clock, {name: _after(lag) for name, lag in lags.items()}, write_s)
    rng = np.random.default_rng(seed)
    made = probes(100, ["The tide follows the moon"], "cafe", rng)
    how: dict[str, Any] = {"rng": rng, "clock": clock, "sleep": clock.sleep}
    return Study(writer=engine, probes=made, rate=rate, k=10, limit_s=20.0, **how).run()


def _after(lag: float) -> Callable[[float], float]:
    return lambda now: now + lag


@pytest.mark.slow
@pytest.mark.long
def test_a_dense_leg_two_seconds_behind_text_is_named_in_20_of_20_runs() -> None:
    named = [
        [leg.name for leg in legs_of(studied(seed, text=0.0, dense=2.0)) if leg.late]
        for seed in range(20)
    ]
    assert named == [["dense"]] * 20


def test_fusion_buries_what_one_leg_alone_knows() -> None:
    seen = studied(text=0.0, dense=2.0)
    whole = shown_of(seen, Kind.ADD).at(50.0)
    text, dense = legs_of(seen)
    assert text.visible.at(50.0).at_least_s == 0.0
    assert dense.visible.at(50.0).at_least_s == pytest.approx(2.0, rel=0.1)
    assert whole.at_least_s == dense.visible.at(50.0).at_least_s


def test_zombies_of_a_leg_are_counted_where_they_are() -> None:
    text, dense = legs_of(studied(text=0.0, dense=2.0))
    assert (text.deleted.outdated.count, dense.deleted.outdated.count) == (0, 100)


def test_legs_that_are_equally_fast_are_not_late() -> None:
    for lag in (0.0, 2.0):
        assert not any(leg.late for leg in legs_of(studied(text=lag, dense=lag)))


def test_a_leg_that_is_written_to_last_is_not_late() -> None:
    """The first one has some of its time before the last acknowledgement."""
    first, second = legs_of(studied(write_s=0.3, rate=0.2, text=0.5, dense=0.5))
    assert not first.late
    assert not second.late
    assert legs_of(studied(write_s=0.3, rate=0.2, text=0.5, dense=1.5))[1].late


def test_a_leg_counts_for_what_it_held_before() -> None:
    """One never showed anything; of another only ranks are told."""
    text, dense = legs_of(studied(text=0.0, dense=1e9))
    assert (text.deleted.n, dense.replaced.n, dense.deleted.n) == (0, 0, 0)
    assert (dense.visible.never.count, dense.late) == (100, True)
    write = Write(kind=Kind.ADD, probe=probes(1, ["a b"], "cafe", np.random.default_rng(0))[0])
    ranks = {"text": LegTrace([1], [1.0])}
    write.take([Ranking([write.probe.id], [1.0], legs=ranks)], 0.0, 0.1)
    assert write.legs == {}
