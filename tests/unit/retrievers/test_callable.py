"""A Python function as a retriever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, ContractError, PluginError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Message, Query, Ranking
from retrieval_bench_retrievers.callable import CallableRetriever

QUERY = Query("7", "물은 왜 얼까?", messages=(Message("user", "물은 왜 얼까?"),))


def _nothing(query: str, k: int) -> list[str]:
    return []


def _answering(answer: Any) -> CallableRetriever:
    def function(query: str, k: int) -> Any:
        return answer

    return CallableRetriever(function)


def test_the_function_gets_text_and_k_and_may_return_ids(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def find(query, k, suffix='!'):\n    return [f'{query}{suffix}{i}' for i in range(k)]\n",
        encoding="utf-8",
    )
    retriever = construct("callable", {"function": f"{tmp_path / 'mine.py'}:find"})
    ranking = checked_ranking(retriever.search(QUERY, 2), 2)
    assert list(ranking.doc_ids) == ["물은 왜 얼까?!0", "물은 왜 얼까?!1"]
    assert ranking.scores is None


@pytest.mark.parametrize(
    "answer",
    [
        [("a", 2), ("b", 1.5)],
        (("a", 2), ["b", "1.5"]),
        iter([("a", 2.0), ("b", 1.5)]),
        Ranking(["a", "b"], [2, 1.5]),
    ],
)
def test_pairs_in_any_sequence_are_a_ranking_with_scores(answer: Any) -> None:
    assert list(_answering(answer).search(QUERY, 2)) == [("a", 2.0), ("b", 1.5)]


@pytest.mark.parametrize("answer", [[], (), iter([])])
def test_no_hits_are_an_empty_ranking(answer: Any) -> None:
    assert len(_answering(answer).search(QUERY, 2)) == 0


def test_the_whole_query_is_handed_over_on_request() -> None:
    def by_id(query: Query, k: int) -> list[str]:
        return [query.id, query.messages[0].role]

    assert CallableRetriever(by_id, pass_query=True).search(QUERY, 2).doc_ids == ["7", "user"]


@pytest.mark.parametrize(
    ("answer", "message", "fix"),
    [
        (None, "returned NoneType", "change what the function returns"),
        ("abc", "returned str", "in a list"),
        ({"a": 1.0}, "returned dict", "sorted(hits.items()"),
        ({"a", "b"}, "returned set", "change what"),
        ([1, 2], "returned 1 at rank 1", "convert ids with str()"),
        ([("a", 1.0), (2, 0.5)], "returned the id 2 at rank 2", "convert ids with str()"),
        ([("a", 2.0), "a1"], "returned 'a1' at rank 2", "either ids alone or pairs alone"),
        ([("a", None)], "returned ('a', None) at rank 1", "change what"),
        ([("a", 1.0, 2)], "returned ('a', 1.0, 2) at rank 1", "change what"),
    ],
)
def test_another_answer_is_an_error_that_names_it(answer: Any, message: str, fix: str) -> None:
    with pytest.raises(ContractError) as caught:
        _answering(answer).search(QUERY, 2)
    assert message in str(caught.value)
    assert fix in str(caught.value)
    assert "a list of document ids, or of (id, score) pairs" in str(caught.value)


def test_a_coroutine_is_an_error_and_not_left_unawaited() -> None:
    class Service:
        async def __call__(self, query: str, k: int) -> list[str]:
            return []

    with pytest.raises(ContractError, match="returned coroutine"):
        CallableRetriever(Service()).search(QUERY, 2)


def test_what_the_function_raises_is_passed_through() -> None:
    def broken(query: str, k: int) -> list[str]:
        raise ConnectionError("service is down")

    with pytest.raises(ConnectionError, match="service is down"):
        CallableRetriever(broken).search(QUERY, 2)


def test_k_below_one_is_an_error() -> None:
    with pytest.raises(ContractError, match="k = 0"):
        _answering([]).search(QUERY, 0)


async def _async(query: str, k: int) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda query: [], "cannot be called as function(query, k): too many"),
        (lambda query, k, tenant: [], "missing a required argument: 'tenant'"),
        (_async, "is async"),
        (42, "is int, not a function"),
    ],
)
def test_what_cannot_be_called_with_query_and_k_is_an_error_before_any_search(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        CallableRetriever(function)
    assert message in str(caught.value)


def test_a_function_that_does_not_exist_is_an_error_before_any_search() -> None:
    with pytest.raises(PluginError, match="no 'dump_all' in json"):
        CallableRetriever("json:dump_all")


def test_its_index_is_external_and_may_be_declared() -> None:
    declared = {"index": "articles", "version": "3", "count": 10}
    retriever = CallableRetriever(_nothing, external=declared)
    assert retriever.capabilities.external
    assert retriever.describe() == {"function": f"{__name__}:_nothing", "external": declared}


@pytest.mark.parametrize(
    ("external", "message"),
    [
        (False, "a value of type bool"),
        ({}, "a value of type dict"),
        ({"idx": "a", "count": 3}, "unknown key 'idx'"),
        ({"count": "many"}, "a count that is no whole number"),
    ],
)
def test_another_declaration_is_an_error(external: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CallableRetriever(_nothing, external=external)
