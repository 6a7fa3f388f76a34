"""Judgements as arrays: made once, then joined with any number of runs.

A join asks for each hit whether its query judged it. A table of hashes tells nearly always where
that judgement is, if there is one; the few that it cannot tell are searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, count, repeat
from operator import countOf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Qrels

NOT_JUDGED = -1

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, odd: spreads neighbouring keys (Knuth, TAOCP 3, 6.4)."""

_SPARE_BITS, _MOST_BITS = 4, 24

_COUNTED = 4
"""Up to so many possible grades for each judgement, counting them beats sorting."""


class Judgements:
    """All judgements, query by query, in the order of ``qrels``; do not change ``qrels`` later.

    Attributes:
        qrels: what they were made from; a query with an empty mapping has no judgement.
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

    def rows(self, query_ids: Sequence[str]) -> NDArray[np.int64]:
        """The number of each query, -1 for one without an entry."""
        numbers = map(self.row_of.get, query_ids, repeat(NOT_JUDGED))
        return np.fromiter(numbers, np.int64, len(query_ids))

    @cached_property
    def pairs(self) -> Pairs:
        """What a join of arrays looks up; made when it is first needed."""
        return Pairs(self.qrels, self.row, self._grades)

    def pairs_pay(self, n_hits: int) -> bool:
        """Whether :attr:`pairs` are made already, or sooner made than as many hits looked up in
        ``qrels``: a judgement takes about as long as five hits."""
        return "pairs" in self.__dict__ or 5 * len(self.row) <= n_hits


class Pairs:
    """All pairs of a query and a document that are judged with a grade of 0 or more."""

    def __init__(self, qrels: Qrels, rows: NDArray[np.int64], grades: NDArray[np.int32]) -> None:
        self._n_codes = max(1, len(grades))
        self._code_of: dict[str, int] = {}
        doc_ids = chain.from_iterable(qrels.values())
        # The code of a document is the number of the first judgement that names it.
        codes = np.fromiter(map(self._code_of.setdefault, doc_ids, count()), np.int64, len(grades))
        counted = np.flatnonzero(grades >= 0)
        keys = self._key(rows[counted], codes[counted])
        order = np.argsort(keys, kind="stable")  # far faster where rows are in order already
        self._keys, self._grades = keys[order], grades[counted][order]
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
        """Which pairs are judged.

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
        found = self._keys[places] == wanted
        return candidates[found], self._grades[places[found]]

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
