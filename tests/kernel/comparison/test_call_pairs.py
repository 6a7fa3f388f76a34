from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.call_pairs import (
    STALL,
    Pairs,
    harrell_davis,
    log_ratios,
    stalls_cut,
    tail_thetas,
    theta,
    trimmed_mean,
    typical_thetas,
    whole_clusters,
)
from retrieval_bench.measure.calls import Timings
from retrieval_bench.stats.percentiles import medians
from tests.builders.runs import taken, timings


def shuffled(calls: Timings, seed: int) -> Timings:
    return taken(calls, np.random.default_rng(seed).permutation(len(calls.wall_ns)))


def lognormal(seed: int, *shape: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).lognormal(0, 0.4, shape)


def test_pairs_are_calls_of_one_query_round_and_launch() -> None:
    a = np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    pairs = log_ratios(timings(a), timings(a * [1.0, 2.0]))
    assert np.exp(pairs.log_a) == pytest.approx(a.ravel() * 1e6)
    assert pairs.launch.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert pairs.round.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert pairs.query.tolist() == [0, 1] * 4
    assert np.exp(pairs.log_ratio) == pytest.approx([1.0, 2.0] * 4)


def test_the_order_of_the_calls_does_not_matter() -> None:
    a, b = timings(lognormal(1, 2, 3, 20)), timings(lognormal(2, 2, 3, 20))
    expected, found = log_ratios(a, b), log_ratios(shuffled(a, 3), shuffled(b, 4))
    for name in ("log_a", "log_b", "launch", "round", "position", "query"):
        np.testing.assert_allclose(
            getattr(expected, name), getattr(found, name), rtol=1e-12, atol=1e-15, err_msg=str(name)
        )


def test_calls_that_failed_or_that_one_side_did_not_make_are_in_no_pair() -> None:
    a = np.array([[[1, -1, 1, 1], [1, np.nan, 1, -1]]])
    b = np.array([[[2, 2, -2, 2], [2, 2, np.nan, -2]]])
    pairs = log_ratios(timings(a), timings(b))
    assert (pairs.failed, pairs.query.tolist(), pairs.round.tolist()) == (3, [0, 3, 0], [0, 0, 1])
    a = np.ones((1, 3, 4))
    b = np.full((2, 2, 4), 2.0)
    b[0, 1, 2:] = np.nan
    pairs = log_ratios(timings(a), timings(b))
    assert (len(pairs.query), pairs.launches, pairs.failed) == (6, 1, 0)
    nothing = timings(np.zeros((1, 0, 3)))
    assert len(log_ratios(nothing, timings(np.ones((1, 1, 3)))).query) == 0
    pairs = log_ratios(timings([[[0.0]]]), timings([[[0.0]]]))
    assert pairs.log_ratio.tolist() == [0.0]


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9, 10, 166])
@pytest.mark.parametrize("cut", [0.0, 0.1, 0.2])
def test_the_trimmed_mean_is_that_of_scipy(n: int, cut: float) -> None:
    from scipy.stats import trim_mean

    values = np.random.default_rng(n).normal(size=n)
    assert trimmed_mean(values, cut) == pytest.approx(float(trim_mean(values, cut)), abs=1e-14)


@pytest.mark.parametrize("n", [1, 2, 30, 200, 1_001])
@pytest.mark.parametrize("level", [50.0, 95.0, 99.0])
def test_harrell_davis_is_that_of_scipy(n: int, level: float) -> None:
    from scipy.stats.mstats import hdquantiles

    values = np.random.default_rng(n).lognormal(size=n)
    expected = values[0] if n == 1 else float(hdquantiles(values, [level / 100])[0])
    assert harrell_davis(values, level) == pytest.approx(float(expected), rel=1e-9)


def test_theta_is_the_trimmed_mean_over_queries_of_medians_over_rounds() -> None:
    ratio = np.random.default_rng(5).normal(size=(3, 10))
    by_hand = np.sort(np.median(ratio, axis=0))[2:8].mean()
    query = np.tile(np.arange(10), 3)
    assert theta(ratio.ravel(), query) == pytest.approx(float(by_hand))
    ratio = np.full((3, 10), 0.05)
    ratio[1, 4] = 5.0
    ratio[:, 7] = 3.0
    ratio[:, 8] = -3.0
    assert theta(ratio.ravel(), np.tile(np.arange(10), 3)) == pytest.approx(0.05)


def test_launches_are_the_clusters_from_five_on_and_rounds_before() -> None:
    a = lognormal(1, 5, 4, 6)
    five = whole_clusters(log_ratios(timings(a), timings(a * 1.1)))
    four = whole_clusters(log_ratios(timings(a[:4]), timings(a[:4] * 1.1)))
    one = whole_clusters(log_ratios(timings(a[:1]), timings(a[:1] * 1.1)))
    assert [groups.n for _, groups in (five, four, one)] == [5, 8, 4]
    assert typical_thetas(*five) == pytest.approx([math.log(1.1)] * 5, abs=1e-6)


def test_what_an_interruption_left_of_a_round_or_a_launch_is_left_out() -> None:
    a = np.ones((1, 6, 8))
    a[0, 5, 3:] = np.nan
    pairs, groups = whole_clusters(log_ratios(timings(a), timings(a * 2)))
    assert (groups.n, len(pairs.query)) == (5, 40)
    a[0, 5, 3] = 1.0
    pairs, groups = whole_clusters(log_ratios(timings(a), timings(a * 2)))
    assert (groups.n, len(pairs.query)) == (6, 44)
    a = np.ones((5, 1, 8))
    a[4, 0, 2:] = np.nan
    pairs, groups = whole_clusters(log_ratios(timings(a), timings(a * 2)))
    assert (pairs.launches, groups.words) == (4, "4 rounds")


def test_the_tail_is_the_ratio_of_the_slow_ends_of_each_launch_without_stalled_calls() -> None:
    a = lognormal(3, 5, 3, 200)
    slow = np.where(np.arange(200) >= 170, 2.0, 1.0)
    base = np.sort(a, axis=2)
    pairs = log_ratios(timings(base), timings(base * slow))
    assert np.exp(tail_thetas(pairs)) == pytest.approx([2.0] * 5, rel=0.02)
    assert np.exp(typical_thetas(*whole_clusters(pairs))) == pytest.approx([1.0] * 5, abs=1e-5)
    a = np.random.default_rng(4).lognormal(0, 0.01, (6, 1, 200)) * np.linspace(1, 3, 200)
    b = a.copy()
    b[2, 0, :20] *= 50  # one launch was interrupted in a tenth of the quickest queries
    ratios = np.exp(tail_thetas(log_ratios(timings(a), timings(b))))
    assert ratios == pytest.approx([1.0] * 6, abs=0.01)


def test_a_stall_counts_as_two_deviations_from_what_is_usual_for_its_query_on_its_side() -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(0, 0.1, (2, 50, 40))
    noise[0, 3, 7] = 4.0
    query = np.tile(np.arange(40, dtype=np.int32), 50)
    launch = np.repeat(np.arange(50), 40).astype(np.int32)
    log_a, log_b = noise.reshape(2, -1) + query * 0.2
    zeros = np.zeros(2000, dtype=np.int32)
    cut = stalls_cut(Pairs(log_a, log_b + 1, launch, zeros, zeros, query))
    at = 3 * 40 + 7
    usual = float(np.median(log_a[query == 7]))
    assert cut.log_a[at] - usual == pytest.approx(STALL * 0.1, rel=0.06)
    same = np.abs(log_a - medians(log_a, query)[query]) < STALL * 0.08
    assert cut.log_a[same] == pytest.approx(log_a[same])
    assert cut.log_b - log_b == pytest.approx(np.ones(2000), abs=0.35)


def test_medians_are_those_of_each_group() -> None:
    rng = np.random.default_rng(6)
    values, group = rng.normal(size=97), rng.integers(3, 20, 97)
    by_hand = [np.median(values[group == one]) for one in np.unique(group)]
    assert medians(values, group) == pytest.approx(by_hand)


def test_joined_launches_are_numbered_anew() -> None:
    a = lognormal(8, 2, 3, 4)
    one = log_ratios(timings(a), timings(2 * a))
    both = Pairs.joined([one, one.take(one.launch == 1)])
    assert np.bincount(both.launch).tolist() == [24, 12]
    assert both.log_ratio == pytest.approx(np.full(36, math.log(2)), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["a busy time", "slow queries that vary more", "stalls"])
def test_launches_stay_as_different_as_they_are(what: str) -> None:
    """The interval of the tail of equal sides holds 0 in about 98 of 100 cases."""
    rng = np.random.default_rng(9)
    zeros, query = np.zeros(200, dtype=np.int32), np.arange(200, dtype=np.int32)
    spread = np.where(query >= 150, 0.1, 0.02 if what.startswith("slow") else 0.1)
    beyond = 0
    for _ in range(150):
        made = []
        for launch in range(6):
            logs = query / 200 + spread * rng.normal(size=(2, 200))
            logs += 0.4 * (what == "a busy time" and launch < 2)
            logs += (what == "stalls") * (rng.random((2, 200)) < 0.05)
            made.append(Pairs(logs[0], logs[1], zeros + launch, zeros, query, query))
        found = tail_thetas(Pairs.joined(made))
        beyond += abs(found.mean()) > 3.365 * found.std(ddof=1) / math.sqrt(6)  # t, 5 df, 99 %
    assert beyond <= 11  # 2 % of 150, and what chance and the steps of 200 queries add
