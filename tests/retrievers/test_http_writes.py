"""Writing to a service over HTTP: what is sent, what is an acknowledgement, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from retrieval_bench.core.calls.failures import CallError, TransientError
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.types import Document, Query
from tests.builders.service import Reply, Service, replies, service
from tests.builders.writable_store import Store

WRITE: dict[str, Any] = {
    "into": "notes",
    "add": {
        "method": "PUT",
        "url": "{url}/notes/{document.id}",
        "body": {"text": "{document.text}"},
    },
    "delete": {"url": "{url}/notes/{document.id}"},
}
SEARCH: dict[str, Any] = {"body": {"text": "{text}", "k": "{k}"}, "hits": "hits", "id": "id"}


@pytest.fixture
def served() -> Iterator[Service]:
    with service(Store()) as running:
        yield running


def writing(served: Service, write: Any = WRITE, **params: Any) -> Any:
    def there(raw: Any) -> Any:
        if isinstance(raw, dict):
            return {key: there(value) for key, value in raw.items()}
        return raw.replace("{url}", served.url) if isinstance(raw, str) else raw

    return construct(
        "http", {"url": f"{served.url}/search", **SEARCH, "write": there(write), **params}
    )


def test_what_is_added_is_found_and_what_is_deleted_is_not(served: Service) -> None:
    retriever = writing(served)
    assert retriever.capabilities.writes
    assert retriever.collection() == "notes"
    retriever.add([Document("물/1", 'say "no"', title="On tides"), Document("2", "the moon")])
    assert list(retriever.search(Query("q", "tides"), 5).doc_ids) == ["물/1"]
    first = served.requests[0]
    assert (first.method, first.path) == ("PUT", "/notes/%EB%AC%BC%2F1")
    assert first.body == {"text": 'On tides say "no"'}
    retriever.delete(["물/1"])
    assert served.requests[-1].method == "DELETE"
    assert list(retriever.search(Query("q", "tides"), 5).doc_ids) == []
    retriever.close()


def test_deleting_what_is_not_there_is_no_error(served: Service) -> None:
    retriever = writing(served)
    retriever.delete(["nothing"])
    retriever.close()


@pytest.mark.parametrize(("status", "problem"), [(503, TransientError), (400, CallError)])
def test_only_a_2xx_acknowledges_a_write(
    served: Service, status: int, problem: type[Exception]
) -> None:
    retriever = writing(served)
    served.answer = replies(Reply({}, status))
    with pytest.raises(problem, match=f"answered {status}"):
        retriever.add([Document("1", "a")])
    with pytest.raises(problem, match=f"answered {status}"):
        retriever.delete(["1"])
    retriever.close()


def test_a_404_acknowledges_no_added_document(served: Service) -> None:
    retriever = writing(served)
    served.answer = replies(Reply({}, 404))
    with pytest.raises(CallError, match="answered 404"):
        retriever.add([Document("1", "a")])
    retriever.close()


def test_writes_have_the_headers_of_the_search_unless_they_have_their_own(served: Service) -> None:
    own = {**WRITE, "delete": {**WRITE["delete"], "headers": {"x-team": "b"}}}
    retriever = writing(served, own, headers={"x-team": "a"})
    retriever.add([Document("1", "a")])
    retriever.delete(["1"])
    assert [request.headers["x-team"] for request in served.requests] == ["a", "b"]
    retriever.close()


def test_a_body_makes_deleting_a_post(served: Service) -> None:
    body = {"url": "{url}/notes/_delete", "body": {"ids": ["{document.id}"]}}
    retriever = writing(served, {**WRITE, "delete": body})
    served.answer = replies(Reply({}))
    retriever.delete(["7"])
    assert (served.requests[0].method, served.requests[0].body) == ("POST", {"ids": ["7"]})
    retriever.close()


def test_a_target_without_write_writes_nothing(served: Service) -> None:
    retriever = construct("http", {"url": served.url, **SEARCH})
    assert not retriever.capabilities.writes
    assert retriever.collection() == ""
    with pytest.raises(ConfigError, match="no `write`"):
        retriever.add([Document("1", "a")])
    retriever.close()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"into": None}, "write without into"),
        ({"insert": {}}, "unknown key 'insert'"),
        ({"add": "http://localhost/notes"}, "add is no request"),
        ({"add": {"url": "{url}/notes", "json": {}}}, "unknown key add.json"),
        ({"add": {"url": "{url}/notes/{document.id}"}}, "add has no place for the document"),
        ({"add": {"url": "{url}/notes", "body": "{document.text}"}}, "add has no place"),
        ({"delete": {"url": "{url}/notes/{document.text}"}}, "delete has {document.text}"),
        ({"delete": {"url": "{url}/notes/{text}"}}, "delete has {text}"),
        ({"delete": {"url": "{url}/others/{document.id}"}}, "which the request `delete` does not"),
        (
            {"add": {"url": "{url}/notes/{document.id}", "body": {"v": "{embedding}"}}},
            "{embedding} without encoder",
        ),
    ],
)
def test_a_write_that_does_not_fit_is_refused(
    served: Service, changed: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        writing(served, {**WRITE, **changed})
    assert told in str(refused.value)
    assert refused.value.accepted
    assert not served.requests


def test_a_search_has_no_place_for_a_document(served: Service) -> None:
    with pytest.raises(ConfigError, match=r"\{document.id\} in url, headers or body"):
        construct("http", {"url": f"{served.url}/{{document.id}}", **SEARCH})


@pytest.mark.dense
@pytest.mark.slow
def test_the_vector_of_a_document_is_made_by_the_encoder(served: Service) -> None:
    add = {**WRITE["add"], "body": {"text": "{document.text}", "vector": "{embedding}"}}
    retriever = writing(
        served,
        {**WRITE, "add": add},
        body={"text": "{text}", "k": "{k}", "vector": "{embedding}"},
        encoder={"model": "all-MiniLM-L6-v2"},
    )
    retriever.add([Document("1", "the moon")])
    vector = served.requests[0].body["vector"]
    assert len(vector) == 384
    assert sum(value * value for value in vector) == pytest.approx(1.0, abs=1e-3)
    retriever.close()
