"""Stored times raise a suspicion and nothing more; the duet has the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Verdict
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_duet.result import DuetResult
from retrieval_bench_regress.baseline import LatencyBaseline, protocol_of
from retrieval_bench_regress.latency_gates import LatencyResult, When, incomparable, judge_latency
from tests.builders import some
from tests.builders.baselines import duet_result, latency

LIMITS = {"p50": 0.06, "slowest-fifth": 0.10}
MEDIANS = np.random.default_rng(1).integers(1_000_000, 3_000_000, 60)


class FakeDuet:
    """Counts how often it is played."""

    def __init__(self, result: DuetResult | Exception) -> None:
        self.result = result
        self.played = 0

    def __call__(self) -> DuetResult:
        self.played += 1
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def looked(
    ratio: float | np.ndarray[Any, Any],
    duet: FakeDuet | None,
    when: When = When.SUSPICION,
    limits: dict[str, float] | None = None,
    reason: str = "",
) -> LatencyResult:
    """``MEDIANS`` now ``ratio`` times as long."""
    before, now = stored(MEDIANS), stored(MEDIANS * ratio)
    return judge_latency(before, now, limits or LIMITS, duet=duet, when=when, reason=reason)


def stored(medians: np.ndarray[Any, Any]) -> LatencyBaseline:
    return latency([round(ns) for ns in medians.tolist()])


@pytest.mark.parametrize("ratio", [0.96, 1.0, 1.019])
def test_times_that_look_the_same_pass_without_a_duet(ratio: float) -> None:
    duet = FakeDuet(duet_result(Verdict.WORSE))
    found = looked(ratio, duet)
    assert found.verdict is Verdict.EQUIVALENT
    assert duet.played == 0
    assert found.reason.startswith("no sign of it getting slower: p50 ")
    assert found.gates[0].stored == pytest.approx(ratio, abs=1e-5)


@pytest.mark.parametrize("ratio", [1.0201, 1.1, 3.0])
def test_a_third_of_the_limit_starts_a_duet(ratio: float) -> None:
    duet = FakeDuet(duet_result(Verdict.EQUIVALENT))
    found = looked(ratio, duet)
    assert duet.played == 1
    assert found.verdict is Verdict.EQUIVALENT
    assert found.duet is duet.result
    assert found.gates[0].ratio == 1.0


def test_stored_times_that_are_far_too_slow_clear_nothing_and_a_slow_tail_starts_a_duet() -> None:
    # A baseline of a busy machine would hide a slow-down for good.
    duet = FakeDuet(duet_result(Verdict.WORSE, 1.1))
    assert looked(0.9, duet).verdict is Verdict.WORSE
    assert duet.played == 1
    ratio = np.where(np.sort(MEDIANS)[-12] <= MEDIANS, 1.1, 1.0)
    duet = FakeDuet(duet_result(Verdict.EQUIVALENT))
    found = looked(ratio, duet)
    assert [gate.suspicious for gate in found.gates] == [False, True]
    assert duet.played == 1


@pytest.mark.parametrize(
    ("ratio", "limit", "played"),
    [
        *((1.0, 0.06, 0), (1.029, 0.06, 0), (1.031, 0.06, 1), (2.0, 0.06, 1), (0.9, 0.06, 1)),
        *((1.09, 0.3, 0), (1.11, 0.3, 1), (0.9, 0.3, 0)),
    ],
)
def test_pauses_that_show_in_no_query_start_a_duet(ratio: float, limit: float, played: int) -> None:
    """Every median stays where it was; a duet objects to a mean from 3 % on."""
    before, duet = stored(MEDIANS), FakeDuet(duet_result(Verdict.WORSE))
    now = before.model_copy(update={"mean": ratio * some(before.mean)})
    found = judge_latency(before, now, {"p50": limit}, duet=duet)
    assert duet.played == played
    assert found.verdict is (Verdict.WORSE if played else Verdict.EQUIVALENT)
    assert found.mean is not None
    assert found.as_dict()["mean"]["stored"] == pytest.approx(ratio)
    if played:
        assert found.reason.startswith("against the stored times: mean ")
        never = judge_latency(before, now, {"p50": limit}, duet=None, when=When.NEVER)
        assert never.verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_verdict_is_that_of_the_duet(verdict: Verdict) -> None:
    found = looked(1.5, FakeDuet(duet_result(verdict, 1.07)))
    assert found.verdict is verdict
    assert [gate.verdict for gate in found.gates] == [verdict] * 2
    assert found.gates[0].interval == (1.06, 1.08)


def test_queries_that_fail_now_are_never_a_pass() -> None:
    """Those that are left look as fast as before."""
    before, now = stored(MEDIANS), stored(MEDIANS[:12])
    duet = FakeDuet(duet_result(Verdict.EQUIVALENT))
    for when in (When.SUSPICION, When.NEVER):
        found = judge_latency(before, now, {"p50": 0.06}, duet=duet, when=when)
        assert (found.verdict, found.unanswered) == (Verdict.MISSING, 48)
        assert found.reason == "48 queries with a stored time failed or timed out"
        assert [gate.verdict for gate in found.gates] == [Verdict.MISSING]
    assert duet.played == 0
    more = judge_latency(now, before, {"p50": 0.06}, duet=duet)
    assert (more.verdict, more.unanswered) == (Verdict.EQUIVALENT, 0)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_queries_that_fail_now_leave_a_duet_only_its_failure(verdict: Verdict) -> None:
    duet = FakeDuet(duet_result(verdict, 1.5))
    found = judge_latency(stored(MEDIANS), stored(MEDIANS[:59] * 2), LIMITS, duet=duet)
    expected = Verdict.WORSE if verdict is Verdict.WORSE else Verdict.MISSING
    assert (found.verdict, duet.played) == (expected, 1)
    assert found.reason.endswith("; 1 query with a stored time failed or timed out")


@pytest.mark.parametrize("when", [When.SUSPICION, When.ALWAYS])
def test_a_gate_that_the_duet_does_not_judge_is_no_pass(when: When) -> None:
    whole = duet_result(Verdict.EQUIVALENT)
    lost = replace(whole.gates[0], verdict=Verdict.MISSING, reason="takes 50 queries, here 12")
    for gates in ((whole.gates[0],), (lost, whole.gates[1])):
        found = looked(1.5, FakeDuet(replace(whole, gates=gates)), when)
        assert found.verdict is Verdict.MISSING
        assert "was not judged" in found.reason
        failed = replace(whole, gates=gates, verdict=Verdict.WORSE)
        assert looked(1.5, FakeDuet(failed), when).verdict is Verdict.WORSE


def test_gates_that_take_more_queries_than_there_are_are_told_and_not_judged() -> None:
    limits = {**LIMITS, "p95": 0.1}
    duet = FakeDuet(duet_result(Verdict.EQUIVALENT))
    found = looked(1.0, duet, When.ALWAYS, limits)
    assert found.verdict is Verdict.EQUIVALENT
    assert found.gates[2].verdict is Verdict.MISSING
    found = looked(1.0, None, limits={"p50": 0.05, "p95": 0.10})
    assert [gate.gate for gate in found.gates] == ["p50"]
    assert found.unsupported == ("p95: 60 queries, it takes 200",)
    only = looked(1.0, None, limits={"p95": 0.10})
    assert only.verdict is Verdict.MISSING
    assert [gate.verdict for gate in only.gates] == [Verdict.MISSING]


def test_a_duet_that_was_interrupted_had_no_gate_or_cannot_be_made_never_passes() -> None:
    duet = FakeDuet(duet_result(Verdict.EQUIVALENT, interrupted=True))
    assert looked(1.5, duet).verdict is Verdict.MISSING
    failed = FakeDuet(duet_result(Verdict.WORSE, interrupted=True))
    assert looked(1.5, failed).verdict is Verdict.WORSE
    found = looked(1.5, FakeDuet(duet_result(Verdict.MISSING, gates=(), reason="all lost")))
    assert [gate.verdict for gate in found.gates] == [Verdict.MISSING] * 2
    assert found.verdict is Verdict.MISSING
    assert "all lost" in found.reason
    duet = FakeDuet(ConfigError("no commit 3f2a1c9", fix="fetch it"))
    found = looked(1.5, duet)
    assert (found.verdict, found.broken) == (Verdict.MISSING, True)
    assert "the duet cannot be made: no commit 3f2a1c9" in found.reason


def test_never_leaves_a_suspicion_open_and_passes_without_one() -> None:
    duet = FakeDuet(duet_result(Verdict.EQUIVALENT))
    found = looked(1.5, duet, When.NEVER)
    assert found.verdict is Verdict.UNDECIDED
    assert "only a duet can tell, and none was to be made" in found.reason
    assert looked(1.0, duet, When.NEVER).verdict is Verdict.EQUIVALENT
    assert duet.played == 0


def test_always_asks_the_duet_also_without_stored_times() -> None:
    for before in (stored(MEDIANS), None):
        duet = FakeDuet(duet_result(Verdict.WORSE, 1.2))
        found = judge_latency(before, None, LIMITS, duet=duet, when=When.ALWAYS)
        assert (found.verdict, duet.played) == (Verdict.WORSE, 1)


def test_no_revision_no_verdict() -> None:
    found = looked(1.5, None, reason="the baseline names no revision")
    assert found.verdict is Verdict.MISSING
    assert found.reason.endswith("only a duet can tell: the baseline names no revision")
    assert looked(1.0, None).verdict is Verdict.EQUIVALENT  # none was needed
    always = judge_latency(None, None, LIMITS, duet=None, when=When.ALWAYS, reason="none")
    assert (always.verdict, always.reason) == (Verdict.MISSING, "none")


def test_nothing_stored_or_nothing_answered_is_nothing_measured() -> None:
    duet = FakeDuet(duet_result(Verdict.EQUIVALENT))
    for before, now in ((None, stored(MEDIANS)), (stored(MEDIANS), None), (None, None)):
        found = judge_latency(before, now, LIMITS, duet=duet)
        assert found.verdict is Verdict.MISSING
        assert found.reason == "no call was answered"
    assert duet.played == 0


def test_the_document_has_all_of_it() -> None:
    document = looked(1.5, FakeDuet(duet_result(Verdict.WORSE, 1.4))).as_dict()
    assert document["verdict"] == "FAIL"
    assert document["gates"][0]["starts_at"] == pytest.approx(0.02)
    assert document["gates"][0]["stored"] == pytest.approx(1.5, abs=1e-5)
    assert document["gates"][0]["interval"] == [1.39, pytest.approx(1.41)]
    assert document["duet"]["verdict"] == "FAIL"


def test_times_of_something_else_or_by_other_rules_are_not_compared() -> None:
    before = stored(MEDIANS)
    data: dict[str, Any] = {"split": "test", "fingerprint": "f" * 32, "k": 10}
    assert incomparable(before, **data) == ""
    assert incomparable(before, **{**data, "k": 5}) == "the baseline has k 10, now it is 5"
    for name in ("split", "fingerprint"):
        assert f"another dataset {name}" in incomparable(before, **{**data, name: "other"})
    protocol = {**stored(MEDIANS).protocol, "warm_up_calls": 60}
    why = incomparable(latency([1], protocol=protocol), split="test", fingerprint="f" * 32, k=10)
    assert "another protocol: warm up calls 60, now 50" in why


def test_the_protocol_of_a_baseline_is_used_again() -> None:
    protocol = Protocol(profile="baseline", min_calls=123, threads=3, levels=(50.0, 99.9))
    assert protocol_of(latency([1], protocol=protocol.as_dict())) == protocol
    with pytest.raises(ConfigError):
        protocol_of(latency([1], protocol={"levels": [50.0], "colour": "red"}))
