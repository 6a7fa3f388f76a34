"""What an adapter is asked to put into a store, and what it says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import Documents


@dataclass(frozen=True, slots=True)
class Load:
    """Request to load a dataset into a store.

    Attributes:
        documents: walked more than once.
        language: ISO 639-1, None where it is not known.
        into: address, which may hold a password: never shown.
        table: name of the table or collection.
        encoder: name of a model; None = no vectors.
        index: of the vectors, "exact" or "hnsw".
        progress: told (documents done, documents in all).
        fields: of the metadata, which filters of the dataset name.
    """

    documents: Documents
    language: str | None
    into: str = field(repr=False)
    table: str
    encoder: str | None
    index: str
    progress: Callable[[int, int], None] | None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded(Documented):
    """Content of a store.

    Attributes:
        table: its name.
        encoder: model of the vectors; None without.
        index: "exact" or "hnsw".
        store: what it is, with its version.
        into: address without a password.
        n_documents: in the table, of this dataset.
        n_loaded: sent by this call.
        n_there: were there from an earlier one.
        content: hash of ids, titles, texts and metadata.
        language: how the store treats words.
    """

    store: str
    into: str
    table: str
    n_documents: int
    n_loaded: int
    n_there: int
    content: str
    language: str
    encoder: str | None
    index: str

    def searched(self, typed_into: str) -> tuple[str, list[str]]:
        """The retriever that searches it, and the parameters that it has to be told.

        Args:
            typed_into: the address as it was typed, which may hold ``${NAME}``.
        """
        retriever = searched_by(self.into)
        shown = typed_into if "${" in typed_into else self.into
        hidden = "${" not in typed_into and shown != typed_into  # its password is not repeated
        params = ["uri=${DSN}" if hidden else f"uri={shown}"]
        if self.encoder is None:
            params.append(f"mode={'text' if retriever == 'postgres' else 'bm25'}")
        return retriever, params + ([] if self.table == "documents" else [f"table={self.table}"])


def searched_by(address: str) -> str:
    """The retriever that searches what an address holds."""
    scheme = address.partition("://")[0].partition("+")[0]
    return {"mysql": "seekdb", "postgresql": "postgres"}.get(scheme, scheme)
