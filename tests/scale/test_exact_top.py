from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_bench.core.types import Ranking
from retrieval_bench_scale.approximate.exact_top import TIE_MARGIN, ExactTopK, exact_top_k
from tests.builders import some


def ranking(scores: list[float]) -> Ranking:
    return Ranking([f"d{at:03}" for at in range(len(scores))], scores)


def truth(scores: list[float], k: int, tolerance: float = 1e-9) -> ExactTopK:
    """Of a search over all ``scores``, which fall."""

    def ask(depth: int) -> Ranking:
        return ranking(scores[:depth])

    return some(exact_top_k(ask(k + TIE_MARGIN), k, tolerance, ask))


def test_the_first_k_are_right_in_any_order() -> None:
    found = truth([9.0, 8.0, 7.0, 6.0], 2)
    assert found == ExactTopK(frozenset({"d000"}), frozenset({"d001"}), 2)
    assert found.recall(Ranking(["d001", "d000"])) == 1
    assert found.recall(Ranking(["d001", "d003"])) == 0.5


def test_what_ties_with_the_last_within_the_tolerance_is_right_and_counts_no_more_than_k() -> None:
    found = truth([9.0, 8.0, 8.0, 8.0, 1.0], 2)
    assert found.best == {"d000"}
    assert found.tied == {"d001", "d002", "d003"}
    assert found.recall(Ranking(["d000", "d003"])) == 1
    assert found.recall(Ranking(["d002", "d003"])) == 0.5  # a better one is missed
    assert found.recall(Ranking(["d002", "d004"])) == 0.5
    scores = [1.0, 0.5, 0.5 * (1 - 1e-6), 0.4]
    assert len(truth(scores, 2, 1e-5).tied) == 2
    assert len(truth(scores, 2, 1e-9).tied) == 1


@pytest.mark.parametrize("n", [TIE_MARGIN + 3, 5 * TIE_MARGIN, 200])
def test_ties_are_followed_however_deep_they_go(n: int) -> None:
    assert len(truth([1.0] * n + [0.5] * 40, 2).tied) == n


def test_few_documents_are_the_whole_truth_and_nothing_to_find_is_none() -> None:
    found = truth([3.0, 2.0], 10)
    assert (found.wanted, len(found.best)) == (2, 2)
    assert found.recall(Ranking(["d000"])) == 0.5
    found = some(exact_top_k(Ranking(["a", "b", "c"]), 2, 1e-9, lambda depth: Ranking(["a"])))
    assert found.best == {"a", "b"}
    assert exact_top_k(Ranking([], []), 10, 1e-9, lambda depth: Ranking([])) is None
    assert truth([1.0], 1).recall(None) == 0


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 20), st.randoms())
def test_an_exhaustive_search_finds_all_whichever_way_ties_fall(
    levels: list[int], k: int, random: object
) -> None:
    levels.sort(reverse=True)
    found = truth([float(one) for one in levels], k)
    places = list(range(len(levels)))
    random.shuffle(places)  # type: ignore[attr-defined]
    places.sort(key=lambda at: -levels[at])
    assert found.recall(Ranking([f"d{at:03}" for at in places[:k]])) == 1
    lost = [f"d{at:03}" for at in places[1:k]]
    assert found.recall(Ranking(lost)) == pytest.approx(1 - 1 / found.wanted)
