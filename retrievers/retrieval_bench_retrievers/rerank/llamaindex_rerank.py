"""Node postprocessors of LlamaIndex as rerankers; imports llama-index-core."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.libraries.llamaindex_bridge import to_node
from retrieval_bench_retrievers.rerank.reranking import ListReranker


class Postprocessor(ListReranker):
    """A ``BaseNodePostprocessor``."""

    def _ids(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> list[str]:
        given = [None] * len(documents) if scores is None else scores
        nodes = [
            NodeWithScore(node=to_node(document), score=None if score is None else float(score))
            for document, score in zip(documents, given, strict=True)
        ]
        kept = self._made.postprocess_nodes(nodes, query_str=text)
        try:
            return [str(item.node.node_id) for item in kept]
        except (AttributeError, TypeError):
            raise ContractError(
                f"the reranker {self._name} gave what is no list of nodes",
                accepted="a list of NodeWithScore",
                fix="return the nodes that it got",
            ) from None
