"""The lists that a run kept of what its rankings were made of, and lists of several runs as one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from retrieval_bench.metrics.judged import NONE
from retrieval_bench.runs.run import Rankings, Run, equally_wide
from retrieval_bench_explain.ceilings import Positions

_NUMBERED = re.compile(r"\[\d+\]$")


FUSION, RERANKING = "fusion", "reranking"


def made_by(run: Run) -> str:
    """What makes the ranking of a run of the lists that it kept."""
    return FUSION if run.rankings.leg_lists else RERANKING


def kept_lists(rankings: Rankings) -> Mapping[str, Positions]:
    """Of a hybrid the lists of its legs; of a pipeline those of its steps but the last, whose list
    is the ranking, and the ranking without each rewriting, where that is known; of a pipeline with
    one step those inside of it."""
    if rankings.leg_lists:
        return rankings.leg_lists
    outer = [
        name
        for name in rankings.step_lists
        if "/" not in name and not _NUMBERED.search(name) and not name.endswith(" (fused)")
    ]
    if len(outer) < 2:
        inner = [name for name in rankings.step_lists if name.count("/") == 1]
        return {name: rankings.step_lists[name] for name in inner if not _NUMBERED.search(name)}
    return {name: found for name in outer[:-1] if (found := rankings.kept(name)) is not None}


def texts_of(run: Run, query_id: str) -> dict[str, tuple[str, ...]]:
    """Step -> the texts that it made of a query."""
    at = run.rankings.query_ids.index(query_id)
    return {step: texts[at] for step, texts in run.rankings.step_texts.items() if texts[at]}


def rewritten(rankings: Rankings) -> Mapping[str, Positions]:
    """Step that makes texts -> the ranking without it, where that is known of every query."""
    return {
        name: rankings.without[name] for name in rankings.step_texts if name in rankings.without
    }


def aligned(
    run: Run, rows: Positions, query_ids: Sequence[str], code_of: dict[str, int]
) -> Positions:
    """``rows`` of a run in the order of ``query_ids``, as positions in ``code_of``, which grows."""
    ids = run.rankings.doc_ids
    used = np.unique(rows[rows != NONE])
    code = np.full(len(ids) + 1, NONE, dtype=np.int32)
    code[used] = [code_of.setdefault(ids[i], len(code_of)) for i in used.tolist()]
    row_of = {query_id: at for at, query_id in enumerate(run.rankings.query_ids)}
    return np.asarray(code[rows[[row_of[query_id] for query_id in query_ids]]])


def is_same(a: Positions, b: Positions, k: int) -> bool:
    """Whether two lists of all queries are equal as far as both go, and at least up to ``k``."""
    width = max(k, min(a.shape[1], b.shape[1]))
    a, b = equally_wide(a[:, :width], b[:, :width])
    return np.array_equal(a, b)


KEPT, RAISED, LOWERED = "kept", "raised", "lowered"
LOST, LEFT_BELOW, NO_LEG = "lost below k", "left below k", "found by no leg"
FATES = (KEPT, RAISED, LOWERED, LOST, LEFT_BELOW, NO_LEG)
"""What fusion did to a document, against the best rank that a leg gave it: the same rank, a better
one, a worse one; out of the first k though a leg had it there; not among the first k where no leg
had it; nothing, for no leg returned it."""


def fate(fused: int, legs: Sequence[int], k: int) -> str:
    """What fusion did to a document: one of ``FATES``.

    Args:
        fused: its rank among the first ``k`` of the fused ranking, 0 = not there.
        legs: its rank in each leg's whole list, 0 = not there.
    """
    best = min((rank for rank in legs if rank), default=0)
    if not best:
        return NO_LEG
    if not fused:
        return LOST if best <= k else LEFT_BELOW
    if fused == best:
        return KEPT
    return RAISED if fused < best else LOWERED
