"""An inverted index of score contributions, searched with numpy alone.

Every posting holds what its term adds to the score of its document, so that a search is additions
and one selection. Positions are those of the documents in ascending order of their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.ranking import top_k
from retrieval_bench_retrievers.index_files import read_array

# A term in a quarter of the documents is stored as a row with one weight for every document: adding
# a row is several times faster than scattered additions, and takes at most twice the memory.
_DENSE_FROM = 0.25
# Sums of more terms are taken in double precision: single precision would lose 6e-8 a term.
_MOST_SINGLE_TERMS = 64
_FILES = ("dense_terms", "dense_rows", "starts", "positions", "weights")


@dataclass(frozen=True, slots=True)
class Postings:
    """Weights by term.

    Attributes:
        n_documents: size of the corpus.
        starts: shape (terms + 1,); postings of term t are those from starts[t] to starts[t + 1].
        positions: shape (postings,), int32, ascending within a term and distinct.
        weights: shape (postings,), what the term adds to the score of that document. Single
            precision keeps scores within 1e-5 relative as long as no weight is negative.
    """

    n_documents: int
    starts: NDArray[np.int64]
    positions: NDArray[np.int32]
    weights: NDArray[np.floating[Any]]


class InvertedIndex:
    """Sums the weights of query terms per document and selects the best."""

    def __init__(self, postings: Postings) -> None:
        self._n = postings.n_documents
        self._dtype = postings.weights.dtype
        dense = _dense_terms(postings)
        self._row_of = {int(term): row for row, term in enumerate(dense)}
        self._rows = np.zeros((len(dense), self._n), dtype=self._dtype)
        in_rows = np.zeros(postings.positions.shape[0], dtype=bool)
        for row, term in enumerate(dense):
            part = slice(postings.starts[term], postings.starts[term + 1])
            self._rows[row, postings.positions[part]] = postings.weights[part]
            in_rows[part] = True
        lengths = np.diff(postings.starts)
        lengths[dense] = 0
        self._starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        self._positions = postings.positions[~in_rows]
        self._weights = postings.weights[~in_rows]

    def save(self, folder: Path) -> None:
        """Write all arrays to ``folder``."""
        terms = np.fromiter(self._row_of, np.int64, len(self._row_of))
        arrays: tuple[NDArray[Any], ...] = (
            terms,
            self._rows,
            self._starts,
            self._positions,
            self._weights,
        )
        for name, values in zip(_FILES, arrays, strict=True):
            np.save(folder / f"{name}.npy", values)

    @classmethod
    def load(cls, folder: Path) -> InvertedIndex:
        """Load the index that :meth:`save` wrote, mapped into memory."""
        index = cls.__new__(cls)
        terms, index._rows, index._starts, index._positions, index._weights = (
            read_array(folder / f"{name}.npy") for name in _FILES
        )
        index._row_of = {term: row for row, term in enumerate(terms.tolist())}
        index._n, index._dtype = index._rows.shape[1], index._weights.dtype
        return index

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self._rows, self._starts, self._positions, self._weights)
        return sum(array.nbytes for array in arrays)

    def search(
        self, counts: Mapping[int, float], k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Positions and scores of the best ``k`` documents that share a term with the query.

        Args:
            counts: how often each term occurs in the query, or its weight there; at least one
                term, all known.
            k: at least 1.
            allowed: which documents may be there, bool (documents,); None = all.

        Returns:
            Score descending, ties by position; documents without any of the terms are never there,
            those whose score is zero or negative are.
        """
        scores = self.scores(counts)
        best = best_allowed(scores, k, allowed)
        if not scores[best[-1]] > 0:
            # Fewer than k positive scores: what is no candidate must not stand in for one.
            candidates = self._has_any(counts)
            candidates &= True if allowed is None else allowed
            best = best_allowed(scores, k, candidates)
        return best, scores[best].astype(np.float64)

    def scores(self, counts: Mapping[int, float]) -> NDArray[np.floating[Any]]:
        """The score of every document, 0 where it has none of the terms."""
        dtype = self._dtype if len(counts) <= _MOST_SINGLE_TERMS else np.dtype(np.float64)
        total = np.zeros(self._n, dtype=dtype)
        for term, count in counts.items():
            row = self._row_of.get(term)
            if row is not None:
                total += self._rows[row] if count == 1 else self._rows[row] * dtype.type(count)
                continue
            part = slice(self._starts[term], self._starts[term + 1])
            weights = self._weights[part].astype(dtype, copy=False)
            np.add.at(
                total, self._positions[part], weights if count == 1 else weights * dtype.type(count)
            )
        return total

    def _has_any(self, counts: Mapping[int, float]) -> NDArray[np.bool_]:
        mask = np.zeros(self._n, dtype=np.bool_)
        for term in counts:
            row = self._row_of.get(term)
            if row is None:
                mask[self._positions[self._starts[term] : self._starts[term + 1]]] = True
            else:
                mask |= self._rows[row] > 0
        return mask


def best_allowed(
    scores: NDArray[np.floating[Any]], k: int, allowed: NDArray[np.bool_] | None
) -> NDArray[np.intp]:
    """Positions of the best ``k`` scores of the allowed documents; None = of all."""
    if allowed is None:
        return top_k(scores, k)
    candidates = np.flatnonzero(allowed)
    return candidates[top_k(scores[candidates], k)]


def _dense_terms(postings: Postings) -> NDArray[np.intp]:
    """Frequent terms whose weights are all positive, so that a row also says who has the term."""
    frequent = np.flatnonzero(np.diff(postings.starts) >= _DENSE_FROM * postings.n_documents)
    lowest = [
        postings.weights[postings.starts[term] : postings.starts[term + 1]].min(initial=np.inf)
        for term in frequent
    ]
    return frequent[np.asarray(lowest, dtype=np.float64) > 0]
