"""The server of the page: what it answers, and all that it refuses."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench_labels.judge import server as module
from retrieval_bench_labels.judge.judging import Judging
from retrieval_bench_labels.judge.server import BODY, LabelServer, open_server
from retrieval_bench_labels.label import Label, Pair
from retrieval_bench_labels.store import Store
from tests.builders.labels import HOSTILE, changed_text, make_pool, make_store, served

pytestmark = pytest.mark.slow

POOL = make_pool()
ANSWER: dict[str, Any] = {
    "who": "anna",
    "query": "q0",
    "doc": "d0-0",
    "digest": POOL.digests()[Pair("q0", "d0-0")],
    "grade": 2,
    "note": "",
    "span": None,
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "labels.sqlite", POOL)


@pytest.fixture
def server(store: Store) -> Iterator[LabelServer]:
    with served(store) as found:
        yield found


class Reply:
    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.content = reply.read()

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> str:
        return str(self.json["error"])


def ask(
    server: LabelServer,
    method: str,
    path: str,
    body: Any = None,
    *,
    token: str | None = None,
    raw: bytes | None = None,
    **headers: str,
) -> Reply:
    """One request; ``path`` stands behind the token, ``raw`` is a body that is no JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    content = raw if body is None else json.dumps(body).encode()
    if content is not None:
        given.setdefault("Content-Type", "application/json")
    try:
        connection.request(
            method, f"/{server.token if token is None else token}/{path}", content, given
        )
        return Reply(connection.getresponse())
    finally:
        connection.close()


def raw_answer(server: LabelServer, content: bytes) -> bytes:
    """What comes back for bytes that may be no HTTP."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(content)
        found = b""
        while more := connection.recv(1 << 16):
            found += more
        return found


class TestAnswers:
    def test_the_page_brings_its_script_and_style(self, server: LabelServer) -> None:
        page = ask(server, "GET", "")
        assert page.status == 200
        assert b'src="page.js"' in page.content
        for path, kind in (("page.js", "text/javascript"), ("page.css", "text/css")):
            found = ask(server, "GET", path)
            assert found.status == 200
            assert found.headers["Content-Type"].startswith(kind)

    def test_a_question_has_its_texts_and_says_how_far_it_is(self, server: LabelServer) -> None:
        found = ask(server, "GET", "api/task?who=anna").json
        assert found["question"]["query"] == {"id": "q0", "text": "question 0?"}
        assert found["question"]["document"]["title"] == "Title d0-0"
        assert found["question"]["digest"] == ANSWER["digest"]
        assert found["progress"]["pairs"] == 9
        assert found["last"] is None

    def test_an_answer_is_on_disk_when_it_is_acknowledged(
        self, server: LabelServer, store: Store
    ) -> None:
        found = ask(server, "POST", "api/label", {**ANSWER, "note": "메모", "span": [0, 3]})
        assert found.status == 200
        assert found.json["question"]["document"]["id"] == "d0-1"
        (label,) = Store(store.path).labels()
        assert (label.who, label.grade, label.note, label.span) == ("anna", 2, "메모", (0, 3))

    def test_a_skipped_document_is_kept_as_that(self, server: LabelServer, store: Store) -> None:
        ask(server, "POST", "api/label", {**ANSWER, "grade": None})
        assert [label.grade for label in store.labels()] == [None]

    def test_an_answer_is_taken_back_once(self, server: LabelServer, store: Store) -> None:
        number = ask(server, "POST", "api/label", {**ANSWER, "note": "why"}).json["last"]
        for _ in range(2):
            found = ask(server, "POST", "api/undo", {"who": "anna", "number": number}).json
            assert found["question"]["document"]["id"] == "d0-0"
        assert store.labels() == []

    def test_what_was_said_before_comes_back_with_it(self, server: LabelServer) -> None:
        ask(server, "POST", "api/label", {**ANSWER, "note": "why", "span": [0, 3]})
        found = ask(server, "POST", "api/undo", {"who": "anna", "number": None}).json
        assert found["before"] == {"grade": 2, "note": "why", "span": [0, 3]}

    def test_progress_is_told(self, server: LabelServer) -> None:
        ask(server, "POST", "api/label", ANSWER)
        found = ask(server, "GET", "api/progress?who=anna").json
        assert (found["judged"], found["mine"], found["worth"]) == (1, 1, 3)

    def test_several_people_are_answered_at_once(self, server: LabelServer, store: Store) -> None:
        def judge(who: str) -> None:
            state = ask(server, "GET", f"api/task?who={who}").json
            while (asked := state["question"]) is not None:
                answer = {
                    "who": who,
                    "query": asked["query"]["id"],
                    "doc": asked["document"]["id"],
                    "digest": asked["digest"],
                    "grade": 1,
                }
                state = ask(server, "POST", "api/label", answer).json

        threads = [threading.Thread(target=judge, args=(f"p{i}",)) for i in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert {label.pair for label in store.labels()} == set(POOL.pairs)


class TestHeaders:
    @pytest.mark.parametrize("path", ["", "page.js", "api/task?who=anna", "nothing"])
    def test_every_answer_forbids_what_is_not_needed(self, server: LabelServer, path: str) -> None:
        headers = ask(server, "GET", path).headers
        policy = headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'",
                     "base-uri 'none'", "form-action 'none'", "script-src 'self'"):  # fmt: skip
            assert part in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers.get("Access-Control-Allow-Origin") is None

    def test_the_server_says_nothing_of_python(self, server: LabelServer) -> None:
        assert "Python" not in str(ask(server, "GET", "").headers)


class TestWhoAsks:
    def test_it_listens_on_the_loopback_address_only(self, server: LabelServer) -> None:
        assert server.server_address[0] == "127.0.0.1"

    @pytest.mark.parametrize("path", ["", "page.js", "api/task?who=anna"])
    @pytest.mark.parametrize("token", ["", "x", "%2e%2e", "ä", "x" * 5_000])
    def test_without_the_token_nothing_is_answered(
        self, server: LabelServer, token: str, path: str
    ) -> None:
        said = raw_answer(
            server,
            f"GET /{token}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode(),
        )
        assert said.startswith(b"HTTP/1.1 403")
        assert server.token.encode() not in said

    def test_a_token_that_is_cut_or_longer_is_another_one(self, server: LabelServer) -> None:
        for token in (server.token[:-1], server.token + "x", server.token.lower() + "x"):
            assert ask(server, "GET", "", token=token).status == 403

    def test_the_slash_behind_the_token_may_be_forgotten(self, server: LabelServer) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", f"/{server.token}")
        found = connection.getresponse()
        assert (found.status, found.headers["Location"]) == (308, f"/{server.token}/")
        connection.close()

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1",
                                      "127.0.0.1", "127.0.0.1:{port}.evil.example", "[::1]:{port}",
                                      "0.0.0.0:{port}", ""])  # fmt: skip
    def test_another_host_is_refused(self, server: LabelServer, host: str) -> None:
        assert ask(server, "GET", "", Host=host.format(port=server.port)).status == 403

    def test_two_hosts_or_none_are_refused(self, server: LabelServer) -> None:
        own = f"Host: 127.0.0.1:{server.port}\r\n"
        for hosts in ("", own + "Host: evil.example\r\n"):
            request = f"GET /{server.token}/ HTTP/1.1\r\n{hosts}\r\n"
            assert raw_answer(server, request.encode()).startswith(b"HTTP/1.1 403")

    def test_localhost_is_this_machine(self, server: LabelServer) -> None:
        assert ask(server, "GET", "", Host=f"localhost:{server.port}").status == 200

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}",
                                        "http://127.0.0.1:1", "http://127.0.0.1"])  # fmt: skip
    def test_another_origin_is_refused(
        self, server: LabelServer, store: Store, origin: str
    ) -> None:
        given = origin.format(port=server.port)
        assert ask(server, "POST", "api/label", ANSWER, Origin=given).status == 403
        assert ask(server, "GET", "api/task?who=anna", Origin=given).status == 403
        assert store.labels() == []

    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_another_site_is_refused_but_for_a_link_to_the_page(
        self, server: LabelServer, store: Store, site: str
    ) -> None:
        assert ask(server, "POST", "api/label", ANSWER, Sec_Fetch_Site=site).status == 403
        assert ask(server, "GET", "page.js", Sec_Fetch_Site=site).status == 403
        framed: dict[str, Any] = {"Sec_Fetch_Site": site, "Sec_Fetch_Dest": "iframe"}
        assert ask(server, "GET", "", **framed).status == 403
        opened: dict[str, Any] = {"Sec_Fetch_Site": site, "Sec_Fetch_Dest": "document"}
        assert ask(server, "GET", "", **opened).status == 200
        assert ask(server, "GET", "api/task?who=anna", **opened).status == 403
        assert store.labels() == []

    def test_the_page_itself_may_ask(self, server: LabelServer) -> None:
        own: dict[str, Any] = {
            "Origin": f"http://127.0.0.1:{server.port}",
            "Sec_Fetch_Site": "same-origin",
        }
        assert ask(server, "POST", "api/label", ANSWER, **own).status == 200


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/page.js", "./page.js", "page.js/",
         "//page.js", "page.js%00", "..\\page.js", "api", "api/", "api/task/", "API/task",
         "index.html", "page.py", "labels.sqlite"],
    )  # fmt: skip
    def test_a_path_leads_to_no_file(self, server: LabelServer, path: str) -> None:
        found = ask(server, "GET", path)
        assert found.status == 404
        assert found.error == "there is nothing here"

    def test_a_whole_url_as_the_path_is_refused(self, server: LabelServer) -> None:
        request = f"GET http://127.0.0.1/{server.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
        assert raw_answer(server, f"{request}\r\n\r\n".encode()).startswith(b"HTTP/1.1 403")

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD",
                                        "TRACE", "BREW"])  # fmt: skip
    def test_only_the_method_of_a_path_is_answered(self, server: LabelServer, method: str) -> None:
        found = ask(server, method, "api/task?who=anna")
        assert (found.status, found.headers["Allow"]) == (405, "GET")

    def test_an_answer_is_never_a_link(self, server: LabelServer, store: Store) -> None:
        for path in ("api/label", "api/undo"):
            assert ask(server, "GET", path).status == 405
        assert store.labels() == []


class TestBodies:
    @pytest.mark.parametrize(
        ("changes", "status"),
        [
            ({"grade": 4}, 400), ({"grade": -1}, 400), ({"grade": 1.5}, 400), ({"grade": "1"}, 400),
            ({"grade": True}, 400), ({"grade": 10**400}, 400), ({"who": ""}, 400),
            ({"who": "x" * 81}, 400), ({"who": "a\x00b"}, 400), ({"who": None}, 400),
            ({"query": "q9"}, 409), ({"doc": "d1-0"}, 409), ({"doc": None}, 400),
            ({"digest": "0" * 16}, 409), ({"digest": ""}, 409), ({"digest": 3}, 400),
            ({"note": "x" * 2_001}, 400), ({"note": 3}, 400), ({"span": [0]}, 400),
            ({"span": [0, 10**9]}, 400), ({"span": [5, 2]}, 400), ({"span": ["0", "1"]}, 400),
            ({"span": [True, 2]}, 400), ({"span": "0-1"}, 400), ({"kind": "model"}, 400),
            ({"source": "x"}, 400), ({"who": ["anna"]}, 400),
        ],
    )  # fmt: skip
    def test_what_cannot_be_is_refused_and_not_kept(
        self, server: LabelServer, store: Store, changes: dict[str, Any], status: int
    ) -> None:
        found = ask(server, "POST", "api/label", {**ANSWER, **changes})
        assert found.status == status
        assert found.error
        assert store.labels() == []

    @pytest.mark.parametrize("missing", ["who", "query", "doc", "digest"])
    def test_what_is_missing_is_named(self, server: LabelServer, missing: str) -> None:
        given = {name: value for name, value in ANSWER.items() if name != missing}
        found = ask(server, "POST", "api/label", given)
        assert found.status == 400
        assert missing in found.error

    @pytest.mark.parametrize(
        "raw",
        [b"", b"{", b"[]", b"null", b"3", b'"x"', b"\xff\xfe", b'{"who": NaN}', b'{"a": 1, "a": 2}',
         b'{"who": "\\ud800"}', b"[" * 20_000],
    )  # fmt: skip
    def test_no_json_is_refused(self, server: LabelServer, raw: bytes) -> None:
        assert ask(server, "POST", "api/label", raw=raw).status == 400

    @pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded",
                                      "multipart/form-data; boundary=x", ""])  # fmt: skip
    def test_what_a_form_of_another_site_can_send_is_refused(
        self, server: LabelServer, store: Store, kind: str
    ) -> None:
        assert ask(server, "POST", "api/label", ANSWER, Content_Type=kind).status == 415
        assert store.labels() == []

    @pytest.mark.parametrize("more", [1, 900_000])
    def test_a_huge_body_is_refused_and_the_client_gets_to_read_that(
        self, server: LabelServer, more: int
    ) -> None:
        found = ask(server, "POST", "api/label", raw=b" " * (BODY + more))
        assert (found.status, found.error) == (413, "a body has at most 65,536 bytes")

    def test_a_body_that_is_only_announced_is_not_waited_for(self, server: LabelServer) -> None:
        start = time.monotonic()
        found = raw_answer(server, self._head(server, "Content-Length: 99999999999"))
        assert found.startswith(b"HTTP/1.1 413")
        assert time.monotonic() - start < 5

    @pytest.mark.parametrize(
        ("length", "status"),
        [("Transfer-Encoding: chunked", b"411"), ("X: y", b"411"), ("Content-Length: -1", b"400"),
         ("Content-Length: 1e3", b"400"), ("Content-Length: 5\r\nContent-Length: 6", b"411")],
    )  # fmt: skip
    def test_a_body_says_its_length_once(
        self, server: LabelServer, length: str, status: bytes
    ) -> None:
        assert raw_answer(server, self._head(server, length)).startswith(b"HTTP/1.1 " + status)

    def test_a_client_that_is_silent_is_cut_off(
        self, server: LabelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module._Handler, "timeout", 0.1)
        found = raw_answer(server, self._head(server, "Content-Length: 100"))
        assert found.startswith(b"HTTP/1.1 408")
        assert raw_answer(server, b"GET /") == b""

    @pytest.mark.parametrize("junk", [b"\x16\x03\x01\x02", b"\r\n\r\n", b"GET\r\n\r\n",
                                      b"GET / HTTP/9.9\r\n\r\n",
                                      b"GET /" + b"x" * 70_000])  # fmt: skip
    def test_what_is_no_http_ends_nothing(
        self, server: LabelServer, monkeypatch: pytest.MonkeyPatch, junk: bytes
    ) -> None:
        monkeypatch.setattr(module._Handler, "timeout", 0.2)
        with suppress(ConnectionError):
            raw_answer(server, junk)
        assert ask(server, "GET", "").status == 200

    @staticmethod
    def _head(server: LabelServer, length: str) -> bytes:
        return (
            f"POST /{server.token}/api/label HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Content-Type: application/json\r\n{length}\r\n\r\n"
        ).encode()


class TestNames:
    @pytest.mark.parametrize("query", ["", "?who=", "?who=%00", "?who=a&who=b", "?who=" + "x" * 81,
                                       "?who=%ff", "?who=a%0Ab",
                                       "?" + "&".join("abcdefgh")])  # fmt: skip
    def test_a_name_is_needed(self, server: LabelServer, query: str) -> None:
        assert ask(server, "GET", f"api/task{query}").status == 400


class TestPools:
    def test_an_answer_to_another_text_is_refused(self, server: LabelServer, store: Store) -> None:
        store.put_pool(changed_text(POOL, "d0-0", "Another text."))
        found = ask(server, "POST", "api/label", ANSWER)
        assert found.status == 409
        assert found.error.startswith("the pool has changed")
        assert found.error.endswith("reload the page")
        question = ask(server, "GET", "api/task?who=anna").json["question"]
        assert question["document"]["text"] == "Another text."

    def test_hostile_texts_are_texts(self, tmp_path: Path) -> None:
        pool = make_pool(texts=HOSTILE)
        with served(make_store(tmp_path / "hostile.sqlite", pool)) as server:
            for text in HOSTILE.values():
                question = ask(server, "GET", "api/task?who=anna").json["question"]
                assert question["document"]["text"] == text
                answer = {"who": "anna", "query": "q0", "doc": question["document"]["id"],
                          "digest": question["digest"], "grade": 0}  # fmt: skip
                assert ask(server, "POST", "api/label", answer).status == 200

    def test_a_name_of_a_dataset_ends_no_script(self, tmp_path: Path) -> None:
        pool = replace(POOL, dataset="</script><script>alert(1)</script>")
        with served(make_store(tmp_path / "named.sqlite", pool)) as server:
            page = ask(server, "GET", "").content
        assert b"alert(1)</script>" not in page
        assert page.count(b"</script>") == 2

    def test_a_disk_that_is_full_is_said_and_worth_another_try(
        self, server: LabelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(self: Store, label: Label) -> int:
            raise RecordError("cannot use the file of labels: disk is full")

        said: list[str] = []
        monkeypatch.setattr(server, "tell", said.append)
        with monkeypatch.context() as patch:
            patch.setattr(Store, "add", full)
            found = ask(server, "POST", "api/label", ANSWER)
        assert (found.status, "disk is full" in found.error) == (503, True)
        assert said
        assert ask(server, "POST", "api/label", ANSWER).status == 200

    def test_a_bug_is_told_without_the_token(
        self, server: LabelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said: list[str] = []
        monkeypatch.setattr(server, "tell", said.append)
        monkeypatch.setattr(server.judging, "next", lambda who: 1 / 0)
        assert ask(server, "GET", "api/task?who=anna").status == 500
        assert said == ["a bug: ZeroDivisionError: division by zero"]


class TestStarting:
    def test_the_url_is_the_same_the_next_time(self, store: Store) -> None:
        with served(store) as first:
            url = first.url
        with served(store) as second:
            assert second.url == url

    def test_a_second_server_of_a_file_takes_another_port(self, store: Store) -> None:
        with served(store) as first, served(store) as second:
            assert (second.token, second.port != first.port) == (first.token, True)
        with served(store) as third:
            assert third.port == first.port

    def test_a_port_that_is_taken_is_named(self, store: Store) -> None:
        with served(store) as first, pytest.raises(ConfigError, match=f"port {first.port} cannot"):
            open_server(Judging(store), first.port)

    @pytest.mark.parametrize("port", [-1, 65_536, 10**12])
    def test_a_port_that_cannot_be_is_named(self, store: Store, port: int) -> None:
        with pytest.raises(ConfigError, match=f"port {port} cannot be used"):
            open_server(Judging(store), port)

    def test_two_files_have_two_tokens(self, tmp_path: Path) -> None:
        tokens = set()
        for name in ("one", "two"):
            with served(make_store(tmp_path / name)) as server:
                tokens.add(server.token)
        assert len(tokens) == 2
        assert all(len(token) >= 32 for token in tokens)

    def test_nothing_is_logged(
        self, server: LabelServer, capfd: pytest.CaptureFixture[str]
    ) -> None:
        ask(server, "GET", "")
        ask(server, "GET", "nothing")
        raw_answer(server, b"junk\r\n\r\n")
        assert capfd.readouterr() == ("", "")
