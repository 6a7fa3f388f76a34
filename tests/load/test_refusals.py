"""Requests that a service refuses, and that are made again: counted, told, and judged."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.accounting import FAILURES
from retrieval_bench_duet.controller import DuetProtocol
from retrieval_bench_duet.duet import Request as Duelling
from retrieval_bench_duet.tables.duet import duet_tables
from retrieval_bench_load import load_duet, loads
from retrieval_bench_load.engine import levels
from retrieval_bench_load.engine.levels import State
from retrieval_bench_load.engine.load import LoadResult, Plan, load
from retrieval_bench_load.engine.stamps import ANSWERED, FAILED
from retrieval_bench_load.engine.tails import tail
from retrieval_bench_load.load_duet import duet_under_load
from retrieval_bench_load.loads import regress_load
from retrieval_bench_load.refusals import Share, p_no_larger
from retrieval_bench_load.tables.load import load_tables
from retrieval_bench_regress.regress import Request
from retrieval_bench_regress.tables.regress import regress_tables
from tests.builders.load_service import (
    LENIENT,
    Answer,
    answering,
    loadable,
    refusing,
    shedding,
    well,
)
from tests.builders.queued import Queued, queue

MEASURED = State.MEASURED
SHORT = Plan(seconds=1.5, warm_up_s=0.2, timeout_s=3.0)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in LENIENT.items():
        monkeypatch.setattr(levels, name, value)


def _loaded(answer: Answer, **plan: object) -> tuple[LoadResult, int]:
    """The load, and how many requests the service got."""
    with loadable(Path(), answer) as (service, config):
        given = Plan(**{**_of(SHORT), **plan})  # type: ignore[arg-type]
        made = load(config, "science-mini", given, k=1)  # of one hit, a list is whole
        return made, len(service.requests)


def _of(plan: Plan) -> dict[str, object]:
    return {name: getattr(plan, name) for name in ("seconds", "warm_up_s", "timeout_s")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "kind"),
    [(refusing(25), "5xx"), (refusing(4, 429, Retry_After="0.1"), "429"), (refusing(10), "5xx")],
)
def test_requests_that_are_refused_and_made_again_are_counted(answer: Answer, kind: str) -> None:
    """L1: load said ``failed 0`` while the service refused each 25th request, or each 4th."""
    made, _ = _loaded(answer, rates=[60.0])
    (level,) = [one.result for one in made.levels]
    share = sum(level.refused.values()) / (level.requests_rate * level.seconds)
    assert level.refused.keys() == {kind}
    assert 0.02 < share < 0.35
    assert level.requests_rate * level.seconds > level.calls
    text = " ".join(str(load_tables(made)).split())
    assert "requests were refused" in text
    assert "requests a second" in text
    assert "refused" in load_tables(made)[0].columns


@pytest.mark.slow
def test_waits_before_repetitions_are_no_capacity() -> None:
    """L7: two clients, each tenth request refused at once: they sat in waits of half a second."""
    made, _ = _loaded(refusing(10), clients=[2])
    (level,) = [one.result for one in made.levels]
    assert level.waiting > 0.5
    assert level.rate_without_waits > 2 * level.answered_rate
    text = " ".join(str(load_tables(made)).split())
    assert "waits before repetitions left out" in text
    assert "of the time clients waited before that" in text


@pytest.mark.parametrize("answered", [0.0, 0.1, 0.4])
def test_no_percentile_is_of_failures_alone(answered: float) -> None:
    """L8: nearly all calls were refused, and p50 was the time of the refusals."""
    made = queue(0.3, 30.0, 3)
    ok = np.random.default_rng(1).random(len(made.calls)) < answered
    status = np.where(ok, ANSWERED, FAILED)
    level = levels.judged(replace(made, calls=replace(made.calls, status=status)), in_process=True)
    assert [one.ms for one in level.latency] == [None] * 3
    assert {one.reason for one in level.latency} == {FAILURES}


@pytest.mark.slow
def test_failed_calls_that_ended_have_their_time() -> None:
    """L10: a service that sheds after .3 s: p99 was the time-out of 10 s."""
    with loadable(Path(), shedding(0.3, 20)) as (_, config):
        path = Path(config)
        path.write_text(path.read_text("utf-8")[:-1] + ', "retry": {"times": 0}}', "utf-8")
        plan = Plan(rates=[150.0], seconds=3.0, warm_up_s=0.2, timeout_s=3.0)
        made = load(config, "science-mini", plan)
    (level,) = [one.result for one in made.levels]
    assert level.failed > 0
    assert level.errors.keys() == {"5xx"}
    assert "> 3 s" not in str(load_tables(made))


def _with(load: LoadResult, refused: int, state: State) -> LoadResult:
    """``load`` with 300 calls at each level, of which so many were ``refused``."""
    loaded = (
        replace(
            item,
            result=replace(
                item.result, state=state, reasons=("made up",), calls=300, answered=300 - refused,
                errors={"5xx": refused}, troubled=refused, troubled_of=300.0,
            ),
        )
        for item in load.levels
    )  # fmt: skip
    return replace(load, levels=tuple(loaded))


@pytest.mark.slow
def test_more_refusals_than_in_a_kept_load_fail_it_whether_times_were_measured_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """L7: 5 % of the answers became 503, and ``regress --load`` said PASS."""
    Queued().instead(monkeypatch)
    live = load("bm25", "science-mini", Plan(rates=[40.0], seconds=30.0))
    for state, (then, now) in product(
        (MEASURED, State.NOT_MEASURED), [(0, 15), (0, 30), (30, 30), (15, 0), (0, 0)]
    ):
        kept, made = _with(live, then, MEASURED), _with(live, now, state)
        monkeypatch.setattr(loads, "read_load", lambda _, load=kept: load)
        monkeypatch.setattr(loads, "load", lambda *_, load=made, **__: load)
        found = regress_load(Request("bm25"), str(live.folder))
        assert found.latency is not None
        verdicts = {gate.gate: gate.verdict for gate in found.latency.gates}
        case = (state, then, now, verdicts)
        worse = now > then
        assert (verdicts["refused or failed at 40/s"] is Verdict.WORSE) is worse, case
        assert (found.code == 1) is worse, case
        if state is State.NOT_MEASURED:
            assert verdicts["p50 at 40/s"] is Verdict.MISSING, case
        if worse:
            text = str(regress_tables(found))
            assert f"{now / 300:.1%} of 600 calls now, 0.0% of 300" in text, case


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("state", [MEASURED, State.NOT_MEASURED])
@pytest.mark.parametrize(("then", "now"), [(0, 20), (0, 10), (8, 8), (0, 0)])
def test_a_service_that_begins_to_refuse_fails_a_kept_load(
    then: int, now: int, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same of a service that does refuse each so-manieth request, also on a busy machine."""
    if state is State.NOT_MEASURED:
        monkeypatch.setattr(levels, "MOST_OF_A_CORE", 0.0)

    def of(each: int) -> Answer:
        return refusing(each) if each else well

    with loadable(Path(), of(then)) as (service, config):
        plan = Plan(rates=[100.0], seconds=3.0, warm_up_s=0.2, timeout_s=3.0)
        kept = load(config, "science-mini", plan)
        service.answer = answering(of(now))
        found = regress_load(Request(config), str(kept.folder))
    assert found.latency is not None
    gates = [gate for gate in found.latency.gates if gate.gate == "refused or failed at 100/s"]
    if not gates:  # calls were not made in time: nothing is said of them
        assert state is State.NOT_MEASURED or found.code == 4
        return
    assert (gates[0].verdict is Verdict.WORSE) is (now > then)


AS_BEFORE, LESS = (pytest.param(20, b, "PASS", marks=pytest.mark.long) for b in (20, 0))


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b", "word"), [(0, 20, "FAIL"), AS_BEFORE, LESS])
def test_a_side_that_refuses_more_fails(
    a: int, b: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L10: side b refused 5 %, and ``duet --rate`` said PASS."""
    monkeypatch.setattr(load_duet, "BLOCK_S", 0.5)
    monkeypatch.setattr(load_duet, "_WARM_UP_S", 0.1)
    monkeypatch.setattr(load_duet, "MOST_LOST", 1_000)
    one, other = (refusing(each) if each else well for each in (a, b))
    with loadable(Path(), one, "a") as (_, first), loadable(Path(), other, "b") as (_, second):
        protocol = DuetProtocol(0.5, limits={"p50": 5.0}, most_s=60.0, timeout_s=3.0)
        found = duet_under_load(
            Duelling(a=first, b=second), "science-mini", 100.0, protocol=protocol
        )
    gate = found.gates[-1]
    assert gate.gate == "refused or failed"
    assert (gate.verdict is Verdict.WORSE) is (word == "FAIL")
    assert (found.word == "FAIL") is (word == "FAIL")
    assert found.blocks is not None
    assert [n > 0 for n in found.blocks.refused] == [bool(a), bool(b)]
    assert ("on side b" in str(duet_tables(found))) is bool(a or b)


def test_the_test_of_a_share_knows_that_refusals_come_together() -> None:
    none, some = Share(0, 200, 200.0), Share(10, 200, 200.0)
    assert p_no_larger(some, none) < 0.002
    assert p_no_larger(Share(10, 200, 8.0), none) > 0.02, "one outage is one"
    assert p_no_larger(some, some) > 0.5
    assert p_no_larger(none, some) == 1.0
    assert p_no_larger(Share(0, 0, 0.0), none) == 1.0


def test_a_percentile_among_calls_without_an_end_is_above_the_time_out() -> None:
    ms = np.where(np.arange(2_000) % 10, 5.0, np.inf)
    found = tail(ms, np.arange(2_000) // 100, 99.0, 10_000.0)
    assert (found.ms, found.above_ms) == (None, 10_000.0)
