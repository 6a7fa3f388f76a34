"""Which query is judged next: bounds that hold, an order with known chances, an estimate without
bias."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.labels.draws import all_bounds, bounds, drawn_order, estimate, weights
from retrieval_bench.metrics import Judgements, Metric, judge_lists, parse_metrics

NAMES = ["nDCG@3", "RR@3", "P@3", "R@3", "Success@3", "AP@3", "nDCG(gain=exp)@3"]


def metric(name: str) -> Metric:
    (found,) = parse_metrics([name])
    return found


def values(name: str, a: list[str], b: list[str], grades: dict[str, int]) -> float:
    judged = Judgements({"q": grades or {"": 0}})
    both = [metric(name).compute(judge_lists({"q": one}, ["q"], judged))[0] for one in (a, b)]
    return float(both[1] - both[0])


documents = st.lists(st.sampled_from("abcdefg"), max_size=4, unique=True)


@pytest.mark.parametrize("name", NAMES)
@given(
    a=documents,
    b=documents,
    grades=st.dictionaries(st.sampled_from("abcdefghi"), st.integers(0, 3)),
)
def test_no_judgement_moves_a_difference_out_of_its_bounds(
    name: str, a: list[str], b: list[str], grades: dict[str, int]
) -> None:
    low, high = bounds(metric(name), a, b)
    assert low - 1e-12 <= values(name, a, b, grades) <= high + 1e-12


@pytest.mark.parametrize("name", ["nDCG@3", "RR@3", "P@3", "R@3", "Success@3"])
@pytest.mark.parametrize(
    ("a", "b"), [("abc", "bad"), ("abc", "def"), ("ab", "abc"), ("", "abc"), ("abcd", "abce")]
)
def test_bounds_are_reached(name: str, a: str, b: str) -> None:
    pool = sorted({*a, *b})
    reached = [
        values(name, list(a), list(b), dict(zip(pool, grades, strict=True)))
        for grades in product((0, 1), repeat=len(pool))
    ]
    low, high = bounds(metric(name), list(a), list(b))
    assert min(reached) == pytest.approx(low)
    assert max(reached) == pytest.approx(high)


def test_what_lies_behind_the_cut_changes_nothing() -> None:
    assert bounds(metric("nDCG@2"), list("abc"), list("abd")) == (0.0, 0.0)


def test_a_metric_of_no_known_range_cannot_decide() -> None:
    with pytest.raises(ConfigError, match="known range, such as nDCG@10"):
        bounds(metric("Utility"), ["a"], ["b"])


def test_weights_are_the_mean_over_pairs_of_what_can_differ() -> None:
    lists = [{"x": ["a"], "y": ["a"]}, {"x": ["b"], "y": ["a"]}, {"x": ["b"], "y": ["b"]}]
    found = weights(all_bounds(metric("P@1"), lists, ["x", "y", "z"]))
    # Pairs differ on x, on both, on y: shares (1, 0), (.5, .5), (0, 1).
    assert found.tolist() == [0.5, 0.5, 0.0]


def test_a_query_is_first_as_often_as_its_weight_says() -> None:
    chances = np.array([4.0, 3.0, 2.0, 1.0, 0.0])
    first = [drawn_order(chances, seed)[0] for seed in range(4_000)]
    shares = np.bincount(first, minlength=5) / 4_000
    assert shares == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.0], abs=0.03)


def test_what_changes_nothing_comes_last_and_orders_differ_by_seed_and_generation() -> None:
    chances = np.array([0.0, 1.0, 0.0, 2.0, 1.0])
    assert {0, 2} == set(drawn_order(chances, 7)[3:].tolist())
    orders = {tuple(drawn_order(np.ones(9), seed, at)) for seed in (1, 2) for at in (1, 2)}
    assert len(orders) == 4
    assert drawn_order(chances, 3).tolist() == drawn_order(chances, 3).tolist()


@pytest.mark.parametrize("n", [1, 3, 7])
def test_the_estimate_has_no_bias_whatever_the_chances(n: int) -> None:
    values_ = np.array([0.9, -0.2, 0.4, 0.0, 0.3, -0.8, 0.1, 0.5, 0.0])
    chances = np.array([0.9, 0.3, 0.5, 0.2, 0.9, 0.9, 0.1, 0.6, 0.0])
    found = [estimate(values_, chances, drawn_order(chances, seed), n) for seed in range(6_000)]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - values_.mean()) < 4 * error


def test_the_estimate_is_the_mean_when_all_are_drawn() -> None:
    values_, chances = np.array([0.5, -0.25, 0.125, 0.0]), np.array([1.0, 1.0, 0.5, 0.0])
    assert estimate(values_, chances, drawn_order(chances, 0), 3) == values_.mean()
    assert estimate(values_, chances, drawn_order(chances, 0), 0) == 0.0
