from __future__ import annotations

import numpy as np
import pytest

from retrieval_bench_tune.selection import (
    Selection,
    best,
    chosen_on_dev,
    cross_validated,
    deal_folds,
    tied,
)


def _cross_validated(values: np.ndarray, **changes: int) -> Selection:
    how = {"n_folds": 5, "repeats": 1, "seed": 0, **changes}
    return cross_validated(values, range(values.shape[1]), **how)


def test_on_pure_noise_the_naive_figure_is_far_above_the_truth_and_the_held_out_one_is_not() -> (
    None
):
    """200 settings that are all worth .5: the point of the whole command."""
    naive, held_out, gaps = [], [], []
    for seed in range(20):
        values = np.random.default_rng(seed).uniform(0, 1, (200, 100))
        found = _cross_validated(values, repeats=2)
        naive.append(found.naive_mean)
        held_out.append(found.held_out.mean())
        gaps.append(found.gap)
    assert min(naive) > 0.55
    assert np.mean(naive) == pytest.approx(0.58, abs=0.01)
    assert np.mean(held_out) == pytest.approx(0.5, abs=0.015)
    assert np.mean(gaps) > 0.07


def test_the_same_noise_on_a_dev_split() -> None:
    tests, devs = [], []
    for seed in range(20):
        dev, test = np.random.default_rng(seed).uniform(0, 1, (2, 200, 100))
        found = chosen_on_dev(dev, test)
        tests.append(found.held_out.mean())
        devs.append(found.tuning)
        assert found.naive_mean >= found.held_out.mean()
    assert np.mean(tests) == pytest.approx(0.5, abs=0.015)
    assert min(devs) > 0.55


def test_a_setting_that_is_better_everywhere_is_found_and_has_no_gap() -> None:
    values = np.random.default_rng(1).uniform(0, 0.5, (20, 60))
    values[7] += 0.4
    found = _cross_validated(values, repeats=3)
    assert found.winner == 7
    assert found.times_chosen(7) == len(found.choices) == 15
    assert found.held_out == pytest.approx(values[7])
    assert found.gap == pytest.approx(0, abs=1e-12)


def test_a_query_never_has_a_say_in_the_setting_that_answers_it() -> None:
    """Setting 1 is best because of one query only: there it is not the setting that was chosen."""
    values = np.full((2, 10), 0.5)
    values[1] = 0.4
    values[1, 3] = 9.0
    found = _cross_validated(values)
    assert found.winner == 1
    assert found.naive_mean == pytest.approx((9 + 9 * 0.4) / 10)
    out = next(c for c in found.choices if c.setting == 0)
    assert found.times_chosen(0) == 1
    assert out.n_held_out == 2
    with_it = deal_folds(range(10), 5, 0) == deal_folds(range(10), 5, 0)[3]
    np.testing.assert_allclose(found.held_out, np.where(with_it, 0.5, 0.4), rtol=1e-12, atol=1e-15)
    assert found.held_out.mean() < values[0].mean()


def test_every_figure_of_a_hand_made_case() -> None:
    values = np.array([[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.2]])
    fold_of = deal_folds(range(4), 2, 0)
    found = _cross_validated(values, n_folds=2)
    choices, held_out = [], np.empty(4)
    for fold in (0, 1):
        training = values[:, fold_of != fold].mean(axis=1)
        at = 1 if training[1] > training[0] else 0
        held_out[fold_of == fold] = values[at, fold_of == fold]
        choices.append((fold, at, training[at]))
    assert [(c.fold, c.setting) for c in found.choices] == [choice[:2] for choice in choices]
    assert [c.tuning for c in found.choices] == pytest.approx([choice[2] for choice in choices])
    np.testing.assert_allclose(found.held_out, held_out, rtol=1e-12, atol=1e-15)
    assert found.tuning == pytest.approx(np.mean([c[2] for c in choices]))
    assert found.gap == pytest.approx(found.tuning - held_out.mean())
    assert found.gaps == pytest.approx([found.gap])
    assert (found.naive, found.naive_mean) == (1, 0.55)
    assert found.default_tuning == 0.5
    assert found.default_gap == 0


def test_repeats_average_the_held_out_values_of_each_query() -> None:
    values = np.random.default_rng(4).uniform(0, 1, (30, 40))
    alone = [_cross_validated(values, seed=seed) for seed in (8, 9, 10)]
    found = _cross_validated(values, seed=8, repeats=3)
    assert found.held_out == pytest.approx(np.mean([one.held_out for one in alone], axis=0))
    assert found.gaps == pytest.approx([one.gap for one in alone])
    assert found.gap == pytest.approx(found.gaps.mean())
    assert [c.repeat for c in found.choices] == [r for r in range(3) for _ in range(5)]
    assert len({c.setting for c in found.choices}) > 1


def test_a_dev_split_chooses_and_another_one_reports() -> None:
    dev = np.array([[0.5, 0.5], [0.9, 0.7], [0.1, 1.0]])
    test = np.array([[0.6, 0.6, 0.6], [0.5, 0.6, 0.4], [0.9, 0.9, 0.6]])
    found = chosen_on_dev(dev, test)
    assert found.winner == 1
    assert found.tuning == pytest.approx(0.8)
    assert found.held_out.tolist() == [0.5, 0.6, 0.4]
    assert found.gap == pytest.approx(0.3)
    assert found.default_gap == pytest.approx(-0.1)
    assert found.naive == 2
    assert found.naive_mean == pytest.approx(0.8)
    assert found.default.tolist() == [0.6, 0.6, 0.6]
    (choice,) = found.choices
    assert (choice.setting, choice.n_held_out) == (1, 3)


def test_of_equal_settings_the_first_is_taken_which_is_the_default() -> None:
    means = np.array([0.1 + 0.2, 0.3, 0.3 - 1e-15, 0.2])
    assert best(means[::-1]) == 1
    assert best(means) == 0
    assert tied(means) == [0, 1, 2]
    assert _cross_validated(np.full((3, 10), 0.5)).winner == 0


def test_folds_are_as_large_as_each_other_seeded_and_shuffled() -> None:
    folds = deal_folds(range(23), 5, 7)
    assert sorted(np.bincount(folds)) == [4, 4, 5, 5, 5]
    assert np.array_equal(folds, deal_folds(range(23), 5, 7))
    assert not np.array_equal(folds, deal_folds(range(23), 5, 8))
    assert not np.array_equal(folds, np.sort(folds))


def test_queries_with_one_text_fall_into_one_fold() -> None:
    groups = [text for text in "abcdefghij" for _ in range(3)]
    folds = deal_folds(groups, 4, 0)
    for start in range(0, 30, 3):
        assert len(set(folds[start : start + 3].tolist())) == 1
    assert sorted(np.bincount(folds)) == [6, 6, 9, 9]
