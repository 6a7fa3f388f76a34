"""A retriever whose hits all have one score."""

from __future__ import annotations


def search(query: object, k: int) -> list[tuple[str, float]]:
    """The same documents for any query."""
    return [("d1", 1.0), ("d2", 1.0)][:k]
