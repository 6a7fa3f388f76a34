"""A server of MCP as its client sees it: which era it speaks, requests, and what comes beside
their answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import EMPTY
from retrieval_bench_retrievers.http.answer import shown
from retrieval_bench_retrievers.mcp.messages import (
    LEGACY,
    METHOD_NOT_FOUND,
    MODERN,
    MODERN_ERRORS,
    SERVER_INFO,
    UNSUPPORTED_VERSION,
    WHERE,
    ServerError,
    SessionLostError,
    client_info,
    error_of,
    meta,
    notification,
    request,
)
from retrieval_bench_retrievers.mcp.tool import mapping

if TYPE_CHECKING:
    from retrieval_bench_retrievers.mcp.http import StreamableHTTP
    from retrieval_bench_retrievers.mcp.stdio import Stdio

_STORM = 10_000
"""Notifications while one answer is waited for, from which on they are a storm."""

_PAGES = 100
"""Of the list of tools."""


class Session:
    """Asks one server.

    Args:
        wire: to it.
        protocol: one of :data:`.messages.PROTOCOLS`.
        startup_s: seconds in which a server is to answer for the first time.
        timeout_s: seconds in which it is to answer a call.

    Attributes:
        version: of the protocol that it speaks; None until it was asked.
        server: what it says of itself.
        lost: sessions that it forgot.
    """

    def __init__(
        self, wire: Stdio | StreamableHTTP, *, protocol: str, startup_s: float, timeout_s: float
    ) -> None:
        self._wire = wire
        self._protocol = protocol
        self._startup_s, self._timeout_s = startup_s, timeout_s
        self._number = 0
        self._cancelled: set[int] = set()
        self._silent = False
        self._ready = self._legacy = False
        self.version: str | None = None
        self.server: Mapping[str, Any] = {}
        self.lost = 0

    @property
    def modern(self) -> bool:
        """Whether it speaks the protocol without a handshake."""
        return self.version == MODERN

    def open(self) -> bool:
        """Be ready to ask; True where something had to be started for it.

        Raises:
            ConfigError: it cannot be started or reached, or speaks no version that we do; the first
                time only.
            CallError: likewise, later.
        """
        new = self._wire.open()
        if self._ready and not new:
            return False
        self._ready = False
        if self.version is None:
            self._first()
        elif not self.modern:
            self._initialize()
        self._ready = True
        return True

    def tools(self) -> list[Mapping[str, Any]]:
        """The definitions of the tools that the server offers.

        Raises:
            CallError: it does not list them.
        """
        tools: list[Mapping[str, Any]] = []
        cursor: Any = None
        for _ in range(_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            result = self._ask("tools/list", params, self._startup_s)
            page = result.get("tools")
            if not isinstance(page, list) or not all(isinstance(item, dict) for item in page):
                raise CallError("the server's answer to tools/list has no list of tools")
            tools += page
            cursor = result.get("nextCursor")
            if cursor is None:
                return tools
        raise CallError(f"the server's list of tools has no end: {len(tools):,} so far")

    def call(
        self, tool: str, arguments: Mapping[str, Any], headers: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """The result of a tool.

        Args:
            headers: of HTTP, for arguments that the tool's definition wants there.

        Raises:
            CallError: it failed, or the server does not keep to the protocol; a
                :class:`.TransientError` where it may work later.
        """
        params = {"name": tool, "arguments": arguments}
        try:
            result = self._ask("tools/call", params, self._timeout_s, headers)
        except SessionLostError:
            self.lost += 1
            self._wire.reset()
            self._ready = False
            self.open()
            result = self._ask("tools/call", params, self._timeout_s, headers)
        kind = result.get("resultType", "complete")
        if kind == "input_required":
            raise CallError(f"the server asks back before it answers: {_questions(result)}")
        if kind != "complete":
            raise CallError(
                f"the server answered a result of type {kind!r}, which nobody asked for"
            )
        return result

    def close(self) -> None:
        """End the session and the connection."""
        self._wire.close()

    def _first(self) -> None:
        """Find out which era the server speaks."""
        try:
            if self._protocol == LEGACY[0]:
                self._initialize()
            else:
                self._discover()
        except ConfigError:
            raise
        except CallError as problem:
            raise ConfigError(
                f"{self._wire.name} does not begin to speak MCP: {problem}",
                where=WHERE,
                accepted=f"a server that answers server/discover ({MODERN}) or initialize "
                f"({LEGACY[0]} and before)"
                if self._protocol == "auto"
                else f"a server that speaks {self._protocol}",
                fix="start it by hand and read what it says; it writes messages to stdout, and all "
                "else to stderr"
                if self._wire.shared
                else "check `url`, which ends in /mcp for many servers, and `headers`",
            ) from None

    def _discover(self) -> None:
        only = self._protocol == MODERN
        limit = self._startup_s if only else min(self._wire.probe_s, self._startup_s)
        try:
            result = self._ask("server/discover", {}, limit, modern=True)
        except ServerError as problem:
            if problem.code == UNSUPPORTED_VERSION:
                self._choose(problem.supported)
            elif only or problem.code in MODERN_ERRORS:
                raise
            else:
                self._older(problem)
        except CallError as problem:
            kind = problem.kind if isinstance(problem, TransientError) else None
            if only or kind not in (None, Kind.TIMEOUT, Kind.CONNECTION, Kind.SERVER):
                raise
            if kind is Kind.TIMEOUT and self._wire.shared:
                self._whichever_answers(problem)
            else:
                self._again(problem)
        else:
            self._discovered(result)

    def _discovered(self, result: Mapping[str, Any]) -> None:
        versions = result.get("supportedVersions")
        if isinstance(versions, list) and MODERN not in versions:
            self._choose([str(item) for item in versions])
            return
        said = result.get("_meta")
        info = said.get(SERVER_INFO) if isinstance(said, Mapping) else None
        self.version, self.server = MODERN, mapping(info or result.get("serverInfo"))

    def _choose(self, supported: list[str]) -> None:
        """Take an older version where the server says that it speaks one."""
        if self._protocol == MODERN or not set(supported) & set(LEGACY):
            raise ConfigError(
                f"{self._wire.name} speaks {', '.join(supported) or 'no version that it names'}",
                where=f"{WHERE}, protocol: {self._protocol}",
                accepted=", ".join([MODERN, *LEGACY]),
                fix="take another version of the server, or another `protocol`",
            )
        self._initialize()

    def _older(self, problem: CallError) -> None:
        try:
            self._initialize()
        except ServerError as other:
            if other.code == UNSUPPORTED_VERSION and MODERN in other.supported:
                self.version, self._legacy = MODERN, False  # it was late, and says so now
                return
            raise CallError(f"server/discover: {problem}; initialize: {other}") from None

    def _again(self, problem: CallError) -> None:
        """Begin anew with the handshake, for a server that the first request confused or ended."""
        self._wire.reset()
        self._wire.open()
        self._older(problem)

    def _whichever_answers(self, problem: CallError) -> None:
        """Send the handshake behind a request that is not answered yet, see which one is, and begin
        anew with what the server speaks: a slow start must not decide the era."""
        probe = self._number
        handshake = self._new("initialize", _hello())
        modern = False
        try:
            deadline = time.monotonic() + self._startup_s
            answer = self._answer(handshake, {}, deadline, {probe, handshake["id"]})
        except TransientError:
            pass  # it ended, or is silent: asked anew it may have another word
        else:
            modern = answer.get("id") == probe and "result" in answer
            if "error" in answer:
                modern = MODERN in error_of(answer).supported
        self._wire.reset()
        self._wire.open()
        if modern:
            self._discovered(self._ask("server/discover", {}, self._startup_s, modern=True))
        else:
            self._older(problem)

    def _initialize(self) -> None:
        """The handshake of the older era.

        Raises:
            CallError: the server refuses it, or answers a version that nobody knows.
        """
        self._legacy = True
        result = self._ask("initialize", _hello(), self._startup_s, modern=False)
        version = result.get("protocolVersion")
        if version not in LEGACY:
            raise CallError(f"the server answered initialize with the version {version!r}")
        self.version, self.server = version, mapping(result.get("serverInfo"))
        deadline = time.monotonic() + self._startup_s
        self._wire.tell(notification("notifications/initialized"), self._headers(), deadline)

    def _new(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        self._number += 1
        return request(self._number, method, params)

    def _headers(self) -> dict[str, str]:
        return {} if self.version is None else {"MCP-Protocol-Version": self.version}

    def _ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        headers: Mapping[str, str] = EMPTY,
        *,
        modern: bool | None = None,
    ) -> Mapping[str, Any]:
        """The result of a request."""
        modern = self.modern if modern is None else modern
        if modern:
            message = self._new(method, {**params, "_meta": meta()})
            told = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **headers}
        else:
            message = self._new(method, params or None)
            told = {} if method == "initialize" else self._headers()
        number = message["id"]
        try:
            answer = self._answer(message, told, time.monotonic() + seconds, {number})
        except TransientError as problem:
            if problem.kind is Kind.TIMEOUT:
                self._cancel(number, modern)
            raise
        self._silent = False
        if "error" in answer:
            raise error_of(answer)
        result = answer.get("result")
        if not isinstance(result, dict):
            raise CallError(f"the server answered {method} with neither a result nor an error")
        return result

    def _answer(
        self,
        message: Mapping[str, Any],
        headers: Mapping[str, str],
        deadline: float,
        numbers: set[int],
    ) -> Mapping[str, Any]:
        """The first answer to one of the requests ``numbers``; whatever goes wrong, what may still
        come is cut off, but for a time-out on a shared connection, which numbers keep apart."""
        beside = 0
        try:
            with closing(self._wire.ask(message, headers, deadline)) as incoming:
                for given in incoming:
                    number = given.get("id")
                    if "method" not in given:
                        if type(number) is int and number in numbers:
                            return given
                        self._stray(given, number, numbers)
                    elif number is None:
                        beside += 1
                        if beside > _STORM:
                            raise CallError(
                                f"the server sent more than {_STORM:,} notifications and no "
                                f"answer, the last one {given['method']!r}"
                            )
                    else:
                        self._asked(given, deadline)
            raise TransientError("the server ended its answer without a result", Kind.CONNECTION)
        except TransientError as problem:
            if problem.kind is not Kind.TIMEOUT:
                self._break()
            raise
        except BaseException:
            self._break()
            raise

    def _stray(self, given: Mapping[str, Any], number: Any, numbers: set[int]) -> None:
        """An answer to nothing that is waited for; that to a request which was given up is late."""
        if type(number) is int and number in self._cancelled:
            self._cancelled.discard(number)
        elif number is None and "error" in given:
            raise error_of(given)
        else:
            asked = ", ".join(map(str, sorted(numbers)))
            raise CallError(f"the server answered the request {number!r}, and was asked {asked}")

    def _asked(self, given: Mapping[str, Any], deadline: float) -> None:
        """A request by the server: we declare no capability, and know but ``ping``."""
        if not self._legacy:
            raise CallError(
                f"the server sent the request {given['method']!r}, for which MCP {MODERN} has "
                "no place"
            )
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": given["id"]}
        if given["method"] == "ping":
            answer["result"] = {}
        else:
            words = f"{given['method']} is not known: the client declares no capability"
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": words}
        self._wire.tell(answer, self._headers(), deadline)

    def _cancel(self, number: int, modern: bool) -> None:
        """Tell the server that nobody waits; a program that is silent twice begins anew."""
        if not self._ready or (modern and not self._wire.shared):
            return  # over HTTP the closed stream has said it
        again, self._silent = self._silent, True
        if again and self._wire.shared:
            self._wire.reset()
            return
        self._cancelled.add(number)
        try:
            params = {"requestId": number, "reason": "it took too long"}
            message = notification("notifications/cancelled", params)
            self._wire.tell(message, self._headers(), time.monotonic() + 1.0)
        except CallError:
            self._break()

    def _break(self) -> None:
        if self._wire.shared:
            self._wire.reset()


def _hello() -> dict[str, Any]:
    return {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": client_info()}


def _questions(result: Mapping[str, Any]) -> str:
    """Join the questions of a server that asks back."""
    asked = result.get("inputRequests")
    said = []
    for question in asked.values() if isinstance(asked, dict) else ():
        params = mapping(mapping(question).get("params"))
        said.append(str(params.get("message") or mapping(question).get("method") or question))
    return shown("; ".join(said) or "it does not say what")
