"""How collections are filled: in batches, so that a load which was interrupted goes on where it
ended, and another content is refused."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import Any, ClassVar

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.types import Document
from retrieval_bench.data.fingerprint import Sum
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.encoders.vectors import DocumentVectors, normalised
from retrieval_bench_retrievers.sql.failures import text_of
from retrieval_bench_retrievers.sql.params import LoadSettings
from retrieval_bench_retrievers.sql.statement import plain_text

BATCH = 2048
"""Documents that are encoded and sent together: what an interrupted load does again."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a collection is made for.

    Attributes:
        encoder: of the vectors, loaded; None without.
        language: a text search configuration such as "english"; "simple" = no stems.
        fields: of the metadata, which filters name.
        index: of the vectors.
    """

    encoder: Encoder | None
    language: str
    fields: tuple[str, ...]
    index: LoadSettings

    @property
    def dimension(self) -> int | None:
        """Of the vectors."""
        return None if self.encoder is None else self.encoder.dimension

    def index_facts(self, graph: Any, why: str = "the engine has built no graph") -> dict[str, Any]:
        """What vectors are searched with, as :meth:`.IndexSettings.describe` says it."""
        kind = "hnsw" if self.index.index == "hnsw" else "flat"
        used = {"type": kind, "used": "hnsw" if graph else f"flat: {why}"}
        return {} if self.dimension is None else {"index": used}


@dataclass(frozen=True, slots=True)
class Row:
    """A document as it is sent, with its vector."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any]
    vector: Any

    @property
    def contents(self) -> str:
        """Title and text."""
        return f"{self.title} {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Filled:
    """What a load did: documents sent, documents that were there before, the content's hash."""

    sent: int
    there: int
    content: str


class Filling(ABC):
    """A collection that is filled in batches, as its five methods say how.

    Attributes:
        kind: of what holds it.
        unit_vectors: whether vectors are sent with length 1, or as the encoder gives them.
        table: name of the collection.
        plan: what it is made for; set before it is filled.
        vectors: of the documents; None without an encoder, or before there were any to send.
    """

    kind: str
    unit_vectors: ClassVar[bool] = True
    table: str
    plan: Plan
    vectors: DocumentVectors | None = None

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, for messages."""

    @abstractmethod
    def known(self) -> dict[str, Any] | None:
        """The facts of the load: content, documents, language, encoder, index, finished; {} where
        it was none of ours, None where the collection is not there."""

    @abstractmethod
    def remember(self, loaded: Mapping[str, Any]) -> None:
        """Keep the facts that :meth:`known` gives."""

    @abstractmethod
    def create(self) -> None:
        """Make the collection that :attr:`plan` says."""

    @abstractmethod
    def missing(self, ids: Sequence[str]) -> set[str]:
        """Those of ``ids`` that the collection does not hold."""

    @abstractmethod
    def send(self, rows: Sequence[Row]) -> None:
        """Add them; they survive a killed process afterwards."""

    @abstractmethod
    def put(self, rows: Sequence[Row]) -> None:
        """Add them beside what was filled, or replace those of their ids; acknowledged on
        return."""

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> None:
        """Take them out, where they are there; acknowledged on return."""

    @abstractmethod
    def finish(self) -> None:
        """Build all indexes, and wait until nothing is left to do."""

    def fill(self, documents: Iterable[Document], progress: Progress | None) -> Filled:
        """Make the collection unless it is there, send what it lacks, then build its index.

        Args:
            documents: walked twice.
            progress: told (documents done, documents in all) after each batch.

        Raises:
            ConfigError, ContractError: it holds something else, or the engine failed, after which
                the same again goes on; two documents of one id, or one that nothing can hold.
        """
        content, there = content_of(documents)
        loaded = {
            **{"content": content, "documents": there, "language": self.plan.language},
            **{"encoder": identity_of(self.plan.encoder), "index": self.plan.index.index},
            "fields": list(self.plan.fields),
        }
        try:
            if self._begun(loaded):
                return Filled(0, there, content)
            sent = self._sent(documents, there, progress or (lambda done, total: None))
            self.finish()
            self.remember({**loaded, "finished": True})
        except (HarnessError, CallError):
            raise
        except Exception as problem:
            raise self.unfilled(problem) from problem
        return Filled(sent, there - sent, content)

    def write(self, documents: Sequence[Document]) -> None:
        """:meth:`put` documents; their vectors are encoded anew, and not kept."""
        if self.plan.encoder is not None:
            self.vectors = DocumentVectors(self.plan.encoder, False)
        self.put(self._rows(documents, lambda done, total: None))

    def unfilled(self, problem: Exception) -> Exception:
        """Failure of a load that an exception of the engine means."""
        return ConfigError(
            f"{self.kind} failed while {self.table} was filled: {text_of(problem)}",
            where=self.place,
            fix="see what it says (a full disk, a server that ended); the same command then "
            "goes on where this ended",
        )

    def _begun(self, loaded: Mapping[str, Any]) -> bool:
        """Whether the load was finished before; the collection is there afterwards."""
        known = self.known()
        if known is None:
            self.remember({**loaded, "finished": False})
            self.create()
            return False
        differing = [what for what in loaded if known.get(what) != loaded[what]]
        if not differing:
            return bool(known["finished"])
        what = differing[0]
        fault = f"was filled with another {what}: {known.get(what)}, not {loaded[what]}"
        raise ConfigError(
            f"{self.table} {fault if known else 'is there, and this command did not make it'}",
            where=self.place,
            accepted="a new collection, or the same documents, language, encoder and index again",
            fix="choose another --table, or remove that one yourself",
        )

    def _sent(self, documents: Iterable[Document], n: int, progress: Progress) -> int:
        encoder, cache = self.plan.encoder, self.plan.index.cache
        self.vectors = None if encoder is None else DocumentVectors(encoder, cache)
        sent = done = 0
        ids = set[str]()
        for batch in batches(documents, BATCH):
            for one in batch:
                if one.id in ids:
                    fix = "correct the corpus; chunks of one document need an id each"
                    raise ContractError(f"two documents have one id: {one.id!r}", fix=fix)
                ids.add(one.id)
            wanted = self.missing([document.id for document in batch])
            new = [document for document in batch if document.id in wanted]
            if new:
                self.send(self._rows(new, shifted(progress, done + len(batch) - len(new), n)))
            sent, done = sent + len(new), done + len(batch)
            progress(done, n)
        return sent

    def _rows(self, documents: Sequence[Document], progress: Progress) -> list[Row]:
        """As they are sent; equal texts share a vector."""
        rows = [Row(*texts_of(one)[:3], plain_metadata(one.metadata), None) for one in documents]
        if self.vectors is None:
            return rows
        row_of = {text: at for at, text in enumerate(dict.fromkeys(row.contents for row in rows))}
        made = self.vectors.of(list(row_of), progress)
        made = normalised(made) if self.unit_vectors else made
        return [replace(row, vector=made[row_of[row.contents]]) for row in rows]


def identity_of(encoder: Encoder | None) -> dict[str, Any] | None:
    """What must be equal of the encoders of documents and of queries."""
    if encoder is None:
        return None
    return {
        "model": encoder.name,
        "sha256": encoder.content_hash,
        "dimension": encoder.dimension,
        "prompt": encoder.prompts.get("document", ""),
        "max_seq_length": encoder.max_seq_length,
    }


def shifted(
    progress: Callable[[int, int], None], before: int, total: int
) -> Callable[[int, int], None]:
    """Tells of a batch as a part of the whole."""
    return lambda done, _: progress(before + done, total)


def batches(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    """So many at a time."""
    walk = iter(documents)
    while batch := list(islice(walk, size)):
        yield batch


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
