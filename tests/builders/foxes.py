"""A tiny corpus for adapters of other libraries, and what counts its words."""

from __future__ import annotations

from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Capabilities, RankingLike, Retriever
from retrieval_bench.core.types import Document, Query, Ranking

FOXES = [
    Document("d1", "fox fox dog", title="Fox", metadata={"topic": "land", "year": 2020}),
    Document("d2", "dog dog dog", metadata={"topic": "land", "year": 2021}),
    Document("d3", "owl and fox"),
    Document("d4", "바다 바다 산"),
    Document("d5", "산 owl"),
]


def word_counts(text: str) -> list[float]:
    """One number for each word of a tiny vocabulary, in the place of an encoder."""
    words = text.split()
    return [float(words.count(word)) for word in ("fox", "dog", "owl", "바다", "산")] + [0.01]


def ask(retriever: Retriever, text: str, k: int) -> list[str]:
    """The ids of a list that keeps the contract."""
    raw = retriever.search(Query("1", text), k)
    has_scores = retriever.capabilities.has_scores
    return list(checked_ranking(raw, k, has_scores=has_scores).doc_ids)


class Overlap(Retriever):
    """A retriever of the harness: number of shared words."""

    def __init__(self, documents: list[Document], *, has_scores: bool = True) -> None:
        self.documents = documents
        self.has_scores = has_scores

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=True, has_scores=self.has_scores)

    def search(self, query: Query, k: int) -> RankingLike:
        words = set(query.text.split())
        counts = [(d.id, len(words & set(d.text.split()))) for d in self.documents]
        hits = sorted([hit for hit in counts if hit[1]], key=lambda hit: (-hit[1], hit[0]))[:k]
        return Ranking([i for i, _ in hits], [n for _, n in hits] if self.has_scores else None)
