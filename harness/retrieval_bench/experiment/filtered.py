"""Hits that the filter of their query does not allow."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Query, Ranking
from retrieval_bench.runs.summary import FilterFacts


def filtered(
    dataset: Dataset,
    queries: Sequence[Query],
    rankings: Sequence[Ranking | None],
    capabilities: Capabilities,
) -> FilterFacts | None:
    """What filters did; None where no query has one."""
    if not any(query.filter for query in queries):
        return None
    asked = [
        (query.filter, ranking.doc_ids)
        for query, ranking in zip(queries, rankings, strict=True)
        if query.filter is not None and ranking is not None
    ]
    known = dataset.filtering
    if known is None:
        return FilterFacts(
            queries=len(asked), leaked=None, leaking=None, applied=capabilities.filters
        )
    outside = [known.fits(given, doc_ids).count(False) for given, doc_ids in asked]
    leaking = sum(map(bool, outside))
    return FilterFacts(
        queries=len(asked), leaked=sum(outside), leaking=leaking, applied=capabilities.filters
    )


def leaks(found: FilterFacts | None) -> list[str]:
    """Warn of hits that a filter does not allow, and where nobody can tell."""
    if found is None or not found.queries:
        return []
    if found.leaked:
        text = (
            f"{counted(found.leaked, 'hit')} of {counted(found.leaking or 0, 'query')} leaked: "
            "their query's filter does not allow them."
        )
        return [Notice(text, Code.LEAKED)]
    if found.leaked is None and not found.applied:
        text = (
            f"{counted(found.queries, 'query')} with a filter, which this retriever does not say "
            "it applies; without the documents nobody can tell."
        )
        return [Notice(text, Code.LEAKED)]
    return []
