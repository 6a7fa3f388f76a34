"""Engines of other libraries behind the adapters, as far as they are installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from retrieval_bench.measure.threads import search_threads
from retrieval_bench.testing import RetrieverConformance

_ENGINES = "tests.conformance.engines"
_REFUSES_NOTHING = "the library raises for a query of no characters"


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Short texts are encoded faster by one thread than by several that wait for each other."""
    with search_threads(1):
        yield


class _Engine(RetrieverConformance):
    pytestmark: ClassVar[list[Any]] = [
        pytest.mark.slow,
        pytest.mark.long,
        pytest.mark.dense,
        pytest.mark.filterwarnings("ignore"),
    ]


@pytest.mark.needs("langchain_chroma", "sentence_transformers")
class TestChroma(_Engine):
    target = "langchain"
    params: ClassVar[Mapping[str, Any]] = {
        "factory": f"{_ENGINES}:chroma",
        "filter": f"{_ENGINES}:chroma_filter",
        "exact": False,
    }


@pytest.mark.needs("langchain_milvus", "milvus_lite", "sentence_transformers")
class TestMilvusLite(_Engine):
    target = "langchain"
    params: ClassVar[Mapping[str, Any]] = {
        "factory": f"{_ENGINES}:milvus",
        "filter": f"{_ENGINES}:milvus_filter",
        "id_key": "pk",
    }


@pytest.mark.needs("llama_index", "sentence_transformers")
class TestLlamaIndex(_Engine):
    target = "llamaindex"
    params: ClassVar[Mapping[str, Any]] = {
        "factory": f"{_ENGINES}:llama_index",
        "filter": f"{_ENGINES}:llama_filter",
    }
    xfails: ClassVar[Mapping[str, str]] = {
        "test_an_empty_query_is_answered": _REFUSES_NOTHING,
        "test_documents_may_be_empty": _REFUSES_NOTHING,
        "test_ties_at_the_cut_go_to_the_lowest_ids": "it keeps the highest ids of equal scores",
    }


@pytest.mark.needs("haystack")
class TestHaystackBM25(_Engine):
    target = "haystack"
    params: ClassVar[Mapping[str, Any]] = {
        "factory": f"{_ENGINES}:haystack_bm25",
        "filter": f"{_ENGINES}:haystack_filter",
    }
    xfails: ClassVar[Mapping[str, str]] = {
        "test_an_empty_query_is_answered": _REFUSES_NOTHING,
        "test_documents_may_be_empty": _REFUSES_NOTHING,
    }


@pytest.mark.needs("haystack")
class TestHaystackPipeline(_Engine):
    target = "haystack"
    params: ClassVar[Mapping[str, Any]] = {
        "factory": f"{_ENGINES}:haystack_dense",
        "filter": f"{_ENGINES}:haystack_filter",
    }
