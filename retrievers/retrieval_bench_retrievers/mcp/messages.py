"""Messages of the Model Context Protocol: what both eras share, what tells them apart, and what a
server does wrong, in words.

Source: specification 2026-07-28, basic (messages, versioning, transports), and 2025-11-25, basic
(lifecycle, transports).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench_retrievers.http.answer import shown

WHERE = "target mcp"
MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The newest first: which one holds the server decides when it is asked for the first."""

PROTOCOLS = ("auto", MODERN, LEGACY[0])

UNSUPPORTED_VERSION = -32022
_HEADER_MISMATCH, _MISSING_CAPABILITY = -32020, -32021
MODERN_ERRORS = (_HEADER_MISMATCH, _MISSING_CAPABILITY)
"""Only a server of the new era answers these, whatever was wrong."""

METHOD_NOT_FOUND = -32601
_INTERNAL = -32603

_META = "io.modelcontextprotocol/"
SERVER_INFO = f"{_META}serverInfo"


class ServerError(CallError):
    """An error that the server answered, in the terms of JSON-RPC.

    Attributes:
        code: of the error.
        data: what came with it.
    """

    def __init__(self, error: Any) -> None:
        given = error if isinstance(error, Mapping) else {"message": error}
        self.code = given.get("code")
        self.data = given.get("data")
        said = shown(str(given.get("message") or "no message"))
        more = "" if self.data is None else f" {shown(json.dumps(self.data, ensure_ascii=False))}"
        super().__init__(f"the server answered the error {self.code}: {said}{more}")
        if self.code == _INTERNAL:
            self.kind = Kind.SERVER

    @property
    def supported(self) -> list[str]:
        """The versions that it says it speaks."""
        given = self.data.get("supported") if isinstance(self.data, Mapping) else None
        return [str(item) for item in given] if isinstance(given, list) else []


class InternalError(ServerError, TransientError):
    """The error -32603, inside of the server, which may pass."""

    retry_after = None


class SessionLostError(TransientError):
    """The server does not know the session any more: a new one may be begun."""


@cache
def client_info() -> dict[str, str]:
    """Who asks."""
    return {"name": "retrieval-bench", "version": version("retrieval-bench")}


def notification(method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A message that nobody answers."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}


def request(number: int, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """A request."""
    return notification(method, params) | {"id": number}


@cache
def meta() -> dict[str, Any]:
    """Say in a request of the new era who asks: without a capability, so that nothing is asked
    back."""
    return {
        f"{_META}protocolVersion": MODERN,
        f"{_META}clientInfo": client_info(),
        f"{_META}clientCapabilities": {},
    }


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as it is sent, without a line feed in it."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def decoded(content: bytes) -> list[Mapping[str, Any]]:
    """The messages in ``content``: one, or those of a batch, which the eldest servers send.

    Raises:
        CallError: it is none.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        text = shown(content[:4000].decode("utf-8", "replace"))
        raise CallError(f"the server wrote what is no JSON: {text}") from None
    messages = value if isinstance(value, list) else [value]
    if not messages or not all(isinstance(message, dict) for message in messages):
        text = shown(content[:4000].decode("utf-8", "replace"))
        raise CallError(f"the server wrote what is no message of MCP: {text}")
    return messages


def error_of(message: Mapping[str, Any]) -> ServerError:
    """The error in an answer."""
    error = message["error"]
    inside = isinstance(error, Mapping) and error.get("code") == _INTERNAL
    return InternalError(error) if inside else ServerError(error)
