"""A service over HTTP as a retriever: what is sent, what is read, and every way to fail."""

from __future__ import annotations

import json
import logging
import signal
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from retrieval_bench import bench
from retrieval_bench.core.calls.failures import CallError, TransientError
from retrieval_bench.core.calls.usage import collected
from retrieval_bench.core.config import inline_config
from retrieval_bench.core.errors import ConfigError, ContractError, MissingDependencyError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.installed import installation
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Document, Query, Usage
from retrieval_bench.measure.deadline import QueryTimeoutError, deadline
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_retrievers.http.http import HTTP
from tests.builders import some
from tests.builders.files import beir
from tests.builders.service import (
    Reply,
    Request,
    Service,
    free_port,
    hits,
    replies,
    searching,
    service,
)

Asking = Callable[..., HTTP]
QUERY = Query("7", "물 & air?")
BODY = {"text": "{text}", "k": "{k}"}
READ: dict[str, Any] = {"hits": "hits", "id": "id", "score": "score"}
QUICK = Protocol(rounds=2, warm_up_s=0.0)
TWO = hits(("a", 2.0), ("b", 1.5))


@pytest.fixture
def served() -> Iterator[Service]:
    with service(replies(TWO)) as running:
        yield running


@pytest.fixture
def asking(served: Service) -> Iterator[Asking]:
    """Makes retrievers of the service, which are closed at the end."""
    made: list[HTTP] = []

    def make(path: str = "/search", **params: Any) -> HTTP:
        retriever = construct("http", {"url": served.url + path, "body": BODY, **READ, **params})
        assert isinstance(retriever, HTTP)
        made.append(retriever)
        return retriever

    yield make
    for retriever in made:
        retriever.close()


# --- what is sent


def test_a_query_is_posted_as_json(served: Service, asking: Asking) -> None:
    ranking = checked_ranking(asking().search(QUERY, 2), 2)
    assert list(ranking) == [("a", 2.0), ("b", 1.5)]
    (request,) = served.requests
    assert (request.method, request.path) == ("POST", "/search")
    assert request.body == {"text": "물 & air?", "k": 2}
    assert request.headers["content-type"] == "application/json"


def test_without_a_body_it_is_a_get_with_an_encoded_url(served: Service, asking: Asking) -> None:
    asking("/find?q={text}&n={k}", body=None).search(QUERY, 2)
    (request,) = served.requests
    assert request.method == "GET"
    assert request.path == "/find?q=%EB%AC%BC%20%26%20air%3F&n=2"
    assert request.content == b""


def test_a_text_is_sent_as_it_is(served: Service, asking: Asking) -> None:
    asking(body="find {text} {x}", headers={"content-type": "text/plain"}, method="put").search(
        QUERY, 2
    )
    (request,) = served.requests
    assert (request.method, request.headers["content-type"]) == ("PUT", "text/plain")
    assert request.content.decode() == "find 물 & air? {x}"


def test_quotes_of_a_query_do_not_leave_their_json(served: Service, asking: Asking) -> None:
    text = 'say "no" \\ \n {k} \ud83d'
    asking(body={"q": "body: {text}"}).search(Query("q", text), 2)
    assert served.requests[0].body == {"q": f"body: {text[:-1]}\ufffd"}


def test_raw_sends_the_same_for_every_query(served: Service, asking: Asking) -> None:
    asking("/?q={{text}}", raw=True, body={"q": "{text}"}).search(QUERY, 2)
    assert served.requests[0].body == {"q": "{text}"}
    assert served.requests[0].path == "/?q={{text}}"


def test_a_filter_is_put_where_its_values_belong(served: Service, asking: Asking) -> None:
    body = {**BODY, "where": {"tenant": "{filter.tenant}", "since": "{filter.since.gte}"}}
    headers = {"X-Tenant": "t {filter.tenant}"}
    retriever = asking("/?t={filter.tenant}", body=body, headers=headers, missing="drop")
    assert retriever.capabilities.filters
    asked = parse_filter({"tenant": "é", "since": {"gte": 2020}})
    retriever.search(Query("q", "a", filter=asked), 2)
    retriever.search(Query("q", "a", filter=parse_filter({"tenant": "b"})), 2)
    retriever.search(Query("q", "a"), 2)
    first, second, third = served.requests
    assert first.body["where"] == {"tenant": "é", "since": 2020}
    assert first.headers["x-tenant"].encode("latin-1").decode() == "t é"
    assert second.body["where"] == {"tenant": "b"}
    assert [one.path for one in served.requests] == ["/?t=%C3%A9", "/?t=b", "/"]
    assert "where" not in third.body
    assert "x-tenant" not in third.headers


def test_a_query_without_the_value_is_an_error_unless_it_may_be_dropped(asking: Asking) -> None:
    with pytest.raises(ContractError, match=r"'7' has no value for \{filter.tenant\}") as caught:
        asking(body={**BODY, "t": "{filter.tenant}"}).search(QUERY, 2)
    assert "missing: drop" in str(caught.value)
    with pytest.raises(ContractError, match="take the placeholder out of the path"):
        asking("/{filter.tenant}", missing="drop").search(QUERY, 2)


def test_a_condition_without_a_place_is_an_error(served: Service, asking: Asking) -> None:
    asked = parse_filter({"tenant": "b", "year": 2020})
    with pytest.raises(ContractError, match="has year, for which the request has no place"):
        asking(body={**BODY, "t": "{filter.tenant}"}).search(Query("q", "a", filter=asked), 2)
    assert not served.requests


def test_the_embedding_is_made_within_the_call(
    served: Service, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    from retrieval_bench_retrievers.http import http

    class Two:
        def __init__(self, model: str = "two") -> None:
            self.loaded = 0

        def load(self) -> None:
            self.loaded += 1

        def encode_query(self, text: str) -> Any:
            return np.array([[len(text), 0.5]], dtype=np.float32)

        def describe(self) -> dict[str, Any]:
            return {"model": "two"}

    monkeypatch.setattr(http, "Encoder", Two)
    body = {"v": "{embedding}", "q": "near {embedding}"}
    retriever = asking(body=body, encoder={"model": "two"})
    retriever.use_k(2)
    ranking = retriever.search(QUERY, 2)
    assert served.requests[0].body == {"v": [8.0, 0.5], "q": "near [8.0, 0.5]"}
    assert set(ranking.stages) == {"encode", "request", "wrapper"}
    assert retriever.describe()["encoder"] == {"model": "two"}
    with pytest.raises(ConfigError, match="encoder: unknown key 'modle'"):
        asking(body=body, encoder={"modle": "two"})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"url": "localhost:9200/{text}"}, "begins with http:// or https://"),
        ({"url": "http://h:port/{text}"}, "url cannot be read"),
        ({"body": {"k": "{k}"}}, "nothing of the query is in the request"),
        ({"body": {"v": "{embedding}"}}, "{embedding} without encoder"),
        ({"encoder": {}}, "encoder without {embedding}"),
        ({"body": {**BODY, "n": {"k": None}}}, "{k} without quotes"),
        ({"body": {**BODY, "at": datetime(2026, 1, 1)}}, "the body is no JSON"),
        ({"id": None}, "how to read an answer: hits, score"),
        ({"ids": "ids"}, "how to read an answer: hits, id, score, ids"),
        ({"hits": "a..b"}, "hits = 'a..b' is no JMESPath"),
        ({"order": "up"}, "order = 'up'"),
        ({"missing": "skip"}, "missing = 'skip'"),
        ({"connections": "two"}, "connections = 'two'"),
        ({"server_time": {"minutes": "took"}}, "server_time = {'minutes': 'took'}"),
        ({"server_time": {}}, "server_time = {}"),
        ({"timeout_s": 0.0}, "timeout_s = 0.0"),
        ({"method": "GET it"}, "method = 'GET it'"),
        ({"headers": {"a": ["b"]}}, "header 'a' is of type list"),
        ({"headers": {"Authorization": "Bearer abc"}}, "the value of the header 'Authorization'"),
        ({"url": "http://me:pass@h/{text}"}, "user and password in the url"),
        ({"ca": "no.pem"}, "ca = 'no.pem' cannot be read"),
        ({"ca": "no.pem", "verify": False}, "ca and verify: false"),
        ({"external": {"name": "x"}}, "unknown key 'name'"),
    ],
)
def test_parameters_that_do_not_fit_are_told(
    asking: Asking, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        asking(**params)
    assert message in str(caught.value)
    assert "pass@" not in str(caught.value)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda _name: None)
    with pytest.raises(MissingDependencyError) as caught:
        construct("http", {"url": "http://h/{text}", **READ})
    assert "the package httpx2 is not installed" in str(caught.value)
    assert "the extra `http`" in str(caught.value)


def test_what_came_from_the_environment_is_no_placeholder_in_a_leg_either(
    served: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODD", "/{k}")
    params = {"url": served.url + "${ODD}/{k}", "body": BODY, **READ}
    leg = {"target": "http", "name": "one", "params": params}
    both = {"legs": [leg, {**leg, "name": "two"}], "depth": 2}
    hybrid = inline_config({"target": "hybrid", "params": both}).build()
    hybrid.search(QUERY, 2)
    assert [one.path for one in served.requests] == ["/%7Bk%7D/2"] * 2
    hybrid.close()


# --- what is read


def test_parallel_lists_are_read_and_distances_become_scores(
    served: Service, asking: Asking
) -> None:
    answer = {"ids": [["a", 7]], "distances": [[0.25, 0.5]]}
    served.answer = replies(Reply(answer))
    lists = {"hits": None, "id": None, "score": None, "ids": "ids[0]", "scores": "distances[0]"}
    ranking = asking(**lists, order="ascending").search(QUERY, 2)
    assert (list(ranking.doc_ids), ranking.scores) == (["a", "7"], [-0.25, -0.5])
    assert asking(**{**lists, "scores": None}).search(QUERY, 1).scores is None


def test_without_a_score_the_order_is_the_ranking(served: Service, asking: Asking) -> None:
    retriever = asking(score=None)
    assert not retriever.capabilities.has_scores
    assert retriever.search(QUERY, 2).doc_ids == ["a", "b"]


def test_hits_beyond_k_are_cut_off(asking: Asking) -> None:
    assert asking().search(QUERY, 1).doc_ids == ["a"]


def test_expressions_may_be_any_jmespath(served: Service, asking: Asking) -> None:
    served.answer = replies(Reply([{"doc": {"the id": 1}, "s": "0.5"}, {"doc": {"the id": 2.5}}]))
    read = {"hits": "[?s]", "id": 'doc."the id"', "score": "s"}
    assert list(asking(**read).search(QUERY, 2)) == [("1", 0.5)]


def test_the_time_of_the_server_is_a_stage(served: Service, asking: Asking) -> None:
    served.answer = replies(hits(("a", 1.0), took=1.5, time=0.002))
    stages = asking(server_time="took").search(QUERY, 2).stages
    assert (set(stages), stages["server"]) == ({"request", "server", "wrapper"}, 1_500_000)
    assert asking(server_time={"s": "time"}).search(QUERY, 2).stages["server"] == 2_000_000
    with pytest.raises(ContractError, match="server_time found nothing in the answer"):
        asking(server_time="tok").search(QUERY, 2)


def test_what_the_call_used_up_is_read(served: Service, asking: Asking) -> None:
    served.answer = replies(hits(("a", 1.0), usage={"prompt_tokens": 7}, cost=0.25))
    how = {"tokens_in": "usage.prompt_tokens", "money": "cost", "tokens_out": "usage.nothing"}
    with collected() as reported:
        asking(usage=how).search(QUERY, 2)
    assert reported() == Usage(tokens_in=7, tokens_out=0, calls=1, money=0.25)
    with pytest.raises(ConfigError, match=r"usage = \{'tokens': 'x'\}"):
        asking(usage={"tokens": "x"})
    served.answer = replies(hits(("a", 1.0), cost=-1))
    with collected(), pytest.raises(ContractError, match="usage with money = -1"):
        asking(usage={"money": "cost"}).search(QUERY, 2)


def test_a_slow_body_is_in_the_request(served: Service, asking: Asking) -> None:
    served.answer = replies(Reply(TWO.body, pause_s=0.05))
    assert asking().search(QUERY, 2).stages["request"] >= 50_000_000


@pytest.mark.parametrize(
    ("body", "params", "messages"),
    [
        ({"hits": []}, {"hits": "hits.hits"}, ["hits found nothing", "the answer has hits"]),
        ({"took": 1, "hits": {"total": 1}}, {}, ["a mapping, no list", "took, hits; hits: total"]),
        ({"hits": [{"_id": "a"}]}, {}, ["id found nothing at rank 1", "hits[]: _id"]),
        ({"hits": [{"id": ["a"], "score": 1}]}, {}, ["id found a list"]),
        ({"hits": [{"id": True, "score": 1}]}, {}, ["id found true or false"]),
        ({"hits": [{"id": 1.10, "score": 1}]}, {}, ["id found the number 1.1 at", "whole number"]),
        ({"hits": [{"id": "a", "score": None}]}, {}, ["score found nothing at rank 1"]),
        ({"hits": [{"id": "a", "score": "high"}]}, {}, ["score found a text"]),
        ([1, 2], {}, ["hits found nothing", "no keys, it is a list"]),
        ({"hits": 3}, {"hits": "keys(hits)"}, ["hits cannot be applied to the answer"]),
        (
            {"i": ["a"], "s": []},
            {"hits": None, "id": None, "score": None, "ids": "i", "scores": "s"},
            ["1 ids and 0 scores"],
        ),
    ],
)
def test_an_answer_that_the_expressions_do_not_fit_ends_the_run_with_its_keys(
    served: Service, asking: Asking, body: Any, params: dict[str, Any], messages: list[str]
) -> None:
    served.answer = replies(Reply(body))
    with pytest.raises(ContractError) as caught:
        asking(**params).search(QUERY, 2)
    for message in messages:
        assert message in str(caught.value)


def test_scores_out_of_order_are_told_with_the_remedy(served: Service, asking: Asking) -> None:
    served.answer = replies(hits(("a", 0.25), ("b", 0.5)))
    with pytest.raises(ContractError, match=r"rises from 0.25 to 0.5 at rank 2") as caught:
        asking().search(QUERY, 2)
    assert "`order: ascending` if these are distances" in str(caught.value)
    served.answer = replies(TWO)
    with pytest.raises(ContractError, match=r"falls from 2.0 to 1.5 at rank 2") as caught:
        asking(order="ascending").search(QUERY, 2)
    assert "`order: descending`" in str(caught.value)


def test_an_error_within_an_answer_fails_the_query_alone(served: Service, asking: Asking) -> None:
    served.answer = replies(Reply({"errors": [{"message": "no such class"}], "data": None}))
    with pytest.raises(CallError, match=r"answered an error: .*no such class"):
        asking().search(QUERY, 2)


@pytest.mark.parametrize("content", [b"<html>busy</html>", b"", b'{"hits": ', b"\xff\xfe"])
def test_what_is_no_json_fails_the_query(served: Service, asking: Asking, content: bytes) -> None:
    served.answer = replies(Reply(content))
    with pytest.raises(CallError, match="the answer is no JSON"):
        asking().search(QUERY, 2)


# --- failures


@pytest.mark.parametrize(
    ("status", "transient"),
    [(400, False), (404, False), (408, True), (429, True), (500, True), (503, True)],
)
def test_statuses_are_told_apart(
    served: Service, asking: Asking, status: int, transient: bool
) -> None:
    served.answer = replies(Reply(b"no\nindex " + b"x" * 300, status=status))
    with pytest.raises(CallError) as caught:
        asking().search(QUERY, 2)
    assert isinstance(caught.value, TransientError) is transient
    begin = f"127.0.0.1:{served.port} answered {status}: no index xxx"
    assert str(caught.value).startswith(begin)
    assert len(str(caught.value)) < 260


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("soon", None), (None, None), ("-1", 0.0), ("inf", None)],
)
def test_a_service_may_ask_to_wait(
    served: Service, asking: Asking, header: str | None, seconds: float | None
) -> None:
    headers = {} if header is None else {"Retry-After": header}
    served.answer = replies(Reply({}, status=429, headers=headers), TWO)
    retriever = asking()
    with pytest.raises(TransientError) as caught:
        retriever.search(QUERY, 2)
    assert caught.value.retry_after == seconds
    assert len(retriever.search(QUERY, 2)) == 2


def test_a_service_may_say_until_when(served: Service, asking: Asking) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    served.answer = replies(Reply({}, status=503, headers={"Retry-After": later}))
    with pytest.raises(TransientError) as caught:
        asking().search(QUERY, 2)
    assert 3000 < (caught.value.retry_after or 0) <= 3600


def test_a_dropped_connection_may_be_tried_again(served: Service, asking: Asking) -> None:
    served.answer = replies(Reply(drop=True), TWO)
    retriever = asking()
    with pytest.raises(TransientError, match=f"the connection to 127.0.0.1:{served.port} broke"):
        retriever.search(QUERY, 2)
    assert len(retriever.search(QUERY, 2)) == 2


def test_a_service_that_hangs_is_given_up(served: Service, asking: Asking) -> None:
    served.answer = replies(Reply(hang=True))
    with pytest.raises(TransientError, match="did not answer in time"):
        asking(timeout_s=0.05).search(QUERY, 2)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
def test_after_a_deadline_the_next_query_gets_its_own_answer(
    served: Service, asking: Asking
) -> None:
    def late(_request: Request) -> Reply:
        signal.pthread_kill(some(threading.main_thread().ident), signal.SIGALRM)
        return Reply(hang=True)

    served.answer = replies(TWO)
    retriever = asking()
    retriever.search(QUERY, 2)
    served.answer = late
    with deadline(60) as timer:
        timer.arm()
        with pytest.raises(QueryTimeoutError):
            retriever.search(QUERY, 2)
    served.answer = replies(hits(("c", 1.0)))
    assert retriever.search(QUERY, 2).doc_ids == ["c"]
    assert served.connections == retriever.describe()["connections_opened"] == 2


def test_whatever_interrupts_a_call_its_connection_is_not_used_again(
    served: Service, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = asking()
    retriever.search(QUERY, 2)
    with monkeypatch.context() as patched:
        patched.setattr(httpx.Client, "send", _interrupted)
        with pytest.raises(QueryTimeoutError):
            retriever.search(QUERY, 2)
    retriever.search(QUERY, 2)
    assert served.connections == 2


def _interrupted(*_: Any, **__: object) -> httpx.Response:
    raise QueryTimeoutError


def test_a_host_that_was_never_reached_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    port = free_port()
    retriever = construct("http", {"url": f"http://127.0.0.1:{port}/{{text}}", **READ})
    with pytest.raises(ConfigError, match=f"nothing can be reached at 127.0.0.1:{port}") as caught:
        retriever.search(QUERY, 2)
    assert "start the service" in str(caught.value)
    retriever.close()


def test_a_host_that_is_gone_later_may_come_back() -> None:
    with service(replies(TWO)) as running:
        retriever = construct("http", {"url": f"{running.url}/{{text}}", **READ})
        retriever.search(QUERY, 2)
    with pytest.raises(TransientError):  # of the connection that was open
        retriever.search(QUERY, 2)
    with pytest.raises(TransientError, match=f"no connection to 127.0.0.1:{running.port}"):
        retriever.search(QUERY, 2)
    retriever.close()


def test_a_redirect_on_the_same_host_is_followed_and_told(served: Service, asking: Asking) -> None:
    served.answer = replies(Reply({}, status=307, headers={"Location": "/new"}), TWO)
    retriever = asking()
    assert len(retriever.search(QUERY, 2)) == 2
    assert [one.path for one in served.requests] == ["/search", "/new"]
    assert served.requests[1].body == served.requests[0].body
    assert any("redirected 1 request," in line for line in retriever.health([QUERY]))


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://elsewhere.example/x?token=abc", "redirect to http://elsewhere.example:80, which"),
        ("http://127.0.0.1:9/x", "redirect to http://127.0.0.1:9, which is not followed"),
        ("//user:pass@other.example/", "redirect to http://other.example:80"),
    ],
)
def test_a_redirect_to_another_host_is_refused(
    served: Service, asking: Asking, location: str, message: str
) -> None:
    served.answer = replies(Reply({}, status=307, headers={"Location": location}))
    with pytest.raises(CallError) as caught:
        asking().search(QUERY, 2)
    assert message in str(caught.value)
    assert "token" not in str(caught.value)
    assert "pass" not in str(caught.value)
    assert not isinstance(caught.value, TransientError)


def test_a_redirect_that_would_lose_the_query_is_refused(served: Service, asking: Asking) -> None:
    served.answer = replies(Reply({}, status=302, headers={"Location": "/new"}), TWO)
    with pytest.raises(CallError, match="would turn POST into GET"):
        asking().search(QUERY, 2)
    served.answer = replies(Reply({}, status=307, headers={"Location": "/again"}))
    with pytest.raises(CallError, match="answered 307"):
        asking().search(QUERY, 2)


def test_a_downgrade_is_refused_and_an_upgrade_is_not() -> None:
    from retrieval_bench_retrievers.http.client import Line

    line = Line(reuse=True, timeout_s=None, verify=False)

    def redirected(here: str, there: str) -> httpx.Request:
        request = httpx.Request("GET", here)
        response = httpx.Response(301, request=request)
        response.next_request = httpx.Request("GET", there)
        return line._allowed(response)

    assert redirected("http://h/a", "https://h/a").url == "https://h/a"
    for here, there in (("https://h/a", "http://h/a"), ("http://h/a", "https://i/a")):
        with pytest.raises(CallError, match="is not followed"):
            redirected(here, there)


# --- connections


@pytest.mark.parametrize(("connections", "opened"), [("reused", 1), ("new", 3)])
def test_connections_are_counted(
    served: Service, asking: Asking, connections: str, opened: int
) -> None:
    retriever = asking(connections=connections)
    for _ in range(3):
        retriever.search(QUERY, 2)
    assert served.connections == opened
    facts = retriever.describe()
    assert (facts["connections"], facts["connections_opened"]) == (connections, opened)


def test_certificates_are_checked_unless_told_otherwise(tmp_path: Path) -> None:
    from retrieval_bench_retrievers.http.client import certificates

    assert certificates(None, True, Path).verify_mode is ssl.CERT_REQUIRED
    assert certificates(None, False, Path).verify_mode is ssl.CERT_NONE
    (tmp_path / "empty.pem").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be read"):
        certificates(str(tmp_path / "empty.pem"), True, Path)


# --- what is never shown


def test_no_secret_is_shown_anywhere(
    served: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_URL", f"http://me:pa%2Fss@127.0.0.1:{served.port}")
    monkeypatch.setenv("MY_TOKEN", "t0ken-of-mine")
    params = {
        "url": "${MY_URL}/?key=${MY_TOKEN}",
        "headers": {"X-Api-Key": "Key ${MY_TOKEN}", "X-Org": "org-of-mine"},
        "body": BODY,
        **READ,
    }
    retriever = inline_config({"target": "http", "params": params}).build()
    said = []

    def echo(request: Request) -> Reply:
        told = [request.headers[name] for name in ("authorization", "x-api-key", "x-org")]
        return Reply([*told, request.path], status=400)

    served.answer = echo
    with caplog.at_level(logging.DEBUG), pytest.raises(CallError) as caught:
        retriever.search(QUERY, 2)
    assert served.requests[0].headers["authorization"].startswith("Basic bWU6cGEvc3M=")
    assert served.requests[0].headers["x-api-key"] == "Key t0ken-of-mine"
    said += [str(caught.value), repr(retriever), json.dumps(dict(retriever.describe()))]
    logged = [record.getMessage() for record in caplog.records]
    assert any("key=${MY_TOKEN}" in line for line in logged)
    assert "***" in str(caught.value)
    for secret in ("pa/ss", "pa%2Fss", "bWU6cGEvc3M=", "t0ken-of-mine", "org-of-mine"):
        assert secret not in "\n".join([*said, *logged])
    retriever.close()


def test_a_header_that_cannot_be_sent_is_not_shown(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = asking(headers={"X-Text": "{text}"})
    with pytest.raises(CallError) as caught:
        retriever.search(Query("q", "one\r\ntwo"), 2)
    assert "holds what HTTP cannot carry" in str(caught.value)
    assert "two" not in str(caught.value)


# --- advice and whole runs


def test_health_says_when_fewer_hits_came_than_were_asked_for(
    served: Service, asking: Asking
) -> None:
    retriever = asking()
    assert not retriever.health([QUERY])
    retriever.search(QUERY, 3)
    (line,) = retriever.health([QUERY])
    assert "at most 2 of 3" in line
    retriever.search(QUERY, 2)
    assert not retriever.health([QUERY])
    empty = asking()
    served.answer = replies(hits())
    empty.search(QUERY, 3)
    (line,) = empty.health([QUERY])
    assert "found nothing" in line


def test_the_declared_index_is_in_the_facts(asking: Asking) -> None:
    declared = {"index": "articles", "version": "3", "count": 10}
    retriever = asking(external=declared)
    assert retriever.describe()["external"] == declared
    assert retriever.capabilities.external


def _dataset(folder: Path) -> list[Document]:
    """Ten documents of two tenants, and a query for each."""
    documents = [
        Document(f"d{at}", f"word{at % 5} stone", metadata={"tenant": "ab"[at % 2]})
        for at in range(10)
    ]
    lines = [{"_id": d.id, "text": d.text, "metadata": dict(d.metadata)} for d in documents]
    asked = {f"q{at}": f"word{at}" for at in range(5)}
    beir(folder, lines, asked, [(f"q{at}", f"d{at}", 1) for at in range(5)])
    return documents


def test_filters_are_applied_by_the_service(
    served: Service, asking: Asking, tmp_path: Path
) -> None:
    served.answer = searching(_dataset(tmp_path))
    retriever = asking(body={**BODY, "filter": "{filter}"}, missing="drop")
    asked = parse_filter({"or": [{"tenant": "a"}, {"tenant": "c"}]})
    found = retriever.search(Query("q", "stone", filter=asked), 10).doc_ids
    assert found == ["d0", "d2", "d4", "d6", "d8"]
    assert len(retriever.search(Query("q", "stone"), 10)) == 10


@pytest.mark.slow
def test_texts_and_sources_of_hits_are_read(served: Service, asking: Asking) -> None:
    content = {"hits": [{"id": "a", "body": "연차", "at": "x.md"}, {"id": "b", "at": "y.md"}]}
    served.answer = replies(Reply(content))
    given = {"hits": "hits", "id": "id", "score": None}
    ranking = asking(**given, text="body", source="at").search(QUERY, 2)
    assert (ranking.texts, ranking.sources) == (["연차", None], ["x.md", "y.md"])
    lists = {"hits": None, "id": None, "score": None, "ids": "hits[].id"}
    ranking = asking(**lists, source="hits[].at").search(QUERY, 1)
    assert (ranking.texts, ranking.sources) == (None, ["x.md"])
    with pytest.raises(ContractError, match="source found a list at rank 1"):
        asking(**given, source="[at]").search(QUERY, 2)


@pytest.mark.usefixtures("no_pauses")
def test_a_query_that_fails_does_not_end_a_run(served: Service, tmp_path: Path) -> None:
    search = searching(_dataset(tmp_path))
    faults = {"word1": Reply(b"busy", status=503), "word2": Reply(b"{"), "word3": Reply(drop=True)}

    def answer(request: Request) -> Reply:
        return faults.get(request.body["text"]) or search(request)

    served.answer = answer
    params = {"url": served.url, "body": BODY, **READ}
    run = bench({"target": "http", "params": params}, tmp_path, k=5, protocol=QUICK).run
    statuses = dict(zip(run.rankings.query_ids, run.status, strict=True))
    said = {query: status for query, status in statuses.items() if status != "ok"}
    assert set(said) == {"q1", "q2", "q3"}
    assert f"TransientError: 127.0.0.1:{served.port} answered 503: busy" in said["q1"]
    assert "CallError: the answer is no JSON: {" in said["q2"]
    assert "TransientError: the connection to" in said["q3"]


def test_a_run_measures_the_service_and_keeps_its_facts(served: Service, tmp_path: Path) -> None:
    documents = _dataset(tmp_path)
    served.answer = searching(documents)
    params = {"url": f"{served.url}/search", "body": BODY, **READ, "server_time": "took"}
    result = bench({"target": "http", "params": params}, tmp_path, k=5, protocol=QUICK)
    summary, facts = result.run.summary.as_dict(), result.run.manifest["retriever"]["facts"]
    assert summary["metrics"]["nDCG@5"]["mean"] > 0.5
    assert facts["connections_opened"] == served.connections
    stages = summary["stages_ms"]
    direct = {name for name, stage in stages.items() if stage["direct"]}
    assert direct == {"request", "wrapper", "other"}
    assert stages["server"]["p50"] == 0.25


@pytest.mark.parametrize(
    "given",
    [
        {"headers": {"X-Auth": "plain"}},
        {"headers": {"My-Credential": "plain"}},
        {"url": "http://localhost:1/search?q={text}&api_key=plain"},
        {"url": "http://localhost:1/search?q={text}&access_token=plain"},
    ],
)
def test_a_secret_written_into_the_config_is_refused(given: dict[str, Any]) -> None:
    usual = {"url": "http://localhost:1/search?q={text}", "ids": "ids"}
    with pytest.raises(ConfigError) as raised:
        HTTP(**{**usual, **given})
    assert "stands in the config" in raised.value.given
    assert "plain" not in str(raised.value)
    assert HTTP(url="http://localhost:1/s?q={text}&keyword=plain&author=x", ids="ids")


class TestProxiesOfTheEnvironment:
    @pytest.fixture(autouse=True)
    def alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)

    @pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
    def test_loopback_never_goes_through_one(
        self, served: Service, monkeypatch: pytest.MonkeyPatch, name: str, host: str
    ) -> None:
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        served.answer = replies(TWO)
        retriever = HTTP(
            url=f"http://{host}:{served.port}/search", body={"q": "{text}"}, hits="hits", id="id"
        )
        assert len(retriever.search(QUERY, 2)) == 2
        assert "requests_by_proxy" not in retriever.describe()
        retriever.close()

    def test_one_that_stands_between_is_told_and_counted(
        self, served: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:secret@127.0.0.1:{served.port}")
        served.answer = replies(TWO)
        retriever = HTTP(url="http://engine.example/s?q={text}", hits="hits", id="id")
        retriever.search(QUERY, 2)
        retriever.search(QUERY, 2)
        assert served.requests[0].path.startswith("http://engine.example/s?q=")
        assert retriever.describe()["requests_by_proxy"] == 2
        (told,) = [text for text in retriever.health([QUERY]) if "proxy" in text]
        assert told.startswith("2 requests went through the proxy that the environment names")
        assert "secret" not in told
        retriever.close()

    def test_another_name_of_this_machine_never_goes_through_one_either(
        self, served: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", served.url)
        retriever = HTTP(url="http://127.0.1.1:9/s?q={text}", hits="hits", id="id")
        with pytest.raises(ConfigError, match=r"127\.0\.1\.1:9") as caught:
            retriever.search(QUERY, 2)
        assert "proxy" not in str(caught.value)
        assert not served.requests
        retriever.close()

    @pytest.mark.parametrize(
        ("host", "loopback"),
        [
            *(("localhost", True), ("engine.localhost", True), ("127.9.8.7", True), ("::1", True)),
            *(("localhost.example", False), ("128.0.0.1", False), ("", False), ("::2", False)),
        ],
    )
    def test_this_machine_has_many_names(self, host: str, loopback: bool) -> None:
        from retrieval_bench_retrievers.http.client import is_loopback

        assert is_loopback(host) == loopback

    def test_no_proxy_takes_a_host_out(
        self, served: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from retrieval_bench_retrievers.http.client import proxy_of

        monkeypatch.setenv("HTTP_PROXY", "127.0.0.1:9")
        url = httpx.URL("http://engine.example:9200/s")
        assert proxy_of(url) == "127.0.0.1:9"
        monkeypatch.setenv("NO_PROXY", "engine.example")
        assert proxy_of(url) == ""

    def test_a_dead_one_is_named_and_not_the_service(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
        retriever = HTTP(url="http://engine.example/s?q={text}", hits="hits", id="id")
        with pytest.raises(ConfigError) as caught:
            retriever.search(QUERY, 2)
        said = str(caught.value)
        assert "engine.example:80 through the proxy 127.0.0.1:9 of the environment" in said
        assert "start the proxy, or name the host of the service in NO_PROXY" in said
        assert "secret" not in said
        retriever.close()
