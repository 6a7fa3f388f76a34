"""Queries that are documents of the corpus, as in ArguAna: to each point its counter-point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.builders.files import beir

TOPICS = (
    "school uniforms",
    "nuclear power",
    "tourist tax",
    "zoo animals",
    "free museums",
    "night trains",
)

IDS = tuple(f"t{at}-pro" for at in range(len(TOPICS)))
"""Of the queries, and of the documents that they are."""


def point(at: int) -> str:
    """The text of a query and of the document that it is."""
    topic = TOPICS[at]
    return (
        f"We should support {topic} because {topic} help people and the costs of {topic} are small "
        f"argument number {at}"
    )


def debates(
    folder: Path,
    query_id: Callable[[int], str] = IDS.__getitem__,
    text: Callable[[int], str] = point,
    config: str = "",
) -> Path:
    """A BEIR folder of six points and counter-points; each query asks with a point, and the
    counter-point is relevant.

    Args:
        query_id, text: of each query.
        config: content of a ``dataset.yaml``, if any.
    """
    numbers = range(len(TOPICS))
    documents = {IDS[at]: point(at) for at in numbers}
    documents |= {
        f"t{at}-con": f"Opponents say {TOPICS[at]} are a burden, point {at} against"
        for at in numbers
    }
    queries = {query_id(at): text(at) for at in numbers}
    judged = [(query_id(at), f"t{at}-con", 1) for at in numbers]
    return beir(folder, documents, queries, judged, config)


def self_run(path: Path) -> Path:
    """A run of two hits a query: the query itself, then the counter-point."""
    lines = (
        f"t{at}-pro Q0 t{at}-pro 1 9 x\nt{at}-pro Q0 t{at}-con 2 5 x\n" for at in range(len(TOPICS))
    )
    path.write_text("".join(lines), encoding="utf-8")
    return path
