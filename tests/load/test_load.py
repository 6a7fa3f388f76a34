"""Levels of load, live: what was made is kept, whatever happens to the retriever."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench_load.engine import calling
from retrieval_bench_load.engine.capacity import Limit
from retrieval_bench_load.engine.generator import Generator, Level, Member, _lines
from retrieval_bench_load.engine.levels import LevelResult, State
from retrieval_bench_load.engine.load import LoadResult, Plan, load
from retrieval_bench_load.engine.making import Subject
from retrieval_bench_load.engine.schedule import MOST_CALLS
from retrieval_bench_load.engine.stamps import CallFile
from retrieval_bench_load.engine.tails import Tail
from retrieval_bench_load.tables.load import load_tables
from tests.builders.queued import Queued, sojourn_ms


def _load(trouble: str, out: Path, plan: Plan, **params: Any) -> LoadResult:
    given = {
        "target": "tests.builders.troubled:Troubled",
        "params": {"trouble": trouble, **params},
        "retry": {"times": 0},
    }
    return load(given, "science-mini", plan, out=out)


SHORT = Plan(rates=[200.0], clients=[4], seconds=0.5, warm_up_s=0.1, timeout_s=15.0)


@pytest.mark.slow
def test_every_stamp_is_saved_and_the_answers_are_those_without_load(tmp_path: Path) -> None:
    found = load("bm25", "science-mini", SHORT, out=tmp_path / "load")
    assert found.status == "complete"
    assert [one.result.clients for one in found.levels] == [4, None]
    for one in found.levels:
        assert one.result.answered == one.result.calls > 0
        assert one.quality is not None
        assert (one.quality.changed, one.quality.difference) == (0, 0.0)
    document = json.loads((tmp_path / "load" / "load.json").read_text(encoding="utf-8"))
    assert document["levels"][1]["calls"] == found.levels[1].result.calls
    stamps = np.load(tmp_path / "load" / "calls-2.npy")
    due, sent, done = stamps[:, 0], stamps[:, 1], stamps[:, 2]
    assert (due <= sent).all()
    assert (sent <= done).all()


@pytest.mark.slow
def test_calls_that_fail_are_counted_by_kind_and_cost_quality(tmp_path: Path) -> None:
    found = _load("fail", tmp_path / "load", SHORT)
    (_, opened) = found.levels
    assert opened.result.errors.keys() == {"connection"}
    assert opened.result.failed + opened.result.answered == opened.result.calls
    text = str(load_tables(found))
    assert "had no answer" in text


@pytest.mark.slow
def test_empty_answers_under_load_are_seen(tmp_path: Path) -> None:
    found = _load("empty", tmp_path / "load", SHORT)
    quality = found.levels[1].quality
    assert quality is not None
    assert quality.changed == quality.empty > 0


@pytest.mark.slow
def test_an_empty_folder_that_was_there_is_empty_again_after_an_error(tmp_path: Path) -> None:
    out = tmp_path / "load"
    out.mkdir()
    with pytest.raises(HarnessError, match="no call of"):
        _load("never", out, SHORT)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "why"),
    [({"price": {"calls": 0.01}}, "costs money"), ({"rate_limit": 5}, "so often")],
)
def test_what_must_not_be_called_without_end_is_refused(
    tmp_path: Path, config: dict[str, Any], why: str
) -> None:
    given = {"target": "tests.builders.troubled:Troubled", **config}
    with pytest.raises(ConfigError, match=why):
        load(given, "science-mini", SHORT, out=tmp_path / "load")


def test_a_search_that_is_interrupted_says_what_its_levels_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels of made-up queues, and Ctrl-C in the sixth."""
    Queued(stop=7).instead(monkeypatch)
    plan = Plan(limit=Limit(95.0, sojourn_ms(0.5, 95.0, constant=False)), seconds=30.0)
    found = load("bm25", "science-mini", plan, out=tmp_path / "load")
    assert found.status == "partial"
    capacity = found.capacity
    assert capacity is not None
    assert capacity.keeps is not None
    assert capacity.breaks is not None
    assert capacity.keeps < 250.0 < capacity.breaks
    assert capacity.rough
    assert str(capacity.reason).startswith("the search was ended after 4 levels")
    text = str(load_tables(found))
    assert "(rough)" in text
    assert "PARTIAL: it was ended before all levels were made." in text
    assert found.interrupted


def test_a_limit_that_one_call_alone_breaks_is_not_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = Queued().instead(monkeypatch)
    plan = Plan(limit=Limit(95.0, 0.01), seconds=30.0)
    found = load("bm25", "science-mini", plan, out=tmp_path / "load")
    assert queued.made == 1
    assert "The limit: one call at a time breaks it." in str(load_tables(found))


@pytest.mark.parametrize("seconds", [0.05, 30.0])
def test_what_one_call_takes_is_known_of_few_calls_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    seen: list[float] = []

    def room(subject: Subject, level: Level, slots: int) -> int:
        seen.append(subject.alone_s)
        return slots

    Queued().instead(monkeypatch)
    monkeypatch.setattr(Subject, "_room", room)
    load("bm25", "science-mini", Plan(rates=[100.0], seconds=seconds), out=tmp_path / "load")
    assert 0.001 < seen[0] < 0.003


def test_no_advice_is_given_that_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Queued().instead(monkeypatch)
    found = load("bm25", "science-mini", Plan(clients=[2], processes=4), out=tmp_path / "load")

    def text(level: LevelResult, plan: Plan = found.plan) -> str:
        levels = (replace(found.levels[0], result=level),)
        return str(load_tables(replace(found, levels=levels, plan=plan), full=True))

    turns = replace(found.levels[0].result, interpreter_bound=True)
    assert "--processes" not in text(turns)
    assert "own processes (1 process" in text(turns)
    rated = replace(turns, clients=None, planned=100.0, rate=100.0)
    assert "--processes shares the load" in text(rated)
    assert "own processes (4 processes" in text(rated)
    few = replace(rated, latency=(Tail(50.0, None, None, 3.0, reason="3 calls, p50 needs 30"),) * 3)
    assert "A longer --duration gives more calls" in text(few)
    assert "Only a longer recording gives more calls" in text(replace(few, planned=None))


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "answers-0.jsonl"
    path.write_text('[0, 3, ["a", "b"]]\n[1, 4, ["a", "b"]', encoding="utf-8")
    assert list(_lines(path)) == [[0, 3, ["a", "b"]]]


class Stopped(Member):
    """Ctrl-C comes while its level is made; whatever it is asked then, it answers by the level."""

    there = True

    def alive(self) -> bool:
        return self.there

    def say(self, message: Mapping[str, Any]) -> None:
        self.stops = "start" in message

    def hear(self, until: float | None) -> dict[str, Any]:
        if until is None:
            facts = {"external": True, "threads": True, "fingerprint": ""}
            return {"ready": facts, "armed": {"zero": 0}}
        if self.stops:
            raise KeyboardInterrupt
        return {"finished": {}}

    def close(self) -> None:
        self.there = False


def test_a_process_that_was_stopped_in_a_level_is_asked_nothing(tmp_path: Path) -> None:
    generator = Generator(lambda _: Stopped(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        generator.run(Level(None, 1))
    assert generator.health([]) == []


def test_a_call_that_hangs_does_not_hide_what_its_process_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0

    def join(threads: object, until: int, clock: object) -> int:
        nonlocal now
        now = until
        return 1

    told = {"folder": tmp_path, "process": 0, "slots": 1, "seed": 1, "pace": None, "once": []}
    told |= {"seconds": [2.0, 10.0], "watched": False, "timeout": 30.0, "processes": 1}
    candidate = SimpleNamespace(retry=None, capabilities=SimpleNamespace(external=False))
    experiment: Any = SimpleNamespace(queries=["q"], k=10, candidates=[candidate])
    clocks = {"perf_counter_ns": lambda: now, "process_time": lambda: now / 1e9}
    monkeypatch.setattr(calling, "time", SimpleNamespace(**clocks))
    monkeypatch.setattr(calling, "call_in_turn", lambda *_: [])
    monkeypatch.setattr(calling, "join", join)
    found = calling._level(told, experiment, [], lambda: 0, [])
    assert (found["still"], found["took_s"], found["cpu_s"]) == (1, 12.0, 12.0)


def test_as_many_calls_as_may_be_planned_need_few_open_files(tmp_path: Path) -> None:
    file = CallFile(tmp_path / "calls.bin", 1)
    assert MOST_CALLS / len(file._blocks[0]) < 160
    file.close()


@pytest.mark.slow
def test_a_call_that_hangs_is_open_and_the_next_level_has_a_process_of_its_own(
    tmp_path: Path,
) -> None:
    found = _load(
        "hang",
        tmp_path / "load",
        replace(SHORT, seconds=1.0, warm_up_s=2.0, timeout_s=1.0),
        takes_s=0.005,
    )
    clients, opened = found.levels
    assert clients.result.state is State.OVERLOADED
    assert opened.result.calls > 100
    assert opened.result.errors.keys() <= {"open", "unsent"}
    assert opened.result.failed > 0


@pytest.mark.slow
def test_a_process_that_dies_makes_the_level_worthless_and_what_was_before_is_kept(
    tmp_path: Path,
) -> None:
    found = _load("die", tmp_path / "load", replace(SHORT, seconds=2.0, warm_up_s=0.2))
    assert {one.result.state for one in found.levels} == {State.NOT_MEASURED}
    assert "ended with code 9" in found.levels[0].result.reasons[0]
    assert len(np.load(tmp_path / "load" / "calls-1.npy")) > 0, "what it had made is there"


@pytest.mark.slow
def test_a_full_disk_ends_it_and_keeps_the_levels_before(tmp_path: Path) -> None:
    plan = replace(SHORT, clients=[4, 2], seconds=1.0)
    found = _load("full", tmp_path / "load", plan)
    assert [level.result.clients for level in found.levels] == [4]
    assert (found.status, found.interrupted) == ("partial", False)
    assert "No space left on device" in str(load_tables(found))
    assert len(np.load(tmp_path / "load" / "calls-1.npy")) > 100


@pytest.mark.slow
def test_bad_input_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--rate -1"):
        load("bm25", "science-mini", Plan(rates=[-1.0]), out=tmp_path / "load")
    with pytest.raises(ConfigError, match="calls at 1e"):
        load("bm25", "science-mini", Plan(rates=[5.0, 1e9]), out=tmp_path / "load")
    with pytest.raises(HarnessError, match="no-such"):
        load("no-such", "science-mini", SHORT, out=tmp_path / "load")
    assert not (tmp_path / "load").exists()


@pytest.mark.slow
def test_an_external_retriever_has_an_instance_for_each_slot(tmp_path: Path) -> None:
    found = _load("", tmp_path / "load", SHORT, external=True, takes_s=0.02)
    assert found.external
    level = found.levels[0].result
    assert (level.errors, level.failed) == ({}, 0), "no call of one beside another one"


@pytest.mark.slow
@pytest.mark.parametrize("slots", [None, 3])
def test_a_rate_has_all_slots(tmp_path: Path, slots: int | None) -> None:
    plan = replace(SHORT, clients=[], slots=slots)
    found = _load("", tmp_path / "load", plan, external=True, takes_s=0.2)
    stamps = np.load(tmp_path / "load" / "calls-1.npy")
    assert found.slots == (slots or 32)
    used = len(np.unique(stamps[:, 4]))
    assert used == slots if slots else used > 32, "L2: 200 a second of .2 s each take 40"
