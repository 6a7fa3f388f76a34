"""Hits behind the cut that have the score of the last one before it.

Which of them came before the cut ids decided, so what equal scores decide depends on them. They are
asked for once more, untimed, after everything else was measured and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.ranking import levels
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Query, Ranking
from retrieval_bench.measure.calls import Measurement, System
from retrieval_bench.measure.deadline import deadline
from retrieval_bench.measure.protocol import Plan, Protocol
from retrieval_bench.measure.recorder import Recorder
from retrieval_bench.measure.threads import search_threads

DEEPEST = 1000
"""Hits that are asked for at most; a tie that goes on behind them is not followed."""
_TIMES = 4
"""How many times as many are asked for each time."""


@dataclass(frozen=True, slots=True)
class Behind:
    """Rankings with all hits that have the score of the last one before the cut.

    Attributes:
        query_ids: of the rankings.
        rankings: those that were measured, longer where a tie goes on; None where there is none.
        unknown: numbers of those that end in a tie of which nobody knows how far it goes.
    """

    query_ids: Sequence[str]
    rankings: Sequence[Ranking | None]
    unknown: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Cut:
    """What was asked for: ``k`` hits for each of ``queries`` on ``dataset``."""

    queries: Sequence[Query]
    dataset: Dataset
    k: int
    protocol: Protocol


def tie_levels(ranking: Ranking, can: Capabilities) -> NDArray[np.int64]:
    """Numbers (hits,) that are equal where hits are tied. A run that is replayed has its own order
    of ties, kept by differences that single precision, in which it was ordered, does not have."""
    if can.replays and ranking.scores is not None:
        with np.errstate(over="ignore"):
            scores = np.asarray(ranking.scores).astype(np.float32)
        ranking = replace(ranking, scores=scores.astype(np.float64))
    return levels(ranking)


def behind_cut(system: System, measurement: Measurement, task: Cut, rows: Sequence[int]) -> Behind:
    """Ask for the hits behind the cut where scores tie at all: who has no ties is not asked, nor
    whose calls take money, or another index.

    Args:
        rows: numbers of the queries that count; where none does, nobody is asked.
    """
    can, k, data = system.retriever.capabilities, task.k, task.dataset
    asks = bool(rows) and can.deepens and not measurement.interrupted
    asks = asks and measurement.spent is None and task.protocol.max_cost is None
    n_documents = 0 if data.unit_of else data.n_documents
    rows = rows or range(len(task.queries))
    queries = [task.queries[row] for row in rows]
    rankings = [measurement.rankings[row] for row in rows]
    ids = [query.id for query in queries]
    full = [at for at, ranking in enumerate(rankings) if ranking is not None and len(ranking) == k]
    of = {at: tie_levels(made, can) for at, made in enumerate(rankings) if made is not None}
    tied = any((level[1:] == level[:-1]).any() for level in of.values())
    scored = any(ranking is not None and ranking.scores is not None for ranking in rankings)
    if not full or not (tied or (k == 1 and scored)) or 0 < n_documents <= k:
        return Behind(ids, rankings)
    in_doubt = {at for at in full if k > 1 and of[at][-1] == of[at][-2]}
    extended, depth, pending = list(rankings), k, full
    unknown: set[int] = set()
    most = min(DEEPEST, n_documents or DEEPEST)
    while pending:
        if not asks or depth >= max(most, k + 1):
            unknown |= in_doubt.intersection(pending) if depth == k else set(pending)
            break
        depth = max(min(_TIMES * depth, most), k + 1)
        answers = _asked(system, [queries[at] for at in pending], depth, task)
        longest = max((len(ranking) for ranking in answers if ranking is not None), default=0)
        # Who never gives more than was wanted before may have more.
        ends = can.replays or (can.external and longest <= k)
        going_on = []
        for at, answer in zip(pending, answers, strict=True):
            whole = None if answer is None else _joined(rankings[at], answer, can)
            if answer is None or whole is None:
                unknown |= {at} & in_doubt
                continue
            extended[at], goes_on = whole
            if goes_on and len(answer) == depth < (n_documents or depth + 1):
                going_on.append(at)
            elif goes_on and ends and len(answer) == longest != n_documents:
                unknown |= {at} & in_doubt if len(answer) == k else {at}
        pending = going_on
    return Behind(ids, extended, frozenset(unknown))


def _joined(
    measured: Ranking | None, answer: Ranking, can: Capabilities
) -> tuple[Ranking, bool] | None:
    """``measured`` with the hits of a longer ``answer`` that tie with its last one, and whether the
    answer ends with one of them; None where the two are of different searches."""
    assert measured is not None
    ids = list(answer.doc_ids)
    if measured.scores is None or answer.scores is None or not set(measured.doc_ids) <= set(ids):
        return None
    level = tie_levels(answer, can)
    last = level[ids.index(measured.doc_ids[-1])]
    kept = set(measured.doc_ids)
    if any(at not in kept for at, of in zip(ids, level, strict=True) if of < last):
        return None
    more = [at for at, of in zip(ids, level, strict=True) if of == last and at not in kept]
    scores = np.append(measured.scores, [measured.scores[-1]] * len(more))
    order = measured.order
    if order is not None:
        order = np.append(order, [order[-1]] * len(more)).astype(np.int64)
    # Its legs say that it was fused; they are of the hits that were measured alone.
    joined = Ranking([*measured.doc_ids, *more], scores, legs=measured.legs, order=order)
    return joined, bool(level[-1] == last)


def _asked(
    system: System, queries: Sequence[Query], depth: int, task: Cut
) -> Sequence[Ranking | None]:
    """Answers of ``depth`` hits, None where there is none; whatever happens costs no more."""
    calls = Plan(len(queries), rounds=1, warm_up=0)
    recorder = Recorder(system, queries, depth, calls, at_once=True)
    try:
        with (
            search_threads(task.protocol.threads),
            deadline(task.protocol.timeout_s) as timer,
        ):
            for at in range(len(queries)):
                recorder.call(at, 0, at, timer, perf_counter_ns)
    except (HarnessError, KeyboardInterrupt):
        return [None] * len(queries)
    return recorder.rankings
