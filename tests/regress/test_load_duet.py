"""A duet under load: pairs of blocks of servers that are made up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.records import to_json
from retrieval_bench_duet.controller import DuetProtocol
from retrieval_bench_duet.duet import Request
from retrieval_bench_duet.result import PrintedDuet
from retrieval_bench_duet.tables.duet import duet_tables
from retrieval_bench_load import load_duet
from retrieval_bench_load.engine.generator import Generator, Level, LevelCalls
from retrieval_bench_load.engine.making import Subject
from retrieval_bench_load.engine.stamps import FAILED
from retrieval_bench_load.load_duet import Blocks, duet_under_load
from tests.benchmarks.load import duelled
from tests.builders.json_schemas import faults, unnoticed
from tests.builders.queued import Queued, queue

PROTOCOL = DuetProtocol(10.0, limits={"p50": 0.05})
OTHER = Request("bm25", set_b=["k1=1.5"])


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_equal_sides_never_fail_and_a_tenth_more_service_is_found() -> None:
    """100 of each in ``python -m tests.benchmarks.load duet``."""
    equal = Counter(duelled(1.0, seed) for seed in range(40))
    assert equal[Verdict.WORSE] == 0
    slower = Counter(duelled(1.1, seed) for seed in range(20))
    assert slower[Verdict.WORSE] >= 19


@pytest.mark.slow
def test_a_slower_side_fails_when_new_pairs_show_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Queued(overridden=1.3).instead(monkeypatch)
    found = duet_under_load(OTHER, "science-mini", 250.0, protocol=PROTOCOL)
    gate = found.gates[0]
    assert (found.word, gate.gate, gate.confirmed) == ("FAIL", "p50", True)
    assert gate.ratio is not None
    assert gate.ratio > 1.3, "a queue makes more of it"
    assert found.blocks is not None
    assert found.blocks.p99_ms is not None
    assert len(found.blocks.medians_ms) == found.launches
    text = str(duet_tables(found))
    assert "pairs of blocks of 10 s at 250 calls a second" in text
    assert "launch" not in text
    printed = json.loads(to_json(PrintedDuet(found).as_dict()))
    assert not faults(printed, "duet")
    assert not unnoticed(printed, "duet")
    document = json.loads((found.folder or Path()).joinpath("duet.json").read_text("utf-8"))
    assert document["blocks"]["rate"] == 250.0


@pytest.mark.slow
def test_sides_of_equal_speed_are_not_called_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    Queued().instead(monkeypatch)
    found = duet_under_load(OTHER, "science-mini", 100.0, protocol=PROTOCOL)
    assert found.word == "PASS"
    assert found.other_rankings == 0


def test_a_side_that_leaves_calls_unanswered_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(level: Level, spec: Mapping[str, Any]) -> LevelCalls:
        side = int(bool(spec["overrides"]))
        made = queue(0.3, 10.0, level.seed, server=1 + side, slower=0.8 if side else 1.0)
        status = made.calls.status.copy()
        status[::20] = FAILED
        return replace(made, calls=replace(made.calls, status=status)) if side else made

    queued = Queued().instead(monkeypatch)
    monkeypatch.setattr(queued, "run", run)
    found = duet_under_load(OTHER, "science-mini", 150.0, protocol=PROTOCOL)
    assert found.word == "FAIL"
    assert (found.gates[-1].gate, found.gates[-1].word) == ("refused or failed", "FAIL")
    assert "5.0% of" in found.gates[-1].reason


def test_the_order_of_sides_is_drawn_and_both_are_asked_the_same() -> None:
    asked: list[tuple[int, int]] = []

    def block(side: int, seed: int) -> LevelCalls:
        asked.append((side, seed))
        return queue(0.3, 10.0, seed, warm_up_s=1.0, server=1 + side)

    blocks = Blocks(block, (True, True), 0.05, 7)
    blocks.more = lambda: len(blocks.medians) < 8
    blocks.play()
    pairs = list(zip(asked[::2], asked[1::2], strict=True))
    assert all(one[1] == other[1] and one[0] != other[0] for one, other in pairs)
    assert {one[0] for one, _ in pairs} == {0, 1}


def test_pairs_that_the_generator_spoilt_are_lost_and_end_it() -> None:
    lost = replace(queue(0.3, 10.0, 1), processes=[None], lost=["ended with code -9"])
    blocks = Blocks(lambda *_: lost, (True, True), 0.05, 7)
    trial = blocks.play()
    assert not trial.over
    assert len(blocks.lost) == 4
    assert "ended with code -9" in blocks.lost[0]


def test_ctrl_c_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    Queued(stop=8).instead(monkeypatch)
    found = duet_under_load(OTHER, "science-mini", 100.0, protocol=PROTOCOL)
    assert (found.interrupted, found.launches, found.word) == (True, 3, "INCONCLUSIVE")


def test_what_is_built_before_the_blocks_takes_none_of_their_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]

    def prepare(*_: object) -> None:
        now[0] += 100.0

    Queued(stop=4).instead(monkeypatch)
    monkeypatch.setattr(Generator, "prepare", prepare)
    monkeypatch.setattr(load_duet, "time", SimpleNamespace(monotonic=lambda: now[0]))
    protocol = replace(PROTOCOL, most_s=25.0)
    found = duet_under_load(OTHER, "science-mini", 100.0, protocol=protocol)
    assert (found.launches, found.total_s) == (1, 200.0)


def test_a_slow_service_gets_as_many_slots_as_its_calls_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Queued(stop=2).instead(monkeypatch)
    seen: list[float] = []

    def room(subject: Subject, level: Level, slots: int) -> int:
        seen.append(subject.longest_s)
        return slots

    monkeypatch.setattr(Subject, "_room", room)
    duet_under_load(OTHER, "science-mini", 100.0, protocol=PROTOCOL)
    assert set(seen) == {10.0}


@pytest.mark.parametrize(
    ("given", "rate", "protocol", "message"),
    [
        (Request("bm25", rev_a="main"), 10.0, PROTOCOL, "--rate with a revision"),
        (OTHER, 0.0, PROTOCOL, "--rate 0"),
        (OTHER, 10.0, replace(PROTOCOL, seconds=2.0), "--seconds 2 with --rate"),
        (OTHER, 10.0, DuetProtocol(10.0), "--rate with limits on p50, p95"),
    ],
)
def test_bad_input_is_told(
    given: Request, rate: float, protocol: DuetProtocol, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        duet_under_load(given, "science-mini", rate, protocol=protocol)
