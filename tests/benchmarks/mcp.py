"""What ``target: mcp`` adds to a bare exchange of the same bytes with the same toy server."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.mcp.mcp import MCP
from retrieval_bench_retrievers.mcp.messages import encoded, meta, request
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.timing import middle, race
from tests.builders import mcp_toy
from tests.builders.mcp_http import mcp_service
from tests.builders.mcp_toy import MODERN, Toy

_GIVEN: dict[str, Any] = {
    "tool": "search",
    "arguments": {"query": "{text}", "limit": "{k}"},
    "hits": "structuredContent.result",
    "id": "id",
    "score": "score",
    "text": "text",
}
_LIMITS = {"stdio": 0.15e-3, "HTTP, JSON": 0.4e-3, "HTTP, events": 0.4e-3}
_TEXT = "cat ran"


def measure(options: Options) -> Group:
    """Rows for stdio and HTTP: the median of our call less that of the bare exchange."""
    turns = 50 if options.quick else 1_500
    rows = [_stdio(turns), _http(turns, events=False), _http(turns, events=True)]
    return Group(
        "Time that target mcp adds to a call",
        rows,
        [f"{turns:,} turns of each side, in one process, one after the other; medians"],
    )


def _row(name: str, sides: dict[str, Any], turns: int) -> Row:
    race(sides, 20)
    took = race(sides, turns)
    ours, bare = middle(took["ours"]), middle(took["bare"])
    return Row(name, ours - bare, "s", bare, "bare exchange", _LIMITS[name], True)


def _call(retriever: MCP) -> Any:
    query = Query("q", _TEXT)
    return lambda _turn: retriever.search(query, 10)


def _body() -> bytes:
    arguments = {"query": _TEXT, "limit": 10}
    params = {"name": "search", "arguments": arguments, "_meta": meta()}
    return encoded(request(7, "tools/call", params))


def _stdio(turns: int) -> Row:
    command = [sys.executable, "-P", mcp_toy.__file__, MODERN]
    line = _body() + b"\n"
    with closing(MCP(command=command, **_GIVEN)) as retriever:
        retriever.use_k(10)
        child: Any = retriever._at._child  # type: ignore[union-attr]
        into, out = child._in, child._out

        def bare(_turn: int) -> None:
            os.write(into, line)
            said = b""
            while said.count(b"\n") < 2:  # a notification, and the answer
                child._reading.poll()
                said += os.read(out, 1 << 16)

        return _row("stdio", {"ours": _call(retriever), "bare": bare}, turns)


def _serve(events: bool, link: Any) -> None:
    with mcp_service(Toy(MODERN), events=events) as running:
        link.send(running.url)
        link.recv()


def _http(turns: int, *, events: bool) -> Row:
    context = multiprocessing.get_context("fork")
    link, other = context.Pipe()
    process = context.Process(target=_serve, args=(events, other), daemon=True)
    process.start()
    url = link.recv()
    place = urlsplit(url)
    body = _body()
    headers = {
        "Host": place.netloc,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "search",
        "Mcp-Param-Limit": "10",
        "Content-Length": str(len(body)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    sent = f"POST {place.path} HTTP/1.1\r\n{head}\r\n".encode() + body
    os.environ["NO_PROXY"] = "127.0.0.1"
    with (
        closing(MCP(url=url, **_GIVEN)) as retriever,
        socket.create_connection((place.hostname, place.port)) as line,
    ):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        retriever.use_k(10)

        def bare(_turn: int) -> None:
            line.sendall(sent)
            said = b""
            while not (said.endswith(b"\r\n0\r\n\r\n") if events else said.endswith(b"}}")):
                said += line.recv(1 << 16)

        name = "HTTP, events" if events else "HTTP, JSON"
        row = _row(name, {"ours": _call(retriever), "bare": bare}, turns)
    link.send(None)
    process.join(5)
    return row
