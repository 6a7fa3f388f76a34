"""What engines by URI refuse, and how they say it, as far as that takes no engine."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.filters import Condition, parse_filter
from retrieval_bench.core.notices import Code, says
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.engines import columns, seekdb
from retrieval_bench_retrievers.engines.engine import Engine
from retrieval_bench_retrievers.engines.engine_store import Asked, EngineStore, Hits
from retrieval_bench_retrievers.engines.folder_store import FolderStore
from retrieval_bench_retrievers.engines.qdrant import Qdrant
from retrieval_bench_retrievers.engines.qdrant_words import _unambiguous
from retrieval_bench_retrievers.functions.uri import Address
from retrieval_bench_retrievers.sql.filling import Plan, Row, content_of
from retrieval_bench_retrievers.sql.params import LoadSettings

LOADED = {"encoder": None, "documents": 1, "language": "simple", "index": "exact"}
"""A collection that was filled without an encoder."""


class _Nothing(EngineStore):
    """A store that was filled before, and finds nothing."""

    kind, extra, schemes = "Nothing", "nothing", ("nothing",)
    modes, usual_ef, most_ef = ("dense", "bm25", "hybrid"), 10, 50

    @classmethod
    def packages(cls, address: Address | None) -> tuple[str, ...]:
        return ()

    def open(self) -> None:
        pass

    def known(self) -> dict[str, Any] | None:
        return dict(LOADED)

    def search(self, asked: Asked) -> Hits:
        return []

    def vector_size(self) -> int | None:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def remember(self, loaded: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def create(self) -> None:
        raise NotImplementedError

    def missing(self, ids: Sequence[str]) -> set[str]:
        raise NotImplementedError

    def send(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError

    def put(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def remove(self, ids: Sequence[str]) -> None:
        raise NotImplementedError


class _NothingByURI(Engine):
    store = _Nothing


def edge_at(folder: Path) -> FolderStore:
    address = Address.parse(f"qdrant://{folder}", Qdrant.store.schemes, "--into")
    store = Qdrant.store.at(address, "documents")
    assert isinstance(store, FolderStore)
    store.plan = Plan(None, "simple", (), LoadSettings())
    return store


def test_a_load_never_removes_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    kept = tmp_path / "documents" / "letter"
    kept.parent.mkdir()
    kept.write_text("dear", encoding="utf-8")
    for note in ({}, {"finished": True}):
        if note:  # that of a collection which somebody removed since
            edge_at(tmp_path).remember(note)
        with pytest.raises(ConfigError, match="is there, and this command did not make it"):
            edge_at(tmp_path).fill([Document("1", "a")], None)
        assert kept.read_text(encoding="utf-8") == "dear"


def test_a_folder_that_a_load_began_is_made_anew(tmp_path: Path) -> None:
    store = edge_at(tmp_path)
    assert store.known() is None
    (tmp_path / "documents").mkdir()
    assert store.known() is None
    (tmp_path / "documents" / "part").touch()
    assert store.known() == {}
    store.remember({"finished": False})
    assert store.known() is None


def test_a_folder_whose_lock_no_server_frees_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """seekdb keeps it where the server was killed while it changed tables."""
    schemes = seekdb.Seekdb.store.schemes
    store = seekdb.Seekdb.store.at(Address.parse(f"seekdb://{tmp_path}", schemes, "--into"), "kept")
    assert isinstance(store, FolderStore)
    (tmp_path / "store").mkdir()
    asked: list[str] = []
    held = iter([[(7,)], [(7,), (8,)], [(8,)], *[[(9,)]] * 2])
    monkeypatch.setattr(store, "_connect", lambda: asked.append("connect"))
    monkeypatch.setattr(store, "_ask", lambda *_: next(held))
    store.open()  # who only searches needs no lock
    store.plan = Plan(None, "simple", (), LoadSettings())
    store.open()
    monkeypatch.setattr(seekdb, "END_S", 0.0)
    with pytest.raises(ConfigError, match="their lock stays") as raised:
        store.open()
    assert f"remove {tmp_path}, and load everything in it again" in str(raised.value)
    assert len(asked) == 3


def test_a_folder_that_no_server_opens_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemes = seekdb.Seekdb.store.schemes
    store = seekdb.Seekdb.store.at(Address.parse(f"seekdb://{tmp_path}", schemes, "t"), "kept")
    (tmp_path / "store").mkdir()

    def connect() -> None:
        raise RuntimeError("seekdb_open failed: code=-1")

    monkeypatch.setattr(store, "_connect", connect)
    with pytest.raises(ConfigError, match="seekdb_open failed") as raised:
        store.open()
    assert raised.value.where == f"seekdb://{tmp_path}"
    assert "killed as it made the folder, remove that" in raised.value.fix


@pytest.mark.skipif(sys.platform == "win32", reason="no such lock")
def test_a_folder_that_a_killed_server_began_is_made_anew(tmp_path: Path) -> None:
    import fcntl

    begun, users = tmp_path / "retrieval-bench-begun", tmp_path / "run" / "seekdb.clients"
    begun.touch()
    (tmp_path / "store").mkdir()
    (tmp_path / "letter").touch()
    users.parent.mkdir()
    with users.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        seekdb._swept(tmp_path, begun)
        assert begun.exists()  # somebody uses it
        assert (tmp_path / "store").exists()
    seekdb._swept(tmp_path, begun)
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such lock")
def test_what_another_load_made_in_place_of_the_old_folder_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    begun, users = tmp_path / "retrieval-bench-begun", tmp_path / "run" / "seekdb.clients"
    begun.touch()
    lock = fcntl.flock

    def late(file: Any, how: int) -> None:
        """Before the lock comes, another one sweeps and makes its own."""
        users.unlink()
        users.touch()
        (tmp_path / "store").mkdir()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    seekdb._swept(tmp_path, begun)
    assert begun.exists()
    assert (tmp_path / "store").exists()


def test_a_server_that_does_not_begin_with_an_index_is_started_anew_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """seekdb keeps an index waiting where its client was killed as it asked for it."""
    schemes = seekdb.Seekdb.store.schemes
    store: Any = seekdb.Seekdb.store.at(Address.parse(f"seekdb://{tmp_path}", schemes, "t"), "kept")
    done: list[str] = []
    tasks: list[tuple[int, int]] = [(54, 0), (55, 3)]
    monkeypatch.setattr(seekdb, "END_S", -1.0)
    monkeypatch.setattr(store, "_ask", lambda *_: tasks)
    monkeypatch.setattr(store, "_let_go", lambda: done.append("ended"))
    monkeypatch.setattr(store, "_alive", lambda: False)
    monkeypatch.setattr(store, "open", lambda: done.append("opened"))
    assert [store._building(set()) for _ in range(3)] == [True] * 3
    assert done == []  # it is at one of them
    tasks.pop()
    assert [store._building(set()) for _ in range(2)] == [True] * 2
    assert done == ["ended", "opened"]
    with pytest.raises(ConfigError, match="seekdb does not begin with it") as raised:
        store._building(set())
    assert "the same command then goes on" in raised.value.fix
    tasks.pop()
    assert store._building(set()) is False


def test_vectors_are_asked_of_a_collection_without_any() -> None:
    with pytest.raises(ConfigError, match="documents holds no vectors") as raised:
        _NothingByURI(uri="nothing://host").use_k(3)
    assert "mode: bm25" in str(raised.value)
    assert "--encoder" in str(raised.value)


def test_an_ef_that_would_not_be_what_is_used_is_refused() -> None:
    engine = _NothingByURI(uri="nothing://host", ef=50)
    for changed in ({"ef": 51}, {"exact": True, "ef": 51}):
        with pytest.raises(ConfigError, match="ef = 51"):
            engine.searching(changed)
    with pytest.raises(ConfigError, match="ef = 51"):
        _NothingByURI(uri="nothing://host", ef=51)
    assert engine.searching({"ef": 20}) is not None
    with pytest.raises(ConfigError, match="ef changes nothing in mode bm25"):
        _NothingByURI(uri="nothing://host", mode="bm25").searching({"ef": 20})


def test_each_leg_of_a_hybrid_is_searched_with_an_ef_of_its_hits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[str, int]] = []

    def search(store: EngineStore, asked: Asked) -> Hits:
        told.append((asked.mode, asked.ef))
        return []

    monkeypatch.setattr(_Nothing, "most_ef", 1000)
    monkeypatch.setattr(_Nothing, "search", search)
    for k in (10, 150):
        for mode in ("dense", "hybrid"):
            engine = _NothingByURI(uri="nothing://host", mode=mode, ef=20)
            store = _Nothing.at(None, "documents")
            assert engine._ranked(store, Query("q", "cell"), None, k) == []
    assert told == [("dense", 20), ("hybrid", 100), ("dense", 150), ("hybrid", 150)]


@pytest.mark.parametrize("ties_by_id", [False, True])
def test_who_orders_ties_by_id_is_not_asked_again(
    ties_by_id: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    def search(store: EngineStore, asked: Asked) -> Hits:
        told.append(asked.k)
        return [(f"d{at}", 1.0) for at in range(min(asked.k, 30))]

    monkeypatch.setattr(_Nothing, "ties_by_id", ties_by_id)
    monkeypatch.setattr(_Nothing, "search", search)
    engine = _NothingByURI(uri="nothing://host", exact=True)
    hits = engine._ranked(_Nothing.at(None, "documents"), Query("q", "cell"), None, 3)
    assert [doc_id for doc_id, _ in hits] == (
        ["d0", "d1", "d2"] if ties_by_id else ["d0", "d1", "d10"]
    )
    assert told == ([3] if ties_by_id else [4, 16, 64])


@pytest.mark.parametrize(
    "uri", ["", "http://me:geheim@host", "geheim", "//", "nothing://", "nothing://h:x"]
)
def test_a_bad_address_is_told_without_being_shown(uri: str) -> None:
    with pytest.raises(ConfigError, match="no address") as raised:
        _NothingByURI(uri=uri)
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mode": "sparse"}, "mode = 'sparse'"),
        ({"ef": 0}, "ef = 0"),
        ({"load": {"index": "ivf"}}, "'index'"),
        ({"encoder": {"modell": 1}}, "modell"),
        ({"table": "a; b"}, "table 'a; b'"),
        ({"language": "englisch"}, "language = 'englisch'"),
        ({"uri": "nothing://host", "language": "english"}, "load or language beside a uri"),
        ({"uri": "nothing://host", "load": {"index": "exact"}}, "load or language beside a uri"),
    ],
)
def test_a_bad_parameter_is_told(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        _NothingByURI(**params)
    assert str(raised.value.where).startswith("retriever nothing")


@pytest.mark.parametrize(
    "uri",
    [
        "qdrant+https://geheim@host",
        "qdrant://geheim:@host",
        "qdrant://host?token=geheim",
        "qdrant://:12/34geheim@host",
        "qdrant://:#geheim@host",
        "qdrant://:/geheim",
        "qdrant:///folder#geheim",
        "postgresql://me:12/34geheim@host/base",
        "postgresql://me:12?geheim@host/base",
        "postgresql://me:#geheim@host/base",
        "postgresql://me@host:1,other:geheim/base",
        "qdrant://host:1,other:2",
    ],
)
def test_a_secret_in_a_wrong_place_is_refused_and_never_shown(uri: str) -> None:
    with pytest.raises(ConfigError, match="no address of the engine") as raised:
        Address.parse(uri, ("qdrant", "qdrant+https", "postgresql"), "test")
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("qdrant+https://:geheim@host:1", "qdrant+https://:***@host:1"),
        ("milvus://me:geheim@host/base", "milvus://me:***@host/base"),
        ("qdrant:///home/me@work", "qdrant:///home/me@work"),
        ("postgresql://me@host/base?sslmode=require", None),
        ("mysql://me@host/base?ssl_ca=/file", None),
        ("postgresql://me:@/base?host=/run", None),
        (
            "postgresql://me:geheim@one:1,two:2,three/base",
            "postgresql://me:***@one:1,two:2,three/base",
        ),
        (
            "postgresql://me:geheim@host/base?sslmode=require&sslp%61ssword=geheim",
            "postgresql://me:***@host/base?sslmode=require&sslp%61ssword=***",
        ),
    ],
)
def test_an_address_is_shown_without_its_secrets(uri: str, shown: str | None) -> None:
    schemes = ("qdrant", "qdrant+https", "milvus", "postgresql", "mysql")
    address = Address.parse(uri, schemes, "test")
    assert address.shown == (shown or uri)
    assert uri == address.uri
    assert json.loads(json.dumps(secrets.redact(f"at {uri}"))) == f"at {shown or uri}"


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"big": 2**53 - 1}, False),
        ({"big": {"in": ["a", True, 1.5]}}, False),
        ({"big": {"gte": 2**60}}, False),
        ({"big": 2**53}, True),
        ({"big": {"in": [1, -(2**53) - 1]}}, True),
        ({"big": 2.0**60}, True),
    ],
)
def test_a_number_that_is_one_double_with_its_neighbours_is_refused(
    given: dict[str, Any], refused: bool
) -> None:
    condition = parse_filter(given).condition
    assert isinstance(condition, Condition)
    with pytest.raises(ContractError, match="below 2") if refused else nullcontext():
        columns.by_kind(condition, "an engine")


def test_values_that_a_key_with_dots_hides_are_not_sent() -> None:
    given = {"a.b": 2, "a": {"b": 1, "c": {"d": 3}}, "a.c": 4, "x.y": 5, "z": 6}
    assert _unambiguous(given) == {**given, "a": {"c": {"d": 3}}}


def test_a_collection_of_other_documents_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """K7: by its hash: a document that went or changed since; nothing where they are the same."""
    documents = [Document("a", "apples"), Document("b", "pears")]
    content, n = content_of(documents)
    held = {**LOADED, "content": content, "documents": n, "finished": True}
    monkeypatch.setattr(_Nothing, "known", lambda self: dict(held))

    class Held(Engine):
        store = _Nothing

    def told(*asking: Document) -> Sequence[str]:
        engine = Held(uri="nothing://x", mode="bm25")
        engine.use_corpus(list(asking), {})
        engine.use_k(10)
        return engine.health([])

    assert told(*documents) == told(*documents[::-1]) == []
    for other in (documents[:1], [documents[0], Document("b", "plums")]):
        (warning,) = told(*other)
        assert f"table documents (2) are not those of the dataset ({len(other)}):" in warning
        assert says([warning], Code.FOREIGN_IDS)
