"""Learned sparse retrieval: a model gives texts weights of terms, and the score of a document is
the inner product with those of the query. Formal, Piwowarski & Clinchant (2021), SPLADE, SIGIR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from retrieval_bench.core.metadata import MetadataTable
from retrieval_bench.core.retriever import Capabilities, Retriever, require_index, require_k
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_retrievers.encoders.term_encoder import TermEncoder
from retrieval_bench_retrievers.encoders.texts import texts_by_id
from retrieval_bench_retrievers.lexical.inverted_index import InvertedIndex, Postings


class LearnedSparse(Retriever):
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

    def __init__(
        self,
        model: str,
        *,
        prompts: Mapping[str, str] | None = None,
        device: str = "auto",
        batch_size: int = 32,
        max_seq_length: int | None = None,
    ) -> None:
        self._encoder = TermEncoder(
            model,
            prompts=prompts,
            device=device,
            batch_size=batch_size,
            max_seq_length=max_seq_length,
        )
        self._index: InvertedIndex | None = None
        self._known = np.empty(0, dtype=bool)
        self._ids: list[str] = []
        self._facts: dict[str, Any] = {}
        self._fields: tuple[str, ...] = ()
        self._metadata = MetadataTable(())

    @property
    def capabilities(self) -> Capabilities:
        """Exact; weights depend a little on what a text was encoded together with."""
        return Capabilities(exact=True, score_tolerance=1e-4, filters=True)

    def use_filters(self, fields: Sequence[str]) -> None:
        """Keep these fields of the documents."""
        self._fields = tuple(fields)
        self._index = None

    def prepare(self) -> None:
        """Load the model."""
        self._encoder.load()

    def index(self, documents: Iterable[Document]) -> None:
        """Encode the documents and turn their weights into postings.

        Raises:
            ContractError: two documents of one id.
            ModelError: the model cannot be loaded, or is no sparse encoder.
        """
        from scipy.sparse import csr_array, vstack

        self._index = None
        self._encoder.load()
        self._ids, texts, self._metadata = texts_by_id(documents, self._fields)
        # Equal texts share their weights, so that they tie.
        row_of: dict[str, int] = {}
        own = [row_of.setdefault(text, len(row_of)) for text in texts]
        rows: list[int] = []
        blocks = [csr_array((0, self._encoder.dimension), dtype=np.float32)]
        for chosen, block in self._encoder.term_batches(list(row_of)):
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
            Postings(len(texts), starts, weights.indices.astype(np.int32), weights.data)
        )
        per_text = weights.nnz / len(texts) if texts else None
        self._facts = {"documents": len(texts), "terms_per_document": per_text}

    def search(self, query: Query, k: int) -> Ranking:
        """The ``k`` documents with the greatest products; stages ``encode`` and ``sparse``, and
        ``filter`` of a query that has one."""
        require_k(k)
        require_index(self._index is not None, self)
        assert self._index is not None
        begin = perf_counter_ns()
        allowed = None if query.filter is None else self._metadata.mask(query.filter)
        filtered = perf_counter_ns()
        if not self._ids or not query.text.strip() or (allowed is not None and not allowed.any()):
            return Ranking([], [])
        terms = self._encoder.query_terms(query.text)
        known = {term: weight for term, weight in terms.items() if self._known[term]}
        encode = perf_counter_ns()
        ids: list[str] = []
        scores = np.empty(0)
        if known:
            places, scores = self._index.search(known, k, allowed)
            ids = [self._ids[at] for at in places.tolist()]
        stages = {"encode": encode - filtered, "sparse": perf_counter_ns() - encode}
        if allowed is not None:
            stages["filter"] = filtered - begin
        return Ranking(ids, scores, stages)

    def describe(self) -> Mapping[str, Any]:
        """The model, and how many terms it gives a document."""
        return {**self._encoder.describe(), **self._facts}

    def close(self) -> None:
        """Let go of the model and the index."""
        self._index = None
        self._encoder.close()
