"""ms-marco-MiniLM-L-12-v2 with int8 weights on onnxruntime: a cross-encoder without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core.types import Document
from retrieval_bench.measure.threads import thread_limit
from retrieval_bench_retrievers.encoders.encoder import readable, versions_of, whole_number
from retrieval_bench_retrievers.encoders.onnx_model import OnnxGraph
from retrieval_bench_retrievers.encoders.packaged import MINILM_L12_RERANKER
from retrieval_bench_retrievers.rerank.reranking import Reranked, Reranker, by_score


class MiniLMReranker(Reranker):
    """Reads query and document together, one pair at a time, and orders by what it says of each.

    Args:
        max_length: tokens that are read of a pair; what is too many is cut off the longer text.

    Raises:
        ConfigError: ``max_length`` is no whole number.
        MissingDependencyError: the package with the weights is not installed.
        ModelError: it has another version, or the weights are not the known ones.
    """

    pointwise = True

    def __init__(self, *, max_length: int = 512) -> None:
        self._length = whole_number(max_length, "max_length", where="reranker")
        MINILM_L12_RERANKER.check_there()
        self._graph: OnnxGraph | None = None

    def prepare(self) -> None:
        """Load the model, unless it is loaded."""
        if self._graph is None:
            files = MINILM_L12_RERANKER.paths()
            self._graph = OnnxGraph(files["weights"], files["tokenizer"], self._length)

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """See :meth:`.Reranker.rerank`."""
        self.prepare()
        assert self._graph is not None  # prepare has opened it
        query, threads = readable(text), thread_limit()
        values = [
            float(self._graph.run((query, readable(document.contents)), threads)[0])
            for document in documents
        ]
        return by_score(values, documents, MINILM_L12_RERANKER.name)

    def describe(self) -> Mapping[str, Any]:
        """The model with its hash, what it reads, and what computes it."""
        return {
            "model": MINILM_L12_RERANKER.name,
            "model_sha256": MINILM_L12_RERANKER.content_hash,
            "device": "cpu",
            "max_length": self._length,
            "backend": MINILM_L12_RERANKER.engine.name,
            "versions": versions_of(MINILM_L12_RERANKER.engine.libraries),
        }

    def close(self) -> None:
        """Let go of the model."""
        self._graph = None
