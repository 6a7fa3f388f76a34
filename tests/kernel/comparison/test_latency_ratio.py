from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.speed import (
    ALLOWANCE,
    LIMIT,
    LatencyDelta,
    corrected,
    latency_deltas,
    launches_needed,
    timed_differently,
    timed_together,
)
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.run import pack_rankings
from tests.builders import some
from tests.builders.runs import timed_run

LAUNCH_SD = 0.009
"""Of a process's log ratio though the code is the same, measured."""


def deltas(a: Any, b: Any) -> tuple[LatencyDelta, LatencyDelta]:
    typical, tail = latency_deltas(timed_run(a, "a"), timed_run(b, "b"), "a", "b")
    assert (typical.what, tail.what) == ("typical", "p95")
    return typical, tail


def typical(a: Any, b: Any) -> LatencyDelta:
    return deltas(a, b)[0]


def noisy(
    seed: int,
    ratio: float,
    launches: int,
    rounds: int,
    queries: int,
    *,
    launch_sd: float = LAUNCH_SD,
    drift: float = 0.1,
    noise: float = 0.05,
    query_sd: float = 0.0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times of two systems: queries that differ, rounds whose machine drifts for both, launches
    that differ in the ratio, and noise of each call with stalls."""
    rng = np.random.default_rng(seed)
    shape = (launches, rounds, queries)
    query = rng.lognormal(0, 0.5, queries)
    pace = np.exp(np.cumsum(rng.normal(0, drift, (launches, rounds, 1)), axis=1))
    own = np.exp(rng.normal(math.log(ratio), launch_sd, (launches, 1, 1)))
    own = own * np.exp(rng.normal(0, query_sd, queries))
    sides = []
    for factor in (np.ones(1), own):
        stalls = np.where(rng.random(shape) < 0.01, 10.0, 1.0)
        sides.append(3 * query * pace * factor * stalls * rng.lognormal(0, noise, shape))
    return sides[0], sides[1]


FLAT = np.ones((5, 3, 40))
UNEQUAL = np.exp(np.random.default_rng(1).normal(0, 0.004, (5, 1, 1)))


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (1.5, Verdict.WORSE),
        (1.03, Verdict.WORSE),
        (1.0, Verdict.EQUIVALENT),
        (1 / 1.03, Verdict.BETTER),
        (0.01, Verdict.BETTER),
    ],
)
def test_five_launches_decide(factor: float, verdict: Verdict) -> None:
    found = typical(FLAT * 10, FLAT * 10 * factor * UNEQUAL)
    assert (found.verdict, found.launches, found.reason) == (verdict, 5, "")
    assert found.ratio == pytest.approx(factor, rel=0.01)
    assert some(found.ci98)[0] < some(found.ratio) < some(found.ci98)[1]
    assert (found.beyond, found.pairs, found.over) == (0.01, 600, "5 launches")


def test_the_interval_is_students_over_launches() -> None:
    from scipy import stats

    thetas = np.log([1.02, 1.05, 1.03, 1.06, 1.04])
    found = typical(FLAT * 100, FLAT * 100 * np.exp(thetas)[:, None, None])
    error = thetas.std(ddof=1) / math.sqrt(5)
    expected = stats.t.interval(0.98, 4, thetas.mean(), error)
    assert np.log(some(found.ci98)) == pytest.approx(expected, abs=1e-6)
    upper = stats.ttest_1samp(thetas, math.log(1.01), alternative="greater").pvalue
    equal = stats.ttest_1samp(thetas, math.log(1 + LIMIT), alternative="less").pvalue
    assert found.p == pytest.approx(upper, rel=1e-3)
    assert found.p_equivalence == pytest.approx(equal, rel=1e-3)


def test_a_difference_that_is_shown_and_small_is_told_as_a_difference() -> None:
    found = typical(FLAT * 10, FLAT * 10.3)
    assert found.verdict is Verdict.WORSE
    assert found.p_equivalence == 0.0


def test_launches_that_disagree_decide_nothing_and_say_how_many_would() -> None:
    apart = np.exp(np.array([-0.03, 0.0, 0.03, 0.06, 0.09]))[:, None, None]
    found = typical(FLAT * 10, FLAT * 10 * apart)
    assert found.verdict is Verdict.UNDECIDED
    assert found.reason == "more than 24 launches would decide"
    apart = np.exp(np.array([0.05, 0.06, 0.07, 0.08, 0.12]) - 0.03)[:, None, None]
    found = typical(FLAT * 10, FLAT * 10 * apart)
    needed = launches_needed(found)
    assert found.verdict is Verdict.UNDECIDED
    assert found.reason == f"about {needed} launches would decide: --launches {needed}"


@pytest.mark.parametrize("launches", [1, 4])
def test_fewer_launches_tell_only_large_differences(launches: int) -> None:
    a = FLAT[:launches]
    small, equal, large, small_faster = (typical(a, a * by) for by in (1.09, 1.0, 1.2, 0.95))
    assert {small.verdict, equal.verdict, small_faster.verdict} == {Verdict.UNDECIDED}
    assert equal.p_equivalence is None
    assert "--launches 5" in equal.reason
    assert large.verdict is Verdict.WORSE
    assert (large.beyond, large.launches) == (ALLOWANCE, launches)
    assert typical(a * 135, a).verdict is Verdict.BETTER


def test_rounds_of_one_launch_are_judged_where_they_agree_and_one_round_by_its_parts() -> None:
    by_round = np.exp(np.array([0.0, 0.6, 0.0, 0.6]))[None, :, None]
    a = np.ones((1, 4, 40))
    found = typical(a, a * by_round)
    assert found.ratio == pytest.approx(math.exp(0.3), rel=1e-5)
    assert found.verdict is Verdict.UNDECIDED
    a, b = noisy(1, 1.5, 1, 1, 166)
    found = typical(a, b)
    assert (found.verdict, found.launches, found.pairs) == (Verdict.WORSE, 1, 166)
    assert found.over == "parts of the rounds"
    assert some(found.ci98)[0] < 1.5 < some(found.ci98)[1]
    a = np.ones((1, 8, 1))
    assert typical(a, a * 3).verdict is Verdict.WORSE


def test_a_single_pair_has_a_ratio_and_no_verdict() -> None:
    found, tail = deltas(np.ones((1, 1, 1)), np.full((1, 1, 1), 50.0))
    assert (found.verdict, found.ci98, found.p) == (Verdict.UNDECIDED, None, None)
    assert found.ratio == pytest.approx(50)
    assert "--launches 5" in found.reason
    assert tail.ratio is None


def test_rounds_and_launches_that_are_not_whole_do_not_bend_the_ratio() -> None:
    # The last round only reached queries on which b is slow.
    a = np.ones((1, 7, 40))
    b = np.where(np.arange(40) < 8, 9.0, 1.0) * a
    b[0, 6, 8:] = np.nan
    found = typical(a, b)
    assert found.ratio == pytest.approx(1.0)
    assert found.ci98 == pytest.approx((1.0, 1.0))
    # Launches of unequal rounds count as launches.
    a = np.full((6, 5, 30), np.nan)
    for launch in range(6):
        a[launch, : launch + 1 if launch < 5 else 5] = 1.0
    found = typical(a, a * 1.2)
    assert (found.verdict, found.launches, found.pairs) == (Verdict.WORSE, 6, 20 * 30)
    # Launch 2 of 6 was lost.
    a = np.full((6, 1, 30), 2.0)
    a[2] = np.nan
    assert typical(a, a * 1.2).launches == 5


def test_failed_calls_are_left_out_and_told() -> None:
    a = np.ones((5, 2, 30))
    b = a * 2
    b[:, 0, 3] = -60_000.0
    b[:, 1, 3] = np.nan
    found = typical(a, b)
    assert (found.verdict, found.failed, found.pairs) == (Verdict.WORSE, 5, 290)
    assert found.ratio == pytest.approx(2.0)
    assert found.reason == "without 5 pairs in which a call failed"


def test_where_nothing_was_answered_by_both_there_is_no_time() -> None:
    found, tail = deltas(np.ones((1, 2, 3)), np.full((1, 2, 3), -1.0))
    assert found.verdict is tail.verdict is Verdict.MISSING
    assert "no pair of calls" in found.reason
    assert found.failed == 6


def test_the_tail_takes_five_launches_and_two_hundred_queries() -> None:
    a = np.random.default_rng(2).lognormal(0, 1, (5, 2, 200))
    found = deltas(a, a * UNEQUAL * 1.06)[1]
    assert (found.verdict, found.beyond) == (Verdict.WORSE, 0.03)
    assert found.ratio == pytest.approx(1.06, rel=0.01)
    few = deltas(a[:, :, :199], a[:, :, :199] * 2)[1]
    assert (few.verdict, few.reason) == (Verdict.UNDECIDED, "judged from 200 queries on, here 199")
    assert few.ratio is None
    one = deltas(a[:4], a[:4] * 2)[1]
    assert "--launches 5" in one.reason


def test_a_slow_tail_alone_is_found_in_the_tail_alone() -> None:
    a = np.sort(np.random.default_rng(2).lognormal(0, 1, 200)) * np.ones((5, 2, 1))
    usual, tail = deltas(a, a * UNEQUAL * np.where(np.arange(200) >= 170, 1.3, 1.0))
    assert usual.verdict is Verdict.EQUIVALENT
    assert tail.verdict is Verdict.WORSE


STAND_IN = {"kind": "Milvus", "stand_in": True}
REPLAYED = {"summary": {"latency_ms": {"mean": None, "n": 4}}}


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        (REPLAYED, Verdict.MISSING, "no times of b: the rankings were read from a saved run"),
        ({"dataset": {"fingerprint": "g"}}, Verdict.NOT_COMPARABLE, "different dataset"),
        (
            {"environment": {"machine": {"fingerprint": "n"}}},
            Verdict.NOT_COMPARABLE,
            "measured on different machines",
        ),
        (
            {"environment": {"threads": 4}, "protocol": {"timeout_s": 1.0}},
            Verdict.NOT_COMPARABLE,
            "measured with different threads, timeout",
        ),
        ({"summary": {"k": 20}}, Verdict.NOT_COMPARABLE, "measured with different k"),
        ({"protocol": {"collector": True}}, Verdict.NOT_COMPARABLE, "collector"),
        ({"protocol": {"launches": 5}}, Verdict.NOT_COMPARABLE, "launches"),
        (
            {"retriever": {"facts": {"legs": {"m": {"engine": STAND_IN}}}}},
            Verdict.NOT_COMPARABLE,
            "b is a stand-in of Milvus, whose times",
        ),
        ({"session": "t"}, Verdict.UNDECIDED, "measured apart"),
        ({"session": None}, Verdict.UNDECIDED, "compare --retrievers"),
    ],
)
def test_what_was_not_measured_alike_and_together_is_not_judged(
    changes: dict[str, Any], verdict: Verdict, reason: str
) -> None:
    a = np.ones((5, 4, 6))
    for first, second in ((timed_run(a, "a"), timed_run(a * 9, "b", **changes)),):
        found = latency_deltas(first, second, "a", "b")
        assert [one.verdict for one in found] == [verdict] * 2
        assert reason in found[0].reason
        assert {(one.ratio, one.ci98, one.p) for one in found} == {(None, None, None)}
        back = latency_deltas(second, first, "b", "a")
        assert [one.verdict for one in back] == [verdict] * 2


def test_other_numbers_of_calls_and_missing_facts_are_no_other_timing_but_a_machine_is() -> None:
    a = np.ones((1, 4, 6))
    first, second = (
        timed_run(a, protocol={"rounds": 3}),
        timed_run(a, protocol={"rounds": 9, "seed": 2}),
    )
    assert timed_differently([first, second]) == ""
    assert timed_together([first, second])
    apart = timed_run(a, session=None)
    assert not timed_together([first, apart])
    assert not timed_together([apart, apart])
    here = timed_run(a)
    old = replace(here, manifest={"session": "s", "environment": here.manifest["environment"]})
    assert timed_differently([here, old]) == ""
    away = timed_run(a, environment={"machine": {"fingerprint": "another"}})
    assert timed_differently([here, here, here]) == ""
    for runs in ([here, here, away], [away, here], [here, away, here]):
        assert "machines" in timed_differently(runs)


def test_runs_of_other_queries_are_not_paired_by_their_numbers() -> None:
    a = timed_run(np.ones((1, 2, 2)))
    b = replace(a, rankings=pack_rankings(["x", "y"], [None, None], 1))
    assert latency_deltas(a, b, "a", "b")[0].verdict is Verdict.UNDECIDED
    assert latency_deltas(a, b, "a", "b")[0].ratio is None


def test_holm_looks_at_all_that_was_tested() -> None:
    """p = .004 is told alone, and of three others no more."""
    clear = typical(FLAT, FLAT * 2 * UNEQUAL)
    close = replace(clear, ratio=1.04, ci98=(1.01, 1.07), p=0.004, p_equivalence=0.2)
    untested = LatencyDelta("x", "y", "typical", Verdict.MISSING, reason="r")
    assert [one.verdict for one in corrected([close, untested])] == [Verdict.WORSE, Verdict.MISSING]
    found = corrected([close, clear, replace(close), replace(close)])
    assert [one.verdict for one in found] == [
        Verdict.UNDECIDED,
        Verdict.WORSE,
        Verdict.UNDECIDED,
        Verdict.UNDECIDED,
    ]
    assert [one.p for one in found[2:]] == pytest.approx([0.012] * 2)
    alone, together = launches_needed(close), launches_needed(close, 0.01 / 4)
    assert some(alone) < some(together)
    assert f"about {together} launches would decide" in found[0].reason
    assert found[0].ci98 == close.ci98


def test_equivalence_is_corrected_as_well_and_nothing_stays_nothing() -> None:
    equal = typical(FLAT, FLAT * UNEQUAL)
    weak = replace(equal, p_equivalence=0.006)
    assert corrected([weak])[0].verdict is Verdict.EQUIVALENT
    assert {one.verdict for one in corrected([weak, weak])} == {Verdict.UNDECIDED}
    assert corrected([]) == []


def test_the_row_of_the_json_document_has_every_figure() -> None:
    row = json.loads(json.dumps(typical(FLAT, FLAT * 2 * UNEQUAL).as_dict()))
    assert row["verdict"] == "worse"
    assert row["ci98"][0] < row["ratio"] < row["ci98"][1]
    assert "reason" not in row
    assert json.loads(json.dumps(typical(FLAT[:1], FLAT[:1]).as_dict()))["reason"]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0.02, 0.9, 1.0, 1.02, 1.2, 40.0]),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 30),
)
def test_seen_from_the_other_side_everything_is_inverted(
    seed: int, ratio: float, launches: int, rounds: int, queries: int
) -> None:
    a, b = noisy(seed, ratio, launches, rounds, queries)
    rng = np.random.default_rng(seed)
    b[rng.random(b.shape) < 0.1] *= -1
    a[rng.random(a.shape) < 0.1] = np.nan
    turned = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    for there, back in zip(deltas(a, b), deltas(b, a), strict=True):
        assert back.verdict is turned.get(there.verdict, there.verdict)
        assert (back.launches, back.pairs, back.failed) == (
            there.launches,
            there.pairs,
            there.failed,
        )
        if there.ratio is not None:
            assert back.ratio == pytest.approx(1 / there.ratio)
        if there.ci98 is not None:
            low, high = there.ci98
            assert back.ci98 == pytest.approx((1 / high, 1 / low))


def verdicts(
    n: int, ratio: float, launches: int, rounds: int, queries: int, **noise: float
) -> list[LatencyDelta]:
    return [typical(*noisy(seed, ratio, launches, rounds, queries, **noise)) for seed in range(n)]


def share(found: list[LatencyDelta], *verdict: Verdict) -> float:
    return sum(one.verdict in verdict for one in found) / len(found)


def covered(found: list[LatencyDelta], truth: float) -> float:
    return sum(one.ci98 is not None and one.ci98[0] <= truth <= one.ci98[1] for one in found) / len(
        found
    )


@pytest.mark.slow
def test_same_code_in_five_launches_is_not_called_different() -> None:
    found = verdicts(200, 1.0, 5, 2, 60)
    assert share(found, Verdict.BETTER, Verdict.WORSE) <= 0.01
    assert covered(found, 1.0) >= 0.95


@pytest.mark.slow
@pytest.mark.long
def test_rates_of_false_verdicts_and_coverage_of_launches() -> None:
    """2,000 trials; a rate of .98 has a standard error of .003."""
    same = verdicts(2_000, 1.0, 5, 2, 40)
    assert share(same, Verdict.BETTER, Verdict.WORSE) <= 0.005
    assert 0.97 <= covered(same, 1.0) <= 0.99
    slow = verdicts(2_000, 1.01, 5, 2, 40)
    assert share(slow, Verdict.WORSE) <= 0.0175
    at_limit = verdicts(2_000, 1 + LIMIT, 5, 2, 40)
    assert share(at_limit, Verdict.EQUIVALENT) <= 0.0175


@pytest.mark.slow
@pytest.mark.long
def test_five_percent_is_found_in_five_launches() -> None:
    found = verdicts(1_000, 1.05, 5, 2, 40)
    assert share(found, Verdict.WORSE) >= 0.8
    assert covered(found, 1.05) >= 0.97
    assert share(verdicts(500, 1.05, 10, 2, 40), Verdict.WORSE) >= 0.99


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("rounds", [1, 4, 7, 25])
def test_intervals_of_one_process_cover_its_own_ratio(rounds: int) -> None:
    found = verdicts(1_000, 1.0, 1, rounds, 60, launch_sd=0.0)
    assert covered(found, 1.0) >= 0.96
    assert share(found, Verdict.UNDECIDED) == 1


@pytest.mark.slow
def test_the_launches_that_are_asked_for_decide() -> None:
    """With the truth in place of an estimate they give 80 % power."""
    truth, sd = 1.05, 0.025
    half = 3.7469 * sd / math.sqrt(5)
    ends = (truth * math.exp(-half), truth * math.exp(half))
    seen = LatencyDelta("a", "b", "typical", Verdict.UNDECIDED, truth, ends, 5, beyond=0.01)
    needed = some(launches_needed(seen))
    found = verdicts(600, truth, needed, 2, 100, launch_sd=sd, noise=0.001)
    assert 0.74 <= share(found, Verdict.WORSE) <= 0.9
