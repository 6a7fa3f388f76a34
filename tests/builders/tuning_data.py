"""A small dataset and retrievers for the tests of tuning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from retrieval_bench.core.retriever import Capabilities, RankingLike, Retriever
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset

WORDS = [f"word{i}" for i in range(40)]


def dataset(
    split: str = "test", *, n_queries: int = 24, seed: int = 0, unit_key: str | None = None
) -> Dataset:
    """60 documents of a few words each, so that scores tie; queries are some of their words. The
    documents are the same for every split and seed."""
    rng = np.random.default_rng(99)
    documents = []
    for i in range(60):
        words = rng.choice(WORDS[: 10 + i // 2], size=3 + i % 9)
        documents.append(
            Document(f"d{i:02d}", " ".join(words), metadata={"unit": f"u{i % 40:02d}"})
        )
    rng = np.random.default_rng(seed)
    queries, qrels = [], {}
    for i in range(n_queries):
        at = int(rng.integers(0, 60))
        picked = rng.choice(documents[at].text.split(), size=2)
        own = f"{split}{seed}-{i:02d}"
        queries.append(Query(own, f"{' '.join(picked)} {WORDS[int(rng.integers(0, 40))]}"))
        units = [f"u{at % 40:02d}"] if unit_key else [documents[at].id]
        qrels[own] = dict.fromkeys(units, 1)
    # Backwards: the order of the file must not count.
    return build_dataset(
        "small", documents, queries[::-1], qrels, split=split, language="en", unit_key=unit_key
    )


class Noted(Retriever):
    """Counts words in common; notes how it is used, for all instances together."""

    indexed = 0
    closed = 0
    searches: ClassVar[Counter[tuple[str, int]]] = Counter()
    told: ClassVar[list[Any]] = []

    def __init__(
        self, *, boost: int = 1, exact: bool = True, scores: bool = True, fail_on: str = ""
    ) -> None:
        if boost < 0:
            raise ValueError(f"boost {boost}")
        self.boost, self.exact, self.scores, self.fail_on = boost, exact, scores, fail_on
        self.texts: dict[str, list[str]] = {}

    @classmethod
    def forget(cls) -> None:
        cls.indexed = cls.closed = 0
        cls.searches.clear()
        cls.told.clear()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(exact=self.exact, has_scores=self.scores)

    def use_k(self, k: int) -> None:
        self.told.append(k)

    def use_language(self, language: str | None) -> None:
        self.told.append(language)

    def index(self, documents: Iterable[Document]) -> None:
        type(self).indexed += 1
        self.texts = {document.id: document.text.split() for document in documents}

    def search(self, query: Query, k: int) -> RankingLike:
        if query.id == self.fail_on:
            raise RuntimeError("no answer")
        self.searches[query.id, k] += 1
        scores = {
            doc_id: float(sum(words.count(word) for word in query.text.split()) * self.boost)
            for doc_id, words in self.texts.items()
        }
        hits = sorted(((i, s) for i, s in scores.items() if s), key=lambda h: (-h[1], h[0]))
        # An approximate index: what is found depends on how many are asked for.
        return hits[:k] if self.exact else hits[k % 3 : k]

    def close(self) -> None:
        type(self).closed += 1


class Foreign(Noted):
    """Returns an id that no corpus has."""

    def search(self, query: Query, k: int) -> RankingLike:
        return [("nowhere", 1.0)]


NOTED = {"target": "tests.builders.tuning_data:Noted"}


def hybrid(legs: Sequence[Any] = (), **params: Any) -> dict[str, Any]:
    """A hybrid of BM25 and counted words, as an inline config."""
    given = list(legs) or [{"name": "sparse", "target": "bm25"}, {**NOTED, "name": "count"}]
    return {"name": "mixed", "target": "hybrid", "params": {"legs": given, **params}}
