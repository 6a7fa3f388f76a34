"""Calls that fail and are made again: what is counted, what is repeated when, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.calls.failures import (
    CallError,
    Kind,
    Retry,
    TransientError,
    kind_of,
    retry_after,
)
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.measure.calls import OK, Measurement, System
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.measure.runner import measure
from tests.builders import some

QUERIES = [Query(f"q{i}", f"text {i}") for i in range(4)]
ROUNDS = Protocol(rounds=3, warm_up_s=0.0)


class Flaky(Retriever):
    """Raises what ``fails`` gives for a query and the number of its call, from 1."""

    def __init__(self, fails: Callable[[str, int], BaseException | None]) -> None:
        self.fails = fails
        self.calls: dict[str, int] = {}

    def search(self, query: Query, k: int) -> Ranking:
        self.calls[query.id] = self.calls.get(query.id, 0) + 1
        problem = self.fails(query.id, self.calls[query.id])
        if problem is not None:
            raise problem
        return Ranking(["d"], [1.0])


def busy(retry_after: float | None = None) -> TransientError:
    return TransientError("429 Too Many Requests", Kind.THROTTLED, retry_after=retry_after)


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits in a test; how long one would have."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def measured(
    fails: Callable[[str, int], BaseException | None], protocol: Protocol = ROUNDS, **how: Any
) -> tuple[Measurement, Flaky]:
    retriever = Flaky(fails)
    (found,) = measure([System("s", retriever, **how)], QUERIES, 3, protocol)
    return found, retriever


def test_without_failures_there_is_no_account() -> None:
    found, _ = measured(lambda query, n: None)
    assert found.attempts is None


def test_a_query_that_failed_is_asked_again_in_the_next_round(slept: list[float]) -> None:
    found, _ = measured(lambda query, n: busy() if (query, n) == ("q1", 1) else None)
    assert found.status == [OK] * 4
    assert len(found.timings.wall_ns) == 12
    assert found.timings.failed.sum() == 1
    (failed,) = np.flatnonzero(found.timings.failed)
    assert (found.timings.round[failed], QUERIES[found.timings.query[failed]].id) == (0, "q1")
    account = some(found.attempts)
    assert (dict(account.failed), account.recovered, account.asked_again) == ({"429": 1}, 1, 0)
    assert slept == []  # not in timed rounds
    assert len(account.to_answer_ns) == 11
    assert account.to_answer_ns.max() > 0.5e9  # the wait that retry asks for
    assert np.median(account.to_answer_ns) < 0.1e9


def test_the_wait_is_what_the_service_asks_for() -> None:
    def fails(query: str, n: int) -> BaseException | None:
        return busy(7.0) if (query, n) == ("q1", 1) else None

    found, _ = measured(fails)
    assert 7e9 < some(found.attempts).to_answer_ns.max() < 7.4e9
    other, _ = measured(fails, retry=Retry(respect_retry_after=False))
    assert 0.5e9 < some(other.attempts).to_answer_ns.max() < 0.9e9


def test_what_no_round_answered_is_asked_after_the_last_one(slept: list[float]) -> None:
    found, retriever = measured(
        lambda query, n: busy(2.0) if query == "q1" and n < 3 else None,
        Protocol(rounds=1, warm_up_s=0.0),
    )
    assert found.status == [OK] * 4
    assert list(some(found.rankings[1]).doc_ids) == ["d"]
    assert retriever.calls["q1"] == 3
    assert slept == [2.0, 2.0]
    account = some(found.attempts)
    assert (account.recovered, account.asked_again, account.given_up) == (1, 1, 0)
    assert len(found.timings.wall_ns) == 4  # calls after the rounds are no measured ones
    assert account.to_answer_ns.max() > 4e9


def test_it_is_given_up_after_as_many_calls_as_retry_allows() -> None:
    found, retriever = measured(lambda query, n: busy() if query == "q1" else None)
    assert retriever.calls["q1"] == 3
    assert found.status[1].endswith("429 Too Many Requests")
    account = some(found.attempts)
    assert (account.given_up, account.recovered) == (1, 0)
    _, never = measured(lambda query, n: busy() if query == "q1" else None, retry=Retry(times=0))
    assert never.calls["q1"] == 1


def test_what_would_fail_again_is_not_asked_again() -> None:
    for problem in (ValueError("no"), CallError("400 Bad Request")):

        def fails(query: str, n: int, problem: Exception = problem) -> Exception | None:
            return problem if query == "q1" else None

        found, retriever = measured(fails)
        assert retriever.calls["q1"] == 1
        assert dict(some(found.attempts).failed) == {"other": 1}
    _, only_others = measured(
        lambda query, n: busy() if query == "q1" else None, retry=Retry(when=(Kind.TIMEOUT,))
    )
    assert only_others.calls["q1"] == 1


def test_where_every_call_took_its_time_out_nothing_is_asked_a_second_time() -> None:
    _, retriever = measured(lambda query, n: TimeoutError())
    assert set(retriever.calls.values()) == {1}


def test_an_outage_of_the_first_round_is_not_the_end_of_the_run() -> None:
    found, _ = measured(lambda query, n: ConnectionRefusedError() if n == 1 else None)
    assert found.status == [OK] * 4
    assert some(found.attempts).recovered == 4


def test_nobody_waits_for_a_service_that_is_down(slept: list[float]) -> None:
    once = Protocol(rounds=1, warm_up_s=0.0)
    for protocol in (once, Protocol(RANKINGS_ONLY, rounds=1, warm_up_s=0.0)):
        slept.clear()
        queries = [Query(f"q{i}", "text") for i in range(50)]
        down = Flaky(lambda query, n: ConnectionRefusedError())
        measure([System("s", down)], queries, 3, protocol)
        assert len(slept) == 6  # two waits for each of three queries


def test_where_no_time_is_judged_it_is_repeated_at_once(slept: list[float]) -> None:
    found, _ = measured(
        lambda query, n: busy(3.0) if query == "q1" and n < 3 else None,
        Protocol(RANKINGS_ONLY, rounds=1, warm_up_s=0.0),
    )
    assert found.status == [OK] * 4
    assert slept == [3.0, 3.0]


def test_calls_keep_to_the_rate_outside_of_their_times(slept: list[float]) -> None:
    found, _ = measured(lambda query, n: None, Protocol(rounds=1, warm_up_s=0.0), rate_limit=2.0)
    assert len(slept) >= 3
    assert all(0.4 < pause <= 0.5 for pause in slept)
    assert found.timings.wall_ns.max() < 0.4e9


class _Response:
    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.status_code, self.headers = status, headers or {}


class HTTPStatusError(Exception):
    """As clients have it."""

    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.response = _Response(status, headers)


class ReadTimeout(Exception):  # noqa: N818 - as a client calls it
    """Likewise."""


class ReadTimeoutError(Exception):
    """Likewise."""


class ReadError(Exception):
    """Likewise."""


def _caused(problem: BaseException) -> Exception:
    try:
        try:
            raise problem
        except BaseException as cause:
            raise RuntimeError("the chain failed") from cause
    except RuntimeError as found:
        return found


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (busy(), Kind.THROTTLED),
        (TransientError("503"), Kind.SERVER),
        (CallError("404"), Kind.OTHER),
        (ConnectionResetError(), Kind.CONNECTION),
        (TimeoutError(), Kind.TIMEOUT),
        (ReadTimeout(), Kind.TIMEOUT),
        (ReadTimeoutError(), Kind.TIMEOUT),
        (ReadError(), Kind.CONNECTION),
        (HTTPStatusError(429), Kind.THROTTLED),
        (HTTPStatusError(502), Kind.SERVER),
        (HTTPStatusError(404), Kind.OTHER),
        (_caused(HTTPStatusError(503)), Kind.SERVER),
        (_caused(ConnectionRefusedError()), Kind.CONNECTION),
        (ValueError(), Kind.OTHER),
    ],
)
def test_kinds_of_failure(problem: BaseException, kind: Kind) -> None:
    assert kind_of(problem) is kind


def test_what_a_service_asks_to_wait() -> None:
    assert retry_after(busy(3.0)) == 3.0
    assert retry_after(HTTPStatusError(429, {"retry-after": "12"})) == 12.0
    assert retry_after(HTTPStatusError(429, {"retry-after": "Wed, 21 Oct"})) is None
    assert retry_after(ValueError()) is None
    assert retry_after(_caused(HTTPStatusError(429, {"retry-after": "7"}))) == 7.0
    assert retry_after(busy(float("nan"))) is None
    assert Retry().wait_s(1, 500.0) == 60.0
    assert [Retry().wait_s(n, None) for n in (1, 2, 3, 9)] == [0.5, 1.0, 2.0, 60.0]
