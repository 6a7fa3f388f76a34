"""How alike two systems answer: overlap and rank-biased overlap, and the queries that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.runs.run import Run
from retrieval_bench_modes.likeness import (
    PERSISTENCE,
    Positions,
    likeness,
    overlap,
    rank_biased_overlap,
    shared,
)
from retrieval_bench_modes.unjudged import Unjudged, told_by
from tests.builders.runs import sample_run, unjudged_run

LISTS = st.lists(st.integers(0, 12), unique=True, max_size=9)


def rows(*lists: Sequence[int], width: int = 0) -> Positions:
    wide = max([width, *map(len, lists)])
    return np.array([[*one, *[-1] * (wide - len(one))] for one in lists], dtype=np.int64)


def rbo(a: Sequence[int], b: Sequence[int], p: float = PERSISTENCE) -> float:
    return float(rank_biased_overlap(rows(a), rows(b), p)[0])


def by_the_definition(a: Sequence[int], b: Sequence[int], p: float) -> float:
    """Equation 32 of Webber, Moffat & Zobel (2010), term by term."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    n, s = len(long), len(short)
    common = [len({*long[:d]} & {*short[:d]}) for d in range(n + 1)]
    first = sum(common[d] / d * p**d for d in range(1, n + 1))
    beyond = sum(common[s] * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    return (1 - p) / p * (first + beyond) + ((common[n] - common[s]) / n + common[s] / s) * p**n


class TestOverlap:
    def test_it_is_what_both_have_over_the_longer_list_counted_at_every_depth(self) -> None:
        a = rows([1, 2, 3, 4], [1, 2], [1], [])
        b = rows([4, 3, 9, 8], [1], [5, 6, 7], [1])
        assert overlap(a, b).tolist() == [2 / 4, 1 / 2, 0.0, 0.0]
        assert shared(rows([1, 2, 3]), rows([2, 1, 4])).tolist() == [[0, 2, 2]]
        assert shared(rows([1, 2]), rows([2, 1, 4, 5])).tolist() == [[0, 2, 2, 2]]

    def test_two_empty_lists_are_the_same_and_no_query_has_no_value(self) -> None:
        assert overlap(rows([], [1]), rows([], [1])).tolist() == [1.0, 1.0]
        assert rank_biased_overlap(rows([], [1]), rows([], [1])).tolist() == [1.0, 1.0]
        none = np.empty((0, 3), dtype=np.int64)
        assert overlap(none, none).shape == rank_biased_overlap(none, none).shape == (0,)


class TestRankBiasedOverlap:
    @given(LISTS, LISTS, st.sampled_from([0.5, 0.9, 0.98]))
    def test_it_is_the_definition_symmetric_and_a_share(
        self, a: list[int], b: list[int], p: float
    ) -> None:
        found = rbo(a, b, p)
        assert 0 <= found <= 1
        assert found == pytest.approx(rbo(b, a, p))
        if a and b:
            assert found == pytest.approx(by_the_definition(a, b, p))

    @given(LISTS)
    def test_equal_lists_have_1_and_disjoint_ones_0(self, a: list[int]) -> None:
        assert rbo(a, a) == pytest.approx(1.0)
        assert overlap(rows(a), rows(a)) == 1.0
        if a:
            other = [one + 100 for one in a]
            assert rbo(a, other) == 0.0
            assert overlap(rows(a), rows(other)) == 0.0


FIRST = {"q0": ["a", "b"], "q1": ["c"], "q2": ["a", "b", "c"], "q3": []}
OTHER = {"q0": ["a", "b"], "q1": ["d"], "q2": ["b", "a", "c"], "q3": ["a"]}


class TestRuns:
    def test_pairs_have_means_with_intervals_and_queries_that_differ_most_come_first(self) -> None:
        found = likeness(["x", "y"], [unjudged_run("x", FIRST), unjudged_run("y", OTHER)], [(0, 1)])
        (pair,) = found.pairs
        assert (pair.a, pair.b, pair.n, pair.same) == ("x", "y", 4, 1)
        assert pair.overlap.mean == pytest.approx((1 + 0 + 1 + 0) / 4)
        low, high = pair.overlap.ci95 or (1.0, 0.0)
        assert 0 <= low < pair.overlap.mean < high <= 1
        assert [one.query_id for one in found.differing] == ["q1", "q3", "q2"]
        assert found.differing[1].first == {"x": (), "y": ("a",)}

    def test_what_one_did_not_answer_is_left_out_and_hides_nothing_of_the_others(self) -> None:
        x, y = unjudged_run("x", FIRST), unjudged_run("y", OTHER, failed=("q1",))
        (pair,) = likeness(["x", "y"], [x, y], [(0, 1)]).pairs
        assert pair.n == 3
        runs = [unjudged_run("x", FIRST), unjudged_run("y", OTHER)]
        runs.append(unjudged_run("z", FIRST, failed=tuple(FIRST)))
        found = likeness(["x", "y", "z"], runs, [(0, 1), (0, 2), (1, 2)])
        assert [pair.n for pair in found.pairs] == [4, 0, 0]
        assert np.isnan(found.pairs[1].rbo.mean)
        assert set(found.differing[0].first) == {"x", "y"}

    def test_lists_are_cut_at_the_smallest_k_and_the_order_of_queries_does_not_matter(self) -> None:
        x, y = unjudged_run("x", FIRST, k=1), unjudged_run("y", OTHER, k=3)
        found = likeness(["x", "y"], [x, y], [(0, 1)])
        assert found.k == 1
        assert [one.query_id for one in found.differing] == ["q1", "q2", "q3"]
        x, y = unjudged_run("x", FIRST), unjudged_run("y", dict(reversed(OTHER.items())))
        straight = unjudged_run("y", OTHER)
        assert likeness(["x", "y"], [x, y], [(0, 1)]) == likeness(
            ["x", "y"], [x, straight], [(0, 1)]
        )


class TestComparison:
    def test_nothing_is_said_of_quality(self) -> None:
        comparison = compare_runs([unjudged_run("x", FIRST), unjudged_run("y", OTHER)])
        (group,), (answer,) = comparison.groups, comparison.recommendations
        assert not comparison.deltas
        assert comparison.why_nothing is None
        assert isinstance(group, Unjudged)
        assert (answer.system, answer.leaders) == (None, ())
        assert answer.sentence.startswith("Nothing is judged yet")
        assert answer.reasons[0].startswith("x and y share 50 % of their top 10")

    @pytest.mark.parametrize(
        ("n", "other", "failed", "says"),
        [
            (300, 1, 0, "x and y share 99 % of their top 10, RBO 0.99."),
            (40, 0, 20, "x and y answer the same on the 20 of 40 queries that can be compared."),
            (40, 20, 20, "share 0 % of their top 10, RBO 0.00 on the 20 of 40 queries that can"),
            (40, 0, 0, "x and y answer all 40 queries the same."),
            (1, 0, 0, "x and y answer the same."),
        ],
    )
    def test_all_and_the_same_are_said_only_of_all_and_the_same(
        self, n: int, other: int, failed: int, says: str
    ) -> None:
        lists = {f"q{at}": ["a"] for at in range(n)}
        changed = lists | {f"q{at}": ["b"] for at in range(other)}
        lost = [f"q{at}" for at in range(n - failed, n)]
        x, y = unjudged_run("x", lists), unjudged_run("y", changed, failed=lost)
        (answer,) = compare_runs([x, y]).recommendations
        assert says in answer.reasons[0]

    def test_of_several_pairs_the_extremes_are_named_and_a_baseline_is_in_every_pair(self) -> None:
        runs = [unjudged_run("x", FIRST), unjudged_run("y", OTHER), unjudged_run("z", FIRST)]
        (answer,) = compare_runs(runs).recommendations
        assert "Of 3 pairs, x and y differ most" in answer.reasons[0]
        assert "x and z are most alike (they answer all 4 queries the same)" in answer.reasons[0]
        (group,) = compare_runs(runs, baseline="y").groups
        assert isinstance(group, Unjudged)
        assert [(pair.a, pair.b) for pair in group.likeness.pairs] == [("y", "x"), ("y", "z")]
        with pytest.raises(ConfigError, match="baseline 'w'"):
            compare_runs(runs, baseline="w")

    def test_each_dataset_gets_its_own_kind(self) -> None:
        judged = [sample_run("x", 0), sample_run("y", 1)]
        comparison = compare_runs([unjudged_run("x", FIRST), unjudged_run("y", OTHER), *judged])
        assert [isinstance(group, Unjudged) for group in comparison.groups] == [True, False]
        document = comparison.as_dict()
        assert [one["dataset"] for one in document["likeness"]] == ["loose"]
        assert {one["dataset"] for one in document["comparisons"]} == {"tiny"}
        assert "boards" not in document  # one dataset with means is no board
        assert comparison.groups[1].metrics[0] in comparison.metrics
        assert comparison.board(comparison.metrics[0]).datasets == ("tiny",)

    def test_runs_on_two_unjudged_datasets_cannot_be_compared(self) -> None:
        other = unjudged_run("y", OTHER, dataset="elsewhere")
        comparison = compare_runs([unjudged_run("x", FIRST), other])
        assert not isinstance(comparison.groups[0], Unjudged)
        assert "different dataset fingerprint" in (comparison.why_nothing or "")
        assert comparison.recommendations[0].sentence.startswith("Nothing here can be compared")


def dataset() -> Dataset:
    documents = [Document("a", "text of a", "Title of a"), Document("c", "text of c")]
    return build_dataset("loose", documents, [Query("q1", "질문 하나"), Query("q3", "trois")], None)


def test_texts_come_from_the_dataset_as_far_as_it_has_them() -> None:
    runs: list[Run] = [unjudged_run("x", FIRST), unjudged_run("y", OTHER)]
    found = likeness(["x", "y"], runs, [(0, 1)])
    assert found.without_texts
    told = told_by(found, dataset())
    assert told.without_texts == ""
    first = told.differing[0].as_dict()
    assert first["text"] == "질문 하나"
    assert first["systems"][0]["documents"] == [{"id": "c", "title": "text of c"}]
    assert first["systems"][1]["documents"] == [{"id": "d", "title": None}]
    silent = told.silent()
    assert silent.differing == found.differing
    assert replace(silent, without_texts="") != told
