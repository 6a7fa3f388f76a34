"""A collection of an engine: made, filled in batches, searched, closed. What all engines share.

How to add an engine, in a module of this room with at most 250 lines:

1. A subclass of :class:`EngineStore` (of :class:`.FolderStore` where it runs in this process) with
   its class variables and abstract methods; ``search`` gives what :class:`Asked` says.
2. ``class NAME(Engine)`` with ``store = THAT``.
3. Its short name in ``core.plugins.BUILT_IN``, its schemes in ``data.stores.STORES``, its extra in
   ``pyproject.toml`` and ``experiment.layers``, its versions in ``constraints.txt``.
4. A line of ``ENGINES`` in ``tests/builders/engine_corpus.py``, which all tests of engines read.
5. Its lines in the guide: ``do/engines.md``, ``look-up/retrievers.md``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.filters import Filter
from retrieval_bench_retrievers.encoders.encoder import Vectors
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.failures import text_of
from retrieval_bench_retrievers.sql.filling import Filling

DEPTH, RRF_K = 100, 60
"""Of a hybrid: hits of each leg, at least, and the constant of their fusion by rank."""

Hits = list[tuple[str, float]]


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


class EngineStore(Filling):
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
    """

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

    def __init__(self, address: Address, table: str) -> None:
        self.address, self.table = address, table

    @property
    def place(self) -> str:
        """The address."""
        return self.address.shown

    @classmethod
    @abstractmethod
    def packages(cls, address: Address | None) -> tuple[str, ...]:
        """Package that an address needs; None = the embedded one."""

    @classmethod
    def at(cls, address: Address | None, table: str) -> EngineStore:
        """The collection at an address; None = a new one of the harness's own."""
        return cls(address or Address.embedded(), table)

    @abstractmethod
    def open(self) -> None:
        """Connect, or raise :class:`ConfigError`: nothing answers, or it lets nobody in."""

    @abstractmethod
    def search(self, asked: Asked) -> Hits:
        """Ids and scores, in any order; raises what the engine raises."""

    @abstractmethod
    def vector_size(self) -> int | None:
        """Numbers in each vector of the collection that is open; None where it has no vectors."""

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
        """Failure of a search that an exception of the engine means."""
        return CallError(f"{self.kind}: {text_of(problem)}")

    def disk_bytes(self) -> int | None:
        """Bytes on the disk of this machine. Optional."""
        return None

    def server_pid(self) -> int | None:
        """The process on this machine that answers, where it is another one. Optional."""
        return None
