"""A collection of an engine: made, filled in batches, searched, closed. What all engines share.

How to add an engine, in a module of this room with at most 250 lines:

1. A subclass of :class:`BatchedStore` (of :class:`.FolderStore` where it runs in this process) with
   its class variables and abstract methods; ``search`` gives what :class:`Asked` says.
2. ``class NAME(Engine)`` with ``store = THAT``.
3. Its short name in ``core.plugins.BUILT_IN``, its schemes in ``data.stores.STORES``, its extra in
   ``pyproject.toml`` and ``cli.layers``, its versions in ``constraints.txt``.
4. A line of ``ENGINES`` in ``tests/builders/engine_corpus.py``, which all tests of engines read.
5. Its lines in the guide: ``do/engines.md``, ``look-up/retrievers.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.filters import Filter
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.encoders.encoder import Encoder, Vectors
from retrieval_bench_retrievers.encoders.vectors import DocumentVectors, normalised
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.failures import text_of
from retrieval_bench_retrievers.sql.params import LoadSettings
from retrieval_bench_retrievers.sql.table import (
    BATCH,
    Filled,
    batches,
    content_of,
    identity_of,
    plain_metadata,
    shifted,
    texts_of,
)

DEPTH, RRF_K = 100, 60
"""Of a hybrid: hits of each leg, at least, and the constant of their fusion by rank."""

Hits = list[tuple[str, float]]
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
    """A document as it is sent: ``contents`` is title and text, the vector has length 1."""

    id: str
    contents: str
    metadata: Mapping[str, Any]
    vector: Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One search in a ``mode``: "bm25", "text", "dense" or "hybrid".

    Attributes:
        vector: of length 1; None where the mode takes none.
        k, depth: hits; hits of each leg of a hybrid.
        exact, ef: search all vectors; what an approximate index is told, at least
            the hits of a leg.
    """

    mode: str
    text: str
    vector: Vectors | None
    k: int
    depth: int
    filter: Filter | None
    exact: bool
    ef: int


class EngineStore(ABC):
    """One collection.

    Attributes:
        kind, version: of the engine; the version is known once it is open.
        schemes: of its addresses.
        extra, modes: what must be installed; what it can search in.
        usual_ef, most_ef: what the engine takes where nobody says; at most.
        graph_only: where there is a graph, nothing searches past it.
        first_rank: of its fusion by rank, 0 or 1.
        ties_by_id: it cuts equal scores of an exact search by id, as :class:`.Engine` does.
        stand_in: it stands in for another engine: its times are not those of that.
        plan: what the collection is made for; set before it is filled or searched.
    """

    kind: str
    schemes: ClassVar[tuple[str, ...]]
    extra: ClassVar[str]
    modes: ClassVar[tuple[str, ...]]
    usual_ef: ClassVar[int]
    most_ef: ClassVar[int] = 1 << 30
    graph_only: ClassVar[bool] = False
    first_rank: ClassVar[int] = 1
    ties_by_id: ClassVar[bool] = False
    stand_in: bool = False
    version: str = ""
    plan: Plan

    def __init__(self, address: Address, table: str) -> None:
        self.address, self.table = address, table

    @classmethod
    @abstractmethod
    def packages(cls, address: Address | None) -> tuple[str, ...]:
        """What must be installed for an address; None = the embedded one."""

    @classmethod
    def at(cls, address: Address | None, table: str) -> EngineStore:
        """The collection at an address; None = a new one of the harness's own."""
        return cls(address or Address.embedded(), table)

    @abstractmethod
    def open(self) -> None:
        """Connect, or raise :class:`ConfigError`: nothing answers, or it lets nobody in."""

    @abstractmethod
    def known(self) -> dict[str, Any] | None:
        """The facts of the load: content, documents, language, encoder, index, fields, finished;
        {} where it was none of ours, None where the collection is not there."""

    @abstractmethod
    def fill(self, documents: Iterable[Document], progress: Progress | None) -> Filled:
        """Make the collection unless it is there, send what it lacks, then build its index.

        Raises:
            ConfigError, ContractError: it holds something else, or the engine failed, after which
                the same again goes on; two documents of one id, or one that nothing can hold.
        """

    @abstractmethod
    def search(self, asked: Asked) -> Hits:
        """Ids and scores, in any order; raises what the engine raises."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it; what is embedded leaves nothing."""

    def split(self, text: str) -> list[str]:
        """The terms that the engine makes of a text, as far as it tells. Optional."""
        return []

    def facts(self) -> dict[str, Any]:
        """What else the manifest says: what vectors are searched with, settings that nobody gave.
        Optional."""
        return {}

    def failed(self, problem: Exception) -> Exception:
        """What an exception of the engine means for a search."""
        return CallError(f"{self.kind}: {text_of(problem)}")

    def disk_bytes(self) -> int | None:
        """Bytes on the disk of this machine. Optional."""
        return None

    def server_pid(self) -> int | None:
        """The process on this machine that answers, where it is another one. Optional."""
        return None


class BatchedStore(EngineStore):
    """One that is filled in batches, as its five methods say how."""

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
    def finish(self) -> None:
        """Build all indexes, and wait until nothing is left to do."""

    def fill(self, documents: Iterable[Document], progress: Progress | None) -> Filled:
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
            raise ConfigError(
                f"{self.kind} failed while {self.table} was filled: {text_of(problem)}",
                where=self.address.shown,
                fix="see what it says (a full disk, a server that ended); the same command then "
                "goes on where this ended",
            ) from problem
        return Filled(sent, there - sent, content)

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
        fault = f"was filled with another {differing[0]}: {known.get(differing[0])}"
        raise ConfigError(
            f"{self.table} {fault if known else 'is there, and this command did not make it'}",
            where=self.address.shown,
            accepted="a new collection, or the same documents, language, encoder and index again",
            fix="choose another --table, or remove that one yourself",
        )

    def _sent(self, documents: Iterable[Document], n: int, progress: Progress) -> int:
        encoder, cache = self.plan.encoder, self.plan.index.cache
        vectors = None if encoder is None else DocumentVectors(encoder, cache)
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
                told = shifted(progress, done + len(batch) - len(new), n)
                self.send(list(_rows(new, vectors, told)))
            sent, done = sent + len(new), done + len(batch)
            progress(done, n)
        return sent


def _rows(
    documents: Sequence[Document], vectors: DocumentVectors | None, progress: Progress
) -> Iterator[Row]:
    """As they are sent; equal texts share a vector."""
    parts = [texts_of(document) for document in documents]
    texts = [f"{title} {text}" if title else text for _, title, text, _ in parts]
    row_of = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    made = None if vectors is None else normalised(vectors.of(list(row_of), progress))
    for document, (doc_id, *_), text in zip(documents, parts, texts, strict=True):
        vector = None if made is None else made[row_of[text]]
        yield Row(doc_id, text, plain_metadata(document.metadata), vector)
