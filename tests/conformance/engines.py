"""Factories over engines of other libraries, each as short as in production; and what makes their
filters of ours. The libraries are imported where they are needed, and may be missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from uuid import uuid4

from retrieval_bench.core.filters import Condition, Filter
from retrieval_bench_retrievers.libraries.langchain_examples import trigram_counts


@cache
def _encoder() -> Any:
    from retrieval_bench_retrievers.encoders.encoder import Encoder

    encoder = Encoder()
    encoder.load()
    return encoder


def encode(text: str) -> list[float]:
    """384 numbers by the packaged encoder."""
    vector: list[float] = _encoder().encode_query(text)[0].tolist()
    return vector


def encode_all(texts: Sequence[str]) -> list[list[float]]:
    """The same for many; equal texts get equal numbers, whatever stands beside them."""
    distinct = list(dict.fromkeys(texts))
    found: dict[str, list[float]] = {}
    for positions, vectors in _encoder().document_batches(distinct):
        found |= {distinct[at]: row.tolist() for at, row in zip(positions, vectors, strict=True)}
    return [found[text] for text in texts]


def trigrams(text: str) -> list[float]:
    """A stand-in for an encoder that needs no model."""
    return trigram_counts(text, 256)


def flat(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What stores keep beside a vector: no lists."""
    return {key: value for key, value in metadata.items() if not isinstance(value, list)}


def conditions(filter: Filter) -> list[Condition]:
    """Those of a filter that joins them by and."""
    found = filter.condition
    parts = (found,) if isinstance(found, Condition) else found.parts
    assert all(isinstance(part, Condition) for part in parts)
    return [part for part in parts if isinstance(part, Condition)]


# -- LangChain -------------------------------------------------------------------------------------


def _embeddings() -> Any:
    from langchain_core.embeddings import Embeddings

    class Packaged(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return encode_all(texts)

        def embed_query(self, text: str) -> list[float]:
            return encode(text)

    return Packaged()


def chroma(documents: Sequence[Any], k: int) -> Any:
    """LangChain on Chroma, in memory."""
    from langchain_chroma import Chroma

    store = Chroma(f"c{uuid4().hex}", _embeddings(), collection_metadata={"hnsw:space": "cosine"})
    for start in range(0, len(documents), 1000):
        batch = documents[start : start + 1000]
        for document in batch:
            document.metadata = flat(document.metadata)
        store.add_documents(batch, ids=[document.id for document in batch])
    return store.as_retriever(search_kwargs={"k": k})


def chroma_filter(filter: Filter) -> dict[str, Any]:
    """``where`` of Chroma."""
    parts = [{one.field: {f"${one.operator}": _plain(one)}} for one in conditions(filter)]
    return parts[0] if len(parts) == 1 else {"$and": parts}


def milvus(documents: Sequence[Any], k: int, uri: str = "") -> Any:
    """LangChain on Milvus Lite, a file of its own for each build."""
    import tempfile

    from langchain_milvus import Milvus

    store = Milvus(
        _embeddings(),
        connection_args={"uri": uri or f"{tempfile.mkdtemp()}/milvus.db"},
        index_params={"index_type": "FLAT", "metric_type": "COSINE"},
        enable_dynamic_field=True,
        auto_id=False,
    )
    for document in documents:
        document.metadata = flat(document.metadata)
    store.add_documents(list(documents), ids=[document.id for document in documents])
    return store.as_retriever(search_kwargs={"k": k})


def milvus_filter(filter: Filter) -> str:
    """An expression of Milvus."""
    operators = {"eq": "==", "in": "in"}
    return " and ".join(
        f"{one.field} {operators[one.operator]} {json.dumps(_plain(one))}"
        for one in conditions(filter)
    )


# -- LlamaIndex ------------------------------------------------------------------------------------


def _llama_embedding(model: str) -> Any:
    from llama_index.core.embeddings import BaseEmbedding

    packaged = model == "packaged"

    class Own(BaseEmbedding):  # type: ignore[misc]
        def _get_text_embedding(self, text: str) -> list[float]:
            return encode(text) if packaged else trigrams(text)

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return encode_all(texts) if packaged else [trigrams(text) for text in texts]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    return Own()


def llama_index(documents: Sequence[Any], k: int, model: str = "packaged") -> Any:
    """LlamaIndex over its own vector store; a function of the filters."""
    from llama_index.core import VectorStoreIndex

    index = VectorStoreIndex(list(documents), embed_model=_llama_embedding(model))
    return lambda filters: index.as_retriever(similarity_top_k=k, filters=filters)


def llama_plain(documents: Sequence[Any], k: int, model: str = "packaged") -> Any:
    """The same without filters."""
    return llama_index(documents, k, model)(None)


def llama_filter(filter: Filter) -> Any:
    """``MetadataFilters``."""
    from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

    operators = {"eq": FilterOperator.EQ, "in": FilterOperator.IN}
    return MetadataFilters(
        filters=[
            MetadataFilter(key=one.field, value=_plain(one), operator=operators[one.operator])
            for one in conditions(filter)
        ]
    )


# -- Haystack --------------------------------------------------------------------------------------


def haystack_bm25(documents: Sequence[Any], k: int) -> Any:
    """Haystack's BM25 in memory."""
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents(list(documents))
    return InMemoryBM25Retriever(store, top_k=k)


def haystack_dense(documents: Sequence[Any], k: int) -> Any:
    """A pipeline of an embedder and a retriever in memory."""
    from haystack import Pipeline, component
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @component
    class Embedder:
        @component.output_types(embedding=list[float])  # type: ignore[untyped-decorator]
        def run(self, text: str) -> dict[str, Any]:
            return {"embedding": trigrams(text)}

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    for document in documents:
        document.embedding = trigrams(document.content)
    store.write_documents(list(documents))
    pipeline = Pipeline()
    pipeline.add_component("embedder", Embedder())
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=k))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    return pipeline


def haystack_filter(filter: Filter) -> dict[str, Any]:
    """A filter of Haystack's."""
    operators = {"eq": "==", "in": "in"}
    return {
        "operator": "AND",
        "conditions": [
            {
                "field": f"meta.{one.field}",
                "operator": operators[one.operator],
                "value": _plain(one),
            }
            for one in conditions(filter)
        ],
    }


def _plain(one: Condition) -> Any:
    return list(one.value) if isinstance(one.value, tuple) else one.value
