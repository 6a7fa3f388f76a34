"""Made-up vectors in clusters as texts, and retrievers over them that need no model: a text is the
numbers of its vector, so that any retriever has them wherever it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.core.metadata import MetadataTable
from retrieval_bench.core.retriever import Capabilities, Retriever, require_index, require_k
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset

Floats = NDArray[np.float32]


def clustered(
    n: int, queries: int, *, seed: int = 7, dimension: int = 16, spread: float = 0.6
) -> tuple[Floats, Floats]:
    """Unit vectors of ``n`` documents and of queries: a cluster for each hundred documents, whose
    centres are drawn on a sphere of a quarter of the dimensions, since real ones fill few."""
    rng = np.random.default_rng(seed)
    clusters = max(8, n // 100)
    inner = max(4, dimension // 4)
    centres = rng.normal(size=(clusters, inner)) @ rng.normal(size=(inner, dimension))

    def drawn(count: int) -> Floats:
        near = centres[rng.integers(clusters, size=count)]
        made = near + spread * np.sqrt(inner) * rng.normal(size=(count, dimension))
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return np.asarray(made, dtype=np.float32)

    return drawn(n), drawn(queries)


def dataset_of(documents: Floats, queries: Floats, name: str = "clustered") -> Dataset:
    """The vectors as texts; nothing is judged."""
    return build_dataset(
        name,
        [Document(f"d{at:06}", text_of(one)) for at, one in enumerate(documents)],
        [Query(f"q{at:04}", text_of(one)) for at, one in enumerate(queries)],
        None,
    )


def text_of(vector: Floats) -> str:
    return " ".join(f"{x:.5f}" for x in vector.tolist())


def vector_of(text: str) -> Floats:
    return np.array(text.split(), dtype=np.float32)


class Probing(Retriever):
    """Looks into the ``probes`` nearest of its lists, which lie around some of its documents; all
    ways to search share one index.

    Args:
        shares: false = it does not say how to search in another way over the same index.
    """

    name = "probing"

    def __init__(self, *, probes: int = 4, exact: bool = False, shares: bool = True) -> None:
        self.probes, self.exact, self.shares = probes, exact, shares
        self.indexed = 0
        self._fields: tuple[str, ...] = ()
        self._ids: list[str] | None = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(exact=False, filters=True, score_tolerance=1e-6)

    def use_filters(self, fields: Sequence[str]) -> None:
        self._fields = tuple(fields)

    def index(self, documents: Iterable[Document]) -> None:
        held = sorted(documents, key=lambda one: one.id)
        self._ids = [one.id for one in held]
        self._vectors = np.stack([vector_of(one.text) for one in held])
        self._table = MetadataTable(self._fields)
        for one in held:
            self._table.add(one.metadata)
        self._centres = self._vectors[:: max(1, len(held) // 32)]
        self._list_of = (self._vectors @ self._centres.T).argmax(axis=1)
        self.indexed += 1

    def searching(self, changed: Mapping[str, Any]) -> Probing | None:
        if not self.shares or set(changed) - {"probes", "exact"}:
            return None
        other = copy(self)
        vars(other).update(changed)
        return other

    def search(self, query: Query, k: int) -> Ranking:
        require_k(k)
        require_index(self._ids is not None, self)
        assert self._ids is not None
        asked = vector_of(query.text)
        fits = np.ones(len(self._ids), dtype=bool)
        if query.filter is not None:
            fits = self._table.mask(query.filter)
        if not self.exact:
            near = np.argsort(-(self._centres @ asked))[: self.probes]
            fits = fits & np.isin(self._list_of, near)
        rows = np.flatnonzero(fits)
        scores = (self._vectors[rows] @ asked).astype(np.float64)
        order = np.lexsort((rows, -scores))[:k]
        return Ranking([self._ids[rows[at]] for at in order.tolist()], scores[order])


def without_model(monkeypatch: pytest.MonkeyPatch, dimension: int = 16) -> None:
    """Let ``dense`` and engines take texts for their vectors."""
    from retrieval_bench_retrievers.dense import dense
    from retrieval_bench_retrievers.engines import engine, loading

    for module in (dense, engine, loading):
        monkeypatch.setattr(module, "Encoder", lambda *_, **__: _reader(dimension))


def _reader(dimension: int) -> Any:
    from retrieval_bench_retrievers.encoders.encoder import Encoder
    from retrieval_bench_retrievers.encoders.packaged import SENTENCE_TRANSFORMERS

    class Reader(Encoder):
        """Reads vectors out of texts."""

        def __init__(self) -> None:
            self.name, self.backend, self.engine = "numbers", "torch", SENTENCE_TRANSFORMERS
            self.max_seq_length, self.dimension = None, dimension
            self.content_hash, self.prompts = None, {}

        @property
        def positions(self) -> None:
            return None

        def load(self) -> None:
            return

        def close(self) -> None:
            return

        def document_batches(
            self, texts: Sequence[str], size: int | None = None
        ) -> Iterator[tuple[list[int], Floats]]:
            yield list(range(len(texts))), np.stack([vector_of(text) for text in texts])

        def encode_query(self, text: str) -> Floats:
            return vector_of(text)[np.newaxis]

        def identity(self) -> None:
            return None

        def describe(self) -> dict[str, Any]:
            return {"model": self.name}

        def tokenizer(self) -> None:
            return None

        def languages(self) -> list[str]:
            return []

        def missing_prompts(self) -> list[Any]:
            return []

    return Reader()
