"""Texts to weights of terms: learned sparse models of sentence-transformers, such as SPLADE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from retrieval_bench_retrievers.encoders.encoder import Encoder, readable


class TermEncoder(Encoder):
    """Weights of the terms of a vocabulary, most of them 0; its parameters are those of
    :class:`.Encoder`."""

    library_class: ClassVar[str] = "SparseEncoder"
    takes_packaged: ClassVar[bool] = False
    signs: ClassVar[tuple[str, ...]] = ("sparse_encoder", "ForMaskedLM")
    kind: ClassVar[str] = "a sparse encoder (of sentence-transformers, such as SPLADE)"

    def term_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Any]]:
        """Weights of documents batch by batch: positions in ``texts``, and a sparse array of scipy,
        float32 (texts, terms), in rows."""
        for chosen in self.batches(texts):
            yield chosen, self._weights("document", [texts[i] for i in chosen])

    def query_terms(self, text: str) -> dict[int, float]:
        """The terms of a query with their weights."""
        row = self._weights("query", [readable(text)])
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def _width(self, texts: list[str]) -> int:
        return int(self._weights("document", texts).shape[1])

    def _weights(self, role: str, texts: list[str]) -> Any:
        from scipy.sparse import csr_array

        found = self._called(role, texts, convert_to_tensor=True, convert_to_sparse_tensor=True)
        found = found.coalesce().cpu()
        values = found.values().float().numpy()
        self._check_finite(values)
        made = csr_array((values, found.indices().numpy()), shape=tuple(found.shape))
        made.eliminate_zeros()
        made.sort_indices()
        return made
