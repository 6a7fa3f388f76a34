"""Clusters are the unit of tests, intervals and queries needed; the mean is over queries."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import HIT, SHARE, mean_intervals
from retrieval_bench.stats.paired import paired_tests
from tests.benchmarks.cluster_coverage import cells
from tests.builders import some

RNG = np.random.default_rng(58)
ALPHA = np.array([[0.05]])


def test_labels_that_are_all_different_are_no_clusters() -> None:
    assert Clusters.by(["a", "b", "c"]) is None
    assert Clusters.by(None) is None
    assert Clusters.by([]) is None
    assert some(Clusters.by(["a", "b", "a"])).sizes.tolist() == [2, 1]


def test_copies_of_each_query_say_what_the_queries_say() -> None:
    values = RNG.uniform(0, 1, (2, 20, 1))
    alone = paired_tests(values, [(0, 1)], scales=[SHARE], extra=["t", "wilcoxon"])
    order = RNG.permutation(100)
    of = np.repeat(np.arange(20), 5)[order]
    several = np.repeat(values, 5, axis=1)[:, order]
    found = paired_tests(
        several, [(0, 1)], scales=[SHARE], extra=["t", "wilcoxon"], clusters=Clusters.by(list(of))
    )
    assert (found.n, found.units, alone.units) == (100, 20, 20)
    for name in ("difference", "p_equivalence", "weighty"):
        assert getattr(found, name) == pytest.approx(getattr(alone, name))
    assert found.bounds(ALPHA) == pytest.approx(alone.bounds(ALPHA), abs=1e-6)
    for name, p in alone.extra.items():
        assert found.extra[name] == pytest.approx(p)
    (needs,), (more,) = alone.queries_needed(0.05)[0], found.queries_needed(0.05)[0]
    assert more.difference == 5 * some(needs.difference)


def test_the_interval_holds_every_mean_that_flips_of_clusters_do_not_reject() -> None:
    sizes = [1, 4, 2, 7, 3, 1, 2, 5]
    of = np.repeat(np.arange(8), sizes)
    values = np.stack([np.zeros(len(of)), RNG.normal(0.1, 0.3, len(of))])[:, :, None]
    found = paired_tests(values, [(0, 1)], clusters=Clusters.by(of.tolist()))
    low, high = found.intervals(ALPHA)[0, 0]
    sums, d = np.bincount(of, values[1, :, 0]), np.array(sizes)

    def p(mean: float) -> float:
        left = sums - mean * d
        flips = np.array(list(product((-1, 1), repeat=8))) @ left
        return float((np.abs(flips) >= abs(left.sum()) - 1e-9).mean())

    assert found.p[0, 0] == p(0.0)
    for mean in np.linspace(low - 0.05, high + 0.05, 41):
        if min(abs(mean - low), abs(mean - high)) > 1e-6:
            assert (p(mean) >= 0.05) is bool(low < mean < high), mean


@pytest.mark.parametrize("clusters", [5, 6])
def test_under_six_clusters_no_end_can_be_given(clusters: int) -> None:
    of = np.repeat(np.arange(clusters), 20).tolist()
    values = np.stack([np.zeros((100 + 20 * (clusters - 5), 1)), np.ones((len(of), 1))])
    found = paired_tests(values, [(0, 1)], clusters=Clusters.by(of), scales=[SHARE])
    assert bool(found.p[0, 0] < 0.05) is (clusters == 6)
    assert bool(found.intervals(ALPHA)[0, 0, 0] > 0) is (clusters == 6)


def test_an_interval_of_a_mean_is_of_clusters_and_of_one_size_that_of_their_means() -> None:
    hits = np.repeat([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0], 10)[:, None]
    clusters = some(Clusters.by(np.repeat(np.arange(8), 10).tolist()))
    sizes = clusters.sizes
    (ends,) = mean_intervals(clusters.means(hits), [HIT], sizes=sizes)
    (alone,) = mean_intervals(hits[::10], [SHARE])
    assert ends == pytest.approx(alone, abs=1e-6)
    (unknown,) = mean_intervals(clusters.means(hits), [None], sizes=sizes)
    assert unknown[1] - unknown[0] > 2 * np.diff(mean_intervals(hits, [None])[0])[0]


def test_a_large_cluster_counts_by_its_queries() -> None:
    of = [0] * 50 + [*range(1, 11)]
    values = np.r_[np.zeros(50), np.ones(10)][:, None]
    clusters = some(Clusters.by(of))
    low, high = mean_intervals(clusters.means(values), [SHARE], sizes=clusters.sizes)[0]
    assert low < 10 / 60 < high
    assert high > 0.5  # another large one might be all ones


def test_few_sets_are_covered_and_as_if_independent_they_are_not() -> None:
    for cell in cells((0.5,), (10,), 200):
        assert cell.covered > 0.88
        assert cell.as_queries < 0.65
    assert math.isclose(next(cells((0.0,), (30,), 100)).covered, 0.95, abs_tol=0.06)


@pytest.mark.slow
@pytest.mark.long
def test_every_cell_reaches_the_goals() -> None:
    found = list(cells())
    assert np.mean([cell.covered for cell in found]) >= 0.93
    assert all(cell.covered >= (0.90 if cell.clusters == 10 else 0.91) for cell in found)
