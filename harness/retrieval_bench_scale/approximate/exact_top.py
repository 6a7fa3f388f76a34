"""What an exhaustive search finds, and the share of it that another search of the same vectors
does. No judgement plays a part: this recall says nothing of relevance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retrieval_bench.core.types import Ranking

TIE_MARGIN = 16
"""Hits beyond k that an exhaustive search is asked for, to see which documents tie with the last
of the first k."""


@dataclass(frozen=True, slots=True)
class ExactTopK:
    """What is right for one query.

    Attributes:
        best: documents of the exhaustive search above those in ``tied``: each of them is right.
        tied: those that tie with its last hit among the first k: which of them come first is
            chance, and as many are right as the first k have room for.
        wanted: hits that there are, k at most.
    """

    best: frozenset[str]
    tied: frozenset[str]
    wanted: int

    def recall(self, found: Ranking | None) -> float:
        """The share of the ``wanted`` hits that is right among ``found``, at most k; of a query
        that failed 0."""
        if found is None:
            return 0.0
        tied = len(self.tied.intersection(found.doc_ids))
        right = len(self.best.intersection(found.doc_ids))
        return (right + min(tied, self.wanted - len(self.best))) / self.wanted


def exact_top_k(
    exact: Ranking, k: int, tolerance: float, ask: Callable[[int], Ranking]
) -> ExactTopK | None:
    """What is right, or None where nothing is to be found.

    Args:
        exact: the ranking of an exhaustive search for ``k`` + :data:`TIE_MARGIN` hits, best first.
        tolerance: relative difference below which two scores are the same.
        ask: the same search for another number of hits: where all of ``exact`` tie with the last of
            the first ``k``, twice as many are asked for.
    """
    depth = k + TIE_MARGIN
    while len(exact) > k and exact.scores is not None:
        scores = np.asarray(exact.scores, dtype=np.float64)
        last, apart = scores[k - 1], tolerance * abs(scores[k - 1])
        above, tied = scores > last + apart, np.abs(scores - last) <= apart
        if len(exact) < depth or scores[-1] < last - apart:
            best, equal = (
                frozenset(exact.doc_ids[at] for at in np.flatnonzero(mask).tolist())
                for mask in (above, tied)
            )
            return ExactTopK(best, equal, k)
        depth *= 2
        exact = ask(depth)
    wanted = min(k, len(exact))
    return ExactTopK(frozenset(exact.doc_ids[:k]), frozenset(), wanted) if wanted else None
