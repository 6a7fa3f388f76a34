"""One request and its answer over HTTP, with every way to fail told apart.

What may work when it is asked again is a TransientError, what will not a CallError; a host that was
never reached is a fault of the config. No message holds a header, a password or a part of either.
"""

from __future__ import annotations

import base64
import logging
import math
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

from retrieval_bench.core import secrets
from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench_retrievers.http.answer import shown

if TYPE_CHECKING or find_spec("httpx2") is not None:
    import httpx2 as httpx  # httpx is no longer kept up; this one goes on with its names
else:
    import httpx

CONNECTIONS = ("reused", "new")

_PASSES = {408: Kind.TIMEOUT, 429: Kind.THROTTLED}
_GENEROUS_S, _CONNECT_S = 600.0, 30.0
"""Time-outs where none is given; the harness ends a call that takes too long by its own."""

_SHORTEST_S = 0.001
_REDIRECTS = 5
_SHORTEST_HIDDEN = 4
_SCHEMES = ("Basic", "Bearer", "ApiKey")
_USERINFO = re.compile(r"(?<=://)[^/?#@]*(?:@[^/?#@]*)*@")
_AUTH = httpx.Auth()  # none: what a URL says of a user is among the headers
_SENT = ".send_request_headers.complete"
"""What httpcore tells of a connection that it could use."""


class Line:
    """The connections to one service.

    Args:
        reuse: keep them between requests; otherwise each request opens one.
        timeout_s: seconds to wait for a connection, and for each part of an answer; None = many.
        verify: whether certificates are checked, or the context to check them with.
        host: of the service: where it is this machine, no proxy stands between.
        where: the target, for messages.

    Attributes:
        library: that makes the connections.
        opened: connections so far.
        redirected: answers that led elsewhere, so far.
        proxied: requests that went through a proxy of the environment, so far.
    """

    def __init__(
        self,
        *,
        reuse: bool,
        timeout_s: float | None,
        verify: bool | ssl.SSLContext,
        host: str = "",
        where: str = "target http",
    ) -> None:
        self._where = where
        self.library = httpx.__name__
        logging.getLogger(self.library).addFilter(_redacted)  # once, however often it is asked to
        self._reuse = reuse
        self._verify = verify
        wait = _GENEROUS_S if timeout_s is None else timeout_s
        self._timeout = httpx.Timeout(wait, connect=min(wait, _CONNECT_S))
        self._timeouts, self._traced = self._timeout.as_dict(), {"trace": self._trace}
        own = {host} if is_loopback(host) else set()
        self._loopback = {"localhost", "127.0.0.1", "::1", *own}
        self._client: httpx.Client | None = self._new_client()
        self._hidden: tuple[str, ...] = ()
        self.opened = self.redirected = self.proxied = 0
        self._reached = False
        self._proxies: dict[str, str] = {}
        self._url: tuple[str, httpx.URL, bool] = ("", httpx.URL(), False)

    def hide(self, texts: Iterable[str]) -> None:
        """Keep these texts, and their parts between blanks, out of every message."""
        parts = {item for text in texts for item in (text, *text.split()) if item not in _SCHEMES}
        long = [part for part in parts if len(part) >= _SHORTEST_HIDDEN]
        self._hidden = tuple(sorted({*self._hidden, *long}, key=len, reverse=True))

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, bytes],
        content: bytes | None,
        *,
        gone: bool = False,
    ) -> tuple[bytes, int]:
        """The body of the answer, and the nanoseconds from sending to its last byte; with ``gone``
        404 is an answer like others.

        Raises:
            TransientError: 408, 429, 5xx, a lost connection, a time-out.
            CallError: any other status but 2xx, a redirect to another host, a request that cannot
                be sent.
            ConfigError: the very first connection could not be made.
        """
        with self._told(url):
            request = self._request(method, url, headers, content)
            start = perf_counter_ns()
            response = self._send(request)
            elapsed = perf_counter_ns() - start
            if response.is_success or (gone and response.status_code == 404):
                return response.content, elapsed
            raise self.refused(response, response.content)

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        headers: Mapping[str, bytes],
        content: bytes | None,
        timeout_s: float,
    ) -> Iterator[httpx.Response]:
        """The answer of any status as it comes, its body not read yet; what goes wrong while it is
        read is told as by :meth:`ask`."""
        with self._told(url):
            request = self._request(method, url, headers, content)
            wait = max(timeout_s, _SHORTEST_S)
            connect = min(wait, _CONNECT_S)
            timeout = {"connect": connect, "read": wait, "write": wait, "pool": wait}
            request.extensions = {**request.extensions, "timeout": timeout}
            response = self._send(request, stream=True)
            try:
                yield response
            finally:
                response.close()

    def refused(self, response: httpx.Response, content: bytes) -> CallError:
        """Say that ``response``, of which ``content`` was read, is none."""
        place, status = _place(str(response.request.url)), response.status_code
        text = self.clean(content[:4000].decode("utf-8", "replace"))
        says = f"{place} answered {status}" + (f": {shown(text)}" if text.strip() else "")
        kind = _PASSES.get(status, Kind.SERVER if status >= 500 else None)
        if kind is None:
            return CallError(says)
        return TransientError(says, kind, retry_after=_seconds(response.headers.get("retry-after")))

    def _request(
        self, method: str, url: str, headers: Mapping[str, bytes], content: bytes | None
    ) -> httpx.Request:
        client = self._client = self._client or self._new_client()
        known = self._url  # of this thread: parsing one takes a tenth of a call
        if url != known[0]:
            parsed = httpx.URL(url)
            known = self._url = (url, parsed, bool(self._proxy_of(parsed)))
        self.proxied += known[2]
        told = {"timeout": self._timeouts, **({} if self._reached else self._traced)}
        usual = [(b"Host", known[1].netloc), *client.headers.raw]
        if content is not None:
            usual.append((b"Content-Length", b"%d" % len(content)))
        given = [(name.encode(), value) for name, value in headers.items()]
        names = {name.lower() for name, _ in given}
        all_ = [*(item for item in usual if item[0].lower() not in names), *given]
        # client.build_request takes several times as long to come to the same headers.
        body: Any = {} if content is None else {"stream": httpx.ByteStream(content)}
        return httpx.Request(method, known[1], headers=all_, extensions=told, **body)

    def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        client = self._client = self._client or self._new_client()
        response = client.send(request, stream=stream, auth=_AUTH)
        self.opened += _send_at_once(response.extensions.get("network_stream"))
        for _ in range(_REDIRECTS):
            if not response.has_redirect_location:
                break
            response.close()
            response = client.send(self._allowed(response), stream=stream, auth=_AUTH)
        return response

    @contextmanager
    def _told(self, url: str) -> Iterator[None]:
        """Translate what httpx raises."""
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
            raise self._unreachable(url, problem) from None
        except httpx.TimeoutException as problem:
            name = type(problem).__name__
            raise TransientError(
                f"{_place(url)} did not answer in time ({name})", Kind.TIMEOUT
            ) from None
        except (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError) as problem:
            says = self.clean(str(problem)) or type(problem).__name__
            raise TransientError(
                f"the connection to {_place(url)} broke: {says}", Kind.CONNECTION
            ) from None
        except httpx.LocalProtocolError:  # its text repeats the header
            raise CallError(f"a header for {_place(url)} holds what HTTP cannot carry") from None
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            says = self.clean(str(problem))
            raise CallError(f"the request to {_place(url)} failed: {says}") from None
        except (Exception, GeneratorExit):
            raise
        except BaseException:  # a deadline: what is half read must not be the next answer
            self.close()
            raise

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close()

    def _new_client(self) -> httpx.Client:
        # Idle connections stay open however long the harness is busy with other things.
        limits = httpx.Limits(
            max_keepalive_connections=None if self._reuse else 0, keepalive_expiry=None
        )
        return httpx.Client(
            timeout=self._timeout,
            limits=limits,
            verify=self._verify,
            follow_redirects=False,
            mounts={f"all://{bracketed(host)}": None for host in self._loopback},  # no proxy
        )

    def _proxy_of(self, url: httpx.URL) -> str:
        """Look up :func:`proxy_of` once for each host, since a client does the same."""
        key = f"{url.scheme}://{url.netloc.decode()}"
        if key not in self._proxies:
            self._proxies[key] = proxy_of(url)
        return self._proxies[key]

    def _trace(self, event: str, _info: Any) -> None:
        self._reached = self._reached or event.endswith(_SENT)

    def _allowed(self, response: httpx.Response) -> httpx.Request:
        """The request that a redirect asks for."""
        self.redirected += 1
        request, onward = response.request, response.next_request
        assert onward is not None
        here, there = request.url, onward.url
        if here.scheme == there.scheme:
            same = (here.host, _port(here)) == (there.host, _port(there))
        else:
            same = here.host == there.host and (here.scheme, there.scheme) == ("http", "https")
        target = f"{there.scheme}://{there.host}:{_port(there)}"
        if not same:
            raise CallError(
                f"{_place(str(here))} answered {response.status_code}, a redirect to {target}, "
                "which is not followed: give that address as `url` if you trust it"
            )
        if onward.method != request.method:
            raise CallError(
                f"{_place(str(here))} answered {response.status_code}, a redirect that would turn "
                f"{request.method} into {onward.method} and lose the query: give the address that "
                "it leads to as `url`"
            )
        return onward

    def _unreachable(self, url: str, problem: Exception) -> Exception:
        place, through = _place(url), self._proxy_of(httpx.URL(url))
        says = self.clean(str(problem)) or type(problem).__name__
        if through:
            place += f" through the proxy {through} of the environment"
        if self._reached:
            return TransientError(f"no connection to {place}: {says}", Kind.CONNECTION)
        if "CERTIFICATE_VERIFY_FAILED" in says:
            fix = "give the certificate of its authority as `ca`, or `verify: false` for a test"
        elif through:
            fix = "start the proxy, or name the host of the service in NO_PROXY"
        else:
            fix = "start the service, and check host and port in `url`"
        return ConfigError(
            f"nothing can be reached at {place}: {says}",
            where=f"{self._where}, url",
            accepted="a service that answers",
            fix=fix,
        )

    def warnings(self, who: str) -> list[str]:
        """Say when a proxy stood between, and when ``who`` redirects."""
        told = []
        if self.proxied:
            told.append(
                f"{counted(self.proxied, 'request')} went through the proxy that the environment "
                "names, which is in every time: NO_PROXY names hosts without one"
            )
        if self.redirected:
            told.append(
                f"the {who} redirected {counted(self.redirected, 'request')}, which adds a round "
                "trip to each: give the address that it leads to as `url`"
            )
        return told

    def clean(self, text: str) -> str:
        """``text`` without secrets and without values of headers."""
        text = str(secrets.redact(text))
        for hidden in self._hidden:
            text = text.replace(hidden, "***")
        return text


def _send_at_once(connection: Any) -> bool:
    """Say whether a connection is new, and let further requests on it be sent whole, when their
    answer is read: a head without its body wakes the service in vain."""
    if connection is None or hasattr(connection, "held"):
        return False
    connection.held, write, read = [], connection.write, connection.read

    def send_and_read(size: int, timeout: float | None = None) -> bytes:
        if whole := b"".join(connection.held):
            connection.held.clear()
            with suppress(Exception):  # it may have answered all the same; if not, reading says so
                write(whole, timeout)
        return bytes(read(size, timeout))

    connection.write = lambda part, timeout=None: connection.held.append(part)
    connection.read = send_and_read
    return True


def certificates(ca: str | None, verify: bool, find: Callable[[str], Path]) -> Any:
    """Make the argument ``verify`` of httpx, once: reading certificates takes longer than a call.

    Raises:
        ConfigError: both are given, or ``ca`` is no file of certificates.
    """
    if ca is None:
        return _usual_context(verify)
    if not verify:
        raise ConfigError(
            "ca and verify: false", where="target http", accepted="one of them", fix="remove one"
        )
    path = find(ca)
    try:
        return ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError) as problem:
        raise ConfigError(
            f"ca = {ca!r} cannot be read: {problem.strerror or problem}",
            where=str(path),
            accepted="a file of certificates, PEM",
        ) from None


@cache
def _usual_context(verify: bool) -> ssl.SSLContext:
    """One for all retrievers of a process: load has one for each of hundreds of connections."""
    return httpx.create_ssl_context() if verify else httpx.create_ssl_context(verify=False)


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine: ``localhost``, a name below it, 127.0.1.1 and others."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def proxy_of(url: httpx.URL) -> str:
    """Host and port of the proxy that the environment names for ``url``; empty for none."""
    if is_loopback(url.host) or proxy_bypass(f"{url.host}:{_port(url)}"):
        return ""
    named = getproxies()
    proxy = named.get(url.scheme) or named.get("all") or ""
    return _place(proxy if "://" in proxy else f"http://{proxy}") if proxy else ""


def without_userinfo(url: str) -> tuple[str, str | None, tuple[int, int]]:
    """A URL without ``user:password@``, the header ``Authorization`` that says the same, and where
    it stood."""
    match = _USERINFO.search(url)
    if match is None:
        return str(url), None, (0, 0)
    user, _, password = match[0][:-1].partition(":")
    token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return url[: match.start()] + url[match.end() :], f"Basic {token}", match.span()


def check_url(url: str) -> None:
    """Refuse what no request can be made of; the URL is not shown, it may hold half a password.

    Raises:
        ConfigError: it is no URL.
    """
    try:
        fit = bool(httpx.URL(url).host)
    except (httpx.InvalidURL, ValueError):
        fit = False
    if not fit:
        raise ConfigError(
            "url cannot be read",
            where="target http",
            accepted="http:// or https://, a host, a port in digits, a path",
            fix="check host and port, and write signs such as / in a password as %2F",
        )


def _redacted(record: logging.LogRecord) -> bool:
    """Let httpx log no URL with a secret in it."""
    record.msg, record.args = secrets.redact(record.getMessage()), ()
    return True


def _place(url: str) -> str:
    """Host and port, which are all that a message tells of a URL."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "(no host)"
    return f"{parsed.host}:{_port(parsed)}"


def _port(url: httpx.URL) -> int | None:
    return url.port or {"http": 80, "https": 443}.get(url.scheme)


def _seconds(header: str | None) -> float | None:
    """``Retry-After``: seconds, or a date; None where it is neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
