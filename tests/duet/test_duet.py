"""The controller of a duet, and a launch, on processes that answer from a script."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render import markdown
from retrieval_bench.runs.records import to_json
from retrieval_bench_duet import controller, selftest
from retrieval_bench_duet import launch as launched
from retrieval_bench_duet.controller import DuetProtocol, duet
from retrieval_bench_duet.launch import MOST_CALLS, TURN_NS, Measured, Share, leads, measure
from retrieval_bench_duet.result import DuetResult, read_duet, write_duet
from retrieval_bench_duet.selftest import Kind, Played, extra_work
from retrieval_bench_duet.sides import Place, Side
from retrieval_bench_duet.tables.duet import duet_tables
from tests.builders.fake_sides import FakeSides, Slower

A, B = Side("a", Place("", Path())), Side("b", Place("", Path()))
QUICK = DuetProtocol(seconds=1e-9, warm_up_s=1e-9)
ONE_ROUND = Share(seconds=1e-9, warm_up_s=1e-9)


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> FakeSides:
    fake = FakeSides()
    monkeypatch.setattr(controller, "SideProcess", fake)
    return fake


def constant(value: float) -> Slower:
    return lambda launch, query: value


WRONG_CODE = "retrieval_bench_duet.revisions.revisions.wrong_code"


def play(protocol: DuetProtocol = QUICK, **more: Any) -> Any:
    return duet(A, B, "made", protocol=protocol, **more)


@pytest.mark.slow
def test_equal_sides_pass(sides: FakeSides) -> None:
    result = play()
    assert result.word == "PASS"
    assert result.launches == 5
    assert result.other_rankings == 0
    assert sides.open == 0


@pytest.mark.slow
def test_a_slower_side_fails_and_is_confirmed(sides: FakeSides) -> None:
    sides.slower["b"] = constant(1.05)
    result = play()
    assert result.word == "FAIL"
    p50 = result.gates[0]
    assert p50.confirmed
    assert p50.ratio == pytest.approx(1.05, abs=0.02)
    assert result.median_ns[1] > result.median_ns[0]


@pytest.mark.slow
@pytest.mark.usefixtures("four_cores")
def test_a_slower_fifth_fails_by_its_own_gate(sides: FakeSides) -> None:
    sides.slower["b"] = lambda launch, query: 1.10 if query >= 48 else 1.0
    result = play()
    verdicts = {gate.gate: gate.verdict for gate in result.gates}
    assert verdicts["slowest-fifth"] is Verdict.WORSE
    assert verdicts["p50"] is Verdict.EQUIVALENT


def test_a_gate_with_too_few_queries_is_not_judged_and_says_so(sides: FakeSides) -> None:
    gates = {gate.gate: gate for gate in play().gates}
    assert gates["p95"].verdict is Verdict.MISSING
    assert gates["p95"].reason == "takes 200 queries, here 60"
    sides.n_queries = 9
    nothing = play()
    assert nothing.word == "NOT MEASURED"
    assert "too few queries" in nothing.reason


def test_every_query_goes_first_on_either_side_equally_often(sides: FakeSides) -> None:
    play()
    for launch in range(5):
        opened = [name for name, seed in sides.opened if seed == launch + 1]
        assert sorted(opened) == ["a", "b"]
    first = {"a": 0, "b": 0}
    for (one, asked), (other, same) in zip(sides.calls[::2], sides.calls[1::2], strict=True):
        assert asked == same
        assert {one, other} == {"a", "b"}
        first[one] += len(asked)
    assert sides.opened[0][0] != sides.opened[2][0]  # whoever is started first changes, too


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "cpus_of_one_node", lambda root: frozenset({0, 1, 4, 5}))


@pytest.mark.usefixtures("four_cores")
def test_both_sides_search_on_one_core_which_is_another_in_the_next_launch(
    sides: FakeSides,
) -> None:
    result = play()
    assert sides.cores == [(name, core) for core in (0, 1, 4, 5, 0) for name in ("a", "b")]
    assert [one.core for one in result.launched] == [0, 1, 4, 5, 0]
    assert result.one_core == result.as_dict()["one_core"] == 5
    assert "Both sides searched on the same core" in markdown.render(duet_tables(result))


@pytest.mark.slow
@pytest.mark.usefixtures("four_cores")
def test_a_search_of_several_threads_is_kept_to_no_core(sides: FakeSides) -> None:
    sides.threaded = {"b"}
    result = play()
    assert (result.word, result.one_core, sides.cores) == ("PASS", 0, [])
    assert "same core" not in markdown.render(duet_tables(result))


@pytest.mark.usefixtures("four_cores")
def test_where_one_side_cannot_be_kept_to_a_core_neither_is(sides: FakeSides) -> None:
    sides.unkept = {"b"}
    result = play()
    assert result.one_core == 0
    assert sides.cores[:4] == [("a", 0), ("b", 0), ("a", None), ("b", None)]


@pytest.mark.parametrize("cores", [frozenset(), frozenset({3})])
def test_without_a_choice_of_cores_nothing_is_kept(
    sides: FakeSides, monkeypatch: pytest.MonkeyPatch, cores: frozenset[int]
) -> None:
    monkeypatch.setattr(controller, "cpus_of_one_node", lambda root: cores)
    assert play().one_core == 0
    assert sides.cores == []


def measured(fake: FakeSides, share: Share = ONE_ROUND) -> Measured:
    processes: Any = [fake(side, {}, hash_seed=1, call_s=1) for side in (A, B)]
    return measure(processes, fake.n_queries, share, np.random.default_rng(0))


def test_a_launch_is_balanced_in_each_round_and_exactly_in_each_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(looks)))
    monkeypatch.setattr(launched, "time", clock)
    found = measured(FakeSides(n_queries=31), Share(seconds=9.0, warm_up_s=0.5))
    rounds = int(found.round.max()) + 1
    assert rounds % 2 == 0
    for pair in range(0, rounds, 2):
        own = (found.round == pair) | (found.round == pair + 1)
        firsts = np.bincount(found.query[own], weights=found.first[own])
        assert (firsts == 1).all()
        assert (np.bincount(found.query[own]) == 2).all()
        assert abs(np.count_nonzero(found.first[found.round == pair]) - 31 / 2) < 1
    orders = [tuple(found.query[found.round == one].tolist()) for one in range(rounds)]
    assert len(set(orders)) == rounds


def test_short_calls_share_a_turn_and_long_ones_have_their_own() -> None:
    for scale, per_turn in ((1.0, 1), (0.01, 9), (1e-6, MOST_CALLS)):
        fake = FakeSides(n_queries=50)
        fake.slower = {"a": constant(scale), "b": constant(scale)}
        measured(fake)
        longest = max(len(asked) for _, asked in fake.calls[-20:])
        assert longest == pytest.approx(min(per_turn, 25), abs=2)


def test_long_calls_are_alone_in_their_turn_from_the_first_one_on() -> None:
    fake = FakeSides(n_queries=50)
    measured(fake)
    assert {len(asked) for _, asked in fake.calls} == {1}


def test_one_round_is_made_in_any_case_and_the_next_launch_turns_it_around() -> None:
    firsts = []
    for launch in (0, 1):
        share = replace(ONE_ROUND, lead=leads(30, launch, 7))
        found = measured(FakeSides(n_queries=30), share)
        assert found.round.max() == 0
        firsts.append(dict(zip(found.query.tolist(), found.first.tolist(), strict=True)))
    assert all(firsts[0][query] != firsts[1][query] for query in range(30))


def test_who_goes_first_does_not_go_by_the_place_of_a_query() -> None:
    halves = [leads(200, launch, 7) for launch in range(40)]
    for launch in range(0, 40, 2):
        assert halves[launch].sum() == 100
        assert (halves[launch] + halves[launch + 1] == 1).all()
    even = [int(one[::2].sum()) for one in halves[::2]]
    assert len(set(even)) > 5
    assert all(40 < n < 65 for n in even)  # of 50; by place it would be 0 or 100


@pytest.mark.slow
def test_a_lost_launch_leaves_no_half_alone(sides: FakeSides) -> None:
    sides.lost["b"] = {1}
    result = play()
    first = [
        dict(zip(one.query.tolist(), one.first.tolist(), strict=True)) for one in result.launched
    ]
    for one, other in ((0, 1), (2, 3)):
        assert all(first[one][query] != first[other][query] for query in range(60))


def test_long_calls_among_short_ones_have_their_own_turn() -> None:
    fake = FakeSides(n_queries=50)
    fake.slower = {name: lambda _, query: 1.0 if query % 5 == 0 else 1e-3 for name in "ab"}
    found = measured(fake)
    assert found.wall_ns[:, found.query % 5 == 0].min() > TURN_NS
    shared = [asked for _, asked in fake.calls if len(asked) > 1]
    assert max(map(len, shared)) > 8
    assert not any(query % 5 == 0 for asked in shared for query in asked)


def test_the_order_effect_is_taken_out_of_the_pairs() -> None:
    rng = np.random.default_rng(3)
    query, n = np.arange(100, dtype=np.int32), 100
    first = (query % 2).astype(np.int8)
    usual = np.exp(0.1 * rng.standard_normal((2, n))) * 2e6
    usual[1] *= 1.03
    usual[first, query] *= 1.2  # whoever goes first is slower by 20 %
    found = Measured(usual.astype(np.int64), query, np.zeros(n, np.int32), first, 1.0)
    ratio = found.pairs(0).log_ratio
    assert ratio[first == 0].mean() == pytest.approx(ratio[first == 1].mean(), abs=0.05)
    assert ratio.mean() == pytest.approx(np.log(1.03), abs=0.03)


def test_the_warm_up_makes_a_whole_pass_over_both_sides_before_anything_counts() -> None:
    fake = FakeSides(n_queries=80)
    found = measured(fake)
    made = sum(len(asked) for _, asked in fake.calls)
    assert made >= 2 * (80 + found.wall_ns.shape[1])


@pytest.mark.slow
def test_queries_are_chosen_once_and_told(sides: FakeSides) -> None:
    sides.n_queries = 500
    result = play(replace(QUICK, queries=100))
    asked = {query for _, queries in sides.calls for query in queries}
    assert len(asked) == 100
    assert "100 of 500 queries were asked, chosen by seed" in result.warnings


@pytest.mark.slow
def test_a_lost_launch_is_told_and_replaced(sides: FakeSides) -> None:
    sides.lost["b"] = {1}
    sides.lost["a"] = {3}
    result = play()
    assert result.word == "PASS"
    assert result.launches == 5
    assert len(result.lost) == 2
    assert "launch 2: b: it ended (killed by SIGKILL)" in result.lost[0]
    assert sides.open == 0


@pytest.mark.slow
def test_a_side_that_alone_was_lost_does_not_pass_and_may_fail(sides: FakeSides) -> None:
    for name in "ab":
        sides.lost = {name: {1, 3}}
        result = play()
        assert result.word == "NOT MEASURED"
        assert result.reason == f"side {name} was lost in 2 launches, the other one in none"
        assert {gate.verdict for gate in result.gates[::2]} == {Verdict.EQUIVALENT}
    sides.slower["b"] = constant(1.2)
    assert play().word == "FAIL"


@pytest.mark.slow
def test_launches_that_are_lost_again_and_again_are_no_pass(sides: FakeSides) -> None:
    sides.lost["b"] = set(range(100))
    result = play()
    assert result.word == "NOT MEASURED"
    assert "4 launches were lost" in result.reason
    sides.lost["a"] = sides.lost["b"] = set(range(1, 100, 2))
    assert play().word == "NOT MEASURED"


def test_a_side_that_cannot_be_built_is_named(sides: FakeSides) -> None:
    sides.broken["b"] = "no module named 'gone'"
    with pytest.raises(ConfigError, match="side b cannot be built: no module named 'gone'"):
        play()
    assert sides.open == 0


@pytest.mark.slow
def test_a_side_that_cannot_be_built_any_more_loses_its_launch_only(sides: FakeSides) -> None:
    sides.broken_at = {("b", 2): "no space left on device"}
    result = play()
    assert (result.verdict, result.launches) == (Verdict.MISSING, 5)
    assert "launch 3: b: it cannot be built any more: no space left on device" in result.lost[0]
    assert "side b was lost in 1 launch, the other one in none" in result.reason
    assert sides.open == 0


@pytest.mark.slow
def test_queries_that_are_answered_now_and_then_do_not_stand_for_all(sides: FakeSides) -> None:
    sides.n_queries = 100
    for launch in range(4):  # 80 are answered in each launch, 20 in all
        sides.failing_at["b", launch] = set(range(20 * launch, 20 * launch + 20))
    result = play()
    assert result.word == "NOT MEASURED"
    assert "calls fail that did not fail before" in result.reason
    assert result.launches == 3


@pytest.mark.slow
def test_a_few_other_failures_in_every_launch_void_nothing(sides: FakeSides) -> None:
    sides.n_queries = 220
    for launch in range(24):
        sides.failing_at["a", launch] = sides.failing_at["b", launch] = {7 * launch, 7 * launch + 1}
    assert play().word == "PASS"
    sides.slower["b"] = constant(1.2)
    result = play()
    assert result.word == "FAIL"
    assert result.failed == 2 * result.launches > 0


@pytest.mark.slow
def test_a_side_with_more_pauses_does_not_pass_though_no_gate_sees_them(sides: FakeSides) -> None:
    def stalling(launch: int, query: int) -> float:
        return 3.0 if (7 * launch + query) % 12 == 0 else 1.0

    sides.slower["b"] = stalling
    result = play()
    assert {gate.verdict for gate in result.gates if gate.launches} == {Verdict.EQUIVALENT}
    assert result.word == "NOT MEASURED"
    assert result.stalled == (0, 25)
    told = "the mean call of side b takes 17% longer"
    assert result.reason.startswith(told)
    assert not any(text.startswith(told) for text in result.warnings)  # said once
    sides.slower["b"] = lambda launch, query: 1.2 * stalling(launch, query)
    result = play()
    assert result.word == "FAIL"
    assert "the mean call" not in f"{result.reason} {result.warnings}"  # the gates say it
    sides.slower["a"] = sides.slower["b"] = stalling
    result = play()
    assert (result.word, result.stalled) == ("PASS", (25, 25))
    assert not any("the mean call" in text for text in result.warnings)


@pytest.mark.slow
def test_stalls_of_one_launch_or_a_slow_launch_are_the_machine(sides: FakeSides) -> None:
    sides.slower["b"] = lambda launch, query: 3.0 if launch == 2 and query % 12 == 0 else 1.0
    result = play()
    assert (result.word, result.stalled) == ("PASS", (0, 5))
    sides.slower["b"] = lambda launch, query: 1.5 if launch == 2 else 1.0
    result = play()
    assert result.word == "INCONCLUSIVE"
    assert not any("the mean call" in text for text in result.warnings)


@pytest.mark.parametrize("what", ["fingerprint", "queries"])
def test_two_datasets_are_not_comparable(sides: FakeSides, what: str) -> None:
    sides.facts["b"] = {what: ["other"]}
    result = play()
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert result.word == "NOT MEASURED"
    assert what in result.reason


def test_the_wrong_code_is_never_a_pass(sides: FakeSides, monkeypatch: pytest.MonkeyPatch) -> None:
    def why(given: object, facts: Any) -> str:
        return f"{facts[0]['name']} is not what was asked for"

    monkeypatch.setattr(WRONG_CODE, why)
    result = play()
    assert result.word == "NOT MEASURED"
    assert "a is not what was asked for" in result.reason
    assert result.launches == 0


@pytest.mark.slow
def test_a_side_that_fails_where_the_other_answers_does_not_pass(sides: FakeSides) -> None:
    sides.failing["b"] = {3, 4}
    result = play()
    assert result.verdict is Verdict.MISSING
    assert "side b fails on 2 queries that the other answers" in result.reason
    assert result.failed == result.calls * 2 / 60
    sides.failing_at["a", 0] = {3, 4}  # once on the other side, too
    assert "side b fails on 2 queries" in play().reason
    sides.slower["b"] = constant(1.2)
    assert play().word == "FAIL"


def test_queries_that_fail_on_both_sides_are_told(sides: FakeSides) -> None:
    sides.failing = {"a": {3, 4}, "b": {3, 4}}
    result = play()
    assert result.word == "PASS"  # nothing about time
    assert any(
        text.startswith("10 of 300 pairs of calls failed: both sides always answered 58 of 60")
        for text in result.warnings
    )


def test_two_sides_that_are_equally_broken_do_not_pass(sides: FakeSides) -> None:
    sides.n_queries = 200
    sides.failing = {"a": set(range(12, 200)), "b": set(range(12, 200))}
    result = play()
    assert result.word == "NOT MEASURED"
    assert "940 of 1,000 pairs of calls failed: both sides always answered 12 of 200 queries" in (
        result.reason
    )
    gates = {gate.gate: gate for gate in result.gates}
    assert gates["p50"].verdict is Verdict.EQUIVALENT
    assert gates["p95"].reason == "takes 200 queries, here 12 of 200 answered"
    assert "940 of 1,000 pairs of calls failed" in markdown.render(duet_tables(result))


@pytest.mark.slow
def test_a_few_failing_queries_leave_enough_for_every_gate(sides: FakeSides) -> None:
    sides.n_queries = 300
    assert play().queries == 220
    sides.failing = {"a": set(range(20)), "b": set(range(20))}
    assert {gate.verdict for gate in play().gates} == {Verdict.EQUIVALENT}


@pytest.mark.slow
def test_where_all_gates_are_to_be_judged_one_that_cannot_be_is_no_pass(sides: FakeSides) -> None:
    limits = {"p50": 0.05, "p95": 0.08}
    assert play(replace(QUICK, limits=limits)).word == "PASS"
    strict = replace(QUICK, limits=limits, all_judged=True)
    result = play(strict)
    assert result.verdict is Verdict.MISSING
    assert result.reason == "p95 takes 200 queries, here 60"
    sides.slower["b"] = constant(1.2)
    assert play(strict).word == "FAIL"


def test_a_side_that_fails_everywhere_is_not_measured(sides: FakeSides) -> None:
    sides.failing["b"] = set(range(60))
    assert play().word == "NOT MEASURED"


def test_other_rankings_are_counted(sides: FakeSides) -> None:
    sides.digest_of["b"] = 7
    result = play()
    assert result.other_rankings == 60
    assert "The rankings differ on 60 queries" in markdown.render(duet_tables(result))


def test_rankings_that_cannot_be_had_cost_no_launch(sides: FakeSides) -> None:
    sides.dies["b"] = "digests"
    result = play()
    assert (result.word, result.launches, result.lost) == ("PASS", 5, ())
    assert result.other_rankings is None
    assert "not all is known of the two sides: b: it gave no answer in time" in result.warnings


@pytest.mark.slow
def test_a_side_that_never_says_what_it_loaded_does_not_pass(sides: FakeSides) -> None:
    sides.dies["b"] = "last"
    result = play()
    assert (result.word, result.launches, result.lost) == ("NOT MEASURED", 5, ())
    assert result.reason == "side b never said what code its searches loaded"
    sides.slower["b"] = constant(1.2)
    assert play().word == "FAIL"


def test_what_one_side_loaded_is_looked_at_though_the_other_one_died(
    sides: FakeSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides.dies["b"] = "digests"
    sides.last["a"] = {"files": ["/late.py"]}
    monkeypatch.setattr(WRONG_CODE, lambda _, facts: " ".join(facts[0]["files"]))
    result = play()
    assert (result.word, result.reason) == ("NOT MEASURED", "/late.py")


def test_rankings_are_compared_for_the_chosen_queries_only(sides: FakeSides) -> None:
    sides.n_queries = 500
    sides.digest_of["b"] = 7
    assert play(replace(QUICK, queries=100)).other_rankings == 100


def test_what_the_processes_say_of_themselves_is_in_the_record(sides: FakeSides) -> None:
    for name, version in (("a", "1.0"), ("b", "2.0")):
        sides.last[name] = {
            "environment": {"packages": {"numpy": version}, "threads": 1},
            "complaints": ["torch uses 8 threads instead of 1", f"said by {name}"],
        }
    result = play()
    assert result.environment["packages"] == {"numpy": "1.0"}
    assert result.environment["machine"]["cores"]
    assert result.a.environment == {}
    assert result.b.environment == {"packages": {"numpy": "2.0"}}
    assert [text for text in result.warnings if "torch" in text or "said" in text] == [
        "torch uses 8 threads instead of 1", "said by a", "said by b",
    ]  # fmt: skip


def test_code_that_was_loaded_by_the_first_search_is_looked_at(
    sides: FakeSides, tmp_path: Path
) -> None:
    place = Place("v1", tmp_path, tree=tmp_path / "v1", origin=tmp_path / "own")
    sides.last["a"] = {"files": [str(tmp_path / "own" / "late.py")]}
    result = duet(Side("a", place), B, "made", protocol=QUICK)
    assert result.word == "NOT MEASURED"
    assert "late.py was loaded, a file of your own tree" in result.reason
    assert result.launches == 0


def test_an_interruption_keeps_what_there_is_and_is_no_pass(sides: FakeSides) -> None:
    sides.interrupt_after = 300
    result = play()
    assert result.interrupted
    assert result.word in {"INCONCLUSIVE", "NOT MEASURED"}
    assert 0 < result.launches < 5
    assert sides.open == 0


def test_a_limit_on_time_ends_undecided(sides: FakeSides) -> None:
    result = play(DuetProtocol(seconds=1e-9, warm_up_s=1e-9, most_s=1e-9))
    assert result.launches == 1
    assert result.word == "NOT MEASURED"
    assert "too few launches" in result.gates[0].reason


@pytest.mark.parametrize(
    "wrong",
    [
        *({"seconds": 0}, {"seconds": math.inf}, {"timeout_s": math.nan}, {"queries": -1}),
        *({"limits": {"p51": 0.1}}, {"limits": {"p50": 0.0}}),
    ],
)
def test_a_protocol_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        DuetProtocol(**wrong)


def test_the_record_holds_every_time_and_is_written_once(sides: FakeSides, tmp_path: Path) -> None:
    result = play()
    folder = write_duet(result, tmp_path / "한국어")
    document = read_duet(folder)
    assert document["verdict"] == "PASS"
    assert json.loads(to_json(result.as_dict()))["gates"] == document["gates"]
    with np.load(folder / "timings.npz") as arrays:
        assert arrays["wall_ns"].shape == (2, result.calls)
        assert set(arrays["launch"].tolist()) == set(range(5))
        assert len(arrays["query"]) == len(arrays["first"]) == result.calls
    with pytest.raises(RecordError, match="output folder is not empty"):
        write_duet(result, folder)


def test_a_record_that_is_cut_off_or_newer_is_refused(sides: FakeSides, tmp_path: Path) -> None:
    folder = write_duet(play(), tmp_path / "duet")
    path = folder / "duet.json"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole[: len(whole) // 2], encoding="utf-8")
    with pytest.raises(RecordError, match="unreadable"):
        read_duet(folder)
    path.write_text(whole.replace('"schema_version": 1', '"schema_version": 2'), encoding="utf-8")
    with pytest.raises(RecordError, match="duet of schema version 2"):
        read_duet(folder)


def test_a_full_disk_leaves_nothing_half_written(
    sides: FakeSides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("retrieval_bench_duet.result.np.savez_compressed", full)
    with pytest.raises(RecordError, match="cannot write the duet: No space left on device"):
        write_duet(play(), tmp_path / "duet")
    assert not list(tmp_path.iterdir())


def test_the_table_says_what_was_measured_and_what_could_be_seen(sides: FakeSides) -> None:
    text = markdown.render(duet_tables(play()))
    for part in ("PASS: b = b beside a = a", "60 queries of made", "5 launches", "visible",
                 "Both sides return the same rankings"):  # fmt: skip
        assert part in text


def test_the_self_test_slows_the_queries_that_a_duet_found_slow(sides: FakeSides) -> None:
    equal = Played(Kind("equal"), [play()])
    slowest = equal.slowest()
    assert len(slowest) == 12  # of 60, each slower than the one before
    assert set(slowest) < {f"q{number}" for number in range(40, 60)}
    side = extra_work("bm25", Kind("slow", 0.1, slowest=True), slowest)
    assert isinstance(side.retriever, Mapping)
    assert side.retriever["params"]["queries"] == slowest
    assert Played(Kind("equal")).slowest() == []


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_the_slowest_queries_get_extra_work_only_when_they_are_known(
    sides: FakeSides, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    result: DuetResult = play()
    found = result if known else replace(result, verdict=Verdict.MISSING, gates=(), launched=())
    asked: list[Any] = []

    def fake(a: Side, b: Side, *_: Any, **__: Any) -> DuetResult:
        asked.append(b.retriever)
        return found

    monkeypatch.setattr(selftest, "duet", fake)
    kinds = (Kind("equal"), Kind("tail", 0.1, slowest=True))
    played = selftest.selftest(seconds=0.0, kinds=kinds).played
    assert [len(one.results) for one in played] == ([1, 1] if known else [2, 0])
    assert len(asked[1]["params"]["queries"] or ()) == (12 if known else 0)
