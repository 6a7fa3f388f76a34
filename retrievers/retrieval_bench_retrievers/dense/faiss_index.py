"""Nearest vectors by inner product with FAISS: exhaustive, or through an HNSW graph.

Both take row vectors and give (scores, rows), best first; rows that FAISS pads with -1 are left
out. Rows of one score come in no particular order.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench_retrievers.encoders.encoder import whole_number

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]
Nearest = tuple[NDArray[np.float32], NDArray[np.int64]]

SMALLEST_GRAPH = 1000
"""Vectors below which a graph saves no time and an exhaustive search takes its place."""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """What kind of index; the numbers are those of HNSW, after its paper (Malkov & Yashunin 2018).

    Attributes:
        kind: ``flat`` or ``hnsw``.
        m: neighbours of a node, at least 2.
        ef_construction: candidates kept while the graph is built.
        ef_search: candidates kept while it is searched; never fewer than the hits asked for.
    """

    kind: str = "flat"
    m: int = 32
    ef_construction: int = 200
    ef_search: int = 128

    @classmethod
    def parse(cls, given: str | Mapping[str, Any]) -> IndexSettings:
        """From a kind, or ``{type: hnsw, m, ef_construction, ef_search}``.

        Raises:
            ConfigError: an unknown kind or key, or a number that is too small.
        """
        content = {"type": given} if isinstance(given, str) else dict(given)
        kind = content.pop("type", None)
        if kind not in ("flat", "hnsw"):
            raise ConfigError(
                f"index type {kind!r}",
                where="retriever dense, index",
                accepted=near_names(str(kind), ("flat", "hnsw")),
            )
        known = ("m", "ef_construction", "ef_search") if kind == "hnsw" else ()
        for key in content:
            if key not in known:
                raise ConfigError(
                    f"unknown key {key!r} for an index of type {kind}",
                    where="retriever dense, index",
                    accepted=near_names(str(key), ("type", *known)),
                )
        # With m = 1 the logarithm that draws a node's level is 0, and FAISS takes the process down.
        numbers = {
            key: whole_number(n, f"index.{key}", at_least=2 if key == "m" else 1)
            for key, n in content.items()
        }
        return cls(kind, **numbers)

    def describe(self, n: int) -> dict[str, Any]:
        """For the manifest: the settings, and what ``n`` vectors are searched with."""
        if self.kind == "flat":
            return {"type": "flat"}
        return {
            "type": "hnsw",
            "m": self.m,
            "ef_construction": self.ef_construction,
            "ef_search": self.ef_search,
            "used": "hnsw"
            if n >= SMALLEST_GRAPH
            else f"flat: fewer than {SMALLEST_GRAPH} vectors need no graph",
        }

    def build(self, vectors: Vectors) -> Index:
        """An index over ``vectors``, which it may keep without a copy."""
        if self.kind == "flat" or len(vectors) < SMALLEST_GRAPH:
            return _Flat(vectors)
        return _HNSW(vectors, self)


class Index(Protocol):
    """Vectors that can be searched."""

    def nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        """At most ``k`` rows for a query of shape (1, dimension).

        Args:
            k: at most the number of rows, or of those in ``among``.
            among: int64, the rows that may be answers, ascending; None = all.
        """


class _Flat:
    """Exhaustive search over the matrix itself: FAISS's own flat index would hold a copy."""

    def __init__(self, vectors: Vectors) -> None:
        _import_faiss()  # not in the first search
        self._vectors = vectors

    def nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        return _exhaustive(query, self._vectors, k, among)


class _HNSW:
    def __init__(self, vectors: Vectors, settings: IndexSettings) -> None:
        self._faiss = _import_faiss()
        self._ef_search = settings.ef_search
        self._graph = self._faiss.IndexHNSWFlat(
            vectors.shape[1], settings.m, self._faiss.METRIC_INNER_PRODUCT
        )
        self._graph.hnsw.efConstruction = settings.ef_construction
        self._graph.add(vectors)

    def nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        if among is not None and len(among) < SMALLEST_GRAPH:
            return self.exactly_nearest(query, k, among)
        # FAISS itself would not look at more than ef_search candidates, and pad what is missing.
        parameters = self._faiss.SearchParametersHNSW(efSearch=max(self._ef_search, k))
        if among is not None:
            parameters.sel = self._faiss.IDSelectorBatch(among)
        scores, rows = self._graph.search(query, k, params=parameters)
        found = _without_padding(scores[0], rows[0])
        if among is not None and len(found[1]) < k:
            # What fits lies where the graph does not lead: far from the query.
            return self.exactly_nearest(query, k, among)
        return found

    def exactly_nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        """What the graph should find; arguments as of ``nearest``."""
        storage = self._faiss.downcast_index(self._graph.storage)
        flat = self._faiss.rev_swig_ptr(storage.get_xb(), storage.ntotal * storage.d)
        return _exhaustive(query, flat.reshape(storage.ntotal, storage.d), k, among)


def _exhaustive(query: Vectors, vectors: Vectors, k: int, among: Rows | None) -> Nearest:
    faiss = _import_faiss()
    searched = vectors if among is None else vectors[among]
    scores, rows = faiss.knn(query, searched, k, metric=faiss.METRIC_INNER_PRODUCT)
    scores, rows = _without_padding(scores[0], rows[0])
    return scores, rows if among is None else among[rows]


def _without_padding(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> Nearest:
    found = rows >= 0
    return (scores, rows) if found.all() else (scores[found], rows[found])


def _import_faiss() -> Any:
    with warnings.catch_warnings():
        # Types that SWIG generated before version 4.3 lack an attribute that Python 3.12 expects.
        warnings.filterwarnings("ignore", "builtin type [Ss]wig", DeprecationWarning)
        import faiss
    return faiss
