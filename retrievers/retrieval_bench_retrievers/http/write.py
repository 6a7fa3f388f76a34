"""Writes to a search service: one request for each document that is added or deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import ConfigError, check_known
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.functions.writing import (
    ID,
    added,
    check_embeds,
    check_places,
    check_write,
)
from retrieval_bench_retrievers.http.request import RequestTemplate

WHERE = "target http, write"
EXAMPLE = "{into: articles, add: {url: ...}, delete: {url: ...}}"
_REQUEST = ("url", "method", "headers", "body")

Request = tuple[str, str, dict[str, bytes], bytes | None, bool]
"""Method, URL, headers and content, and whether an answer of 404 acknowledges it, too."""


class WriteRequests:
    """The requests of ``write: {into: NAME, add: {...}, delete: {...}}``.

    A request without ``headers`` has those of the search, one without ``method`` is POST, or DELETE
    for deleting without a body.

    Args:
        raw: as it stands in the config.
        headers: of the search.
        encoder: of the search.

    Attributes:
        into: the collection, a name that both requests hold.
        hidden: values that no message may hold.

    Raises:
        ConfigError: keys or placeholders that do not fit, or requests that do not name the
            collection.
    """

    def __init__(
        self, raw: Mapping[str, Any], headers: Mapping[str, Any], encoder: Encoder | None
    ) -> None:
        self.into = check_write(raw, WHERE, EXAMPLE)
        self._of = {part: self._request(raw[part], part, headers) for part in ("add", "delete")}
        self._encoder = encoder if check_embeds(self._of["add"].names, encoder, WHERE) else None
        self.hidden = [value for request in self._of.values() for value in request.hidden]

    def adding(self, documents: Sequence[Document]) -> Iterator[Request]:
        """A request for each document."""
        for values in added(documents, self._encoder):
            yield (self._of["add"].method, *self._of["add"].render(values), False)

    def deleting(self, ids: Sequence[str]) -> Iterator[Request]:
        """A request for each id, which may be gone."""
        for name in ids:
            yield (self._of["delete"].method, *self._of["delete"].render({ID: name}), True)

    def _request(self, raw: Any, part: str, headers: Mapping[str, Any]) -> RequestTemplate:
        if not isinstance(raw, Mapping) or "url" not in raw:
            raise ConfigError(
                f"{part} is no request",
                where=WHERE,
                accepted="url, and method, headers and body where they are needed",
                fix=f"write {part}: {{method: ..., url: ...}}",
            )
        for name in raw:
            what = f"unknown key {part}.{name}"
            check_known(name, _REQUEST, what, where=WHERE, fix="correct it")
        body = raw.get("body")
        usual = "DELETE" if part == "delete" and body is None else "POST"
        method, own = raw.get("method", usual), raw.get("headers", headers)
        request = RequestTemplate(method, raw["url"], own, body, literal=False)
        said = f"{request.address} {body}"
        check_places(part, request.names, where=WHERE, into=self.into, said=said)
        return request
