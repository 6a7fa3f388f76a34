"""Late interaction as a reranker: MaxSim of the query with the token vectors of the documents,
which are encoded once, before any query is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.dense.maxsim import TokenVectors, checked_precision
from retrieval_bench_retrievers.encoders.encoded import texts_by_id
from retrieval_bench_retrievers.encoders.token_encoder import TokenEncoder
from retrieval_bench_retrievers.rerank.reranking import Reranked, Reranker, by_score


class MaxSimReranker(Reranker):
    """Orders documents by the sum, over the tokens of the query, of the greatest similarity that
    any token of the document has.

    Args:
        model: the name or folder of a multi-vector model.
        precision: of the vectors that are kept, ``float32`` or ``int8``.
        params: as of :class:`.TokenEncoder`.

    Raises:
        ConfigError, MissingDependencyError, ModelError: as of :class:`.TokenEncoder`.
    """

    pointwise = True

    def __init__(self, *, model: str, precision: str = "float32", **params: Any) -> None:
        self._precision = checked_precision(precision, "reranker maxsim")
        self._encoder = TokenEncoder(model, **params)
        self._rows: dict[str, int] = {}
        self._vectors: TokenVectors | None = None

    def prepare(self) -> None:
        """Load the model, unless it is loaded."""
        self._encoder.load()

    def index(self, documents: Iterable[Document]) -> None:
        """Encode the documents that may come to be reranked."""
        self._encoder.load()
        ids, texts, _ = texts_by_id(documents, ())
        self._rows = {doc_id: row for row, doc_id in enumerate(ids)}
        self._vectors = TokenVectors.of(self._encoder, texts, self._precision)

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """See :meth:`.Reranker.rerank`."""
        if self._vectors is None:
            self.index(documents)
        assert self._vectors is not None  # index has made them
        rows = np.array([self._rows[document.id] for document in documents], dtype=np.intp)
        values = self._vectors.scores(self._encoder.encode_query(text)[0], rows)
        return by_score(values, documents, "maxsim")

    def describe(self) -> Mapping[str, Any]:
        """The model, and what its vectors take."""
        kept = {} if self._vectors is None else self._vectors.describe()
        return {**self._encoder.describe(), "precision": self._precision, **kept}

    def close(self) -> None:
        """Let go of the model and the vectors."""
        self._vectors = None
        self._encoder.close()
