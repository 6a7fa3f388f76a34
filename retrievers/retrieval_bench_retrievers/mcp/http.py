"""The transport Streamable HTTP: each message is a POST, its answer JSON or a stream of events.

Source: specification 2026-07-28, basic, transports, streamable-http; 2025-11-25, basic, transports.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.installed.installation import require
from retrieval_bench_retrievers.mcp.messages import WHERE, SessionLostError, decoded, encoded

if TYPE_CHECKING:
    import httpx2 as httpx

_SESSION = "mcp-session-id"
_PROBE_S = 10.0
_END_S, _FIRST_END_S = 0.02, 0.25
"""Seconds in which the end of a stream is waited for behind the answer: a connection whose stream
ended serves again."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_OF_HTTP = (401, 403, 407, 408, 429)
"""Statuses that say more than an error of JSON-RPC in their body would."""


class StreamableHTTP:
    """A server at a URL.

    Args:
        headers: that go with each message.
        timeout_s: seconds to wait for each part of an answer.
        max_bytes: that come while one answer is waited for.

    Attributes:
        name, shared, probe_s, over, pid: as of :class:`.stdio.Stdio`.

    Raises:
        ConfigError: what cannot be sent, or a secret that stands in the config.
    """

    shared, probe_s, over, pid = False, _PROBE_S, "HTTP", None

    def __init__(
        self,
        url: Any,
        *,
        headers: Mapping[str, Any],
        ca: str | None,
        verify: bool,
        timeout_s: float,
        max_bytes: int,
    ) -> None:
        require("httpx2", "http", WHERE, instead="httpx")
        from retrieval_bench_retrievers.http import client
        from retrieval_bench_retrievers.http.request import RequestTemplate

        self._template = RequestTemplate("POST", url, headers, {}, literal=True)
        self._url, sent, _ = self._template.render({})
        self._headers = {
            **{name: value for name, value in sent.items() if name.lower() != "accept"},
            "Accept": b"application/json, text/event-stream",
        }
        place = urlsplit(self._url)
        self.name = f"the server at {place.netloc}"
        self._line = client.Line(
            reuse=True,
            timeout_s=timeout_s,
            verify=client.certificates(ca, verify, plugins.beside_config),
            host=place.hostname or "",
            where=WHERE,
        )
        self._line.hide(self._template.hidden)
        self._max_bytes = max_bytes
        self._session: str | None = None
        self._holds: bool | None = None
        self._sessions = 0

    def ready(self) -> None:
        """Nothing is to be kept in mind."""

    def clean(self, text: str) -> str:
        """``text`` without secrets and without values of headers."""
        return self._line.clean(text)

    def describe(self) -> dict[str, Any]:
        """Facts of it for the manifest."""
        return {
            "transport": self.over,
            "url": secrets.redact(str(self._template.address)),
            "header_names": self._template.header_names,
            "connections_opened": self._line.opened,
            **({"requests_by_proxy": self._line.proxied} if self._line.proxied else {}),
            "sessions": self._sessions,
            "http_library": self._line.library,
            "httpx": version(self._line.library),
        }

    def warnings(self) -> list[str]:
        """Say what is worth a warning after the searches."""
        return self._line.warnings("server")

    def open(self) -> bool:
        """Nothing is there to be started."""
        return False

    def ask(
        self, message: Mapping[str, Any], headers: Mapping[str, str], deadline: float
    ) -> Generator[Mapping[str, Any], None, None]:
        """Send a request, and read its answer as it comes."""
        with self._post(message, headers, deadline) as response:
            if message.get("method") == "initialize" and response.is_success:
                self._session = response.headers.get(_SESSION)
                self._sessions += 1
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.is_success and kind == "text/event-stream":
                yield from self._streamed(response, deadline)
                return
            content = b"".join(self._chunks(_received(response), deadline))
            if not response.is_success:
                yield from self._refused(response, content)
            elif not content.strip():
                status = response.status_code
                raise CallError(f"{self.name} answered {status} to a request, and nothing else")
            else:
                yield from decoded(content)

    def tell(self, message: Mapping[str, Any], headers: Mapping[str, str], deadline: float) -> None:
        """Send what nobody answers."""
        with self._post(message, headers, deadline) as response:
            chunks = _received(response)
            if not response.is_success:
                raise self._line.refused(response, b"".join(self._chunks(chunks, deadline)))
            self._end(response, chunks)

    def reset(self) -> None:
        """Forget the session."""
        self._session = None

    def close(self) -> None:
        """End the session, if there is one, and close the connections."""
        if self._session is not None:
            with (
                suppress(Exception),
                self._line.stream("DELETE", self._url, self._all({}), None, 2),
            ):
                pass
            self._session = None
        self._line.close()

    def _post(
        self, message: Mapping[str, Any], headers: Mapping[str, str], deadline: float
    ) -> AbstractContextManager[httpx.Response]:
        left = deadline - time.monotonic()
        return self._line.stream("POST", self._url, self._all(headers), encoded(message), left)

    def _all(self, headers: Mapping[str, str]) -> dict[str, bytes]:
        given = {name: value.encode() for name, value in headers.items()}
        own = {} if self._session is None else {"Mcp-Session-Id": self._session.encode()}
        return {**self._headers, **given, **own}

    def _streamed(
        self, response: httpx.Response, deadline: float
    ) -> Generator[Mapping[str, Any], None, None]:
        """The messages of a stream of events; once nobody asks for more, its end is read, too, if
        it is there."""
        chunks = _received(response)
        try:
            for data in events(self._chunks(chunks, deadline)):
                if data.strip():  # an event that only gives the stream its number has none
                    yield from decoded(data)
        except GeneratorExit:
            self._end(response, chunks)
            raise

    def _end(self, response: httpx.Response, chunks: Iterator[bytes]) -> None:
        """Read the end of a stream behind the answer, so that its connection serves again. A server
        that held its first streams open, or spoke on, is not waited for a second time."""
        wait = _FIRST_END_S if self._holds is None else _END_S
        connection = response.extensions.get("network_stream")
        if self._holds or connection is None:
            return
        read = connection.read
        try:
            connection.read = lambda size, timeout=None: read(size, wait)
            deadline = time.monotonic() + wait
            for _ in chunks:
                if time.monotonic() > deadline:
                    raise TimeoutError
        except Exception:  # its end did not come, or the connection broke behind the answer
            self._holds = self._holds is None
        else:
            self._holds = False
        finally:
            connection.read = read

    def _chunks(self, chunks: Iterable[bytes], deadline: float) -> Iterator[bytes]:
        """Pieces of an answer, cut off where it is too long or takes too long."""
        left = self._max_bytes
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise CallError(
                    f"{self.name} sent more than {self._max_bytes:,} bytes for one answer"
                )
            yield chunk
            if time.monotonic() > deadline:
                raise TransientError(f"{self.name} did not answer in time", Kind.TIMEOUT)

    def _refused(self, response: httpx.Response, content: bytes) -> Iterator[Mapping[str, Any]]:
        """The error of MCP in the body of an answer that is none, if there is one.

        Raises:
            SessionLostError: it does not know the session.
            CallError: by its status.
        """
        status = response.status_code
        lost = status == 404 or (status == 400 and b"session" in content.lower())
        if self._session is not None and lost:
            raise SessionLostError(
                f"{self.name} does not know the session any more", Kind.CONNECTION
            )
        if status < 500 and status not in _OF_HTTP:
            with suppress(CallError):
                yield from (said for said in decoded(content) if "error" in said)
        raise self._line.refused(response, content)


def _received(response: httpx.Response) -> Iterator[bytes]:
    """The body as it comes; what is not packed takes no layers that unpack."""
    stream: Any = response.stream
    return response.iter_bytes() if "content-encoding" in response.headers else iter(stream)


def events(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each event of the type ``message``, as the HTML standard reads such a stream; one
    that is not whole at its end is none."""
    kind, data = b"message", []
    for line in _lines(chunks):
        if line:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                kind = value
            continue
        if data and kind in (b"message", b""):
            yield b"\n".join(data)
        kind, data = b"message", []


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end with a line feed, a carriage return, or both."""
    parts: list[bytes] = []
    after_return = False
    for given in chunks:
        chunk = given[1:] if after_return and given.startswith(b"\n") else given
        if given:
            after_return = given.endswith(b"\r")
        *whole, rest = _LINE_END.split(chunk)
        for line in whole:
            yield b"".join([*parts, line])
            parts = []
        if rest:
            parts.append(rest)
