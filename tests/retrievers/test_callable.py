"""A Python function as a retriever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, ContractError, PluginError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Message, Query, Ranking
from retrieval_bench_retrievers.functions.callable import CallableRetriever

UNDECLARED: list[tuple[Any, str]] = [
    (False, "a value of type bool"),
    ({}, "a value of type dict"),
    ({"idx": "a", "count": 3}, "unknown key 'idx'"),
    ({"count": "many"}, "a count that is no whole number"),
]
QUERY = Query("7", "물은 왜 얼까?", messages=(Message("user", "물은 왜 얼까?"),))


def _nothing(query: str, k: int) -> list[str]:
    return []


async def _async(query: str, k: int) -> list[str]:
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


@pytest.mark.parametrize(
    "answer",
    [
        np.array([100, 101]),
        [100, 101],
        [(np.int64(100), np.float32(2.0)), (np.uint8(101), 1.5)],
        [{"id": 100}, {"id": "101"}],
        np.array(["100", "101"]),
    ],
)
def test_ids_that_are_whole_numbers_become_text(answer: Any) -> None:
    """K5: those of numpy, too, as a FAISS index gives them."""
    ids = _answering(answer).search(QUERY, 2).doc_ids
    assert ids == ["100", "101"]
    assert set(map(type, ids)) == {str}


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
        ([True, False], "returned True at rank 1", "change what"),
        ([("a", 1.0), (2.0, 0.5)], "returned the id 2.0 at rank 2", "convert ids with int()"),
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
    assert "a list of document ids, or of (id, score) pairs, or of {id, score} mappings" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        ([{"id": "b", "score": 2}, {"id": "a", "score": "1.5", "text": "x"}], [2.0, 1.5]),
        ([{"id": "b"}, {"id": "a", "title": "x"}], None),
    ],
)
def test_hits_may_be_mappings_of_id_and_score(
    hits: list[dict[str, Any]], expected: list[float] | None
) -> None:
    ranking = checked_ranking(_answering(hits).search(QUERY, 2), 2)
    assert list(ranking.doc_ids) == ["b", "a"]
    assert (None if ranking.scores is None else list(ranking.scores)) == expected


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        ([{"_id": "a"}], "a mapping with the keys _id at rank 1"),
        ([{}], "a mapping with the keys none at rank 1"),
        ([{"id": "a", "score": 1}, {"id": "b"}], "a mapping with the keys id at rank 2"),
        ([{"id": "a"}, {"id": "b", "score": 1}], "a mapping with the keys id, score at rank 2"),
        ([{"id": "a"}, "b"], "'b' at rank 2"),
        ([("a", 1.0), {"id": "b"}], "('a', 1.0) at rank 1"),
        ([{"id": 7.0}], "the id 7.0 at rank 1"),
        ([{"id": "a", "score": None}], "returned ('a', None) at rank 1"),
    ],
)
def test_mappings_must_be_alike_and_have_an_id(hits: list[Any], message: str) -> None:
    with pytest.raises(ContractError) as caught:
        _answering(hits).search(QUERY, 3)
    assert message in str(caught.value)


class TestParameters:
    def test_they_are_handed_on_by_keyword(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(
            "def find(query, k, *, index, boost=1):\n    return [f'{index}{boost}'][:k]\n",
            encoding="utf-8",
        )
        params = {"function": f"{tmp_path / 'mine.py'}:find", "index": "a", "boost": 2}
        assert construct("callable", params).search(QUERY, 2).doc_ids == ["a2"]  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("function", "params", "message"),
        [
            (lambda query, k, boost=1: [], {"bost": 2}, "did you mean boost"),
            (_nothing, {"boost": 2}, "unexpected keyword argument 'boost'"),
            (_nothing, {"k": 5}, "leave k out"),
            (_nothing, {"pass_qery": True}, "did you mean pass_query"),
            (lambda query, k, external=1: [], {}, "which would never reach it"),
            (_nothing, {"pass_filter": True}, "unexpected keyword argument 'filter'"),
            (
                lambda query, k, filter: [],
                {"pass_filter": True, "filter": {}},
                "leave one of the two out",
            ),
            (lambda query: [], {}, "cannot be called as function(query, k): too many"),
            (lambda query, k, tenant: [], {}, "missing a required argument: 'tenant'"),
            (42, {}, "is int, not a function"),
            *((_nothing, {"external": given}, told) for given, told in UNDECLARED),
        ],
    )
    def test_they_are_checked_before_any_search(
        self, function: Callable[..., Any], params: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            CallableRetriever(function, **params)
        assert message in str(caught.value)


class TestFilters:
    FILTERED = replace(QUERY, filter=parse_filter({"tenant": "a"}))

    def test_the_filter_is_handed_over_as_written_or_none(self) -> None:
        seen: list[Any] = []

        def find(query: str, k: int, *, filter: Any) -> list[str]:
            seen.append(filter)
            return []

        retriever = CallableRetriever(find, pass_filter=True)
        assert retriever.capabilities.filters
        retriever.search(self.FILTERED, 2)
        retriever.search(QUERY, 2)
        assert seen == [{"tenant": "a"}, None]
        assert json.dumps(seen[0])

    def test_the_whole_query_has_it_too(self) -> None:
        def find(query: Query, k: int) -> list[str]:
            return [] if query.filter is None else list(query.filter.fields)

        retriever = CallableRetriever(find, pass_query=True)
        assert retriever.capabilities.filters
        assert retriever.search(self.FILTERED, 2).doc_ids == ["tenant"]

    def test_a_function_that_gets_the_text_alone_does_not_filter(self) -> None:
        assert not CallableRetriever(_nothing).capabilities.filters


class TestAsync:
    def test_all_searches_run_on_one_loop_which_is_closed_at_the_end(self) -> None:
        loops: list[asyncio.AbstractEventLoop] = []

        async def find(query: str, k: int, wait: float) -> list[str]:
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(wait)
            return ["a", "b"][:k]

        retriever = CallableRetriever(find, wait=0.002)
        for k in (1, 2, 1):
            ranking = retriever.search(QUERY, k)
            assert ranking.doc_ids == ["a", "b"][:k]
            assert ranking.stages["function"] > 1_500_000
            assert set(ranking.stages) == {"function", "wrapper"}
        assert len(set(map(id, loops))) == 1
        retriever.close()
        assert loops[0].is_closed()

    def test_an_awaitable_that_a_function_returns_is_awaited(self) -> None:
        class Service:
            def __init__(self) -> None:
                self.held: dict[str, list[str]] = {}

            def __call__(self, query: str, k: int) -> Any:
                return self.held[query] if query in self.held else self.fetch(query)

            async def fetch(self, query: str) -> list[str]:
                self.held[query] = ["a"]
                return ["a"]

        retriever = CallableRetriever(Service())
        assert [list(retriever.search(QUERY, 2).doc_ids) for _ in range(3)] == [["a"]] * 3
        retriever.close()

    def test_it_works_where_a_loop_runs_already(self) -> None:
        retriever = CallableRetriever(_async)

        async def in_a_notebook() -> None:
            assert len(retriever.search(QUERY, 1)) == 0
            retriever.close()

        asyncio.run(in_a_notebook())

    def test_what_it_raises_is_passed_through(self) -> None:
        async def broken(query: str, k: int) -> list[str]:
            raise ConnectionError("service is down")

        retriever = CallableRetriever(broken)
        with pytest.raises(ConnectionError, match="service is down"):
            retriever.search(QUERY, 1)
        retriever.close()


class TestHealth:
    def test_a_warning_says_when_every_search_found_nothing(self) -> None:
        retriever = CallableRetriever(_nothing)
        assert retriever.health([]) == []
        retriever.search(QUERY, 3)
        (warning,) = retriever.health([])
        assert warning == f"every search found nothing: does {__name__}:_nothing hold an index?"

    def test_a_warning_says_when_every_search_got_fewer_hits_than_asked_for(self) -> None:
        retriever = _answering(["a", "b"])
        retriever.search(QUERY, 3)
        (warning,) = retriever.health([])
        assert "(at most 2 of 3)" in warning
        assert warning.endswith("may not hand k on, its second argument")
        retriever.search(QUERY, 2)
        assert retriever.health([]) == []

    def test_fewer_are_no_fault_where_there_are_no_more_or_a_filter_leaves_few(self) -> None:
        small = CallableRetriever(lambda query, k: ["a"], external={"count": 1})
        small.search(QUERY, 3)
        assert small.health([]) == []
        filtered = CallableRetriever(lambda query, k: ["a"], pass_query=True)
        filtered.search(TestFilters.FILTERED, 3)
        assert filtered.health([]) == []


def test_what_the_function_raises_is_passed_through() -> None:
    def broken(query: str, k: int) -> list[str]:
        raise ConnectionError("service is down")

    with pytest.raises(ConnectionError, match="service is down"):
        CallableRetriever(broken).search(QUERY, 2)


def test_a_function_that_does_not_exist_is_an_error_before_any_search() -> None:
    with pytest.raises(PluginError, match="no 'dump_all' in json"):
        CallableRetriever("json:dump_all")


def test_its_index_is_external_and_may_be_declared() -> None:
    declared = {"index": "articles", "version": "3", "count": 10}
    retriever = CallableRetriever(_nothing, external=declared)
    assert retriever.capabilities.external
    assert retriever.describe() == {"function": f"{__name__}:_nothing", "external": declared}
