"""A hybrid whose dense leg loses what it was told to lose, at each step from an exact search on:
made-up vectors, of which so many queries are lost at one step and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench_retrievers.dense import dense, faiss_index
from retrieval_bench_retrievers.encoders.encoder import Encoder, Vectors
from retrieval_bench_retrievers.encoders.packaged import SENTENCE_TRANSFORMERS
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid

STEPS = ("tokens", "dimensions", "int8", "index", "filter", "depth")
QUERIES, OTHERS, DEPTH = 100, 80, 10
LOST_BY_DEPTH = 1 - 1 / np.log2(3)
"""nDCG of a document that falls from the first rank to the second one; others fall out."""
_PLAIN, _FINE, _KEPT, _ALL = slice(0, 24), slice(24, 32), 32, 64


class Planted:
    """What is lost where, and the collection with it.

    Args:
        lost: how many queries at each step.
    """

    def __init__(self, lost: Mapping[str, int], seed: int) -> None:
        rng = np.random.default_rng(seed)
        order = iter(rng.permutation(QUERIES).tolist())
        self.lost = {step: {next(order) for _ in range(n)} for step, n in lost.items()}
        self.queries, self.documents = _directions(rng, QUERIES), {}
        others = _directions(rng, OTHERS)
        for at in self.lost.get("dimensions", ()):
            self.queries[at] = 0
            self.queries[at, _KEPT:] = _unit(rng, _ALL - _KEPT)
        for at in self.lost.get("int8", ()):
            self.queries[at] = 0
            self.queries[at, _FINE] = np.repeat(_unit(rng, 4), 2)
        for at in self.lost.get("depth", ()):
            self.queries[at] = others[at % OTHERS]
        for at, vector in enumerate(self.queries):
            nowhere = at in self.lost.get("depth", ())
            self.documents[f"r{at:03}"] = vector * (not nowhere)
        self.documents |= {f"a{at:03}": vector for at, vector in enumerate(others)}
        # They widen the range of eight dimensions until 8 bits cannot tell their numbers apart, and
        # are as far from every query as from any other.
        for name, sign in (("z0", 1), ("z1", -1)):
            self.documents[name] = np.zeros(_ALL, np.float32)
            self.documents[name][_FINE] = np.tile([1000 * sign, -1000 * sign], 4)

    def expected(self, step: str) -> float:
        """The difference in nDCG@10 that the step makes."""
        size = LOST_BY_DEPTH if step == "depth" else 1.0
        return -size * len(self.lost.get(step, ())) / QUERIES

    def dataset(self) -> Dataset:
        """Filters are those of the queries that lose by theirs, and of as many others."""
        filtered = {at for at in range(QUERIES) if at % 9 == 0} - self.lost.get("index", set())
        filtered |= self.lost.get("filter", set())
        where = parse_filter({"place": {"lt": 1}})
        documents = [
            Document(name, name, metadata={"place": int(name[0] == "z")}) for name in self.documents
        ]
        queries = [
            Query(f"q{at:03}", f"q{at:03}", filter=where if at in filtered else None)
            for at in range(QUERIES)
        ]
        qrels = {f"q{at:03}": {f"r{at:03}": 1} for at in range(QUERIES)}
        return build_dataset("planted", documents, queries, qrels)

    def retriever(self, monkeypatch: pytest.MonkeyPatch) -> Hybrid:
        """The hybrid, as it is served."""
        whole = faiss_index._Built.nearest
        names = sorted(self.documents)

        def leaking(index: Any, query: Vectors, k: int, among: Any = None) -> faiss_index.Nearest:
            scores, rows = whole(index, query, k, among)
            if index._settings.kind == "flat":
                return scores, rows
            step = "index" if among is None else "filter"
            left_out = {f"r{at:03}" for at in self.lost.get(step, ())}
            kept = np.array([names[row] not in left_out for row in rows.tolist()], dtype=bool)
            return scores[kept], rows[kept]

        monkeypatch.setattr(faiss_index, "SMALLEST_GRAPH", 10)
        monkeypatch.setattr(faiss_index._Built, "nearest", leaking)
        monkeypatch.setattr(dense, "Encoder", lambda *_, **__: MadeUp(self))
        served = dense.Dense(
            similarity="dot",
            dimensions=_KEPT,
            precision="int8",
            index={"type": "ivf", "nlist": 4, "nprobe": 4},
            cache=False,
        )
        named = {f"q{at:03}": [f"r{at:03}"] for at in self.lost.get("depth", ())}
        return Hybrid(legs=[Named(named), served], depth=DEPTH)


class MadeUp(Encoder):
    """Gives the vectors of what was planted; reads 16 tokens, and could read 64."""

    def __init__(self, planted: Planted) -> None:
        self._planted = planted
        self.name, self.backend, self.engine = "made-up", "torch", SENTENCE_TRANSFORMERS
        self.max_seq_length, self.dimension, self.content_hash = 16, _ALL, None

    @property
    def positions(self) -> int:
        return 64

    def load(self) -> None:
        return

    def close(self) -> None:
        return

    def reading(self, tokens: int) -> MadeUp:
        other = copy(self)
        other.max_seq_length = tokens
        return other

    def document_batches(
        self, texts: Sequence[str], size: int | None = None
    ) -> Iterator[tuple[list[int], Vectors]]:
        cut = set() if self.max_seq_length == 64 else self._planted.lost.get("tokens", set())
        found = [
            self._planted.documents[text] * (not (text[0] == "r" and int(text[1:]) in cut))
            for text in texts
        ]
        yield list(range(len(texts))), np.stack(found).astype(np.float32)

    def encode_query(self, text: str) -> Vectors:
        at = int(text[1:])
        return self._planted.queries[at : at + 1].copy()

    def describe(self) -> dict[str, Any]:
        return {"model": self.name}

    def tokenizer(self) -> None:
        return None

    def languages(self) -> list[str]:
        return []

    def missing_prompts(self) -> list[Any]:
        return []


class Named(Retriever):
    """A leg that finds what it was told of, whatever the filter."""

    name = "named"

    def __init__(self, lists: Mapping[str, Sequence[str]]) -> None:
        self._lists = lists

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=True, filters=True)

    def search(self, query: Query, k: int) -> Ranking:
        require_k(k)
        found = list(self._lists.get(query.text, ()))
        return Ranking(found, [1.0] * len(found))


def _unit(rng: np.random.Generator, n: int) -> NDArray[np.float32]:
    vector = rng.normal(size=n)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def _directions(rng: np.random.Generator, n: int) -> NDArray[np.float32]:
    made = np.zeros((n, _ALL), np.float32)
    for row in made:
        row[_PLAIN] = _unit(rng, 24)
    return made
