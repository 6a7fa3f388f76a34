"""Rankings without the query itself."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Dataset, Document, LegTrace, Query, Ranking, StepTrace
from retrieval_bench.core.units.collapsing import collapse
from retrieval_bench.core.units.self_hits import WithoutSelf, as_judged, without_self
from retrieval_bench.core.units.wrapped import Wrapped
from retrieval_bench.data import build_dataset
from retrieval_bench.data.self_queries import with_self_hits
from tests.builders import some


class Listed(Retriever):
    """Returns the head of one list, and remembers how many were asked for."""

    def __init__(self, *doc_ids: str, external: bool = False) -> None:
        self.doc_ids, self.external = doc_ids, external
        self.asked: list[int] = []
        self.told: list[int] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=self.external)

    def index(self, documents: Iterable[Document]) -> None:
        pass

    def use_k(self, k: int) -> None:
        self.told.append(k)

    def search(self, query: Query, k: int) -> list[tuple[str, float]]:
        self.asked.append(k)
        return [(doc_id, -float(at)) for at, doc_id in enumerate(self.doc_ids[:k])]


def doc_ids(found: object) -> list[str]:
    assert isinstance(found, Ranking)
    return list(found.doc_ids)


def test_one_more_is_asked_for_where_the_query_is_a_document() -> None:
    inner = Listed("a", "q1", "b", "c")
    retriever = WithoutSelf(inner, {"q1"})
    found = retriever.search(Query("q1", "any"), 2)
    assert (doc_ids(found), inner.asked) == (["a", "b"], [3])
    assert isinstance(found, Ranking)
    assert found.self_hits == 1
    assert list(some(found.scores)) == [0.0, -2.0]
    assert retriever.search(Query("q2", "any"), 2) == [("a", 0.0), ("q1", -1.0)]
    assert inner.asked == [3, 2]


def test_texts_and_sources_stay_with_their_hits() -> None:
    given = Ranking(["q", "a", "b"], texts=["self", "of a", None], sources=["1", "2", "3"])
    kept = without_self(given, "q")
    assert (kept.doc_ids, kept.texts, kept.sources) == (["a", "b"], ["of a", None], ["2", "3"])
    units = collapse(given, {"q": "A", "a": "A"}, 5)
    assert (units.doc_ids, units.texts, units.sources) == (["A", "b"], ["self", None], ["1", "3"])


def test_one_behind_the_cut_is_no_dropped_hit() -> None:
    found = WithoutSelf(Listed("a", "b", "q1"), {"q1"}).search(Query("q1", "any"), 2)
    assert isinstance(found, Ranking)
    assert (doc_ids(found), found.self_hits) == (["a", "b"], 0)


def test_the_depth_is_told_beforehand() -> None:
    inner = Listed()
    WithoutSelf(inner, {"q1"}).use_k(5)
    WithoutSelf(inner, None).use_k(5)
    WithoutSelf(inner, frozenset()).use_k(5)
    assert inner.told == [6, 6, 5]


def test_lists_of_legs_and_steps_lose_the_query_too() -> None:
    leg = LegTrace([2, 1, 3], [5.0, 9.0, 1.0], ["q", "a", "b"], [9.0, 5.0, 1.0])
    step = StepTrace(["q", "b"], [2.0, 1.0])
    ranking = Ranking(["a", "q", "b"], [3.0, 2.0, 1.0], legs={"leg": leg}, steps={"step": step})
    found = without_self(ranking, "q", 2)
    assert list(found.doc_ids) == ["a", "b"]
    assert np.asarray(found.legs["leg"].ranks).tolist() == [1, 2]  # in the list without it
    assert list(found.legs["leg"].doc_ids or ()) == ["a", "b"]
    assert np.asarray(found.legs["leg"].doc_scores).tolist() == [5.0, 1.0]
    assert list(found.steps["step"].doc_ids or ()) == ["b"]
    assert found.collapsed_from is ranking  # what parts are left out of


def dataset(unit_key: str | None = None) -> Dataset:
    rows = (("u#1", "u", "an uncommon word"), ("u#2", "u", "x"), ("v#1", "v", "y"))
    documents = [Document(id_, text, metadata={"page": unit}) for id_, unit, text in rows]
    if unit_key is None:
        documents = [Document(one.id.replace("#", ""), one.text) for one in documents]
    own = "u" if unit_key else "u1"
    queries = [Query(own, "an uncommon word"), Query("other", "x y z")]
    wanted = "v" if unit_key else "v1"
    qrels = {own: {wanted: 1}, "other": {wanted: 1}}
    return build_dataset("own", documents, queries, qrels, unit_key=unit_key)


def test_with_units_it_is_the_unit_that_has_the_id_of_the_query() -> None:
    data = with_self_hits(dataset("page"), "drop")
    inner = Listed("u#1", "u#2", "v#1")
    found = as_judged(inner, data).search(Query("u", "any"), 1)
    assert doc_ids(found) == ["v"]


def test_an_index_whose_documents_are_not_known_is_always_asked_for_one_more() -> None:
    data = with_self_hits(dataset(), "drop")
    for external, asked in ((False, [3, 2]), (True, [3, 3])):
        inner = Listed("u1", "u2", "v1", external=external)
        retriever = as_judged(inner, data)
        assert doc_ids(retriever.search(Query("u1", "any"), 2)) == ["u2", "v1"]
        retriever.search(Query("other", "any"), 2)
        assert inner.asked == asked


@pytest.mark.parametrize("rule", ["keep", None])
def test_a_dataset_that_keeps_them_wraps_nothing(rule: str | None) -> None:
    inner = Listed("u1")
    assert as_judged(inner, with_self_hits(dataset(), rule)) is inner


def test_a_wrapper_passes_on_the_contract_but_what_is_asked_of_the_one_inside() -> None:
    contract = {name for name in vars(Retriever) if not name.startswith("_")}
    asked_before = {"accepts", "named_legs", "shared"}  # of configs and of tuning
    assert contract - set(vars(Wrapped)) == {*asked_before, "progress", "search"}
