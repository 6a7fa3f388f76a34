from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

import retrieval_bench.stats.paired
from retrieval_bench.stats.defaults import EXTRA
from retrieval_bench.stats.intervals import ALPHA
from retrieval_bench.stats.paired import PairedTests, equivalence_p, paired_tests, tost_p
from retrieval_bench.stats.power import queries_needed
from retrieval_bench.stats.randomization import randomization_p, sign_patterns
from retrieval_bench.stats.resampling import mean_below_p
from tests.lazily import Lazily

Floats = NDArray[np.float64]
PAIRS = [(0, 1), (1, 2), (3, 0)]
ARRAYS = ("difference", "p", "effect_size", "wins", "ties", "losses", "p_equivalence", "weighty")

weightstats: Any = Lazily("statsmodels.stats.weightstats")


def table(n: int, *, systems: int = 4, metrics: int = 2, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).random((systems, n, metrics))


def differences(values: Floats, pairs: list[tuple[int, int]] = PAIRS) -> Floats:
    """(queries, pairs * metrics), the plain way."""
    columns = [values[b, :, m] - values[a, :, m] for a, b in pairs for m in range(values.shape[2])]
    return np.column_stack(columns)


def two(difference: list[float], base: float = 0.25) -> Floats:
    """Two systems and one metric."""
    d = np.array(difference, dtype=np.float64)
    return np.stack([np.full_like(d, base), base + d])[:, :, None]


def brackets(found: PairedTests, alpha: float = ALPHA) -> Floats:
    """The intervals of ``found``, all at one level."""
    return found.intervals(np.full(found.difference.shape, alpha))


def one(difference: list[float]) -> PairedTests:
    return paired_tests(two(difference), [(0, 1)])


def test_a_difference_is_b_minus_a_query_by_query() -> None:
    found = one([0.5, -0.25, 0.0, 0.5, 0.0])
    assert found.n == 5
    assert found.difference.tolist() == [[pytest.approx(0.15)]]
    assert (found.wins[0, 0], found.ties[0, 0], found.losses[0, 0]) == (2, 2, 1)
    spread = np.std([0.5, -0.25, 0.0, 0.5, 0.0], ddof=1)
    assert found.effect_size[0, 0] == pytest.approx(0.15 / spread)


def test_every_pair_and_metric_has_its_place() -> None:
    values = table(30)
    found = paired_tests(values, PAIRS, extra=EXTRA)
    means = differences(values).mean(axis=0)
    assert found.difference.ravel() == pytest.approx(means)
    assert {getattr(found, name).shape for name in ARRAYS} == {(3, 2)}
    assert brackets(found).shape == (3, 2, 2)
    assert {name: p.shape for name, p in found.extra.items()} == dict.fromkeys(EXTRA, (3, 2))
    for row, pair in enumerate(PAIRS):
        for metric in range(2):
            alone = paired_tests(values[:, :, [metric]], [pair], extra=EXTRA)
            for name in ARRAYS:
                got = getattr(found, name)[row, metric]
                assert got == pytest.approx(getattr(alone, name)[0, 0], abs=1e-13), name
            assert found.extra["wilcoxon"][row, metric] == alone.extra["wilcoxon"][0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 13, 14, 150])
def test_p_and_interval_are_those_of_the_single_differences(n: int) -> None:
    values = table(n, seed=n)
    found = paired_tests(values, PAIRS)
    columns = differences(values)
    np.testing.assert_allclose(found.p.ravel(), randomization_p(columns), rtol=1e-12, atol=1e-15)
    for row, column in enumerate(columns.T[:, :, None]):
        pair = paired_tests(np.stack([0 * column, column]), [(0, 1)])
        own = brackets(found).reshape(-1, 2)[row]
        assert own == pytest.approx(brackets(pair).ravel(), abs=1e-13, nan_ok=True)


def test_resamples_and_seed_reach_the_randomisation_test() -> None:
    values = table(40)
    columns = differences(values)
    for resamples, seed in ((99, 1), (500, 2)):
        found = paired_tests(values, PAIRS, resamples=resamples, seed=seed)
        p = randomization_p(columns, resamples=resamples, seed=seed)
        np.testing.assert_allclose(found.p.ravel(), p, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_sums_that_tie_count_as_extreme_in_spite_of_rounding() -> None:
    # Whole numbers of tenths: sums tie often, and whole arithmetic tells exactly when.
    rng = np.random.default_rng(3)
    n, tenths = 1_500, np.zeros(1_500, dtype=np.int64)
    tenths[:40] = rng.integers(-2, 4, 40)
    base = rng.random(n)
    values = np.stack([base, base + tenths / 10])[:, :, None]
    found = paired_tests(values, [(0, 1)], resamples=1_000)
    sums = np.concatenate(
        [
            signs[:, :40].astype(np.int64) @ tenths[:40]
            for signs in sign_patterns(n, resamples=1_000)
        ]
    )
    extreme = int((np.abs(sums) >= abs(int(tenths.sum()))).sum())
    assert int((np.abs(sums) == abs(int(tenths.sum()))).sum()) > 10
    assert found.p[0, 0] == pytest.approx((extreme + 1) / 1_001)


@pytest.mark.slow
def test_pairs_in_pieces_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = table(60)
    whole = paired_tests(values, PAIRS, extra=EXTRA)
    monkeypatch.setattr(retrieval_bench.stats.paired, "_CELLS", 1)
    parts = paired_tests(values, PAIRS, extra=EXTRA)
    for name in ARRAYS:
        np.testing.assert_allclose(
            getattr(whole, name), getattr(parts, name), rtol=1e-12, atol=1e-15, err_msg=str(name)
        )
    np.testing.assert_allclose(brackets(whole), brackets(parts), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(whole.extra["t"], parts.extra["t"], rtol=1e-12, atol=1e-15)
    assert whole.queries_needed(0.05) == parts.queries_needed(0.05)


def test_the_other_way_round_all_signs_turn() -> None:
    values = table(50)
    there = paired_tests(values, [(0, 1)], extra=EXTRA)
    back = paired_tests(values, [(1, 0)], extra=EXTRA)
    np.testing.assert_allclose(there.difference, -back.difference, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(there.effect_size, -back.effect_size, rtol=1e-12, atol=1e-15)
    assert np.array_equal(there.wins, back.losses)
    assert np.array_equal(there.p, back.p)
    assert there.p_equivalence == pytest.approx(back.p_equivalence)
    assert there.extra["wilcoxon"] == pytest.approx(back.extra["wilcoxon"])
    assert brackets(there) == pytest.approx(-brackets(back)[:, :, ::-1])
    assert there.queries_needed(0.05) == back.queries_needed(0.05)


@pytest.mark.parametrize("n", [1, 5, 13, 14, 400])
def test_where_all_queries_tie_nothing_is_found(n: int) -> None:
    values = table(n, systems=2)
    values[1] = values[0]
    found = paired_tests(values, [(0, 1)], extra=EXTRA)
    assert found.difference.tolist() == [[0, 0]]
    assert np.isnan(found.effect_size).all()
    assert found.ties.tolist() == [[n, n]]
    for p in (found.p, *found.extra.values()):
        assert p.tolist() == [[1.0, 1.0]]
    if n > 5:
        assert brackets(found).tolist() == [[[0, 0], [0, 0]]]
    assert (found.p_equivalence < 0.05).all() == (n == 400)


def test_systems_that_are_equal_but_for_rounding_tie() -> None:
    # A matrix product may round equal columns unlike.
    values = np.repeat(table(37, systems=1, metrics=1), 11, axis=0)
    pairs = [(i, j) for i in range(11) for j in range(i)]
    found = paired_tests(values, pairs)
    assert (brackets(found) == 0).all()
    assert (found.p == 1).all()
    values = np.stack([np.full((20, 1), 0.1 + 0.2), np.full((20, 1), 0.3)])
    assert values[0, 0, 0] != values[1, 0, 0]
    found = paired_tests(values, [(0, 1)], extra=EXTRA)
    assert (found.difference[0, 0], found.ties[0, 0], found.p[0, 0]) == (0.0, 20, 1.0)
    assert found.extra["wilcoxon"][0, 0] == found.extra["t"][0, 0] == 1.0


def test_one_query_shows_nothing_and_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = paired_tests(two([0.5]), [(0, 1)], extra=EXTRA)
        assert found.queries_needed(0.05)[0][0].difference is None
    assert np.isnan(brackets(found)).all()
    assert np.isnan(found.effect_size).all()
    assert (found.p[0, 0], found.difference[0, 0]) == (1.0, 0.5)
    assert {p[0, 0] for p in found.extra.values()} == {1.0}
    assert found.p_equivalence[0, 0] > 0.9


def test_no_query_and_no_pair_are_fine() -> None:
    found = paired_tests(np.zeros((2, 0, 3)), [(0, 1)], extra=EXTRA)
    assert found.n == 0
    assert found.p.tolist() == found.p_equivalence.tolist() == [[1.0] * 3]
    assert found.extra["t"].tolist() == found.extra["wilcoxon"].tolist() == [[1.0] * 3]
    assert found.difference.tolist() == [[0.0] * 3]
    assert np.isnan(brackets(found)).all()
    assert len(found.queries_needed(0.05)[0]) == 3
    for n in (0, 5, 50):
        empty = paired_tests(np.zeros((2, n, 3)), [], extra=EXTRA)
        assert {getattr(empty, name).shape for name in ARRAYS} == {(0, 3)}
        assert brackets(empty).shape == (0, 3, 2)
        assert empty.queries_needed(0.05) == []


def test_the_same_difference_everywhere_has_no_effect_size_and_p_as_it_should() -> None:
    found = paired_tests(two([0.125] * 20), [(0, 1)], extra=EXTRA)
    assert math.isnan(found.effect_size[0, 0])
    assert found.p[0, 0] < 0.001
    assert found.extra["t"][0, 0] == 0.0
    assert brackets(found)[0, 0] == pytest.approx([0.125, 0.125])


def test_further_tests_are_made_only_when_asked_for() -> None:
    values = table(30)
    assert dict(paired_tests(values, PAIRS).extra) == {}
    found = paired_tests(values, PAIRS, extra=["wilcoxon"]).extra
    assert list(found) == ["wilcoxon"]
    for column, p in zip(differences(values).T, found["wilcoxon"].ravel(), strict=True):
        assert p == pytest.approx(scipy.stats.wilcoxon(column).pvalue)


@pytest.mark.slow
def test_wilcoxon_ranks_equal_sizes_equally() -> None:
    exact = [0.1, 0.1, -0.1, 0.2, 0.3, 0.3, -0.2, 0.4, 0.0, 0.1]
    values = np.stack([np.full(10, 0.7), 0.7 + np.array(exact)])[:, :, None]
    p = paired_tests(values, [(0, 1)], extra=["wilcoxon"]).extra["wilcoxon"][0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = scipy.stats.wilcoxon([round(10 * d) for d in exact]).pvalue
    assert p == pytest.approx(theirs)


class TestEquivalence:
    def test_it_takes_about_300_ties_to_show_a_mean_below_one_percent(self) -> None:
        p = [float(equivalence_p(np.zeros((n, 1)))[0]) for n in (20, 100, 290, 300, 460)]
        assert p == pytest.approx([0.99**n for n in (20, 100, 290, 300, 460)], rel=0.02)
        assert p[2] > 0.05 > p[3]

    def test_the_p_is_the_larger_of_two_sides(self) -> None:
        rng = np.random.default_rng(1)
        d = rng.normal(0.004, 0.1, (4_000, 1))
        high, low = (float(equivalence_p(sign * d)[0]) for sign in (1, -1))
        assert high == pytest.approx(low)
        upper = float(scipy.stats.ttest_1samp(d[:, 0], 0.01, alternative="less").pvalue)
        lower = float(scipy.stats.ttest_1samp(d[:, 0], -0.01, alternative="greater").pvalue)
        assert upper < high < upper + 0.01
        assert lower < upper

    def test_a_mean_beyond_the_margin_is_never_equivalent(self) -> None:
        d = np.random.default_rng(2).normal(0, 0.02, (1_000, 4))
        d += np.array([0.011, -0.011, 0.5, -0.5]) - d.mean(axis=0)
        assert (equivalence_p(d) > 0.5).all()
        assert equivalence_p(np.full((50, 1), 0.3)).tolist() == [1.0]

    def test_the_margin_counts(self) -> None:
        d = np.random.default_rng(2).normal(0, 0.1, (400, 1))
        p = [float(equivalence_p(d, margin)[0]) for margin in (0.01, 0.02, 0.05)]
        assert p == sorted(p, reverse=True)
        assert p[0] > 0.05 > p[2]
        found = paired_tests(np.stack([np.zeros((400, 1)), d]), [(0, 1)], margin=0.05)
        assert found.p_equivalence[0, 0] == p[2]
        assert found.margin == 0.05

    def test_what_was_seen_once_may_come_again(self) -> None:
        d = np.zeros((400, 2))
        d[0] = [1.0, 3.0]
        plain, large = equivalence_p(d)
        assert 0.05 < plain < large
        expected = mean_below_p(d[:, [1]], 0.01, np.array([3.0]))
        assert large == pytest.approx(expected[0])

    def test_a_column_does_not_depend_on_its_neighbours(self) -> None:
        d = np.random.default_rng(4).normal(0, 0.1, (70, 40)).round(1)
        alone = np.concatenate([equivalence_p(d[:, [i]]) for i in range(40)])
        np.testing.assert_allclose(equivalence_p(d), alone, rtol=1e-12, atol=1e-15)


def test_queries_needed_are_those_of_each_pair_and_metric() -> None:
    values = table(40)
    found = paired_tests(values, PAIRS, margin=0.2)
    levels = np.array([[0.05, 0.01], [0.02, 0.03], [0.001, 0.04]])
    needed = found.queries_needed(levels, equivalence_alpha=levels / 2)
    columns = differences(values)
    expected = queries_needed(
        columns, levels.ravel(), margin=0.2, equivalence_alpha=levels.ravel() / 2
    )
    assert [one for row in needed for one in row] == expected
    assert found.queries_needed(0.05)[0] == queries_needed(columns[:, :2], 0.05, margin=0.2)
    assert expected != queries_needed(columns, levels.ravel(), margin=0.2)


@pytest.mark.slow
def test_two_one_sided_t_tests_are_those_of_statsmodels() -> None:
    rng = np.random.default_rng(5)
    a = rng.random((60, 1))
    b = a + rng.normal(0.002, 0.03, size=(60, 1))
    expected = weightstats.ttost_paired(b[:, 0], a[:, 0], -0.01, 0.01)[0]
    assert tost_p(b - a)[0] == pytest.approx(expected)
    found = paired_tests(np.stack([a, b]), [(0, 1)], equivalence="tost")
    assert found.p_equivalence[0, 0] == pytest.approx(expected)
    assert found.p_equivalence[0, 0] < paired_tests(np.stack([a, b]), [(0, 1)]).p_equivalence[0, 0]


def test_two_one_sided_t_tests_need_two_queries_and_trust_what_does_not_vary() -> None:
    assert tost_p(np.zeros((1, 2))).tolist() == [1.0, 1.0]
    assert tost_p(np.column_stack([np.zeros(5), np.full(5, 0.02)])).tolist() == [0.0, 1.0]
