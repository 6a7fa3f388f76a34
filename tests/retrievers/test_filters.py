"""Built-in retrievers under filters: the list is the full ranking without the other documents."""

from __future__ import annotations

import random
from typing import Any

import pytest

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query, Ranking
from tests.builders import some

N = 1_200
WORDS = [f"w{i}" for i in range(40)]
SHARES = {"all": 100, "half": 50, "tenth": 10, "hundredth": 1}
LEXICAL: dict[str, tuple[str, dict[str, Any]]] = {
    "okapi": ("bm25", {}),
    "l": ("bm25", {"variant": "l"}),
    "plus": ("bm25", {"variant": "plus"}),
    "bm25s": ("bm25s", {}),
    "bm25s-plus": ("bm25s", {"variant": "bm25+"}),
}


def corpus() -> list[Document]:
    draw = random.Random(5)
    return [
        Document(
            f"d{i}",
            " ".join(draw.choices(WORDS, k=draw.randint(3, 12))),
            metadata={"place": i % 100, "tags": ["even" if i % 2 == 0 else "odd"]},
        )
        for i in draw.sample(range(N), N)
    ]


def made(name: str) -> Retriever:
    target, params = LEXICAL[name]
    retriever = plugins.construct(target, params, where="test")
    assert isinstance(retriever, Retriever)
    return retriever


def searched(retriever: Retriever, query: Query, k: int) -> Ranking:
    found = retriever.search(query, k)
    assert isinstance(found, Ranking)
    return found


@pytest.mark.parametrize("percent", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("name", LEXICAL)
def test_the_list_is_the_full_ranking_without_the_others(name: str, percent: int) -> None:
    documents = corpus()
    kept = {d.id for d in documents if d.metadata["place"] < percent}
    retriever = made(name)
    retriever.use_filters(["place", "tags"])
    retriever.index(documents)
    assert retriever.capabilities.filters
    for text in ("w1 w2 w3", "w7", "w5 w5 w9 w11 w30", "unknown"):
        query = Query("q", text)
        full = searched(retriever, query, N)
        filtered = Query("q", text, filter=parse_filter({"place": {"lt": percent}}))
        for k in (1, 10, N):
            found = searched(retriever, filtered, k)
            expected = [(hit.doc_id, hit.score) for hit in full if hit.doc_id in kept][:k]
            assert [(hit.doc_id, hit.score) for hit in found] == expected


@pytest.mark.parametrize("name", ["okapi", "bm25s"])
def test_a_filter_that_nothing_fits_gives_nothing(name: str) -> None:
    retriever = made(name)
    retriever.use_filters(["place"])
    retriever.index(corpus())
    assert not len(searched(retriever, Query("q", "w1", filter=parse_filter({"place": 200})), 5))


def test_a_field_that_was_not_announced_is_told() -> None:
    retriever = made("okapi")
    retriever.use_filters(["place"])
    retriever.index(corpus())
    with pytest.raises(ContractError) as caught:
        retriever.search(Query("q", "w1", filter=parse_filter({"plaice": 3})), 5)
    assert caught.value.given == "a filter on the field 'plaice', which was not announced"
    assert "did you mean place" in caught.value.accepted


def test_every_leg_of_a_hybrid_filters_before_fusion() -> None:
    documents, asked = corpus(), parse_filter({"tags": "even"})
    hybrid = plugins.construct(
        "hybrid",
        {
            "legs": ["bm25", {"target": "bm25", "name": "l", "params": {"variant": "l"}}],
            "depth": 20,
        },
        where="test",
    )
    hybrid.use_filters(["tags"])
    hybrid.index(documents)
    assert hybrid.capabilities.filters
    found = searched(hybrid, Query("q", "w1 w2", filter=asked), 10)
    assert len(found) == 10
    even = {d.id for d in documents if d.metadata["tags"] == ["even"]}
    assert even.issuperset(found.doc_ids)
    for trace in found.legs.values():
        told = some(trace.doc_ids)
        assert len(told) == 20  # cut after filtering, not before
        assert even.issuperset(told)


def test_the_time_of_the_filter_is_a_stage_of_its_own() -> None:
    retriever = made("okapi")
    retriever.use_filters(["place"])
    retriever.index(corpus())
    assert "filter" not in searched(retriever, Query("q", "w1"), 5).stages
    of_filtered = searched(retriever, Query("q", "w1", filter=parse_filter({"place": 3})), 5)
    assert set(of_filtered.stages) == {"tokenize", "filter", "sparse"}


def test_true_and_one_are_two_values_in_any_order() -> None:
    documents = [
        Document("a", "apple", metadata={"public": True}),
        Document("b", "apple", metadata={"public": 1}),
    ]
    for order in ([True, 1], [1, True]):
        retriever = made("okapi")
        retriever.use_filters(["public"])
        retriever.index(documents)
        found = {
            type(one): list(
                searched(
                    retriever, Query("q", "apple", filter=parse_filter({"public": one})), 5
                ).doc_ids
            )
            for one in order
        }
        assert found == {bool: ["a"], int: ["b"]}
