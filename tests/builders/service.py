"""A search service on loopback that answers as it is told: well, late, wrongly or not at all."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.types import Document, Query
from tests.builders.reference import TermOverlap


@dataclass(frozen=True)
class Request:
    """What a client sent; ``path`` with its query, header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """The content as JSON."""
        return json.loads(self.content)


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        body: bytes as they are, anything else as JSON.
        drop: close the connection in place of an answer.
        hang: answer nothing until the service is closed.
        pause_s: seconds to wait in the middle of the body.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    hang: bool = False
    pause_s: float = 0.0

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Service:
    """What a test sees of the service.

    Attributes:
        url: without a path.
        requests: all that came, in order.
        answer: makes the reply to a request; a test may set another.
    """

    def __init__(
        self, port: int, answer: Callable[[Request], Reply], opened: Sequence[socket.socket]
    ) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.answer = answer
        self.requests: list[Request] = []
        self._opened = opened

    @property
    def connections(self) -> int:
        """Opened by clients so far."""
        return len(self._opened)


def replies(*given: Reply) -> Callable[[Request], Reply]:
    """One reply after the other; the last one goes on."""
    left = list(given)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


def hits(*scored: tuple[str, float], **more: Any) -> Reply:
    """An answer of documents and scores."""
    return Reply({"hits": [{"id": one, "score": score} for one, score in scored], **more})


def searching(documents: Sequence[Document]) -> Callable[[Request], Reply]:
    """Search over ``documents``: the body is ``{text, k}``, and may have a ``filter``."""

    def answer(request: Request) -> Reply:
        asked = request.body
        fitting = list(documents)
        if "filter" in asked:
            wanted = parse_filter(asked["filter"])
            fitting = [one for one in documents if wanted.matches(one.metadata)]
        inner = TermOverlap()
        inner.index(fitting)
        found = inner.candidates(Query("q", asked["text"]))[: asked["k"]]
        return hits(*found, took=0.25)

    return answer


class Handler(BaseHTTPRequestHandler):
    """Says nothing of what it answers; ``opened`` gets each connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    opened: list[socket.socket]

    def setup(self) -> None:
        super().setup()
        self.opened.append(self.connection)

    def handle(self) -> None:
        with suppress(OSError):  # the client went away, or the server ends
            super().handle()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def listening(handler: type[Handler], ending: threading.Event) -> Iterator[int]:
    """The port of a server that runs until the end of the block, which sets ``ending``; afterwards
    all its sockets are closed. Meanwhile no proxy stands before it."""
    handler.opened = []
    with (
        pytest.MonkeyPatch.context() as patch,
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
    ):
        patch.setenv("NO_PROXY", "127.0.0.1")
        server.daemon_threads = False  # so that closing waits for them
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            ending.set()
            server.shutdown()
            thread.join()
            for one in handler.opened:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


@contextmanager
def service(answer: Callable[[Request], Reply], *, waits: bool = False) -> Iterator[Service]:
    """A service of :func:`listening`.

    Args:
        waits: it sends the second piece of an answer when the first one is acknowledged.
    """
    ending = threading.Event()

    class Answering(Handler):
        disable_nagle_algorithm = not waits

        def do(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, self.rfile.read(length))
            running.requests.append(request)
            reply = running.answer(request)
            if reply.hang:
                ending.wait()
            if reply.hang or reply.drop:
                self.close_connection = True
                return
            content = reply.content
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(content)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            half = len(content) // 2
            self.wfile.write(content[:half])
            if reply.pause_s:
                self.wfile.flush()
                ending.wait(reply.pause_s)
            self.wfile.write(content[half:])

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do  # noqa: N815 - the library names them

    with listening(Answering, ending) as port:
        running = Service(port, answer, Answering.opened)
        yield running


def free_port() -> int:
    """A port of loopback that nothing listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
