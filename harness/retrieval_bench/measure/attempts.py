"""Calls that fail and are made again: what they add to the time until there is an answer.

A timed call is one attempt. Whoever asks a service waits for all attempts until one is answered,
and between them. So the time to an answer is that of the attempt that is answered, of those before
it since the last answer to the same query, and the wait after each of these; nobody waits in timed
rounds, where the wait is the one that the ``retry`` of the retriever asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.calls.failures import Kind, Retry, kind_of, retry_after
from retrieval_bench.measure.deadline import QueryTimeoutError


@dataclass(frozen=True, slots=True)
class Attempts:
    """Cost of failed calls for whoever makes them again.

    Attributes:
        failed: kind -> failed calls.
        recovered: queries that were answered after a failed call.
        asked_again: of these, those that were answered only after the last round.
        given_up: times that a call failed as often as ``retry`` allows.
        to_answer_ns: int64, for each answer.
    """

    failed: Mapping[str, int]
    recovered: int
    asked_again: int
    given_up: int
    to_answer_ns: NDArray[np.int64]


@dataclass(slots=True)
class _Open:
    """Failed attempts at one query since its last answer: their number, their nanoseconds with the
    waits between them, and the wait before the next one."""

    failures: int = 0
    spent_ns: int = 0
    wait_s: float = 0.0
    transient: bool = True


class AttemptLog:
    """Keeps account of the attempts of one system.

    Attributes:
        in_a_row: queries that were given up since the last answer.
    """

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._open: dict[int, _Open] = {}
        self._failed: Counter[str] = Counter()
        self._recovered: set[int] = set()
        self._late: list[int] = []
        self._extra: dict[int, int] = {}
        self._answers = self._given_up = 0
        self.in_a_row = 0

    def may_pass(self, at: int) -> bool:
        """Return whether the query at ``at``, whose last call failed, is to be asked again."""
        open_ = self._open.get(at)
        if open_ is None:
            return False
        return open_.transient and open_.failures <= self._retry.times

    def wait_s(self, at: int) -> float:
        """Seconds to wait before it is."""
        return self._open[at].wait_s

    def failed(self, at: int, elapsed: int, problem: BaseException | None) -> None:
        """A call failed after ``elapsed`` nanoseconds."""
        timed_out = isinstance(problem, QueryTimeoutError)
        kind = Kind.TIMEOUT if timed_out or problem is None else kind_of(problem)
        self._failed[kind.value] += 1
        open_ = self._open.setdefault(at, _Open())
        open_.transient = kind in self._retry.when
        if open_.failures > self._retry.times:  # an answer was given up; this is a new question
            open_.failures = open_.spent_ns = 0
        open_.failures += 1
        asked = None if problem is None else retry_after(problem)
        open_.wait_s = self._retry.wait_s(open_.failures, asked)
        open_.spent_ns += elapsed + round(open_.wait_s * 1e9)
        if open_.failures > self._retry.times:
            self._given_up += 1
            self.in_a_row += 1

    @property
    def kinds(self) -> set[str]:
        """The kinds of all failures so far."""
        return set(self._failed)

    def answered(self, at: int, elapsed: int, *, timed: bool = True) -> None:
        """A call was answered; ``timed`` = it is among the measured ones."""
        self.in_a_row = 0
        open_ = self._open.pop(at, None)
        spent = 0
        if open_ is not None:
            self._recovered.add(at)
            spent = open_.spent_ns if open_.transient and self._within(open_) else 0
        if timed:
            if spent:
                self._extra[self._answers] = spent
            self._answers += 1
        else:
            self._late.append(elapsed + spent)

    def _within(self, open_: _Open) -> bool:
        return open_.failures <= self._retry.times

    def result(self, answered_ns: NDArray[np.int64]) -> Attempts | None:
        """The account; None where no call failed.

        Args:
            answered_ns: of the measured calls that were answered, in the order made.
        """
        if not self._failed:
            return None
        to_answer = answered_ns.astype(np.int64)
        for place, spent in self._extra.items():
            to_answer[place] += spent
        return Attempts(
            dict(sorted(self._failed.items())),
            len(self._recovered),
            len(self._late),
            self._given_up,
            np.concatenate([to_answer, np.array(self._late, dtype=np.int64)]),
        )
