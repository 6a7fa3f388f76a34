"""Engines by URI: each passes the conformance suite and the tests below, which need to know of it
what its line in ``ENGINES`` says."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np
import pytest

from retrieval_bench.core import plugins
from retrieval_bench.core.calls.failures import TransientError
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query
from retrieval_bench.testing import RetrieverConformance, sample_documents
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_retrievers.engines import qdrant, seekdb_server
from retrieval_bench_retrievers.engines.engine import Engine
from retrieval_bench_retrievers.engines.qdrant_words import QdrantWords, _path
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql import filling
from retrieval_bench_retrievers.sql.filling import Plan
from retrieval_bench_retrievers.sql.params import LoadSettings
from tests.builders.clustered import clustered, text_of, without_model
from tests.builders.engine_corpus import CORPUS, ENGINES, FIELDS, LISTED, MANY, MODELS, made
from tests.builders.service import free_port
from tests.builders.tiny_encoder import build_tiny_model, one_thread

pytestmark = [pytest.mark.needs("sentence_transformers"), pytest.mark.slow, pytest.mark.long]


FILTERS: tuple[dict[str, Any], ...] = (
    {"tenant": "a"},
    {"number": {"gte": 30}},
    {"number": {"gt": 3.5, "lt": 20}},
    {"number": {"in": [1, 2, 39]}},
    {"even": True},
    {"tags": "t2"},
    {"not": {"tenant": "a"}},
    {"or": [{"number": 3}, {"tenant": "b", "even": True}]},
    {"inner.part": {"in": [1, 2]}},
    {"tenant": "nobody"},
    {"number": 1},
    {"since": {"gte": "2026-05"}},
)
"""From all of the documents to none, with every operator."""
TEXTS = ("cell of trees", "the moon and the sun", "salt iron", CORPUS[7].text)


@pytest.fixture(scope="module", autouse=True)
def _model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = build_tiny_model(tmp_path_factory.mktemp("models") / "tiny")
    MODELS["tiny"] = {"model": str(folder), "device": "cpu"}
    with one_thread(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(qdrant, "_GRAPH_FROM", 1)  # so that few documents have a graph
        yield


def each(*names: str) -> pytest.MarkDecorator:
    """The test, once for each engine, or for these; skipped where its packages are not there."""
    chosen = names or tuple(ENGINES)
    return pytest.mark.parametrize(
        "name",
        [pytest.param(one, marks=pytest.mark.needs(*ENGINES[one].packages)) for one in chosen],
    )


def ids(engine: Retriever, text: str, k: int, **filter: Any) -> list[str]:
    query = Query("q", text, filter=parse_filter(filter) if filter else None)
    ranking = engine.search(query, k)
    return list(getattr(ranking, "doc_ids", ()))


def assert_graph(engine: Engine) -> None:
    """That a graph answers, and not a search of all vectors."""
    facts = engine.describe()
    if engine.store.kind == "PostgreSQL":  # its planner reads a table of this size whole
        assert facts["index"]["type"] == "hnsw"
        return
    assert facts["index"] == {"type": "hnsw", "used": "hnsw"}
    if engine.store.kind != "seekdb":  # it says no number
        assert facts["indexed_vectors"] == len(MANY)


def load_of(name: str, into: str, **changed: Any) -> Any:
    from retrieval_bench.data.stores import Load
    from retrieval_bench_exchange.stores import STORES

    given: dict[str, Any] = {
        **{"documents": CORPUS, "language": "en", "into": into, "table": "documents"},
        **{"encoder": None, "index": "exact", "progress": None, "fields": FIELDS, **changed},
    }
    return plugins.load(STORES[into.partition(":")[0]])(Load(**given))


@pytest.fixture
def place(name: str, tmp_path: Path) -> Iterator[str]:
    """The URI of a store that is empty."""
    scheme = ENGINES[name].scheme
    if scheme:
        yield f"{scheme}://{tmp_path}/kept"
        return
    from retrieval_bench_retrievers.sql.embedded_postgres import Rooms

    rooms = Rooms("tests")
    yield rooms.dsn
    rooms.close()


class _Conforms(RetrieverConformance):
    """In one mode; what an engine is measured with by others is checked by itself."""

    name: ClassVar[str]
    mode: ClassVar[str] = "dense"
    exact: ClassVar[bool] = True

    def make(self) -> Retriever:
        return made(self.name, self.mode, exact=self.exact)

    def documents(self) -> list[Document]:
        """In Latin letters: the tiny encoder gives all texts of another script one vector."""
        spoken = ("en", "fr") if self.mode in ("dense", "hybrid") else ("en", "fr", "ko", "zh")
        return [one for one in sample_documents() if one.metadata["language"] in spoken]


def _suites() -> Iterator[tuple[str, type]]:
    for name, case in ENGINES.items():
        for mode in ("dense", "near", case.words, "hybrid"):
            exact, asked = mode != "near", "dense" if mode == "near" else mode
            title = f"Test{name.title()}{mode.title()}"
            body = {"name": name, "mode": asked, "exact": exact}
            yield title, pytest.mark.needs(*case.packages)(type(title, (_Conforms,), body))


globals().update(_suites())


@each()
def test_exact_search_is_ours_also_after_many_approximate_calls(name: str) -> None:
    dense = Dense(**MODELS["tiny"])
    dense.index(MANY)
    engine = made(name, load={"index": "hnsw"})
    engine.index(MANY)
    assert_graph(engine)
    for at in range(50):
        ids(engine, TEXTS[at % len(TEXTS)], 10)
    exact: Engine | None = engine.searching({"exact": True, "ef": 20})
    if ENGINES[name].exact_apart:
        assert exact is None
        engine._exact = True
        with pytest.raises(ConfigError, match="exact: true, and the collection has"):
            ids(engine, TEXTS[0], 10)
        engine.close()
        exact = engine = made(name, exact=True)
        engine.index(MANY)
    assert exact is not None
    assert engine.searching({"table": "other"}) is None
    told = exact.describe()
    assert "rrf" not in told
    if told["loaded"]["index"] == "exact":
        assert told["index"] == {"type": "flat", "used": "flat: the engine has built no graph"}
    for text in TEXTS:
        ours, theirs = dense.search(Query("q", text), 100), exact.search(Query("q", text), 100)
        assert list(theirs.doc_ids) == list(ours.doc_ids)
        assert np.asarray(theirs.scores) == pytest.approx(np.asarray(ours.scores), abs=1e-5)
        assert set(theirs.stages) == {"encode", "engine"}
    engine.close()
    dense.close()


@each()
@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_an_approximate_search_gives_as_many_hits_as_are_asked_for(name: str, mode: str) -> None:
    engine = made(name, mode, ef=1)
    engine.use_filters(FIELDS)
    engine.index(MANY)
    assert_graph(engine)
    assert len(ids(engine, TEXTS[0], 10)) == 10
    assert len(ids(engine, TEXTS[0], 150)) == 150
    filtered = len(ids(engine, TEXTS[0], 90, tenant="a"))
    assert filtered == 90 or (ENGINES[name].stand_in and filtered >= 60)
    engine.close()


@each()
def test_a_filter_lets_all_through_that_fit_and_nothing_else(name: str) -> None:
    unfit = ENGINES[name].unfit
    for mode in ("dense", ENGINES[name].words, "hybrid"):
        engine = made(name, mode, exact=True, language="simple")
        engine.use_filters(FIELDS)
        engine.index(CORPUS)
        found = set(ids(engine, " ".join(LISTED), 200))
        assert len(found) == 200
        for filter in FILTERS:
            if filter in unfit:
                with pytest.raises(ContractError, match="has no filter for since gte"):
                    ids(engine, TEXTS[0], 200, **filter)
                continue
            fit = {one.id for one in CORPUS if parse_filter(filter).matches(one.metadata)}
            assert set(ids(engine, " ".join(LISTED), 200, **filter)) == fit, (mode, filter)
        engine.close()


@each()
def test_a_filter_finds_the_odd_as_the_harness_does(name: str) -> None:
    """Lists of mappings, keys with dots, spaces and slashes; ids with an apostrophe."""
    found: tuple[dict[str, Any], ...] = (
        {"a": [{"b": 1}]},
        {"a": {"b": 1}},
        {"a": {"b": [3, 1]}},
        {"a": {"b": 1}, "a.b": 2},
        {"x y": "한"},
        {"p/q": 1},
        {"big": 2**53 + 1},
    )
    corpus = [Document(f"it's {at}", "cell", metadata=one) for at, one in enumerate(found)]
    engine = made(name, ENGINES[name].words, language="simple")
    engine.use_filters(("a.b", "x y", "p/q", "big"))
    engine.index(corpus)
    assert engine._store is not None
    assert engine._store.missing(["it's 1", "it's not"]) == {"it's not"}
    for filter in ({"a.b": 1}, {"a.b": 2}, {"x y": "한"}, {"p/q": 1}, {"not": {"a.b": 1}}):
        fit = {one.id for one in corpus if parse_filter(filter).matches(one.metadata)}
        assert set(ids(engine, "cell", 9, **filter)) == fit, filter
    large = {"big": {"in": [2**53]}}
    if name in ("postgres", "seekdb"):
        assert ids(engine, "cell", 9, **large) == []
    else:
        with pytest.raises(ContractError, match="has no filter for big"):
            ids(engine, "cell", 9, **large)
    if name != "qdrant":
        assert ids(engine, "cell", 9, **{"x y": {"gte": "한"}}) == ["it's 4"]
    engine.close()


@each("postgres")
def test_a_finished_table_keeps_its_index(name: str, place: str) -> None:
    model = MODELS["tiny"]["model"]
    load_of(name, place, encoder=model, index="hnsw")
    assert load_of(name, place, encoder=model, index="hnsw").n_there == 200
    with pytest.raises(ConfigError, match="was filled with another index: hnsw, not exact"):
        load_of(name, place, encoder=model, index="exact")
    with closing(made(name, uri=place)) as engine:
        engine.use_k(3)
        assert engine.describe()["loaded"]["index"] == "hnsw"


@each("postgres", "seekdb")
def test_ways_that_take_turns_set_nothing_at_a_search(name: str, place: str) -> None:
    kept, shown = {
        "postgres": ("_near", "SHOW hnsw.ef_search"),
        "seekdb": ("_connections", "SELECT @@ob_hnsw_ef_search"),
    }[name]
    model = MODELS["tiny"]["model"]
    load_of(name, place, encoder=model, index="hnsw")
    with closing(made(name, uri=place, encoder=None)) as engine:
        engine.use_k(3)
        ways = [engine.searching(one) for one in ({"exact": True}, {"ef": 20}, {"ef": 30})]
        before: list[Any] = []
        for _ in range(2):
            for way in ways:
                assert way is not None
                assert len(ids(way, TEXTS[0], 3)) == 3
            near: dict[int, Any] = getattr(engine._store, kept, {})
            found = [near[ef] for ef in (0, 20, 30)]
            asked = list[str]()
            for connection in found:
                with connection.cursor() as cursor:
                    cursor.execute(shown)
                    asked.append(str(cursor.fetchone()[0]))
            assert asked[1:] == ["20", "30"]
            assert before in ([], found)
            before = found


@each("postgres")
def test_a_table_has_an_index_of_the_fields_of_filters(name: str, place: str) -> None:
    load_of(name, place)
    embedded, loaded = made(name, "text"), made(name, "text", uri=place)
    embedded.use_filters(FIELDS)
    embedded.index(CORPUS[:9])
    loaded.use_k(3)
    for engine in (embedded, loaded):
        connection: Any = getattr(engine._store, "_connection", None)
        exists = connection.execute("SELECT to_regclass('documents_metadata') IS NOT NULL")
        assert exists.fetchone() == (True,)
        engine.close()


@each("postgres")
def test_what_postgresql_refuses_is_told_of_the_address(name: str, place: str) -> None:
    load_of(name, place)
    with closing(made(name, "text", uri=place)) as engine:
        engine.use_k(3)
        connection: Any = getattr(engine._store, "_connection", None)
        connection.execute("ALTER TABLE documents RENAME tsv TO words")
        with pytest.raises(ContractError, match='column "tsv" does not exist') as raised:
            ids(engine, TEXTS[0], 3)
    assert raised.value.where.startswith("postgresql://")
    with pytest.raises(ConfigError, match="no connection to PostgreSQL") as failed:
        made(name, uri=f"postgresql://localhost:{free_port()}/base").use_k(3)
    assert "dsn" not in str(failed.value)
    with pytest.raises(ConfigError, match="no address of a PostgreSQL server") as failed:
        made(name, uri="postgresql://localhost/base?nonsense=1").use_k(3)
    assert "dsn" not in str(failed.value)


@each("postgres")
def test_an_embedded_server_without_its_database_is_told_and_stopped(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval_bench_retrievers.sql import embedded_postgres

    monkeypatch.setattr(embedded_postgres, "_LOCALE", "template nowhere")
    with pytest.raises(ConfigError, match="PostgreSQL does not start") as raised:
        made(name, "text").index(CORPUS[:2])
    assert raised.value.where == "retriever postgres, uri embedded"
    assert "dsn" not in str(raised.value)
    assert embedded_postgres._Running.server is None


@each()
def test_what_data_load_filled_is_searched_by_its_uri(name: str, place: str) -> None:
    model = MODELS["tiny"]["model"]
    told: list[tuple[int, int]] = []
    index = "exact" if ENGINES[name].exact_apart else "hnsw"
    loaded = load_of(
        name, place, encoder=model, index=index, progress=lambda *done: told.append(done)
    )
    assert (loaded.n_documents, loaded.n_loaded, loaded.n_there) == (200, 200, 0)
    assert told[-1] == (200, 200)
    assert load_of(name, place, encoder=model, index=index).n_loaded == 0
    engine, own = made(name, uri=place, exact=True, encoder=None), made(name, exact=True)
    assert engine.capabilities.external
    own.index(CORPUS)
    engine.use_k(10)
    assert ids(engine, TEXTS[0], 10) == ids(own, TEXTS[0], 10)
    facts = json.loads(json.dumps(engine.describe()))
    assert facts["engine"]["version"]
    assert facts["engine"]["stand_in"] is ENGINES[name].stand_in
    assert facts["loaded"]["index"] == index
    assert len(facts["split"]) == 1
    warned = [one for one in engine.health([]) if "a stand-in of" in one]
    assert list(engine.health([])) == warned
    assert bool(warned) is ENGINES[name].stand_in
    engine.close()
    own.close()


@each()
def test_a_uri_without_the_collection_or_with_another_is_told(name: str, place: str) -> None:
    with closing(made(name, uri=place)) as engine:
        with pytest.raises(ConfigError, match="no collection documents"):
            engine.use_k(3)
        assert not ENGINES[name].scheme or not Path(urlsplit(place).path).exists()
        load_of(name, place)
    with (
        closing(made(name, uri=place)) as engine,
        pytest.raises(ConfigError, match="documents holds no vectors"),
    ):
        engine.use_k(3)
    with pytest.raises(ConfigError, match="was filled with another content"):
        load_of(name, place, documents=CORPUS[:3])
    with pytest.raises(ConfigError, match="was filled with another language"):
        load_of(name, place, language="de")
    with pytest.raises(ConfigError, match="was filled with another encoder"):
        load_of(name, place, encoder=MODELS["tiny"]["model"])
    twice = [Document("1", "a"), Document("1", "b")]
    with pytest.raises(ContractError, match="two documents have one id"):
        load_of(name, place, documents=twice, table="twice")


def _noted(name: str, place: str, size: int) -> None:
    """What is kept of the load says another size than the collection has, as where somebody made
    that anew."""
    engine = made(name, ENGINES[name].words)
    store = engine.store.at(Address.parse(place, engine.store.schemes, "test"), "documents")
    store.plan = Plan(None, "simple", (), LoadSettings())
    store.open()
    known = store.known() or {}
    store.remember({**known, "encoder": {**known["encoder"], "dimension": size}})
    store.close()


@each()
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("load", "was filled with another encoder: .*'dimension': 16.* not .*'dimension': 32"),
        ("search", "was filled by the encoder .*'dimension': 16"),
        ("collection", "documents holds vectors of 16 numbers"),
    ],
)
def test_vectors_of_another_size_are_refused(
    name: str, wrong: str, message: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = [Document(f"d{at}", text_of(one)) for at, one in enumerate(clustered(20, 1)[0])]
    without_model(monkeypatch, 16)
    load_of(name, place, documents=corpus, encoder="numbers")
    if wrong == "collection":
        _noted(name, place, 32)
    without_model(monkeypatch, 32)

    def again() -> None:
        if wrong == "load":
            load_of(name, place, documents=corpus, encoder="numbers")
        with closing(made(name, uri=place, encoder={"model": "numbers"})) as engine:
            engine.use_k(3)

    with pytest.raises(ConfigError, match=message) as raised:
        again()
    assert "32" in str(raised.value)
    assert raised.value.where
    assert raised.value.accepted
    assert raised.value.fix


_KILLED = """
import os, signal, sys, threading
from retrieval_bench.core import plugins
from retrieval_bench.data.stores import Load
from retrieval_bench_exchange.stores import STORES
from retrieval_bench_retrievers.sql import filling
filling.BATCH = 50
into, sent, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
def end():
    os.kill(os.getpid(), signal.SIGKILL)
def stop(done, total):
    if done >= sent:
        threading.Timer(seconds, end).start() if seconds else end()
from tests.builders.engine_corpus import CORPUS, FIELDS
given = Load(CORPUS, "en", into, "documents", None, "exact", stop, FIELDS)
plugins.load(STORES[into.partition(":")[0]])(given)
threading.Event().wait(seconds + 60)
"""


def _killed(place: str, sent: int, seconds: float = 0.0) -> None:
    """A load that is killed so many seconds after so many documents."""
    command = [sys.executable, "-c", _KILLED, place, str(sent), str(seconds)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@each()
def test_a_load_that_is_killed_goes_on_where_it_stopped(name: str, place: str) -> None:
    _killed(place, 100)
    words = ENGINES[name].words
    engine = made(name, words, uri=place)
    engine.use_k(3)
    assert "holds a part of its documents" in engine.health([])[0]
    engine.close()
    loaded = load_of(name, place)
    assert (loaded.n_documents, loaded.n_loaded, loaded.n_there) == (200, 100, 100)
    engine = made(name, words, uri=place)
    assert len(ids(engine, " ".join(LISTED), 300)) == 200
    assert not [one for one in engine.health([]) if "holds a part" in one]
    engine.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@each()
@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_a_load_that_is_killed_while_it_builds_indexes_goes_on(
    name: str, place: str, seconds: float
) -> None:
    _killed(place, 200, seconds)
    loaded = load_of(name, place)
    assert (loaded.n_documents, loaded.n_loaded, loaded.n_there) == (200, 0, 200)
    with closing(made(name, ENGINES[name].words, uri=place)) as engine:
        assert len(ids(engine, " ".join(LISTED), 300)) == 200


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@each()
def test_a_process_that_is_killed_leaves_nothing_of_what_was_embedded(name: str) -> None:
    code = (
        "import sys, time, os\n"
        "from tests.builders.engine_corpus import CORPUS, made\n"
        f"engine = made({name!r}, {ENGINES[name].words!r})\n"
        "engine.index(CORPUS)\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(60)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TMPDIR": folder}
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            assert any(one.startswith("retrieval-bench-") for one in os.listdir(folder))
            process.kill()
        for _ in range(200):
            if not any(one.startswith("retrieval-bench-") for one in os.listdir(folder)):
                break
            time.sleep(0.1)
        assert not any(one.startswith("retrieval-bench-") for one in os.listdir(folder))


@each()
def test_two_builds_do_not_meddle(name: str) -> None:
    one, other = made(name, ENGINES[name].words), made(name, ENGINES[name].words)
    one.index(CORPUS[:50])
    other.index(CORPUS[50:])
    assert not {*ids(one, TEXTS[0], 200)} & {*ids(other, TEXTS[0], 200)}
    one.close()
    assert ids(other, TEXTS[0], 3)
    other.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket")  # pymysql, of one that refuses
@each("postgres", "seekdb")
def test_a_server_that_is_killed_is_told_and_others_go_on(name: str) -> None:
    engine = made(name, ENGINES[name].words)
    engine.index(CORPUS)
    pid = engine.server_pid()
    assert pid is not None
    assert ids(engine, TEXTS[0], 3)
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    for _ in range(2):
        with pytest.raises(TransientError, match=engine.store.kind):
            ids(engine, TEXTS[0], 3)
    assert engine.describe()["engine"]["version"]
    other = made(name, ENGINES[name].words)
    other.index(CORPUS)
    engine.close()
    assert ids(other, TEXTS[0], 3)
    other.close()


@each("qdrant", "lancedb", "milvus", "seekdb")
def test_a_disk_that_is_full_is_told_and_the_load_goes_on(
    name: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, full = made(name, ENGINES[name].words).store, OSError(28, "No space left on device")
    chosen: Any = type(store.at(Address.parse(place, store.schemes, "test"), "documents"))
    send, sent = chosen.send, list[int]()

    def one_batch(self: Any, rows: Any) -> None:
        if sent:
            raise full
        sent.append(len(rows))
        send(self, rows)

    monkeypatch.setattr(filling, "BATCH", 80)
    with monkeypatch.context() as patch:
        patch.setattr(chosen, "send", one_batch)
        with pytest.raises(ConfigError, match="No space left on device") as raised:
            load_of(name, place)
    assert "goes on where this ended" in str(raised.value)
    assert load_of(name, place).n_there == 80


@each("lancedb", "milvus", "qdrant", "seekdb")
def test_a_folder_that_cannot_be_made_is_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="the folder cannot be made"):
        load_of(name, f"{name}://{tmp_path}/file/inside")


@pytest.mark.skipif(sys.platform == "win32", reason="no such lock")
@each("lancedb", "milvus", "seekdb", "postgres")
def test_two_that_fill_one_folder_take_turns(name: str, place: str) -> None:
    def meddle(done: int, total: int) -> None:
        with pytest.raises(ConfigError, match="another process fills documents"):
            load_of(name, place)

    assert load_of(name, place, progress=meddle).n_loaded == 200
    assert load_of(name, place).n_there == 200


@each("qdrant")
def test_a_disk_that_is_nearly_full_is_not_written_to(
    name: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(free=1 << 20)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(ConfigError, match="No space left on device"):
            load_of(name, place)
    assert load_of(name, place).n_loaded == 200


@each("qdrant")
def test_a_field_is_indexed_once_also_where_the_first_documents_lack_it(
    name: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_for = list[str]()
    index = qdrant._Edge._index_field

    def indexed(self: Any, name: str, schema: Any) -> None:
        made_for.append(name)
        index(self, name, schema)

    monkeypatch.setattr(filling, "BATCH", 80)
    monkeypatch.setattr(qdrant._Edge, "_index_field", indexed)
    without = [Document(f"w{at}", "cell") for at in range(80)]
    load_of(name, place, documents=[*without, *CORPUS])
    assert sorted(made_for) == sorted(["text", *(f"metadata.{_path(one)}" for one in FIELDS)])


@each("qdrant")
def test_a_folder_that_another_has_open_is_refused(name: str, place: str) -> None:
    load_of(name, place)
    engine = made(name, "bm25", uri=place)
    engine.use_k(3)
    with pytest.raises(ConfigError, match="cannot open documents") as raised:
        made(name, "bm25", uri=place).use_k(3)
    assert "end the other process" in str(raised.value)
    engine.close()


@pytest.mark.needs("qdrant_client")
@pytest.mark.filterwarnings("ignore")
def test_a_server_of_qdrant_is_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own stand-in in its place, which knows the plain analysis only."""
    import qdrant_client

    local, asked = qdrant_client.QdrantClient(":memory:"), list[dict[str, Any]]()
    local.info, local.close = lambda: SimpleNamespace(version="1.99"), lambda: None

    def connect(**how: Any) -> Any:
        asked.append(how)
        return local

    monkeypatch.setattr(qdrant_client, "QdrantClient", connect)
    monkeypatch.setattr(QdrantWords, "_analysis", lambda store: {})
    uri, model = "qdrant+https://:s%2Fecret-key@host.example", MODELS["tiny"]["model"]
    with pytest.raises(ConfigError, match="there is no collection documents"):
        made("qdrant", uri=uri).use_k(3)
    loaded = load_of("qdrant", uri, encoder=model, index="hnsw")
    assert (loaded.n_loaded, loaded.store, loaded.into) == (
        200,
        "Qdrant 1.99",
        "qdrant+https://:***@host.example",
    )
    assert load_of("qdrant", uri, encoder=model, index="hnsw").n_there == 200
    assert (asked[0]["https"], asked[0]["port"], asked[0]["api_key"]) == (True, 6333, "s/ecret-key")
    own = made("qdrant", exact=True)
    own.index(CORPUS)
    engine = made("qdrant", uri=uri, exact=True, encoder=None)
    for text in TEXTS:
        for filter in ({}, {"tenant": "a", "number": {"gte": 30}}):
            assert ids(engine, text, 20, **filter) == ids(own, text, 20, **filter)
    for mode in ("bm25", "hybrid"):
        fit = ids(made("qdrant", mode, uri=uri, encoder=None), TEXTS[0], 200, tenant="a")
        assert fit
        assert all(int(one[1:]) % 2 == 0 for one in fit)
    assert "secret" not in json.dumps(engine.describe())
    own.close()


@pytest.mark.needs("qdrant_client")
def test_a_server_of_qdrant_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match="no answer from Qdrant"):
        made("qdrant", uri=f"qdrant://localhost:{free_port()}").use_k(3)


@pytest.mark.needs("milvus_lite", "pymilvus")
def test_a_server_of_milvus_is_filled_and_searched_over_the_network(tmp_path: Path) -> None:
    """That of Milvus Lite, in another process."""
    from milvus_lite.server_manager import server_manager_instance as servers

    file = str(tmp_path / "served.db")
    uri = servers.start_and_get_uri(file).replace("http://", "milvus://")
    loaded = load_of("milvus", uri)
    assert (loaded.n_loaded, loaded.into) == (200, uri)
    with closing(made("milvus", "bm25", uri=uri)) as engine, closing(made("milvus", "bm25")) as own:
        own.use_filters(FIELDS)
        own.index(CORPUS)
        for filter in ({}, {"tenant": "a", "number": {"gte": 30}}):
            assert ids(engine, TEXTS[0], 20, **filter) == ids(own, TEXTS[0], 20, **filter)
        assert engine.describe()["engine"]["stand_in"]
        assert engine.disk_bytes() is None
    servers.release_server(file)
    with pytest.raises(ConfigError, match="no answer from Milvus"):
        made("milvus", "bm25", uri=uri).use_k(3)


@pytest.mark.needs("pylibseekdb", "pymysql")
def test_a_server_with_the_protocol_of_mysql_is_told_the_same(tmp_path: Path) -> None:
    import pylibseekdb

    server, model = pylibseekdb.open(str(tmp_path / "server")), MODELS["tiny"]["model"]
    socket = server.connection_options()["unix_socket"]
    uri = f"mysql://root@localhost/test?unix_socket={socket}"
    with pytest.raises(ConfigError, match="Access denied") as raised:
        made("seekdb", uri=uri.replace("root", "root:geheim")).use_k(3)
    assert "geheim" not in str(raised.value)
    loaded = load_of("seekdb", uri, encoder=model, index="hnsw")
    assert (loaded.n_loaded, loaded.into) == (200, uri)
    assert loaded.store.startswith("seekdb 1.")
    own, engine = made("seekdb", exact=True), made("seekdb", uri=uri, exact=True, encoder=None)
    own.index(CORPUS)
    for filter in ({}, {"tenant": "a", "number": {"gte": 30}}):
        assert ids(engine, TEXTS[0], 20, **filter) == ids(own, TEXTS[0], 20, **filter)
    assert engine.server_pid() is None
    assert engine.describe()["index"] == {"type": "hnsw", "used": "hnsw"}
    for one in (engine, own):
        one.close()
    server.close()


@pytest.mark.needs("pymysql")
def test_servers_that_are_not_there_or_say_it_otherwise_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import pymysql

    with pytest.raises(ConfigError, match="no answer from seekdb or OceanBase"):
        made("seekdb", uri=f"mysql://root@localhost:{free_port()}/test").use_k(3)
    monkeypatch.setattr(pymysql, "connect", lambda **_: None)
    monkeypatch.setattr(seekdb_server.SeekdbServer, "_ask", lambda *_: [("11.8.3-MariaDB",)])
    with pytest.raises(ConfigError, match=r"says that it is 11\.8\.3-MariaDB"):
        made("seekdb", uri="mysql://root@localhost/test").use_k(3)


@pytest.mark.needs(*ENGINES["seekdb"].packages)
@pytest.mark.parametrize("times", [1, 6])
def test_what_seekdb_calls_its_score_is_bm25_of_documents_of_ten_words_at_least(times: int) -> None:
    corpus = [
        Document(f"d{at}", " ".join(["salt"] * (at % 4 + 1) * (at % 19 == 3) + rest * times))
        for at in range(300)
        for rest in [LISTED[12 : 13 + at % 9]]
    ]
    engine = made("seekdb", "bm25")
    engine.index(corpus)
    found = dict(engine.search(Query("q", "Salt!"), 100))
    engine.close()
    texts = [(one.id, one.text.split()) for one in corpus]
    fit = {doc_id: terms for doc_id, terms in texts if "salt" in terms}
    assert set(found) == set(fit)
    average = max(10, sum(len(terms) for _, terms in texts) / 300)
    assert (average > 10) is (times > 1)
    idf = math.log((300 - len(fit) + 0.5) / (len(fit) + 0.5))
    for doc_id, terms in fit.items():
        often, length = terms.count("salt"), 0.25 + 0.75 * len(terms) / average
        assert found[doc_id] == pytest.approx(idf * 2.2 * often / (often + 1.2 * length), rel=1e-5)
