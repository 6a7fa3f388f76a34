"""A run joined with its judgements, as arrays: the only input of every metric.

The join is done once; after it no document id is looked at again and nothing is sorted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from harness.types import Qrels

NONE = -1
"""Fills a ranking behind its last hit."""

_CHUNK_ELEMENTS = 1 << 22


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """Grades along each ranking, and what a perfect ranking would have had.

    Attributes:
        grades: int32 (queries, depth), the grade at each rank; 0 where the document is not judged,
            is judged below 0, or the list has ended.
        judged: bool (queries, depth), True where the document has a judgement of 0 or more.
        lengths: int64 (queries,), hits returned.
        ideal: int32 (queries, most judgements), all grades of a query, highest first, padded by 0.
    """

    grades: NDArray[np.int32]
    judged: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    ideal: NDArray[np.int32]

    def hits(self, level: int, cut: int | None) -> NDArray[np.bool_]:
        """Where a document of at least grade ``level`` stands, within ``cut``."""
        return np.asarray(self.grades[:, :cut] >= level)

    def n_relevant(self, level: int) -> NDArray[np.int64]:
        """Number of judged documents of at least grade ``level``, retrieved or not."""
        return np.asarray(np.count_nonzero(self.ideal >= level, axis=1))


def judge(
    ranking: NDArray[np.int32],
    doc_ids: Sequence[str],
    query_ids: Sequence[str],
    qrels: Qrels,
) -> JudgedRun:
    """Join rankings with judgements.

    Args:
        ranking: (queries, depth) positions in ``doc_ids``, best first, -1 behind the last hit.
        doc_ids: ids that the positions of ``ranking`` stand for, distinct.
        query_ids: one id for each row; a query without judgements gets a row of zeros.
        qrels: judgements; queries that are not in ``query_ids`` are left out.
    """
    per_query = [qrels.get(query_id, {}) for query_id in query_ids]
    n_queries = len(per_query)
    counts = np.fromiter((len(row) for row in per_query), dtype=np.int64, count=n_queries)
    rows = np.repeat(np.arange(n_queries), counts)
    grade = np.fromiter(
        chain.from_iterable(row.values() for row in per_query), np.int32, int(counts.sum())
    )
    lengths = np.count_nonzero(ranking != NONE, axis=1)
    # Both joins give the same; which is cheaper was measured (a pair costs the depth of the run).
    if len(grade) * 5 <= lengths.sum():
        found = _join_from_judgements(ranking, doc_ids, per_query, rows, grade)
    else:
        found = _join_from_hits(ranking, doc_ids, per_query, lengths)
    # A negative grade counts as not judged, as in trec_eval.
    judged = found >= 0
    return JudgedRun(
        grades=np.where(judged, found, 0).astype(np.int32),
        judged=judged,
        lengths=lengths,
        ideal=_ideal(rows, np.maximum(grade, 0), counts),
    )


def _join_from_judgements(
    ranking: NDArray[np.int32],
    doc_ids: Sequence[str],
    per_query: Sequence[Mapping[str, int]],
    rows: NDArray[np.int64],
    grade: NDArray[np.int32],
) -> NDArray[np.int32]:
    """The grade at each rank, -1 where there is none, by looking for each judged document."""
    position = {doc_id: i for i, doc_id in enumerate(doc_ids)}
    document = np.fromiter(
        (position.get(doc_id, NONE) for doc_id in chain.from_iterable(per_query)),
        np.int32,
        len(grade),
    )
    found = np.full(ranking.shape, -1, dtype=np.int32)
    retrieved = np.flatnonzero(document != NONE)
    step = max(1, _CHUNK_ELEMENTS // max(1, ranking.shape[1]))
    for start in range(0, len(retrieved), step):
        some = retrieved[start : start + step]
        pair, rank = np.nonzero(ranking[rows[some]] == document[some, None])
        where = some[pair]
        found[rows[where], rank] = grade[where]
    return found


def _join_from_hits(
    ranking: NDArray[np.int32],
    doc_ids: Sequence[str],
    per_query: Sequence[Mapping[str, int]],
    lengths: NDArray[np.int64],
) -> NDArray[np.int32]:
    """The same by looking up each hit among the judgements of its query."""
    found = np.full(ranking.shape, -1, dtype=np.int32)
    for at, judgements in enumerate(per_query):
        n = lengths[at]
        if judgements and n:
            grade_of = judgements.get
            found[at, :n] = [grade_of(doc_ids[i], -1) for i in ranking[at, :n].tolist()]
    return found


def _ideal(
    rows: NDArray[np.int64], grade: NDArray[np.int32], counts: NDArray[np.int64]
) -> NDArray[np.int32]:
    ideal = np.zeros((len(counts), int(counts.max(initial=0))), dtype=np.int32)
    starts = np.cumsum(counts) - counts
    ideal[rows, np.arange(len(rows)) - np.repeat(starts, counts)] = grade
    return -np.sort(-ideal, axis=1)
