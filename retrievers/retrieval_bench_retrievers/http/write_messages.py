"""Writes to a program or a tool: one message for each document that is added or deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.functions.writing import (
    ID,
    PLACES,
    added,
    check_embeds,
    check_places,
    check_write,
    unwritable,
)
from retrieval_bench_retrievers.http.templates import Template

if TYPE_CHECKING:
    from retrieval_bench_retrievers.http.write import WriteRequests


class WriteMessages:
    """The messages of ``write: {into: NAME, add: {...}, delete: {...}}``.

    Args:
        raw: as it stands in the config.
        where, example: for messages.
        beside: what names the collection where the messages do not: a command, an address.
        encoder: of the search.
        ours: the collection is made for the search, and need not have a name.

    Attributes:
        into: the collection.

    Raises:
        ConfigError: keys or placeholders that do not fit, or nothing that names the collection.
    """

    def __init__(
        self,
        raw: Mapping[str, Any],
        *,
        where: str,
        example: str,
        beside: str,
        encoder: Encoder | None = None,
        ours: bool = False,
    ) -> None:
        self.into = check_write(raw, where, example, ours=ours)
        self._of: dict[str, Template] = {}
        for part in PLACES:
            if not isinstance(raw[part], Mapping):
                given = f"{part} = {raw[part]!r}"
                raise ConfigError(given, where=where, accepted=example, fix="write a mapping")
            self._of[part] = template = Template(raw[part], f"{where}, {part}")
            said = f"{json.dumps(raw[part], default=str, ensure_ascii=False)} {beside}"
            check_places(part, template.names, where=where, into=self.into, said=said)
        embeds = check_embeds(self._of["add"].names, encoder, where)
        self._encoder = encoder if embeds else None

    def adding(self, documents: Sequence[Document]) -> Iterator[Any]:
        """A message for each document, which replaces the one of its id."""
        return (self._of["add"].render(values) for values in added(documents, self._encoder))

    def deleting(self, ids: Sequence[str]) -> Iterator[Any]:
        """A message for each id."""
        return (self._of["delete"].render({ID: name}) for name in ids)


class WritesMessages:
    """``add`` and ``delete`` of a retriever that has messages for them, or none.

    Attributes:
        at, example: for the refusal where it has none.
    """

    at: ClassVar[str]
    example: ClassVar[str]
    _writes: WriteMessages | WriteRequests | None = None

    def collection(self) -> str:
        """``into`` of ``write``."""
        return "" if self._writes is None else self._writes.into

    def add(self, documents: Sequence[Document]) -> None:
        """Send a message for each; an answer that is no error acknowledges it.

        Raises:
            TransientError, CallError: one was not acknowledged.
        """
        self._send(self._messages().adding(documents))

    def delete(self, ids: Sequence[str]) -> None:
        """Send a message for each id, as :meth:`add`."""
        self._send(self._messages().deleting(ids))

    def _messages(self) -> WriteMessages | WriteRequests:
        if self._writes is None:
            raise unwritable(self.at, self.example)
        return self._writes

    def _send(self, messages: Iterator[Any]) -> None:
        raise NotImplementedError
