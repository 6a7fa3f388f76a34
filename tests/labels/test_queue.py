"""Who judges what next."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from retrieval_bench_labels.label import Kind, Label, Pair
from retrieval_bench_labels.queue import IDLE_S, Task, next_task, progress
from retrieval_bench_labels.store import Store
from tests.builders.labels import make_pool, make_store

QUERIES = 20
POOL = make_pool(queries=QUERIES, depth=2)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "labels.sqlite", POOL)


def judge(store: Store, who: str, grade: int | None = 1) -> Task | None:
    task = next_task(POOL, store, who)
    if task is not None:
        store.add_all([Label(Pair(task.query.id, doc), who, grade) for doc in task.documents])
    return task


def test_alone_one_judges_all_in_the_order_drawn(store: Store) -> None:
    asked = []
    while (task := judge(store, "anna")) is not None:
        asked.append(task.query.id)
    assert asked == [query.id for query in POOL.queries]
    assert progress(POOL, store, "anna").finished == QUERIES


def test_a_query_is_shown_until_all_of_it_is_answered(store: Store) -> None:
    task = next_task(POOL, store, "anna")
    assert task is not None
    store.add(Label(Pair(task.query.id, task.documents[0]), "anna", 1))
    again = next_task(POOL, store, "anna")
    assert again is not None
    assert (again.query, again.documents) == (task.query, task.documents)
    assert again.left == task.documents[1:]


def test_two_share_the_queries_and_some_are_judged_by_both(store: Store) -> None:
    of: dict[str, list[str]] = {"anna": [], "ben": []}
    going = True
    while going:
        going = False
        for who, asked in of.items():
            if (task := judge(store, who)) is not None:
                asked.append(task.query.id)
                going = True
    both = set(of["anna"]) & set(of["ben"])
    assert set(of["anna"]) | set(of["ben"]) == {query.id for query in POOL.queries}
    assert 1 <= len(both) < QUERIES / 2


def test_what_two_differ_on_goes_to_a_third(store: Store) -> None:
    pair = Pair("q3", "d3-0")
    store.add(Label(pair, "anna", 0))
    store.add(Label(pair, "ben", 3))
    assert progress(POOL, store).disputed == 1
    task = next_task(POOL, store, "chen")
    assert task is not None
    assert (task.query.id, task.documents, task.again) == ("q3", ("d3-0",), True)
    store.add(Label(pair, "chen", 3))
    assert progress(POOL, store).disputed == 0
    mine = next_task(POOL, store, "anna")
    assert mine is not None
    assert not mine.again


def test_what_one_skipped_comes_to_another_in_the_end(store: Store) -> None:
    while judge(store, "anna", None) is not None:
        pass
    assert progress(POOL, store, "anna").skipped == 2 * QUERIES
    assert next_task(POOL, store, "anna") is None
    assert next_task(POOL, store, "ben") is not None


def test_what_the_dataset_judged_is_not_asked_but_what_a_model_judged(store: Store) -> None:
    first, *others = POOL.queries
    for query, who, kind in ((first, "gpt", Kind.MODEL), *((q, "d", Kind.DATASET) for q in others)):
        store.add_all([Label(Pair(query.id, doc), who, 1, kind) for doc in query.documents])
    task = judge(store, "anna", 3)
    assert task is not None
    assert task.query.id == "q0"
    assert {label.who for label in store.labels() if label.pair.query_id == "q0"} == {"gpt", "anna"}
    assert next_task(POOL, store, "anna") is None


def test_what_somebody_began_and_left_goes_to_the_next_person(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = next_task(POOL, store, "ben")
    assert begun is not None
    other = next_task(POOL, store, "anna")
    assert other is not None
    assert other.query != begun.query
    now = time.time() + 2 * IDLE_S
    monkeypatch.setattr("retrieval_bench_labels.queue.time.time", lambda: now)
    asked = []
    while (task := judge(store, "anna")) is not None:
        asked.append(task.query.id)
    assert begun.query.id in asked
