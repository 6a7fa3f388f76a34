"""The LlamaIndex side of the adapter; imports llama-index-core, so it is imported where needed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores.types import VectorStoreQueryMode

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.libraries.library import (
    Call,
    Engine,
    OwnScores,
    described,
    metadata_for,
)

_METHODS = ("retrieve", "aretrieve")


def to_node(document: Document) -> TextNode:
    """A node of ``document``; its metadata are for the reader and for filters, and are not
    embedded, so that every engine of a comparison reads the same text."""
    metadata = metadata_for(document)
    return TextNode(
        id_=document.id,
        text=document.contents,
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=list(metadata),
    )


class LlamaIndex(OwnScores):
    """See :class:`retrieval_bench_retrievers.libraries.llamaindex.LlamaIndexRetriever`.

    Args:
        name: of the factory, for messages.
        id_key: the metadata key that holds the document id; None = the node's own.
        scores: whether scores are wanted.
        filtered: factories return a function of the filters.
    """

    hit_type = NodeWithScore
    text_name = "text"
    accepted = "a list of NodeWithScore"
    own_place = "ref_doc_id or node_id of the node"
    no_id_advice = "give the nodes ids, or name the metadata key that holds the id: id_key"
    unknown_id_advice = (
        "keep the ids of the nodes that the factory gets (VectorStoreIndex(nodes)); a splitter "
        "sets ref_doc_id, and whatever drops that keeps the metadata: use `id_key: doc_id`"
    )

    def __init__(self, name: str, id_key: str | None, scores: bool, filtered: bool) -> None:
        super().__init__(name, id_key, scores=scores)
        self._filtered = filtered

    def document(self, document: Document) -> Any:
        """See :func:`to_node`."""
        return to_node(document)

    def is_engine(self, made: Any) -> bool:
        """A retriever; with a filter, a function that makes one."""
        if self._filtered:
            return callable(made) and not isinstance(made, BaseRetriever)
        return isinstance(made, BaseRetriever)

    def advice(self, made: Any) -> str:
        """Names how an object of the library becomes a retriever."""
        if self._filtered:
            return "return lambda filters: index.as_retriever(similarity_top_k=k, filters=filters)"
        if isinstance(made, BaseIndex):
            return "hand over index.as_retriever(similarity_top_k=k)"
        if isinstance(made, BaseQueryEngine) or hasattr(made, "chat"):
            return (
                "hand over the retriever that it asks: index.as_retriever(similarity_top_k=k) in "
                "place of index.as_query_engine() or as_chat_engine()"
            )
        return "end the factory with `return`" if made is None else "return the retriever itself"

    def engine(self, made: Any, *, filtered: bool) -> Engine:
        """A retriever as it is, or one for each filter."""
        if not filtered:
            return LlamaIndexEngine(made)
        unfiltered = made(None)
        if not isinstance(unfiltered, BaseRetriever):
            raise ContractError(
                f"the function that {self.name} returned gave {described(unfiltered)} for no "
                "filter",
                accepted="a LlamaIndex retriever (BaseRetriever)",
                fix=self.advice(unfiltered),
            )
        return FilteredEngine(made, unfiltered)

    def id_of(self, hit: Any) -> Any:
        """The document that the node is a part of, else the node itself."""
        node = hit.node
        if self.id_key is not None:
            return node.metadata.get(self.id_key)
        return node.ref_doc_id or node.node_id

    def answer_advice(self, answer: Any) -> str:
        """Advice for an object that answers in words and so is no retriever."""
        return "return the list of nodes with their scores"


class LlamaIndexEngine(Engine):
    """A retriever."""

    methods = _METHODS

    def call(self, asked: Any, k: int, filters: Any) -> Call:
        """The retriever, with the text."""
        return Call(self.made, (asked,))

    def deeper(self, k: int) -> Engine | None:
        """Make the engine deeper as :func:`_deeper` says."""
        made = _deeper(self.made, k)
        return None if made is None else LlamaIndexEngine(made)


class FilteredEngine(Engine):
    """A function from filters to a retriever over one index."""

    methods = _METHODS

    def __init__(self, make: Callable[[Any], Any], unfiltered: Any, k: int | None = None) -> None:
        super().__init__(unfiltered)
        self._make = make
        self._k = k

    def call(self, asked: Any, k: int, filters: Any) -> Call:
        """The retriever, made where there is a filter, with the text."""
        return Call(self._with(filters), (asked,))

    def deeper(self, k: int) -> Engine | None:
        """Make the engine deeper as :func:`_deeper` says of the retriever without a filter."""
        made = _deeper(self.made, k)
        return None if made is None else FilteredEngine(self._make, made, k)

    def _with(self, filters: Any) -> Any:
        if filters is None:
            return self.made
        made = self._make(filters)
        return made if self._k is None else _deeper(made, self._k) or made


def _deeper(retriever: Any, k: int) -> Any:
    """``retriever`` over the same index but for ``k`` hits; None where that cannot be known.

    Only a plain vector search whose one number is similarity_top_k is sure to be what the factory
    would build.
    """
    if type(retriever) is not VectorIndexRetriever:
        return None
    plain = retriever._vector_store_query_mode == VectorStoreQueryMode.DEFAULT
    if not plain or retriever._sparse_top_k is not None or retriever._hybrid_top_k is not None:
        return None
    other = copy.copy(retriever)
    other.similarity_top_k = k
    return other
