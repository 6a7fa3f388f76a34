"""LlamaIndex over its own vector index, and over retrievers made for one test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, ContractError, MissingDependencyError
from retrieval_bench.core.filters import Filter, parse_filter
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_retrievers.libraries.llamaindex import LlamaIndexRetriever
from tests.builders.foxes import FOXES, ask, word_counts
from tests.lazily import Lazily

core: Any = Lazily("llama_index.core", needs=("llama_index.core.retrievers",))
pytestmark = [
    pytest.mark.needs("llama_index"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]


def embedding() -> Any:
    """One number for each word of a tiny vocabulary."""

    class WordCounts(core.embeddings.BaseEmbedding):  # type: ignore[misc]
        def _get_text_embedding(self, text: str) -> list[float]:
            return word_counts(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    return WordCounts()


def in_memory(documents: Sequence[Any], k: int) -> Any:
    index = core.VectorStoreIndex(documents, embed_model=embedding())
    return index.as_retriever(similarity_top_k=k)


def chunked(documents: Sequence[Any], k: int) -> Any:
    splitter = core.node_parser.TokenTextSplitter(chunk_size=8, chunk_overlap=0)
    return in_memory(splitter.get_nodes_from_documents(documents), k)


def listing(*nodes: tuple[str, float | None], async_only: bool = False) -> Any:
    """A retriever that gives these ids and scores."""

    class Stored(core.retrievers.BaseRetriever):  # type: ignore[misc]
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            if async_only:
                raise NotImplementedError
            node = core.schema.TextNode
            return [core.schema.NodeWithScore(node=node(id_=i, text=i), score=s) for i, s in nodes]

        async def _aretrieve(self, query_bundle: Any) -> list[Any]:
            nonlocal async_only
            async_only, before = False, async_only
            found = self._retrieve(query_bundle)
            async_only = before
            return found

    return Stored()


def indexed(factory: Callable[..., Any], **params: Any) -> LlamaIndexRetriever:
    retriever = LlamaIndexRetriever(factory, **params)
    retriever.index(FOXES)
    return retriever


def test_a_vector_index_is_searched_for_k_hits_with_its_scores() -> None:
    retriever = indexed(in_memory)
    ranking = retriever.search(Query("1", "fox"), 2)
    assert ranking.doc_ids == ["d1", "d3"]
    assert ranking.scores is not None
    assert ranking.scores[0] > ranking.scores[1] > 0.5
    assert set(ranking.stages) == {"llamaindex", "factory", "wrapper"}
    assert len(ask(retriever, "fox", 5)) == 5
    assert retriever.health([]) == []  # asked for more, not built again
    assert retriever.capabilities.has_scores
    assert not retriever.capabilities.filters
    assert retriever.describe()["returned"] == "VectorIndexRetriever"
    assert "llama_index_core" in retriever.describe()


def test_documents_carry_id_title_text_and_metadata_that_are_not_embedded() -> None:
    seen: list[Any] = []

    def factory(documents: list[Any], k: int) -> Any:
        seen.extend(documents)
        return listing()

    indexed(factory)
    assert [node.id_ for node in seen] == ["d1", "d2", "d3", "d4", "d5"]
    assert seen[0].metadata == {"doc_id": "d1", "title": "Fox", "topic": "land", "year": 2020}
    embedded = seen[0].get_content(metadata_mode=core.schema.MetadataMode.EMBED)
    assert embedded == "Fox fox fox dog"


def test_chunks_count_for_the_document_that_they_are_a_part_of() -> None:
    words = [Document(f"d{i}", text * 9) for i, text in enumerate(("fox fox ", "fox dog ", "owl "))]
    retriever = LlamaIndexRetriever(chunked)
    retriever.index(words)
    assert sorted(ask(retriever, "fox", 3)) == ["d0", "d1", "d2"]
    assert retriever.search(Query("1", "fox"), 2).collapsed > 0
    by_key = LlamaIndexRetriever(chunked, id_key="doc_id", deepen=False)
    by_key.use_k(3)
    by_key.index(words)
    assert len(ask(by_key, "fox", 3)) < 3
    assert "1 of 1 lists are shorter" in by_key.health_facts([])[0]


@pytest.mark.parametrize("scores", [[1.0, None], [1.0, 2.0], [None, None]])
def test_a_list_without_falling_scores_is_ranked_by_its_order(scores: list[float | None]) -> None:
    retriever = LlamaIndexRetriever(listing(("b", scores[0]), ("a", scores[1])))
    ranking = retriever.search(Query("1", "any"), 2)
    assert ranking.doc_ids == ["b", "a"]
    assert ranking.scores is None
    rising = retriever.health_facts([])
    assert (len(rising) == 1 and "have scores that rise" in rising[0]) == (scores == [1.0, 2.0])


def test_scores_may_be_left_out() -> None:
    retriever = indexed(in_memory, scores=False)
    assert not retriever.capabilities.has_scores
    assert retriever.search(Query("1", "fox"), 2).scores is None


def test_an_async_retriever_and_an_async_factory_are_awaited() -> None:
    async def factory(documents: list[Any], k: int) -> Any:
        return listing(("d1", 1.0), async_only=True)

    retriever = indexed(factory)
    assert ask(retriever, "any", 1) == ["d1"]
    assert retriever.describe()["async"] is True
    retriever.close()
    told = indexed(in_memory, use_async=True)
    assert ask(told, "바다", 1) == ["d4"]
    told.close()


def test_a_retriever_itself_is_external_and_decides_how_many_hits_it_gives() -> None:
    index = core.VectorStoreIndex([], embed_model=embedding())
    retriever = LlamaIndexRetriever(index.as_retriever())
    assert retriever.capabilities.external
    assert ask(retriever, "fox", 3) == []
    few = LlamaIndexRetriever(listing(("a", 1.0), ("b", 0.5)))
    assert ask(few, "any", 5) == ["a", "b"]
    assert "similarity_top_k=k), whose default is 2" in few.health([])[0]


def test_what_is_no_retriever_is_an_error_that_names_as_retriever() -> None:
    index = core.VectorStoreIndex([], embed_model=embedding())
    engine = core.query_engine.RetrieverQueryEngine.from_args(
        index.as_retriever(), llm=core.llms.MockLLM()
    )
    for wrong in (index, engine):
        with pytest.raises(ConfigError) as caught:
            LlamaIndexRetriever(wrong)
        assert "index.as_retriever(similarity_top_k=k)" in caught.value.fix
        with pytest.raises(ContractError) as at_index:
            indexed(lambda documents, k, wrong=wrong: wrong)
        assert "as_retriever" in at_index.value.fix
    with pytest.raises(ConfigError, match="did you mean id_key"):
        LlamaIndexRetriever(in_memory, id_kye="x")


def test_an_id_that_is_not_in_the_corpus_is_an_error_that_names_the_keys() -> None:
    def renaming(documents: list[Any], k: int) -> Any:
        nodes = [
            core.schema.TextNode(text=document.text, metadata=document.metadata)
            for document in documents
        ]
        return in_memory(nodes, k)

    with pytest.raises(ContractError, match="makes new ones on every build") as caught:
        ask(indexed(renaming), "fox", 1)
    assert "doc_id" in caught.value.accepted
    assert ask(indexed(renaming, id_key="doc_id"), "fox", 1) == ["d1"]


class TestFilters:
    @staticmethod
    def factory(documents: list[Any], k: int) -> Callable[[Any], Any]:
        index = core.VectorStoreIndex(documents, embed_model=embedding())
        return lambda filters: index.as_retriever(similarity_top_k=k, filters=filters)

    @staticmethod
    def translate(filter: Filter) -> Any:
        types = core.vector_stores
        return types.MetadataFilters(
            filters=[types.MetadataFilter(key=k, value=v) for k, v in filter.values.items()]
        )

    def test_the_factory_makes_a_retriever_for_each_filter_over_one_index(self) -> None:
        retriever = indexed(self.factory, filter=self.translate)
        assert retriever.capabilities.filters

        def filtered(k: int, **conditions: Any) -> Ranking:
            return retriever.search(Query("1", "dog", filter=parse_filter(conditions)), k)

        assert filtered(5, topic="land").doc_ids == ["d2", "d1"]
        assert filtered(5, topic="land", year=2020).doc_ids == ["d1"]
        assert filtered(1, topic="land").doc_ids == ["d2"]
        assert len(ask(retriever, "dog", 5)) == 5
        assert retriever.health([]) == []

    def test_a_factory_that_gives_one_retriever_is_an_error_that_says_what_to_return(self) -> None:
        with pytest.raises(ContractError) as caught:
            indexed(in_memory, filter=self.translate)
        assert "return lambda filters: index.as_retriever(" in caught.value.fix
        with pytest.raises(ContractError, match="gave None for no filter"):
            indexed(lambda documents, k: lambda filters: None, filter=self.translate)


def test_without_the_library_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "llama_index", None)
    monkeypatch.delitem(
        sys.modules, "retrieval_bench_retrievers.libraries.llamaindex_bridge", raising=False
    )
    for name in [name for name in sys.modules if name.startswith("llama_index.")]:
        monkeypatch.delitem(sys.modules, name)
    retriever = construct("llamaindex", {"factory": f"{__name__}:in_memory"})
    with pytest.raises(MissingDependencyError, match="LlamaIndex is not installed") as caught:
        retriever.index(FOXES)
    assert caught.value.fix == "pip install llama-index-core"
