from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from retrieval_bench.stats.intervals import SHARE, interval, mean_intervals
from retrieval_bench.stats.randomization import randomization_p, sign_patterns
from retrieval_bench.stats.resampling import (
    bootstrap_means,
    gamma_sum_p,
    holm,
    mean_below_p,
    student_p,
)
from tests.builders.processes import python


def _bootstrap(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return mean_intervals(values, [None] * values.shape[1])


def test_students_t_agrees_with_scipy() -> None:
    values = np.random.default_rng(1).normal(0.03, 0.02, size=6)
    error = values.std(ddof=1) / np.sqrt(6)
    theirs = scipy.stats.ttest_1samp(values, 0.01, alternative="greater").pvalue
    assert student_p(0.01 - values.mean(), error, 5) == pytest.approx(theirs)
    # All values equal: no more doubt; not a number: no answer.
    assert student_p(np.array([-0.1, 0.0, 0.1]), 0.0, 5).tolist() == [0.0, 1.0, 1.0]
    assert np.isnan(student_p(-0.1, float("nan"), 5))


def test_the_bootstrap_agrees_with_scipy() -> None:
    values = np.random.default_rng(1).beta(2, 1, size=(120, 2))
    ours = _bootstrap(values)
    for column in range(2):
        theirs = scipy.stats.bootstrap(
            (values[:, column],), np.mean, n_resamples=10_000, method="percentile", rng=1
        ).confidence_interval
        assert ours[column] == pytest.approx([theirs.low, theirs.high], abs=0.004)


def test_columns_share_resamples_so_that_order_does_not_matter() -> None:
    values = np.random.default_rng(2).random((50, 3))
    np.testing.assert_allclose(
        _bootstrap(values)[::-1], _bootstrap(values[:, ::-1]), rtol=1e-12, atol=1e-15
    )


def test_one_query_has_no_interval() -> None:
    assert np.isnan(_bootstrap(np.array([[0.5]]))).all()


def test_the_interval_is_the_middle_of_the_resampled_means() -> None:
    values = np.random.default_rng(7).random((30, 2))
    means = bootstrap_means(values)
    assert means.shape == (10_000, 2)
    assert interval(means) == pytest.approx(_bootstrap(values), rel=1e-12)
    inside = ((means >= interval(means)[:, 0]) & (means <= interval(means)[:, 1])).mean(axis=0)
    assert inside == pytest.approx([0.95, 0.95], abs=0.002)
    below = (means < interval(means)[:, 0]).mean(axis=0)
    assert below == pytest.approx([0.025, 0.025], abs=0.001)


def test_resampled_means_spread_as_the_theory_says() -> None:
    values = np.random.default_rng(8).normal(3, 2, size=(100, 1))
    means = bootstrap_means(values, resamples=20_000)
    assert means.mean() == pytest.approx(values.mean(), abs=0.01)
    assert means.std() == pytest.approx(values.std() / 10, rel=0.03)


def test_every_resample_is_a_mean_of_as_many_rows_as_there_are() -> None:
    means = bootstrap_means(np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]), resamples=500)
    possible = {round((a + b + c) / 3, 9) for a in (1, 2, 4) for b in (1, 2, 4) for c in (1, 2, 4)}
    assert {round(mean, 9) for mean in means[:, 0].tolist()} == possible
    assert means[:, 1] == pytest.approx(10 * means[:, 0])  # whole rows are drawn


def test_resampling_in_pieces_gives_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(9).random((7, 1))
    monkeypatch.setattr("retrieval_bench.stats.randomization._CELLS", 14 * 30)
    means = bootstrap_means(values, resamples=100)
    assert means.shape == (100, 1)
    assert means.min() >= values.min()
    assert means.max() <= values.max()
    assert len(np.unique(means)) > 50


def test_one_row_is_its_own_mean() -> None:
    assert bootstrap_means(np.array([[0.25]]), resamples=5).ravel().tolist() == [0.25] * 5


def test_another_seed_draws_other_resamples() -> None:
    values = np.random.default_rng(10).random((20, 1))
    assert np.array_equal(bootstrap_means(values), bootstrap_means(values))
    assert not np.array_equal(bootstrap_means(values), bootstrap_means(values, seed=1))
    other = mean_intervals(values, [None], seed=3)
    np.testing.assert_allclose(
        other, interval(bootstrap_means(values, seed=3)), rtol=1e-12, atol=1e-15
    )


@pytest.mark.slow
def test_another_process_gives_the_same_interval() -> None:
    code = (
        "import numpy as np; from retrieval_bench.stats.intervals import SHARE, mean_intervals;"
        "print(mean_intervals(np.arange(20.0).reshape(10, 2) / 20, [None, SHARE]).tobytes().hex())"
    )
    values = np.arange(20.0).reshape(10, 2) / 20
    here = mean_intervals(values, [None, SHARE]).tobytes().hex()
    assert {python(code), python(code)} == {here}


def test_the_sampled_randomisation_test_agrees_with_scipy() -> None:
    differences = np.random.default_rng(5).normal(0.1, 0.5, size=(80, 1))
    theirs = scipy.stats.permutation_test(
        (differences[:, 0],), np.mean, permutation_type="samples", n_resamples=20_000, rng=5
    )
    assert randomization_p(differences)[0] == pytest.approx(theirs.pvalue, abs=0.012)


def test_no_difference_at_all_gives_one() -> None:
    assert randomization_p(np.zeros((30, 2))).tolist() == [1.0, 1.0]
    assert randomization_p(np.zeros((0, 2))).tolist() == [1.0, 1.0]


def test_holm_agrees_with_statsmodels() -> None:
    from statsmodels.stats import multitest

    p = np.array([0.04, 0.01, 0.5, 0.011, 0.03])
    assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert holm(np.array([])).tolist() == []


class TestAMeanBelowALimit:
    @pytest.mark.parametrize("n", [1, 3, 30])
    def test_it_is_the_chance_that_a_weighted_mean_reaches_the_limit(self, n: int) -> None:
        rng = np.random.default_rng(n)
        values = rng.normal(-0.3 / n**0.5, 0.2, (n, 3)).clip(-1, 1)
        values[:, 2] = values[:, 2].round(1)
        weights = rng.exponential(size=(100_000, n + 1))
        drawn = (weights @ np.vstack([values - 0.05, np.full(3, 0.95)]) >= 0).mean(axis=0)
        assert mean_below_p(values, 0.05, np.ones(3)) == pytest.approx(drawn, abs=0.01)

    def test_of_many_it_is_the_t_test(self) -> None:
        values = np.random.default_rng(3).normal(0.0, 0.3, (40_000, 3)) + np.array([-0.003, 0, 0.0])
        theirs = scipy.stats.ttest_1samp(values, 0.002, alternative="less").pvalue
        assert mean_below_p(values, 0.002, np.full(3, 2.0)) == pytest.approx(theirs, abs=0.02)

    def test_a_value_beyond_the_limit_everywhere_gives_one(self) -> None:
        values = np.array([[0.01, 0.5, 0.0], [0.01, 0.02, 0.02]])
        p = mean_below_p(values, 0.01, np.ones(3))
        assert p[:2].tolist() == [1.0, 1.0]
        assert 0.9 < p[2] < 1

    def test_more_room_above_makes_it_harder(self) -> None:
        values = np.zeros((400, 3))
        p = mean_below_p(values, 0.01, np.array([0.5, 1.0, 2.0]))
        assert p.tolist() == sorted(p.tolist())
        assert p[0] < 0.001
        assert p[2] > 0.1

    def test_columns_in_pieces_give_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        values = np.random.default_rng(4).normal(0, 0.1, (50, 9))
        whole = mean_below_p(values, 0.01, np.ones(9))
        monkeypatch.setattr("retrieval_bench.stats.resampling._CACHED", 100)
        np.testing.assert_allclose(
            mean_below_p(values, 0.01, np.ones(9)), whole, rtol=1e-12, atol=1e-15
        )

    def test_shapes_count_as_so_many_terms(self) -> None:
        terms = np.array([[-0.3, -0.3, -0.3, 0.1, 0.1]])
        few, shapes = np.array([[-0.3, 0.1]]), np.array([[3.0, 2.0]])
        top = np.array([0.9])
        assert gamma_sum_p(few, top, shapes) == pytest.approx(gamma_sum_p(terms, top))
        none = gamma_sum_p(np.array([[-0.3, 5.0]]).clip(max=0.9), top, np.array([[3.0, 0.0]]))
        assert none == pytest.approx(gamma_sum_p(np.full((1, 3), -0.3), top))

    def test_a_mean_at_the_limit_is_no_gap_in_the_curve(self) -> None:
        base = np.random.default_rng(5).normal(0, 0.1, (60, 1))
        base -= base.mean() + 1 / 60  # with the pseudo-query the mean is at the limit
        shifts = np.array([-1e-3, -1e-6, -1e-9, 0.0, 1e-9, 1e-6, 1e-3])
        p = gamma_sum_p((base + shifts).T, np.ones(7))
        assert np.ptp(p[1:6]) < 1e-4
        assert (np.diff(p) > -1e-7).all()
        assert 0.4 < p[3] < 0.5


def test_sign_patterns_come_in_pieces_and_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval_bench.stats.randomization._CELLS", 14 * 30)
    pieces = list(sign_patterns(14, resamples=100))
    assert [len(piece) for piece in pieces] == [30, 30, 30, 10]
    signs = np.concatenate(pieces)
    assert set(signs.ravel().tolist()) == {-1.0, 1.0}
    assert abs(signs.mean()) < 0.1
    assert np.array_equal(np.concatenate(list(sign_patterns(14, resamples=100))), signs)
    assert not np.array_equal(np.concatenate(list(sign_patterns(14, seed=1, resamples=100))), signs)
