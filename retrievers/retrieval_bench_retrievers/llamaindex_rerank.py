"""Node postprocessors of LlamaIndex as rerankers; imports llama-index-core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import NodeWithScore

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.llamaindex_bridge import to_node
from retrieval_bench_retrievers.reranking import Reranked, Reranker, by_list


class Postprocessor(Reranker):
    """A ``BaseNodePostprocessor``: what it leaves out is gone, its order counts."""

    has_scores = False

    def __init__(self, made: Any, name: str) -> None:
        self._made = made
        self._name = name

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """See :meth:`.Reranker.rerank`."""
        given = [None] * len(documents) if scores is None else scores
        nodes = [
            NodeWithScore(node=to_node(document), score=None if score is None else float(score))
            for document, score in zip(documents, given, strict=True)
        ]
        found = self._made.postprocess_nodes(nodes, query_str=text)
        return by_list(self._ids(found), documents, self._name)

    def describe(self) -> Mapping[str, Any]:
        """Its name and type."""
        return {"postprocessor": self._name, "type": type(self._made).__name__}

    def _ids(self, found: Any) -> list[str]:
        try:
            return [str(one.node.node_id) for one in found]
        except (AttributeError, TypeError):
            raise ContractError(
                f"the reranker {self._name} gave what is no list of nodes",
                accepted="a list of NodeWithScore",
                fix="return the nodes that it got",
            ) from None
