from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from retrieval_bench.stats.power import Moments, Needed, _three_values, queries_needed
from retrieval_bench.stats.resampling import mean_below_p
from tests.builders import some

Floats = NDArray[np.float64]


def column(*groups: tuple[float, int]) -> Floats:
    """(queries, 1): value and how many queries have it."""
    return np.concatenate([np.full((count, 1), value) for value, count in groups])


def normal(mean: float, sd: float, n: int = 200) -> Floats:
    """Evenly spread over the normal distribution; mean and sd (over n) as given."""
    z = scipy.stats.norm.ppf((np.arange(n) + 0.5) / n)
    return np.asarray(mean + sd * z[:, None] / z.std())


def only(differences: Floats, alpha: float = 0.05, margin: float = 0.01) -> Needed:
    (needed,) = queries_needed(differences, alpha, margin=margin)
    return needed


class TestMoments:
    def test_they_are_those_of_each_column(self) -> None:
        d = np.random.default_rng(1).gamma(0.5, size=(300, 3)) - 0.4
        m = Moments.of(d)
        assert m.n == 300
        assert m.mean == pytest.approx(d.mean(axis=0))
        assert m.variance == pytest.approx(d.var(axis=0))
        assert m.skewness == pytest.approx(scipy.stats.skew(d))
        assert m.fourth == pytest.approx((d**4).mean(axis=0))
        assert (m.above + m.below).tolist() == [300] * 3
        assert m.largest == pytest.approx(np.maximum(1, np.abs(d).max(axis=0)))

    def test_one_size_is_noticed_and_what_does_not_vary_has_no_skewness(self) -> None:
        rows = [[0.0, 0.25, 0.0], [0.25, -0.25, 0.0], [-0.25, 0.5, 0.0]]
        assert Moments.of(np.array(rows)).size.tolist() == [0.25, 0.0, 0.0]
        assert Moments.of(np.array(rows)).above.tolist() == [1, 2, 0]
        assert Moments.of(np.array(rows)).below.tolist() == [1, 1, 0]
        m = Moments.of(np.full((50, 1), 0.1) * [1, 0])
        assert m.variance.tolist() == [0, 0]
        assert m.skewness.tolist() == [0, 0]

    def test_parts_are_joined_and_columns_taken(self) -> None:
        d = np.random.default_rng(2).normal(size=(20, 5))
        joined = Moments.joined([Moments.of(d[:, :2]), Moments.of(d[:, 2:])])
        assert joined.n == 20
        np.testing.assert_allclose(joined.third, Moments.of(d).third, rtol=1e-12, atol=1e-15)
        some = joined.at(np.array([False, True, False, False, True]))
        np.testing.assert_allclose(
            some.below, Moments.of(d[:, [1, 4]]).below, rtol=1e-12, atol=1e-15
        )


class TestForADifference:
    @pytest.mark.parametrize(
        ("mean", "sd", "n", "alpha", "within"),
        [
            *((mean, 0.2, 200, alpha, 0.01) for mean in (0.01, 0.02, -0.03)
              for alpha in (0.05, 0.05 / 30)),
            *((0.7, 1, 12, alpha, 0.03) for alpha in (0.01, 0.003)),
        ],
    )  # fmt: skip
    def test_it_agrees_with_the_power_of_the_t_test(
        self, mean: float, sd: float, n: int, alpha: float, within: float
    ) -> None:
        n += some(only(normal(mean, sd, n), alpha).difference)
        critical = scipy.stats.t.ppf(1 - alpha / 2, n - 1)
        power = scipy.stats.nct.sf(critical, n - 1, abs(mean) / sd * math.sqrt(n))
        assert power == pytest.approx(0.8, abs=within)

    @pytest.mark.parametrize(("alpha", "signs"), [(0.05, 6), (0.01, 8), (0.001, 11)])
    def test_differences_of_one_sign_are_counted_out(self, alpha: float, signs: int) -> None:
        assert 2 * 0.5**signs <= alpha < 2 * 0.5 ** (signs - 1)
        for size in (0.3, -1.0):
            needed = some(only(column((size, 2), (0.0, 48)), alpha).difference)
            n = 50 + needed
            assert scipy.stats.binom.sf(signs - 1, n, 0.04) >= 0.8
            assert scipy.stats.binom.sf(signs - 1, n - 1, 0.04) < 0.8

    def test_a_right_tail_needs_fewer_queries_and_a_left_one_more(self) -> None:
        gamma = scipy.stats.gamma.ppf((np.arange(100) + 0.5) / 100, 0.5)[:, None]
        skewed = (gamma - gamma.mean()) / gamma.std()
        right, left = only(0.2 + skewed).difference, only(0.2 - skewed).difference
        middle = some(only(normal(0.2, 1, 100)).difference)
        assert some(right) < middle < some(left)

    def test_steps_of_one_size_need_some_more(self) -> None:
        steps = some(only(column((1.0, 30), (-1.0, 15), (0.0, 55))).difference)
        fine = some(only(column((0.999, 15), (1.001, 15), (-1.0, 15), (0.0, 55))).difference)
        assert steps > fine + 10

    @pytest.mark.slow
    @pytest.mark.parametrize("alpha", [0.05, 0.005, pytest.param(0.0005, marks=pytest.mark.slow)])
    @pytest.mark.parametrize(("above", "below"), [(14, 4), (8, 1), (40, 25), (12, 6)])
    def test_of_one_size_it_agrees_with_the_exact_power_of_the_sign_test(
        self, above: int, below: int, alpha: float
    ) -> None:
        needed = only(column((0.4, above), (-0.4, below), (0.0, 200 - above - below)), alpha)
        total = 200 + some(needed.difference)
        power, share = 0.0, (above + below) / 200
        for differing in range(1, total + 1):
            tails = 2 * scipy.stats.binom.sf(np.arange(differing + 1) - 1, differing, 0.5)
            passed = np.flatnonzero(tails < alpha)
            if len(passed):
                wins = scipy.stats.binom.sf(passed[0] - 1, differing, above / (above + below))
                power += wins * scipy.stats.binom.pmf(differing, total, share)
        assert power == pytest.approx(0.8, abs=0.04)

    def test_many_queries_are_needed_against_a_heavy_tail_at_a_strict_level(self) -> None:
        d = column((0.1, 60), (-1.0, 3), (0.0, 137))
        found = [only(d, alpha).difference for alpha in (0.05, 0.005, 0.0005)]
        plain = [
            ((scipy.stats.norm.isf(a / 2) + 0.8416) * d.std() / d.mean()) ** 2 - 200
            for a in (0.05, 0.005, 0.0005)
        ]
        assert found == sorted(found, key=lambda n: n or 0)
        for n, usual in zip(found, plain, strict=True):
            assert 1.05 * usual < n < 1.4 * usual

    def test_a_few_large_differences_do_not_bend_the_bound_to_nothing(self) -> None:
        d = column((0.1, 20), (1.0, 2), (-0.1, 2), (0.0, 10))
        needed = some(only(d, 0.0001).difference)
        assert 10 < needed < 40

    def test_no_difference_is_never_found_and_else_there_is_at_least_one_more(self) -> None:
        assert only(np.zeros((30, 1))).difference is None
        assert only(column((0.5, 3), (-0.5, 3), (0, 4))).difference is None
        assert only(column((0.5, 50), (0.4, 50))).difference == 1


class TestForEquivalence:
    @pytest.mark.parametrize(("n", "alpha"), [(20, 0.05), (100, 0.05), (100, 0.001)])
    def test_ties_go_on_to_the_rule_of_three(self, n: int, alpha: float) -> None:
        needed = some(only(np.zeros((n, 1)), alpha).equivalence)
        assert n + needed == pytest.approx(math.log(alpha) / math.log(0.99), abs=2)

    def test_twice_the_spread_takes_about_four_times_as_many(self) -> None:
        narrow, wide = (only(normal(0, sd)).equivalence for sd in (0.2, 0.4))
        plain = ((1.645 + 1.2816) * 0.2 / 0.01) ** 2  # two one-sided normal tests
        assert plain < 200 + some(narrow) < 1.1 * plain
        assert 200 + some(wide) == pytest.approx(4 * plain, rel=0.03)

    def test_a_mean_near_the_margin_takes_more_and_one_beyond_never_comes(self) -> None:
        near, nearer = (only(normal(mean, 0.1)).equivalence for mean in (0.005, -0.008))
        assert some(nearer) > 3 * some(near)
        assert only(normal(0.01, 0.1)).equivalence is None
        assert only(normal(-0.05, 0.1)).equivalence is None

    def test_the_stated_number_is_where_the_test_begins_to_pass(self) -> None:
        # Nothing varies: the power jumps from none to all.
        needed = some(only(np.full((40, 1), 0.004)).equivalence)
        for total, passed in ((40 + needed - 5, False), (40 + needed + 5, True)):
            p = mean_below_p(np.full((total, 1), 0.004), 0.01, np.ones(1))
            assert (p[0] <= 0.05) == passed

    def test_the_three_values_have_the_moments_of_the_differences(self) -> None:
        tail = scipy.stats.gamma.ppf((np.arange(50) + 0.5) / 50, 0.5)
        d = np.stack([np.append(tail, np.zeros(100)), np.append(-tail, np.full(100, 0.2))], axis=1)
        m = Moments.of(d)
        values, shares = _three_values(m)
        assert shares.sum(axis=1) == pytest.approx([1, 1])
        assert shares[:, 0] == pytest.approx([2 / 3, 0])
        for power in (1, 2, 3):
            expected = (d**power).mean(axis=0)
            assert (shares * values**power).sum(axis=1) == pytest.approx(expected)

    @pytest.mark.parametrize(("ones", "alpha"), [(2, 0.05), (3, 0.05), (4, 0.05), (3, 0.001)])
    def test_of_zeros_and_ones_it_agrees_with_the_exact_power_of_the_binomial_test(
        self, ones: int, alpha: float
    ) -> None:
        found = [only(column((one, ones), (0, 597)), alpha).equivalence for one in (1.0, -1.0)]
        assert found[0] == found[1]
        total = 597 + ones + some(found[0])
        most = scipy.stats.binom.ppf(alpha, total, 0.01)
        most -= scipy.stats.binom.cdf(most, total, 0.01) > alpha
        power = scipy.stats.binom.cdf(most, total, ones / (597 + ones))
        assert power == pytest.approx(0.8, abs=0.06)

    def test_the_margin_counts(self) -> None:
        d = normal(0.003, 0.3)
        found = [only(d, margin=margin).equivalence for margin in (0.01, 0.02, 0.04)]
        assert all(found)
        assert found == sorted(found, key=lambda n: -(n or 0))


@pytest.mark.slow
def test_each_column_has_its_levels_and_no_neighbours() -> None:
    rng = np.random.default_rng(5)
    d = rng.normal(0.005, 0.1, (60, 30)).round(1)
    levels = rng.uniform(0.001, 0.05, 30)
    found = queries_needed(d, levels, equivalence_alpha=levels[::-1])
    for at in range(30):
        (alone,) = queries_needed(d[:, [at]], levels[at], equivalence_alpha=levels[29 - at])
        assert alone == found[at]
    assert [n.difference for n in queries_needed(d, levels)] == [n.difference for n in found]
    assert [n.equivalence for n in queries_needed(d, levels)] != [n.equivalence for n in found]


def test_a_stricter_level_never_needs_fewer() -> None:
    d = np.random.default_rng(6).normal(0.002, 0.1, (80, 20)).round(1)
    loose, strict = queries_needed(d, 0.05), queries_needed(d, 0.001)
    for a, b in zip(loose, strict, strict=True):
        assert (a.difference is None) == (b.difference is None)
        assert (a.difference or 0) <= (b.difference or 0)
        assert (a.equivalence or 0) <= (b.equivalence or 0)


def test_moments_do_as_well_as_differences() -> None:
    d = np.random.default_rng(7).normal(0.002, 0.1, (80, 5))
    assert queries_needed(Moments.of(d), 0.05) == queries_needed(d, 0.05)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_queries_tell_nothing(n: int) -> None:
    assert queries_needed(np.full((n, 2), 0.5), 0.05) == [Needed(None, None)] * 2


def test_odd_differences_neither_warn_nor_crash() -> None:
    columns = [
        column((0.0, 9), (1.0, 1)),
        np.full((10, 1), 0.0099999),
        np.full((10, 1), 1e-11),
        np.full((10, 1), -1.0),
        column((1.0, 5), (-1.0, 5)),
        column((20.0, 1), (-1e-6, 9)),
        normal(0.0, 1e-9, 10),
        normal(0.01 - 1e-8, 0.1, 10),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for level in (0.05, 1e-6):
            for needed in queries_needed(np.hstack(columns), level):
                assert (needed.difference or 1) >= 1
                assert (needed.equivalence or 1) >= 1
    assert queries_needed(np.zeros((10, 0)), 0.05) == []
