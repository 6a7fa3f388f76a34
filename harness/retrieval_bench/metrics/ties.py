"""Hits of one query with equal scores, which some rule has to put in order.

Two arrays of bounds say where they are. A run of which no two neighbours are equal has none, and
that takes one look at an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class TiedHits:
    """Hits of a run that have the score of a neighbour.

    Attributes:
        starts: int64 (queries,), the number of the first hit of each query, all hits being numbered
            in the order of queries and ranks.
        lengths: int64 (queries,), hits of each query.
        bounds: int64 (groups + 1,), where each group of equal hits begins, one of a single hit
            included, and behind them the number of hits.
    """

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    bounds: NDArray[np.int64]

    def ranks(
        self, row: NDArray[np.int64], rank: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last rank of the hits that have the score of each of these hits."""
        start = self.starts[row]
        group = np.searchsorted(self.bounds, start + rank - 1, side="right") - 1
        return self.bounds[group] - start + 1, self.bounds[group + 1] - start

    def share(self, cut: int | None = None) -> float:
        """The share of the hits at ranks up to ``cut`` that have the score of another hit."""
        tied = np.flatnonzero(np.diff(self.bounds) > 1)
        first, end = self.bounds[tied], self.bounds[tied + 1]
        start = self.starts[np.searchsorted(self.starts, first, side="right") - 1]
        last = self.lengths if cut is None else np.minimum(self.lengths, cut)
        most = end if cut is None else np.minimum(end, start + cut)
        return float(np.maximum(most - first, 0).sum() / max(1, last.sum()))

    def constant(self) -> NDArray[np.bool_]:
        """Return which queries have two hits or more that all have one score, bool (queries,)."""
        end = self.starts + self.lengths
        group = np.searchsorted(self.bounds, np.minimum(self.starts, self.bounds[-1] - 1), "right")
        return np.asarray((self.lengths > 1) & (self.bounds[group] == end))


def ties_of(keys: NDArray[Any], lengths: NDArray[np.int64]) -> TiedHits | None:
    """The ties of a run; None where there are none.

    Args:
        keys: (hits,), the scores of all queries in the order of their ranks, or what is equal where
            they are; NaN equals nothing.
        lengths: int64 (queries,), how many of them each query has.
    """
    equal = keys[1:] == keys[:-1]
    ends = np.cumsum(lengths)
    equal[ends[(ends > 0) & (ends < len(keys))] - 1] = False
    if not equal.any():
        return None
    bounds = np.concatenate([[0], np.flatnonzero(~equal) + 1, [len(keys)]])
    return TiedHits(ends - lengths, lengths, bounds)
