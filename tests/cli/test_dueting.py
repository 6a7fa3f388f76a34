"""``duet`` and ``selftest`` through the command line, mostly on processes with a script."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench_duet import controller
from retrieval_bench_duet.commands.duet import exit_code
from retrieval_bench_duet.result import DuetResult
from retrieval_bench_duet.selftest import KINDS, extra_work
from tests.builders.fake_sides import FakeSides
from tests.cli.project import Command

A_AND_B = ("duet", "--a", "a", "--b", "b", "--dataset", "data", "--seconds", "1e-9")


@pytest.fixture
def sides(project: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSides:
    fake = FakeSides()
    monkeypatch.setattr(controller, "SideProcess", fake)
    return fake


def test_equal_sides_pass_and_are_recorded(sides: FakeSides, run: Command) -> None:
    assert run(*A_AND_B) == 0
    assert "PASS: b = b beside a = a" in run.out
    assert all(line.endswith("side by side ...") for line in run.err.splitlines())
    assert len(list(Path("results/duets").glob("*/duet.json"))) == 1


def test_a_slower_side_ends_with_one(sides: FakeSides, run: Command) -> None:
    sides.slower["b"] = lambda launch, query: 1.2
    document = run.json(*A_AND_B, "--out", "here", code=1)
    assert document["verdict"] == "FAIL"
    assert document["folder"] == str(Path("here").absolute())
    assert json.loads(Path("here/duet.json").read_text(encoding="utf-8"))["verdict"] == "FAIL"


def test_not_decided_ends_with_three_and_not_measured_with_four(
    sides: FakeSides, run: Command
) -> None:
    sides.layout = 0.5  # nothing can be seen in this
    assert run(*A_AND_B) == 3
    assert "INCONCLUSIVE" in run.out
    assert run(*A_AND_B, "--most", "1e-9") == 4
    sides.facts["b"] = {"fingerprint": "other"}
    assert run(*A_AND_B) == 4
    assert "NOT MEASURED" in run.out
    assert "other fingerprint" in run.out


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.BETTER, 0),
        (Verdict.EQUIVALENT, 0),
        (Verdict.WORSE, 1),
        (Verdict.UNDECIDED, 3),
        (Verdict.UNRESOLVABLE, 3),
        (Verdict.MISSING, 4),
        (Verdict.NOT_COMPARABLE, 4),
    ],
)
def test_each_verdict_has_its_exit_code(verdict: Verdict, code: int) -> None:
    unknown: Any = {}
    assert exit_code(DuetResult(unknown, unknown, unknown, verdict)) == code


def test_an_interruption_ends_with_130(sides: FakeSides, run: Command) -> None:
    sides.interrupt_after = 1500
    assert run(*A_AND_B) == 130
    assert "Interrupted" in run.out
    assert "interrupted before it was decided" in run.err
    assert list(Path("results/duets").glob("*/timings.npz"))


def test_a_record_that_cannot_be_written_does_not_hide_the_verdict(
    sides: FakeSides, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("retrieval_bench_duet.result.np.savez_compressed", full)
    assert run(*A_AND_B) == 2
    assert "PASS: b = b" in run.out
    assert "cannot write the duet: No space left on device" in run.err


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ((), "cannot write the duet"),
        (("--out", "own.py"), "output folder is a file"),
        (("--out", "data"), "leave it out for a new one in results/duets"),
    ],
)
def test_a_place_for_the_record_is_looked_for_before_anything_is_measured(
    sides: FakeSides, run: Command, out: tuple[str, ...], told: str
) -> None:
    Path("results").write_text("a file where a folder should be", encoding="utf-8")
    assert told in run.refused(*A_AND_B, *out)
    assert not sides.opened


def test_an_empty_folder_is_taken_for_the_record(sides: FakeSides, run: Command) -> None:
    Path("here").mkdir()
    assert run(*A_AND_B, "--out", "here") == 0
    assert Path("here/duet.json").is_file()


def test_only_the_limits_that_were_asked_for_are_judged(sides: FakeSides, run: Command) -> None:
    gates = run.json(*A_AND_B, "--limit", "p50=3%")["gates"]
    assert [(gate["gate"], gate["limit"]) for gate in gates] == [("p50", 0.03)]


def test_a_limit_that_cannot_be_judged_is_no_pass(sides: FakeSides, run: Command) -> None:
    assert run(*A_AND_B, "--limit", "p50=3%", "p95=8%") == 4
    assert "p95 takes 200 queries, here 60" in run.out
    sides.slower["b"] = lambda launch, query: 1.2
    assert run(*A_AND_B, "--limit", "p50=3%", "p95=8%") == 1


@pytest.mark.usefixtures("sides")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--retriever", "c"), "--retriever c beside --a and --b"),
        (("--extras", "search"), "--extras or --setup without a revision"),
        (("--setup", "make it"), "--extras or --setup without a revision"),
        (("--limit", "p51=5%"), "limit 'p51=5%'"),
        (("--limit", "p50=fast"), "limit 'p50=fast'"),
        (("--limit", "p50=-5%"), "limit 'p50=-5%'"),
        (("--limit", "p50=5"), "limit 'p50=5'"),
        (("--limit", "p50=0.5%"), "too small"),
        (("--limit", "p50=5%", "p50=6%"), "p50 has a limit already"),
        (("--seconds", "0"), "seconds = 0"),
        (("--b", "a"), "both sides are a"),
        (("--rate", "50", "--queries", "20"), "--queries with --rate"),
    ],
)
def test_bad_input_is_named(run: Command, words: tuple[str, ...], told: str) -> None:
    assert told in run.refused(*A_AND_B, *words)


def test_a_side_without_a_retriever_is_named(sides: FakeSides, run: Command) -> None:
    assert "no retriever for side b" in run.refused("duet --a bm25 --dataset data")
    assert "no retriever for side a and side b" in run.refused("duet --dataset data")


def test_settings_of_one_retriever_are_two_sides(sides: FakeSides, run: Command) -> None:
    words = "duet --retriever own --dataset data --seconds 1e-9"
    assert run(f"{words} --set-a boost=1 --set-b boost=2") == 0
    assert "b = own boost=2 beside a = own boost=1" in run.out


def test_a_revision_outside_of_a_repository_is_told(sides: FakeSides, run: Command) -> None:
    assert "repository" in run.refused("duet --retriever own --rev-a main --dataset data")


@pytest.mark.slow
def test_real_processes_of_the_users_own_retriever(project: Path, run: Command) -> None:
    words = ("--dataset", "data", "--seconds", "0.01", "--limit", "p50=5000%")
    assert run("duet --a own.yaml --b own.py:Foreign", *words) == 4
    assert "takes 10 queries, here 4" in run.out


@pytest.mark.slow
def test_a_side_that_cannot_be_built_shows_where_on_demand(project: Path, run: Command) -> None:
    words = "duet --a own.yaml --b own.py:Broken --dataset data"
    assert "side b cannot be built: ConnectionError: no route to the engine" in run.refused(words)
    assert run(f"{words} --debug") == 2
    assert "in index" in run.err


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    short = partial(controller.DuetProtocol, seconds=1e-9, warm_up_s=1e-9)
    monkeypatch.setattr("retrieval_bench_duet.selftest.DuetProtocol", short)
    monkeypatch.setattr("retrieval_bench_duet.selftest.REPLAYS", 20)


@pytest.fixture
def slowed(sides: FakeSides) -> FakeSides:
    """Sides with extra work take longer."""
    for kind in KINDS:
        name = str(extra_work(None, kind).retriever)
        share = 0.0 if kind.slowest else kind.share
        sides.slower[name] = partial(lambda share, launch, query: 1 + share, share)
    return sides


@pytest.mark.slow
@pytest.mark.usefixtures("quick", "slowed")
def test_selftest_counts_verdicts(run: Command) -> None:
    document = run.json("lab selftest --dataset data --time 1e-9")
    assert document["false_alarms"] == document["missed"] == 0
    duets = {kind["name"]: kind["duets"] for kind in document["kinds"]}
    assert duets["equal sides"] == duets["+5 %"] == 1
    assert len(document["visible"]) == 3
    assert run("lab selftest --dataset data --time 1e-9") == 0
    assert re.search(r"False alarms: 0 of \d+ duets of equal sides failed", run.out)
    assert "Smallest slow-down that 90 % of duets find" in run.out


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_selftest_without_a_pass_is_not_green(sides: FakeSides, run: Command) -> None:
    sides.layout = 0.5  # nothing can be seen in this
    assert run("lab selftest --dataset data --time 1e-9") == 3
    assert "too busy to judge" in run.err
    assert "more than +50 %" in run.out


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_selftest_with_a_false_alarm_is_red(
    sides: FakeSides, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval_bench_duet.controller.overall", lambda gates: Verdict.WORSE)
    assert run("lab selftest --dataset data --time 1e-9") == 3
    assert re.search(r"False alarms: (\d+) of \1\b", run.out)
    assert "failed its check" in run.err


def test_selftest_refuses_no_time(run: Command) -> None:
    assert run("lab selftest --time 0") == 2
    assert "--set with --selftest" in run.refused("doctor bm25 --selftest --set k1=1")
    assert "--time without --selftest" in run.refused("doctor bm25 --time 30")


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_selftest_that_finds_nothing_is_red(sides: FakeSides, run: Command) -> None:
    assert run("lab selftest --dataset data --time 1e-9") == 3
    assert re.search(r"Missed: (\d+) of \1 duets with extra work beyond the limit", run.out)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_selftest_that_decides_nothing_with_extra_work_is_not_green(
    slowed: FakeSides, run: Command
) -> None:
    name = str(extra_work(None, KINDS[1]).retriever)
    slowed.lost[name] = set(range(100))
    assert run("lab selftest --dataset data --time 1e-9") == 3
    assert "no duet with extra work was decided" in run.err


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_selftest_whose_processes_die_again_and_again_judges_nothing(
    slowed: FakeSides, run: Command
) -> None:
    for kind in KINDS:
        slowed.lost[str(extra_work(None, kind).retriever)] = set(range(1, 100))
    assert run("lab selftest --dataset data --time 1") == 3
    assert "no duet of equal sides passed" in run.err
