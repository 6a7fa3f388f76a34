"""Document compressors of LangChain as rerankers; imports langchain-core."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.calls.usage import report
from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.libraries.langchain_bridge import to_langchain
from retrieval_bench_retrievers.libraries.langchain_trace import Trace
from retrieval_bench_retrievers.rerank.reranking import ListReranker


class Compressor(ListReranker):
    """A ``BaseDocumentCompressor``.

    Its documents have their id in ``Document.id`` and in the metadata as ``doc_id``, of which one
    must stay.
    """

    def _ids(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> list[str]:
        trace = Trace()
        try:
            kept = self._made.compress_documents(
                [to_langchain(document) for document in documents], text, callbacks=[trace]
            )
        finally:
            report(trace.usage)
        try:
            return [str(item.id or item.metadata["doc_id"]) for item in kept]
        except (AttributeError, KeyError, TypeError):
            raise ContractError(
                f"the reranker {self._name} gave documents without an id",
                accepted="a list of LangChain documents with their id, or with doc_id in the "
                "metadata",
                fix="hand on the documents that it got, or their metadata",
            ) from None
