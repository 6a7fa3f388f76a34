"""An inverted index of score contributions, searched with numpy alone.

Every posting holds what its term adds to the score of its document, so that a search is additions
and one selection. Positions are those of the documents in ascending order of their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.ranking import top_k
from retrieval_bench_retrievers.index_files import read_array

# A term in a quarter of the documents is stored as a row with one weight for every document: adding
# a row is several times faster than scattered additions, and takes at most twice the memory.
_DENSE_FROM = 0.25
# Weights are computed in double precision, this many at a time: temporary arrays stay small.
CHUNK = 1 << 20
# Sums of more terms are taken in double precision: single precision would lose 6e-8 a term.
_MOST_SINGLE_TERMS = 64
# From so many documents on, few are tried before all. They are looked up term by term: look-ups for
# more than that share of the corpus take as long as adding up all.
_LARGE, _FEW = 20_000, 1 / 32
_FILES = ("dense_terms", "dense_rows", "starts", "positions", "weights", "bounds")


@dataclass(frozen=True, slots=True)
class Postings:
    """Weights by term.

    Attributes:
        n_documents: size of the corpus.
        starts: shape (terms + 1,); postings of term t are those from starts[t] to starts[t + 1].
        positions: shape (postings,), int32, ascending within a term and distinct.
        weigh: gives what the terms add to the scores of the documents, for a slice of (postings,).
            Single precision keeps scores within 1e-5 relative as long as no weight is negative.
    """

    n_documents: int
    starts: NDArray[np.int64]
    positions: NDArray[np.int32]
    weigh: Callable[[slice], NDArray[np.floating[Any]]]


class InvertedIndex:
    """Sums the weights of query terms per document and selects the best."""

    def __init__(self, postings: Postings) -> None:
        self._n = postings.n_documents
        self._dtype = postings.weigh(slice(0, 0)).dtype
        dense = _dense_terms(postings)
        self._row_of = {int(term): row for row, term in enumerate(dense)}
        self._rows = np.zeros((len(dense), self._n), dtype=self._dtype)
        for row, term in enumerate(dense):
            part = slice(postings.starts[term], postings.starts[term + 1])
            self._rows[row, postings.positions[part]] = postings.weigh(part)
        lengths = np.diff(postings.starts)
        lengths[dense] = 0
        self._starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        self._positions = np.empty(self._starts[-1], dtype=np.int32)
        self._weights = np.empty(self._starts[-1], dtype=self._dtype)
        end = 0
        for part in _parts(postings.starts, dense):
            own = slice(end, end := end + part.stop - part.start)
            self._positions[own] = postings.positions[part]
            self._weights[own] = postings.weigh(part)
        self._bounds = np.zeros(len(lengths), dtype=self._dtype)
        held = lengths > 0  # of no postings, the highest would be that of the next term
        self._bounds[held] = np.maximum.reduceat(self._weights, self._starts[:-1][held])
        self._bounds[dense] = self._rows.max(axis=1, initial=0)

    def save(self, folder: Path) -> None:
        """Write all arrays to ``folder``."""
        terms = np.fromiter(self._row_of, np.int64, len(self._row_of))
        arrays: tuple[NDArray[Any], ...] = (
            terms,
            self._rows,
            self._starts,
            self._positions,
            self._weights,
            self._bounds,
        )
        for name, values in zip(_FILES, arrays, strict=True):
            np.save(folder / f"{name}.npy", values)

    @classmethod
    def load(cls, folder: Path) -> InvertedIndex:
        """Load the index that :meth:`save` wrote, mapped into memory."""
        index = cls.__new__(cls)
        terms, index._rows, index._starts, index._positions, index._weights, index._bounds = (
            read_array(folder / f"{name}.npy") for name in _FILES
        )
        index._row_of = {term: row for row, term in enumerate(terms.tolist())}
        index._n, index._dtype = index._rows.shape[1], index._weights.dtype
        return index

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self._rows, self._starts, self._positions, self._weights, self._bounds)
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
        if self._n >= _LARGE and min(counts.values()) >= 0:
            found = self._among_few(counts, k, allowed)
            if found is not None:
                return found
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
        dtype = self._sum_type(counts)
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

    def _among_few(
        self, counts: Mapping[int, float], k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]] | None:
        """The answer of :meth:`search` from the documents with a rare term alone: once the k-th
        best of them scores more than any document without such a term can, the others need no
        score (MaxScore, Turtle & Flood 1995). None where that takes too many documents.
        """
        terms = sorted(counts, key=self._size)
        totals = [*accumulate(map(self._size, terms))]
        rare = next((at for at, total in enumerate(totals, start=1) if total >= k), None)
        while rare is not None and totals[rare - 1] * len(terms) <= self._n * _FEW:
            places = self._with_any(terms[:rare])
            if allowed is not None:
                places = places[allowed[places]]
            if len(places) < k:
                return None
            scores = self._scores_of(places, counts)
            best = top_k(scores, k)
            least = scores[best[-1]]
            # What was found first says how many terms must be rare for the second, and last, time.
            after = range(rare, len(terms) + 1)
            enough = next((at for at in after if self._bound(counts, terms[at:]) < least), None)
            if enough == rare:
                return places[best].astype(np.intp), scores[best].astype(np.float64)
            rare = enough
        return None

    def _sum_type(self, counts: Mapping[int, float]) -> np.dtype[np.floating[Any]]:
        return self._dtype if len(counts) <= _MOST_SINGLE_TERMS else np.dtype(np.float64)

    def _size(self, term: int) -> int:
        return self._n if term in self._row_of else int(self._starts[term + 1] - self._starts[term])

    def _bound(self, counts: Mapping[int, float], terms: Sequence[int]) -> np.floating[Any]:
        """The most that ``terms`` can add to a score. Added up as scores are, in their order: each
        sum is rounded upwards of a lower one, so that no score is above it."""
        total = self._sum_type(counts).type(0)
        for term, count in counts.items():
            if term in terms:
                total += max(self._bounds[term], 0) * total.dtype.type(count)
        return total

    def _with_any(self, terms: Sequence[int]) -> NDArray[np.int32]:
        """Documents with one of ``terms``, which have no rows, in ascending order."""
        parts = [self._positions[self._starts[term] : self._starts[term + 1]] for term in terms]
        places: NDArray[np.int32] = np.sort(np.concatenate(parts))
        distinct: NDArray[np.int32] = places[np.append(True, places[1:] != places[:-1])]
        return distinct

    def _scores_of(
        self, places: NDArray[np.int32], counts: Mapping[int, float]
    ) -> NDArray[np.floating[Any]]:
        """Scores of the documents at ``places``, to the bit what :meth:`scores` gives them."""
        total = np.zeros(len(places), dtype=self._sum_type(counts))
        for term, count in counts.items():
            row = self._row_of.get(term)
            if row is None:
                at, weights = self._matched(term, places)
            else:
                at, weights = slice(None), self._rows[row, places]
            weights = weights.astype(total.dtype, copy=False)
            total[at] += weights if count == 1 else weights * total.dtype.type(count)
        return total

    def _matched(self, term: int, places: NDArray[np.int32]) -> tuple[Any, NDArray[Any]]:
        """Return which of ``places`` have ``term``, and the weights there."""
        part = slice(self._starts[term], self._starts[term + 1])
        held, weights = self._positions[part], self._weights[part]
        few, many = (held, places) if len(held) < len(places) else (places, held)
        at = np.minimum(np.searchsorted(many, few), len(many) - 1)
        same = many[at] == few
        return (at[same], weights[same]) if few is held else (same, weights[at[same]])

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


def _parts(starts: NDArray[np.int64], left_out: NDArray[np.intp]) -> Iterator[slice]:
    """The postings of all terms but some, a piece at a time."""
    for before, after in pairwise([-1, *left_out.tolist(), len(starts) - 1]):
        stop = int(starts[after])
        for start in range(int(starts[before + 1]), stop, CHUNK):
            yield slice(start, min(start + CHUNK, stop))


def _dense_terms(postings: Postings) -> NDArray[np.intp]:
    """Frequent terms whose weights are all positive, so that a row also says who has the term."""
    held_by = np.diff(postings.starts)
    frequent = np.flatnonzero(held_by >= max(1, _DENSE_FROM * postings.n_documents))
    lowest = [
        postings.weigh(slice(postings.starts[term], postings.starts[term + 1])).min()
        for term in frequent
    ]
    return frequent[np.asarray(lowest, dtype=np.float64) > 0]
