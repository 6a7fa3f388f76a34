"""LangChain in both directions, over langchain-core's store and langchain-classic's ensemble."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import Field

from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import ConfigError, ContractError, PluginError
from retrieval_bench.core.filters import Filter, parse_filter
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.retriever import RankingLike
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench.measure.deadline import QueryTimeoutError, deadline
from retrieval_bench_retrievers.libraries.langchain import LangChainRetriever, as_langchain
from tests.builders.foxes import FOXES, Overlap, ask, word_counts
from tests.builders.processes import loads

Factory = Callable[..., Any]


class WordCounts(Embeddings):
    """As the builder counts words."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return word_counts(text)


class Stored(BaseRetriever):
    """Gives a list it holds; async-only when told so."""

    found: list[Any]
    async_only: bool = False
    loops: list[Any] = Field(default_factory=list)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[LangChainDocument]:
        if self.async_only:
            raise NotImplementedError
        return self.found

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any
    ) -> list[LangChainDocument]:
        self.loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return self.found


def store(documents: list[LangChainDocument], ids: list[str] | None = None) -> InMemoryVectorStore:
    made = InMemoryVectorStore(WordCounts())
    made.add_documents(documents, ids=ids)
    return made


def in_memory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
    return store(documents).as_retriever(search_kwargs={"k": k})


def chunked(documents: list[LangChainDocument], k: int) -> BaseRetriever:
    """Each word is a chunk, as a text splitter makes them: metadata copied, ids dropped."""
    chunks = [
        LangChainDocument(word, metadata=dict(document.metadata))
        for document in documents
        for word in document.page_content.split()
    ]
    return store(chunks).as_retriever(search_kwargs={"k": k})


def listing(*documents: LangChainDocument) -> Factory:
    def factory(k: int) -> BaseRetriever:
        return Stored(found=list(documents)[:k])

    return factory


def with_ids(*ids: Any) -> list[LangChainDocument]:
    return [LangChainDocument("text", id=i) for i in ids]


def indexed(factory: Factory, **params: Any) -> LangChainRetriever:
    retriever = LangChainRetriever(factory, **params)
    retriever.index(FOXES)
    return retriever


class TestFactories:
    def test_a_vector_store_is_searched_for_k_hits_with_the_ids_of_the_corpus(self) -> None:
        retriever = indexed(in_memory)
        assert ask(retriever, "fox", 2) == ["d1", "d3"]
        assert set(ask(retriever, "fox", 5)) == {"d1", "d2", "d3", "d4", "d5"}
        assert ask(retriever, "바다", 1) == ["d4"]
        assert not retriever.capabilities.external
        assert not retriever.capabilities.has_scores

    def test_a_factory_is_named_in_a_config_and_gets_the_other_parameters(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "mine.py").write_text(
            "from retrieval_bench_retrievers.libraries.langchain_examples import in_memory\n"
            "def build(documents, k, topic=None):\n"
            "    return in_memory([d for d in documents if d.metadata.get('topic') == topic], k)\n",
            encoding="utf-8",
        )
        params = {"factory": f"{tmp_path / 'mine.py'}:build", "topic": "land"}
        retriever = construct("langchain", params)
        retriever.index(FOXES)
        assert ask(retriever, "dog", 3) == ["d2", "d1"]

    def test_documents_carry_id_title_text_and_their_own_metadata(self) -> None:
        seen: list[LangChainDocument] = []

        def factory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            seen.extend(documents)
            return Stored(found=[])

        documents = [FOXES[2], Document("d0", "text", metadata={"doc_id": "own"}), FOXES[0]]
        LangChainRetriever(factory).index(documents)
        assert [document.id for document in seen] == ["d0", "d1", "d3"]
        assert seen[0].metadata == {"doc_id": "own"}
        assert seen[1].page_content == "Fox fox fox dog"
        assert seen[1].metadata == {"doc_id": "d1", "title": "Fox", **FOXES[0].metadata}
        seen[1].metadata["topic"] = "changed"
        assert FOXES[0].metadata == {"topic": "land", "year": 2020}

    def test_the_ensemble_of_langchain_classic_is_one_retriever(self) -> None:
        from langchain_classic.retrievers import EnsembleRetriever

        def factory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            sparse = as_langchain(Overlap(FOXES), k, FOXES)
            made: BaseRetriever = EnsembleRetriever(
                retrievers=[sparse, in_memory(documents, k)], weights=[0.4, 0.6], id_key="doc_id"
            )
            return made

        retriever = indexed(factory)
        assert ask(retriever, "dog dog", 2) == ["d2", "d1"]
        assert ask(retriever, "산", 1) == ["d5"]

    def test_a_runnable_may_rewrite_the_query_first(self) -> None:
        def factory(documents: list[LangChainDocument], k: int) -> Runnable[str, Any]:
            return RunnableLambda(lambda text: text.replace("여우", "fox")) | in_memory(
                documents, k
            )

        assert ask(indexed(factory), "여우", 2) == ["d1", "d3"]

    def test_a_runnable_gets_the_whole_query_on_request(self) -> None:
        def factory(k: int) -> Runnable[Query, Any]:
            return RunnableLambda(lambda query: with_ids(query.id, query.text))

        retriever = LangChainRetriever(factory, external=True, pass_query=True)
        assert ask(retriever, "owl", 2) == ["1", "owl"]

    def test_an_external_index_is_called_with_k_alone_and_never_indexed(self) -> None:
        ready = store([LangChainDocument("owl", id="x1"), LangChainDocument("fox", id="x2")])

        def factory(k: int, language: str) -> BaseRetriever:
            assert language == "en"
            return ready.as_retriever(search_kwargs={"k": k})

        declared = {"index": "animals", "version": "7", "count": 2}
        retriever = LangChainRetriever(factory, external=declared, language="en")
        assert retriever.capabilities.external
        assert ask(retriever, "fox", 9) == ["x2", "x1"]
        assert retriever.health([]) == []
        assert retriever.describe()["external"] == declared
        assert retriever.describe()["returned"] == "VectorStoreRetriever"
        with pytest.raises(ContractError, match="is external"):
            retriever.index(FOXES)

    def test_a_retriever_itself_is_external_and_cut_at_k(self) -> None:
        retriever = LangChainRetriever(Stored(found=with_ids("a", "b", "c")))
        assert retriever.capabilities.external
        assert ask(retriever, "any", 2) == ["a", "b"]
        with pytest.raises(ConfigError, match="takes no parameters here: top"):
            LangChainRetriever(Stored(found=[]), top=3)

    def test_hits_of_an_external_index_come_with_their_text_and_source(self) -> None:
        pages = [
            LangChainDocument("연차는 15일", id="a", metadata={"source": "leave.md"}),
            LangChainDocument("", id="b", metadata={"file_path": "sub/b.md"}),
            LangChainDocument("travel", id="c", metadata={"source": 7}),
        ]
        ranking = LangChainRetriever(Stored(found=pages)).search(Query("q", "any"), 3)
        assert ranking.texts == ["연차는 15일", None, "travel"]
        assert ranking.sources == ["leave.md", "sub/b.md", None]
        ids = LangChainRetriever(Stored(found=with_ids("a", "b")))
        assert ids.search(Query("q", "any"), 2).sources is None

    def test_an_async_factory_is_awaited(self) -> None:
        async def factory(k: int) -> BaseRetriever:
            await asyncio.sleep(0)
            return Stored(found=with_ids("a"))

        retriever = LangChainRetriever(factory, external=True)
        assert ask(retriever, "any", 1) == ["a"]
        retriever.close()

    def test_an_empty_corpus_needs_no_factory(self) -> None:
        retriever = LangChainRetriever(lambda documents, k: 1 / len(documents))
        retriever.index([])
        assert ask(retriever, "fox", 3) == []

    def test_what_search_raises_is_passed_through(self) -> None:
        def broken(text: str) -> Any:
            raise ConnectionError("service is down")

        with pytest.raises(ConnectionError, match="service is down"):
            ask(LangChainRetriever(RunnableLambda(broken)), "any", 1)

    def test_the_shipped_example_is_a_config(self) -> None:
        config = load_retriever_config("langchain-in-memory", ["dimensions=64"])
        retriever = config.build()
        retriever.index(FOXES)
        assert ask(retriever, "바다 바다 산", 1) == ["d4"]
        assert len(ask(retriever, "", 5)) == 5


class TestWrongFactories:
    @pytest.mark.parametrize(
        ("returned", "what", "fix"),
        [
            (None, "returned None", "end the factory with `return`"),
            (InMemoryVectorStore(WordCounts()), "InMemoryVectorStore", "store.as_retriever("),
            ([], "returned list", "return the retriever itself"),
            ({"a": 1}, "returned dict (keys a)", "return the retriever itself"),
            (len, "builtin_function_or_method", "RunnableLambda(function)"),
        ],
    )
    def test_something_else_than_a_retriever_is_an_error_at_index(
        self, returned: Any, what: str, fix: str
    ) -> None:
        with pytest.raises(ContractError) as caught:
            indexed(lambda documents, k: returned)
        assert what in str(caught.value)
        assert fix in str(caught.value)
        assert "any Runnable that takes the query's text" in str(caught.value)

    def test_an_error_inside_is_told_with_its_place(self) -> None:
        def factory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            raise KeyError("no such store")

        with pytest.raises(ContractError, match="raised KeyError: 'no such store'") as caught:
            indexed(factory)
        assert "test_langchain.py:" in caught.value.where

    def test_an_error_in_a_library_is_told_with_the_line_that_called_it(self) -> None:
        def factory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            text: Any = None
            raise AssertionError(LangChainDocument(page_content=text))

        with pytest.raises(ContractError, match="raised ValidationError") as caught:
            indexed(factory)
        assert "test_langchain.py:" in caught.value.where

    @pytest.mark.parametrize(
        ("factory", "params", "message"),
        [
            (lambda documents, k, top=1: None, {"topp": 2}, "did you mean top?"),
            (lambda documents, k: None, {"id_kye": "x"}, "did you mean id_key"),
            (lambda documents, k, model: None, {}, "missing a required argument: 'model'"),
            (lambda k: None, {}, "say `external: true`"),
            (lambda documents, k: None, {"external": True}, "missing a required argument: 'k'"),
            (lambda documents, k: None, {"k": 5}, "leave k out"),
            (lambda documents, k, id_key=None: None, {}, "which would never reach it"),
            (in_memory, {"min_k": 0}, "min_k = 0"),
            (in_memory, {"external": {"name": "x"}}, "unknown key 'name'"),
            (42, {}, "the factory is int"),
            (None, {}, "the factory is None"),
        ],
    )
    def test_parameters_are_checked_before_anything_is_built(
        self, factory: Any, params: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            LangChainRetriever(factory, **params)
        assert message in str(caught.value)

    def test_a_factory_that_does_not_exist_is_an_error_before_anything_is_built(self) -> None:
        with pytest.raises(PluginError, match="no 'in_memry'"):
            LangChainRetriever("retrieval_bench_retrievers.libraries.langchain_examples:in_memry")


class TestIds:
    def test_the_id_may_stand_in_the_metadata(self) -> None:
        found = [
            LangChainDocument("t", id="1", metadata={"source": s}) for s in ("a", 7, UUID(int=9))
        ]
        retriever = LangChainRetriever(listing(*found), external=True, id_key="source")
        assert ask(retriever, "any", 3) == ["a", "7", str(UUID(int=9))]

    def test_an_id_of_another_type_is_told_with_its_type(self) -> None:
        found = LangChainDocument("t", id="1", metadata={"source": 1.5})
        retriever = LangChainRetriever(listing(found), external=True, id_key="source")
        with pytest.raises(ContractError, match=r"whose id is a float \(1\.5\)"):
            ask(retriever, "any", 1)

    @pytest.mark.parametrize("doc_id", [None, ""])
    def test_a_document_without_an_id_is_an_error_that_names_the_keys(self, doc_id: Any) -> None:
        found = LangChainDocument("text", id=doc_id, metadata={"source": "a"})
        with pytest.raises(ContractError) as caught:
            ask(LangChainRetriever(listing(found), external=True), "any", 1)
        assert f"without an id ({doc_id!r})\n  where: Document.id" in str(caught.value)
        assert "metadata keys there: source" in str(caught.value)
        assert "id_key" in caught.value.fix

    @pytest.mark.parametrize("value", [None, True, 1.5, ["a"]])
    def test_a_metadata_value_that_is_no_id_is_an_error(self, value: Any) -> None:
        found = LangChainDocument("text", id="1", metadata={"source": value})
        retriever = LangChainRetriever(listing(found), external=True, id_key="source")
        with pytest.raises(ContractError, match="where: metadata key 'source'"):
            ask(retriever, "any", 1)

    def test_ids_that_a_store_makes_up_on_every_build_are_an_error(self) -> None:
        with pytest.raises(ContractError) as caught:
            ask(indexed(chunked), "fox", 3)
        assert "which is not in the corpus" in str(caught.value)
        assert "an engine without ids makes new ones on every build" in str(caught.value)
        assert "`id_key: doc_id`" in str(caught.value)

    def test_another_unknown_id_is_an_error_too(self) -> None:
        def factory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            return store(documents, [f"row-{i}" for i in range(5)]).as_retriever()

        with pytest.raises(ContractError) as caught:
            ask(indexed(factory), "fox", 3)
        assert "'row-0', which is not in the corpus\n" in str(caught.value)

    def test_a_metadata_key_may_name_units_that_are_no_documents(self) -> None:
        chunks = [Document(f"c{i}", "fox", metadata={"page": f"p{i // 2}"}) for i in range(4)]
        retriever = LangChainRetriever(in_memory, id_key="page")
        retriever.index(chunks)
        assert set(ask(retriever, "fox", 4)) == {"p0", "p1"}

    @pytest.mark.parametrize(
        ("answer", "what", "fix"),
        [
            ({"context": [], "answer": "x"}, "dict (keys context, answer)", "chain.pick"),
            ("text", "with str", "return the documents themselves"),
            (["text"], "with a list with str", "return the documents themselves"),
            ([("d", 1.0)], "with a list with tuple", "return the documents themselves"),
        ],
    )
    def test_an_answer_that_is_no_list_of_documents_is_an_error(
        self, answer: Any, what: str, fix: str
    ) -> None:
        with pytest.raises(ContractError) as caught:
            ask(LangChainRetriever(RunnableLambda(lambda text: answer)), "any", 1)
        assert what in str(caught.value)
        assert fix in caught.value.fix

    def test_an_answer_that_nobody_awaited_is_an_error(self) -> None:
        retriever = LangChainRetriever(RunnableLambda(lambda text: _async_answer(text + "?")))
        with pytest.raises(ContractError, match="with coroutine"):
            ask(retriever, "any", 1)


class TestScores:
    def test_scores_are_read_from_the_metadata_on_request(self) -> None:
        found = [LangChainDocument("t", id=i, metadata={"s": s}) for i, s in (("b", 2), ("a", 1))]
        retriever = LangChainRetriever(Stored(found=found), score_key="s")
        assert retriever.capabilities.has_scores
        assert list(retriever.search(Query("1", "any"), 2)) == [("b", 2.0), ("a", 1.0)]

    def test_a_missing_score_is_an_error(self) -> None:
        found = [LangChainDocument("t", id="a", metadata={"distance": 1})]
        retriever = LangChainRetriever(Stored(found=found), score_key="s")
        with pytest.raises(ContractError, match="None for a score") as caught:
            ask(retriever, "any", 1)
        assert "metadata keys there: distance" in caught.value.accepted

    def test_distances_for_scores_are_an_error(self) -> None:
        found = [LangChainDocument("t", id=i, metadata={"s": s}) for i, s in (("a", 1), ("b", 2))]
        with pytest.raises(ContractError, match="rise from 1 to 2 at rank 2"):
            ask(LangChainRetriever(Stored(found=found), score_key="s"), "any", 2)


class Counting:
    """A factory that remembers what it was called with; ``limit`` makes it deaf for k."""

    def __init__(self, ids: list[str], limit: int | None = None) -> None:
        self.ids = ids
        self.limit = limit
        self.called_with: list[int] = []

    def __call__(self, documents: list[LangChainDocument], k: int) -> BaseRetriever:
        self.called_with.append(k)
        return Stored(found=with_ids(*self.ids[: self.limit or k]))


class TestNumberOfHits:
    @pytest.mark.parametrize(
        ("ids", "params", "found", "called_with"),
        [
            ("d1 d2 d3", {}, "d1 d2 d3", [3]),
            # by default a chain is built again while chunks collapse
            ("d1 d1 d2 d2 d3 d4", {}, "d1 d2 d3", [3, 6]),
            # min_k is what production asks for
            ("d1 d1 d2 d2 d3 d4", {"deepen": False, "min_k": 5}, "d1 d2 d3", [5]),
        ],
        ids=["as announced", "chunks", "no deeper"],
    )
    def test_the_factory_is_called_with_the_k_that_was_announced(
        self, ids: str, params: dict[str, Any], found: str, called_with: list[int]
    ) -> None:
        factory = Counting(ids.split())
        retriever = LangChainRetriever(factory, **params)
        retriever.use_k(3)
        retriever.index(FOXES)
        assert ask(retriever, "any", 3) == found.split()
        assert factory.called_with == called_with
        assert retriever.health_facts([]) == []
        assert len(called_with) > 1 or retriever.health([]) == []

    def test_another_k_builds_again_and_says_how_to_avoid_it(self) -> None:
        factory = Counting(["d1", "d2", "d3", "d4", "d5"] * 3)
        retriever = indexed(factory)
        assert ask(retriever, "any", 2) == ["d1", "d2"]
        assert ask(retriever, "any", 2) == ["d1", "d2"]
        assert factory.called_with == [10, 2]
        assert any("min_k: 10" in warning for warning in retriever.health([]))

    def test_min_k_is_the_least_that_is_asked_for(self) -> None:
        factory = Counting([d.id for d in FOXES])
        assert ask(indexed(factory, min_k=40), "any", 2) == ["d1", "d2"]
        assert factory.called_with == [40]

    def test_a_plain_vector_store_is_asked_for_more_and_not_built_again(self) -> None:
        builds: list[int] = []

        def factory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            builds.append(k)
            return in_memory(documents, k)

        retriever = indexed(factory)
        assert [len(ask(retriever, "fox", k)) for k in (1, 5, 3)] == [1, 5, 3]
        assert builds == [10]

    @pytest.mark.parametrize(
        "kwargs", [{"search_type": "mmr"}, {"search_kwargs": {"k": 4, "fetch_k": 4}}]
    )
    def test_a_search_with_other_numbers_is_built_again(self, kwargs: dict[str, Any]) -> None:
        builds: list[int] = []

        def factory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            builds.append(k)
            return store(documents).as_retriever(**{"search_kwargs": {"k": k}, **kwargs})

        retriever = indexed(factory)
        retriever._engine(3)
        assert builds == [10, 3]

    def test_a_ranking_does_not_depend_on_the_searches_before(self) -> None:
        def factory(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            return Stored(found=with_ids("d1", "d2") if k < 3 else with_ids("d5", "d4", "d3"))

        retriever = indexed(factory)
        answers = [ask(retriever, "any", k) for k in (2, 3, 2)]
        assert answers == [["d1", "d2"], ["d5", "d4", "d3"], ["d1", "d2"]]

    def test_chunks_of_one_document_collapse_and_the_list_is_filled_up(self) -> None:
        retriever = indexed(chunked, id_key="doc_id")
        ranking = retriever.search(Query("1", "dog"), 3)
        assert list(ranking.doc_ids)[:2] in (["d1", "d2"], ["d2", "d1"])
        assert len(ranking) == 3
        assert ranking.collapsed >= 2

    def test_filling_up_ends_where_the_engine_has_no_more(self) -> None:
        few = Counting(["d1", "d1", "d2"])
        assert ask(indexed(few), "any", 4) == ["d1", "d2"]
        assert few.called_with == [10, 4]
        deaf = Counting(["d1"] * 9, limit=9)
        assert ask(indexed(deaf), "any", 2) == ["d1"]
        assert deaf.called_with == [10, 2, 4]

    def test_a_warning_says_when_every_search_got_fewer_hits_than_asked_for(self) -> None:
        documents = [Document(f"d{i}", "fox") for i in range(9)]

        def deaf(documents: list[LangChainDocument], k: int) -> BaseRetriever:
            return store(documents).as_retriever()

        retriever = LangChainRetriever(deaf)
        retriever.index(documents)
        for text in ("fox", "owl"):
            assert len(ask(retriever, text, 8)) == 4
        (warning,) = (text for text in retriever.health([]) if "fewer hits" in text)
        assert "at most 4 of 8" in warning
        assert "as_retriever(search_kwargs={'k': k})" in warning

    def test_no_warning_when_one_search_was_full_or_the_corpus_is_small(self) -> None:
        retriever = LangChainRetriever(Stored(found=with_ids("a", "b")))
        ask(retriever, "any", 3)
        assert len(retriever.health([])) == 1
        ask(retriever, "any", 2)
        assert retriever.health([]) == []
        small = indexed(in_memory)
        ask(small, "fox", 50)
        assert small.health([]) == []


class TestDeepening:
    """``deepen: false`` asks for what production asks for."""

    def test_without_it_the_factory_is_called_once_and_the_list_stays_shorter(self) -> None:
        factory = Counting(["d1", "d1", "d2", "d2", "d3", "d4"])
        retriever = LangChainRetriever(factory, deepen=False)
        retriever.use_k(3)
        retriever.index(FOXES)
        assert ask(retriever, "any", 3) == ["d1", "d2"]
        assert ask(retriever, "other", 3) == ["d1", "d2"]
        assert factory.called_with == [3]
        assert retriever.health([]) == []
        (fact,) = retriever.health_facts([])
        assert fact == (
            "2 of 2 lists are shorter than asked for, because chunks of one document count once"
        )

    def test_a_factory_that_is_deaf_for_k_is_still_told(self) -> None:
        retriever = indexed(Counting(["d1", "d2"]), deepen=False)
        assert ask(retriever, "any", 4) == ["d1", "d2"]
        assert "at most 2 of 4" in retriever.health([])[0]
        assert retriever.health_facts([]) == []


def by_metadata(filter: Filter) -> Callable[[LangChainDocument], bool]:
    """What InMemoryVectorStore filters with."""
    return lambda document: filter.matches(document.metadata)


def about(text: str, **conditions: Any) -> Query:
    return Query("1", text, filter=parse_filter(conditions))


class TestFilters:
    def test_a_vector_store_gets_the_translated_filter_and_none_without_one(self) -> None:
        retriever = indexed(in_memory, filter=by_metadata)
        assert retriever.capabilities.filters
        assert retriever.search(about("fox", topic="land"), 5).doc_ids == ["d1", "d2"]
        assert retriever.search(about("fox", topic="sea"), 5).doc_ids == []
        assert len(ask(retriever, "fox", 5)) == 5
        assert retriever.health([]) == []

    def test_it_is_named_in_a_config_and_works_async(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(
            "def land(filter):\n    return lambda document: filter.matches(document.metadata)\n",
            encoding="utf-8",
        )
        params = {"filter": f"{tmp_path / 'mine.py'}:land", "use_async": True}
        retriever = construct("langchain", {"factory": f"{__name__}:in_memory", **params})
        retriever.index(FOXES)
        ranking = retriever.search(about("owl", year=2020), 3)
        assert isinstance(ranking, Ranking)
        assert ranking.doc_ids == ["d1"]
        retriever.close()

    def test_a_function_gets_it_by_keyword(self) -> None:
        def search(text: str, filter: Any = None) -> list[LangChainDocument]:
            return with_ids(text, str(filter))

        retriever = LangChainRetriever(
            RunnableLambda(search), filter=lambda filter: dict(filter.values)
        )
        assert retriever.search(about("owl", year=2026), 2).doc_ids == ["owl", "{'year': 2026}"]
        assert ask(retriever, "owl", 2) == ["owl", "None"]

    @pytest.mark.parametrize(
        "runnable",
        [Stored(found=[]), RunnableLambda(lambda text: []), RunnableLambda(str) | Stored(found=[])],
    )
    def test_what_would_ignore_it_is_an_error_before_any_search(
        self, runnable: Runnable[Any, Any]
    ) -> None:
        with pytest.raises(ContractError, match="which takes no filter") as caught:
            LangChainRetriever(runnable, filter=by_metadata)
        assert "RunnableLambda" in caught.value.fix

    def test_a_translation_to_nothing_is_an_error_and_not_a_search_without_a_filter(self) -> None:
        retriever = indexed(in_memory, filter=lambda filter: None)
        assert len(ask(retriever, "fox", 5)) == 5
        with pytest.raises(ContractError, match="was translated to None"):
            retriever.search(about("fox", topic="land"), 5)

    def test_without_a_translation_it_does_not_filter(self) -> None:
        assert not indexed(in_memory).capabilities.filters

    @pytest.mark.parametrize(
        ("filter", "message"), [(42, "is int, not a function"), (lambda: None, "function(filter)")]
    )
    def test_another_translation_is_an_error(self, filter: Any, message: str) -> None:
        with pytest.raises(ConfigError) as caught:
            LangChainRetriever(in_memory, filter=filter)
        assert message in str(caught.value)


async def _async_answer(text: str) -> list[LangChainDocument]:
    return with_ids(text)


class TestAsync:
    def test_an_async_only_retriever_runs_on_one_loop_of_its_own(self) -> None:
        engine = Stored(found=with_ids("a", "b"), async_only=True)
        retriever = LangChainRetriever(lambda k: engine, external=True)
        for _ in range(3):
            assert ask(retriever, "any", 2) == ["a", "b"]
        assert len(engine.loops) == 3
        assert len(set(map(id, engine.loops))) == 1
        assert retriever.describe()["async"] is True
        retriever.close()
        assert engine.loops[0].is_closed()

    def test_a_runnable_over_an_async_function_is_awaited(self) -> None:
        chain = RunnableLambda(lambda text: text.upper()) | RunnableLambda(_async_answer)
        retriever = LangChainRetriever(chain)
        assert ask(retriever, "owl", 1) == ["OWL"]
        assert ask(retriever, "fox", 1) == ["FOX"]
        retriever.close()

    def test_a_retriever_that_can_do_both_is_called_as_told(self) -> None:
        engine = Stored(found=with_ids("a"))
        ask(LangChainRetriever(engine), "any", 1)
        assert engine.loops == []
        retriever = LangChainRetriever(engine, use_async=True)
        ask(retriever, "any", 1)
        assert len(engine.loops) == 1
        retriever.close()

    def test_a_type_error_of_a_sync_retriever_is_its_own(self) -> None:
        asked = []

        def broken(text: str) -> Any:
            asked.append(text)
            raise TypeError("cannot add")

        with pytest.raises(TypeError, match="cannot add"):
            ask(LangChainRetriever(RunnableLambda(broken)), "any", 1)
        assert asked == ["any"]

    def test_what_answered_once_without_a_loop_stays_so(self) -> None:
        engine = Stored(found=with_ids("a"))
        retriever = LangChainRetriever(engine)
        assert ask(retriever, "any", 1) == ["a"]
        engine.async_only = True
        with pytest.raises(NotImplementedError):
            ask(retriever, "any", 1)
        assert engine.loops == []

    def test_it_works_where_a_loop_runs_already(self) -> None:
        engine = Stored(found=with_ids("a"), async_only=True)
        retriever = LangChainRetriever(engine)
        ask(retriever, "any", 1)

        async def in_a_notebook() -> list[str]:
            first = ask(retriever, "any", 1)
            retriever.close()
            return first

        assert asyncio.run(in_a_notebook()) == ["a"]
        assert engine.loops[0] is engine.loops[1]
        assert engine.loops[0].is_closed()

    def test_closing_unused_is_fine_and_searching_after_close_makes_a_new_loop(self) -> None:
        engine = Stored(found=with_ids("a"), async_only=True)
        retriever = LangChainRetriever(engine)
        retriever.close()
        assert ask(retriever, "any", 1) == ["a"]
        retriever.close()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals on this platform")
class TestInterruption:
    """A time-out raises in a signal handler, wherever the program is just then."""

    @staticmethod
    def _searcher(wait: Callable[[], Any]) -> tuple[LangChainRetriever, list[str]]:
        log: list[str] = []

        async def answer(text: str) -> list[LangChainDocument]:
            if text == "wait":
                try:
                    await wait()
                except asyncio.CancelledError:
                    log.append("cancelled")
                    raise
            return with_ids("a")

        return LangChainRetriever(RunnableLambda(answer), use_async=True), log

    @staticmethod
    def _check(retriever: LangChainRetriever) -> float:
        """Searches, is interrupted, searches again; returns what the timer of 10 s had left."""
        with deadline(10) as timer:
            timer.arm()
            with pytest.raises(QueryTimeoutError):
                ask(retriever, "wait", 1)
            left, _ = signal.getitimer(signal.ITIMER_REAL)
            timer.disarm()
            assert ask(retriever, "go", 1) == ["a"]
        return left

    @staticmethod
    async def _wait_for_the_timer() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        await asyncio.Event().wait()

    def test_while_the_loop_waits_the_task_is_cancelled(self) -> None:
        retriever, log = self._searcher(self._wait_for_the_timer)
        self._check(retriever)
        assert log == ["cancelled"]
        retriever.close()

    def test_between_two_steps_it_is_not_lost(self) -> None:
        def wait() -> Any:
            loop = asyncio.get_running_loop()
            loop.call_soon(lambda: signal.raise_signal(signal.SIGALRM))
            return asyncio.Event().wait()

        retriever, log = self._searcher(wait)
        assert self._check(retriever) > 0
        assert log == ["cancelled"]
        retriever.close()

    def test_inside_the_coroutine_it_passes_through(self) -> None:
        async def wait() -> None:
            signal.raise_signal(signal.SIGALRM)

        retriever, log = self._searcher(wait)
        self._check(retriever)
        assert log == []
        retriever.close()

    def test_a_task_that_will_not_be_cancelled_does_not_hold_up_the_caller(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("retrieval_bench_retrievers.functions.event_loop._GRACE_SECONDS", 0.02)
        refusals: list[str] = []

        async def wait() -> None:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            while len(refusals) < 2:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    refusals.append("refused")

        retriever, _ = self._searcher(wait)
        self._check(retriever)
        retriever.close()
        assert refusals == ["refused", "refused"]

    def test_where_a_loop_runs_already_the_task_is_cancelled_too(self) -> None:
        retriever, log = self._searcher(self._wait_for_the_timer)

        async def in_a_notebook() -> None:
            self._check(retriever)
            retriever.close()

        asyncio.run(in_a_notebook())
        assert log == ["cancelled"]


class TestTheWayBack:
    def test_documents_carry_id_text_and_score(self) -> None:
        retriever = as_langchain(Overlap(FOXES), 2, FOXES)
        first, second = retriever.invoke("fox dog")
        assert (first.id, second.id) == ("d1", "d2")
        assert first.page_content == "Fox fox fox dog"
        assert first.metadata == {
            **{"doc_id": "d1", "title": "Fox", "topic": "land", "year": 2020},
            "score": 2.0,
        }

    def test_without_documents_the_text_is_the_id_and_without_scores_there_is_none(self) -> None:
        (document,) = as_langchain(Overlap(FOXES, has_scores=False), 1).invoke("fox")
        assert document.page_content == "d1"
        assert document.metadata == {"doc_id": "d1"}

    @pytest.mark.parametrize("documents", [FOXES, None])
    def test_it_works_inside_an_ensemble(self, documents: list[Document] | None) -> None:
        from langchain_classic.retrievers import EnsembleRetriever

        legs: list[Runnable[str, list[LangChainDocument]]] = [
            as_langchain(Overlap(FOXES), 3, documents) for _ in range(2)
        ]
        fused = EnsembleRetriever(retrievers=legs, weights=[0.5, 0.5]).invoke("fox owl")
        assert [document.id for document in fused] == ["d3", "d1", "d5"]

    def test_there_and_back_gives_the_same_ranking(self) -> None:
        inner = Overlap(FOXES)
        outer = LangChainRetriever(lambda k: as_langchain(inner, k), external=True)
        assert ask(outer, "fox dog", 4) == ask(inner, "fox dog", 4)

    def test_a_retriever_that_breaks_the_contract_is_an_error_here_too(self) -> None:
        class Broken(Overlap):
            def search(self, query: Query, k: int) -> RankingLike:
                return Ranking(["d1", "d1"])

        with pytest.raises(ContractError, match="returned twice"):
            as_langchain(Broken(FOXES), 3).invoke("fox")
        with pytest.raises(ContractError, match="k = 0"):
            as_langchain(Overlap(FOXES), 0)


@pytest.mark.slow
def test_naming_an_adapter_does_not_import_its_library() -> None:
    code = "from retrieval_bench_retrievers.functions import callable\n"
    code += "from retrieval_bench_retrievers.libraries import haystack, langchain\n"
    code += "from retrieval_bench_retrievers.libraries import llamaindex, pyterrier"
    theirs = ("langchain", "langchain_core", "llama_index", "haystack", "pandas", "pyterrier")
    assert not loads(code, *theirs)
