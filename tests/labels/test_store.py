"""The file of labels: everything is on disk, nothing is lost."""

from __future__ import annotations

import os
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench_labels.label import Kind, Label, Pair
from retrieval_bench_labels.store import Store
from tests.builders.labels import make_pool, make_store
from tests.builders.processes import completed

PAIR = Pair("q0", "d0-0")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "labels.sqlite")


def test_what_was_said_is_read_back_as_it_was(store: Store) -> None:
    label = Label(PAIR, "안나", 3, Kind.PERSON, "", "good 👍", (4, 9), "2026-11-23T10:00:00+00:00")
    store.add(label)
    assert Store(store.path).labels() == [label]


def test_undo_takes_back_ones_own_last_word_and_nothing_that_was_imported(store: Store) -> None:
    for grade in (1, 2):
        store.add(Label(PAIR, "anna", grade))
    assert [label.grade for label in store.labels()] == [2]
    store.undo("anna")
    assert [label.grade for label in store.labels()] == [1]
    store.undo("anna")
    assert store.labels() == []
    assert store.undo("anna") is None
    store.add(Label(PAIR, "anna", 1, source="anna.json"))
    store.add(Label(PAIR, "ben", 2))
    assert store.undo("anna") is None
    assert len(store.labels()) == 2


@pytest.mark.parametrize("grade", [4, -1])
def test_a_grade_out_of_range_is_refused_and_nothing_is_kept(store: Store, grade: int) -> None:
    with pytest.raises(ConfigError, match="0 to 3"):
        store.add_all([Label(PAIR, "anna", 1), Label(PAIR, "anna", grade)])
    assert store.labels() == []


def test_many_threads_lose_nothing(store: Store) -> None:
    def judge(at: int) -> None:
        store.add(Label(Pair(f"q{at % 3}", f"d{at % 3}-{at % 2}"), f"p{at}", at % 4))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(judge, range(40)))
    assert len(store.labels()) == 40


def test_only_as_many_people_as_allowed_get_a_query(store: Store) -> None:
    assert store.claim("q0", "anna", 1)
    assert store.claim("q0", "anna", 1)
    assert not store.claim("q0", "ben", 1)
    assert store.claim("q0", "ben", 2)
    assert list(store.claims()["q0"]) == ["anna", "ben"]
    assert store.claim("q0", "chen", 1, idle=["anna", "ben"])


@pytest.mark.slow
def test_a_kill_loses_no_answer(store: Store) -> None:
    code = f"""
import os
from pathlib import Path
from retrieval_bench_labels.label import Label, Pair
from retrieval_bench_labels.store import Store
store = Store(Path({str(store.path)!r}))
for at in range(5):
    store.add(Label(Pair("q0", f"d0-{{at}}"), "anna", at % 4))
os.kill(os.getpid(), 9)
"""
    assert completed(sys.executable, "-c", code, check=False).returncode == -9
    assert len(Store(store.path).labels()) == 5


def test_no_file_and_no_pool_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="label pool"):
        Store(tmp_path / "none.sqlite")
    with pytest.raises(ConfigError, match="no pool in the file"):
        Store.create(tmp_path / "empty.sqlite").pool()


def test_what_is_no_file_of_labels_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    other.write_text("no database, but long enough to be looked at" * 40, encoding="utf-8")
    with pytest.raises(RecordError, match="cannot use the file of labels"):
        Store(other)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as base:
        base.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)")
        base.execute("INSERT INTO facts VALUES ('version', '99')")
    base.close()
    before = foreign.read_bytes()
    with pytest.raises(RecordError, match="of version 99"):
        Store(foreign)
    assert foreign.read_bytes() == before


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="needs a folder without rights"
)
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RecordError, match="--labels"):
        Store.create(tmp_path / "labels.sqlite")


def test_another_pool_keeps_what_was_judged(store: Store) -> None:
    store.add(Label(PAIR, "anna", 2))
    store.put_pool(make_pool(queries=1))
    assert [label.grade for label in store.labels()] == [2]
