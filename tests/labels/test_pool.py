"""Pooled documents, how they are shuffled, and what is remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.until import Target
from retrieval_bench_labels.decide.completeness import completeness
from retrieval_bench_labels.grades import settled
from retrieval_bench_labels.label import Kind, Label, Pair
from retrieval_bench_labels.pool import Wanted, make_pool
from retrieval_bench_labels.store import Store

N = 12


def data(
    texts: Mapping[str, str] | None = None, qrels: Mapping[str, Mapping[str, int]] | None = None
) -> Dataset:
    documents = [Document(f"d{at}", f"text {at}", f"title {at}") for at in range(40)]
    documents = [Document(d.id, (texts or {}).get(d.id, d.text), d.title) for d in documents]
    queries = [Query(f"q{at}", f"질문 {at}") for at in range(N)]
    queries.append(Query("none", "hello", metadata={"answerable": False}))
    return build_dataset("mine", documents, queries, qrels)


def lists(shift: int = 0, depth: int = 5) -> dict[str, Sequence[str]]:
    return {f"q{at}": [f"d{(at + step + shift) % 40}" for step in range(depth)] for at in range(N)}


def turned() -> dict[str, Sequence[str]]:
    return {query: docs[::-1] for query, docs in lists().items()}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "labels.sqlite")


def test_it_is_the_union_to_the_depth_with_texts(store: Store) -> None:
    pool = make_pool(store, data(), {"a": lists(), "b": lists(2)}, Wanted(depth=3, metric="nDCG@3"))
    query = next(one for one in pool.queries if one.id == "q0")
    assert sorted(query.documents) == ["d0", "d1", "d2", "d3", "d4"]
    assert pool.documents["d0"] == Document("d0", "text 0", "title 0")
    assert store.pool() == pool
    assert "none" not in {query.id for query in pool.queries}


def test_the_order_of_documents_says_nothing_of_ranks_and_is_that_of_the_seed(store: Store) -> None:
    one = make_pool(store, data(), {"a": lists(depth=10)})
    orders = {tuple(int(d[1:]) - int(q.id[1:]) for d in q.documents) for q in one.queries}
    assert len(orders) > 6
    assert {
        q.id: q.documents for q in make_pool(store, data(), {"a": lists(depth=10)}).queries
    } == {q.id: q.documents for q in one.queries}
    other = make_pool(store, data(), {"a": lists(depth=10)}, Wanted(seed=9))
    assert {q.id: q.documents for q in other.queries} != {q.id: q.documents for q in one.queries}


def test_another_system_changes_no_order_that_was_there(store: Store) -> None:
    before = make_pool(store, data(), {"a": lists(), "b": lists(1)})
    again = make_pool(store, data(), {"a": lists(), "b": lists(1)})
    assert [q.id for q in again.queries] == [q.id for q in before.queries]
    assert again.generation == 1


def test_the_judgements_of_the_dataset_come_along_once(store: Store) -> None:
    qrels = {"q0": {"d0": 1, "d39": 2}}
    for _ in range(2):
        make_pool(store, data(qrels=qrels), {"a": lists(), "b": lists(2)})
    assert [(label.pair, label.grade, label.kind) for label in store.labels()] == [
        (Pair("q0", "d0"), 1, Kind.DATASET),
        (Pair("q0", "d39"), 2, Kind.DATASET),
    ]


def test_what_the_dataset_no_longer_judges_no_longer_counts(store: Store) -> None:
    systems = {"a": lists(), "b": lists(2)}
    make_pool(store, data(qrels={"q0": {"d0": 1, "d1": 2, "d2": 1}}), systems)
    store.add(Label(Pair("q0", "d1"), "anna", 3))
    make_pool(store, data(qrels={"q0": {"d0": 1, "d2": 0}}), systems)
    assert {(label.pair.doc_id, label.who, label.grade) for label in store.labels()} == {
        ("d0", "mine", 1),
        ("d2", "mine", 0),
        ("d1", "anna", 3),
    }


def test_a_new_pool_after_judging_is_drawn_anew_of_what_is_left(store: Store) -> None:
    systems = {"a": lists(), "b": lists(2)}
    by_difference = Wanted(target=Target.SPLIT)
    pool = make_pool(store, data(), systems, by_difference)
    first, digests = pool.queries[0], pool.digests()
    pairs = [Pair(first.id, doc) for doc in first.documents]
    store.add_all([Label(pair, "anna", 1, digest=digests[pair]) for pair in pairs])
    more = make_pool(store, data(), {**systems, "c": turned()}, by_difference)
    assert more.generation == 2
    assert more.queries[0].id == first.id
    assert [query.known for query in more.queries] == [True] + [False] * (N - 1)


def test_a_plain_random_order_depends_on_ids_and_seed_alone(store: Store) -> None:
    systems = {"a": lists(), "b": lists() | {"q3": ["d20"], "q7": ["d21"]}}
    pool = make_pool(store, data(), systems)
    assert pool.target is Target.POPULATION
    assert {query.id: query.weight for query in pool.queries if query.weight} == {"q3": 1, "q7": 1}
    assert {query.id for query in pool.in_turn[:2]} == {"q3", "q7"}
    assert [query.weight for query in pool.queries[:2]] != [1, 1]  # drawn, not chosen
    digests = pool.digests()
    store.add_all([Label(pair, "anna", 1, digest=digests[pair]) for pair in pool.pairs[:30]])
    more = make_pool(store, data(), {**systems, "c": turned()})
    assert [query.id for query in more.queries] == [query.id for query in pool.queries]
    assert more.generation == 2
    turned_data = build_dataset("mine", data().documents or (), data().queries[::-1], None)
    again = make_pool(store, turned_data, systems)
    assert [query.id for query in again.queries] == [query.id for query in pool.queries]
    other = make_pool(store, data(), systems, Wanted(seed=1))
    assert [query.id for query in other.queries] != [query.id for query in pool.queries]


def test_failed_queries_are_remembered(store: Store) -> None:
    systems = {"a": lists(), "b": lists(1) | {"q2": []}}
    pool = make_pool(store, data(), systems, failed={"b": ["q2"]})
    assert store.pool().failed == pool.failed == {"b": ("q2",)}


def test_a_file_that_does_not_say_whose_mean_was_drawn_by_differences(store: Store) -> None:
    make_pool(store, data(), {"a": lists(), "b": lists(1)})
    for fact in ("target", "failed"):
        store.set_fact(fact, None)
    assert (store.pool().target, store.pool().failed) == (Target.SPLIT, {})


def test_labels_of_a_text_that_has_changed_are_kept_and_do_not_count(store: Store) -> None:
    pool = make_pool(store, data(), {"a": lists()})
    digests = pool.digests()
    for doc in ("d0", "d1"):
        store.add(Label(Pair("q0", doc), "anna", 2, digest=digests[Pair("q0", doc)]))
    make_pool(store, data({"d0": "another text"}), {"a": lists()})
    assert [label.pair.doc_id for label in store.labels()] == ["d1"]
    assert [label.pair.doc_id for label in store.outdated()] == ["d0"]
    make_pool(store, data(), {"a": lists()})  # the old text is back
    assert [label.pair.doc_id for label in store.labels()] == ["d0", "d1"]


def test_a_unit_is_one_text_of_all_its_documents(store: Store) -> None:
    documents = [Document(f"c{at}", f"part {at}", metadata={"page": "p"}) for at in range(2)]
    dataset = build_dataset("units", documents, [Query("q", "what")], None, unit_key="page")
    pool = make_pool(store, dataset, {"a": {"q": ["p"]}})
    assert pool.documents["p"].text == "part 0\n\npart 1"


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({}, "no system to pool"),
        ({"a": {"other": ["d0"]}}, "no query of the runs is in dataset 'mine'"),
        ({"a": {"q0": ["gone"]}}, "1 document of the runs are not in dataset 'mine'"),
    ],
)
def test_lists_of_another_dataset_are_refused(
    store: Store, systems: Mapping[str, Mapping[str, Sequence[str]]], message: str
) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        make_pool(store, data(), systems)
    assert store.fact("systems") is None


@pytest.mark.parametrize(
    "wanted",
    [Wanted(depth=0), Wanted(metric="nDCG@20"), Wanted(metric="AP"), Wanted(metric="Utility"),
     Wanted(margin=-1)],
)  # fmt: skip
def test_what_a_pool_cannot_decide_is_refused(wanted: Wanted) -> None:
    with pytest.raises(ConfigError):
        wanted.checked()


@pytest.mark.parametrize(
    ("systems", "relevant", "estimated", "brought"),
    [
        # Chapman's, of two systems.
        (("d0 d1 d2 d3", "d0 d1 d4 d5"), "d0 d1 d2 d4 d5", 4 * 5 / 3 - 1, [(2, 1), (2, 2)]),
        # Chao's, of three. Once: d2, d3, d4; twice: d1; three times: d0.
        (("d0 d1 d2", "d0 d1 d3", "d0 d4"), "d0 d1 d2 d3 d4", 5 + 2 / 3 * 3 * 2 / 4, [(1, 1)] * 3),
    ],
)
def test_completeness_is_estimated_by_what_systems_find_together(
    store: Store, systems: Sequence[str], relevant: str, estimated: float, brought: Any
) -> None:
    lists = {name: {"q0": docs.split()} for name, docs in zip("abc", systems, strict=False)}
    pool = make_pool(store, data(), lists)
    for doc in pool.queries[0].documents:
        store.add(Label(Pair("q0", doc), "anna", int(doc in relevant.split())))
    found = completeness(pool, settled(store.labels()))
    n = len(pool.queries[0].documents)
    assert (found.judged, found.pairs, found.relevant) == (n, n, 5)
    assert found.estimated == pytest.approx(estimated)
    assert [(one.alone, one.relevant_alone) for one in found.brought] == brought
