"""Sequences of LangChain through the adapter: what their steps did, took and used up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable, RunnableLambda

from retrieval_bench import bench
from retrieval_bench.core.types import Dataset, Document, Query, Usage
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.run import Run
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from retrieval_bench_retrievers.libraries.langchain import LangChainRetriever
from tests.builders.scripted import Scripted

ONCE = Protocol(rounds=1, warm_up_s=0)
DOCUMENTS = [Document(i, f"text of {i}") for i in "abc"]
QUERY = Query("1", "apples")
USED = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}


def data() -> Dataset:
    queries = [QUERY, Query("2", "nothing")]
    return build_dataset("tiny", DOCUMENTS, queries, {q.id: {"c": 1} for q in queries})


def named(name: str, function: Callable[..., Any]) -> Runnable[Any, Any]:
    return RunnableLambda(function).with_config(run_name=name)


def model(answer: str = "pears", **about: Any) -> Runnable[Any, Any]:
    told = {"usage_metadata": USED, **about}
    messages = (AIMessage(answer, **told) for _ in range(1_000))
    return GenericFakeChatModel(messages=messages).with_config(run_name="rewrite")


def find(documents: Sequence[LangChainDocument]) -> Runnable[Any, Any]:
    return named("find", lambda text: [] if text == "nothing" else list(documents))


def ranking_chain(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
    return find(documents) | named("rank", lambda found: found[::-1][:2])


def rewriting_chain(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
    return model() | StrOutputParser() | ranking_chain(documents, k)


def indexed(factory: Callable[..., Any], **params: Any) -> LangChainRetriever:
    retriever = LangChainRetriever(factory, **params)
    retriever.index(DOCUMENTS)
    return retriever


def measured(factory: Callable[..., Any], **config: Any) -> Run:
    given = {"target": "langchain", "params": {"factory": factory}, **config}
    return bench(given, data(), k=3, protocol=ONCE).run


def without(run: Run, part: str) -> list[list[str]]:
    ids = run.rankings.doc_ids
    return [[ids[at] for at in row if at >= 0] for row in run.rankings.without[part].tolist()]


def test_steps_are_told_by_their_run_names() -> None:
    found = indexed(rewriting_chain).search(QUERY, 3)
    assert list(found.doc_ids) == ["c", "b"]
    assert list(found.steps) == ["rewrite", "StrOutputParser", "find", "rank"]
    assert found.steps["rewrite"].texts == found.steps["StrOutputParser"].texts == ["pears"]
    assert found.steps["find"].doc_ids == ["a", "b", "c"]
    assert found.steps["rank"].doc_ids == ["c", "b"]
    times = [found.stages[f"step:{name}"] for name in found.steps]
    assert all(ns > 0 for ns in times)
    assert sum(times) <= found.stages["langchain"]


def test_a_step_that_gives_something_else_has_a_time_and_no_list() -> None:
    def factory(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
        return named("words", lambda text: {"words": text.split()}) | find(documents)

    found = indexed(factory).search(QUERY, 3)
    assert list(found.steps) == ["find"]
    assert {"step:words", "step:find"} <= set(found.stages)


def test_names_are_told_apart_and_hold_nothing_that_paths_are_made_of() -> None:
    def factory(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
        return (
            named("a/b:c", lambda text: text) | named("a/b:c", lambda text: text) | find(documents)
        )

    assert list(indexed(factory).search(QUERY, 3).steps) == ["a_b_c", "a_b_c#2", "find"]


@pytest.mark.slow
def test_steps_without_a_name_of_their_own_are_counted() -> None:
    def factory(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
        plain: Runnable[Any, Any] = RunnableLambda(lambda text: text)
        return plain | find(documents) | RunnableLambda(lambda found: found)

    run = measured(factory)
    told = [fact for fact in run.summary.health if "have no name of their own" in fact]
    assert len(told) == 1
    assert told[0].startswith("2 of 3 steps of ")
    assert ".with_config(run_name=...)" in told[0]
    assert not [f for f in measured(ranking_chain).summary.health if "no name" in f]


def test_what_a_model_used_up_is_read_by_step() -> None:
    run = measured(rewriting_chain, price={"tokens_in": 1_000, "calls": 0.25})
    assert run.summary.as_dict()["usage"]["stages"] == {
        "step:rewrite": {"tokens_in": 30.0, "tokens_out": 5.0, "calls": 1.0, "money": 0.28}
    }
    assert run.summary.as_dict()["usage"]["silent"] == 0


def test_a_model_inside_of_a_step_counts_for_the_step() -> None:
    def factory(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
        inner = (model() | StrOutputParser()).with_config(run_name="inner")
        return named("outer", inner.invoke) | find(documents)

    found = indexed(factory).search(QUERY, 3)
    assert found.usage == {"step:outer": Usage(30, 5, 1)}
    assert list(found.steps) == ["outer", "find"]


def test_an_async_chain_tells_its_steps_too() -> None:
    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    def factory(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
        return named("later", later) | find(documents)

    retriever = indexed(factory, use_async=True)
    found = retriever.search(QUERY, 3)
    assert found.steps["later"].texts == ["APPLES"]
    assert found.steps["find"].doc_ids == ["a", "b", "c"]
    retriever.close()


def test_of_a_chain_the_last_step_can_be_left_out_without_a_call() -> None:
    asked: list[str] = []

    def count(text: str) -> str:
        asked.append(text)
        return text

    def factory(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
        return named("count", count) | rewriting_chain(documents, k)

    run = measured(factory)
    before = len(asked)
    parts = {part.name: part for part in run.summary.parts}
    assert {name: part.kind for name, part in parts.items()} == {
        "count": "rewriting",
        "rewrite": "rewriting",
        "StrOutputParser": "rewriting",
        "rank": "reranker",
    }
    assert {name for name, part in parts.items() if part.known} == {"rank"}
    assert (parts["rank"].gets, parts["rank"].gives) == ("find", "rank")
    assert parts["rank"].stages == ("step:rank",)
    assert without(run, "rank") == [["a", "b", "c"]] * 2
    assert set(run.rankings.without) == {"rank"}
    assert before == len(run.timings.wall_ns) + run.summary.latency_ms.warm_up_calls


def test_a_query_without_hits_does_not_keep_the_last_step_from_being_left_out() -> None:
    run = measured(ranking_chain)
    assert without(run, "rank") == [["a", "b", "c"], []]


@pytest.mark.slow
def test_of_a_chain_as_a_leg_the_last_step_can_be_left_out() -> None:
    leg = LangChainRetriever(ranking_chain)
    leg.name = "chain"  # type: ignore[attr-defined]
    hybrid = Hybrid(legs=[leg, Scripted({"a": 2.0, "c": 1.0})])
    run = bench(hybrid, data(), k=3, protocol=ONCE).run
    assert {"chain", "Scripted", "chain/rank"} <= set(run.rankings.without)
    assert run.rankings.step_lists.keys() >= {"chain/find", "chain/rank"}
    other = LangChainRetriever(lambda documents, k: find(documents))
    plain = bench(
        Hybrid(legs=[other, Scripted({"a": 2.0, "c": 1.0})]), data(), k=3, protocol=ONCE
    ).run
    ids = plain.rankings.doc_ids
    expected = [[ids[at] for at in row if at >= 0] for row in plain.rankings.ranking.tolist()]
    assert without(run, "chain/rank") == expected


def test_a_runnable_that_is_no_sequence_has_no_steps() -> None:
    def factory(documents: list[LangChainDocument], k: int) -> Runnable[Any, Any]:
        return find(documents)

    run = measured(factory)
    assert not run.summary.parts
    assert run.rankings.step_lists == {}
