from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.stats

from harness.stats import bootstrap_mean_ci, holm, percentile, randomization_p


def test_the_bootstrap_agrees_with_scipy() -> None:
    values = np.random.default_rng(1).beta(2, 1, size=(120, 2))
    ours = bootstrap_mean_ci(values)
    for column in range(2):
        theirs = scipy.stats.bootstrap(
            (values[:, column],), np.mean, n_resamples=10_000, method="percentile", rng=1
        ).confidence_interval
        assert ours[column] == pytest.approx([theirs.low, theirs.high], abs=0.004)


def test_columns_share_resamples_so_that_order_does_not_matter() -> None:
    values = np.random.default_rng(2).random((50, 3))
    assert np.array_equal(bootstrap_mean_ci(values)[::-1], bootstrap_mean_ci(values[:, ::-1]))


def test_one_query_has_no_interval() -> None:
    assert np.isnan(bootstrap_mean_ci(np.array([[0.5]]))).all()


def test_another_process_gives_the_same_interval() -> None:
    code = (
        "import numpy as np; from harness.stats import bootstrap_mean_ci as b;"
        "print(b(np.arange(20.0).reshape(10, 2)).tobytes().hex())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    here = bootstrap_mean_ci(np.arange(20.0).reshape(10, 2)).tobytes().hex()
    assert {text.strip() for text in printed} == {here}


def test_a_percentile_is_numpy_s_with_an_interval_around_it() -> None:
    values = np.random.default_rng(3).lognormal(size=1000)
    result = percentile(values, 95.0)
    assert result.value == pytest.approx(np.percentile(values, 95))
    assert result.ci95 is not None
    assert result.value is not None
    assert result.ci95[0] < result.value < result.ci95[1]


@pytest.mark.parametrize(("level", "needed"), [(50.0, 30), (95.0, 200), (99.0, 1000)])
def test_a_percentile_that_the_sample_cannot_support_is_not_given(
    level: float, needed: int
) -> None:
    values = np.arange(needed - 1.0)
    result = percentile(values, level)
    assert result.value is None
    assert result.reason == f"{needed - 1} values, p{level:g} needs {needed}: 1 more"
    assert percentile(np.arange(float(needed)), level).value is not None


@pytest.mark.parametrize(("level", "finite_from"), [(50.0, 6), (95.0, 72), (99.0, 368)])
def test_order_statistics_give_a_finite_interval_from_the_textbook_size(
    level: float, finite_from: int
) -> None:
    from harness.stats import _order_statistic_interval

    assert _order_statistic_interval(np.arange(finite_from - 1.0), level / 100) is None
    assert _order_statistic_interval(np.arange(float(finite_from)), level / 100) is not None


@pytest.mark.parametrize("level", [50.0, 95.0])
def test_the_interval_covers_the_true_percentile(level: float) -> None:
    rng = np.random.default_rng(4)
    truth = -np.log(1 - level / 100)
    covered = 0
    for _ in range(1000):
        interval = percentile(rng.exponential(size=400), level).ci95
        assert interval is not None
        covered += interval[0] <= truth <= interval[1]
    assert covered >= 945


def test_the_exact_randomisation_test_agrees_with_scipy() -> None:
    differences = np.array([[0.3], [0.1], [-0.05], [0.2], [0.4], [0.0], [0.15]])
    theirs = scipy.stats.permutation_test(
        (differences[:, 0],), np.mean, permutation_type="samples", n_resamples=1 << 7
    )
    assert randomization_p(differences)[0] == pytest.approx(theirs.pvalue)


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
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.array([0.04, 0.01, 0.5, 0.011, 0.03])
    assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert holm(np.array([])).tolist() == []
