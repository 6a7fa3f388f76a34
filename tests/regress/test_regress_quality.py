"""Quality against a baseline: what passes at once, what is shown, and what stays open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import parse_metric
from retrieval_bench_regress.baseline import FAILED, QualityBaseline
from retrieval_bench_regress.policy import Rise
from retrieval_bench_regress.quality_gates import (
    QualityGate,
    incomparable,
    judge_quality,
    not_measured,
)
from tests.builders import some
from tests.builders.baselines import DATASET, quality

NDCG, RR = parse_metric("nDCG@10"), parse_metric("RR@10")
LIMIT = {NDCG: 0.01}
PASSES = {Verdict.BETTER, Verdict.EQUIVALENT}
N = 400
START = np.full(N, 0.5)


def judged(
    now: Sequence[float] | np.ndarray[Any, Any],
    before: Sequence[float] | np.ndarray[Any, Any] = START,
    rise: Rise = Rise.PASS,
) -> QualityGate:
    """The gate for values that all belong to other rankings."""
    old = quality({"nDCG@10": list(before)}, ["old"] * len(before))
    new = quality({"nDCG@10": list(now)}, ["new"] * len(now))
    (gate,) = judge_quality(old, new, LIMIT, rise=rise).gates
    return gate


def shifted(n: int, by: float) -> np.ndarray[Any, Any]:
    """``START`` with ``by`` added to the first ``n`` values."""
    values = START.copy()
    values[:n] += by
    return values


def test_rankings_that_are_identical_or_fall_nowhere_pass_at_once() -> None:
    same = quality({"nDCG@10": [0.0, 1.0], "RR@10": [1.0, 0.5]})
    found = judge_quality(same, same, {NDCG: 0.01, RR: 0.001})
    assert [gate.verdict for gate in found.gates] == [Verdict.EQUIVALENT] * 2
    assert found.changed == ()
    assert [gate.p for gate in found.gates] == [None, None]  # nothing was tested
    gate = judged(shifted(1, 0.1))
    assert gate.verdict is Verdict.BETTER
    assert gate.reason == "rose on 1 query, fell on none"
    assert judged(START - 1e-15).verdict is Verdict.EQUIVALENT


@pytest.mark.slow
def test_a_change_that_moves_no_value_passes() -> None:
    gate = judged(START)
    assert (gate.verdict, gate.reason) == (Verdict.EQUIVALENT, "no value changed")


@pytest.mark.parametrize("lost", [[float("nan")], [float("nan")] * N])
def test_a_value_that_is_no_number_passes_nothing(lost: list[float]) -> None:
    gate = judged([*START[len(lost) :], *lost])
    assert (gate.verdict, gate.reason) == (Verdict.MISSING, "a value is no number")


def test_a_drop_beyond_the_limit_fails_where_it_is_shown_and_on_few_queries_may_be_chance() -> None:
    gate = judged(shifted(40, -0.2))
    assert gate.verdict is Verdict.WORSE
    assert gate.difference == pytest.approx(-0.02)
    assert (gate.p or 1) < 0.001
    assert (gate.higher, gate.lower) == (0, 40)
    gate = judged([0.5] * 5 + [0.3], [0.5] * 6)
    assert gate.verdict is Verdict.UNDECIDED
    assert "that may be chance" in gate.reason


def test_so_few_queries_decide_nothing_whatever_they_say() -> None:
    gate = judged([0.1] * 5, [0.9] * 5)
    assert gate.verdict is Verdict.UNRESOLVABLE
    assert gate.reason == "5 queries can't show any drop, whatever they say; 6 could"
    assert judged([0.1] * 6, [0.9] * 6).verdict is Verdict.WORSE
    assert judged([0.5] * 5, [0.5] * 5).verdict is not Verdict.UNRESOLVABLE


@pytest.mark.parametrize(
    ("clusters", "verdict"), [(5, "UNRESOLVABLE"), (6, "WORSE"), (60, "WORSE")]
)
def test_clusters_are_the_unit_of_a_gate(clusters: int, verdict: str) -> None:
    of = {f"q{at:04d}": f"={at % clusters}" for at in range(60)}
    old = quality({"nDCG@10": [0.9] * 60}, ["old"] * 60)
    new = quality({"nDCG@10": [0.1] * 60}, ["new"] * 60, clusters=of)
    (gate,) = judge_quality(old, new, LIMIT).gates
    assert gate.verdict is Verdict[verdict]
    if clusters == 5:
        assert gate.reason == "5 clusters can't show any drop, whatever they say; 6 could"


def test_a_limit_is_ruled_out_by_clusters_and_not_by_their_queries() -> None:
    """400 queries that tie rule out a drop of .01; as 100 clusters they do not."""
    same = [0.5] * 399 + [0.49]
    for clusters, verdict in ((400, Verdict.EQUIVALENT), (100, Verdict.UNDECIDED)):
        of = {f"q{at:04d}": f"={at % clusters}" for at in range(400)}
        new = quality({"nDCG@10": same}, ["new"] * 400, clusters=of)
        (gate,) = judge_quality(quality({"nDCG@10": [0.5] * 400}), new, LIMIT).gates
        assert gate.verdict is verdict


def test_a_drop_beyond_the_limit_hidden_in_noise_is_undecided() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.3, N)
    gate = judged(START + noise - noise.mean() - 0.012)
    assert gate.verdict is Verdict.UNDECIDED
    assert gate.queries_needed is not None


@pytest.mark.slow
def test_a_shown_drop_within_the_limit_does_not_fail() -> None:
    """That is what a limit is for; whether it passes depends on what else is ruled out."""
    gate = judged(shifted(60, -0.02))
    assert (gate.p or 1) < 0.001
    assert gate.difference == pytest.approx(-0.003)
    assert gate.verdict is Verdict.UNDECIDED
    assert gate.reason.startswith("shown to be worse")
    many = 2_000
    old, new = np.full(many, 0.5), np.full(many, 0.5)
    new[:200] -= 0.02
    assert judged(new, old).verdict is Verdict.EQUIVALENT


def test_a_drop_as_large_as_the_limit_is_ruled_out_by_enough_queries() -> None:
    values = shifted(2, -0.1)
    gate = judged(values)  # 400 queries, nearly all tie: p is about .018
    assert gate.verdict is Verdict.EQUIVALENT
    assert "ruled out" in gate.reason
    few = judged(values[:140], START[:140])  # as many as the bundled collection has
    assert few.verdict is Verdict.UNDECIDED
    assert few.reason == "within the limit on these queries, but a larger drop can't be ruled out"


def test_a_shown_rise_passes_though_some_queries_fell() -> None:
    values = shifted(60, 0.1)
    values[-3:] -= 0.05
    gate = judged(values)
    assert (gate.verdict, gate.reason) == (Verdict.BETTER, "shown to be better")


def mixed(rose: float, n: int = 40) -> np.ndarray[Any, Any]:
    """``n`` values of which every second one rose by ``rose``, and all others fell by .1."""
    return np.where(np.arange(n) % 2, 0.5 + rose, 0.4)


def test_a_rise_that_may_be_chance_passes_with_its_lower_end_unless_the_policy_says_else() -> None:
    gate = judged(mixed(0.15), START[:40])
    low, high = some(gate.ci)
    assert low < 0 < high
    assert gate.verdict is Verdict.EQUIVALENT
    assert gate.queries_needed is None
    assert gate.reason == (
        "rose on these queries, which passes (`rise` in the policy); on all such queries the "
        f"change may be as low as {low:+.4f}, the lower end of its interval"
    )
    gate = judged(mixed(0.15), START[:40], Rise.UNDECIDED)
    assert gate.verdict is Verdict.UNDECIDED
    assert gate.reason == "within the limit on these queries, but a larger drop can't be ruled out"


def test_one_question_won_of_twelve_is_no_improvement_where_rises_must_be_shown() -> None:
    won = [0.5] * 11 + [1.0]
    assert judged(won, [0.5] * 12).verdict is Verdict.BETTER  # it fell on none
    gate = judged(won, [0.5] * 12, Rise.SHOWN)
    assert gate.verdict is Verdict.UNDECIDED
    assert gate.reason == (
        "rose on these queries, and is not shown to be better (`rise` in the policy)"
    )
    values = shifted(60, 0.1)
    assert judged(values, rise=Rise.SHOWN).verdict is Verdict.BETTER
    gate = judged([0.5] * 12, [0.5] * 12, Rise.SHOWN)
    assert gate.verdict is Verdict.UNDECIDED
    assert gate.reason == "no value changed: not shown to be better (`rise` in the policy)"
    same = quality({"nDCG@10": [0.5] * 12}, ["same"] * 12)
    (gate,) = judge_quality(same, same, LIMIT, Rise.SHOWN).gates
    assert gate.verdict is Verdict.UNDECIDED
    assert gate.reason == "same rankings: not shown to be better (`rise` in the policy)"
    assert judged([0.1] * 60, [0.9] * 60, Rise.SHOWN).verdict is Verdict.WORSE


@pytest.mark.parametrize("rose", [0.1, 0.09])
def test_no_rise_and_a_fall_stay_undecided(rose: float) -> None:
    assert judged(mixed(rose), START[:40]).verdict is Verdict.UNDECIDED


def test_a_rise_on_so_few_queries_passes_too() -> None:
    assert judged(mixed(0.2, 5), [0.5] * 5, Rise.UNDECIDED).verdict is Verdict.UNRESOLVABLE
    assert judged([0.7, 0.7, 0.7, 0.4], [0.5] * 4).verdict is Verdict.EQUIVALENT


def test_a_rise_that_rests_on_failures_of_the_baseline_does_not_pass() -> None:
    old, new = [0.0] * 3 + [0.5] * 40, [1.0] * 3 + mixed(0.05).tolist()
    then = [FAILED] * 3 + ["then"] * 40
    found = judge_quality(
        quality({"nDCG@10": old}, then), quality({"nDCG@10": new}, ["now"] * 43), LIMIT
    )
    assert found.gates[0].verdict is Verdict.MISSING
    assert found.gates[0].reason == "it rests on queries that failed in the baseline"


@pytest.mark.slow
def test_holm_looks_at_the_metrics_of_the_policy() -> None:
    """A p of .03 alone shows a drop; beside another metric that shows nothing it does not."""
    before = np.full(N, 0.5)
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, N)
    drop = before + noise - noise.mean() - 0.011
    old = quality({"nDCG@10": list(before), "RR@10": list(before)}, ["old"] * N)
    new = quality({"nDCG@10": list(drop), "RR@10": list(before + rng.normal(0, 0.1, N))}, ["x"] * N)
    (alone,) = judge_quality(old, new, LIMIT).gates
    first, _ = judge_quality(old, new, {NDCG: 0.01, RR: 0.01}).gates
    assert 0.025 < (alone.p or 0) < 0.05
    assert first.p == pytest.approx(2 * (alone.p or 0))
    assert (alone.verdict, first.verdict) == (Verdict.WORSE, Verdict.UNDECIDED)


def test_changed_queries_are_listed_largest_drop_first() -> None:
    old = quality({"nDCG@10": [1.0, 1.0, 1.0, 0.0], "RR@10": [1.0, 1.0, 1.0, 0.0]})
    new = quality(
        {"nDCG@10": [0.5, 1.0, 0.2, 0.4], "RR@10": [0.5, 1.0, 0.3, 1.0]}, ["a", "same", "b", "c"]
    )
    found = judge_quality(old, new, LIMIT)
    assert [query.query_id for query in found.changed] == ["q0002", "q0000", "q0003"]
    assert found.changed[0].values == {"RR@10": (1.0, 0.3), "nDCG@10": (1.0, 0.2)}
    assert found.as_dict()["changed"][2] == {
        "query_id": "q0003",
        "values": {"RR@10": [0.0, 1.0], "nDCG@10": [0.0, 0.4]},
        "failed": False,
    }


def test_a_query_without_an_answer_is_told_and_in_no_mean_and_one_that_fails_is_a_change() -> None:
    old, new = quality({"nDCG@10": [1.0, 1.0]}), quality({"nDCG@10": [1.0, 1.0]})
    for one, answer in ((old, "some"), (new, "other")):
        one.queries["none"] = [answer]
    found = judge_quality(old, new, LIMIT)
    assert found.gates[0].reason == "no value changed"
    assert [(query.query_id, dict(query.values)) for query in found.changed] == [("none", {})]
    old = quality({"nDCG@10": [0.0, 1.0]})
    found = judge_quality(old, quality({"nDCG@10": [0.0, 1.0]}, [FAILED, "same"]), LIMIT)
    assert [query.failed for query in found.changed] == [True]


@pytest.mark.parametrize("values", [[0.0, 1.0, 0.5], [0.0, 1.0, 0.6], [0.0, 1.0, 0.4]])
def test_a_query_that_fails_now_is_no_pass(values: list[float]) -> None:
    """Not even where its value was 0 before, so that no metric fell."""
    old = quality({"nDCG@10": [0.0, 1.0, 0.5], "RR@10": [0.0, 1.0, 0.5]})
    new = quality({"nDCG@10": values, "RR@10": [0.0, 1.0, 0.5]}, [FAILED, "same", "new"])
    found = judge_quality(old, new, {NDCG: 0.01, RR: 0.01})
    assert [gate.verdict for gate in found.gates] == [Verdict.MISSING] * 2
    assert {gate.reason for gate in found.gates} == {"1 query that had an answer failed"}
    assert found.unanswered == 1


@pytest.mark.parametrize(("failed", "verdict"), [(6, Verdict.EQUIVALENT), (7, Verdict.MISSING)])
def test_queries_that_always_fail_pass_up_to_a_tenth(failed: int, verdict: Verdict) -> None:
    """Where the same ones fail, all rankings are identical."""
    answers = [FAILED] * failed + ["same"] * (60 - failed)
    kept = quality({"nDCG@10": [0.0] * failed + [1.0] * (60 - failed)}, answers)
    all_answered = quality({"nDCG@10": [1.0] * 60})
    for before, now, n in ((kept, kept, failed), (kept, all_answered, 0)):
        found = judge_quality(before, now, LIMIT)
        passed = Verdict.EQUIVALENT if before is now else Verdict.BETTER
        assert found.gates[0].verdict is (passed if verdict in PASSES else verdict)
        assert (found.failed, found.unanswered) == (n, 0)
        assert (f"{failed} of 60 judged queries failed" in found.failing) is (failed > 6)


def test_failed_queries_make_no_drop_and_hide_none_of_the_others() -> None:
    old, new = [1.0] * 20 + [0.0] * 5, [0.0] * 20 + [0.0] * 5
    found = judge_quality(
        quality({"nDCG@10": old}), quality({"nDCG@10": new}, [FAILED] * 20 + ["same"] * 5), LIMIT
    )
    assert (found.gates[0].verdict, found.unanswered) == (Verdict.MISSING, 20)
    assert found.gates[0].reason == "20 queries that had an answer failed"
    old, new = [1.0] * 40, [0.0] * 40
    found = judge_quality(
        quality({"nDCG@10": old}), quality({"nDCG@10": new}, [FAILED] * 3 + ["other"] * 37), LIMIT
    )
    assert (found.gates[0].verdict, found.unanswered) == (Verdict.WORSE, 3)


@pytest.mark.slow
def test_failures_of_the_baseline_hide_no_drop() -> None:
    rng = np.random.default_rng(5)
    old = rng.uniform(0.3, 1.0, 1000)
    failed = range(80)
    then = [FAILED if i in failed else f"then {i}" for i in range(1000)]
    counted = [0.0 if i in failed else value for i, value in enumerate(old.tolist())]
    found = judge_quality(
        quality({"nDCG@10": counted}, then),
        quality({"nDCG@10": (old - 0.04).tolist()}, [f"now {i}" for i in range(1000)]),
        dict.fromkeys(LIMIT, 0.03),
    )
    assert found.gates[0].verdict is Verdict.WORSE
    assert "answered both times" in found.gates[0].reason


def test_nothing_answered_is_nothing_measured() -> None:
    old = quality({"nDCG@10": [1.0] * 20})
    found = judge_quality(old, quality({"nDCG@10": [0.0] * 20}, [FAILED] * 20), LIMIT)
    assert found.gates[0].verdict is Verdict.MISSING
    assert found.reason == "no evaluated query was answered"
    again = quality({"nDCG@10": [0.0] * 20}, [FAILED] * 20)
    assert judge_quality(again, again, LIMIT).failing == "20 of 20 judged queries failed"


def test_other_queries_and_missing_metrics_are_not_compared_and_what_is_there_is() -> None:
    found = judge_quality(quality({"nDCG@10": [1.0] * 3}), quality({"nDCG@10": [1.0] * 2}), LIMIT)
    assert found.gates[0].verdict is Verdict.NOT_COMPARABLE
    same = quality({"nDCG@10": [1.0, 0.0]})
    found = judge_quality(same, same, {RR: 0.01, NDCG: 0.01})
    assert [gate.verdict for gate in found.gates] == [Verdict.MISSING, Verdict.EQUIVALENT]
    assert found.gates[0].reason == "the baseline does not have RR@10"


def asked(before: QualityBaseline, **changed: Any) -> str:
    today: dict[str, Any] = {"split": "test", "fingerprint": "f" * 32, "k": 10}
    rules = {"convention": "trec", "metrics_version": 1}
    for name, value in changed.items():
        (rules if name in rules else today)[name] = value
    return incomparable(before, **today, rules=rules)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"split": "dev"}, "another dataset split: test, now dev"),
        ({"fingerprint": "0" * 32}, "another dataset fingerprint: its content has changed"),
        ({"k": 100}, "the baseline has k 10, now it is 100"),
        ({"convention": "blog"}, "the baseline has convention trec, now it is blog"),
        ({"metrics_version": 2}, "the baseline has metrics version 1, now it is 2"),
        ({}, ""),
    ],
)
def test_what_cannot_be_compared_says_why(changed: dict[str, Any], told: str) -> None:
    why = asked(quality({"nDCG@10": [1.0]}, dataset=DATASET), **changed)
    assert told in why
    assert bool(why) == bool(told)


def test_not_measured_has_every_gate() -> None:
    found = not_measured({NDCG: 0.01, RR: 0.02}, "no baseline")
    assert [(g.metric, g.verdict, g.limit) for g in found.gates] == [
        ("nDCG@10", Verdict.MISSING, 0.01),
        ("RR@10", Verdict.MISSING, 0.02),
    ]
