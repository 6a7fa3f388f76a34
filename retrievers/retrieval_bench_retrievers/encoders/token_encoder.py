"""Texts to a vector for each token: multi-vector models of sentence-transformers, which reads the
folders of PyLate and of ColBERT, too."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from retrieval_bench_retrievers.encoders.encoder import Encoder, Vectors


class TokenEncoder(Encoder):
    """Vectors for the tokens of documents and queries, of length 1 as the models make them; its
    parameters are those of :class:`.Encoder`."""

    library_class: ClassVar[str] = "MultiVectorEncoder"
    takes_packaged: ClassVar[bool] = False
    signs: ClassVar[tuple[str, ...]] = (
        *("multi_vector_encoder", "pylate", "HF_ColBERT", "ForRetrieval"),
    )
    kind: ClassVar[str] = "a multi-vector model (of sentence-transformers, PyLate or ColBERT)"

    def _encode(self, role: str, texts: list[str]) -> list[Vectors]:
        """For each text the vectors of its tokens, float32 (tokens, dimension)."""
        found = []
        for tokens in self._called(role, texts, convert_to_numpy=True):
            made: Vectors = np.ascontiguousarray(tokens, dtype=np.float32)
            self._check_finite(made)
            found.append(made)
        return found
