"""Writes to PostgreSQL by statements of the config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.functions.writing import (
    ID,
    PLACES,
    TEXT,
    added,
    check_embeds,
    check_places,
    check_write,
)
from retrieval_bench_retrievers.sql.statement import WHERE, placeholders, plain_text

EXAMPLE = "{into: TABLE, add: INSERT ..., delete: DELETE ...}"
_WHERE = f"{WHERE}, write"


class Executes(Protocol):
    """A connection, which runs a statement and commits it."""

    def __call__(self, statement: bytes, values: Mapping[str, Any]) -> Any: ...


class WriteStatements:
    """Statements of ``write: {into: TABLE, add: ..., delete: ...}``, with %(document.id)s,
    %(document.text)s and %(embedding)s.

    Attributes:
        into: the table.

    Raises:
        ConfigError: keys or placeholders that do not fit, or statements that do not name the
            table.
    """

    def __init__(self, raw: Any, encoder: Encoder | None) -> None:
        if not isinstance(raw, Mapping):
            raise ConfigError(f"write = {raw!r}", where=_WHERE, accepted=EXAMPLE)
        self.into = check_write(raw, _WHERE, EXAMPLE)
        self._text = {part: str(raw[part]) for part in PLACES}
        accepted = sorted(PLACES["add"])
        names = {part: {*placeholders(text, accepted)} for part, text in self._text.items()}
        for part, text in self._text.items():
            how = {"where": _WHERE, "into": self.into, "said": text, "mark": "%%(%s)s"}
            check_places(part, names[part], **how)
        self._encoder = encoder if check_embeds(names["add"], encoder, _WHERE) else None

    def add(self, documents: Sequence[Document], execute: Executes) -> None:
        """Add documents, or replace those of their ids."""
        for values in added(documents, self._encoder, plain=False):
            for name in (ID, TEXT):
                values[name] = plain_text(values[name])
            execute(self._text["add"].encode(), values)

    def delete(self, ids: Sequence[str], execute: Executes) -> None:
        """Delete documents by their ids."""
        for name in ids:
            execute(self._text["delete"].encode(), {ID: plain_text(name)})
