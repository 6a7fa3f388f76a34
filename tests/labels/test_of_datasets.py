"""What labels take over from a dataset, and what a dataset that is written of them says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset, load_dataset
from retrieval_bench_labels.decide.status import status
from retrieval_bench_labels.exchange.exporting import export_labels
from retrieval_bench_labels.exchange.importing import import_labels
from retrieval_bench_labels.exchange.questions import from_log
from retrieval_bench_labels.label import Label, Pair
from retrieval_bench_labels.pool import Wanted, make_pool
from retrieval_bench_labels.queue import next_task
from retrieval_bench_labels.store import Store
from tests.builders import some

DOCUMENTS = [Document(f"d{at}", f"text number {at}") for at in range(1, 7)]
QUERIES = [Query("q1", "what one"), Query("q2", "what two"), Query("q3", "what three")]
LISTS = {
    "a": {"q1": ["d1", "d2"], "q2": ["d3"], "q3": ["d5"]},
    "b": {"q1": ["d2", "d1"], "q2": ["d4"], "q3": ["d5"]},
}


def data(qrels: Mapping[str, Any] | None = None, *more: Query) -> Dataset:
    return build_dataset("mine", DOCUMENTS, [*QUERIES, *more], qrels)


def pooled(folder: Path, dataset: Dataset) -> Store:
    store = Store.create(folder / f"{len([*folder.iterdir()])}.sqlite")
    make_pool(store, dataset, LISTS, Wanted(depth=3))
    return store


def judge(store: Store, *queries: str, who: str = "anna") -> None:
    pool = store.pool()
    digests = pool.digests()
    for pair in pool.pairs:
        if pair.query_id in queries:
            store.add(Label(pair, who, int(pair.doc_id != "d2"), digest=digests[pair]))


def test_a_grade_below_0_is_asked_for(tmp_path: Path) -> None:
    store = pooled(tmp_path, data({"q1": {"d1": -1, "d2": -1}, "q2": {"d3": 1, "d4": 0}}))
    assert {label.grade for label in store.labels()} == {0, 1}
    assert some(next_task(store.pool(), store, "anna")).query.id in {"q1", "q3"}


def test_labels_that_come_back_with_a_dataset_are_no_second_judge(tmp_path: Path) -> None:
    store = pooled(tmp_path, data())
    judge(store, "q1", "q2", "q3")
    export_labels(store, data(), "beir", tmp_path / "out")
    make_pool(store, load_dataset(tmp_path / "out"), LISTS, Wanted(depth=3))
    assert not status(store).agreements
    assert {label.who for label in store.labels()} == {"anna"}


def test_what_is_judged_whole_later_is_drawn_from_nothing(tmp_path: Path) -> None:
    store = pooled(tmp_path, data())
    judge(store, "q1")
    assert export_labels(store, data(), "beir", tmp_path / "first").drawn_from == 3
    first = load_dataset(tmp_path / "first")
    assert first.drawn_from == 3
    later = pooled(tmp_path, first)
    judge(later, "q1", "q2", "q3")
    export_labels(later, first, "beir", tmp_path / "whole")
    assert load_dataset(tmp_path / "whole").drawn_from is None


def test_new_questions_have_nothing_of_the_old_ones(tmp_path: Path) -> None:
    talks = [Query(q.id, q.text, metadata={"talk": q.id}) for q in QUERIES]
    judged = build_dataset("mine", DOCUMENTS, talks, {"q1": {"d1": 1}})
    judged = replace(judged, cluster_key="talk", drawn_from=3, judges={"anna": "person"})
    (tmp_path / "log.csv").write_text("text,count\nalpha,3\nbeta,2\n", encoding="utf-8")
    from_log(tmp_path / "log.csv", judged, tmp_path / "asked", n=2)
    asked = load_dataset(tmp_path / "asked")
    assert (asked.cluster_key, asked.drawn_from, dict(asked.judges)) == (None, None, {})


def test_a_relevant_document_of_a_query_without_an_answer_is_not_written(tmp_path: Path) -> None:
    without = data(None, Query("q4", "hello", metadata={"answerable": False}))
    store = pooled(tmp_path, without)
    judge(store, "q1", "q2", "q3")
    (tmp_path / "qrels.txt").write_text("q4 0 d1 2\nq1 0 d1 1\n", encoding="utf-8")
    import_labels(store, tmp_path / "qrels.txt", without, who="ben")
    assert export_labels(store, without, "beir", tmp_path / "out").gone == 1
    assert "q4" not in load_dataset(tmp_path / "out").qrels


def test_what_somebody_is_judging_is_given_to_nobody_else(tmp_path: Path) -> None:
    store = pooled(tmp_path, data())
    pool = store.pool()
    first = some(next_task(pool, store, "anna"))
    while task := next_task(pool, store, "ben"):
        assert task.query != first.query
        for doc_id in task.left:
            pair = Pair(task.query.id, doc_id)
            store.add(Label(pair, "ben", 1, digest=pool.digests()[pair]))
    pair = Pair(first.query.id, first.left[0])
    store.add(Label(pair, "anna", None, digest=pool.digests()[pair]))
    assert some(next_task(pool, store, "ben")).left == (pair.doc_id,)
