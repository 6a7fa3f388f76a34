"""Relevance units: chunks collapse to their documents, and the list is filled up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Document, LegTrace, Query, Ranking
from retrieval_bench.core.units.collapsing import UnitRetriever, collapse
from tests.builders import some

QUERY = Query("1", "any")
UNITS = {"a1": "A", "a2": "A", "b1": "B", "b2": "B", "c1": "C"}


class Fixed(Retriever):
    """Returns the head of one list, and remembers how it was used."""

    def __init__(self, hits: Sequence[tuple[str, float]], *, has_scores: bool = True) -> None:
        self.hits = sorted(hits, key=lambda hit: (-hit[1], hit[0])) if has_scores else list(hits)
        self.has_scores = has_scores
        self.asked: list[int] = []
        self.calls: list[Any] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(exact=False, has_scores=self.has_scores, score_tolerance=0.5)

    def index(self, documents: Iterable[Document]) -> None:
        self.calls.append(list(documents))

    def use_language(self, language: str | None) -> None:
        self.calls.append(language)

    def search(self, query: Query, k: int) -> Ranking:
        require_k(k)
        self.asked.append(k)
        ids = [doc_id for doc_id, _ in self.hits[:k]]
        scores = [score for _, score in self.hits[:k]] if self.has_scores else None
        return Ranking(ids, scores, stages={"sparse": 10, "fuse": k})

    def describe(self) -> Mapping[str, Any]:
        return {"inner": True}

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        return [f"{len(queries)} queries"]

    def disk_bytes(self) -> int | None:
        return 7

    def save(self, folder: Path) -> None:
        self.calls.append(("save", folder))

    def load(self, folder: Path) -> None:
        self.calls.append(("load", folder))

    def close(self) -> None:
        self.calls.append("close")


class TestCollapse:
    def test_the_first_hit_of_each_unit_stays_and_the_others_are_counted(self) -> None:
        ranking = Ranking(["b2", "a1", "b1", "a2", "c1"], [5, 4, 3, 2, 1], collapsed=10)
        units = collapse(ranking, UNITS, 3)
        assert list(units) == [("B", 5.0), ("A", 4.0), ("C", 1.0)]
        assert units.collapsed == 12

    def test_what_lies_behind_the_last_unit_is_cut_off_and_not_counted(self) -> None:
        units = collapse(Ranking(["a1", "b1", "a2", "b2"]), UNITS, 2)
        assert (units.doc_ids, units.scores, units.collapsed) == (["A", "B"], None, 0)

    def test_ids_that_repeat_collapse_without_any_mapping(self) -> None:
        units = collapse(Ranking(["x", "y", "x", "z"]), {}, 3)
        assert (units.doc_ids, units.collapsed) == (["x", "y", "z"], 1)

    def test_legs_and_stages_go_with_their_hits(self) -> None:
        leg = LegTrace(np.array([3, 1, 2], np.int32), np.array([0.3, 0.1, 0.2]))
        ranking = Ranking(["a1", "a2", "b1"], [3, 2, 1], {"fuse": 5}, {"bm25": leg})
        units = collapse(ranking, UNITS, 2)
        assert list(units.legs["bm25"].ranks) == [3, 2]
        assert list(units.legs["bm25"].scores) == [0.3, 0.2]
        assert units.stages == {"fuse": 5}

    def test_the_whole_list_of_a_leg_becomes_one_of_units(self) -> None:
        leg = LegTrace([1], [9.0], ["a2", "x", "a1", "b1", "b2"], [9.0, 8.0, 7.0, 6.0, 5.0])
        one = collapse(Ranking(["a2"], [1.0], legs={"bm25": leg}), UNITS, 1).legs["bm25"]
        assert one.doc_ids == ["A", "x", "B"]
        assert list(some(one.doc_scores)) == [9.0, 8.0, 6.0]

    def test_equal_scores_in_a_leg_s_list_come_by_unit_id(self) -> None:
        leg = LegTrace([1], [9.0], ["1", "2", "3"], [1.0, 1.0, 0.5])
        units = {"1": "z", "2": "y", "3": "x"}
        one = collapse(Ranking(["1"], [1.0], legs={"bm25": leg}), units, 1).legs["bm25"]
        assert one.doc_ids == ["y", "z", "x"]

    def test_a_leg_s_list_without_scores_keeps_its_order_and_one_not_told_stays_so(self) -> None:
        legs = {"a": LegTrace([1], [9.0], ["b1", "b2", "a1"]), "b": LegTrace([1], [9.0])}
        units = collapse(Ranking(["b1"], [1.0], legs=legs), UNITS, 1)
        assert units.legs["a"].doc_ids == ["B", "A"]
        assert units.legs["a"].doc_scores is None
        assert units.legs["b"].doc_ids is None

    def test_the_ranking_given_stays_as_it_is(self) -> None:
        ids, scores = ["a1", "a2", "b1"], np.array([3.0, 2.0, 1.0])
        collapse(Ranking(ids, scores), UNITS, 2)
        assert ids == ["a1", "a2", "b1"]
        assert scores.tolist() == [3, 2, 1]


class TestUnitRetriever:
    def test_it_asks_for_more_until_the_units_are_together(self) -> None:
        inner = Fixed([("a1", 9), ("a2", 8), ("b1", 7), ("b2", 6), ("c1", 5), ("d", 4)])
        ranking = UnitRetriever(inner, UNITS).search(QUERY, 3)
        assert ranking.doc_ids == ["A", "B", "C"]
        assert ranking.collapsed == 2
        assert inner.asked == [4, 8]
        assert ranking.stages == {"sparse": 20, "fuse": 12}

    def test_one_call_does_when_nothing_collapses(self) -> None:
        inner = Fixed([("a1", 9), ("b1", 8), ("c1", 7), ("d", 6)])
        assert UnitRetriever(inner, UNITS).search(QUERY, 3).doc_ids == ["A", "B", "C"]
        assert inner.asked == [4]

    def test_it_ends_where_the_inner_one_has_no_more(self) -> None:
        inner = Fixed([("a1", 9), ("a2", 8), ("b1", 7)])
        ranking = UnitRetriever(inner, UNITS).search(QUERY, 5)
        assert (ranking.doc_ids, inner.asked) == (["A", "B"], [6])

    def test_without_scores_the_order_of_the_list_counts(self) -> None:
        hits = [("b1", 0.0), ("b2", 0.0), ("a1", 0.0), ("c1", 0.0)]
        inner = Fixed(hits, has_scores=False)
        ranking = UnitRetriever(inner, UNITS).search(QUERY, 2)
        assert (ranking.doc_ids, ranking.scores) == (["B", "A"], None)
        assert inner.asked == [2, 4]

    def test_a_document_that_the_inner_one_repeats_is_its_error(self) -> None:
        inner = Fixed([("a1", 9.0), ("a1", 8.0), ("b1", 7.0)])
        with pytest.raises(ContractError, match="'a1' returned twice"):
            UnitRetriever(inner, UNITS).search(QUERY, 2)

    def test_k_below_one_is_an_error(self) -> None:
        with pytest.raises(ContractError, match="k = 0"):
            UnitRetriever(Fixed([]), UNITS).search(QUERY, 0)

    def test_everything_else_is_that_of_the_inner_one(self, tmp_path: Path) -> None:
        inner = Fixed([])
        outer = UnitRetriever(inner, UNITS)
        document = Document("a1", "text")
        outer.use_language("ko")
        outer.index([document])
        outer.save(tmp_path)
        outer.load(tmp_path)
        outer.close()
        assert inner.calls == ["ko", [document], ("save", tmp_path), ("load", tmp_path), "close"]
        assert outer.capabilities == inner.capabilities
        assert outer.describe() == {"inner": True}
        assert outer.health([QUERY]) == ["1 queries"]
        assert outer.disk_bytes() == 7

    @settings(deadline=None, derandomize=True)
    @given(
        hits=st.lists(
            st.tuples(st.integers(0, 30), st.integers(0, 3)),
            unique_by=lambda hit: hit[0],
            max_size=25,
        ),
        n_units=st.integers(1, 8),
        k=st.integers(1, 12),
    )
    def test_the_best_units_by_the_tie_rule_come_out(
        self, hits: list[tuple[int, int]], n_units: int, k: int
    ) -> None:
        unit_of = {f"d{i}": f"u{i * 7 % n_units}" for i in range(31) if i % 5}
        chunks = [(f"d{i}", float(score)) for i, score in hits]
        best: dict[str, float] = {}
        for doc_id, score in chunks:
            unit = unit_of.get(doc_id, doc_id)
            best[unit] = max(score, best.get(unit, score))
        expected = sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:k]
        ranking = UnitRetriever(Fixed(chunks), unit_of).search(QUERY, k)
        assert [tuple(hit) for hit in ranking] == expected
