"""A retriever that does a known amount of work, to try the measuring itself on any machine."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query, Ranking

_WIDTH = 384


class Probe(Retriever):
    """Multiplies a vector with a matrix, as exhaustive search does; some queries take longer.

    Args:
        rows: of the matrix, for the quickest query; the slowest takes twice as many.
    """

    def __init__(self, rows: int = 4000) -> None:
        self.rows = rows
        self.ids: list[str] = []

    def index(self, documents: Iterable[Document]) -> None:
        rng = np.random.default_rng(0)
        self.ids = sorted(document.id for document in documents)
        self.vectors = rng.standard_normal((2 * self.rows, _WIDTH), dtype=np.float32)
        self.query = rng.standard_normal(_WIDTH, dtype=np.float32)

    def rows_for(self, query_id: str) -> int:
        """Return how many rows a query takes."""
        share = zlib.crc32(query_id.encode()) % 256 / 255
        return int(self.rows * (1 + share))

    def search(self, query: Query, k: int) -> Ranking:
        scores = self.vectors[: self.rows_for(query.id)] @ self.query
        best = np.sort(np.argpartition(-scores, k)[:k]) % max(1, len(self.ids))
        return Ranking(tuple(dict.fromkeys(self.ids[at] for at in best.tolist())))
