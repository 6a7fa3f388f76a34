"""What the ``sql`` retriever tells of itself after searching: the server's own times, and
which texts of its table an encoder is held against."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.encoders import fit as encoder_fit
from retrieval_bench_retrievers.sql.failures import text_of
from retrieval_bench_retrievers.sql.filling import content_of

EXPLAIN = "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "
"""Without the time of every node of the plan, which would itself take time."""


def sampled(table: str) -> str:
    """A statement for about as many texts of ``table`` as are examined, the same ones every time;
    it takes the number of ``documents``."""
    share = f"least(100, 100.0 * {encoder_fit.SAMPLE} / greatest(1, %(documents)s::bigint))"
    return (
        "SELECT CASE WHEN title = '' THEN text ELSE title || ' ' || text END "
        f"FROM {table} TABLESAMPLE BERNOULLI ({share}) REPEATABLE (1) ORDER BY id"
    )


def explained(
    plan_of: Callable[[Query, int], Mapping[str, Any]], asked: Iterable[tuple[Query, int]]
) -> dict[str, Any]:
    """Medians of the server's milliseconds over ``asked``, queries with their number of hits; the
    reason where it does not tell them."""
    execution, planning = [], []
    try:
        for query, k in asked:
            plan = plan_of(query, k)
            execution.append(float(plan["Execution Time"]))
            planning.append(float(plan["Planning Time"]))
    except Exception as problem:  # a fact that is missing must not cost the measurement
        return {"error": text_of(problem)}
    return {
        "execution": statistics.median(execution),
        "planning": statistics.median(planning),
        "queries": len(execution),
    }


def explained_fact(found: Mapping[str, Any] | None) -> list[str]:
    """The same as a sentence; none where nothing was explained."""
    if not found:
        return []
    if "error" in found:
        return [f"the server did not tell its own times: {found['error']}"]
    work, plan = (f"{found[part]:.2f} ms" for part in ("execution", "planning"))
    sample = f"medians of {found['queries']} queries, by EXPLAIN ANALYZE"
    return [f"the server itself says: {work} of execution, {plan} of planning ({sample})"]


def of_others(
    table: str, loaded: Mapping[str, Any] | None, documents: Iterable[Document] | None
) -> list[str]:
    """A warning where other documents were loaded than those of the dataset that asks."""
    if not loaded or documents is None or not loaded["finished"]:
        return []
    content, n = content_of(documents)
    if content == loaded["content"]:
        return []
    text = (
        f"The documents of table {table} ({loaded['documents']:,}) are not those of the dataset "
        f"({n:,}): they were loaded from others, or before these changed. Load the dataset into "
        "another --table, and name that one."
    )
    return [Notice(text, Code.FOREIGN_IDS)]


def unfinished(table: str, loaded: Mapping[str, Any] | None) -> list[str]:
    """A warning where a load was interrupted."""
    if not loaded or loaded["finished"]:
        return []
    part = f"table {table} holds a part of its documents"
    return [f"{part}: the load was interrupted; the same `data load` goes on with it"]
