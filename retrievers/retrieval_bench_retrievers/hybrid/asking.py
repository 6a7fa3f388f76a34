"""Asking the legs of a hybrid: one after the other, or together in threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from itertools import chain
from time import perf_counter_ns

from retrieval_bench.core.calls.usage import report
from retrieval_bench.core.retriever import RankingLike
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.hybrid.fusion import RRF, Convex
from retrieval_bench_retrievers.hybrid.legs import Leg, told_from

Answer = tuple[RankingLike, int]
"""What a leg gave, and the nanoseconds of its call."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of how one query is answered.

    Attributes:
        queries: what each leg is asked, in the order of the legs.
        fusion: how their rankings become one.
        stages: nanoseconds that making the plan took, by name.
    """

    queries: Sequence[Query]
    fusion: RRF | Convex
    stages: Mapping[str, int]


class Asking:
    """The threads of a hybrid, none before they are needed, and what is still under way in them."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._running: list[Future[Answer]] = []

    def in_turn(self, legs: Sequence[Leg], queries: Sequence[Query], k: int) -> list[Answer]:
        """Ask each leg its query in this thread."""
        answers: list[Answer] = []
        with _paid(answers):
            for leg, query in zip(legs, queries, strict=True):
                answers.append(_ask(leg, query, k))
        return answers

    def together(self, legs: Sequence[Leg], queries: Sequence[Query], k: int) -> list[Answer]:
        """Ask each leg its query, all at the same time, the last one in this thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                len(legs) - 1, thread_name_prefix="hybrid-leg", initializer=_prepare_thread
            )
        # A search that ended early left calls behind; no leg is asked twice at the same time.
        wait(self._running)
        self._running = []
        *others, own = zip(legs, queries, strict=True)
        for leg, query in others:
            # What the leg reports that it uses up belongs to this search, in whose context it runs.
            run = copy_context().run
            self._running.append(self._pool.submit(run, _ask, leg, query, k))
        last: list[Answer] = []
        # Read only where a call fails; an answer then waits until its own call has ended.
        answered = (each.result() for each in self._running if each.exception() is None)
        with _paid(chain(answered, last)):
            last.append(_ask(*own, k))
            answers = [future.result() for future in self._running]
        self._running = []
        return answers + last

    def close(self) -> None:
        """End the threads; a leg that hangs must not keep what was measured from being saved."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=all(future.done() for future in self._running))


@contextmanager
def _paid(answered: Iterable[Answer]) -> Iterator[None]:
    """What legs used up that answered is paid for, also where another one fails in the block."""
    try:
        yield
    except Exception:
        for raw, _ in answered:
            for used in raw.usage.values() if isinstance(raw, Ranking) else ():
                report(used)
        raise


def _ask(leg: Leg, query: Query, k: int) -> Answer:
    with told_from("leg", leg.name, "hybrid"):
        begin = perf_counter_ns()
        raw = leg.retriever.search(query, max(leg.depth, k))
        return raw, perf_counter_ns() - begin


def _prepare_thread() -> None:
    from retrieval_bench.measure.threads import apply_to_this_thread

    apply_to_this_thread()
