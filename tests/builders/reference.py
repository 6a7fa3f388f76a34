"""Small retrievers that keep every promise of the contract, for the tests to start from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrieval_bench.core.retriever import (
    Capabilities,
    RankingLike,
    Retriever,
    require_index,
    require_k,
)
from retrieval_bench.core.types import Document, Hit, Query, Ranking


def words(text: str) -> frozenset[str]:
    """The distinct words of ``text``, in any script, without regard to case."""
    return frozenset(re.findall(r"\w+", text.casefold()))


def order_hits(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` by the tie rule."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))


class TermOverlap(Retriever):
    """Scores a document by the number of distinct query words that it holds.

    Args:
        at_least: documents that share fewer words are left out.
    """

    def __init__(self, at_least: int = 1) -> None:
        self.at_least = at_least
        self.terms: dict[str, frozenset[str]] | None = None

    def index(self, documents: Iterable[Document]) -> None:
        self.terms = {document.id: words(document.contents) for document in documents}

    def search(self, query: Query, k: int) -> RankingLike:
        require_k(k)
        return self.candidates(query)[:k]

    def candidates(self, query: Query) -> list[Hit]:
        """All documents that match, in the order of the tie rule."""
        require_index(self.terms is not None, self)
        asked = words(query.text)
        hits = [
            Hit(doc_id, float(len(asked & held))) for doc_id, held in (self.terms or {}).items()
        ]
        return order_hits([hit for hit in hits if hit.score >= self.at_least])

    def save(self, folder: Path) -> None:
        content = {doc_id: sorted(held) for doc_id, held in (self.terms or {}).items()}
        (folder / "terms.json").write_text(json.dumps(content), encoding="utf-8")

    def load(self, folder: Path) -> None:
        content = json.loads((folder / "terms.json").read_text(encoding="utf-8"))
        self.terms = {doc_id: frozenset(held) for doc_id, held in content.items()}


class Writable(TermOverlap):
    """Documents can be added and deleted while it answers."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(writes=True)

    def add(self, documents: Sequence[Document]) -> None:
        self.terms = {**(self.terms or {}), **{d.id: words(d.contents) for d in documents}}

    def delete(self, ids: Sequence[str]) -> None:
        self.terms = {name: held for name, held in (self.terms or {}).items() if name not in ids}


class Filtering(TermOverlap):
    """Applies the filter of a query before it cuts."""

    def __init__(self) -> None:
        super().__init__()
        self.metadata: dict[str, Mapping[str, Any]] = {}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(filters=True)

    def index(self, documents: Iterable[Document]) -> None:
        super().index(documents)
        self.metadata = {document.id: document.metadata for document in documents}

    def search(self, query: Query, k: int) -> RankingLike:
        require_k(k)
        return [hit for hit in self.candidates(query) if self.fits(hit.doc_id, query)][:k]

    def fits(self, doc_id: str, query: Query) -> bool:
        return query.filter is None or query.filter.matches(self.metadata[doc_id])

    def load(self, folder: Path) -> None:
        raise NotImplementedError


class ListOnly(TermOverlap):
    """Knows an order and no scores."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(has_scores=False)

    def search(self, query: Query, k: int) -> RankingLike:
        return Ranking([doc_id for doc_id, _ in super().search(query, k)])


class Service(TermOverlap):
    """Holds its corpus already, as a service would, and refuses to index."""

    def __init__(self) -> None:
        from retrieval_bench.testing import sample_documents

        super().__init__()
        super().index(sample_documents())

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=True)

    def index(self, documents: Iterable[Document]) -> None:
        raise AssertionError("index() was called on an external retriever")
