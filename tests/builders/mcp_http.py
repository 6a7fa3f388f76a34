"""The toy server of MCP at a URL: strict about headers and sessions, answers JSON or events."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.builders.mcp_toy import MODERN, TOOL, End, Pause, Raw, Status, Toy
from tests.builders.service import Handler, listening

_META = "io.modelcontextprotocol/"
_EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}


class Running:
    """What a test sees of the server.

    Attributes:
        url: of its one endpoint.
        headers: of all requests, names in lower case.
        sessions: that it knows, of the older era.
        posted: answers and notifications that clients sent.
        methods: of HTTP, of all requests.
    """

    def __init__(self, port: int, opened: Sequence[socket.socket]) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.headers: list[Mapping[str, str]] = []
        self.sessions: set[str] = set()
        self.posted: list[Mapping[str, Any]] = []
        self.methods: list[str] = []
        self._opened, self._begun = opened, 0

    @property
    def connections(self) -> int:
        """Opened by clients so far."""
        return len(self._opened)

    def begin(self) -> str:
        """A session."""
        self._begun += 1
        name = f"session-{self._begun}"
        self.sessions.add(name)
        return name


@contextmanager
def mcp_service(
    toy: Toy, *, events: bool, held: bool = False, talks: bool = False
) -> Iterator[Running]:
    """A server that runs until the end of the block.

    Args:
        events: answers are streams of events, in pieces and with all that may stand between.
        held: a stream stays open behind the answer.
        talks: it goes on there, as does a stream in answer to a notification.
    """
    ending = threading.Event()

    class Speaking(Handler):
        def do_DELETE(self) -> None:  # noqa: N802 - the library names them
            running.methods.append("DELETE")
            running.sessions.discard(self.headers.get("mcp-session-id", ""))
            self._plain(Status(200, b""))

        def do_POST(self) -> None:  # noqa: N802
            running.methods.append("POST")
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            running.headers.append(headers)
            if refused := _refused(toy, running, message, headers):
                self._plain(refused)
                return
            if "id" not in message or "method" not in message:
                running.posted.append(message)
                list(toy.says(message))
                if talks:
                    self._begin(200, {**_EVENTS, "Transfer-Encoding": "chunked"})
                    self._talk()
                else:
                    self._plain(Status(202, b""))
                return
            says = toy.says(message)
            if message["method"] == "initialize":
                self._session = running.begin()
            if events:
                self._streamed(says)
            else:
                self._whole(message, says)

        _session = ""

        def _begin(self, status: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            if self._session:
                self.send_header("Mcp-Session-Id", self._session)
                self._session = ""
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _plain(self, given: Status) -> None:
            length = {} if given.status == 204 else {"Content-Length": str(len(given.body))}
            self._begin(given.status, {**length, **given.headers})
            self.wfile.write(given.body)

        def _whole(self, message: Mapping[str, Any], says: Iterator[Any]) -> None:
            """One JSON: what stands before the answer is left out."""
            last: Any = None
            for item in says:
                if isinstance(item, End):
                    self.close_connection = True
                    return
                if isinstance(item, Status):
                    self._plain(item)
                    return
                if isinstance(item, Pause):
                    ending.wait(item.seconds)
                elif isinstance(item, Raw) or "method" not in item:
                    last = item
            if last is None:
                self._plain(Status(200, b"", {"Content-Type": "application/json"}))
                return
            content = _bytes(last).strip()
            error = isinstance(last, dict) and last.get("error")
            status = 400 if isinstance(error, dict) and toy.era == MODERN else 200
            self._plain(Status(status, content, {"Content-Type": "application/json"}))

        def _streamed(self, says: Iterator[Any]) -> None:
            """A comment, an event without data, and each message in two lines of data where it can
            be cut, its bytes in two pieces."""
            begun = False
            for item in says:
                if isinstance(item, Status):
                    self._plain(item)
                    return
                if not begun:
                    self._begin(200, {**_EVENTS, "Transfer-Encoding": "chunked"})
                    self._chunk(b": hello\r\n\r\nid: 1\r\ndata: \r\n\r\nevent: other\ndata: no\n\n")
                    begun = True
                if isinstance(item, End):
                    self.close_connection = True
                    return
                if isinstance(item, Pause):
                    ending.wait(item.seconds)
                    continue
                content = _bytes(item).strip(b"\n")
                lines = content.replace(b', "', b',\ndata: "', 1)
                half = len(lines) // 2
                self._chunk(b"event: message\ndata: " + lines[:half])
                self._chunk(lines[half:] + b"\r\n\r\n")
            if not begun:
                self._plain(Status(200, b"", {"Content-Type": "text/event-stream"}))
                return
            if held:
                ending.wait()
            if talks:
                self._talk()
            self._chunk(b"")

        def _talk(self) -> None:
            while not ending.wait(0.002):
                self._chunk(b": keep\n\n")

        def _chunk(self, content: bytes) -> None:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))

    with listening(Speaking, ending) as port:
        running = Running(port, Speaking.opened)
        yield running


def _bytes(item: Any) -> bytes:
    return item.content if isinstance(item, Raw) else json.dumps(item, ensure_ascii=False).encode()


def _refused(
    toy: Toy, running: Running, message: Mapping[str, Any], headers: Mapping[str, str]
) -> Status | None:
    """The answer to what the specification lets no server accept."""
    method, params = message.get("method"), message.get("params") or {}
    accepted = headers.get("accept", "")
    if "application/json" not in accepted or "text/event-stream" not in accepted:
        return Status(406)
    if toy.era == MODERN:
        version = (params.get("_meta") or {}).get(f"{_META}protocolVersion")
        wanted = {"mcp-protocol-version": version, "mcp-method": method}
        if method == "tools/call":
            wanted["mcp-name"] = params["name"]
            arguments = params["arguments"]
            for name, schema in TOOL["inputSchema"]["properties"].items():  # type: ignore[index]
                if "x-mcp-header" in schema and name in arguments:
                    wanted[f"mcp-param-{schema['x-mcp-header']}".lower()] = str(arguments[name])
        wrong = [name for name, value in wanted.items() if _plain(headers.get(name)) != value]
        if wrong:
            error = {"code": -32020, "message": f"Header mismatch: {', '.join(wrong)}"}
            body = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
            return Status(400, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return None
    if method in ("initialize", "server/discover"):
        bad = method == "server/discover"
        return Status(400, b'{"error": "Bad Request: Missing session ID"}') if bad else None
    if headers.get("mcp-session-id") not in running.sessions:
        return Status(404, b"Session not found")
    known = headers.get("mcp-protocol-version") == toy.era
    return None if known else Status(400, b"Bad Request: Unsupported protocol version")


def _plain(value: str | None) -> str | None:
    if value is None or not value.startswith("=?base64?"):
        return value
    return base64.b64decode(value[9:-2]).decode()
