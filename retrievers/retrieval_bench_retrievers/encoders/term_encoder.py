"""Texts to weights of terms: learned sparse models of sentence-transformers, such as SPLADE."""

from __future__ import annotations

from typing import Any, ClassVar

from retrieval_bench_retrievers.encoders.encoder import Encoder


class TermEncoder(Encoder):
    """Weights of the terms of a vocabulary, most of them 0; its parameters are those of
    :class:`.Encoder`."""

    library_class: ClassVar[str] = "SparseEncoder"
    takes_packaged: ClassVar[bool] = False
    signs: ClassVar[tuple[str, ...]] = ("sparse_encoder", "ForMaskedLM")
    kind: ClassVar[str] = "a sparse encoder (of sentence-transformers, such as SPLADE)"

    def _encode(self, role: str, texts: list[str]) -> Any:
        """A sparse array of scipy, float32 (texts, terms), in rows."""
        from scipy.sparse import csr_array

        found = self._called(role, texts, convert_to_tensor=True, convert_to_sparse_tensor=True)
        found = found.coalesce().cpu()
        values = found.values().float().numpy()
        self._check_finite(values)
        made = csr_array((values, found.indices().numpy()), shape=tuple(found.shape))
        made.eliminate_zeros()
        made.sort_indices()
        return made
