"""Answers that say of themselves that they are not whole, as each engine says it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import bench
from retrieval_bench.core.calls.failures import Kind, TransientError
from retrieval_bench.core.config import inline_config
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.types import Query
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_retrievers.http.http import HTTP
from retrieval_bench_retrievers.http.partial import SIGNS
from tests.builders.files import beir
from tests.builders.service import Reply, Request, Service, replies, service

Asking = Callable[..., HTTP]
QUERY = Query("q", "stone")
QUICK = Protocol(rounds=2, warm_up_s=0.0)
NO_WAIT = {"times": 0}


def lucene(**more: Any) -> dict[str, Any]:
    """An answer of ``_search``, whole unless ``more`` says something else."""
    shards = {"total": 5, "successful": 5, "skipped": 0, "failed": 0}
    clusters = {"total": 3, "successful": 3, "skipped": 0, "running": 0, "partial": 0, "failed": 0}
    found = {"hits": [{"_id": "d1", "_score": 2.0}]}
    whole = {"took": 1, "timed_out": False, "_shards": shards, "_clusters": clusters, "hits": found}
    return whole | more


def shards(failed: int) -> dict[str, int]:
    return {"total": 5, "successful": 5 - failed, "skipped": 0, "failed": failed}


def clusters(**more: int) -> dict[str, int]:
    return {"total": 3, "successful": 2, "skipped": 0, "partial": 0, "failed": 0} | more


def solr(**header: Any) -> dict[str, Any]:
    docs = [{"id": "d1", "score": 2.0}]
    return {"responseHeader": {"status": 0, "QTime": 1} | header, "response": {"docs": docs}}


def vespa(coverage: dict[str, Any], **more: Any) -> dict[str, Any]:
    full = {"coverage": 100, "documents": 9, "full": True, "nodes": 2}
    children = [{"fields": {"doc_id": "d1"}, "relevance": 2.0}]
    return {"root": {"id": "toplevel", "coverage": full | coverage, "children": children} | more}


def weaviate(**more: Any) -> dict[str, Any]:
    return {"data": {"Get": {"Article": [{"docId": "d1"}]}}} | more


def typesense(**more: Any) -> dict[str, Any]:
    return {"found": 1, "search_cutoff": False, "hits": [{"document": {"id": "d1"}}]} | more


def azure(**more: Any) -> dict[str, Any]:
    return {"value": [{"id": "d1", "@search.score": 2.0}], **more}


def meilisearch(**more: Any) -> dict[str, Any]:
    return {"hits": [{"id": "d1"}], "processingTimeMs": 1} | more


def couchbase(**status: int) -> dict[str, Any]:
    status = {"total": 6, "failed": 0, "successful": 6} | status
    return {"status": status, "hits": [{"id": "d1", "score": 2.0}]}


LUCENE = {"hits": "hits.hits", "id": "_id"}
VESPA = {"hits": "root.children || `[]`", "id": "fields.doc_id"}
SOLR = {"hits": "response.docs", "id": "id"}
PLAIN = {"hits": "hits", "id": "id"}
TYPESENSE = {"hits": "hits", "id": "document.id"}
SLOW = {"adaptive-timeout": False, "match-phase": False, "non-ideal-state": False, "timeout": True}

PARTIAL: list[tuple[dict[str, str], Any, str]] = [
    (LUCENE, lucene(_shards=shards(2)), "2 of 5 shards failed"),
    (LUCENE, lucene(_shards={"failed": 1}), "1 of ? shards failed"),
    (LUCENE, lucene(timed_out=True), "timed_out: true"),
    (LUCENE, lucene(terminated_early=True), "terminated_early: true"),
    (LUCENE, lucene(_clusters=clusters(skipped=1)), "1 of 3 clusters were skipped"),
    (LUCENE, lucene(_clusters=clusters(partial=1)), "1 of 3 clusters answered in part"),
    (LUCENE, lucene(_clusters=clusters(failed=1)), "1 of 3 clusters failed"),
    (
        {"hits": "response.hits.hits", "id": "_id"},
        {"is_partial": True, "is_running": True, "response": lucene()},
        "is_partial: true",
    ),
    (SOLR, solr(partialResults=True), "responseHeader.partialResults: true"),
    (SOLR, solr(partialResults="omitted"), 'responseHeader.partialResults: "omitted"'),
    (VESPA, vespa({"coverage": 99, "full": False, "degraded": SLOW}), "coverage is 99 %"),
    (VESPA, vespa({"full": False}), "coverage is not full"),
    (VESPA, vespa({"degraded": SLOW}), '"timeout": true'),
    (VESPA, vespa({}, errors=[{"code": 12, "summary": "Timed out"}]), "Timed out"),
    (
        {"hits": "data.Get.Article", "id": "docId"},
        weaviate(errors=[{"message": "shard 2 is read-only"}]),
        "shard 2 is read-only",
    ),
    (TYPESENSE, typesense(search_cutoff=True), "search_cutoff: true"),
    (PLAIN, meilisearch(remoteErrors={"ms-1": {"code": "proxy_timeout"}}), "proxy_timeout"),
    ({"hits": "value", "id": "id"}, azure(**{"@search.coverage": 80.5}), "@search.coverage: 80.5"),
    (
        {"hits": "value", "id": "id"},
        azure(**{"@search.semanticPartialResponseReason": "capacityOverloaded"}),
        "capacityOverloaded",
    ),
    (PLAIN, couchbase(failed=3), "3 of 6 partitions failed"),
    # asked for together with others
    (
        {"hits": "responses[0].hits.hits", "id": "_id"},
        {"took": 1, "responses": [lucene(_shards=shards(4))]},
        "4 of 5 shards failed",
    ),
    (
        {"hits": "results[0].hits", "id": "document.id"},
        {"results": [typesense(search_cutoff=True)]},
        "search_cutoff: true",
    ),
    (
        {"hits": "response.hits.hits", "id": "_id"},
        {"is_partial": False, "response": lucene(timed_out=True)},
        "timed_out: true",
    ),
]

WHOLE: list[tuple[dict[str, str], Any]] = [
    (LUCENE, lucene()),
    (LUCENE, lucene(_shards=shards(0) | {"skipped": 4}, terminated_early=False)),
    (LUCENE, lucene(_shards=None, _clusters=[], timed_out=None)),
    (SOLR, solr()),
    (SOLR, solr(partialResults=False)),
    (VESPA, vespa({})),
    (VESPA, vespa({"degraded": dict.fromkeys(SLOW, False)})),
    (VESPA, {"root": {"id": "toplevel", "fields": {"totalCount": 0}}}),
    ({"hits": "data.Get.Article", "id": "docId"}, weaviate(errors=[])),
    ({"hits": "data.Get.Article", "id": "docId"}, weaviate(errors=None)),
    (TYPESENSE, typesense()),
    (PLAIN, meilisearch(remoteErrors={})),
    ({"hits": "value", "id": "id"}, azure(**{"@search.coverage": 100.0})),
    (PLAIN, couchbase()),
    # a document, not the answer, has such keys
    ({"hits": "results", "id": "id"}, {"results": [{"id": "d1", "timed_out": True}]}),
    (PLAIN, {"hits": [{"id": "d1", "_shards": shards(2)}]}),
    ({"hits": "@", "id": "id"}, [{"id": "d1", "errors": ["x"]}]),
]


@pytest.fixture
def served() -> Iterator[Service]:
    with service(replies(Reply())) as running:
        yield running


@pytest.fixture
def asking(served: Service) -> Iterator[Asking]:
    """Makes retrievers that get one answer, whatever they ask."""
    made: list[HTTP] = []

    def make(answer: Any, **params: Any) -> HTTP:
        served.answer = replies(Reply(answer))
        retriever = construct("http", {"url": f"{served.url}/s?q={{text}}", **params})
        assert isinstance(retriever, HTTP)
        made.append(retriever)
        return retriever

    yield make
    for retriever in made:
        retriever.close()


@pytest.mark.parametrize(("read", "answer", "says"), PARTIAL)
def test_a_partial_answer_fails_in_the_words_of_its_engine(
    asking: Asking, read: dict[str, str], answer: Any, says: str
) -> None:
    retriever = asking(answer, **read)
    with pytest.raises(TransientError) as caught:
        retriever.search(QUERY, 1)
    assert "in part" in str(caught.value)
    assert says in str(caught.value)
    assert caught.value.kind is Kind.PARTIAL


@pytest.mark.parametrize(("read", "answer", "says"), PARTIAL)
def test_or_is_accepted_told_and_counted(
    asking: Asking, read: dict[str, str], answer: Any, says: str
) -> None:
    retriever = asking(answer, partial="accept", **read)
    assert list(retriever.search(QUERY, 1).doc_ids) == ["d1"]
    assert len(retriever.search(QUERY, 1)) == 1
    (told,) = retriever.health([QUERY])
    assert isinstance(told, Notice)
    assert told.code is Code.PARTIAL
    assert "2 of 2 answers" in told
    assert says in told
    assert retriever.describe()["partial_answers"] == 2


@pytest.mark.parametrize(("read", "answer"), WHOLE)
def test_a_whole_answer_is_none(asking: Asking, read: dict[str, str], answer: Any) -> None:
    retriever = asking(answer, **read)
    retriever.search(QUERY, 1)
    assert not [text for text in retriever.health([QUERY]) if "partial" in text]
    assert "partial_answers" not in retriever.describe()


def test_each_sign_has_an_answer_here() -> None:
    texts = [json.dumps(answer) for _, answer, _ in PARTIAL]
    assert all(any(f'"{sign.path[-1]}"' in text for text in texts) for sign in SIGNS)


def test_a_vespa_without_hits_but_with_an_error_has_not_found_nothing(asking: Asking) -> None:
    answer = {"root": {"errors": [{"code": 12, "summary": "Timed out"}]}}
    with pytest.raises(TransientError, match="Timed out"):
        asking(answer, **VESPA).search(QUERY, 1)
    with pytest.raises(TransientError, match="Timed out"):
        asking(answer, **VESPA | {"hits": "root.children"}).search(QUERY, 1)


def test_nothing_secret_of_the_request_is_quoted(
    served: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "key-of-mine")
    served.answer = replies(Reply(weaviate(errors=[{"message": "no rights for key-of-mine"}])))
    params = {"url": f"{served.url}/s?q={{text}}", "headers": {"X-Api-Key": "${KEY}"}}
    read = {"hits": "data.Get.Article", "id": "docId"}
    retriever = inline_config({"target": "http", "params": params | read}).build()
    with pytest.raises(TransientError) as caught:
        retriever.search(QUERY, 1)
    retriever.close()
    assert "no rights for" in str(caught.value)
    assert "key-of-mine" not in str(caught.value)


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"partial = 'ignore'[\s\S]*fail or accept"):
        HTTP(url="http://localhost:1/s?q={text}", partial="ignore", hits="hits", id="id")


@pytest.mark.parametrize("read", [LUCENE | {"score": "_score"}, {"ids": "a", "scores": "b"}])
def test_a_score_that_is_null_may_be_left_out(asking: Asking, read: dict[str, str]) -> None:
    answer = lucene(hits={"hits": [{"_id": "d1", "_score": None}]}, a=["d1"], b=[None])
    with pytest.raises(Exception, match=r"found nothing at rank 1[\s\S]*or leave it out"):
        asking(answer, **read).search(QUERY, 1)


def _dataset(folder: Path) -> None:
    documents = {f"d{at}": f"word{at}" for at in range(1, 5)}
    queries = {f"q{at}": f"word{at}" for at in range(1, 5)}
    beir(folder, documents, queries, [(f"q{at}", f"d{at}", 1) for at in range(1, 5)])


def _finding(failed: Callable[[int], int]) -> Callable[[Request], Reply]:
    """Finds the document of each query; so many shards fail at its n-th time, from 0."""
    times: dict[str, int] = {}

    def answer(request: Request) -> Reply:
        word = request.path.rpartition("=")[2]
        times[word] = n = times.get(word, -1) + 1
        found = {"hits": [{"_id": word.replace("word", "d")}]}
        broken = failed(n) if word == "word1" else 0
        return Reply(lucene(_shards=shards(broken), hits=found))

    return answer


def _config(served: Service, **more: Any) -> dict[str, Any]:
    params = {"url": f"{served.url}/s?q={{text}}", **LUCENE, **more}
    return {"target": "http", "params": params, "retry": NO_WAIT}


def _codes(texts: list[str]) -> list[Code]:
    return [text.code for text in texts if isinstance(text, Notice)]


def test_a_run_counts_it_as_a_failed_query(served: Service, tmp_path: Path) -> None:
    _dataset(tmp_path)
    served.answer = _finding(lambda _n: 2)
    run = bench(_config(served), tmp_path, k=1, protocol=QUICK).run
    summary = run.summary.as_dict()
    assert summary["n_failed"] == 1
    assert summary["metrics"]["nDCG@1"]["mean"] == 0.75
    assert summary["attempts"]["failed"] == {"partial": 1}
    assert {Code.FAILED, Code.PARTIAL} <= set(_codes(summary["warnings"]))
    (status,) = [one for one in run.status if one != "ok"]
    assert "the service answered in part: 2 of 5 shards failed" in status
    asked = sum("word1" in request.path for request in served.requests)
    assert run.manifest["retriever"]["facts"]["partial_answers"] == asked


def test_a_run_takes_it_where_it_is_accepted(served: Service, tmp_path: Path) -> None:
    _dataset(tmp_path)
    served.answer = _finding(lambda _n: 2)
    run = bench(_config(served, partial="accept"), tmp_path, k=1, protocol=QUICK).run
    assert run.summary.n_failed == 0
    assert run.summary.metrics["nDCG@1"].mean == 1.0
    assert _codes(run.summary.warnings).count(Code.PARTIAL) == 1
    assert Code.FAILED not in _codes(run.summary.warnings)


def test_one_that_was_whole_when_asked_again_costs_no_quality(
    served: Service, tmp_path: Path
) -> None:
    _dataset(tmp_path)
    served.answer = _finding(lambda n: int(n == 0))
    config = {**_config(served), "retry": {"times": 2}}
    summary = bench(config, tmp_path, k=1, protocol=QUICK).run.summary.as_dict()
    assert summary["n_failed"] == 0
    assert summary["metrics"]["nDCG@1"]["mean"] == 1.0
    assert summary["attempts"]["failed"] == {"partial": 1}
    assert summary["attempts"]["recovered"] == 1
    assert Code.PARTIAL in _codes(summary["warnings"])


@pytest.mark.needs("retrieval_bench_doctor")
@pytest.mark.slow
def test_doctor_says_it(served: Service, tmp_path: Path) -> None:
    from retrieval_bench_doctor.doctor import doctor

    _dataset(tmp_path)
    for word in ("fail", "accept"):
        served.answer = _finding(lambda _n: 2)
        found = doctor(_config(served, partial=word), tmp_path)
        (check,) = [check for check in found.checks if check.subject == "retriever"]
        assert Code.PARTIAL in _codes(list(check.warnings))
