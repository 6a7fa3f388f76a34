"""Learned sparse retrieval: a model gives texts weights of terms, and the score of a document is
the inner product with those of the query. Formal, Piwowarski & Clinchant (2021), SPLADE, SIGIR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.encoders.encoded import Encoded
from retrieval_bench_retrievers.encoders.term_encoder import TermEncoder
from retrieval_bench_retrievers.lexical.inverted_index import InvertedIndex, Postings


class LearnedSparse(Encoded[TermEncoder]):
    """Exhaustive search over the term weights of a sparse encoder, by an inverted index; documents
    that share no term with the query are not returned.

    Args:
        model: the name or folder of a sparse encoder: see :class:`.TermEncoder`.
        prompts, device, batch_size, max_seq_length: as of ``dense``.

    Raises:
        ConfigError: a parameter that cannot be used.
        MissingDependencyError: the extra ``dense`` is not installed.
        ModelError: no such folder.
    """

    stage = "sparse"

    def __init__(
        self,
        model: str,
        *,
        prompts: Mapping[str, str] | None = None,
        device: str = "auto",
        batch_size: int = 32,
        max_seq_length: int | None = None,
    ) -> None:
        encoder = TermEncoder(
            model,
            prompts=prompts,
            device=device,
            batch_size=batch_size,
            max_seq_length=max_seq_length,
        )
        super().__init__(encoder)
        self._known = np.empty(0, dtype=bool)
        self._facts: dict[str, Any] = {}

    @property
    def capabilities(self) -> Capabilities:
        """Exact; weights depend a little on what a text was encoded together with."""
        return Capabilities(exact=True, score_tolerance=1e-4, filters=True)

    def index(self, documents: Iterable[Document]) -> None:
        """Encode the documents and turn their weights into postings.

        Raises:
            ContractError: two documents of one id.
            ModelError: the model cannot be loaded, or is no sparse encoder.
        """
        from scipy.sparse import csr_array, vstack

        texts = self._read(documents)
        # Equal texts share their weights, so that they tie.
        row_of: dict[str, int] = {}
        own = [row_of.setdefault(text, len(row_of)) for text in texts]
        rows: list[int] = []
        blocks = [csr_array((0, self._encoder.dimension), dtype=np.float32)]
        for chosen, block in self._encoder.document_batches(list(row_of)):
            rows += chosen
            blocks.append(block)
            if self.progress is not None:
                self.progress(len(rows), len(row_of))
        distinct = vstack(blocks, format="csr")[np.argsort(rows, kind="stable")]
        weights = distinct[own].tocsc()
        weights.sort_indices()
        starts = weights.indptr.astype(np.int64)
        self._known = np.diff(starts) > 0
        self._index = InvertedIndex(
            Postings(len(texts), starts, weights.indices.astype(np.int32), weights.data.__getitem__)
        )
        per_text = weights.nnz / len(texts) if texts else None
        self._facts = {"documents": len(texts), "terms_per_document": per_text}

    def _encoded(self, text: str) -> Mapping[int, float]:
        row = self._encoder.encode_query(text)
        terms = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        return {term: weight for term, weight in terms if self._known[term]}

    def _best(
        self, asked: Mapping[int, float], k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[list[str], NDArray[np.float64]]:
        if not asked:
            return [], np.empty(0)
        places, scores = self._index.search(asked, k, allowed)
        return [self._ids[at] for at in places.tolist()], scores

    def describe(self) -> Mapping[str, Any]:
        """The model, and how many terms it gives a document."""
        return {**self._encoder.describe(), **self._facts}
