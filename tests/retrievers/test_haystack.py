"""Haystack over its in-memory store: components, pipelines, filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.filters import Filter, parse_filter
from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.libraries.haystack import HaystackRetriever
from tests.builders.foxes import FOXES, ask
from tests.lazily import Lazily

_MODULES = (
    "haystack.components.retrievers.in_memory",
    "haystack.components.joiners",
    "haystack.components.preprocessors",
    "haystack.document_stores.in_memory",
)
haystack: Any = Lazily("haystack", needs=_MODULES)
pytestmark = [pytest.mark.needs("haystack"), pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def bm25(documents: Sequence[Any], k: int) -> Any:
    store = haystack.document_stores.in_memory.InMemoryDocumentStore()
    store.write_documents(list(documents))
    return haystack.components.retrievers.in_memory.InMemoryBM25Retriever(store, top_k=k)


def pipeline(documents: Sequence[Any], k: int) -> Any:
    made = haystack.Pipeline()
    made.add_component("bm25", bm25(documents, k))
    return made


def joined(documents: Sequence[Any], k: int) -> Any:
    """Two retrievers; documents are an output of the joiner alone, unless asked for."""
    made = haystack.Pipeline()
    made.add_component("first", bm25(documents, k))
    made.add_component("second", bm25(documents[:2], k))
    joiner = haystack.components.joiners.DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=k)
    made.add_component("joiner", joiner)
    made.connect("first.documents", "joiner.documents")
    made.connect("second.documents", "joiner.documents")
    return made


def chunked(documents: Sequence[Any], k: int) -> Any:
    splitter = haystack.components.preprocessors.DocumentSplitter(
        split_by="word", split_length=2, split_overlap=0
    )
    splitter.warm_up()
    return bm25(splitter.run(documents=list(documents))["documents"], k)


def indexed(factory: Callable[..., Any], **params: Any) -> HaystackRetriever:
    retriever = HaystackRetriever(factory, **params)
    retriever.index(FOXES)
    return retriever


@pytest.mark.parametrize("use_async", [None, True])
def test_a_component_is_asked_for_k_hits_over_one_index(use_async: bool | None) -> None:
    retriever = indexed(bm25, use_async=use_async)
    ranking = retriever.search(Query("1", "fox"), 2)
    assert ranking.doc_ids == ["d1", "d3"]
    assert ranking.scores is not None
    assert ranking.scores[0] > ranking.scores[1]
    assert set(ranking.stages) >= {"haystack", "wrapper"}
    assert [len(ask(retriever, "dog", k)) for k in (1, 2, 5)] == [1, 2, 2]
    assert not any("indexes" in warning for warning in retriever.health([]))
    assert retriever.describe()["returned"] == "InMemoryBM25Retriever"
    assert retriever.describe()["async"] is bool(use_async)
    retriever.close()


@pytest.mark.parametrize("use_async", [None, True])
def test_a_pipeline_gets_the_text_and_keeps_its_own_numbers(use_async: bool | None) -> None:
    retriever = indexed(pipeline, use_async=use_async)
    assert ask(retriever, "fox", 2) == ["d1", "d3"]
    assert "min_k: 10" in retriever.health([])[-1]
    retriever.close()


def test_a_pipeline_of_several_parts_gives_the_documents_of_its_end_or_of_one_part() -> None:
    assert ask(indexed(joined), "dog", 2) == ["d2", "d1"]
    assert ask(indexed(joined, output="second"), "fox", 2) == ["d1"]
    with pytest.raises(ContractError, match="without a component 'third'"):
        indexed(joined, output="third")


def test_several_outputs_with_documents_must_be_chosen_from() -> None:
    def two(documents: Sequence[Any], k: int) -> Any:
        made = pipeline(documents, k)
        made.add_component("other", bm25(documents, k))
        return made

    with pytest.raises(ContractError, match="several outputs with documents: bm25, other"):
        ask(indexed(two), "fox", 1)
    assert ask(indexed(two, output="other"), "fox", 1) == ["d1"]


def test_documents_carry_id_title_text_and_metadata() -> None:
    seen: list[Any] = []

    def factory(documents: list[Any], k: int) -> Any:
        seen.extend(documents)
        return bm25(documents, k)

    indexed(factory)
    assert [document.id for document in seen] == ["d1", "d2", "d3", "d4", "d5"]
    assert seen[0].content == "Fox fox fox dog"
    assert seen[0].meta == {"doc_id": "d1", "title": "Fox", "topic": "land", "year": 2020}


@pytest.mark.parametrize("id_key", ["doc_id", "source_id"])
def test_chunks_collapse_to_the_document_that_meta_names(id_key: str) -> None:
    assert ask(indexed(chunked, id_key=id_key), "dog", 2) == ["d2", "d1"]
    short = indexed(chunked, id_key=id_key, deepen=False)
    assert len(ask(short, "dog", 2)) == 1
    assert "1 of 1 lists are shorter" in short.health_facts([])[0]
    with pytest.raises(ContractError, match="which is not in the corpus") as caught:
        ask(indexed(chunked), "dog", 2)
    assert "`id_key: doc_id`" in caught.value.fix


def test_an_object_itself_is_external_and_takes_k() -> None:
    documents = [haystack.Document(id=i, content="fox") for i in "abc"]
    retriever = HaystackRetriever(bm25(documents, 1))
    assert retriever.capabilities.external
    assert ask(retriever, "fox", 2) == ["a", "b"]
    assert ask(HaystackRetriever(pipeline(documents, 1)), "fox", 2) == ["a"]


def test_what_takes_no_query_is_an_error_that_says_where_it_belongs() -> None:
    in_memory = haystack.components.retrievers.in_memory
    store = haystack.document_stores.in_memory.InMemoryDocumentStore()
    by_embedding = in_memory.InMemoryEmbeddingRetriever(store)
    for wrong, fix in ((by_embedding, "text embedder"), (store, "InMemoryBM25Retriever(store)")):
        with pytest.raises(ConfigError) as caught:
            HaystackRetriever(wrong)
        assert fix in caught.value.fix
    alone = haystack.Pipeline()
    alone.add_component("by_embedding", by_embedding)
    with pytest.raises(ContractError, match="takes no text"):
        HaystackRetriever(alone)
    alone.add_component("bm25", in_memory.InMemoryBM25Retriever(store))
    with pytest.raises(ContractError, match=r"also needs by_embedding\.query_embedding"):
        HaystackRetriever(alone)


def test_an_answer_without_documents_is_an_error() -> None:
    @haystack.component
    class Speaks:
        @haystack.component.output_types(replies=list[str])  # type: ignore[untyped-decorator]
        def run(self, query: str) -> dict[str, Any]:
            return {"replies": [query]}

    with pytest.raises(ContractError, match="dict \\(keys replies\\)") as caught:
        ask(HaystackRetriever(Speaks()), "fox", 1)
    assert "`output`" in caught.value.fix


def translate(filter: Filter) -> dict[str, Any]:
    """Equalities, joined by and."""
    return {
        "operator": "AND",
        "conditions": [
            {"field": f"meta.{field}", "operator": "==", "value": value}
            for field, value in filter.values.items()
        ],
    }


@pytest.mark.parametrize("factory", [bm25, pipeline])
def test_the_translated_filter_goes_with_the_call(factory: Callable[..., Any]) -> None:
    retriever = indexed(factory, filter=translate)
    assert retriever.capabilities.filters

    def filtered(**conditions: Any) -> list[str]:
        query = Query("1", "dog", filter=parse_filter(conditions))
        return list(retriever.search(query, 5).doc_ids)

    assert filtered(topic="land") == ["d2", "d1"]
    assert filtered(topic="land", year=2020) == ["d1"]
    assert filtered(topic="sea") == []


def test_what_would_ignore_a_filter_is_an_error() -> None:
    @haystack.component
    class Plain:
        @haystack.component.output_types(documents=list[Any])  # type: ignore[untyped-decorator]
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": []}

    with pytest.raises(ContractError, match="a Plain, which takes no filter"):
        HaystackRetriever(Plain(), filter=translate)
