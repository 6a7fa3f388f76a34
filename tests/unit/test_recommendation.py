from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.comparison import Comparison, compare_runs
from harness.latency_ratio import LatencyDelta
from harness.recommendation import Recommendation, recommend
from harness.run import Run
from harness.types import Verdict
from tests.unit.test_comparison import run

RNG = np.random.default_rng(11)
BASE = RNG.uniform(0.2, 0.8, 500)
NEAR = BASE + RNG.normal(0, 0.01, 500)
NOISY = BASE + RNG.normal(0.002, 0.3, 500)
LOWER = BASE - 0.1


def faster(a: str, b: str, ratio: float, verdict: Verdict = Verdict.BETTER) -> LatencyDelta:
    return LatencyDelta(a, b, "typical", verdict, ratio)


def compared(*runs: Run, times: tuple[LatencyDelta, ...] = ()) -> Comparison:
    comparison = compare_runs(runs)
    (group,) = comparison.groups
    return replace(comparison, groups=(replace(group, latency=times),))


def answer(*runs: Run, times: tuple[LatencyDelta, ...] = ()) -> Recommendation:
    (found,) = recommend(compared(*runs, times=times))
    return found


def hybrid(name: str, values: Any, *legs: str) -> Run:
    one = run(name, list(values))
    facts: dict[str, Any] = {"legs": {leg: {} for leg in legs}}
    return replace(one, manifest={"retriever": {"facts": facts}})


def test_a_system_that_is_better_than_every_other_is_taken() -> None:
    found = answer(run("a", list(LOWER)), run("b", list(BASE)), run("c", list(LOWER - 0.1)))
    assert found.system == "b"
    assert found.sentence.endswith(
        f"its nDCG@10 {BASE.mean():.4f} is better than each of the other 2."
    )


def test_the_highest_mean_alone_is_no_proof_and_the_rivals_are_named() -> None:
    found = answer(run("a", list(BASE)), run("b", list(NOISY)))
    best, rival = ("b", "a") if NOISY.mean() > BASE.mean() else ("a", "b")
    assert found.system == best
    assert f"not shown to be better than {rival}" in found.sentence
    assert any(f"{rival} against {best}" in line and "undecided" in line for line in found.reasons)
    assert any("would show" in line for line in found.reasons)


def test_of_equivalent_systems_the_faster_one_is_taken() -> None:
    low, high = sorted([("a", BASE), ("b", NEAR)], key=lambda pair: pair[1].mean())
    runs = [run(name, list(values)) for name, values in (low, high)]
    slow = answer(*runs)
    assert slow.system == high[0]
    assert "equivalent within 0.01" in slow.sentence
    quick = answer(*runs, times=(faster(high[0], low[0], 0.02),))
    assert quick.system == low[0]
    assert "it is about 50 times faster" in quick.sentence
    turned = answer(*runs, times=(faster(low[0], high[0], 50.0, Verdict.WORSE),))
    assert turned.sentence == quick.sentence


def test_time_never_buys_quality_that_was_shown_to_be_lost() -> None:
    found = answer(
        run("quick", list(LOWER)), run("good", list(BASE)), times=(faster("good", "quick", 0.01),)
    )
    assert found.system == "good"
    assert found.reasons[0].startswith("quick is about 100 times faster, with nDCG@10")
    assert "(-0.1000)" in found.reasons[0]


def test_an_undecided_time_is_no_reason() -> None:
    runs = [run("a", list(BASE)), run("b", list(NEAR))]
    times = (faster("a", "b", 0.5, Verdict.UNDECIDED), faster("b", "a", 2.0, Verdict.UNDECIDED))
    assert "faster" not in answer(*runs, times=times).sentence


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (LOWER, "worse than"),
        (NOISY - NOISY.mean() + BASE.mean(), "not shown to be better than"),
        (NEAR, "equivalent to"),
    ],
)
def test_a_hybrid_that_is_not_better_than_its_leg_is_told(values: Any, words: str) -> None:
    found = answer(
        run("bm25", list(BASE)),
        run("dense", list(LOWER - 0.2)),
        hybrid("rrf", values, "bm25", "dense"),
    )
    told = [line for line in found.reasons if line.startswith("rrf is ")]
    assert len(told) == 1
    assert f"is {words} its leg bm25" in told[0]


def test_a_hybrid_that_is_better_than_both_legs_is_not_complained_about() -> None:
    found = answer(
        run("bm25", list(LOWER)), run("dense", list(LOWER)), hybrid("rrf", BASE, "bm25", "dense")
    )
    assert not [line for line in found.reasons if "leg" in line]


def test_runs_that_cannot_be_compared_give_no_recommendation() -> None:
    found = answer(run("a", list(BASE)), run("b", list(BASE), k=3))
    assert found.system is None
    assert found.sentence.startswith("No recommendation")
    assert found.reasons == ("Not comparable: k 10 and 3.",)


def test_every_dataset_has_its_own_answer() -> None:
    other = {"dataset": {"fingerprint": "g", "split": "test", "name": "other"}}
    comparison = compare_runs(
        [
            run("a", list(BASE)),
            run("b", list(LOWER)),
            run("a", list(LOWER), **other),
            run("b", list(BASE), **other),
        ]
    )
    first, second = recommend(comparison)
    assert (first.system, second.system) == ("a", "b")
    assert second.dataset == "other"
    assert set(first.as_dict()) == {"dataset", "system", "sentence", "reasons"}
