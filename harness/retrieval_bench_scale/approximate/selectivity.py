"""Filters of known selectivity for any dataset: a share of the documents, or a tenant's, drawn by a
hash of the id of each document. The same document gets the same fields everywhere, in any order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.filters import Filter, parse_filter
from retrieval_bench.core.metadata import Filtering, MetadataTable
from retrieval_bench.core.types import Dataset, Document, Documents, Query

PERCENTILE, TENANT = "bench_percentile", "bench_tenant"
"""Fields of metadata: a number from 0 to 100, evenly spread, and the name of a tenant."""

TENANTS = 50
"""So many, whose sizes fall as 1, 1/2, 1/3, ... (Zipf): the largest has 22 % of the documents, the
smallest .4 %. Each asks as many queries as any other."""

AS_ASKED, BY_TENANT = "as asked", "tenants"

_TOTAL = [*accumulate(1 / rank for rank in range(1, TENANTS + 1))]


def fields_of_document(doc_id: str) -> Mapping[str, Any]:
    """The two fields of a document."""
    percentile, tenant = _drawn(doc_id, 2)
    return {
        PERCENTILE: 100 * percentile,
        TENANT: _tenant(bisect_right(_TOTAL, tenant * _TOTAL[-1])),
    }


def tenant_of_query(query_id: str) -> str:
    """As whom a query is asked."""
    return _tenant(int(TENANTS * _drawn(query_id, 1)[0]))


@dataclass(frozen=True, slots=True)
class FilterSetting:
    """The queries of a dataset, all under one kind of filter.

    Attributes:
        name: of the filter.
        share: of the documents that fit, the mean over queries; None without filters.
    """

    name: str
    queries: tuple[Query, ...]
    share: float | None = None


def filter_settings(dataset: Dataset, given: Sequence[str]) -> tuple[Dataset, list[FilterSetting]]:
    """The dataset whose documents have the fields, and its queries as asked, then under each filter
    ``given``: a percentage, or ``tenants``.

    Raises:
        ConfigError: a filter that is neither, or a dataset without documents.
    """
    filters = [_of(text) for text in given]
    plain = FilterSetting(AS_ASKED, dataset.asked, _share(dataset, dataset.asked))
    if not filters:
        return dataset, [plain]
    if dataset.documents is None:
        raise ConfigError(
            f"--filters {' '.join(given)} on {dataset.name}, which has no documents",
            accepted="a dataset with documents, which get the fields that are filtered by",
            fix="leave --filters out",
        )
    asked = {
        name: tuple(
            _under(query, condition or {TENANT: tenant_of_query(query.id)})
            for query in dataset.asked
        )
        for name, condition in filters
    }
    # One of each filter: retrievers learn from queries by which fields they are filtered.
    first = [query for queries in asked.values() for query in queries[:1]]
    documents = _WithFields(dataset.documents)
    together = replace(
        dataset,
        documents=documents,
        queries=(*dataset.queries, *first),
        filtering=_filtering(documents, dataset),
    )
    under = [
        FilterSetting(name, queries, _share(together, queries)) for name, queries in asked.items()
    ]
    return together, [plain, *under]


def _filtering(documents: Documents, dataset: Dataset) -> Filtering:
    table = MetadataTable([*dataset.filter_fields, PERCENTILE, TENANT])
    ids = []
    for document in documents:
        table.add(document.metadata)
        ids.append(document.id)
    return Filtering(table, ids, dataset.unit_of)


class _WithFields(Documents):
    """A corpus whose documents have the two fields."""

    def __init__(self, inner: Documents) -> None:
        self._inner = inner

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[Document]:
        for document in self._inner:
            metadata = {**document.metadata, **fields_of_document(document.id)}
            yield replace(document, metadata=metadata)


def _of(text: str) -> tuple[str, Mapping[str, Any] | None]:
    """Its name, and the condition; None for tenants."""
    if text == BY_TENANT:
        return text, None
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 < percent <= 100:
        raise ConfigError(
            f"--filters {text}",
            accepted=f"percentages above 0 up to 100, or `{BY_TENANT}`",
            fix=f"such as --filters 50 10 1 {BY_TENANT}",
        )
    return f"{percent:g} %", {PERCENTILE: {"lt": percent}}


def _tenant(rank: int) -> str:
    return f"t{min(rank, TENANTS - 1) + 1:02}"


def _drawn(text: str, n: int) -> list[float]:
    """``n`` numbers from 0 to 1."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8 * n).digest()
    return [int.from_bytes(digest[8 * at : 8 * at + 8]) / 2**64 for at in range(n)]


def _under(query: Query, condition: Mapping[str, Any]) -> Query:
    own = query.filter
    given = condition if own is None else {"and": [dict(own.source), condition]}
    return replace(query, filter=parse_filter(given))


def _share(dataset: Dataset, queries: Sequence[Query]) -> float | None:
    known = dataset.filtering
    filters: list[Filter] = [query.filter for query in queries if query.filter is not None]
    if known is None or not filters:
        return None
    shares = {given: known.share(given) for given in dict.fromkeys(filters)}
    return sum(shares[given] for given in filters) / len(filters)
