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
    """Measure the effect of filters; None where no query has one."""
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


def cut_under_filters(
    data: Dataset, queries: Sequence[Query], rankings: Sequence[Ranking | None], k: int
) -> list[str]:
    """Tell lists that are shorter than ``k`` though more documents fit the filter of their query;
    a search by words finds no others, so that it is a note."""
    if data.filtering is None:
        return []
    asked = [
        (query.filter, len(ranking))
        for query, ranking in zip(queries, rankings, strict=True)
        if query.filter is not None and ranking is not None
    ]
    short = [(hits, data.filtering.count(given)) for given, hits in asked if hits < k]
    cut = [(hits, fit) for hits, fit in short if hits < fit]
    if not cut:
        return []
    hits, fit = (
        " to ".join(f"{n:,}" for n in sorted({min(of), max(of)})) for of in zip(*cut, strict=True)
    )
    text = (
        f"{len(cut):,} of {counted(len(asked), 'query')} with a filter got fewer than {k:,} hits "
        f"({hits}), though more documents fit it ({fit}): a search that filters behind its index "
        "loses such hits; one by words has no others."
    )
    return [Notice(text, Code.NOTE)]


def leaks(filter_facts: FilterFacts | None) -> list[str]:
    """Warn of hits that a filter does not allow, and where nobody can tell."""
    if filter_facts is None or not filter_facts.queries:
        return []
    if filter_facts.leaked:
        text = (
            f"{counted(filter_facts.leaked, 'hit')} of "
            f"{counted(filter_facts.leaking or 0, 'query')} leaked: "
            "their query's filter does not allow them."
        )
        return [Notice(text, Code.LEAKED)]
    if filter_facts.leaked is None and not filter_facts.applied:
        text = (
            f"{counted(filter_facts.queries, 'query')} with a filter, which this retriever does "
            "not say "
            "it applies; without the documents nobody can tell."
        )
        return [Notice(text, Code.LEAKED)]
    return []
