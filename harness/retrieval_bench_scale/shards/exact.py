"""The documents that are exactly nearest to each query, whatever computes them.

Products of float32 matrices find candidates: all whose score may be that of the k-th best, by the
bound on the error of such a product. These alone are scored again, in double precision, where a
product of two float32 numbers is exact, and summed up in an order that is fixed here. So neither
the library of linear algebra nor who took which blocks decides anything.

Bound: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1; it holds for
sums in any order, with and without fused products.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.progress import Task
from retrieval_bench.measure.threads import search_threads
from retrieval_bench_scale.cluster import check_same
from retrieval_bench_scale.shards.blocks import SIZE, BlockFolder, Corpus, Vectors, processor
from retrieval_bench_scale.shards.executors import one_at_a_time, run_all

_GROUP = 1_000
"""Queries at a time: their scores with a block take 4 MB."""

_UNIT = 2.0**-24
_LEAST = 2.0**-125
"""More than what is lost of a product and a sum that are too small for float32."""

_LARGEST = 1e37
_FOUND = np.dtype([("query", "i4"), ("at", "i8"), ("score", "f8")])


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched, and how.

    Attributes:
        files: what must be equal on all workers.
        compared, normalized: see :class:`retrieval_bench.core.retriever.DocumentEncoder`.
        k: documents for a query.
    """

    place: BlockFolder
    files: Mapping[str, str]
    compared: int | None
    normalized: bool
    k: int

    def lists(
        self, queries: Mapping[str, Vectors], corpus: Corpus, pool: Executor, parts: int, tell: Task
    ) -> dict[str, list[tuple[str, float]]]:
        """Ids and scores for each query, best first, ties by id.

        Args:
            queries: their vectors by id.
            parts: tasks that the blocks are shared out to.
        """
        if not queries or not corpus.ids:
            return {name: [] for name in queries}
        with tempfile.TemporaryDirectory(prefix=".exact-", dir=self.place.folder) as work:
            np.save(Path(work) / "queries.npy", self.comparable(np.stack([*queries.values()])))
            np.save(Path(work) / "twins.npy", _twins(corpus))
            n = len(corpus.digests)
            cuts = [n * part // parts for part in range(parts + 1)]
            tasks = [
                (self, work, cuts[part], cuts[part + 1])
                for part in range(parts)
                if cuts[part] < cuts[part + 1]
            ]
            run_all(pool, nearest, tasks, tell)
            found = np.concatenate([np.load(_part(work, task[2])) for task in tasks])
        return dict(zip(queries, self._merged(found, len(queries), corpus), strict=True))

    def comparable(self, vectors: Vectors) -> Vectors:
        """What is compared of ``vectors``, by inner products."""
        kept = np.array(vectors[:, : self.compared], np.float32, order="C")
        if self.normalized:
            lengths = _lengths(kept)
            lengths[lengths == 0] = 1
            kept /= lengths[:, np.newaxis]
        return kept

    def vectors(self, number: int) -> Vectors:
        """Of a block."""
        return self.comparable(self.place.vectors(number))

    def _merged(
        self, found: NDArray[Any], n: int, corpus: Corpus
    ) -> Iterator[list[tuple[str, float]]]:
        found = found[np.lexsort((-found["score"], found["query"]))]
        with_twins = _members(corpus)
        starts = np.searchsorted(found["query"], np.arange(n + 1))
        for start, stop in pairwise(starts.tolist()):
            own = found[start:stop]
            if len(own) > self.k:
                own = own[own["score"] >= own["score"][self.k - 1]]
            hits = [
                (corpus.ids[member], score)
                for _, at, score in own.tolist()
                for member in with_twins.get(at, (at,))
            ]
            yield sorted(hits, key=lambda hit: (-hit[1], hit[0]))[: self.k]


def nearest(search: Search, work: str, first: int, stop: int) -> None:
    """On a worker: write what may be among the best of all in some blocks, with exact scores."""
    check_same(search.files)
    here = processor()
    check_same({"processor": search.place.facts.get("processor", here)}, {"processor": here})
    queries, twins = np.load(Path(work) / "queries.npy"), np.load(Path(work) / "twins.npy")
    with one_at_a_time, search_threads(1):
        found = [
            _of_group(search, queries[at : at + _GROUP], twins, at, range(first, stop))
            for at in range(0, len(queries), _GROUP)
        ]
        np.save(_part(work, first), np.concatenate(found))


def _of_group(
    search: Search, queries: Vectors, twins: NDArray[np.int64], start: int, blocks: range
) -> NDArray[Any]:
    best = Candidates(queries, search.k)
    for number in blocks:
        own = twins[slice(*np.searchsorted(twins, [number * SIZE, (number + 1) * SIZE]))]
        best.add(search.vectors(number), number * SIZE, own - number * SIZE)
    rows, positions = best.left()
    found = np.empty(len(rows), _FOUND)
    found["query"], found["at"] = rows + start, positions
    order = np.argsort(positions, kind="stable")
    cuts = np.searchsorted(positions[order] // SIZE, np.arange(blocks.start, blocks.stop + 1))
    for number, a, b in zip(blocks, cuts[:-1], cuts[1:], strict=True):
        if a < b:
            vectors, pairs = search.vectors(number), order[a:b]
            found["score"][pairs] = exact_products(
                queries, rows[pairs], vectors, positions[pairs] - number * SIZE
            )
    return found


class Candidates:
    """The documents that may be among the ``k`` best of each query, as far as they were seen.

    Args:
        queries: shape (queries, dimension).
    """

    def __init__(self, queries: Vectors, k: int) -> None:
        self._queries, self._k = queries, k
        self._lengths = _lengths(queries)
        n = queries.shape[1]
        self._share = n * _UNIT / (1 - n * _UNIT)
        self._floor = np.full(len(queries), -np.inf)
        """A score that ``k`` documents of those seen have at least."""
        self._piles: list[tuple[NDArray[Any], ...]] = []
        self._n = 0

    def add(self, vectors: Vectors, start: int, left_out: NDArray[np.int64]) -> None:
        """See more documents.

        Args:
            start: position of the first one.
            left_out: rows that are the same as an earlier document.
        """
        longest = _lengths(vectors).max(initial=0.0)
        if not longest * self._lengths.max(initial=0.0) < _LARGEST:
            raise ConfigError(
                f"vectors of length {longest:.3g}",
                accepted="products that float32 can hold",
                fix="take similarity: cosine, or a model with shorter vectors",
            )
        error = self._share * self._lengths * longest + vectors.shape[1] * _LEAST
        scores = self._queries @ vectors.T
        scores[:, left_out] = -np.inf
        if self._n == 0 and len(vectors) - len(left_out) >= self._k:
            self._floor = np.partition(scores, -self._k, axis=1)[:, -self._k] - error
        least = np.nextafter((self._floor - error).astype(np.float32), np.float32(-np.inf))
        least = np.maximum(least, np.finfo(np.float32).min)
        rows, columns = np.nonzero(scores >= least[:, np.newaxis])
        values = scores[rows, columns].astype(np.float64)
        self._piles.append((rows, columns + start, values - error[rows], values + error[rows]))
        self._n += len(rows)
        if self._n > 4 * self._k * len(self._queries):
            self._prune()

    def left(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of queries and positions of documents, in pairs."""
        self._prune()
        rows, positions, _, _ = self._piles[0]
        return rows, positions

    def _prune(self) -> None:
        """Let go of what ``k`` others surpass for certain."""
        if not self._piles:
            empty = np.empty(0, np.int64)
            self._piles = [(empty, empty, np.empty(0), np.empty(0))]
        rows, positions, low, high = map(np.concatenate, zip(*self._piles, strict=True))
        order = np.lexsort((-low, rows))
        starts = np.searchsorted(rows[order], np.arange(len(self._queries) + 1))
        enough = np.flatnonzero(np.diff(starts) >= self._k)
        kth = low[order[starts[enough] + self._k - 1]]
        self._floor[enough] = np.maximum(self._floor[enough], kth)
        kept = high >= self._floor[rows]
        self._piles = [(rows[kept], positions[kept], low[kept], high[kept])]
        self._n = int(kept.sum())


def exact_products(
    left: Vectors, rows: NDArray[np.int64], right: Vectors, columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Inner products of rows of ``left`` with rows of ``right``, in pairs: products are exact, and
    sums are made by halving, which no library may order otherwise."""
    made = np.empty(len(rows))
    for at in range(0, len(rows), SIZE):
        part = slice(at, at + SIZE)
        sums = left[rows[part]].astype(np.float64) * right[columns[part]]
        while (width := sums.shape[1]) > 1:
            half = (width + 1) // 2
            sums[:, : width - half] += sums[:, half:]
            sums = sums[:, :half]
        made[part] = sums[:, 0]
    return made


def _lengths(vectors: Vectors) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    lengths: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return lengths


def _twins(corpus: Corpus) -> NDArray[np.int64]:
    """Positions of documents whose text an earlier one has."""
    return np.flatnonzero(corpus.first != np.arange(len(corpus.first)))


def _members(corpus: Corpus) -> Mapping[int, Sequence[int]]:
    """The first document of a text -> all that have it, where there are several."""
    members: dict[int, list[int]] = {}
    for twin in _twins(corpus).tolist():
        first = int(corpus.first[twin])
        members.setdefault(first, [first]).append(twin)
    return members


def _part(work: str, first: int) -> Path:
    return Path(work) / f"part-{first}.npy"
