"""What a run of another program makes of queries that no document answers, query by query.

What a threshold on the top score would change is in :mod:`retrieval_bench_score.thresholds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import DataError, counted
from retrieval_bench.metrics.abstention import Abstention, abstention

CRITERION = "MAP (scienceqa)"
"""What a threshold is chosen by: the mean of AP(norm=hits)@3, where an unanswerable query counts 1
for an empty list and 0 otherwise."""


def auroc(top_score: ArrayLike, answerable: ArrayLike) -> float | None:
    """The chance that an answerable query has a higher top score than an unanswerable one.

    Range 0 to 1, .5 tells nothing; equal scores count one half. A NaN is a query without hits and
    ranks below every score. None when either kind of query is missing. Exact: counted in whole
    numbers. Source: Mann & Whitney (1947); Hanley & McNeil (1982).

    Args:
        top_score: float (queries,), score of the first hit.
        answerable: bool (queries,).
    """
    score = np.asarray(top_score, dtype=np.float64)
    positive = np.asarray(answerable, dtype=bool)
    score = np.where(np.isnan(score), -np.inf, score)
    high, low = score[positive], np.sort(score[~positive])
    if not len(high) or not len(low):
        return None
    # Twice the won pairs: a pair below counts two, a tie one.
    twice = np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")
    return int(twice.sum()) / (2 * len(high) * len(low))


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Facts on each query, one value each and in the order of the ids; made by
    :func:`outcomes`, which says what the columns hold."""

    query_ids: tuple[str, ...]
    answerable: NDArray[np.bool_]
    returned: NDArray[np.int64]
    top_score: NDArray[np.float64]
    ap: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.query_ids)

    def only(self, chosen: NDArray[np.bool_]) -> Outcomes:
        """The queries where ``chosen`` is True."""
        return Outcomes(
            tuple(q for q, c in zip(self.query_ids, chosen, strict=True) if c),
            self.answerable[chosen],
            self.returned[chosen],
            self.top_score[chosen],
            self.ap[chosen],
        )

    def under(self, threshold: float | None) -> Outcomes:
        """The same queries when lists whose top score is below ``threshold`` are emptied."""
        if threshold is None:
            return self
        emptied = self.top_score < threshold
        return replace(
            self,
            returned=np.where(emptied, 0, self.returned),
            top_score=np.where(emptied, np.nan, self.top_score),
            ap=np.where(emptied, 0.0, self.ap),
        )

    def values(self) -> NDArray[np.float64]:
        """float64 (queries,) under the convention ``scienceqa``."""
        return np.where(self.answerable, self.ap, self.returned == 0)


def outcomes(
    query_ids: Sequence[str],
    answerable: ArrayLike,
    returned: ArrayLike,
    top_score: ArrayLike,
    ap: ArrayLike,
) -> Outcomes:
    """Check the figures of all known queries and put them into the order of the ids.

    Args:
        query_ids: distinct ids.
        answerable: bool, whether some document answers.
        returned: int, number of hits, 0 or more.
        top_score: float, score of the first hit; NaN where the retriever gives no scores; not
            looked at where there are no hits.
        ap: float, AP(norm=hits)@3 of an answerable query with hits; not looked at elsewhere.

    Raises:
        DataError: columns of unequal length, an id given twice, an infinite score, an AP outside
            0 to 1, a negative number of hits.
    """
    is_answerable = np.asarray(answerable, dtype=bool)
    hits = np.asarray(returned, dtype=np.int64)
    score = np.asarray(top_score, dtype=np.float64)
    value = np.asarray(ap, dtype=np.float64)
    shapes = {column.shape for column in (is_answerable, hits, score, value)}
    if shapes != {(len(query_ids),)}:
        raise DataError(
            f"{counted(len(query_ids), 'query')} with columns of shapes {sorted(shapes)}",
            accepted="one value for each query in every column",
            fix="give columns of equal length",
        )
    order = sorted(range(len(query_ids)), key=query_ids.__getitem__)
    ids = tuple(query_ids[i] for i in order)
    is_answerable, hits = is_answerable[order], hits[order]
    score = np.where(hits > 0, score[order], np.nan)
    value = np.where(is_answerable & (hits > 0), value[order], 0.0)
    twice = np.array([i > 0 and ids[i] == ids[i - 1] for i in range(len(ids))], dtype=bool)
    _refuse(ids, twice, "is there twice", "each query once")
    _refuse(ids, hits < 0, "has a negative number of hits", "0 or more")
    _refuse(ids, np.isinf(score), "has an infinite top score", "finite scores, or NaN for none")
    wrong = ~((value >= 0) & (value <= 1))
    _refuse(ids, wrong, "has an average precision outside 0 to 1", "AP(norm=hits)@3")
    return Outcomes(ids, is_answerable, hits, score, value)


@dataclass(frozen=True, slots=True)
class Figures(Documented):
    """Figures of some queries.

    Attributes:
        n: queries.
        abstention: empty lists among them.
        scienceqa_map: mean under ``scienceqa``; None of no query.
    """

    KEYS = "n scienceqa_map *abstention"

    n: int
    abstention: Abstention
    scienceqa_map: float | None


def figures(known: Outcomes) -> Figures:
    """The figures of all given queries."""
    mean = float(known.values().mean()) if len(known) else None
    return Figures(len(known), abstention(known.answerable, known.returned), mean)


def _refuse(ids: Sequence[str], wrong: NDArray[np.bool_], what: str, accepted: str) -> None:
    if wrong.any():
        raise DataError(
            f"query '{ids[int(np.argmax(wrong))]}' {what}",
            where=f"the first of {counted(int(np.count_nonzero(wrong)), 'query')} like this",
            accepted=accepted,
            fix="correct the run or what was computed from it",
        )
