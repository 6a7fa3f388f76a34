from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.comparison.comparison import Comparison, compare_runs
from retrieval_bench.comparison.group import Recommendation
from retrieval_bench.comparison.pairs.speed import LatencyDelta
from retrieval_bench.core.types import Ranking, Verdict
from retrieval_bench.runs.run import Run, pack_rankings
from tests.builders.runs import run

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
    (found,) = compared(*runs, times=times).recommendations
    return found


def built(one: Run, target: str, **params: Any) -> Run:
    return replace(one, manifest={"retriever": {"target": target, "params": params}})


def hybrid(name: str, values: Any, **legs: dict[str, Any]) -> Run:
    one = run(name, values)
    facts = {"legs": {leg: {"target": leg, "params": params} for leg, params in legs.items()}}
    return replace(one, manifest={"retriever": {"facts": facts}})


@pytest.mark.slow
def test_a_system_that_is_better_than_every_other_is_taken() -> None:
    found = answer(run("a", LOWER), run("b", BASE), run("c", LOWER - 0.1))
    assert found.system == "b"
    assert found.sentence == (
        f"Use b: its nDCG@10 of {BASE.mean():.3f} is significantly better than both others "
        "(p < .001)."
    )


@pytest.mark.parametrize(("carriers", "doubted"), [(8, True), (90, False)])
def test_a_verdict_that_few_queries_carry_says_so_itself(carriers: int, doubted: bool) -> None:
    low = BASE[:100] - np.where(np.arange(100) < carriers, 0.2, 0.0)
    for runs in ([run("a", low), run("b", BASE[:100])], [run("b", BASE[:100]), run("a", low)]):
        sentence = answer(*runs).sentence
        assert "Use b: its nDCG@10 of " in sentence
        assert (
            ", but with so few queries that may be chance: the careful interval includes 0."
            in sentence
        ) is doubted


def test_few_queries_that_carry_a_verdict_are_told_of_those_systems_where_it_is_so() -> None:
    runs = [run("a", BASE[:300] - np.tile([0.002, 0.006], 150)), run("b", BASE[:300])]
    (delta,) = compared(*runs).groups[0].deltas
    assert delta.bound is not None, "only the first interval is within the margin"
    assert "few queries" not in answer(*runs).sentence
    near = BASE[:100] - np.where(np.arange(100) < 9, 0.2, 0.0)
    sentence = answer(run("a", near), run("b", BASE[:100]), run("c", LOWER[:100])).sentence
    assert "is significantly better than both others (p " in sentence
    assert sentence.endswith(
        "but with so few queries that may be chance: the careful interval against a includes 0."
    )


@pytest.mark.slow
def test_the_highest_mean_alone_is_no_proof_and_the_rivals_are_named() -> None:
    found = answer(run("a", BASE), run("b", NOISY))
    best, rival = ("b", "a") if NOISY.mean() > BASE.mean() else ("a", "b")
    assert (found.system, found.leaders) == (None, ())
    assert found.sentence == (
        f"{best} and {rival}: these queries can't tell which is better in nDCG@10."
    )
    (line,) = [line for line in found.reasons if f"{rival} against {best}" in line]
    assert re.search(r"can't tell\. .*bout [\d,]+ queries in all would show .*\(80 % power\)", line)
    assert line.endswith("; you have 500, of which 500 tell the two apart.")


@pytest.mark.slow
def test_of_equivalent_systems_the_faster_one_is_taken() -> None:
    low, high = sorted([("a", BASE), ("b", NEAR)], key=lambda pair: pair[1].mean())
    runs = [run(name, values) for name, values in (low, high)]
    slow = answer(*runs)
    assert slow.system == high[0]
    assert "equivalent within 0.01" in slow.sentence
    quick = answer(*runs, times=(faster(high[0], low[0], 0.02),))
    assert quick.system == low[0]
    assert "it is 50x faster" in quick.sentence
    turned = answer(*runs, times=(faster(low[0], high[0], 50.0, Verdict.WORSE),))
    assert turned.sentence == quick.sentence


def timed(name: str, values: Any, p50: float) -> Run:
    return run(name, values, latency_ms={"p50": {"value": p50}})


@pytest.mark.parametrize(("saved", "taken"), [(0.9, None), (1.1, "b")])
def test_less_than_a_millisecond_decides_between_no_equal_systems(
    saved: float, taken: str | None
) -> None:
    ones = np.ones(30)
    runs = [timed("a", ones, 2.0), timed("b", ones, 2.0 - saved)]
    for times in (faster("a", "b", 0.5), faster("b", "a", 2.0, Verdict.WORSE)):
        found = answer(*runs, times=(times,))
        assert found.system == taken
        assert ("faster" in found.sentence) is (taken is not None)
    assert answer(*runs).leaders == ()


def test_nor_does_it_take_the_equivalent_system_with_the_lower_mean() -> None:
    high, low = sorted([("a", BASE), ("b", NEAR)], key=lambda pair: -pair[1].mean())
    runs = [timed(*high, 0.9), timed(*low, 0.1)]
    found = answer(*runs, times=(faster(high[0], low[0], 0.1),))
    assert found.system == high[0]
    assert found.reasons[0].startswith(f"{low[0]} is 10x faster, by less than 1 ms, and 0.")
    assert "and 0.000 lower" not in found.reasons[0]


def test_time_never_buys_quality_that_was_shown_to_be_lost() -> None:
    found = answer(run("quick", LOWER), run("good", BASE), times=(faster("good", "quick", 0.01),))
    assert found.system == "good"
    assert found.reasons[0] == "quick is 100x faster and 0.100 lower in nDCG@10."
    runs = [timed("quick", LOWER, 0.1), timed("good", BASE, 0.9)]
    found = answer(*runs, times=(faster("good", "quick", 0.1),))
    assert found.reasons[0] == "quick is 10x faster, by less than 1 ms, and 0.100 lower in nDCG@10."


@pytest.mark.slow
def test_an_undecided_time_is_no_reason() -> None:
    runs = [run("a", BASE), run("b", NEAR)]
    times = (faster("a", "b", 0.5, Verdict.UNDECIDED), faster("b", "a", 2.0, Verdict.UNDECIDED))
    assert "faster" not in answer(*runs, times=times).sentence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "words"),
    [
        (LOWER, "is worse than"),
        (NOISY - NOISY.mean() + BASE.mean(), "is not significantly better than"),
        (NEAR, "is equivalent to"),
    ],
)
def test_a_hybrid_that_is_not_better_than_its_leg_is_told(values: Any, words: str) -> None:
    sparse = built(run("bm25", BASE), "bm25", k1=0.9)
    dense = built(run("dense", LOWER - 0.2), "dense")
    found = answer(sparse, dense, hybrid("rrf", values, bm25={"k1": 0.9}, dense={}))
    told = [line for line in found.reasons if line.startswith("rrf is ")]
    assert len(told) == 1
    assert f"rrf {words} its leg bm25 alone: " in told[0]


def test_nothing_is_said_of_legs_of_another_configuration_or_that_are_beaten() -> None:
    other = built(run("bm25", BASE), "bm25", k1=20)
    found = answer(other, hybrid("rrf", LOWER, bm25={"k1": 0.9}))
    assert not [line for line in found.reasons if "leg" in line]
    legs = [built(run(name, LOWER), name) for name in ("bm25", "dense")]
    found = answer(*legs, hybrid("rrf", BASE, bm25={}, dense={}))
    assert not [line for line in found.reasons if "leg" in line]


@pytest.mark.slow
def test_equal_means_tell_nobody_apart_unless_one_is_faster() -> None:
    runs = [run(name, BASE) for name in "ab"]
    found = answer(*runs)
    assert found.system is None
    assert found.sentence.startswith("a and b have the same, highest nDCG@10: ")
    quick = answer(*runs, times=(faster("a", "b", 0.1),))
    assert quick.system == "b"
    assert "it ties with a at the highest nDCG@10 (" in quick.sentence
    assert quick.sentence.endswith("), and is 10x faster.")
    first = answer(*runs, times=(faster("b", "a", 0.1),))
    assert first.system == "a"
    assert "it ties with b at the highest nDCG@10 (" in first.sentence
    assert first.sentence.endswith("), and is the fastest of them.")


@pytest.mark.slow
def test_a_loss_that_is_real_and_small_is_not_called_equivalent() -> None:
    low = BASE - 0.002 + RNG.normal(0, 0.005, 500)
    runs = [run("slow", BASE), run("quick", low)]
    found = answer(*runs, times=(faster("slow", "quick", 0.01),))
    assert found.system == "quick"
    assert "is lower than the highest (slow, " in found.sentence
    assert "but by less than 0.01, and it is 100x faster." in found.sentence


def test_failures_and_what_was_not_compared_are_told() -> None:
    runs = [run("a", LOWER), run("b", BASE), run("c", LOWER - 0.1)]
    (found,) = compare_runs(runs, baseline="a").recommendations
    assert found.sentence.endswith(
        f"is significantly better than a's {LOWER.mean():.3f} (p < .001)."
    )
    assert found.reasons[0] == "b was not compared with c."
    found = answer(run("a", LOWER), run("b", BASE, n_failed=3))
    assert found.reasons[0] == "b FAILED on 3 queries: each evaluated one counts 0."
    found = answer(run("a", BASE), run("b", BASE, k=3))
    assert found.system is None
    assert found.sentence.startswith("Nothing here can be compared")
    assert found.reasons == ("Not comparable: k 10 and 3.",)


def test_of_many_rivals_the_closest_are_named_and_the_rest_counted() -> None:
    rng = np.random.default_rng(3)
    runs = [run(f"s{i}", list(BASE[:60] + rng.normal(0, 0.2, 60))) for i in range(8)]
    found = answer(*runs)
    told = [line for line in found.reasons if ", can't tell." in line]
    means = [float(run_.evaluation.values(run_.evaluation.metrics[0]).mean()) for run_ in runs]
    ranked = [f"s{i}" for i in np.argsort(means)[::-1]]
    assert [line.split(" ")[0] for line in told] == ranked[1:5]
    assert found.reasons[-1] == f"3 more systems can't be told from {ranked[0]}."


@pytest.mark.slow
def test_every_dataset_has_its_own_answer() -> None:
    other: dict[str, Any] = {"dataset": {"fingerprint": "g", "split": "test", "name": "other"}}
    there = [run("a", LOWER, **other), run("b", BASE, **other)]
    first, second = compare_runs([run("a", BASE), run("b", LOWER), *there]).recommendations
    assert (first.system, second.system) == ("a", "b")
    assert second.dataset == "other"
    assert set(first.as_dict()) == {"dataset", "system", "sentence", "reasons", "leaders"}


@pytest.mark.needs("retrieval_bench_pages")
@pytest.mark.parametrize("n", [3, 40])
def test_where_all_may_be_the_best_none_is_recommended(n: int) -> None:
    """F4: three systems, and forty, that these queries can't tell apart."""

    from retrieval_bench_pages.answer import headline

    noise = np.random.default_rng(5)
    systems = [run(f"s{at:02}", BASE[:30] + noise.normal(0, 0.2, 30)) for at in range(n)]
    found = answer(*systems)
    assert (found.system, found.leaders) == (None, ())
    of = "the 40 systems" if n == 40 else " and s0"
    assert found.sentence.startswith("Nothing is recommended: these queries can't tell ")
    assert of in found.sentence
    assert found.sentence.endswith(" apart in nDCG@10.")
    assert "quer" in found.reasons[0]  # what would decide it
    assert headline(found) == "No recommendation"


def test_a_third_that_is_beaten_leaves_two_to_choose_from() -> None:
    """F4: not all of them lead."""
    found = answer(run("a", BASE), run("b", NOISY), run("c", LOWER - 0.1))
    assert set(found.leaders) == {"a", "b"}
    assert "lead in nDCG@10; these queries can't separate them" in found.sentence


def returning(name: str, documents: str, values: Any) -> Run:
    one = run(name, values)
    lists = [Ranking(list(documents), None)] * len(values)
    rankings = pack_rankings(one.evaluation.query_ids, lists, len(documents))
    return replace(one, rankings=rankings, status=("ok",) * len(lists))


def test_identical_rankings_are_called_so_and_no_query_would_tell_them_apart() -> None:
    """F6: two systems, a third beside them, and equal values of other lists."""
    values, worse = BASE[:40], LOWER[:40] - 0.1
    same = [returning(name, "abc", values) for name in ("one", "two")]
    found = answer(*same)
    assert found.sentence == f"one and two return identical rankings (nDCG@10 {values.mean():.3f})."
    assert (found.system, found.reasons) == (None, ())
    delta = compared(*same).groups[0].of("nDCG@10")[0]
    assert (delta.identical, delta.queries_needed, delta.bound) == (True, None, None)
    third = answer(*same, returning("low", "abc", worse))
    assert set(third.leaders) == {"one", "two"}
    assert "return identical rankings" in third.sentence
    quick = answer(*same, times=(faster("one", "two", 0.5),))
    assert quick.sentence.startswith("Use two: it returns the same rankings as one")
    other = answer(same[0], returning("other", "acb", values))
    assert "identical" not in other.sentence
    assert "have the same, highest nDCG@10" in other.sentence


def test_a_system_that_nobody_held_against_the_taken_one_may_be_the_best_too() -> None:
    runs = (run("a", BASE - 0.1), run("b", BASE), run("c", BASE - 0.001))
    (found,) = compare_runs(runs, baseline="a").recommendations
    assert found.system == "b"
    assert found.leaders == ("b", "c")
    assert "b was not compared with c" in " ".join(found.reasons)


def test_what_was_not_tested_is_in_no_sentence_on_what_can_be_told_apart() -> None:
    near = BASE - RNG.normal(0.0001, 0.005, 500)
    runs = (run("a", near), run("b", BASE), run("c", BASE - 0.05))
    (found,) = compare_runs(runs, baseline="a").recommendations
    assert "c" not in found.sentence.split()
    assert "c" not in found.leaders
    noisy = (run("a", NOISY[:40] - 0.02), run("b", BASE[:40]), run("c", NOISY[:40] - 0.5))
    (found,) = compare_runs(noisy, baseline="a").recommendations
    assert "c" not in found.sentence.partition(" lead ")[0].split()
    assert set(found.leaders) == {"a", "b"}


@pytest.mark.slow
def test_a_fast_system_that_a_third_one_is_better_than_is_not_taken_for_its_speed() -> None:
    rng = np.random.default_rng(0)
    best = np.clip(rng.normal(0.5, 0.1, 3000), 0.25, 0.75)
    fast = best - 0.007 + rng.normal(0, 0.003, 3000)
    apart = rng.normal(0, 0.13, 3000)
    runs = (run("fast", fast), run("best", best), run("third", best + apart - apart.mean()))
    times = tuple(faster("fast", other, 10.0, Verdict.WORSE) for other in ("best", "third"))
    pairs = {(d.a, d.b): d for d in compared(*runs).groups[0].deltas}
    assert pairs["fast", "best"].within_margin
    assert pairs["fast", "third"].verdict is Verdict.BETTER
    assert not pairs["fast", "third"].within_margin
    assert answer(*runs, times=times).system != "fast"
