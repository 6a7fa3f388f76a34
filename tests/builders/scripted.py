"""A retriever that answers from a script and remembers what is done to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from retrieval_bench.core.retriever import Capabilities, RankingLike, Retriever
from retrieval_bench.core.types import Document, Query, Ranking

Hits = Mapping[str, float] | Sequence[str]
"""Ids, best first, with their scores or without."""


class Scripted(Retriever):
    """Returns the head of ``hits``, or of what ``hits`` gives for a query."""

    def __init__(
        self,
        hits: Hits | Callable[[Query], Hits] = (),
        *,
        stages: Mapping[str, int] | None = None,
        capabilities: Capabilities | None = None,
        disk: int | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self.hits = hits
        self.stages = stages or {}
        self.declared = capabilities or Capabilities(external=True)
        self.disk = disk
        self.warnings = warnings
        self.asked: list[int] = []
        self.heard: list[str] = []
        self.threads: list[str] = []
        self.indexed: list[str] | None = None
        self.language: str | None = None
        self.closed = 0

    @property
    def capabilities(self) -> Capabilities:
        return self.declared

    def index(self, documents: Iterable[Document]) -> None:
        self.indexed = [document.id for document in documents]

    def use_language(self, language: str | None) -> None:
        self.language = language

    def search(self, query: Query, k: int) -> RankingLike:
        self.asked.append(k)
        self.heard.append(query.text)
        self.threads.append(threading.current_thread().name)
        hits = self.hits(query) if callable(self.hits) else self.hits
        scores = list(hits.values())[:k] if isinstance(hits, Mapping) else None
        return Ranking(list(hits)[:k], scores, self.stages)

    def describe(self) -> Mapping[str, Any]:
        return {"n_hits": 0 if callable(self.hits) else len(self.hits)}

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        return self.warnings

    def disk_bytes(self) -> int | None:
        return self.disk

    def close(self) -> None:
        self.closed += 1
