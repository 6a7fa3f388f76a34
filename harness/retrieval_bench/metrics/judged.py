"""A run joined with its judgements: the only input of every metric.

Most hits are not judged, and no metric looks at those but to count ranks. So a joined run is the
list of its judged hits with their ranks; after the join no id is looked at and nothing is sorted.
Here are the joins of arrays and of lists; :mod:`.metrics.scored` has the one of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.metrics.judgements import NOT_JUDGED, Judgements

NONE = -1
"""Fills a ranking behind its last hit."""

_CHUNK_ELEMENTS = 1 << 20


class Hits(NamedTuple):
    """Judged hits of all queries, in the order of queries, and of ranks within a query.

    Attributes:
        row: int64 (hits,), the query.
        rank: int64 (hits,), from 1.
        grade: int32 (hits,), 0 or more; a grade below 0 counts as not judged.
        repeated: bool (hits,), True where the document stood in the ranking before.
    """

    row: NDArray[np.int64]
    rank: NDArray[np.int64]
    grade: NDArray[np.int32]
    repeated: NDArray[np.bool_]

    def where(self, wanted: NDArray[np.bool_]) -> Hits:
        """Those that are wanted, bool (hits,)."""
        row, rank, grade, repeated = self
        return Hits(row[wanted], rank[wanted], grade[wanted], repeated[wanted])

    def within(self, cut: int | None) -> Hits:
        """Those at ranks up to ``cut``."""
        return self if cut is None else self.where(self.rank <= cut)


class Ideal(NamedTuple):
    """All judgements of all queries as perfect rankings, one behind the other.

    Attributes:
        row: int64 (judgements,), the query.
        rank: int64 (judgements,), from 1.
        grade: int32 (judgements,), highest first; 0 for a grade below 0.
    """

    row: NDArray[np.int64]
    rank: NDArray[np.int64]
    grade: NDArray[np.int32]

    def within(self, cut: int | None) -> Ideal:
        """Those at ranks up to ``cut``."""
        if cut is None:
            return self
        wanted = self.rank <= cut
        return Ideal(self.row[wanted], self.rank[wanted], self.grade[wanted])


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRun:
    """The judged hits of each query, and what a perfect ranking would have had.

    Attributes:
        judged: the hits with a judgement of grade 0 or more.
        lengths: int64 (queries,), hits returned, judged or not.
        ideal: the perfect rankings.
        n_judged: int64 (queries,), judgements of grade 0 or more.
    """

    judged: Hits
    lengths: NDArray[np.int64]
    ideal: Ideal
    n_judged: NDArray[np.int64]
    _relevant: dict[int, Hits] = field(default_factory=dict, repr=False)
    _n_relevant: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @property
    def n_queries(self) -> int:
        """Number of rankings."""
        return len(self.lengths)

    def relevant(self, rel: int = 1, cut: int | None = None) -> Hits:
        """The hits of at least grade ``rel`` at ranks up to ``cut``."""
        if rel not in self._relevant:
            self._relevant[rel] = self.judged.where(self.judged.grade >= rel)
        return self._relevant[rel].within(cut)

    def n_relevant(self, rel: int = 1) -> NDArray[np.int64]:
        """Number of judged documents of at least grade ``rel``, retrieved or not, (queries,)."""
        if rel not in self._n_relevant:
            self._n_relevant[rel] = self.count(self.ideal.row[self.ideal.grade >= rel])
        return self._n_relevant[rel]

    def count(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """How often each query stands in ``rows``, int64 (queries,)."""
        return np.bincount(rows, minlength=self.n_queries)

    def total(self, rows: NDArray[np.int64], values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Sum of ``values`` for each query, added in the order given, float64 (queries,)."""
        sums = np.bincount(rows, weights=values, minlength=self.n_queries)
        return np.asarray(sums, dtype=np.float64)

    def grades(self, depth: int) -> NDArray[np.int32]:
        """The grade at each rank, int32 (queries, ``depth``), 0 where there is none: for metrics of
        your own that want a matrix."""
        matrix = np.zeros((self.n_queries, depth), dtype=np.int32)
        hits = self.judged.within(depth)
        matrix[hits.row, hits.rank - 1] = hits.grade
        return matrix


def ordinals(rows: NDArray[np.int64], n_queries: int) -> NDArray[np.int64]:
    """The number of each entry within its query, from 1; ``rows`` is sorted."""
    counts = np.bincount(rows, minlength=n_queries)
    starts = np.cumsum(counts) - counts
    return np.arange(1, len(rows) + 1) - starts[rows]


_LookUp = Callable[[int, NDArray[np.int32]], tuple[NDArray[np.int64], NDArray[np.int32]]]
"""Called with the number of the first query and a block of rankings; gives where in the flattened
block judged hits stand, and their grades."""

_NO_HITS = Hits(
    np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_)
)


def judge(
    ranking: NDArray[np.int32],
    doc_ids: Sequence[str],
    query_ids: Sequence[str],
    judgements: Judgements,
) -> JudgedRun:
    """Join rankings given as arrays.

    Args:
        ranking: (queries, depth) positions in ``doc_ids``, best first, -1 behind the last hit; no
            document twice in one row.
        doc_ids: ids that the positions of ``ranking`` stand for, distinct.
        query_ids: one id for each row; one without judgements gets no judged hits.
    """
    n_queries, depth = ranking.shape
    rows = judgements.rows(query_ids)
    if judgements.pairs_pay(ranking.size):
        look_up = _in_pairs(doc_ids, rows, judgements)
    else:
        look_up = _in_qrels(doc_ids, query_ids, judgements)
    lengths = np.empty(n_queries, dtype=np.int64)
    found = [_NO_HITS]
    step = max(1, _CHUNK_ELEMENTS // max(1, depth))
    for start in range(0, n_queries, step):
        block = ranking[start : start + step]
        lengths[start : start + step] = np.count_nonzero(block != NONE, axis=1)
        places, grades = look_up(start, block)
        row, rank = np.divmod(places, max(1, depth))
        found.append(Hits(row + start, rank + 1, grades, np.zeros(len(row), dtype=np.bool_)))
    hits = Hits(*map(np.concatenate, zip(*found, strict=True)))
    return joined(hits, lengths, rows, judgements)


def _in_pairs(doc_ids: Sequence[str], rows: NDArray[np.int64], judgements: Judgements) -> _LookUp:
    pairs = judgements.pairs
    codes = pairs.codes(doc_ids)
    return lambda start, block: pairs.look_up(rows[start : start + len(block), None], codes[block])


def _in_qrels(doc_ids: Sequence[str], query_ids: Sequence[str], judgements: Judgements) -> _LookUp:
    ids = np.array([*doc_ids, None], dtype=object)  # at -1, where no hit is, stands None
    judged_of = [judgements.qrels.get(query_id, {}) for query_id in query_ids]

    def look_up(
        start: int, block: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        hits_of = ids[block].tolist()
        grades = np.fromiter(
            chain.from_iterable(
                map(judged.get, hits, repeat(NOT_JUDGED))
                for judged, hits in zip(judged_of[start : start + len(block)], hits_of, strict=True)
            ),
            np.int32,
            block.size,
        )
        places = np.flatnonzero(grades >= 0)
        return places, grades[places]

    return look_up


def judge_lists(
    lists: Mapping[str, Sequence[str]], query_ids: Sequence[str], judgements: Judgements
) -> JudgedRun:
    """Join rankings given as document ids, best first; a document may stand in one more than once.

    Args:
        lists: query id -> document ids; queries that are not in ``query_ids`` are left out.
        query_ids: the queries of the result; one that ``lists`` does not have gets no hits.
    """
    row: list[int] = []
    rank: list[int] = []
    grade: list[int] = []
    repeated: list[bool] = []
    lengths = np.zeros(len(query_ids), dtype=np.int64)
    for at, query_id in enumerate(query_ids):
        doc_ids = lists.get(query_id, ())
        lengths[at] = len(doc_ids)
        judged = judgements.qrels.get(query_id)
        if not judged:
            continue
        grade_of = judged.get
        seen = set()
        for i, doc_id in enumerate(doc_ids, start=1):
            found = grade_of(doc_id, NOT_JUDGED)
            if found >= 0:
                row.append(at)
                rank.append(i)
                grade.append(found)
                repeated.append(doc_id in seen)
                seen.add(doc_id)
    hits = Hits(
        np.array(row, dtype=np.int64),
        np.array(rank, dtype=np.int64),
        np.array(grade, dtype=np.int32),
        np.array(repeated, dtype=np.bool_),
    )
    return joined(hits, lengths, judgements.rows(query_ids), judgements)


def joined(
    hits: Hits,
    lengths: NDArray[np.int64],
    judged_rows: NDArray[np.int64],
    judgements: Judgements,
) -> JudgedRun:
    """Judged hits with the perfect rankings of their queries.

    Args:
        hits: in the order of queries and ranks.
        lengths: int64 (queries,), hits returned.
        judged_rows: int64 (queries,), the number of each query in ``judgements``, -1 for none.
    """
    if np.array_equal(judged_rows, np.arange(len(judgements.n_judged))):
        # All judged queries in their order, as often: nothing to pick.
        perfect = Ideal(judgements.row, judgements.rank, judgements.ideal)
        return JudgedRun(hits, lengths, perfect, judgements.n_judged)
    known = judged_rows >= 0
    starts, ends = judgements.starts[:-1], judgements.starts[1:]
    counts = np.zeros(len(lengths), dtype=np.int64)
    counts[known] = (ends - starts)[judged_rows[known]]
    n_judged = np.zeros(len(lengths), dtype=np.int64)
    n_judged[known] = judgements.n_judged[judged_rows[known]]
    row = np.repeat(np.arange(len(lengths)), counts)
    rank = ordinals(row, len(lengths))
    grade = judgements.ideal[starts[judged_rows[row]] + rank - 1]
    return JudgedRun(hits, lengths, Ideal(row, rank, grade), n_judged)
