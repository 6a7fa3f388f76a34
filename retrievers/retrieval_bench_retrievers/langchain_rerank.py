"""Document compressors of LangChain as rerankers; imports langchain-core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Document
from retrieval_bench.core.usage import report
from retrieval_bench_retrievers.langchain_bridge import to_langchain
from retrieval_bench_retrievers.langchain_trace import Trace
from retrieval_bench_retrievers.reranking import Reranked, Reranker, by_list


class Compressor(Reranker):
    """A ``BaseDocumentCompressor``: what it leaves out is gone, its order counts.

    Its documents have their id in ``Document.id`` and in the metadata as ``doc_id``, of which one
    must stay.
    """

    has_scores = False

    def __init__(self, made: Any, name: str) -> None:
        self._made = made
        self._name = name

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """See :meth:`.Reranker.rerank`."""
        trace = Trace()
        try:
            found = self._made.compress_documents(
                [to_langchain(document) for document in documents], text, callbacks=[trace]
            )
        finally:
            report(trace.usage)
        return by_list(self._ids(found), documents, self._name)

    def describe(self) -> Mapping[str, Any]:
        """Its name and type."""
        return {"compressor": self._name, "type": type(self._made).__name__}

    def _ids(self, found: Any) -> list[str]:
        try:
            return [str(one.id or one.metadata["doc_id"]) for one in found]
        except (AttributeError, KeyError, TypeError):
            raise ContractError(
                f"the reranker {self._name} gave documents without an id",
                accepted="a list of LangChain documents with their id, or with doc_id in the "
                "metadata",
                fix="hand on the documents that it got, or their metadata",
            ) from None
