"""Calls of a server that spend most of their time outside of it are told."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.calls.usage import Price
from retrieval_bench.core.notices import Code, about_times, says
from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_doctor import server_time
from retrieval_bench_doctor.server_time import Stages, kept_back, outside_server
from retrieval_bench_retrievers.http.http import HTTP
from tests.builders.service import Reply, Request, hits, service

MS = 1_000_000
LINE, CLIENT = "Look at the connection", "ask for fewer fields"


def timings(**stages: float | list[float]) -> Stages:
    """Three calls, of which ``stages`` says the milliseconds."""
    n = 3
    return {
        name.replace("__", "."): np.array(np.broadcast_to(np.array(ms) * MS, n), dtype=np.int64)
        for name, ms in stages.items()
    }


@pytest.mark.parametrize(
    ("request_ms", "server", "wrapper", "told"),
    [
        (40.2, 0.25, 0.1, LINE),  # an acknowledgement that is delayed
        (3.0, 0.25, 5.0, CLIENT),
        (4.0, 2.2, 0.1, ""),  # more than half of it
        (1.2, 0.25, 0.01, ""),  # less than a millisecond is left over
        (40.0, 0.0, 0.1, LINE),
        (3.0, 1.0, 0.1, ""),  # whole milliseconds: 1 may be nearly 2
        (5.0, 1.0, 0.1, LINE),
    ],
)
def test_where_most_of_a_call_is_not_the_servers(
    request_ms: float, server: float, wrapper: float, told: str
) -> None:
    found = outside_server(timings(request=request_ms, server=server, wrapper=wrapper), {})
    assert bool(found) == bool(told)
    assert all(told in text for text in found)
    assert all(about_times(text) and says([text], Code.OUTSIDE_SERVER) for text in found)


def test_both_figures_stand_in_the_sentence() -> None:
    (text,) = outside_server(timings(request=[39, 41, 90], server=[0.1, 0.25, 7], wrapper=0.1), {})
    assert "takes 41.1 ms, of which it says that 0.250 ms are its own (medians)" in text
    (text,) = outside_server(timings(request=41, server=0, wrapper=0.1), {})
    assert "under 1 ms are its own" in text


def test_encoding_the_query_is_no_part_of_it() -> None:
    assert not outside_server(timings(encode=500, request=4, server=2.5, wrapper=0.1), {})


def test_a_leg_is_named_and_one_that_never_answered_says_nothing() -> None:
    legs = {"es__request": 41, "es__server": 0.3, "es__wrapper": 0.1}
    legs |= {"os__request": 41, "os__server": -1e-6, "os__wrapper": 0.1}
    (text,) = outside_server(timings(**legs), {})
    assert text.startswith("es: Asking the server takes 41.1 ms")


@pytest.mark.parametrize("stages", [{"sparse": 3}, {"request": 40, "wrapper": 1}])
def test_nothing_is_said_where_the_server_says_nothing(stages: dict[str, Any]) -> None:
    assert outside_server(timings(**stages), {"server_ms": {"error": "no permission"}}) == []


@pytest.mark.parametrize(("ms", "told"), [(45.0, True), (1.5, False)])
def test_the_times_of_a_database_are_those_that_it_explains(ms: float, told: bool) -> None:
    facts = {"server_ms": {"execution": 0.5, "planning": 0.2, "queries": 20}}
    found = outside_server(timings(sql=ms), facts)
    assert [("takes 45.0 ms" in text, "0.700 ms are" in text) for text in found] == [
        (True, True)
    ] * told


class Sleeps(Retriever):
    """Takes 44 ms, of no connection that can be had."""

    def __init__(self, *, external: bool = True) -> None:
        self.external, self.asked = external, 0

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=self.external)

    def search(self, query: Query, k: int) -> Ranking:
        self.asked += 1
        time.sleep(0.044)
        return Ranking(["a"], np.array([1.0]))


ASKS = SimpleNamespace(queries=[Query("q", "x"), Query("r", "y")], k=1, protocol=Protocol())
CONSTANT = np.full(50, 44 * MS)


def _answered(request: Request) -> Reply:
    if request.path != "/at-once":
        time.sleep(0.044)
    return hits(("a", 1.0))


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="no such option here")
@pytest.mark.parametrize("connections", ["reused", "new"])
@pytest.mark.parametrize("path", ["at-once", "sleeps"])
def test_a_delayed_acknowledgement_is_proved(path: str, connections: str) -> None:
    """L4: a p50 of 47.9 ms on loopback was told nowhere; a service that sleeps 44 ms is none."""
    params = {"body": {"text": "{text}"}, "ids": "hits[].id", "connections": connections}
    with service(_answered, waits=path == "at-once") as running:
        retriever = HTTP(url=f"{running.url}/{path}", **params)  # type: ignore[arg-type]
        found = kept_back(Candidate("svc", retriever, {}), ASKS, CONSTANT)
        retriever.close()
        asked = len(running.requests)
    assert asked == 40
    if path == "sleeps" or connections == "new":  # a new connection acknowledges at once
        assert not found
        return
    (text,) = found
    assert "the client's delayed acknowledgement" in text
    assert about_times(text)


def test_a_call_that_is_over_before_it_is_met_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was told as one that nobody can tell of, where each was quicker than the first look."""
    monkeypatch.setattr(server_time, "_EACH_S", 600.0)
    params = {"body": {"text": "{text}"}, "ids": "hits[].id", "connections": "new"}
    with service(_answered) as running:
        retriever = HTTP(url=f"{running.url}/at-once", **params)  # type: ignore[arg-type]
        assert not kept_back(Candidate("svc", retriever, {}), ASKS, CONSTANT)
        retriever.close()


def test_nothing_is_proved_where_nothing_was_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that happen to be short where others would be at once."""
    clock = [0]

    class Jumping(Sleeps):
        def search(self, query: Query, k: int) -> Ranking:
            clock[0] += (2 if (self.asked // 2 + self.asked) % 2 == 0 else 37) * MS
            self.asked += 1
            return Ranking(["a"], np.array([1.0]))

    monkeypatch.setattr(server_time, "perf_counter_ns", lambda: clock[0])
    monkeypatch.setattr(server_time, "_SOCKETS", Path("nowhere"))
    assert not kept_back(Candidate("svc", Jumping(), {}), ASKS, CONSTANT)


def test_where_nobody_can_tell_it_may_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_time, "_SOCKETS", Path("nowhere"))
    monkeypatch.setattr(server_time, "_CALLS", 4)
    (text,) = kept_back(Candidate("svc", Sleeps(), {}), ASKS, CONSTANT)
    assert "That may be the 40 ms of a delayed acknowledgement" in text
    varied = np.arange(40, 60) * MS
    assert not kept_back(Candidate("svc", Sleeps(), {}), ASKS, varied), "it is not constant"
    own = Candidate("svc", Sleeps(external=False), {})
    assert not kept_back(own, ASKS, CONSTANT), "it is no service"


@pytest.mark.parametrize(
    ("ms", "given"),
    [(39.0, {}), (120.0, {}), (44.0, {"price": Price(calls=0.1)}), (44.0, {"rate_limit": 5.0})],
)
def test_who_need_not_or_may_not_be_asked_is_not(ms: float, given: dict[str, Any]) -> None:
    retriever = Sleeps(external=False)
    assert not kept_back(Candidate("svc", retriever, {}, **given), ASKS, np.full(9, int(ms * MS)))
    assert not kept_back(Candidate("svc", retriever, {}), ASKS, [])
    assert not retriever.asked
