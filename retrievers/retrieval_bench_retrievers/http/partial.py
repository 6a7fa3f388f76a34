"""What search engines say in an answer with status 200 that is not whole: shards that failed, a
search that was cut short."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from retrieval_bench_retrievers.http.answer import shown


def _true(value: Any) -> bool:
    return value is True


def _false(value: Any) -> bool:
    return value is False


def _one_true(value: Any) -> bool:
    return isinstance(value, Mapping) and True in value.values()


def _counted(value: Any) -> bool:
    return _number(value) and value > 0


def _below_100(value: Any) -> bool:
    return _number(value) and value < 100


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Sign:
    """One way to say that an answer is partial.

    Attributes:
        engines: that say it so.
        path: keys that lead to it.
        partial: whether the value there says it; ``bool``: it is neither null nor empty.
        says: it in words, with places for what stands beside it; empty = the value itself.
    """

    engines: str
    path: tuple[str, ...]
    partial: Callable[[Any], bool]
    says: str = ""

    def said(self, answer: Any) -> str:
        """Read what ``answer`` says of itself by this sign, empty where it does not."""
        beside: Any = None
        value = answer
        for key in self.path:
            if not isinstance(value, Mapping):
                return ""
            beside, value = value, value.get(key)
        if not self.partial(value):
            return ""
        if self.says:
            return self.says.format_map(_OrUnknown(beside))
        return f"{'.'.join(self.path)}: {shown(json.dumps(value, ensure_ascii=False))}"


class _OrUnknown(dict[str, Any]):
    def __missing__(self, _key: str) -> str:
        return "?"


_LUCENE = "Elasticsearch, OpenSearch"
_CLUSTERS = "{} of {{total}} clusters {}"

SIGNS: tuple[Sign, ...] = (
    # Elasticsearch and OpenSearch, search API: response body; cross-cluster search: _clusters;
    # async search and ES|QL: is_partial. Manticore has timed_out, too.
    Sign(_LUCENE, ("_shards", "failed"), _counted, "{failed} of {total} shards failed"),
    Sign(f"{_LUCENE}, Manticore", ("timed_out",), _true),
    Sign(_LUCENE, ("terminated_early",), _true),
    *(
        Sign("Elasticsearch", ("_clusters", name), _counted, _CLUSTERS.format(f"{{{name}}}", what))
        for name, what in (
            ("skipped", "were skipped"),
            ("partial", "answered in part"),
            ("failed", "failed"),
        )
    ),
    Sign("Elasticsearch", ("is_partial",), _true),
    # Solr, common query parameters: timeAllowed, cpuAllowed, shards.tolerant; it is true, or
    # "omitted" with partialResults=false.
    Sign("Solr", ("responseHeader", "partialResults"), bool),
    # Vespa, graceful degradation, and default JSON result format: root.errors.
    Sign("Vespa", ("root", "coverage", "coverage"), _below_100, "coverage is {coverage} %"),
    Sign("Vespa", ("root", "coverage", "full"), _false, "coverage is not full"),
    Sign("Vespa", ("root", "coverage", "degraded"), _one_true),
    Sign("Vespa", ("root", "errors"), bool),
    # GraphQL, section 7.1: errors beside data.
    Sign("Weaviate, Quickwit", ("errors",), bool),
    # Typesense, search parameters: search_cutoff_ms.
    Sign("Typesense", ("search_cutoff",), _true),
    # Meilisearch, federated search over a network of instances.
    Sign("Meilisearch", ("remoteErrors",), bool),
    # Azure AI Search, documents - search post: minimumCoverage, semantic ranking.
    Sign("Azure AI Search", ("@search.coverage",), _below_100),
    Sign("Azure AI Search", ("@search.semanticPartialResponseReason",), bool),
    # Couchbase, search response: status.
    Sign("Couchbase", ("status", "failed"), _counted, "{failed} of {total} partitions failed"),
)
"""Milvus says it to its gRPC clients alone (accessed_data_ratio), and Meilisearch does not say that
searchCutoffMs ended a search; Algolia's ``exhaustive`` is about counts, not hits."""

_SEVERAL = ("responses", "results", "response")
"""Where answers stand that were asked for together, or later: _msearch, Typesense's multi_search,
async search."""


def _by_first_key(signs: Iterable[Sign]) -> Mapping[str, list[Sign]]:
    by_key: dict[str, list[Sign]] = {}
    for sign in signs:
        by_key.setdefault(sign.path[0], []).append(sign)
    return by_key


_SIGNS = _by_first_key(SIGNS)
_KEYS = _SIGNS.keys()


def partial(answer: Any) -> str:
    """Say how ``answer`` is not whole, in its own words; empty where it is, or does not say.

    It looks at keys of the answer alone, never at its hits, since it is part of a timed call.
    """
    for part in _answers(answer):
        for key in part.keys() & _KEYS:
            for sign in _SIGNS[key]:
                if said := sign.said(part):
                    return said
    return ""


def _answers(answer: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(answer, Mapping):
        return
    yield answer
    for name in _SEVERAL:
        inner = answer.get(name)
        for part in inner if isinstance(inner, list) else (inner,):
            if not (isinstance(part, Mapping) and "hits" in part):
                break
            yield part
