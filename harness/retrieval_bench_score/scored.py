"""The join of a run given as scores, as other tools pass it: query id -> document id -> score.

The order is trec_eval's: the score in single precision falling, equal ones by document id falling.
No ranking is made: the rank of a judged hit is one more than the number of hits before it, and that
a sorted array of all scores tells.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import DataError
from retrieval_bench.metrics.judged import NOT_POOLED, Hits, JudgedRun, Judgements, joined
from retrieval_bench.metrics.ties import ties_of

_SHOWN = 40

_Number = TypeVar("_Number", np.int32, np.float64)


def judge_scores(
    run: Mapping[str, Mapping[str, float]], query_ids: Sequence[str], judgements: Judgements
) -> JudgedRun:
    """Join a run given as scores.

    Args:
        run: queries that are not in ``query_ids`` are left out.
        query_ids: the queries of the result; one that ``run`` does not have gets no hits.

    Raises:
        DataError: a score that is NaN or infinite, with its query and document.
    """
    scores_of = [run.get(query_id, {}) for query_id in query_ids]
    lengths = np.fromiter(map(len, scores_of), np.int64, len(scores_of))
    starts = np.cumsum(lengths) - lengths
    scores = finite_scores(query_ids, scores_of)
    own = _judged_hits(scores_of, [judgements.qrels.get(query_id, {}) for query_id in query_ids])
    row = own.row
    keys = _falling_keys(np.repeat(np.arange(len(scores_of)), lengths), scores)
    own_keys = _falling_keys(row, own.score)
    ordered = np.sort(keys, kind="stable")  # far faster where runs are in order already
    before = np.searchsorted(ordered, own_keys, side="left")
    tied = np.flatnonzero(np.searchsorted(ordered, own_keys, side="right") - before > 1)

    def equals(i: int) -> list[str]:
        """The documents that have the score of judged hit ``i`` in its query."""
        start, of = starts[row[i]], scores_of[row[i]]
        places = np.flatnonzero(keys[start : start + len(of)] == own_keys[i])
        doc_ids = list(of)
        return [doc_ids[place] for place in places.tolist()]

    if len(tied):
        before[tied] += _before_among_equals(tied, own_keys, own.ids(tied), equals)
    order = np.argsort(before, kind="stable")
    rank = before - starts[row] + 1
    hits = Hits(row[order], rank[order], own.grade[order], np.zeros(len(order), dtype=np.bool_))
    of_hits = joined(hits, lengths, judgements.rows(query_ids), judgements)
    return replace(of_hits, ties=ties_of(ordered, lengths))


class _Own(NamedTuple):
    """The judged hits, query by query, in no order within a query.

    Attributes:
        row: int64 (hits,), the query.
        score: float64 (hits,).
        grade: int32 (hits,).
        place: int64 (hits,), where the id stands in ``among``, these one behind the other.
        among: for each query a mapping with these ids, and more.
    """

    row: NDArray[np.int64]
    score: NDArray[np.float64]
    grade: NDArray[np.int32]
    place: NDArray[np.int64]
    among: Sequence[Mapping[str, object]]

    def ids(self, hits: NDArray[np.int64]) -> list[str]:
        """The documents of these hits."""
        ids = list(chain.from_iterable(self.among))
        return [ids[place] for place in self.place[hits].tolist()]


def _judged_hits(
    scores_of: Sequence[Mapping[str, float]], judged_of: Sequence[Mapping[str, int]]
) -> _Own:
    """For each query, what the run and the judgements have in common."""
    among: list[Mapping[str, object]] = []
    scores: list[Iterable[float]] = []
    grades: list[Iterable[int]] = []
    for of, judged in zip(scores_of, judged_of, strict=True):
        # The smaller of both is looked up in the other.
        if len(of) <= len(judged):
            among.append(of)
            scores.append(of.values())
            grades.append(map(judged.get, of, repeat(NOT_POOLED)))
        else:
            among.append(judged)
            scores.append(map(of.get, judged, repeat(np.nan)))
            grades.append(judged.values())
    counts = np.fromiter(map(len, among), np.int64, len(among))
    score = _flat(scores, np.float64, int(counts.sum()))
    grade = _flat(grades, np.int32, len(score))
    place = np.flatnonzero((grade > NOT_POOLED) & ~np.isnan(score))
    row = np.repeat(np.arange(len(among)), counts)
    return _Own(row[place], score[place], grade[place], place, among)


def _flat(values: Iterable[Iterable[float]], dtype: type[_Number], length: int) -> NDArray[_Number]:
    return np.fromiter(chain.from_iterable(values), dtype, length)


def finite_scores(
    query_ids: Sequence[str], scores_of: Sequence[Mapping[str, float]]
) -> NDArray[np.float64]:
    """All scores, one query behind the other, float64.

    Raises:
        DataError: a score that is no finite number (a text is none), with its query and document.
    """
    given: list[float] = []
    for of in scores_of:
        given += of.values()
    with suppress(TypeError, OverflowError):  # unlike numpy, an array takes no text for a number
        scores = np.frombuffer(array("d", given))
        if np.isfinite(scores).all():
            return scores
    for query_id, of in zip(query_ids, scores_of, strict=True):
        for doc_id, score in of.items():
            if not _is_finite(score):
                raise DataError(
                    f"score {repr(score)[:_SHOWN]} of document {doc_id!r}, query {query_id!r}",
                    where="the run",
                    accepted="finite numbers",
                    fix="leave documents without a score out of the run",
                )
    raise AssertionError("a score is not finite, and none was found")


def _is_finite(score: Any) -> bool:
    try:
        return math.isfinite(array("d", [score])[0])
    except (TypeError, OverflowError):
        return False


def _falling_keys(rows: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Numbers that rise with the row, and within a row as the score in single precision falls.

    A float32 read as bits rises with its value once its sign is folded in; -0 is made 0, its equal.
    """
    with np.errstate(over="ignore"):
        bits = (scores.astype(np.float32) + np.float32(0)).view(np.uint32)
    rising = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return (rows.astype(np.uint64) << np.uint64(32)) | (~rising).astype(np.uint64)


def _before_among_equals(
    tied: NDArray[np.int64],
    keys: NDArray[np.uint64],
    ids: Sequence[str],
    equals: Callable[[int], list[str]],
) -> NDArray[np.int64]:
    """For each of the ``tied`` hits, with these ``ids``, how many with the same score have a
    greater id."""
    places: dict[int, dict[str, int]] = {}
    before = np.empty(len(tied), dtype=np.int64)
    for i, (at, doc_id) in enumerate(zip(tied.tolist(), ids, strict=True)):
        key = int(keys[at])
        if key not in places:
            falling = sorted(equals(at), reverse=True)
            places[key] = {equal: place for place, equal in enumerate(falling)}
        before[i] = places[key][doc_id]
    return before
