"""The request that a query becomes: method, address, headers and body, with its placeholders."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.secrets import Filled
from retrieval_bench_retrievers.functions.secret_words import is_secret
from retrieval_bench_retrievers.http.client import check_url, without_userinfo
from retrieval_bench_retrievers.http.templates import GONE, Template, UrlTemplate

_WHERE = "target http"
_METHOD = re.compile("[A-Z]+")
_OPEN = frozenset({"content-type", "accept", "accept-encoding", "user-agent"})
"""Headers whose values are no secret, so that a message may hold the same words."""

_SECRET_PARAMETER = re.compile(
    r"[?&]([^=&#]*(?:api_?key|token|secret|password|signature)[^=&#]*)=([^&#]+)", re.IGNORECASE
)
"""Those in the query of a URL come from the environment, for a manifest holds parameters."""


class RequestTemplate:
    """Everything that is sent, with places for the query.

    Args:
        method: None = POST with a body, otherwise GET.
        url: with or without ``user:password@``, which becomes a header.
        headers: numbers and truth values are taken as texts.
        body: sent as JSON; a text is sent as it is.
        literal: nothing in it is a placeholder.

    Attributes:
        method: in capitals.
        address: the URL as given, without user and password.
        header_names: sorted.
        names: of all placeholders.
        in_path: of those in the path of the URL, which cannot be left out.
        hidden: values that no message may hold.

    Raises:
        ConfigError: a part that cannot be sent, or a secret that is written in the config.
    """

    def __init__(
        self, method: str | None, url: Any, headers: Mapping[str, Any], body: Any, *, literal: bool
    ) -> None:
        self.method = (method or ("GET" if body is None else "POST")).upper()
        if not _METHOD.fullmatch(self.method):
            raise ConfigError(f"method = {method!r}", where=_WHERE, accepted="a word, such as POST")
        self.address, authorization = _address(url)
        given = _as_texts(headers)
        if authorization is not None:
            given = {"Authorization": authorization, **given}
        self.header_names = sorted(given)
        self.hidden = [value for name, value in given.items() if name.lower() not in _OPEN]

        self._url = UrlTemplate(self.address, literal=literal)
        check_url(self._url.render(dict.fromkeys(self._url.names, "x")))
        self._headers = Template(given, f"{_WHERE}, headers", literal=literal)
        self._body = Template(body, f"{_WHERE}, body", literal=literal)
        self._empty: Any = "" if isinstance(body, str) else {}
        _as_bytes(body)  # a date, say, which YAML has and JSON has not
        self._own_headers = {"Accept": b"application/json", "Accept-Encoding": b"gzip, deflate"}
        if body is not None and not isinstance(body, str):
            self._own_headers["Content-Type"] = b"application/json"
        self.names = self._url.names | self._headers.names | self._body.names
        self.in_path = self._url.in_path

    def render(self, values: Mapping[str, Any]) -> tuple[str, dict[str, bytes], bytes | None]:
        """URL, headers and content for the values of a query, by name of their placeholder."""
        url = self._url.render(values)
        headers = dict(self._own_headers)
        filled = self._headers.render(values)
        for name, value in () if filled is GONE else filled.items():
            for own in [own for own in headers if own.lower() == name.lower()]:
                del headers[own]
            headers[name] = (value if isinstance(value, str) else json.dumps(value)).encode()
        body = self._body.render(values)
        return url, headers, _as_bytes(self._empty if body is GONE else body)


def _address(url: Any) -> tuple[str, str | None]:
    """The URL without user and password, and the header that stands for them.

    Raises:
        ConfigError: it is no URL, or the password is written in the config.
    """
    if not isinstance(url, str) or not re.match(r"https?://[^/?#\s]", url):
        raise ConfigError(
            "url is no text that begins with http:// or https:// and a host",
            where=_WHERE,
            accepted="such as http://localhost:9200/articles/_search",
        )
    plain, authorization, (start, end) = without_userinfo(url)
    spans = url.spans if isinstance(url, Filled) else ()
    if authorization is not None and not any(a < end and b > start for a, b in spans):
        raise in_the_open("user and password in the url")

    for match in _SECRET_PARAMETER.finditer(url):
        if not any(a < match.end(2) and b > match.start(2) for a, b in spans):
            raise in_the_open(f"the value of {match[1]} in the url")

    def moved(at: int) -> int:
        return at if at <= start else max(start, at - (end - start))

    return Filled(plain, [(moved(a), moved(b)) for a, b in spans]), authorization


def _as_texts(headers: Mapping[str, Any]) -> dict[str, str]:
    """Header values as texts; YAML reads a bare number or truth value as one."""
    for name, value in headers.items():
        if not isinstance(value, str | int | float):
            raise ConfigError(
                f"header {name!r} is of type {type(value).__name__}",
                where=_WHERE,
                accepted="a text",
                fix="put the value into quotes",
            )
        if is_secret(name) and not isinstance(value, Filled):
            raise in_the_open(f"the value of the header {name!r}")
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in headers.items()
    }


def in_the_open(what: str) -> ConfigError:
    """Refuse a secret that is written in a config."""
    return ConfigError(
        f"{what} stands in the config, which is copied into every saved run",
        where=_WHERE,
        accepted="${NAME}, which is filled from the environment and never written anywhere",
        fix="export the value under a name of your own, and write ${NAME} in its place",
    )


def _as_bytes(body: Any) -> bytes | None:
    if body is None or isinstance(body, str):
        return None if body is None else body.encode()
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as problem:
        raise ConfigError(
            f"the body is no JSON: {problem}", where=_WHERE, fix="put dates into quotes"
        ) from None
    return text.encode()
