from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.ranking import checked_ranking, top_k
from retrieval_bench.core.types import LegTrace, Ranking


@given(
    values=st.lists(st.integers(-3, 3), max_size=1500),
    repeat=st.integers(1, 3),
    k=st.integers(1, 40),
)
@settings(deadline=None, max_examples=150)
def test_top_k_is_the_head_of_the_full_sort(values: list[int], repeat: int, k: int) -> None:
    scores = np.array(values * repeat, dtype=np.float32)
    full = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    assert top_k(scores, k).tolist() == full[:k]


def test_top_k_of_a_large_random_array() -> None:
    scores = np.random.default_rng(3).random(100_003).astype(np.float32)
    assert top_k(scores, 100).tolist() == np.argsort(-scores, kind="stable")[:100].tolist()


def test_of_a_list_that_is_far_too_long_no_more_is_read_than_tells() -> None:
    class Endless(list[str]):
        """Says that it holds a billion ids, and has no end."""

        def __len__(self) -> int:
            return 10**9

        def __iter__(self) -> Iterator[str]:
            return repeat("d1")

    with pytest.raises(ContractError, match="1000000000 hits"):
        checked_ranking(Ranking(Endless()), 5, {"d1"})


def test_pairs_become_a_ranking_and_without_scores_the_list_order_counts() -> None:
    ranking = checked_ranking([("b", 2.0), ("a", 1)], k=3)
    assert list(ranking) == [("b", 2.0), ("a", 1.0)]
    assert checked_ranking(Ranking(["b", "a"]), k=2).doc_ids == ["b", "a"]
    assert checked_ranking([("b", 1.0), ("a", 2.0)], k=2, has_scores=False).scores is None
    assert len(checked_ranking([], k=5)) == 0


def test_ties_come_out_by_id_with_all_of_a_hit_and_the_caller_s_ranking_stays() -> None:
    raw = Ranking(
        ["b", "a", "c"], [1.0, 1.0, 0.5], legs={"x": LegTrace([1, 2, 0], [9.0, 8.0, 7.0])}
    )
    ranking = checked_ranking(raw, k=3)
    assert ranking.doc_ids == ["a", "b", "c"]
    assert list(ranking.legs["x"].ranks) == [2, 1, 0]
    assert list(ranking.legs["x"].scores) == [8.0, 9.0, 7.0]
    ids, scores = ["b", "a"], [1.0, 1.0]
    checked_ranking(Ranking(ids, scores), k=2)
    assert (ids, scores) == (["b", "a"], [1.0, 1.0])


def test_texts_and_sources_of_hits_stay_with_their_hits() -> None:
    raw = Ranking(["b", "a"], [1.0, 1.0], texts=["of b", None], sources=["b.md", "a.md"])
    ranking = checked_ranking(raw, k=2)
    assert (ranking.doc_ids, ranking.texts) == (["a", "b"], [None, "of b"])
    assert ranking.sources == ["a.md", "b.md"]
    assert (ranking.first(1).texts, ranking.first(1).sources) == ([None], ["a.md"])
    refused: list[Any] = [["one"], ["one", 2], ["one", "two", "three"]]
    for wrong in refused:
        with pytest.raises(ContractError, match="texts of 2 hits"):
            checked_ranking(Ranking(["b", "a"], texts=wrong), k=2)


def test_a_leg_s_whole_list_passes_through_in_its_own_order_as_a_copy() -> None:
    listed, scores = ["c", "z", "b", "a"], [4.0, 3.0, 2.0, 2.0]
    leg = LegTrace([3, 4], [2.0, 2.0], listed, scores)
    ranking = checked_ranking(Ranking(["b", "a"], [1.0, 1.0], legs={"x": leg}), k=2)
    listed[0], scores[0] = "written over", 0.0
    assert ranking.doc_ids == ["a", "b"]
    assert list(ranking.legs["x"].ranks) == [4, 3]
    assert ranking.legs["x"].doc_ids == ["c", "z", "b", "a"]
    assert ranking.legs["x"].doc_scores is not None
    assert list(ranking.legs["x"].doc_scores) == [4.0, 3.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ([("a", 1.0), ("b", 0.5), ("c", 0.1)], "3 hits returned"),
        ([("a", 1.0), ("a", 0.5)], "returned twice"),
        ([("a", 0.5), ("b", 1.0)], "score rises"),
        ([("a", float("inf"))], "finite"),
        ([("a", float("nan")), ("b", 1.0)], "finite"),
        ([(7, 1.0)], "of type int"),
        ([("zz", 1.0)], "not in the corpus"),
        (["a", "b"], "at rank 1"),
        ("ab", "search returned str"),
        (None, "search returned NoneType"),
        (Ranking(["a", "b"], [1.0]), "1 scores for 2"),
        (Ranking(["a"], ["high"]), "scores"),  # type: ignore[list-item]
        ([([], 1.0)], "of type list"),
        (Ranking(["a"], [1.0], legs={"x": LegTrace([], [])}), "leg 'x' has 0 ranks"),
        (
            Ranking(["a"], [1.0], legs={"x": LegTrace([1], [1.0], ["a", "a"])}),
            "leg 'x' lists 2 ids, 1 of them distinct, and no scores",
        ),
        (
            Ranking(["a"], [1.0], legs={"x": LegTrace([1], [1.0], ["a", "b"], [1.0])}),
            "leg 'x' lists 2 ids, 2 of them distinct, and 1 scores",
        ),
    ],
)
def test_a_broken_ranking_is_an_error_that_says_what_is_wrong(raw: object, says: str) -> None:
    with pytest.raises(ContractError, match=says):
        checked_ranking(raw, k=2, known_ids={"a", "b", "c"})
