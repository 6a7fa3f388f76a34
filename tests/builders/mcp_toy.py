"""A toy server of MCP, of the standard library alone, in both eras and with every way to be wrong
that a test asks for.

``python mcp_toy.py ERA [FAULT] [CORPUS.jsonl]`` speaks on stdio. A fault shows where the query
holds the word ``break``; one that begins with ``start-`` shows at the first message.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"
DOCS = {
    "a": "the cat sat on the mat",
    "b": "the dog ran",
    "c": "a cat ran by",
    "가": "고양이 달린다 ran",
}
TOOL = {
    "name": "search",
    "description": "Searches the documents.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
            "lang": {"type": "string", "x-mcp-header": "Lang"},
        },
        "required": ["query"],
    },
}
TOOLS = [
    {"name": "now", "description": "Tells the time.", "inputSchema": {"type": "object"}},
    TOOL,
    {**TOOL, "name": "prose", "description": "Searches, and answers Markdown."},
]
WRITING = [
    {
        "name": name,
        "description": "Writes.",
        "inputSchema": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in properties},
            "required": properties,
        },
    }
    for name, properties in (("put", ["key", "body"]), ("drop", ["key"]))
]
"""Of a toy with the fault ``writable``, which is none."""
_META = "io.modelcontextprotocol/"


def found(docs: Mapping[str, str], text: str, k: int) -> list[tuple[str, float]]:
    """The function behind all toys: shared words over the root of a document's length."""
    asked = set(text.lower().split())
    scored = [
        (-len(asked & set(words)) / len(words) ** 0.5, doc_id)
        for doc_id, words in ((one, body.lower().split()) for one, body in docs.items())
    ]
    return [(doc_id, -score) for score, doc_id in sorted(scored) if score][:k]


@dataclass
class Raw:
    """Bytes in place of a message."""

    content: bytes


@dataclass
class Pause:
    """Seconds of silence."""

    seconds: float


@dataclass
class End:
    """The end of the server, or of the answer."""


@dataclass
class Status:
    """An answer of HTTP that is none of MCP."""

    status: int
    body: bytes = b"no"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Toy:
    """One server; gives what it says to a message."""

    era: str
    fault: str = ""
    docs: Mapping[str, str] = field(default_factory=lambda: DOCS)
    shape: str = "structured"
    asked: list[Mapping[str, Any]] = field(default_factory=list)

    def says(self, message: Mapping[str, Any]) -> Iterator[Any]:
        self.asked.append(message)
        number, method = message.get("id"), message.get("method")
        if number is None or method is None:
            return
        if self.fault.startswith("start-"):
            yield from self._at_start(message)
        elif method == "server/discover":
            yield self._discovered(number)
        elif method == "initialize" and self.era == LEGACY:
            info = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}}
            yield _answer(number, info | {"serverInfo": {"name": "toy", "version": "1.0"}})
        elif method == "tools/list":
            yield from self._listed(message)
        elif method == "tools/call":
            yield from self._called(number, message["params"])
        else:
            yield _error(number, -32601, f"Method not found: {method}")

    def _discovered(self, number: Any) -> Any:
        if self.era == LEGACY:
            return _error(number, -32601, "Method not found")
        info = {f"{_META}serverInfo": {"name": "toy", "version": "1.0"}}
        versions = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "_meta": info}
        return _answer(number, versions | {"resultType": "complete", "ttlMs": 0})

    def _listed(self, message: Mapping[str, Any]) -> Iterator[Any]:
        """In two pages."""
        at = int((message.get("params") or {}).get("cursor", 0))
        more = {} if at else {"nextCursor": "1"}
        tools = [*TOOLS, *(WRITING if self.fault == "writable" else ())]
        yield _answer(message["id"], {"tools": tools[1:] if at else tools[:1], **more})

    def _called(self, number: Any, params: Mapping[str, Any]) -> Iterator[Any]:
        arguments = params["arguments"]
        if params["name"] in ("put", "drop"):
            docs = {**self.docs}
            docs.pop(arguments["key"], None)
            if params["name"] == "put":
                docs[arguments["key"]] = arguments["body"]
            self.docs = docs
            full = "full" in arguments.get("body", "")
            yield _answer(number, _text("disk full" if full else "done") | {"isError": full})
            return
        if "break" in arguments["query"].split():
            yield from self._broken(number)
            return
        hits = found(self.docs, arguments["query"], arguments.get("limit", 10))
        yield _note("notifications/progress")
        yield _answer(number, self._result(hits, params["name"]))

    def _result(self, hits: Sequence[tuple[str, float]], tool: str) -> dict[str, Any]:
        rows = [{"id": one, "score": score, "text": self.docs[one]} for one, score in hits]
        text = json.dumps(rows, ensure_ascii=False)
        if tool == "prose":
            blocks = [f"## [{row['id']}] score {row['score']!r}\n{row['text']}\n" for row in rows]
            return _text("\n".join(blocks) or "Nothing found.")
        if self.shape == "text":
            return _text(text)
        if self.shape == "parts":
            return {"content": [_part(json.dumps(row, ensure_ascii=False)) for row in rows]}
        if self.shape == "links":
            links = [{"type": "resource_link", "uri": one, "name": one} for one, _ in hits]
            return {"content": links}
        return _text(text) | {"structuredContent": {"result": rows, "took": 0.25}}

    def _broken(self, number: Any) -> Iterator[Any]:
        answer = _answer(number, self._result([("a", 1.0)], "search"))
        whole = json.dumps(answer).encode()
        given: dict[str, list[Any]] = {
            "dies": [End()],
            "silent": [Pause(60)],
            "half": [Raw(whole[:40]), End()],
            "half and silent": [Raw(whole[:40]), Pause(60)],
            "no JSON": [Raw(b"Searching ...\n")],
            "invalid byte": [Raw(whole.replace(b"cat", b"c\xff\xfe") + b"\n")],
            "no message": [Raw(b"[1, 2]\n")],
            "another id": [_answer(4711, {})],
            "id as text": [_answer(str(number), {})],
            "id as list": [_answer([number], {})],
            "id with a point": [_answer(float(number), {})],
            "no id": [_answer(None, {})],
            "no result": [{"jsonrpc": "2.0", "id": number}],
            "result is a list": [_answer(number, [])],
            "error": [_error(number, -32602, "limit is too high")],
            "internal error": [_error(number, -32603, "index is locked")],
            "error is a text": [{"jsonrpc": "2.0", "id": number, "error": "broken"}],
            "error without id": [_error(None, -32700, "cannot parse that")],
            "isError": [_answer(number, _text("index is gone") | {"isError": True})],
            "isError without text": [_answer(number, {"content": [], "isError": True})],
            "input required": [_answer(number, _QUESTION)],
            "another type": [_answer(number, {**_text("x"), "resultType": "task"})],
            "notifications": [_note("notifications/message")] * 12_000,
            "endless line": [Raw(b"x" * 65_536)] * 20,
            "huge answer": [_answer(number, _text("y" * 1_500_000))],
            "many messages": [_note("notifications/message", {"d": "z" * 60_000})] * 30,
            "asks back": [{"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"}, answer],
            "pings": [{"jsonrpc": "2.0", "id": "p", "method": "ping"}, answer],
            "no hits at all": [_answer(number, {"content": []})],
            "prose in place of hits": [_answer(number, _text("No luck today."))],
            "hits are a mapping": [_answer(number, _structured({"a": 1.0}))],
            "hit without id": [_answer(number, _structured([{"score": 1.0}]))],
            "id is a list": [_answer(number, _structured([{"id": ["a"], "score": 1.0}]))],
            "id is empty": [_answer(number, _structured([{"id": "", "score": 1.0}]))],
            "no time": [_answer(number, _structured([{"id": "a", "score": 1.0}]))],
            "NaN": [Raw(_nan(number) + b"\n")],
            "score is a word": [_answer(number, _structured([{"id": "a", "score": "high"}]))],
            "scores rise": [_answer(number, _structured(_rows(0.5, 0.75)))],
            "ends": [End()],
            **{str(status): [Status(status)] for status in (400, 401, 404, 405, 500, 503)},
            "429": [Status(429, headers={"Retry-After": "2"})],
            "204": [Status(204, b"")],
            "202": [Status(202, b"")],
            "302": [Status(302, headers={"Location": "http://elsewhere.example/mcp"})],
            "HTML": [Status(200, b"<html>Sign in</html>", {"Content-Type": "text/html"})],
        }
        yield from given[self.fault]

    def _at_start(self, message: Mapping[str, Any]) -> Iterator[Any]:
        """Servers that do not take the first message well."""
        method, number = message["method"], message["id"]
        fault = self.fault.removeprefix("start-")
        older = Toy(LEGACY, docs=self.docs)
        newer = Toy(MODERN, docs=self.docs)
        if fault == "slow" and method == "server/discover":
            yield Pause(2.5)
        first = method == "server/discover"
        if first and fault in ("silent", "ends", "banner", "invalid"):
            given: dict[str, list[Any]] = {
                "silent": [],
                "ends": [End()],
                "banner": [Raw(b"Toy server, version 1\n")],
                "invalid": [_error(number, -32602, "Invalid request parameters")],
            }
            yield from given[fault]
        elif fault in ("newer", "older") and method in ("server/discover", "initialize"):
            versions = ["2099-01-01"] if fault == "newer" else ["2025-06-18"]
            if method == "initialize" and fault == "older":
                yield from older.says(message)
            else:
                yield _error(number, -32022, "Unsupported version", {"supported": versions})
        elif fault in ("mute", "gone"):
            yield from [] if fault == "mute" else [End()]
        else:
            yield from (newer if fault == "slow" else older).says(message)


_QUESTION = {
    "resultType": "input_required",
    "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Who is it?"}}},
}


def _rows(*scores: float) -> list[dict[str, Any]]:
    return [{"id": one, "score": score} for one, score in zip("abcd", scores, strict=False)]


def _nan(number: Any) -> bytes:
    return json.dumps(_answer(number, _structured(_rows(float("nan"))))).encode()


def _structured(hits: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": {"result": hits}}


def _part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _text(text: str) -> dict[str, Any]:
    return {"content": [_part(text)]}


def _answer(number: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: Any, code: int, text: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": text, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": number, "error": error}


def _note(method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def read_corpus(path: str) -> dict[str, str]:
    """Documents of a JSONL file of BEIR."""
    rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    return {row["_id"]: f"{row.get('title', '')} {row['text']}".strip() for row in rows}


def main() -> None:
    era, fault, corpus, *_ = [*sys.argv[1:], "", ""]
    toy = Toy(era, fault, read_corpus(corpus) if corpus else DOCS)
    sys.stderr.write("toy is up\n")
    for line in sys.stdin.buffer:
        for item in toy.says(json.loads(line)):
            if isinstance(item, End):
                sys.stdout.flush()
                os._exit(3)
            if isinstance(item, Pause):
                sys.stdout.flush()
                time.sleep(item.seconds)
                continue
            content = (
                item.content
                if isinstance(item, Raw)
                else json.dumps(item, ensure_ascii=False).encode() + b"\n"
            )
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
