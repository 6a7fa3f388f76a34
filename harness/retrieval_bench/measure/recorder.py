"""The calls of one system: each is made, timed, checked and kept."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.calls.foreign import end_if_forked, message_of
from retrieval_bench.core.calls.usage import FIELDS, collected, total
from retrieval_bench.core.errors import ContractError, HarnessError
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Query, Ranking, Usage
from retrieval_bench.measure.attempts import AttemptLog
from retrieval_bench.measure.budget import Budget
from retrieval_bench.measure.calls import NOT_RUN, OK, Clock, Measurement, System, Timings
from retrieval_bench.measure.deadline import Deadline, QueryTimeoutError
from retrieval_bench.measure.protocol import Plan
from retrieval_bench.measure.steady import SteadyState

_BLOCK = 1 << 16
"""Calls that there is room for at first."""


_MOST_IN_A_ROW = 3
"""Queries that were given up one after the other, from which on nobody waits for a service."""


class Recorder:
    """Calls one system and keeps what came of it, in arrays of the planned size."""

    def __init__(
        self,
        system: System,
        queries: Sequence[Query],
        k: int,
        calls: Plan,
        *,
        at_once: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self.attempts = AttemptLog(system.retry)
        self.at_once = at_once
        self.dead = False
        self.began = -math.inf
        self.system = system
        self.queries = queries
        self.k = k
        self.has_scores = system.retriever.capabilities.has_scores
        self.rankings: list[Ranking | None] = [None] * len(queries)
        self.status = [NOT_RUN] * len(queries)
        self.unstable: set[int] = set()
        self.late_failures = 0
        self.warming = SteadyState()
        self.first_ns = np.full(len(queries), -1, dtype=np.int64)
        self.pid = os.getpid()
        self.n = 0
        self.planned = calls.measured
        size = min(calls.measured, _BLOCK)
        self.wall = np.zeros(size, dtype=np.int64)
        self.round = np.zeros(size, dtype=np.int32)
        self.position = np.zeros(size, dtype=np.int32)
        self.query = np.zeros(size, dtype=np.int32)
        self.failed = np.zeros(size, dtype=bool)
        self.stages: dict[str, NDArray[np.int64]] = {}
        self.usage: dict[str, NDArray[np.float64]] = {}
        self.reported: Usage | None = None
        self.budget = budget or Budget()
        self.spent: Usage | None = None

    def try_out(self, at: int, timer: Deadline, clock: Clock) -> None:
        """One call of the warm-up: failures show again, and are told, when they count."""
        query = self.queries[at]
        raw, elapsed, failure, _ = self._attempt(query, timer, clock)
        self.warming.add(at, elapsed)
        if self.first_ns[at] < 0:
            self.first_ns[at] = elapsed
        if failure is None:
            self._pay(self._check(raw, query).usage)

    def call(self, at: int, round_: int, position: int, timer: Deadline, clock: Clock) -> None:
        """One measured call of the query at index ``at``."""
        if self.status[at] not in (OK, NOT_RUN) and not self._worth_asking(at):
            return
        raw, elapsed, failure, problem = self._attempt(self.queries[at], timer, clock)
        while failure is not None:
            self._failed(at, elapsed, failure, problem)
            if not (self.at_once and self._worth_waiting(at)):
                break
            time.sleep(self.attempts.wait_s(at))
            raw, elapsed, failure, problem = self._attempt(self.queries[at], timer, clock)
        self._keep(at, round_, position, elapsed, failure)
        if failure is None:
            self.attempts.answered(at, elapsed)
            self._keep_result(at, raw)

    def ask_again(self, timer: Deadline, clock: Clock, end: float) -> None:
        """Ask the queries that were never answered once more, waiting as the service wants it, for
        their rankings: these calls are in no time but that to an answer."""
        for at, status in enumerate(self.status):
            while status not in (OK, NOT_RUN) and self._worth_waiting(at) and clock() < end:
                time.sleep(self.attempts.wait_s(at))
                raw, elapsed, failure, problem = self._attempt(self.queries[at], timer, clock)
                if failure is None:
                    self.attempts.answered(at, elapsed, timed=False)
                    self.rankings[at] = ranking = self._check(raw, self.queries[at])
                    self._pay(ranking.usage)
                    self.status[at] = OK
                    break
                self._failed(at, elapsed, failure, problem)

    def begin_round(self) -> None:
        """Say where a round has passed in which every call took its time-out, nothing is asked a
        second time: it would only take them again."""
        kinds = set(self.attempts.kinds)
        self.dead = OK not in self.status and NOT_RUN not in self.status and kinds == {"timeout"}

    def _worth_asking(self, at: int) -> bool:
        return not self.dead and self.attempts.may_pass(at)

    def _worth_waiting(self, at: int) -> bool:
        """Likewise, where each repetition waits: not while one query after the other stays without
        an answer, nor where another call might be too dear."""
        in_vain = self.budget.empty or self.attempts.in_a_row >= _MOST_IN_A_ROW
        return not in_vain and self._worth_asking(at)

    def _failed(self, at: int, elapsed: int, failure: str, problem: BaseException | None) -> None:
        self.attempts.failed(at, elapsed, problem)
        if self.rankings[at] is not None:
            self.late_failures += 1
        else:
            self.status[at] = failure

    def _pace(self) -> None:
        """Wait until another call is allowed."""
        if self.system.rate_limit is not None:
            pause = self.began + 1 / self.system.rate_limit - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            self.began = time.monotonic()

    def _attempt(
        self, query: Query, timer: Deadline, clock: Clock
    ) -> tuple[Any, int, str | None, BaseException | None]:
        """Make one attempt, as :meth:`_timed`, and keep the usage that the call reports."""
        with collected() as reported:
            attempt = self._timed(query, timer, clock)
        self.reported = reported()
        if (
            attempt[2] is not None and self.reported is not None
        ):  # a call that fails is paid for, too
            self._pay(self._priced({"call": self.reported}))
        return attempt

    def _timed(
        self, query: Query, timer: Deadline, clock: Clock
    ) -> tuple[Any, int, str | None, BaseException | None]:
        """One timed ``search``: what it returned, nanoseconds, and why it failed, if so, in words
        and as what it raised (a :class:`QueryTimeoutError` where it took too long)."""
        search, k = self.system.retriever.search, self.k
        raw: Any = None
        failure: str | None = None
        raised: BaseException | None = None
        start = stop = None
        self._pace()
        try:
            try:
                timer.arm()
                start = clock()
                raw = search(query, k)
                stop = clock()
                timer.disarm()
            except (KeyboardInterrupt, QueryTimeoutError):
                raise
            except HarnessError as problem:
                timer.disarm()
                raise self._named(problem, query) from problem
            except BaseException as problem:  # also SystemExit: it must not end the measurement
                stop = clock()
                timer.disarm()
                notes = getattr(problem, "__notes__", ())
                failure, raised = "; ".join([message_of(problem), *notes]), problem
        except QueryTimeoutError as problem:  # also when it comes while another one is handled
            stop = clock()
            timer.disarm()
            failure, raised = timer.complaint, problem
        end_if_forked(self.pid)
        elapsed = 0 if start is None or stop is None else stop - start
        if failure is None and timer.exceeded(elapsed):
            failure, raised = timer.complaint, QueryTimeoutError()
        return raw, elapsed, failure, raised

    def _keep(self, at: int, round_: int, position: int, elapsed: int, failure: str | None) -> None:
        i = self.n
        if i == len(self.wall):
            self._grow()
        self.wall[i] = elapsed
        self.round[i] = round_
        self.position[i] = position
        self.query[i] = at
        self.failed[i] = failure is not None
        self.n += 1

    def _grow(self) -> None:
        """Twice the room: a plan of many calls must not take memory before they are made."""
        more = min(len(self.wall), self.planned - len(self.wall))
        for name in ("wall", "round", "position", "query", "failed"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(more, dtype=old.dtype)]))
        for stage, old in self.stages.items():
            self.stages[stage] = np.concatenate([old, np.full(more, -1, dtype=np.int64)])
        for stage, kept in self.usage.items():
            self.usage[stage] = np.concatenate([kept, np.full((more, len(FIELDS)), np.nan)])

    def _keep_result(self, at: int, raw: Any) -> None:
        ranking = self._check(raw, self.queries[at])
        for stage, nanoseconds in ranking.stages.items():
            if stage not in self.stages:
                self.stages[stage] = np.full(len(self.wall), -1, dtype=np.int64)
            self.stages[stage][self.n - 1] = nanoseconds
        for stage, used in ranking.usage.items():
            if stage not in self.usage:
                self.usage[stage] = np.full((len(self.wall), len(FIELDS)), np.nan)
            self.usage[stage][self.n - 1] = [
                np.nan if (value := getattr(used, name)) is None else value for name in FIELDS
            ]
        self._pay(ranking.usage)
        first = self.rankings[at]
        if first is None:
            self.rankings[at] = ranking
            self.status[at] = OK
        elif list(ranking.doc_ids) != list(first.doc_ids):
            self.unstable.add(at)

    def _check(self, raw: Any, query: Query) -> Ranking:
        try:
            known = self.system.known_ids
            ranking = checked_ranking(raw, self.k, known, has_scores=self.has_scores)
        except ContractError as problem:
            raise self._named(problem, query) from problem
        if not ranking.usage and self.reported is None:
            return ranking
        usage = dict(ranking.usage)
        if self.reported is not None:
            usage["call"] = total([usage.get("call"), self.reported]) or self.reported
        return replace(ranking, usage=self._priced(usage))

    def _priced(self, usage: Mapping[str, Usage]) -> Mapping[str, Usage]:
        price = self.system.price
        if price is None:
            return usage
        return {stage: price.of(used) for stage, used in usage.items()}

    def _pay(self, usage: Mapping[str, Usage]) -> None:
        used = total(usage.values())
        self.spent = total([self.spent, used])
        self.budget.pay(used, self.system.name)

    def _named(self, problem: HarnessError, query: Query | None = None) -> HarnessError:
        place = f"retriever {self.system.name!r}" + (f", query {query.id!r}" if query else "")
        problem.where = f"{place}; {problem.where}" if problem.where else place
        problem.args = (problem.render(),)
        return problem

    def result(self, warm_up: int, interrupted: bool, overhead_ns: int) -> Measurement:
        warnings: list[str] = []
        if self.unstable:
            text = (
                f"{len(self.unstable)} queries got another ranking in a later call: the retriever "
                "is not deterministic, quality is that of the first call"
            )
            warnings.append(Notice(text, Code.NOT_DETERMINISTIC))
        if self.late_failures:
            text = f"{self.late_failures} repeated calls failed after a first success"
            warnings.append(Notice(text, Code.FAILED_CALLS))
        n = self.n
        timings = Timings(
            self.wall[:n],
            self.round[:n],
            self.position[:n],
            self.query[:n],
            self.failed[:n],
            {name: values[:n] for name, values in self.stages.items()},
            first_ns=self.first_ns[None, :],
            usage={name: values[:n] for name, values in self.usage.items()},
        )
        return Measurement(
            self.rankings,
            self.status,
            timings,
            warm_up,
            len(self.unstable),
            interrupted,
            overhead_ns,
            steady_after=self.warming.steady_after,
            warnings=warnings,
            attempts=self.attempts.result(self.wall[:n][~self.failed[:n]]),
            spent=self.spent,
        )
