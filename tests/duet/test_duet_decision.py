"""When a duet ends and what it says, on log ratios made here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import stats

from retrieval_bench.core.types import Verdict
from retrieval_bench_duet.decision import ALPHA, CONFIRM, GATES, SEARCH, Judged, Trial, overall
from retrieval_bench_duet.result import WORDS
from tests.builders import some

LIMITS = {"p50": 0.05, "p95": 0.10, "slowest-fifth": 0.10}


def by_name(gate: str, launches: Sequence[Mapping[str, float]]) -> list[float]:
    return [one[gate] for one in launches]


def played(
    slower: float,
    rng: np.random.Generator,
    *,
    spread: float = 0.01,
    later: float | None = None,
    slow_fifth: float | None = None,
) -> Trial[Mapping[str, float]]:
    """A whole trial on launches that differ by ``spread``; ``later``: in the second part."""
    trial = Trial(LIMITS, by_name)
    while not trial.over:
        shift = math.log1p(later if later is not None and trial.signs else slower)
        launch = spread * rng.standard_normal()
        tail = shift if slow_fifth is None else math.log1p(slow_fifth)
        trial.add(
            {
                "p50": shift + launch,
                "p95": shift + launch + 2 * spread * rng.standard_normal(),
                "slowest-fifth": tail + launch + 0.5 * spread * rng.standard_normal(),
            }
        )
    return trial


def words(slower: float, trials: int, seed: int, **how: float) -> list[str]:
    rng = np.random.default_rng(seed)
    return [WORDS[overall(played(slower, rng, **how).results())] for _ in range(trials)]


def test_the_interval_and_both_tests_are_those_of_student() -> None:
    thetas = [0.01, 0.03, 0.02, 0.015, 0.04]
    judged = Judged.of(thetas, delta=0.01, limit=0.05)
    of_scipy = stats.ttest_1samp(thetas, math.log(1.01), alternative="greater")
    assert judged.p_worse == pytest.approx(of_scipy.pvalue, abs=1e-12)
    within = stats.ttest_1samp(thetas, math.log(1.05), alternative="less")
    assert judged.p_beyond_limit == pytest.approx(within.pvalue, abs=1e-12)
    low, high = stats.t.interval(1 - 2 * ALPHA, 4, np.mean(thetas), stats.sem(thetas))
    assert judged.interval == pytest.approx((math.exp(low), math.exp(high)))


def test_launches_that_agree_exactly_are_decided_by_their_value() -> None:
    same = Judged.of([0.0] * 5, delta=0.01, limit=0.05)
    assert (same.p_worse, same.p_beyond_limit) == (1.0, 0.0)
    slow = Judged.of([0.2] * 5, delta=0.01, limit=0.05)
    assert (slow.p_worse, slow.p_beyond_limit) == (0.0, 1.0)


def test_equal_sides_pass_at_the_first_look() -> None:
    trial = played(0.0, np.random.default_rng(1))
    assert len(trial.first) == SEARCH[0]
    assert not trial.again
    assert {r.verdict for r in trial.results()} == {Verdict.EQUIVALENT}
    assert all(r.confirmed is None for r in trial.results())


def test_a_slow_down_fails_only_after_new_launches_showed_it_again() -> None:
    trial = played(0.10, np.random.default_rng(2))
    assert len(trial.again) == CONFIRM[0]
    assert overall(trial.results()) is Verdict.WORSE
    p50 = trial.results()[0]
    assert p50.confirmed
    assert p50.launches == CONFIRM[0]  # those of the first part, which led here, are not in it
    assert p50.ratio == pytest.approx(math.exp(np.mean([one["p50"] for one in trial.again])))


def test_much_slower_is_seen_after_three_launches_and_shown_again_by_four() -> None:
    trial = played(0.20, np.random.default_rng(13))
    assert (len(trial.first), len(trial.again)) == (3, 4)
    assert overall(trial.results()) is Verdict.WORSE


def test_few_launches_pass_nothing_and_take_more_than_leaning_for_a_sign() -> None:
    trial = Trial({"p50": 0.05}, by_name)
    for value in (0.015, 0.018, 0.02, 0.019):  # p of .017 after three and .0025 after four
        assert not trial.signs
        trial.add({"p50": value})
    assert trial.signs == ("p50",)
    trial = Trial({"p50": 0.05}, by_name)
    for _ in range(4):
        trial.add({"p50": 0.0})
    assert not trial.over


def test_a_sign_that_is_gone_in_new_launches_does_not_fail() -> None:
    trial = played(0.10, np.random.default_rng(3), later=0.0)
    assert "p50" in trial.signs
    assert overall(trial.results()) is Verdict.EQUIVALENT
    assert "not confirmed" in trial.results()[0].reason


def test_a_slow_tail_alone_is_found() -> None:
    trial = played(0.0, np.random.default_rng(4), slow_fifth=0.10)
    verdicts = {r.gate: r.verdict for r in trial.results()}
    assert verdicts.pop("slowest-fifth") is Verdict.WORSE
    assert Verdict.WORSE not in verdicts.values()


def test_what_cannot_be_decided_ends_undecided_after_the_last_look() -> None:
    trial = played(0.04, np.random.default_rng(5), spread=0.3)
    assert len(trial.first) in SEARCH
    assert len(trial.first) + len(trial.again) <= SEARCH[-1] + CONFIRM[-1]
    assert overall(trial.results()) is Verdict.UNDECIDED


def test_faster_passes_as_better() -> None:
    trial = played(-0.10, np.random.default_rng(6))
    assert overall(trial.results()) is Verdict.BETTER


@pytest.mark.slow
def test_equal_sides_are_not_called_faster() -> None:
    trials = [played(0.0, np.random.default_rng([9, n]), spread=0.1) for n in range(100)]
    told = [gate.verdict for trial in trials for gate in trial.results()]
    assert told.count(Verdict.BETTER) <= len(told) * 0.02


@pytest.mark.slow
def test_no_false_alarm_in_many_trials_of_equal_sides() -> None:
    for spread in (0.005, 0.01, 0.03, 0.1):
        assert words(0.0, 150, seed=7, spread=spread).count("FAIL") <= 1


def test_a_slow_down_as_small_as_delta_is_no_failure() -> None:
    assert words(0.01, 200, seed=8).count("FAIL") <= 2


def test_power_at_three_and_five_per_cent() -> None:
    assert words(0.05, 150, seed=9).count("FAIL") >= 149
    assert words(0.03, 150, seed=10).count("FAIL") >= 135


def test_stragglers_do_not_fail_equal_sides() -> None:
    """One launch in five is slow by 10 % on one side, whichever."""
    rng = np.random.default_rng(11)
    fails = 0
    for _ in range(200):
        trial = Trial({"p50": 0.05}, by_name)
        while not trial.over:
            stray = 0.1 * rng.choice([-1, 1]) if rng.random() < 0.2 else 0.0
            trial.add({"p50": stray + 0.005 * rng.standard_normal()})
        fails += overall(trial.results()) is Verdict.WORSE
    assert fails <= 2


def test_a_trial_that_was_broken_off_is_undecided_or_not_measured() -> None:
    trial = Trial(LIMITS, by_name)
    assert overall(trial.results()) is Verdict.MISSING
    for value in (0.0, 0.001, 0.002):
        trial.add(dict.fromkeys(LIMITS, value))
    assert overall(trial.results()) is Verdict.UNDECIDED
    assert "broken off" in trial.results()[0].reason


def test_a_trial_that_is_over_takes_nothing_more() -> None:
    trial = played(0.0, np.random.default_rng(12))
    with pytest.raises(ValueError, match="over"):
        trial.add(dict.fromkeys(LIMITS, 0.0))


def confirmed_by(p: float, gates: tuple[str, ...]) -> Trial[Mapping[str, float]]:
    """A trial after the first look of its second part, where each gate has this p of being no
    slower than what counts as no difference."""
    trial = Trial({name: 0.05 if name == "p50" else 0.10 for name in gates}, by_name)
    for value in (0.2, 0.21, 0.19):
        trial.add(dict.fromkeys(gates, value))
    assert trial.signs == gates
    error = 0.005 * math.sqrt(4 / 3) / 2
    above = -float(stats.t.ppf(p, 3)) * error
    for launch in range(CONFIRM[0]):
        away = 0.005 if launch % 2 else -0.005
        trial.add({name: math.log1p(GATES[name].delta) + above + away for name in gates})
    return trial


def test_two_gates_that_lean_must_both_be_shown_at_half_of_the_level() -> None:
    level = ALPHA / len(CONFIRM)
    assert not confirmed_by(0.8 * level, ("p50", "slowest-fifth")).over
    both = confirmed_by(0.4 * level, ("p50", "slowest-fifth"))
    assert both.over
    assert overall(both.results()) is Verdict.WORSE


def test_one_gate_that_leans_is_held_against_the_whole_level_and_three_against_a_third() -> None:
    level = ALPHA / len(CONFIRM)
    assert confirmed_by(0.8 * level, ("p50",)).over
    assert not confirmed_by(1.2 * level, ("p50",)).over
    assert not confirmed_by(0.4 * level, ("p50", "p95", "slowest-fifth")).over
    assert confirmed_by(0.3 * level, ("p50", "p95", "slowest-fifth")).over


def test_a_figure_that_still_leans_at_the_last_look_does_not_pass() -> None:
    trial = Trial({"p50": 0.05}, by_name)
    for value in (0.06, 0.061, 0.059):
        trial.add({"p50": value})
    for launch in range(CONFIRM[-1]):
        trial.add({"p50": 0.026 + (0.026 if launch % 2 else -0.026)})
    (gate,) = trial.results()
    assert some(gate.interval)[1] < 1.05, "within the limit, taken by itself"
    assert gate.verdict is Verdict.UNDECIDED


def test_every_verdict_has_its_word() -> None:
    assert set(WORDS) == set(Verdict)
