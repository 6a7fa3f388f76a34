"""The runner with a mock clock and scripted retrievers: exact to the nanosecond."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.measure.calls import OK, Measurement, System
from retrieval_bench.measure.deadline import Deadline, QueryTimeoutError, deadline
from retrieval_bench.measure.protocol import Protocol, plan
from retrieval_bench.measure.recorder import Recorder
from retrieval_bench.measure.runner import measure
from tests.builders import some
from tests.builders.timed import MockClock, Timed

QUERIES = [Query(f"q{i}", f"text {i}") for i in range(4)]
ONCE = Protocol(rounds=1)


def run(
    retriever: Timed, protocol: Protocol | None = None, queries: Sequence[Query] = QUERIES
) -> Measurement:
    system = System("s", retriever)
    return measure([system], queries, 2, protocol or ONCE, clock=retriever.clock)[0]


def test_times_are_those_of_search_alone() -> None:
    result = run(Timed(1_234), Protocol(rounds=3))
    assert result.timings.wall_ns.tolist() == [1_234] * 12
    assert result.timings.stages["sparse"].tolist() == [617] * 12
    assert result.timings.round.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert result.timings.position.tolist() == [0, 1, 2, 3] * 3
    assert result.overhead_ns == 0


def test_every_round_visits_every_query_in_a_fresh_seeded_order() -> None:
    first, again, other = (
        run(Timed(), Protocol(rounds=5, seed=seed)).timings.query.reshape(5, 4)
        for seed in (0, 0, 1)
    )
    assert all(sorted(row) == [0, 1, 2, 3] for row in first.tolist())
    assert len({tuple(row) for row in first.tolist()}) > 1
    assert (first == again).all()
    assert (first != other).any()


STEADY = 4 + 3 * 50
"""Calls of four queries until three windows of repeated visits agree, when all take the same."""


def warming(n: int, query: Query) -> float:
    """A hundredth faster with each call, until it is warm after about 300."""
    return max(1_000_000, 20_000_000 * 0.99**n)


def fail_on_q1(n: int, query: Query) -> None:
    if query.id == "q1":
        raise ValueError("no answer")


def test_the_warm_up_goes_on_until_times_are_steady_and_consumes_no_query() -> None:
    retriever = Timed()
    result = run(retriever)
    assert result.warm_up_calls == result.steady_after == STEADY
    assert len(retriever.calls) == STEADY + 4
    assert sorted(retriever.calls[-4:]) == ["q0", "q1", "q2", "q3"]
    assert result.status == ["ok"] * 4


def test_a_warm_up_that_gets_faster_goes_on_until_the_clock_or_the_limit_of_calls() -> None:
    result = run(Timed(warming))
    assert some(result.steady_after) > STEADY
    assert result.timings.wall_ns.max() == 1_000_000
    result = run(Timed(lambda n, query: 10_000_000 * 1.01**n))
    assert result.steady_after is None
    assert 200 < result.warm_up_calls < 1_000
    result = run(Timed(), Protocol(rounds=2, max_calls=70))
    assert (result.warm_up_calls, result.steady_after) == (62, None)


def test_every_system_gets_the_warm_up_that_the_slowest_to_settle_needs() -> None:
    clock = MockClock()
    systems = [System(f"{cost}", Timed(cost, clock=clock)) for cost in (1_000, warming)]
    first, second = measure(systems, QUERIES, 2, ONCE, clock=clock)
    assert first.warm_up_calls == second.warm_up_calls == second.steady_after
    assert first.steady_after == STEADY


def test_the_first_visit_of_a_query_is_kept_apart() -> None:
    seen: set[str] = set()

    def cost(n: int, query: Query) -> float:
        first = query.id not in seen
        seen.add(query.id)
        return 10_000_000 if first else 1_000_000

    timings = run(Timed(cost), Protocol(rounds=3)).timings
    assert timings.first_ns.tolist() == [[10_000_000] * 4]
    assert (timings.wall_ns == 1_000_000).all()


def test_a_slow_warm_up_ends_after_ten_seconds_of_the_clock() -> None:
    queries = [Query(f"q{i}", "") for i in range(200)]
    result = run(Timed(150_000_000), ONCE, queries)
    assert result.warm_up_calls == 67  # the first call that starts after 10 s is not made
    assert len(result.timings.wall_ns) == 200


@pytest.mark.slow
def test_rounds_are_repeated_until_a_thousand_calls_are_in() -> None:
    assert len(run(Timed(), Protocol()).timings.wall_ns) == 1_000
    queries = [Query(f"q{i}", "") for i in range(300)]
    assert len(run(Timed(), Protocol(), queries).timings.wall_ns) == 1_200


def turns(names: str, rounds: int) -> tuple[list[str], list[Measurement]]:
    """In which order systems took the measured queries, one text a query."""
    clock = MockClock()
    order: list[str] = []

    def system(name: str) -> System:
        return System(name, Timed(act=lambda n, query: order.append(name), clock=clock))

    systems = [system(name) for name in names]
    results = measure(systems, QUERIES, 2, Protocol(rounds=rounds), clock=clock)
    calls = len(names) * len(QUERIES) * rounds
    timed = "".join(order[-calls:])
    return [timed[i : i + len(names)] for i in range(0, calls, len(names))], results


def test_no_round_begins_after_the_time_is_up_and_a_first_one_that_is_longer_is_kept() -> None:
    result = run(Timed(1_000_000_000), Protocol(rounds=9, warm_up_s=0, max_s=10))
    rounds = result.timings.round.max() + 1
    assert rounds == 3  # of four seconds each, after one of the warm-up
    assert not result.interrupted
    assert "3 of 9 rounds were finished when the time was up: --max-minutes" in result.warnings
    result = run(Timed(1_000_000_000), Protocol(rounds=9, warm_up_s=0, max_s=2.5))
    assert result.interrupted
    assert len(result.timings.wall_ns) == 2  # after one of the warm-up
    assert sorted(result.status) == ["not run", "not run", "ok", "ok"]


def test_the_systems_take_turns_in_going_first_and_in_standing_before_each_other() -> None:
    found, results = turns("abc", 10)
    assert {"".join(sorted(one)) for one in found} == {"abc"}
    assert all(one == before[::-1] for before, one in zip(found[::2], found[1::2], strict=True))
    assert results[0].timings.query.tolist() == results[2].timings.query.tolist()
    assert turns("ab", 1)[0] == turns("ab", 1)[0]
    # One before it would leave its memory in the caches: the next call becomes fast or slow.
    timed = "".join(turns("abc", 100)[0])
    for first, second in permutations("abc", 2):
        after = sum(timed[i : i + 2] == first + second for i in range(len(timed) - 1))
        assert 0.1 < after / len(timed) < 0.16, (first, second)


def test_a_late_call_is_failed_and_one_that_hangs_does_not_hang_the_warm_up() -> None:
    result = run(Timed(60_000_000_000), Protocol(rounds=1, timeout_s=60.0))
    assert result.warm_up_calls == 1
    result = run(Timed(3_000_000_000), Protocol(rounds=1, timeout_s=2.0))
    assert result.status == ["timed out after 2 s"] * 4


def test_a_failure_after_a_first_success_is_told_and_the_ranking_kept() -> None:
    def act(n: int, query: Query) -> None:
        if query.id == "q2" and n > STEADY + 4:
            raise ValueError("gone")

    result = run(Timed(act=act), Protocol(rounds=3))
    assert result.status == ["ok"] * 4
    assert result.timings.failed.sum() == 2
    assert "2 repeated calls failed after a first success" in result.warnings


@pytest.mark.parametrize("problem", [SystemExit(0), asyncio.CancelledError()])
def test_what_would_end_the_process_is_a_failed_query(problem: BaseException) -> None:
    def act(n: int, query: Query) -> None:
        raise problem

    result = run(Timed(act=act))
    assert all(type(problem).__name__ in status for status in result.status)


def test_a_time_out_in_the_middle_of_another_exception_is_a_time_out() -> None:
    class RaisingLate(Retriever):
        def search(self, query: Query, k: int) -> Ranking:
            try:
                raise ValueError("its own limit")
            finally:
                end = time.perf_counter() + 0.06
                while time.perf_counter() < end:
                    pass

    protocol = Protocol(rounds=1, timeout_s=0.03, max_calls=4)
    result = measure([System("s", RaisingLate())], QUERIES, 1, protocol)[0]
    assert result.status == ["timed out after 0.03 s"] * 4


def test_an_alarm_that_comes_while_a_failure_is_noted_does_no_harm() -> None:
    fired: list[bool] = []

    class Late(Deadline):
        def disarm(self) -> None:
            if not fired:
                fired.append(True)
                raise QueryTimeoutError

    retriever = Timed(act=fail_on_q1)
    recorder = Recorder(System("s", retriever), QUERIES, 2, plan(ONCE, 4))
    recorder.call(1, 0, 0, Late(5.0, interrupts=False), retriever.clock)
    assert recorder.status[1] == "timed out after 5 s"


def test_a_time_out_beyond_what_timers_take_is_none() -> None:
    for seconds in (float("inf"), 1e300, None):
        with deadline(seconds) as timer:
            assert timer.seconds is None
            assert not timer.exceeded(10**20)


@pytest.mark.slow
def test_many_planned_calls_take_no_memory_before_they_are_made() -> None:
    retriever = Timed()
    calls = plan(Protocol(rounds=10**9), 4)
    recorder = Recorder(System("s", retriever), QUERIES, 2, calls)
    with deadline(None) as timer:
        for i in range(70_000):
            recorder.call(i % 4, i // 4, i % 4, timer, retriever.clock)
    timings = recorder.result(0, False, 0).timings
    assert timings.wall_ns.tolist() == [1_000] * 70_000
    assert timings.stages["sparse"].tolist() == [500] * 70_000
    assert timings.query[:6].tolist() == [0, 1, 2, 3, 0, 1]


def test_a_list_that_is_used_again_does_not_change_what_was_kept() -> None:
    ids: list[str] = []

    def act(n: int, query: Query) -> Ranking:
        ids[:] = [query.id]
        return Ranking(ids, [1.0])

    result = run(Timed(act=act))
    kept = [list(ranking.doc_ids) for ranking in result.rankings if ranking is not None]
    assert kept == [["q0"], ["q1"], ["q2"], ["q3"]]


def test_a_query_that_raises_is_failed_and_the_run_goes_on() -> None:
    result = run(Timed(act=fail_on_q1), Protocol(rounds=3))
    assert result.status == ["ok", "ValueError: no answer", "ok", "ok"]
    assert result.rankings[1] is None
    assert result.timings.failed.sum() == 1  # told once, not called again
    assert len(result.timings.wall_ns) == 10
    assert result.timings.wall_ns.tolist() == [1_000] * 10  # its time is in


class Hanging(Retriever):
    def __init__(self) -> None:
        self.swallowed = False

    def search(self, query: Query, k: int) -> Ranking:
        if query.id == "q2":
            try:
                time.sleep(30)
            except Exception:  # a time-out is none of these
                self.swallowed = True
        return Ranking(["d1"], [1.0])


def test_a_call_that_hangs_is_interrupted() -> None:
    retriever = Hanging()
    protocol = Protocol(rounds=2, timeout_s=0.05, max_calls=8)
    result = measure([System("s", retriever)], QUERIES, 1, protocol)[0]
    assert result.status == ["ok", "ok", "timed out after 0.05 s", "ok"]
    assert not retriever.swallowed


def test_ctrl_c_keeps_what_was_finished() -> None:
    def act(n: int, query: Query) -> None:
        if n == STEADY + 3:  # the third measured call
            raise KeyboardInterrupt

    result = run(Timed(act=act), Protocol(rounds=2))
    assert result.interrupted
    assert sorted(result.status) == ["not run", "not run", "ok", "ok"]
    assert len(result.timings.wall_ns) == 2


def test_a_ranking_that_changes_between_rounds_is_told() -> None:
    result = run(Timed(act=lambda n, query: Ranking([f"d{n % 2}"], [1.0])), Protocol(rounds=4))
    assert result.unstable > 0
    assert "not deterministic" in result.warnings[0]


def test_a_broken_contract_ends_the_run_and_names_retriever_and_query() -> None:
    too_many = Timed(act=lambda n, query: Ranking(["a", "b", "c"], [3.0, 2.0, 1.0]))
    with pytest.raises(ContractError, match=r"3 hits returned\n  where: retriever 's', query 'q"):
        run(too_many)


def test_progress_ends_at_the_planned_number() -> None:
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))

    system, protocol = System("s", Timed()), Protocol(rounds=3)
    measure([system], QUERIES, 2, protocol, clock=MockClock(), progress=progress)
    assert seen[-1] == (62, 62)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize(
    ("protocol", "rounds", "warm_up"),
    [
        (Protocol(), 10, 100),
        (Protocol(rounds=2), 2, 100),
        (Protocol(max_calls=100), 1, 0),
        (Protocol(max_calls=130), 1, 30),
        (Protocol(max_calls=250), 2, 50),
        (Protocol(rounds=1, max_calls=1000), 1, 100),
    ],
)
def test_the_plan_spends_calls_on_rankings_first(
    protocol: Protocol, rounds: int, warm_up: int
) -> None:
    calls = plan(protocol, 100)
    assert (calls.rounds, calls.warm_up) == (rounds, warm_up)
    assert protocol.max_calls is None or calls.total <= protocol.max_calls


def test_fewer_calls_than_queries_is_an_error() -> None:
    with pytest.raises(ConfigError, match="max-calls = 99 for 100 queries"):
        plan(Protocol(max_calls=99), 100)


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"timeout_s": -1.0}, {"threads": 0}])
def test_senseless_numbers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        Protocol(**wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"launches": -1}, "launches = -1"),
        ({"warm_up_s": -0.5}, "warm-up = -0.5"),
        ({"levels": (50.0, 100.0)}, "percentiles"),
        ({"levels": ()}, "percentiles"),
    ],
)
def test_other_senseless_parameters_are_named_as_their_options(
    wrong: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        Protocol(**wrong)


def test_a_profile_is_a_set_of_parameters_and_what_is_given_wins() -> None:
    assert Protocol.of() == Protocol()
    assert Protocol.of("smoke").rounds == 1
    release = Protocol.of("release", threads=2, launches=None)
    assert (release.profile, release.min_calls, release.launches) == ("release", 10_000, 5)
    assert release.threads == 2
    assert Protocol.of("release", launches=7).launches == 7
    assert Protocol.of("smoke", min_calls=500).rounds is None
    with pytest.raises(ConfigError, match="did you mean release"):
        Protocol.of("relase")


def test_a_profile_can_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "nightly.yaml"
    path.write_text("min_calls: 5000\nlevels: [50, 99.9]\ncollector: true\n", encoding="utf-8")
    protocol = Protocol.of(str(path), threads=2)
    assert protocol == Protocol(str(path), 5_000, levels=(50.0, 99.9), collector=True, threads=2)
    path.write_text("min_call: 5000\nlaunches: many\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"unknown key 'min_call'") as caught:
        Protocol.of(str(path))
    assert "'launches'" in caught.value.given
    assert caught.value.where == f"{path}:1, 2"
    for name in ("rounds", "min_calls", "max_calls", "launches", "threads"):
        path.write_text(f"{name}: {'1' * 400}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r" = 111111111111\.\.\."):
            Protocol.of(str(path))
    path.write_text("rounds: 0\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="rounds = 0"):
        Protocol.of(str(path))


def test_launches_share_the_calls() -> None:
    shared = plan(Protocol.of("release"), 166)
    assert (shared.launches, shared.rounds, shared.measured) == (5, 13, 13 * 166)
    limited = plan(Protocol(launches=5, max_calls=1_500), 100)
    assert (limited.rounds, limited.warm_up, limited.warm_up_most) == (2, 100, 100)
    with pytest.raises(ConfigError, match="in 5 launches"):
        plan(Protocol(launches=5, max_calls=499), 100)


def test_the_collector_is_off_while_calls_are_timed() -> None:
    import gc

    states: list[bool] = []

    run(Timed(act=lambda n, query: states.append(gc.isenabled())))
    assert not any(states)
    assert gc.isenabled()
    assert OK == "ok"


def test_what_a_caller_froze_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a service that freezes what its forked workers share; not what Python froze itself."""
    import gc

    gc.unfreeze()
    run(Timed())
    assert gc.get_freeze_count() == 0
    gc.freeze()
    with monkeypatch.context() as patch:
        patch.setattr("retrieval_bench.measure.runner._PYTHONS_OWN", 10**9)
        run(Timed())
    assert gc.get_freeze_count() == 0
    gc.freeze()
    frozen = gc.get_freeze_count()
    run(Timed())
    assert gc.get_freeze_count() > 0.9 * frozen


def test_between_rounds_garbage_is_looked_for_among_what_they_made() -> None:
    """Also where a caller froze, long before: some thousand rounds would walk over all the rest."""
    import gc

    gc.freeze()
    frozen, held, seen = gc.get_freeze_count(), [[0] for _ in range(10_000)], [0]

    def look(n: int, query: Query) -> None:
        if n == 2:
            seen[0] = gc.get_freeze_count()

    run(Timed(act=look))
    assert seen[0] > frozen + len(held) // 2
