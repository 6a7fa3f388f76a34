"""One launch of a duet: both sides in fresh processes, the same queries to both, by turns."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.call_pairs import Pairs, trimmed_mean
from harness.duet.process import SideProcess
from harness.measure.steady import SteadyState

TURN_NS = 250_000
"""A side keeps its turn until about so much time is measured: where calls are shorter, one turn has
several of them, since a process that has just been woken is slow for a while. Longer turns let the
machine change between the two sides: decision record 0033."""

MOST_CALLS = 64
"""Calls of one turn, at most."""

WARM_UP_CALLS = 50


@dataclass(frozen=True, slots=True)
class Share:
    """How much of the time one launch measures.

    Attributes:
        seconds: of both sides together; one round is made in any case.
        warm_up_s: the warm-up ends after so many seconds, steady or not.
        queries: numbers of the queries, or None for all.
        flip: who goes first is the other one than without it; for every second launch.
    """

    seconds: float
    warm_up_s: float = 0.5
    queries: Sequence[int] | None = None
    flip: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a launch.

    Attributes:
        wall_ns: int64 (2, calls): side a, side b; -1 where the call failed.
        query, round: int32 (calls): of each pair of calls.
        first: int8 (calls), which side had its turn first: 0 or 1.
        seconds: of measuring.
    """

    wall_ns: NDArray[np.int64]
    query: NDArray[np.int32]
    round: NDArray[np.int32]
    first: NDArray[np.int8]
    seconds: float

    def pairs(self, launch: int) -> Pairs:
        """As :func:`harness.call_pairs.log_ratios` gives them, without the order effect: whoever
        goes first finds other caches than whoever follows, by several per cent."""
        fine = (self.wall_ns >= 0).all(axis=0)
        logs = np.log(np.maximum(self.wall_ns[:, fine], 1))
        a_first = self.first[fine] == 0
        later = _order_effect(logs[1] - logs[0], a_first)
        n = len(a_first)
        return Pairs(
            logs[0] - np.where(a_first, 0.0, later),
            logs[1] - np.where(a_first, later, 0.0),
            np.full(n, launch, dtype=np.int32),
            self.round[fine],
            np.flatnonzero(fine).astype(np.int32),
            self.query[fine],
            int((~fine).sum()),
        )


def _order_effect(log_ratio: NDArray[np.float64], a_first: NDArray[np.bool_]) -> float:
    """The log ratio of the later call of a pair over the earlier one. Each side is first in half of
    the pairs, so that what differs between the sides cancels."""
    halves = (log_ratio[a_first], -log_ratio[~a_first])
    if not all(len(half) for half in halves):
        return 0.0
    return sum(trimmed_mean(half) for half in halves) / 2


def measure(
    processes: Sequence[SideProcess], n_queries: int, share: Share, rng: np.random.Generator
) -> Measured:
    """Warm both sides up, then give each query to both, one right after the other.

    Either side goes first for half of the queries, and the other one for the same queries in the
    next round; queries come in a fresh random order in every round.

    Raises:
        LostError: a process died or hung.
    """
    chosen = np.arange(n_queries) if share.queries is None else np.asarray(share.queries)
    usual_ns = _warmed_up(processes, chosen, share.warm_up_s, rng)
    per_turn = int(np.clip(TURN_NS // max(1, usual_ns), 1, MOST_CALLS))
    walls: list[list[array[int]]] = [[], []]
    order: list[NDArray[np.int64]] = []
    rounds: list[int] = []
    firsts: list[int] = []
    begin = time.monotonic()
    lead = (np.arange(len(chosen)) + share.flip) % 2
    round_ = 0
    while True:
        for process in processes:
            process.rest()
        for first, turn in _turns(lead ^ (round_ % 2), per_turn, rng):
            queries = chosen[turn]
            asked = queries.tolist()
            for side in (first, 1 - first):
                walls[side].append(processes[side].times(asked))
            order.append(queries)
            rounds += [round_] * len(asked)
            firsts += [first] * len(asked)
        round_ += 1
        spent = time.monotonic() - begin
        # One round, or an even number of them.
        if (round_ == 1 or round_ % 2 == 0) and spent / round_ * (round_ + 1) > share.seconds:
            break
    return Measured(
        np.array([np.concatenate(side) for side in walls], dtype=np.int64),
        np.concatenate(order).astype(np.int32),
        np.array(rounds, dtype=np.int32),
        np.array(firsts, dtype=np.int8),
        seconds=time.monotonic() - begin,
    )


def _turns(
    lead: NDArray[np.int64], size: int, rng: np.random.Generator
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Who goes first, and places of the queries of a turn, in random order."""
    turns = []
    for first in (0, 1):
        places = rng.permutation(np.flatnonzero(lead == first))
        turns += [(first, places[at : at + size]) for at in range(0, len(places), size)]
    for at in rng.permutation(len(turns)):
        yield turns[at]


def _warmed_up(
    processes: Sequence[SideProcess],
    chosen: NDArray[np.int64],
    seconds: float,
    rng: np.random.Generator,
) -> int:
    """Call both sides until they are steady, or for ``seconds``; nanoseconds of a usual call of
    the slower one."""
    states = [SteadyState() for _ in processes]
    begin, calls = time.monotonic(), 0
    order = rng.permutation(chosen).tolist()
    usual: list[list[int]] = [[], []]
    size = 1
    while True:
        at = 0
        while at < len(order):
            asked = order[at : at + size]
            for process, state, seen in zip(processes, states, usual, strict=True):
                for query, wall in zip(asked, process.times(asked), strict=True):
                    state.add(query, wall)
                    seen.append(wall)
            at += len(asked)
            calls += len(asked)
            # A deadline is that of one call: only those known to be short share a turn.
            short = all(0 <= wall < TURN_NS for seen in usual for wall in seen[-len(asked) :])
            size = 8 if short else 1
            late = time.monotonic() - begin > seconds
            if late and calls >= len(order):
                break
        steady = all(state.steady for state in states)
        if late or (steady and calls >= WARM_UP_CALLS):
            break
    answered = [[wall for wall in seen if wall >= 0] or [TURN_NS] for seen in usual]
    return int(max(np.median(seen) for seen in answered))
