"""Nearest vectors by inner product with FAISS: exhaustive, or through an HNSW graph or the lists of
an inverted file (IVF); vectors are float32, or 8 bits a number.

All take row vectors and give (scores, rows), best first; rows that FAISS pads with -1 are left
out. Rows of one score come in no particular order.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import check_known
from retrieval_bench_retrievers.encoders.encoder import whole_number
from retrieval_bench_retrievers.index_files import read_array

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]
Nearest = tuple[NDArray[np.float32], NDArray[np.int64]]

SMALLEST_GRAPH = 1000
"""Vectors below which a graph saves no time and an exhaustive search takes its place."""

_MATRIX, _BUILT = "vectors.npy", "index.faiss"
_KEYS = {"flat": (), "hnsw": ("m", "ef_construction", "ef_search"), "ivf": ("nlist", "nprobe")}


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """What kind of index; the numbers are those of HNSW, after its paper (Malkov & Yashunin 2018),
    and of an inverted file.

    Attributes:
        kind: ``flat``, ``hnsw`` or ``ivf``.
        m: neighbours of a node, at least 2.
        ef_construction: candidates kept while the graph is built.
        ef_search: candidates kept while it is searched; never fewer than the hits asked for.
        nlist: lists that the vectors are spread over; None = 4 times the root of their number.
        nprobe: lists that a query looks into.
        precision: ``float32``, or ``int8``: 8 bits a number, between the least and the largest of
            its dimension.
    """

    kind: str = "flat"
    m: int = 32
    ef_construction: int = 200
    ef_search: int = 128
    nlist: int | None = None
    nprobe: int = 16
    precision: str = "float32"

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], precision: str = "float32") -> IndexSettings:
        """From a kind, or ``{type: hnsw, m, ef_construction, ef_search}`` and its like.

        Raises:
            ConfigError: an unknown kind or key, or a number that is too small.
        """
        content = {"type": given} if isinstance(given, str) else dict(given)
        kind = content.pop("type", None)
        where = "retriever dense, index"
        check_known(kind, _KEYS, f"index type {kind!r}", where=where)
        kind = str(kind)
        known = _KEYS[kind]
        for key in content:
            what = f"unknown key {key!r} for an index of type {kind}"
            check_known(key, ("type", *known), what, where=where)
        # With m = 1 the logarithm that draws a node's level is 0, and FAISS takes the process down.
        numbers = {
            key: whole_number(n, f"index.{key}", at_least=2 if key == "m" else 1)
            for key, n in content.items()
        }
        return cls(kind, precision=precision, **numbers)

    @property
    def text(self) -> str:
        """The kind, and how far it is searched."""
        return ", ".join(
            [self.kind, *(f"{key} {getattr(self, key)}" for key in _KEYS[self.kind][-1:])]
        )

    def searched(self, changed: Mapping[str, Any]) -> IndexSettings | None:
        """The same index, searched farther or less far: ``ef_search`` or ``nprobe``, also by its
        path ``index.ef_search``; None where another index is asked for.

        Raises:
            ConfigError: no whole number of at least 1.
        """
        given = {key.removeprefix("index."): n for key, n in changed.items()}
        if set(given) - {*_KEYS[self.kind][-1:]}:
            return None
        numbers = {key: whole_number(n, f"index.{key}") for key, n in given.items()}
        return replace(self, **numbers) if numbers else self  # type: ignore[arg-type]

    def describe(self, n: int) -> dict[str, Any]:
        """For the manifest: the settings, and what ``n`` vectors are searched with."""
        found = {"type": self.kind, **{key: getattr(self, key) for key in _KEYS[self.kind]}}
        if self.kind == "flat":
            return found
        what = "graph" if self.kind == "hnsw" else "lists"
        few = f"flat: fewer than {SMALLEST_GRAPH} vectors need no {what}"
        return found | {"used": self.kind if n >= SMALLEST_GRAPH else few}

    def load(self, folder: Path) -> Index:
        """What an index of these settings wrote; a matrix is mapped into memory."""
        if (folder / _MATRIX).is_file():
            return _Flat(read_array(folder / _MATRIX))
        index = _Built.__new__(_Built)
        index._faiss = faiss = _import_faiss()
        index._index = faiss.read_index(str(folder / _BUILT))
        index._settings = self if index._index.ntotal >= SMALLEST_GRAPH else _flat(self)
        return index

    def build(self, vectors: Vectors) -> Index:
        """An index over ``vectors``, which it may keep without a copy."""
        settings = self if len(vectors) >= SMALLEST_GRAPH else _flat(self)
        if (settings.kind, settings.precision) == ("flat", "float32") or not len(vectors):
            return _Flat(vectors)
        return _Built(vectors, settings)


def _flat(settings: IndexSettings) -> IndexSettings:
    return replace(settings, kind="flat")


class Index(Protocol):
    """Vectors that can be searched."""

    def save(self, folder: Path) -> None:
        """Write it to ``folder``, for :meth:`IndexSettings.load`."""

    def nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        """At most ``k`` rows for a query of shape (1, dimension).

        Args:
            k: at most the number of rows, or of those in ``among``.
            among: int64, the rows that may be answers, ascending; None = all.
        """

    def exactly_nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        """What an exhaustive search of the vectors that are kept finds; arguments as of
        ``nearest``."""

    def searched(self, settings: IndexSettings) -> Index:
        """The same, searched as ``settings`` say."""

    @property
    def nbytes(self) -> int:
        """Bytes of what it keeps: vectors, links, lists."""


class _Flat:
    """Exhaustive search over the matrix itself: FAISS's own flat index would hold a copy."""

    def __init__(self, vectors: Vectors) -> None:
        _import_faiss()  # not in the first search
        self._vectors = vectors

    def save(self, folder: Path) -> None:
        np.save(folder / _MATRIX, self._vectors)

    def nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        return _exhaustive(query, self._vectors, k, among)

    exactly_nearest = nearest

    def searched(self, settings: IndexSettings) -> Index:
        return self

    @property
    def nbytes(self) -> int:
        return self._vectors.nbytes


class _Built:
    """Build as FAISS does: a graph, an inverted file, or vectors of 8 bits."""

    def __init__(self, vectors: Vectors, settings: IndexSettings) -> None:
        self._faiss = faiss = _import_faiss()
        self._settings = settings
        n, dimension = vectors.shape
        nlist = min(n, settings.nlist or round(4 * n**0.5))
        codes = "Flat" if settings.precision == "float32" else "SQ8"
        places = {"flat": codes, "hnsw": f"HNSW{settings.m},{codes}", "ivf": f"IVF{nlist},{codes}"}
        inner = faiss.METRIC_INNER_PRODUCT
        self._index = index = faiss.index_factory(dimension, places[settings.kind], inner)
        if settings.kind == "hnsw":
            index.hnsw.efConstruction = settings.ef_construction
        if settings.kind == "ivf":
            index.by_residual = False  # 8 bits lose as much as without the lists
            index.cp.min_points_per_centroid = 1  # FAISS would print that there are few
        index.train(vectors)
        index.add(vectors)

    def save(self, folder: Path) -> None:
        self._faiss.write_index(self._index, str(folder / _BUILT))

    def nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        faiss, settings = self._faiss, self._settings
        few = among is not None and (settings.kind == "flat" or len(among) < SMALLEST_GRAPH)
        if few:
            return self.exactly_nearest(query, k, among)
        if settings.kind == "hnsw":
            # FAISS itself would not look at more than ef_search candidates, and pad what is
            # missing.
            how = faiss.SearchParametersHNSW(efSearch=max(settings.ef_search, k))
        elif settings.kind == "ivf":
            how = faiss.SearchParametersIVF(nprobe=min(settings.nprobe, self._index.nlist))
        else:
            how = faiss.SearchParameters()
        found = self._search(self._index, query, k, among, how)
        if among is not None and len(found[1]) < k:
            # What fits lies where the graph does not lead: far from the query.
            return self.exactly_nearest(query, k, among)
        return found

    def exactly_nearest(self, query: Vectors, k: int, among: Rows | None = None) -> Nearest:
        faiss, index = self._faiss, self._index
        if self._settings.kind == "ivf":
            how = faiss.SearchParametersIVF(nprobe=index.nlist)
            return self._search(index, query, k, among, how)
        if self._settings.kind == "hnsw":
            index = faiss.downcast_index(index.storage)
        if self._settings.precision == "float32":
            flat = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * index.d)
            return _exhaustive(query, flat.reshape(index.ntotal, index.d), k, among)
        return self._search(index, query, k, among, faiss.SearchParameters())

    def searched(self, settings: IndexSettings) -> Index:
        other = copy(self)
        if other._settings.kind == settings.kind:  # else there are too few vectors for it
            other._settings = settings
        return other

    @property
    def nbytes(self) -> int:
        index, n = self._index, self._index.ntotal
        vectors = n * index.d * (4 if self._settings.precision == "float32" else 1)
        if self._settings.kind == "hnsw":
            links = index.hnsw
            return int(vectors + 4 * (links.neighbors.size() + n) + 8 * links.offsets.size())
        if self._settings.kind == "ivf":
            return int(vectors + 8 * n + 4 * index.nlist * index.d)
        return int(vectors)

    def _search(self, index: Any, query: Vectors, k: int, among: Rows | None, how: Any) -> Nearest:
        selector = None if among is None else self._faiss.IDSelectorBatch(among)
        how.sel = selector
        scores, rows = index.search(query, k, params=how)
        return _without_padding(scores[0], rows[0])


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
