"""Which query is judged next: an order with known chances, and an estimate without bias."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval_bench.metrics import parse_metric
from retrieval_bench_labels.decide.draws import all_bounds, drawn_order, estimate, weights


def test_weights_are_the_mean_over_pairs_of_what_can_differ() -> None:
    lists = [{"x": ["a"], "y": ["a"]}, {"x": ["b"], "y": ["a"]}, {"x": ["b"], "y": ["b"]}]
    found = weights(all_bounds(parse_metric("P@1"), lists, ["x", "y", "z"]))
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


@pytest.mark.slow
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
