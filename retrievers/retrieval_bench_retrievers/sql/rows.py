"""Rows that the statement of the ``sql`` retriever gave, as a ranking."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.sql.statement import WHERE


def ranking_of(
    rows: Sequence[Sequence[Any]], query: Query, stages: Mapping[str, int], sign: float | None
) -> Ranking:
    """The first column as ids, the second as scores; ties by id.

    Args:
        rows: best first.
        sign: 1, -1 for distances, None where there are no scores.

    Raises:
        ContractError: NULL as an id, a score that is no finite number or that rises.
    """
    ids: list[str] = []
    for rank, row in enumerate(rows, start=1):
        if row[0] is None:
            raise _no_ranking(f"NULL as the id at rank {rank}", query, "a text")
        ids.append(str(row[0]))
    if sign is None:
        return Ranking(ids, None, stages)
    pairs: list[tuple[float, str]] = []
    for rank, (doc_id, row) in enumerate(zip(ids, rows, strict=True), start=1):
        try:
            score = sign * float(row[1])
        except (TypeError, ValueError):
            score = math.nan
        if not math.isfinite(score):
            given = f"the score {row[1]!r} at rank {rank}"
            raise _no_ranking(given, query, "a finite number")
        if pairs and score > -pairs[-1][0]:
            fix = "add ORDER BY; for distances say `order: ascending`"
            raise _no_ranking(f"a score that rises at rank {rank}", query, "best first", fix)
        pairs.append((-score, doc_id))
    pairs.sort()
    return Ranking([doc_id for _, doc_id in pairs], [-score for score, _ in pairs], stages)


def _no_ranking(what: str, query: Query, accepted: str, fix: str = "") -> ContractError:
    return ContractError(
        f"the statement returned {what}",
        where=f"{WHERE}, query {query.id!r}",
        accepted=f"{accepted}; the first column is the id, the second the score",
        fix=fix or "correct the statement",
    )
