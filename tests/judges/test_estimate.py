"""The estimate of people's labels with a model's: by hand, and what it must not do."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval_bench_judges.estimate import (
    both,
    chosen,
    judge_counts,
    people_alone,
    slope_of,
    stratified,
)

PEOPLE = np.array([0.9, 0.1, 0.5, 0.7, 0.3, 0.8, 0.0, 0.6])
JUDGED = np.array([0.8, 0.2, 0.5, 0.9, 0.1, 0.7, 0.1, 0.4])
MORE = np.array([0.5, 0.4, 0.9, 0.1, 0.7, 0.6, 0.2, 0.8, 0.3, 0.5, 0.1, 0.6])


def test_the_slope_is_the_covariance_over_the_variance_of_all_that_the_model_judged() -> None:
    n, others = len(JUDGED), len(MORE)
    covariance = np.mean((PEOPLE - PEOPLE.mean()) * (JUDGED - JUDGED.mean()))
    variance = np.var([*JUDGED, *MORE], ddof=1)
    assert slope_of(PEOPLE, JUDGED, MORE) == pytest.approx(covariance / (1 + n / others) / variance)


def test_a_residual_is_divided_by_one_less_its_leverage() -> None:
    estimate, n = both(PEOPLE, JUDGED, MORE), len(PEOPLE)
    slope, far = float(estimate.slope), JUDGED - JUDGED.mean()
    squares, leverages = [], []
    for y, x in zip(PEOPLE - PEOPLE.mean(), far, strict=True):
        leverages.append(1 / n + x**2 / sum(far**2))
        squares.append(((y - slope * x) / (1 - leverages[-1])) ** 2)
    error = np.sqrt(sum(squares) / n**2 + slope**2 * MORE.var() / len(MORE))
    assert estimate.error == pytest.approx(error)
    assert estimate.leverage == pytest.approx(max(leverages))
    assert estimate.mean == pytest.approx(PEOPLE.mean() + slope * (MORE.mean() - JUDGED.mean()))
    assert estimate.df == n - 2


def test_a_model_that_says_always_the_same_adds_nothing() -> None:
    estimate = both(PEOPLE, np.ones(8), np.ones(12))
    assert estimate.slope == 0.0
    assert estimate.mean == PEOPLE.mean()
    assert not judge_counts(PEOPLE, np.ones(8), people_alone(PEOPLE), estimate)


def test_a_model_that_says_the_opposite_adds_nothing() -> None:
    assert slope_of(PEOPLE, -JUDGED, -MORE) == 0.0


def test_a_model_s_values_count_at_most_as_they_are() -> None:
    assert slope_of(9 * PEOPLE, JUDGED, MORE) == 1.0


def test_errors_are_wider_for_the_leverage_of_each_query() -> None:
    wide, plain = (both(PEOPLE, JUDGED, MORE, hc3=corrected).error for corrected in (True, False))
    assert wide > 1.1 * plain


def test_many_cells_at_once_are_each_by_itself() -> None:
    rng = np.random.default_rng(0)
    people, judged, more = (rng.normal(size=(3, 2, n)) for n in (9, 9, 30))
    together, alone = both(people, judged, more), both(people[1, 1], judged[1, 1], more[1, 1])
    for whole, single in zip(together, alone, strict=True):
        assert whole[1, 1] == pytest.approx(single)


def test_p_and_interval_say_the_same() -> None:
    estimate = both(PEOPLE, JUDGED, MORE)
    edge = estimate.mean - estimate.half_width()
    assert estimate.p(edge) == pytest.approx(0.05)
    assert estimate.p(estimate.mean) == 1.0
    margin = abs(estimate.mean) + estimate.half_width(0.1)
    assert estimate.p_within(float(margin)) == pytest.approx(0.05)


def test_without_any_spread_p_is_nought_or_one() -> None:
    alone = people_alone(np.full((1, 5), 0.2))
    assert (alone.p()[0], alone.p(0.2)[0]) == (0.0, 1.0)
    assert (alone.p_within(0.3)[0], alone.p_within(0.1)[0]) == (0.0, 1.0)


@pytest.mark.parametrize("differing", [2, 3])
def test_the_model_counts_only_where_three_queries_differ(differing: int) -> None:
    people = np.zeros(30)
    people[:differing] = [0.5, -0.4, 0.6][:differing]
    judged, more = people * 0.98, np.tile(people, 10)
    counts = judge_counts(people, judged, people_alone(people), both(people, judged, more))
    assert bool(counts) == (differing == 3)


@pytest.mark.parametrize("where", [0, 29])
def test_the_model_does_not_count_where_a_single_query_bends_the_slope(where: int) -> None:
    rng = np.random.default_rng(1)
    people = rng.normal(0, 0.1, 30)
    judged = people + rng.normal(0, 0.01, 30)
    people[where], judged[where] = 5.0, 5.0
    estimate = both(people, judged, rng.normal(0, 0.1, 300))
    assert estimate.leverage > 0.8
    assert not judge_counts(people, judged, people_alone(people), estimate)


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_the_model_counts_only_where_it_errs_on_two_queries(wrong: int) -> None:
    judged = PEOPLE.copy()
    judged[:wrong] += 0.05
    counts = judge_counts(PEOPLE, judged, people_alone(PEOPLE), both(PEOPLE, judged, MORE))
    assert bool(counts) == (wrong == 2)


def test_chosen_is_of_both_only_where_the_model_counts() -> None:
    alone = people_alone(PEOPLE)
    estimate = both(PEOPLE, JUDGED, MORE)
    assert chosen(np.asarray(True), estimate, alone).mean == estimate.mean
    assert chosen(np.asarray(False), estimate, alone).mean == alone.mean


def test_figures_of_glide_py_0_11() -> None:
    """Frozen: it needs Python 3.12. It divides covariance and variances by n - 1."""
    n, others = len(PEOPLE), len(MORE)
    slope = slope_of(PEOPLE, JUDGED, MORE) * n / (n - 1)
    tuned = both(PEOPLE, JUDGED, MORE, slope, hc3=False)
    assert tuned.mean == pytest.approx(0.49649849765487586, abs=1e-12)
    residuals = (PEOPLE - slope * JUDGED).var(ddof=1) / n
    error = np.sqrt(residuals + slope**2 * MORE.var(ddof=1) / others)
    assert error == pytest.approx(0.07883696834512115, abs=1e-12)
    whole = both(PEOPLE, JUDGED, MORE, np.asarray(1.0), hc3=False)
    assert whole.mean == pytest.approx(0.5, abs=1e-12)
    one = np.asarray(1.0)
    parts = [
        both(PEOPLE[:4], JUDGED[:4], MORE[:4], one, hc3=False),
        both(PEOPLE[4:], JUDGED[4:], MORE[4:], one, hc3=False),
    ]
    strata = stratified(parts, [8 / 20, 12 / 20])
    assert strata.mean == pytest.approx(0.5150000000000001, abs=1e-12)


def test_strata_add_up_by_their_shares_and_a_single_one_is_the_whole() -> None:
    whole = both(PEOPLE, JUDGED, MORE)
    for own, of_one in zip(whole, stratified([whole], [1.0]), strict=True):
        assert of_one == pytest.approx(own)
    halves = stratified([whole, whole], [0.5, 0.5])
    assert halves.error == pytest.approx(whole.error / np.sqrt(2))
    assert halves.df == pytest.approx(2 * whole.df)
