"""Every warning beside every claim of a comparison: what it makes void is not decided (F1, F3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.comparison.claims import SHARED, VOIDS, Void
from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.comparison.group import Recommendation
from retrieval_bench.comparison.pairs.speed import ALLOWANCE, latencies, latency_deltas
from retrieval_bench.core.notices import LOUD, Code, Notice
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.run import Run
from tests.builders.runs import run, timed_run

GOOD = np.linspace(0.5, 0.9, 60)


def warned(one: Run, *codes: Code) -> Run:
    warnings = [Notice(f"It says {code.value}. Do this.", code) for code in codes]
    return replace(one, summary=one.summary.replace(warnings=warnings))


def answer(*runs: Run) -> Recommendation:
    (found,) = compare_runs(runs).recommendations
    return found


@pytest.mark.parametrize("code", list(Code))
def test_each_warning_says_what_it_makes_void_of_a_better_system(code: Code) -> None:
    quality, _ = VOIDS[code]
    for ahead, behind, void in (
        ((code,), (), {Void.PRAISE, Void.ALL}),
        ((), (code,), {Void.BLAME, Void.ALL}),
    ):
        found = answer(warned(run("a", GOOD), *ahead), warned(run("b", GOOD - 0.3), *behind))
        if quality in void:
            name = "a" if ahead else "b"
            assert found.system is None
            assert found.sentence == (
                f"Nothing is recommended while this is open: {name}: It says {code.value}."
            )
        else:
            assert found.sentence.startswith("Use a: its nDCG@10 of 0.700 is significantly better")


@pytest.mark.parametrize("code", list(Code))
def test_each_warning_says_what_it_makes_void_of_a_faster_system(code: Code) -> None:
    _, speed = VOIDS[code]
    times = np.full((1, 5, 40), 10.0) + np.arange(40) + 0.1 * np.arange(5)[:, None]
    for faster, slower, void in (
        ((code,), (), {Void.PRAISE, Void.ALL}),
        ((), (code,), {Void.BLAME, Void.ALL}),
    ):
        runs = [
            warned(timed_run(times / 4, "quick"), *faster),
            warned(timed_run(times, "slow"), *slower),
        ]
        typical, _ = latencies(runs, ["quick", "slow"], [(0, 1)])
        if speed in void:
            assert (typical.verdict, typical.ratio) == (Verdict.NOT_COMPARABLE, None)
            assert typical.reason.startswith(f"{'quick' if faster else 'slow'}: It says")
        else:
            assert typical.verdict is Verdict.WORSE
        small = speed is Void.SMALL
        (delta, _) = latency_deltas(runs[0], runs[1], "quick", "slow")
        assert not small or delta.beyond == ALLOWANCE


def test_what_both_have_wrongs_nobody() -> None:
    for code in SHARED:
        found = answer(warned(run("a", GOOD), code), warned(run("b", GOOD - 0.3), code))
        assert found.system == "a"


def test_the_others_are_decided_and_all_that_is_open_is_told() -> None:
    found = answer(
        warned(run("peek", GOOD + 0.1), Code.TOO_GOOD),
        run("good", GOOD),
        run("bad", GOOD - 0.3),
    )
    assert found.sentence.startswith("Nothing is recommended while this is open: peek: It says")
    (others,) = found.reasons
    assert others.startswith("Of the others: Use good: its nDCG@10 of 0.700 is significantly")


def test_first_calls_are_held_against_each_other_where_answers_are_remembered() -> None:
    """F1: the cache is 1,000 times as fast, and its first calls take as long."""
    slow = np.full((1, 5, 40), 4.0)
    quick = slow / 1_000
    runs = []
    for name, times in (("slow", slow), ("cached", quick)):
        one = timed_run(times, name)
        first = np.full((1, 40), 4_000_000, dtype=np.int64)
        runs.append(replace(one, timings=replace(one.timings, first_ns=first)))
    runs[1] = warned(runs[1], Code.REMEMBERED)
    typical, _ = latencies(runs, ["slow", "cached"], [(0, 1)])
    assert typical.void
    assert typical.reason.endswith(
        "; by the first call of each query, cached takes 1.00x as long as slow"
    )


def test_no_cell_is_open_and_what_makes_void_is_shown_first() -> None:
    assert set(VOIDS) == set(Code)
    void = {code for code, cells in VOIDS.items() if {*cells} & {Void.PRAISE, Void.BLAME, Void.ALL}}
    assert void | {Code.UNFIT} == LOUD
