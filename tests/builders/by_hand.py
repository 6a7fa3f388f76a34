"""Rankings small enough to work out by hand."""

from __future__ import annotations


def pattern(marks: str, n_relevant: int) -> tuple[list[str], dict[str, int]]:
    """A ranking in which O is relevant, and judgements with so many relevant documents."""
    ranking = [f"{mark}{i}" for i, mark in enumerate(marks)]
    found = [doc_id for doc_id in ranking if doc_id[0] == "O"]
    others = [f"far{i}" for i in range(n_relevant - len(found))]
    return ranking, dict.fromkeys([*found, *others], 1)
