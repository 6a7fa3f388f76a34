"""The vectors of ``dense`` as other processes make them, and as ``index`` finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrieval_bench_retrievers.encoders import encoder as encoders
from retrieval_bench_retrievers.encoders.encoder import Encoder, Vectors, readable
from retrieval_bench_retrievers.encoders.packaged import SENTENCE_TRANSFORMERS
from retrieval_bench_retrievers.encoders.vectors import DocumentVectors
from retrieval_bench_retrievers.index_files import code_hash


@dataclass(frozen=True, slots=True)
class DenseEncoder:
    """See :class:`retrieval_bench.core.retriever.DocumentEncoder`."""

    encoder: Encoder
    kept: DocumentVectors
    compared: int | None
    normalized: bool

    @property
    def dimension(self) -> int:
        """That of the model."""
        return self.encoder.dimension

    def load(self) -> None:
        """Load the model."""
        self.encoder.load()

    def close(self) -> None:
        """Let go of it."""
        self.encoder.close()

    def identity(self) -> Mapping[str, Any] | None:
        """That of the cache, and what only moves the last bits: the batch, the code, the device."""
        model = self.encoder.identity()
        if model is None:
            return None
        code = code_hash(encoders.__file__)
        return {**model, "batch": self._size, "code": code, **self.encoder.arithmetic()}

    def documents(self, texts: Sequence[str]) -> Vectors:
        """One row for each text; what encodes each alone is given each alone, so that it takes one
        thread."""
        row_of: dict[str, int] = {}
        rows = [row_of.setdefault(readable(text), len(row_of)) for text in texts]
        vectors = np.empty((len(row_of), self.dimension), np.float32)
        for chosen, batch in self.encoder.document_batches(list(row_of), self._size):
            vectors[chosen] = batch
        return vectors[rows]

    def query(self, text: str) -> Vectors:
        """The vector of a query."""
        made: Vectors = self.encoder.encode_query(text)[0]
        return made

    def keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Put them into the cache."""
        row_of: dict[str, int] = {}
        for row, text in enumerate(texts):
            row_of.setdefault(readable(text), row)
        self.kept.put([*row_of], vectors[[*row_of.values()]])

    @property
    def _size(self) -> int:
        together = self.encoder.engine is SENTENCE_TRANSFORMERS
        return self.encoder.batch_size if together else 1
