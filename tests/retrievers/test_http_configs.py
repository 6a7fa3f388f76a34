"""The configs for search engines: what each asks, and how it reads an answer of the shape that the
engine documents. The values are our own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from retrieval_bench.core.config import RetrieverConfig, load_retriever_config
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.installed.installation import packaged_configs
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.http import http
from tests.builders.service import Reply, Request, Service, replies, service

NAMES = sorted(path.stem for path in (packaged_configs() / "retrievers").glob("http-*.yaml"))
TEXT = 'who said "no" & why?'
VECTOR = [0.5, -1.0]


@dataclass(frozen=True)
class Engine:
    """What an engine answers and is asked.

    Attributes:
        answer: of two hits.
        ids: what the harness makes of it.
        scores: the same.
        empty: an answer of no hits.
        asked: parts of the body of the request for the tenant "a b".
        absent: what is not in the request without a filter.
        server_ms: of the answer.
        path: of the request, empty where its body says enough.
        headers: of the request.
    """

    answer: Any
    ids: list[str]
    scores: list[float]
    empty: Any
    asked: list[str]
    absent: str = "tenant"
    server_ms: float | None = None
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)


def lucene(*hits: dict[str, Any]) -> dict[str, Any]:
    """An answer of ``_search``."""
    best = max((hit["_score"] for hit in hits), default=None)
    found = {"total": {"value": len(hits), "relation": "eq"}, "max_score": best, "hits": list(hits)}
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    return {"took": 4, "timed_out": False, "_shards": shards, "hits": found}


LUCENE = lucene(
    {"_index": "articles", "_id": "d7", "_score": 3.5},
    {"_index": "articles", "_id": "d2", "_score": 1.25},
)
TERM = '"filter":{"term":{"tenant":"a b"}}'
TYPESENSE = {
    "facet_counts": [], "found": 2, "out_of": 9, "page": 1, "search_cutoff": False,
    "request_params": {"collection_name": "articles", "per_page": 2, "q": "q"},
    "search_time_ms": 3,
    "hits": [
        {"document": {"id": "d7"}, "highlight": {}, "highlights": [], "text_match": 5000000,
         "text_match_info": {"score": "5000000", "tokens_matched": 2}},
        {"document": {"id": "d2"}, "highlight": {}, "highlights": [], "text_match": 4000000,
         "text_match_info": {"score": "4000000", "tokens_matched": 1}},
    ],
}  # fmt: skip

ENGINES: dict[str, Engine] = {
    "http-elasticsearch": Engine(
        LUCENE, ["d7", "d2"], [3.5, 1.25], lucene(),
        ['"size":2', '"filter":[{"term":{"tenant":"a b"}}]', '"fields":["title","text"]'],
        server_ms=4,
        path="/articles/_search?request_cache=false&allow_partial_search_results=false",
    ),
    "http-elasticsearch-knn": Engine(
        LUCENE, ["d7", "d2"], [3.5, 1.25], lucene(),
        ['"query_vector":[0.5,-1.0]', '"k":2', TERM], server_ms=4,
        path="/articles/_search?request_cache=false&allow_partial_search_results=false",
    ),
    "http-opensearch-knn": Engine(
        LUCENE, ["d7", "d2"], [3.5, 1.25], lucene(),
        ['"knn":{"embedding":{"vector":[0.5,-1.0],"k":2,', TERM], server_ms=4,
        path="/articles/_search?request_cache=false&allow_partial_search_results=false",
    ),
    "http-elasticsearch-template": Engine(
        LUCENE, ["d7", "d2"], [3.5, 1.25], lucene(),
        ['"id":"articles-search"', '"size":2,"tenant":"a b"'],
        server_ms=4, path="/articles/_search/template?allow_partial_search_results=false",
    ),
    "http-qdrant": Engine(
        {"result": {"points": [
            {"id": 12, "version": 3, "score": 0.75, "payload": {"doc_id": "d7"}},
            {"id": 5, "version": 3, "score": 0.5, "payload": {"doc_id": "d2"}},
        ]}, "status": "ok", "time": 0.002},
        ["d7", "d2"], [0.75, 0.5],
        {"result": {"points": []}, "status": "ok", "time": 0.001},
        ['"query":[0.5,-1.0],"limit":2', '"must":[{"key":"tenant","match":{"value":"a b"}}]'],
        absent="filter", server_ms=2,
    ),
    "http-weaviate": Engine(
        {"data": {"Get": {"Article": [
            {"_additional": {"distance": 0.25}, "docId": "d7"},
            {"_additional": {"distance": 0.5}, "docId": "d2"},
        ]}}},
        ["d7", "d2"], [-0.25, -0.5], {"data": {"Get": {"Article": []}}},
        ['{Get{Article(limit: 2, nearVector: {vector: [0.5, -1.0]}){docId _additional{distance}'],
    ),
    "http-vespa": Engine(
        {"timing": {"querytime": 0.003, "summaryfetchtime": 0.001, "searchtime": 0.005},
         "root": {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": 2},
                  "coverage": {"coverage": 100, "documents": 9, "full": True, "nodes": 1},
                  "children": [
            {"id": "index:articles/0/c4", "relevance": 6.5, "source": "articles",
             "fields": {"sddocname": "article", "doc_id": "d7"}},
            {"id": "index:articles/0/a8", "relevance": 2.0, "source": "articles",
             "fields": {"sddocname": "article", "doc_id": "d2"}},
        ]}},
        ["d7", "d2"], [6.5, 2.0],
        {"timing": {"querytime": 0.003}, "root": {"id": "toplevel", "fields": {"totalCount": 0}}},
        ['"hits":2', '"presentation.timing":true', '"ranking.softtimeout.enable":false'],
        server_ms=3,
    ),
    "http-solr": Engine(
        {"responseHeader": {"status": 0, "QTime": 6},
         "response": {"numFound": 2, "start": 0, "maxScore": 4.5, "numFoundExact": True,
                      "docs": [{"id": "d7", "score": 4.5}, {"id": "d2", "score": 1.5}]}},
        ["d7", "d2"], [4.5, 1.5],
        {"responseHeader": {"status": 0, "QTime": 1},
         "response": {"numFound": 0, "start": 0, "maxScore": 0.0, "docs": []}},
        ['"filter":["{!term f=tenant}a b"]', "{!edismax cache=false qf='title text' v=$text}",
         '"shards.tolerant":false'],
        server_ms=6,
    ),
    "http-meilisearch": Engine(
        {"hits": [{"id": "d7", "_rankingScore": 0.875}, {"id": 2, "_rankingScore": 0.5}],
         "query": "q", "processingTimeMs": 1, "limit": 2, "offset": 0, "estimatedTotalHits": 2},
        ["d7", "2"], [0.875, 0.5],
        {"hits": [], "query": "q", "processingTimeMs": 0, "limit": 2, "offset": 0},
        ['''"filter":["tenant = 'a b'"]''', '"limit":2'], server_ms=1,
    ),
    "http-typesense": Engine(
        TYPESENSE, ["d7", "d2"], [5000000.0, 4000000.0], {**TYPESENSE, "found": 0, "hits": []},
        [], server_ms=3,
        path="/collections/articles/documents/search?q=who%20said%20%22no%22%20%26%20why%3F"
        "&query_by=title,text&include_fields=id&per_page=2&filter_by=tenant:=a%20b",
        headers={"x-typesense-api-key": "key-of-mine"},
    ),
    "http-azure-ai-search": Engine(
        {"@odata.context": "https://name.example/indexes('articles')/$metadata#docs(*)",
         "value": [{"@search.score": 2.5, "id": "d7"}, {"@search.score": 0.5, "id": "d2"}]},
        ["d7", "d2"], [2.5, 0.5], {"@odata.context": "...", "value": []},
        ['''"filter":"tenant eq 'a b'"''', '"top":2'], headers={"api-key": "key-of-mine"},
        path="/indexes/articles/docs/search?api-version=2024-07-01",
    ),
    "http-chroma": Engine(
        {"ids": [["d7", "d2"]], "embeddings": None, "documents": None, "uris": None,
         "metadatas": None, "distances": [[0.25, 1.5]], "include": ["distances"]},
        ["d7", "d2"], [-0.25, -1.5],
        {"ids": [[]], "documents": None, "distances": [[]], "include": ["distances"]},
        ['"query_embeddings":[[0.5,-1.0]],"n_results":2', '"where":{"tenant":"a b"}'],
        absent="where",
    ),
}  # fmt: skip


class _Fixed:
    """An encoder that knows one vector."""

    def __init__(self, model: str = "") -> None:
        self.model = model

    def load(self) -> None:
        """There is nothing to load."""

    def encode_query(self, text: str) -> Any:
        return np.array([VECTOR], dtype=np.float32)

    def describe(self) -> dict[str, Any]:
        return {"model": self.model}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(http, "Encoder", _Fixed)
    for name in ("TYPESENSE_API_KEY", "AZURE_SEARCH_API_KEY"):
        monkeypatch.setenv(name, "key-of-mine")
    monkeypatch.setenv("CHROMA_COLLECTION_ID", "0b1")
    with service(replies(Reply())) as running:
        monkeypatch.setenv("AZURE_SEARCH_URL", running.url)
        yield running


def built(name: str, at: Service) -> Retriever:
    """The shipped config, asking the service of the test."""
    config: RetrieverConfig = load_retriever_config(name)
    url = re.sub(r"^http://localhost:\d+", at.url, config.params["url"])
    return config.model_copy(update={"params": {**config.params, "url": url}}).build()


def sent(request: Request) -> str:
    return request.path + request.content.decode()


def test_there_is_an_answer_for_every_config() -> None:
    assert set(NAMES) == set(ENGINES)


@pytest.mark.parametrize("name", NAMES)
def test_a_config_reads_the_documented_answer(served: Service, name: str) -> None:
    engine = ENGINES[name]
    served.answer = replies(Reply(engine.answer), Reply(engine.empty))
    retriever = built(name, served)
    ranking = checked_ranking(retriever.search(Query("q", TEXT), 2), 2)
    nothing = checked_ranking(retriever.search(Query("q", TEXT), 2), 2)
    retriever.close()
    assert list(ranking) == list(zip(engine.ids, engine.scores, strict=True))
    assert not len(nothing)
    assert ranking.stages.get("server") == (engine.server_ms and round(engine.server_ms * 1e6))
    assert not engine.absent or engine.absent not in sent(served.requests[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_config_asks_for_what_the_query_says(served: Service, name: str) -> None:
    engine = ENGINES[name]
    served.answer = replies(Reply(engine.answer))
    retriever = built(name, served)
    filters = retriever.capabilities.filters
    asked = parse_filter({"tenant": "a b"}) if filters else None
    retriever.search(Query("q", TEXT, filter=asked), 2)
    retriever.close()
    (request,) = served.requests
    body = request.content.decode()
    for part in engine.asked:
        assert part in body
    config = load_retriever_config(name)
    if "encoder" not in config.params:
        assert json.dumps(TEXT)[1:-1] in body or quote(TEXT, safe="") in request.path
    assert not engine.path or request.path == engine.path
    for header, value in engine.headers.items():
        assert request.headers[header] == value
    assert filters or name in ("http-weaviate", "http-vespa")


@pytest.mark.parametrize("name", NAMES)
def test_a_config_is_short_and_says_whether_it_was_tested(name: str) -> None:
    text = (packaged_configs() / "retrievers" / f"{name}.yaml").read_text("utf-8")
    counted = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert len(counted) <= 10
    config = load_retriever_config(name)
    assert config.description.endswith("not tested on an engine") is (name != "http-chroma")
