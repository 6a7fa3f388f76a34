"""``write`` of a config: how documents are added and deleted, with ``{document.id}``,
``{document.text}`` (title, blank, text) and ``{embedding}`` where these belong."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from retrieval_bench.core.errors import ConfigError, check_known
from retrieval_bench.core.types import Document

ID, TEXT, EMBEDDING = "document.id", "document.text", "embedding"
PLACES = {"add": frozenset({ID, TEXT, EMBEDDING}), "delete": frozenset({ID})}
"""Names by place: what may stand where."""


class Encodes(Protocol):
    """Encoder of the documents."""

    def load(self) -> None:
        """Load the model, unless it is loaded."""

    def document_batches(self, texts: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        """Positions of texts, and a row for each."""


def check_write(raw: Mapping[str, Any], where: str, example: str, *, ours: bool = False) -> str:
    """The name of the collection, empty where it is ``ours`` and has none.

    Args:
        raw: ``{into: NAME, add: ..., delete: ...}``.
        where, example: for messages.

    Raises:
        ConfigError: a part is missing, or one too many.
    """
    parts = (*PLACES, "into")
    for name in raw:
        check_known(name, parts, f"unknown key {name!r}", where=where, fix="correct it")
    if missing := [name for name in parts if not raw.get(name) and not (ours and name == "into")]:
        raise ConfigError(
            f"write without {' and '.join(missing)}",
            where=where,
            accepted=f"write: {example}",
            fix="add what is missing; `into` is the name of the collection",
        )
    return str(raw.get("into") or "")


def check_places(
    part: str, names: Collection[str], *, where: str, into: str, said: str, mark: str = "{%s}"
) -> None:
    """Refuse a part that writes nothing, or does not say where.

    Args:
        part: "add" or "delete".
        names: of its placeholders.
        into: of the collection; empty where it is ours.
        said: all that it says, in which ``into`` must stand.
        mark: how a placeholder is written.

    Raises:
        ConfigError: either.
    """
    fits = PLACES[part]
    if wrong := sorted(set(names) - fits):
        raise ConfigError(
            f"{part} has {', '.join(mark % name for name in wrong)}",
            where=where,
            accepted=", ".join(mark % name for name in sorted(fits)),
            fix="correct the placeholder",
        )
    lacks = [ID] if ID not in names else []
    if part == "add" and not {TEXT, EMBEDDING} & set(names):
        lacks.append(TEXT)
    if lacks:
        raise ConfigError(
            f"{part} has no place for the document",
            where=where,
            accepted=" and ".join(mark % name for name in lacks),
            fix="write it where that of the document belongs",
        )
    if not re.search(rf"(?<![\w-]){re.escape(into)}(?![\w-])", said) and into:
        raise ConfigError(
            f"into: {into}, which the request `{part}` does not hold",
            where=where,
            accepted="the name of the collection as it stands there",
            fix="correct `into`: it is what must be typed out before anything is written",
        )


def check_embeds(names: Collection[str], encoder: object, where: str) -> bool:
    """Whether adding takes the vector of a document.

    Raises:
        ConfigError: nothing makes one.
    """
    if EMBEDDING in names and encoder is None:
        raise ConfigError(
            "write: {embedding} without encoder",
            where=where,
            accepted="an `encoder`, which makes the vectors of queries and documents",
            fix="for example encoder: {model: all-MiniLM-L6-v2}",
        )
    return EMBEDDING in names


def added(
    documents: Sequence[Document], encoder: Encodes | None, *, plain: bool = True
) -> Iterator[dict[str, Any]]:
    """The values of each document, by name of their placeholder.

    Args:
        encoder: None where no vector is taken.
        plain: vectors as lists.
    """
    for document in documents:
        values: dict[str, Any] = {ID: document.id, TEXT: document.contents}
        if encoder is not None:
            encoder.load()
            ((_, rows),) = encoder.document_batches([document.contents])
            values[EMBEDDING] = rows[0].tolist() if plain else rows[0]
        yield values


def unwritable(where: str, example: str) -> ConfigError:
    """The refusal of a target that has no ``write``."""
    return ConfigError(
        "writing with a target that has no `write`",
        where=where,
        accepted=f"write: {example}",
        fix="add it to the config",
    )
