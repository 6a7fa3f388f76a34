"""A run joined with its judgements: the only input of every metric.

Most hits are not judged, and no metric looks at those but to count ranks. So a joined run is the
list of its judged hits with their ranks; after the join no id is looked at and nothing is sorted.
Here are the joins of arrays and of lists; :mod:`retrieval_bench_score.scored` has that of scores.

Judgements are arrays, made once, then joined with any number of runs. A join asks for each hit
whether its query judged it. A table of hashes tells nearly always where that judgement is, if there
is one; the few that it cannot tell are searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, islice, repeat
from operator import countOf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Qrels, Slots, by_rule, kind_of_truth
from retrieval_bench.metrics.ties import TiedHits
from retrieval_bench.metrics.truths import scores_refused

NOT_JUDGED = -1
"""In place of the number of a query or a document that no judgement names."""

NOT_POOLED = -(2**31)
"""In place of a grade, below every grade that there can be."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, odd: spreads neighbouring keys (Knuth, TAOCP 3, 6.4)."""

_SPARE_BITS, _MOST_BITS = 4, 24

_COUNTED = 4
"""Up to so many possible grades for each judgement, counting them beats sorting."""


class Judgements:
    """All judgements, query by query, in the order of ``qrels``; do not change ``qrels`` later.

    Attributes:
        qrels: what they were made from; a query with an empty mapping has no judgement. Names of
            slots stand for documents where there are slots.
        rules, kind: slots by query, and their kind; empty where documents are judged.
        row_of: query id -> its number.
        starts: int64 (queries + 1,), where the judgements of each query begin in ``ideal``.
        ideal: int32 (judgements,), the grades of each query, highest first; a grade below 0, which
            stands for "not judged" as in trec_eval, is 0 here.
        row: int64 (judgements,), the query of each entry of ``ideal``.
        rank: int64 (judgements,), the place of each in its query, from 1.
        n_judged: int64 (queries,), judgements of grade 0 or more.
    """

    def __init__(self, qrels: Qrels) -> None:
        """``qrels`` as arrays; nothing is changed in it.

        Raises:
            DataError: a grade that is no whole number, with its query and document.
        """
        self.rules, self.kind = by_rule(qrels), kind_of_truth(qrels)
        if self.rules:
            qrels = {query_id: of.slots for query_id, of in self.rules.items()}
        grades = list(chain.from_iterable(row.values() for row in qrels.values()))
        if countOf(map(type, grades), int) != len(grades):
            _check_grades(qrels)
        n_queries = len(qrels)
        counts = np.fromiter(map(len, qrels.values()), np.int64, n_queries)
        self.qrels = qrels
        self.row_of = {query_id: row for row, query_id in enumerate(qrels)}
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.row = np.repeat(np.arange(n_queries), counts)
        self.rank = np.arange(1, len(grades) + 1) - np.repeat(self.starts[:-1], counts)
        self._grades = _as_array(grades, qrels)
        self.ideal = _highest_first(self.row, np.maximum(self._grades, 0), n_queries)
        self.n_judged = np.bincount(self.row[self._grades >= 0], minlength=n_queries)
        for shared in (self.starts, self.row, self.rank, self.ideal, self.n_judged):
            shared.setflags(write=False)  # joined runs hold them, too

    @property
    def defined(self) -> Collection[str]:
        """Names of the only metrics that are, where truth is by rule."""
        return next((of.defined for of in self.rules.values()), ())

    def rows(self, query_ids: Sequence[str]) -> NDArray[np.int64]:
        """The number of each query, -1 for one without an entry."""
        numbers = map(self.row_of.get, query_ids, repeat(NOT_JUDGED))
        return np.fromiter(numbers, np.int64, len(query_ids))

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs that a join of arrays looks up; made when it is first needed."""
        return Pairs(self.qrels, self.row, self._grades)

    def pairs_pay(self, n_hits: int) -> bool:
        """Return whether :attr:`pairs` are made already, or sooner made than as many hits looked up
        in ``qrels``: a judgement takes about as long as five hits."""
        return "pairs" in self.__dict__ or 5 * len(self.row) <= n_hits


class Pairs:
    """All pairs of a query and a document that the judgements name, whatever the grade."""

    def __init__(self, qrels: Qrels, rows: NDArray[np.int64], grades: NDArray[np.int32]) -> None:
        self._n_codes = max(1, len(grades))
        self._code_of: dict[str, int] = {}
        doc_ids = chain.from_iterable(qrels.values())
        # The code of a document is the number of the first judgement that names it.
        codes = np.fromiter(map(self._code_of.setdefault, doc_ids, count()), np.int64, len(grades))
        keys = self._key(rows, codes)
        order = np.argsort(keys, kind="stable")  # far faster where rows are in order already
        self._keys, self._grades = keys[order], grades[order]
        bits = min(_MOST_BITS, len(keys).bit_length() + _SPARE_BITS)
        self._shift = np.uint64(64 - bits)
        self._slots = np.full(1 << bits, -1, dtype=np.int32)
        self._slots[self._hashed(self._keys)] = np.arange(len(keys), dtype=np.int32)

    def codes(self, doc_ids: Sequence[str]) -> NDArray[np.int64]:
        """The number of each document, -1 for one that no query judged; one more -1 at the end, so
        that position -1 (no hit) is not judged either."""
        numbers = map(self._code_of.get, chain(doc_ids, [""]), repeat(NOT_JUDGED))
        codes = np.fromiter(numbers, np.int64, len(doc_ids) + 1)
        codes[-1] = NOT_JUDGED
        return codes

    def look_up(
        self, rows: NDArray[np.int64], codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return which pairs the judgements name.

        Args:
            rows: (n, 1) numbers of queries, -1 for none.
            codes: (n, depth) numbers of documents, -1 for none.

        Returns:
            Positions in the flattened ``codes``, rising, and the grades there.
        """
        keys = self._key(rows, codes)
        keys[(codes < 0) | (rows < 0)] = -1
        keys = keys.ravel()
        slots = self._slots[self._hashed(keys)]
        candidates = np.flatnonzero(slots >= 0)
        wanted, places = keys[candidates], slots[candidates].astype(np.int64)
        # Where another pair has the slot, this one may be judged nevertheless.
        other = np.flatnonzero(self._keys[places] != wanted)
        places[other] = np.searchsorted(self._keys, wanted[other])
        places[places == len(self._keys)] = 0  # not judged, whatever it is compared with
        known = self._keys[places] == wanted
        return candidates[known], self._grades[places[known]]

    def _key(self, rows: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(rows * self._n_codes + codes)

    def _hashed(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        return ((keys.view(np.uint64) * _MULTIPLIER) >> self._shift).view(np.int64)


def _highest_first(
    rows: NDArray[np.int64], grades: NDArray[np.int32], n_rows: int
) -> NDArray[np.int32]:
    """The grades of each row in falling order; ``rows`` is sorted."""
    span = np.int64(grades.max(initial=0)) + 1
    keys = rows * span + (span - 1 - grades)
    n_keys = n_rows * int(span)
    if n_keys <= _COUNTED * len(keys):
        keys = np.repeat(np.arange(n_keys), np.bincount(keys, minlength=n_keys))
    else:
        keys.sort()
    return np.asarray(span - 1 - keys % span, dtype=np.int32)


def _as_array(grades: Sequence[int], qrels: Qrels) -> NDArray[np.int32]:
    try:
        return np.fromiter(grades, np.int32, len(grades))
    except OverflowError:
        most = int(np.iinfo(np.int32).max)
        raise _refused(
            qrels, lambda grade: abs(grade) > most, f"whole numbers up to {most:,}"
        ) from None


def _check_grades(qrels: Qrels) -> None:
    types: set[type] = {kind for row in qrels.values() for kind in set(map(type, row.values()))}
    wrong = {kind for kind in types if kind is not int and not issubclass(kind, np.integer)}
    if wrong:
        raise _refused(
            qrels, lambda grade: type(grade) in wrong, "whole numbers; 1 or more is relevant"
        )


def _refused(qrels: Qrels, is_wrong: Callable[[Any], bool], accepted: str) -> DataError:
    query_id, doc_id, grade = next(
        (query_id, doc_id, grade)
        for query_id, row in qrels.items()
        for doc_id, grade in row.items()
        if is_wrong(grade)
    )
    return DataError(
        f"grade {grade!r} of document {doc_id!r}, query {query_id!r}",
        where="the judgements",
        accepted=accepted,
        fix="round the grades, or give 1 for relevant and 0 for not",
    )


NONE = -1
"""Fills a ranking behind its last hit."""

_CHUNK_ELEMENTS = 1 << 20


class Hits(NamedTuple):
    """Hits of all queries, in the order of queries, and of ranks within a query.

    Attributes:
        row: int64 (hits,), the query.
        rank: int64 (hits,), from 1.
        grade: int32 (hits,); one below 0 says that the document was in the pool and not judged.
        repeated: bool (hits,), True where the document stood in the ranking before.
    """

    row: NDArray[np.int64]
    rank: NDArray[np.int64]
    grade: NDArray[np.int32]
    repeated: NDArray[np.bool_]

    def where(self, wanted: NDArray[np.bool_]) -> Hits:
        """The hits for which ``wanted``, bool (hits,), is true."""
        row, rank, grade, repeated = self
        return Hits(row[wanted], rank[wanted], grade[wanted], repeated[wanted])

    def within(self, cut: int | None) -> Hits:
        """Return the hits at ranks up to ``cut``."""
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
        """Return the ideal hits at ranks up to ``cut``."""
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
        pooled: the hits that the judgements name, also with a grade below 0.
        ties: hits of equal scores; None where there are none or no known scores.
        defined, kind: as of :class:`Judgements`. Of slots there is a hit for each that is filled.
        answers: where there are slots, those of each query (None: it has none), and its hits.
    """

    judged: Hits
    lengths: NDArray[np.int64]
    ideal: Ideal
    n_judged: NDArray[np.int64]
    pooled: Hits
    ties: TiedHits | None = None
    defined: Collection[str] = ()
    kind: str = ""
    answers: Sequence[tuple[Slots | None, Sequence[str]]] = ()
    _relevant: dict[int, Hits] = field(default_factory=dict, repr=False)
    _n_relevant: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @property
    def n_queries(self) -> int:
        """Number of rankings."""
        return len(self.lengths)

    def as_if(self, depth: int | None, *, judged_only: bool = False) -> JudgedRun:
        """Cut the run to at most ``depth`` hits a query; then, with ``judged_only``, to hits that
        are judged (trec_eval -M and -J)."""
        if depth is None and not judged_only:
            return self
        judged, pooled = self.judged.within(depth), self.pooled.within(depth)
        lengths = self.lengths if depth is None else np.minimum(self.lengths, depth)
        if judged_only:
            judged = pooled = judged._replace(rank=ordinals(judged.row, self.n_queries))
            lengths = self.count(judged.row)
        answers = [(slots, doc_ids[:depth]) for slots, doc_ids in self.answers]
        of_slots: Any = {"defined": self.defined, "kind": self.kind, "answers": answers}
        return JudgedRun(judged, lengths, self.ideal, self.n_judged, pooled, **of_slots)

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
        """Return how often each query stands in ``rows``, int64 (queries,)."""
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
    if judgements.rules:
        rows_of = zip(query_ids, ranking.tolist(), strict=True)
        lists = {query: [doc_ids[i] for i in row if i != NONE] for query, row in rows_of}
        return judge_lists(lists, query_ids, judgements)
    n_queries, depth = ranking.shape
    rows = judgements.rows(query_ids)
    if judgements.pairs_pay(ranking.size):
        look_up = _in_pairs(doc_ids, rows, judgements)
    else:
        look_up = _in_qrels(doc_ids, query_ids, judgements)
    lengths = np.empty(n_queries, dtype=np.int64)
    all_hits = [_NO_HITS]
    step = max(1, _CHUNK_ELEMENTS // max(1, depth))
    for start in range(0, n_queries, step):
        block = ranking[start : start + step]
        lengths[start : start + step] = np.count_nonzero(block != NONE, axis=1)
        places, grades = look_up(start, block)
        row, rank = np.divmod(places, max(1, depth))
        all_hits.append(Hits(row + start, rank + 1, grades, np.zeros(len(row), dtype=np.bool_)))
    hits = Hits(*map(np.concatenate, zip(*all_hits, strict=True)))
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
                map(judged.get, hits, repeat(NOT_POOLED))
                for judged, hits in zip(judged_of[start : start + len(block)], hits_of, strict=True)
            ),
            np.int32,
            block.size,
        )
        places = np.flatnonzero(grades > NOT_POOLED)
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
    rules = judgements.rules
    for of in islice(rules.values(), 1):
        of.look_up(chain.from_iterable(lists.get(query_id, ()) for query_id in query_ids))
    for at, query_id in enumerate(query_ids):
        doc_ids = lists.get(query_id, ())
        lengths[at] = len(doc_ids)
        judged = judgements.qrels.get(query_id)
        if not judged:
            continue
        seen = set()
        hits_of = rules[query_id].filled(doc_ids) if rules else enumerate(doc_ids, start=1)
        for i, doc_id in hits_of:
            if doc_id in judged:
                row.append(at)
                rank.append(i)
                grade.append(judged[doc_id])
                repeated.append(doc_id in seen)
                seen.add(doc_id)
    hits = Hits(
        np.array(row, dtype=np.int64),
        np.array(rank, dtype=np.int64),
        np.array(grade, dtype=np.int32),
        np.array(repeated, dtype=np.bool_),
    )
    answers = [(rules.get(query_id), lists.get(query_id, ())) for query_id in query_ids]
    return joined(hits, lengths, judgements.rows(query_ids), judgements, answers if rules else ())


def joined(
    hits: Hits,
    lengths: NDArray[np.int64],
    judged_rows: NDArray[np.int64],
    judgements: Judgements,
    answers: Sequence[tuple[Slots | None, Sequence[str]]] | None = None,
) -> JudgedRun:
    """Hits with the perfect rankings of their queries.

    Args:
        hits: those that judgements name, in the order of queries and ranks.
        lengths: int64 (queries,), hits returned.
        judged_rows: int64 (queries,), the number of each query in ``judgements``, -1 for none.
        answers: as of :class:`JudgedRun`; None where ``hits`` cannot be slots.

    Raises:
        ConfigError: truth is by rule or by spans, and ``hits`` are documents.
    """
    if judgements.rules and answers is None:
        raise scores_refused(judgements.kind)
    of: Any = {"defined": judgements.defined, "kind": judgements.kind, "answers": answers or ()}
    below = hits.grade < 0
    judged = hits.where(~below) if below.any() else hits
    if np.array_equal(judged_rows, np.arange(len(judgements.n_judged))):
        # All judged queries in their order, as often: nothing to pick.
        perfect = Ideal(judgements.row, judgements.rank, judgements.ideal)
        return JudgedRun(judged, lengths, perfect, judgements.n_judged, hits, **of)
    known = judged_rows >= 0
    starts, ends = judgements.starts[:-1], judgements.starts[1:]
    counts = np.zeros(len(lengths), dtype=np.int64)
    counts[known] = (ends - starts)[judged_rows[known]]
    n_judged = np.zeros(len(lengths), dtype=np.int64)
    n_judged[known] = judgements.n_judged[judged_rows[known]]
    row = np.repeat(np.arange(len(lengths)), counts)
    rank = ordinals(row, len(lengths))
    grade = judgements.ideal[starts[judged_rows[row]] + rank - 1]
    ideal = Ideal(row, rank, grade)
    return JudgedRun(judged, lengths, ideal, n_judged, hits, **of)
