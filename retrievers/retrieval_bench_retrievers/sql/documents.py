"""Documents as PostgreSQL can hold them, and the hash of what they hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Document
from retrieval_bench.data.fingerprint import Sum
from retrieval_bench_retrievers.sql.statement import plain_text


def content_of(documents: Iterable[Document]) -> tuple[str, int]:
    """A hash of ids, titles, texts and metadata that does not depend on their order, and the number
    of documents. Unlike a dataset's fingerprint it knows no queries, and does know metadata."""
    added = Sum()
    for document in documents:
        digest = blake2b(digest_size=32, person=b"table")
        for part in texts_of(document):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        added.add(digest.digest())
    whole = added.count.to_bytes(8, "little") + added.total.to_bytes(32, "little")
    return blake2b(whole, digest_size=16, person=b"table").hexdigest(), added.count


def document_id(document: Document) -> str:
    """The id, as PostgreSQL holds it.

    Raises:
        ContractError: it cannot hold it.
    """
    if plain_text(document.id) != document.id:
        raise ContractError(
            f"document id {document.id!r} cannot be stored in a database",
            accepted="ids without NUL and without halves of surrogate pairs",
            fix="correct the corpus",
        )
    return document.id


def texts_of(document: Document) -> tuple[str, str, str, str]:
    """Id, title, text, and metadata as JSON with its keys in order."""
    metadata = json.dumps(plain_metadata(document.metadata), ensure_ascii=False, sort_keys=True)
    title, text = plain_text(document.title), plain_text(document.text)
    return document_id(document), title, text, metadata


def plain_metadata(value: Any) -> Any:
    """Metadata as jsonb holds them; what JSON does not know as text."""
    if isinstance(value, str):
        return plain_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {plain_text(str(key)): plain_metadata(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_metadata(item) for item in value]
    return plain_text(str(value))
