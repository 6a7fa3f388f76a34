"""Texts to a vector for each token: multi-vector models of sentence-transformers, which reads the
folders of PyLate and of ColBERT, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from retrieval_bench_retrievers.encoders.encoder import Encoder, Vectors, readable


class TokenEncoder(Encoder):
    """Vectors for the tokens of documents and queries, of length 1 as the models make them; its
    parameters are those of :class:`.Encoder`."""

    library_class: ClassVar[str] = "MultiVectorEncoder"
    takes_packaged: ClassVar[bool] = False
    signs: ClassVar[tuple[str, ...]] = (
        *("multi_vector_encoder", "pylate", "HF_ColBERT", "ForRetrieval"),
    )
    kind: ClassVar[str] = "a multi-vector model (of sentence-transformers, PyLate or ColBERT)"

    def token_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[Vectors]]]:
        """Vectors of documents batch by batch: positions in ``texts``, and for each the vectors of
        its tokens, float32 (tokens, dimension)."""
        for chosen in self.batches(texts):
            yield chosen, self._token_vectors("document", [texts[i] for i in chosen])

    def query_tokens(self, text: str) -> Vectors:
        """The vectors of a query's tokens, float32 (tokens, dimension)."""
        return self._token_vectors("query", [readable(text)])[0]

    def _width(self, texts: list[str]) -> int:
        return int(self._token_vectors("document", texts)[0].shape[1])

    def _token_vectors(self, role: str, texts: list[str]) -> list[Vectors]:
        found = []
        for tokens in self._called(role, texts, convert_to_numpy=True):
            made: Vectors = np.ascontiguousarray(tokens, dtype=np.float32)
            self._check_finite(made)
            found.append(made)
        return found
