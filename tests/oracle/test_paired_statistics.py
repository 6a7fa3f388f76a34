"""Paired statistics against scipy and statsmodels, and by simulation against what they promise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from retrieval_bench.stats.paired import equivalence_p, paired_tests
from retrieval_bench.stats.power import queries_needed
from retrieval_bench.stats.randomization import randomization_p
from retrieval_bench.stats.resampling import holm
from tests.builders import some

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]

RUNS = 2_000
ERROR = 2 * math.sqrt(0.05 * 0.95 / RUNS)
"""Two standard errors of a rate of 5 % over the runs."""


def systems(n: int, seed: int = 0, *, count: int = 3, metrics: int = 2) -> Floats:
    """Systems that share how hard a query is; values as of nDCG, with ties."""
    rng = np.random.default_rng(seed)
    hard = rng.beta(2, 2, (1, n, metrics))
    return np.asarray((hard + rng.normal(0, 0.15, (count, n, metrics))).clip(0, 1).round(3))


class TestAgainstOtherLibraries:
    def test_scipy_permutation_test_exact(self) -> None:
        values = systems(10)
        found = paired_tests(values, [(0, 1), (2, 1)])
        for row, (a, b) in enumerate([(0, 1), (2, 1)]):
            for metric in range(2):
                theirs = scipy.stats.permutation_test(
                    (values[b, :, metric] - values[a, :, metric],),
                    np.sum,
                    permutation_type="samples",
                    n_resamples=1 << 10,
                )
                assert found.p[row, metric] == pytest.approx(theirs.pvalue)

    def test_scipy_ttest_rel_and_wilcoxon(self) -> None:
        values = systems(200)
        found = paired_tests(values, [(0, 1)], extra=["t", "wilcoxon"])
        for metric in range(2):
            a, b = values[0, :, metric], values[1, :, metric]
            theirs = scipy.stats.ttest_rel(b, a)
            assert found.extra["t"][0, metric] == pytest.approx(theirs.pvalue)
            assert found.effect_size[0, metric] == pytest.approx(theirs.statistic / math.sqrt(200))
            ranks = scipy.stats.wilcoxon((b - a).round(12))
            assert found.extra["wilcoxon"][0, metric] == pytest.approx(ranks.pvalue)
            assert found.p[0, metric] == pytest.approx(theirs.pvalue, abs=0.015)

    def test_scipy_interval_of_students_t(self) -> None:
        values = systems(120)
        ends = paired_tests(values, [(0, 1)]).intervals(np.full((1, 2), 0.05))
        for metric in range(2):
            theirs = scipy.stats.ttest_rel(values[1, :, metric], values[0, :, metric])
            low, high = theirs.confidence_interval(0.95)
            assert ends[0, metric] == pytest.approx([low, high], abs=0.003)

    def test_statsmodels_two_one_sided_tests_where_queries_are_many(self) -> None:
        from statsmodels.stats import weightstats

        rng = np.random.default_rng(1)
        a = rng.random(60_000)
        for shift in (0.007, -0.0075, 0.0):
            b = a + rng.normal(0, 0.4, 60_000)
            b += shift - (b - a).mean()
            theirs = weightstats.ttost_paired(b, a, -0.01, 0.01)[0]
            assert equivalence_p((b - a)[:, None])[0] == pytest.approx(theirs, abs=0.003)

    def test_statsmodels_two_one_sided_tests_with_the_query_that_was_not_seen(self) -> None:
        # The t test over the differences and one more, as large as it can be, is what ours is
        # without skewness and rare values.
        from statsmodels.stats import weightstats

        rng = np.random.default_rng(2)
        d = rng.normal(0, 0.06, 600)
        d += 0.003 - d.mean()
        theirs = weightstats.DescrStatsW(np.append(d, 1.0)).ttest_mean(0.01, "smaller")[1]
        assert 0.02 < theirs < 0.3
        assert equivalence_p(d[:, None])[0] == pytest.approx(theirs, abs=0.015)

    @pytest.mark.parametrize(("n", "ones"), [(300, 0), (480, 1), (1_000, 4), (5_000, 38)])
    def test_scipy_binomial_test_where_differences_are_zeros_and_ones(
        self, n: int, ones: int
    ) -> None:
        d = np.zeros((n, 1))
        d[:ones] = 1
        exact = scipy.stats.binomtest(ones, n, 0.01, alternative="less").pvalue
        assert exact < 0.06
        assert equivalence_p(d)[0] == pytest.approx(exact, rel=0.02)
        assert equivalence_p(-d)[0] == pytest.approx(exact, rel=0.02)

    @pytest.mark.parametrize("effect", [0.1, 0.2])
    @pytest.mark.parametrize("alpha", [0.05, 0.005])
    def test_statsmodels_power_of_the_t_test(self, effect: float, alpha: float) -> None:
        from statsmodels.stats import power

        z = scipy.stats.norm.ppf((np.arange(50) + 0.5) / 50)[:, None]
        (needed,) = queries_needed(effect + z / z.std(), alpha)
        theirs = power.TTestPower().solve_power(effect, alpha=alpha, power=0.8)
        assert 50 + some(needed.difference) == pytest.approx(theirs, rel=0.02)


def _sparse(above: float, below: float, size: float = 1.0) -> Draw:
    def draw(rng: np.random.Generator, n: int, columns: int) -> Floats:
        u = rng.random((n, columns))
        return np.asarray(size * ((u < above) * 1.0 - (u > 1 - below)))

    return draw


def _normal(mean: float, sd: float) -> Draw:
    return lambda rng, n, columns: rng.normal(mean, sd, (n, columns))


def _skewed(mean: float, sd: float) -> Draw:
    def draw(rng: np.random.Generator, n: int, columns: int) -> Floats:
        return np.asarray(mean + sd * (rng.gamma(0.5, size=(n, columns)) - 0.5) / math.sqrt(0.5))

    return draw


def _noise_and_rare(rare: float, sd: float, mean: float) -> Draw:
    def draw(rng: np.random.Generator, n: int, columns: int) -> Floats:
        noise = rng.normal((mean - rare) / (1 - rare), sd, (n, columns))
        return np.where(rng.random((n, columns)) < rare, 1.0, noise)

    return draw


def _evenly(distribution: Any, mean: float, sd: float) -> Floats:
    """40 differences spread as ``distribution``, scaled; a negative mean turns its tail."""
    values = distribution.ppf((np.arange(40) + 0.5) / 40)
    tail = np.sign(mean) * (values - values.mean()) / values.std()
    return np.asarray(mean + sd * (tail if mean else (values - values.mean()) / values.std()))


def _counted(counts: dict[float, int]) -> Floats:
    """200 differences, the rest of them ties."""
    values = np.repeat(list(counts), list(counts.values()))
    return np.append(values, np.zeros(200 - len(values)))


@pytest.mark.slow
@pytest.mark.long
class TestBySimulation:
    @pytest.mark.parametrize("name", ["usual", "sparse", "unlike"])
    def test_under_the_null_five_percent_tests_reject_in_four_to_six(self, name: str) -> None:
        rng = np.random.default_rng(3)
        n = 80
        if name == "usual":
            hard = rng.beta(2, 2, (1, n, RUNS))
            values = (hard + rng.normal(0, 0.15, (2, n, RUNS))).clip(0, 1)
        elif name == "sparse":  # most queries tie, as of nDCG over few judgements
            d = rng.beta(2, 3, (n, RUNS)) * rng.choice([-1, 0, 1], (n, RUNS), p=[0.2, 0.6, 0.2])
            values = np.stack([np.zeros((n, RUNS)), d])
        else:  # one system swings more than the other, on every query by its own measure
            d = rng.standard_t(4, (n, RUNS)) * rng.uniform(0.02, 0.3, (n, 1))
            values = np.stack([np.zeros((n, RUNS)), d])
        found = paired_tests(values, [(0, 1)], extra=["t", "wilcoxon"], resamples=5_000)
        for p in (found.p, *found.extra.values()):
            assert 0.04 <= (p < 0.05).mean() <= 0.06

    @pytest.mark.parametrize("better", [0, 1])
    def test_holm_keeps_the_family_wise_rate(self, better: int) -> None:
        rng = np.random.default_rng(5)
        n, count = 60, 5
        hard = rng.normal(0.5, 0.2, (1, n, RUNS))
        values = hard + rng.normal(0, 0.15, (count, n, RUNS))
        values[:better] += 0.12
        pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
        p = np.stack([randomization_p(values[j] - values[i], resamples=4_000) for i, j in pairs])
        adjusted = np.stack([holm(column) for column in p.T], axis=1)
        true = [row for row, (i, _) in enumerate(pairs) if i >= better]
        assert (adjusted[true] < 0.05).any(axis=0).mean() <= 0.05 + ERROR
        assert (p[true] < 0.05).any(axis=0).mean() > 0.15  # what Holm is there for
        if better:
            false = [row for row in range(len(pairs)) if row not in true]
            assert (adjusted[false] < 0.05).mean() > 0.9

    @pytest.mark.parametrize(
        ("seen", "alpha"),
        [
            (_evenly(scipy.stats.norm(), 0.03, 0.2), 0.05),
            (_evenly(scipy.stats.norm(), 0.05, 0.2), 0.005),
            (_evenly(scipy.stats.norm(), 0.08, 0.2), 0.05),
            (_evenly(scipy.stats.gamma(0.5), 0.04, 0.2), 0.05),
            (_evenly(scipy.stats.gamma(0.5), -0.04, 0.2), 0.05),
            (_counted({1.0: 14, -1.0: 4}), 0.05),
            (_counted({1.0: 6}), 0.05),
            (_counted({0.3: 30, -0.3: 12}), 0.01),
            (_counted({0.37: 20, 1.0: 6, -0.5: 12}), 0.05),
        ],
    )
    def test_the_queries_needed_find_the_difference_with_80_percent_power(
        self, seen: Floats, alpha: float
    ) -> None:
        (needed,) = queries_needed(seen[:, None], alpha)
        assert some(needed.difference) > 1
        total = len(seen) + some(needed.difference)
        rng = np.random.default_rng(6)
        p = np.concatenate(
            [
                randomization_p(rng.choice(seen, (total, 250)), resamples=4_000, seed=part)
                for part in range(RUNS // 250)
            ]
        )
        assert (p < alpha).mean() == pytest.approx(0.8, abs=0.05)

    @pytest.mark.parametrize(
        ("seen", "alpha"),
        [
            (_evenly(scipy.stats.norm(), 0.0, 0.1), 0.05),
            (_evenly(scipy.stats.norm(), 0.004, 0.08), 0.05),
            (_evenly(scipy.stats.norm(), 0.0, 0.1), 0.005),
            (_evenly(scipy.stats.gamma(0.5), 0.002, 0.08), 0.05),
            (_evenly(scipy.stats.gamma(0.5), -0.002, 0.08), 0.05),
            (_counted({1.0: 2, -1.0: 2}), 0.05),
            (_counted({0.3: 6, -0.3: 5}), 0.05),
        ],
    )
    def test_the_queries_needed_show_equivalence_with_80_percent_power(
        self, seen: Floats, alpha: float
    ) -> None:
        (needed,) = queries_needed(seen[:, None], alpha)
        total = len(seen) + some(needed.equivalence)
        assert 300 < total < 5_000
        rng = np.random.default_rng(8)
        p = np.concatenate(
            [equivalence_p(rng.choice(seen, (total, 250))) for _ in range(RUNS // 250)]
        )
        assert (p <= alpha).mean() == pytest.approx(0.8, abs=0.05)

    @pytest.mark.parametrize("n", [50, 300, 1_000, 3_000])
    @pytest.mark.parametrize(
        "at_the_margin",
        [
            _normal(0.01, 0.1),
            _skewed(0.01, 0.1),
            _sparse(0.01, 0.0),
            _sparse(0.02, 0.01),
            _sparse(0.06, 0.06 - 0.01 / 0.3, 0.3),
            _noise_and_rare(0.01, 0.02, 0.01),
        ],
    )
    def test_equivalence_is_declared_only_when_true(self, at_the_margin: Draw, n: int) -> None:
        rng = np.random.default_rng(10)
        p = np.concatenate([equivalence_p(at_the_margin(rng, n, 250)) for _ in range(RUNS // 250)])
        for alpha in (0.05, 0.005):
            error = math.sqrt(alpha * (1 - alpha) / RUNS)
            assert (p <= alpha).mean() <= alpha + 2 * error
