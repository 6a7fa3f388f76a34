"""The page on the loopback address of this machine, for whoever knows its URL.

Everything is refused that is not asked of this machine, by name of the loopback address, with the
token in the path and, of a browser, by the page itself. No path leads to a file: there are seven
addresses, each with an answer of its own.

Token and port are kept in the file of labels, so that a page that is still open goes on by itself
when the server was killed and started again. That opens nothing: who may read the file has all that
the token guards, and other origins are refused whatever they know.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, HarnessError, RecordError
from retrieval_bench.data.files.lines import parse_json
from retrieval_bench_labels.judge.judging import ChangedPoolError, Judging, Question, checked_name
from retrieval_bench_labels.label import Label, Pair
from retrieval_bench_labels.page.judging_page import POLICY, script, served_page, style

ADDRESS = "127.0.0.1"

BODY = 64 * 1024
"""Bytes of a body; a longer one is refused unread."""

WAIT_S = 10.0
"""For which a client may be silent before its connection is closed."""

_DRAINED = 1024 * 1024
"""Bytes of a refused body that are read, so that the client gets to read the answer."""

FACT = "page"
"""Under which the file of labels keeps token and port."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",
}
"""Of every answer."""

_HTML, _JS, _CSS, _JSON = (
    f"{kind}; charset=utf-8"
    for kind in ("text/html", "text/javascript", "text/css", "application/json")
)


_Answer = tuple[str, str]
"""Kind and content."""


class _RefusedError(Exception):
    """A request that gets no answer but a status and a sentence."""

    def __init__(self, status: HTTPStatus, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


@dataclass(frozen=True, slots=True)
class ServedPage(Documented):
    """A page to judge on that is served.

    Attributes:
        url, port: of the page; printed when it is ready.
    """

    url: str
    port: int


class LabelServer(ThreadingHTTPServer):
    """The page and its answers; :func:`open_server` makes one.

    Args:
        judging: what is shown, and where answers go.
        port: of the loopback address, 0 = any that is free.
        token: without which nothing is answered.
        who: the name that the page proposes.
        tell: is given a sentence about what went wrong in here.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # there it would let two servers have one port
    request_queue_size = 64

    def __init__(
        self,
        judging: Judging,
        port: int,
        token: str,
        who: str = "",
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.judging = judging
        self.token = token
        self.who = who
        self.tell = tell
        super().__init__((ADDRESS, port), _Handler)

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    @property
    def hosts(self) -> frozenset[str]:
        """The names by which it may be called: a name that somebody else's DNS leads here is none
        of them."""
        named = {f"{name}:{self.port}" for name in (ADDRESS, "localhost")}
        return frozenset(named | ({ADDRESS, "localhost"} if self.port == 80 else set()))

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # the library would ask the DNS for a name that nobody needs
        self.server_name, self.server_port = ADDRESS, self.port

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or whatever the handler did not answer, ends that call alone."""


def open_server(
    judging: Judging,
    port: int | None = None,
    who: str = "",
    tell: Callable[[str], None] = lambda text: None,
) -> LabelServer:
    """A server that listens; ``serve_forever`` answers.

    Args:
        port: None = that of the last time, or any other one where that is taken.

    Raises:
        ConfigError: ``port`` is taken.
        RecordError: the file of labels cannot be written.
    """
    kept = judging.store.fact(FACT)
    known: dict[str, Any] = kept if isinstance(kept, dict) else {}
    token = str(known.get("token") or secrets.token_urlsafe(24))
    if port is not None:
        server = _listening(judging, port, token, who, tell)
        if server is None:
            raise ConfigError(
                f"port {port} cannot be used",
                where=ADDRESS,
                accepted="a port from 1024 to 65535 on which nothing listens",
                fix="name another one with --port, or none",
            )
    else:
        before = int(known.get("port", 0))
        listening = _listening(judging, before, token, who, tell)
        server = listening or _listening(judging, 0, token, who, tell)
        if server is None:
            raise ConfigError(
                "no port can be opened",
                where=ADDRESS,
                accepted="a machine whose loopback address can be used",
                fix="write the page as a file: --offline FILE",
            )
        if before and listening is None:  # another server of this file has it
            return server
    judging.store.set_fact(FACT, {"token": token, "port": server.port})
    return server


def _listening(
    judging: Judging, port: int, token: str, who: str, tell: Callable[[str], None]
) -> LabelServer | None:
    try:
        return LabelServer(judging, port, token, who, tell)
    except (OSError, OverflowError):
        return None


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: LabelServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "retrieval-bench", ""
    timeout = WAIT_S
    disable_nagle_algorithm = True

    ROUTES: ClassVar[Mapping[tuple[str, ...], Mapping[str, Callable[[_Handler, str], _Answer]]]] = {
        ("",): {"GET": lambda self, query: (_HTML, self._page())},
        ("page.js",): {"GET": lambda self, query: (_JS, script())},
        ("page.css",): {"GET": lambda self, query: (_CSS, style())},
        ("api", "task"): {"GET": lambda self, query: (_JSON, self._state(_who(query)))},
        ("api", "progress"): {"GET": lambda self, query: (_JSON, self._progress(_who(query)))},
        ("api", "label"): {"POST": lambda self, query: (_JSON, self._label())},
        ("api", "undo"): {"POST": lambda self, query: (_JSON, self._undo())},
    }
    """Path behind the token -> method -> what answers, with the query of the URL."""

    def __getattr__(self, name: str) -> Any:
        """Whatever the method is, it is looked at in one place."""
        if name.startswith("do_"):
            return self._do
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is logged: the path holds the token."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the library refuses (no HTTP, a line too long) with our headers, too."""
        self._refuse(_RefusedError(HTTPStatus(code), message or HTTPStatus(code).phrase))

    def _do(self) -> None:
        try:
            self._answer()
        except _RefusedError as refused:
            self._refuse(refused)
        except ChangedPoolError as problem:
            self._refuse(_RefusedError(HTTPStatus.CONFLICT, f"{problem.given}; {problem.fix}"))
        except RecordError as problem:  # such as a full disk: worth another try
            self.server.tell(problem.render())
            self._refuse(_RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, problem.given))
        except HarnessError as problem:
            self._refuse(_RefusedError(HTTPStatus.BAD_REQUEST, f"{problem.given}: {problem.fix}"))
        except TimeoutError:
            self._refuse(_RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the request took too long"))
        except ConnectionError:
            self.close_connection = True
        except Exception as problem:
            self.server.tell(f"a bug: {type(problem).__name__}: {problem}")
            self._refuse(_RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, "a bug of the server"))

    def _answer(self) -> None:
        self._check_host()
        path, _, query = self.path.partition("?")
        start, token, *rest = path.split("/") if path.startswith("/") else ("", "")
        # Bytes, since the library compares no text that is not ASCII.
        if start or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _RefusedError(
                HTTPStatus.FORBIDDEN,
                "open the whole URL that `retrieval-bench label start` printed",
            )
        if not rest:
            raise _RefusedError(HTTPStatus.PERMANENT_REDIRECT, "", Location=f"/{token}/")
        methods = self.ROUTES.get(tuple(rest))
        if methods is None:
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")
        if self.command not in methods:
            allowed = ", ".join(methods)
            raise _RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"only {allowed}", Allow=allowed)
        self._check_origin(page=tuple(rest) == ("",))
        kind, content = methods[self.command](self, query)
        self._send(HTTPStatus.OK, kind, content)

    # -- who asks ----------------------------------------------------------------------------

    def _check_host(self) -> None:
        """Refuse what was asked of another name, which a DNS of somebody else leads here."""
        if (self.headers.get_all("Host") or []) not in ([host] for host in self.server.hosts):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "this server is asked by its own name only")

    def _check_origin(self, page: bool) -> None:
        """Refuse what another site asks; the page itself may be opened from a link."""
        own = {f"http://{host}" for host in self.server.hosts}
        origins = self.headers.get_all("Origin") or []
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        opened = page and self.headers.get("Sec-Fetch-Dest") == "document"
        if not set(origins) <= own or (site not in ("same-origin", "none") and not opened):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "another site may not ask this server")

    def _body(self, **fields: type | tuple[type, ...]) -> dict[str, Any]:
        """The JSON object of a request, its fields of the types that are given, and no others."""
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type is application/json"
            )
        content = self._content()
        try:
            body = parse_json(content.decode("utf-8"))
        except ValueError:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body is no JSON") from None
        if not isinstance(body, dict):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body is no JSON object")
        if unknown := body.keys() - fields.keys():
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"there is no field {sorted(unknown)[0]!r}")
        for name, kinds in fields.items():
            value = body.setdefault(name, None)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise _RefusedError(HTTPStatus.BAD_REQUEST, f"{name} is missing or of another type")
        return body

    def _content(self) -> bytes:
        lengths = self.headers.get_all("Content-Length") or []
        if "Transfer-Encoding" in self.headers or len(lengths) != 1:
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "one Content-Length is needed")
        if not re.fullmatch("[0-9]{1,18}", lengths[0]):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "Content-Length is a number")
        length = int(lengths[0])
        if length > BODY:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {BODY:,} bytes"
            )
        content = self.rfile.read(length)
        if len(content) < length:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body is cut off")
        return content

    # -- answers -----------------------------------------------------------------------------

    def _page(self) -> str:
        pool = self.server.judging.pool
        data = {
            "mode": "server",
            "dataset": pool.dataset,
            "guidelines": {str(grade): text for grade, text in pool.guidelines.items()},
            "who": self.server.who,
        }
        return served_page(data)

    def _progress(self, who: str) -> str:
        return json.dumps(asdict(self.server.judging.progress(who)))

    def _label(self) -> str:
        given = self._body(
            who=str,
            query=str,
            doc=str,
            digest=str,
            grade=(int, type(None)),
            note=(str, type(None)),
            span=(list, type(None)),
        )
        span = given["span"]
        if span is not None and (len(span) != 2 or any(type(item) is not int for item in span)):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "span is two numbers, or null")
        who = checked_name(given["who"])
        self.server.judging.answer(
            Label(
                Pair(given["query"], given["doc"]),
                who,
                given["grade"],
                digest=given["digest"],
                note=given["note"] or "",
                span=None if span is None else (span[0], span[1]),
            )
        )
        return self._state(who)

    def _undo(self) -> str:
        given = self._body(who=str, number=(int, type(None)))
        who = checked_name(given["who"])
        undone = self.server.judging.undo(who, given["number"])
        if undone is None or undone.question is None:
            return self._state(who)
        before = {"grade": undone.label.grade, "note": undone.label.note, "span": undone.label.span}
        return self._state(who, undone.question, before)

    def _state(
        self, who: str, question: Question | None = None, before: Mapping[str, object] | None = None
    ) -> str:
        """Write the state of the page: the question, the answer that it had ``before``, and how far
        all is."""
        judging = self.server.judging
        question = question or judging.next(who)
        return json.dumps(
            {
                "who": who,
                "question": None if question is None else as_json(question),
                "before": before,
                "last": judging.last(who),
                "progress": asdict(judging.progress(who)),
            }
        )

    # -- the wire ----------------------------------------------------------------------------

    def _send(self, status: HTTPStatus, kind: str, text: str, **headers: str) -> None:
        content = text.encode("utf-8", "backslashreplace")
        self.close_connection = True
        self.send_response(status)
        for name, value in {**HEADERS, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse(self, refused: _RefusedError) -> None:
        text = json.dumps({"error": str(refused)})
        with suppress(OSError):
            self._send(refused.status, _JSON, text, **refused.headers)
            if refused.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                self._drain()

    def _drain(self) -> None:
        """Read some of what is not wanted: a client that is still writing reads no answer."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(1.0)
        left = _DRAINED
        while left > 0 and (content := self.rfile.read1(1 << 16)):
            left -= len(content)


def as_json(question: Question) -> dict[str, object]:
    """A question as the script of the page reads it."""
    return {
        "query": {"id": question.query.id, "text": question.query.text},
        "document": {
            "id": question.document.id,
            "title": question.document.title,
            "text": question.document.text,
        },
        "digest": question.digest,
        "place": question.place,
        "of": question.of,
        "again": question.again,
    }


def _who(query: str) -> str:
    """The name in the query of a URL."""
    try:
        fields = parse_qs(query, keep_blank_values=True, errors="strict", max_num_fields=4)
    except ValueError:
        fields = {}
    names = fields.get("who", [])
    return checked_name(names[0] if len(names) == 1 else "")
