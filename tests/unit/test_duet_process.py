"""One side's real process: what it answers, and every way in which it can be lost."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.duet import process as process_module
from harness.duet.process import BrokenSideError, LostError, SideProcess
from harness.duet.sides import Place, Side
from harness.duet.worker import FAILED
from tests.cli.project import make_project

SIDES = """
import os, sys, time
from own import Overlap


class Chatty(Overlap):
    def search(self, query, k):
        print("a word on stdout", query.text)
        return super().search(query, k)


class Failing(Overlap):
    def search(self, query, k):
        if query.id == "q2":
            raise RuntimeError("not this one")
        return super().search(query, k)


class Leaving(Overlap):
    def search(self, query, k):
        sys.stderr.write("out of memory, I suppose\\n")
        os._exit(7)


class Hanging(Overlap):
    def search(self, query, k):
        time.sleep(60)


class Jumping(Overlap):
    def search(self, query, k):
        steps = iter(range(0, 10**15, 10**12))
        time.perf_counter_ns = lambda: next(steps)
        return super().search(query, k)


class Backwards(Overlap):
    def search(self, query, k):
        steps = iter(range(10**15, 0, -(10**12)))
        time.perf_counter_ns = lambda: next(steps)
        return super().search(query, k)
"""


def _again(process: SideProcess) -> None:
    for _ in range(3):
        process.times([0, 1])


@contextmanager
def opened(
    folder: Path, name: str, *, call_s: float = 20.0, python: str = sys.executable
) -> Iterator[SideProcess]:
    (folder / "sides.py").write_text(SIDES, encoding="utf-8")
    place = Place("", folder, python=Path(python), sys_path=(str(folder), *sys.path))
    spec = {"dataset": str(folder / "data"), "split": "test", "k": 3, "threads": 1}
    process = SideProcess(Side(name, place), spec, hash_seed=1, call_s=call_s)
    try:
        yield process
    finally:
        process.close()
        with pytest.raises(ProcessLookupError):
            os.kill(process._process.pid, 0)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("한글 duet")
    make_project(folder)
    return folder


def test_it_builds_times_and_ends(project: Path) -> None:
    with opened(project, "sides:Chatty") as process:
        facts = process.ready()
        n = len(facts["queries"])
        assert facts["name"] == "Chatty"
        assert str(project / "sides.py") in facts["files"]
        times = process.times([*range(n), 0])
        assert len(times) == n + 1
        assert min(times) > 0
        process.rest()
        first, again = process.digests(), process.digests()
        assert first == again
        assert len(set(first)) > 1


@pytest.mark.slow
def test_a_call_that_raises_is_marked_and_the_others_go_on(project: Path) -> None:
    with opened(project, "sides:Failing") as process:
        queries = process.ready()["queries"]
        times = process.times(range(len(queries)))
        failed = [query for query, ns in zip(queries, times, strict=True) if ns == FAILED]
        assert failed == ["q2"]


@pytest.mark.slow
def test_a_process_that_leaves_is_lost_with_its_last_words(project: Path) -> None:
    with opened(project, "sides:Leaving") as process:
        process.ready()
        with pytest.raises(LostError, match=r"exit code 7.*out of memory, I suppose"):
            process.times([0])


@pytest.mark.slow
def test_a_killed_process_is_lost(project: Path) -> None:
    with opened(project, "sides:Chatty") as process:
        process.ready()
        os.kill(process._process.pid, signal.SIGKILL)
        with pytest.raises(LostError, match="killed by SIGKILL"):
            process.times([0] * 100)


@pytest.mark.slow
def test_a_process_that_hangs_is_killed_after_its_time(project: Path) -> None:
    with opened(project, "sides:Hanging", call_s=0.3) as process:
        process.ready()
        begin = time.monotonic()
        with pytest.raises(LostError, match="no answer in time"):
            process.times([0])
        assert time.monotonic() - begin < 30


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sides:Jumping", "sides:Backwards"])
def test_a_clock_that_jumps_loses_the_launch(project: Path, name: str) -> None:
    with opened(project, name) as process:
        process.ready()
        with pytest.raises(LostError, match="clock jumped"):
            _again(process)


@pytest.mark.slow
def test_what_cannot_be_built_says_why(project: Path) -> None:
    with (
        opened(project, "sides:Nothing") as process,
        pytest.raises(BrokenSideError, match="Nothing"),
    ):
        process.ready()


def test_an_interpreter_that_is_not_there_is_told(project: Path) -> None:
    with (
        pytest.raises(BrokenSideError, match="cannot start /nowhere/python"),
        opened(project, "sides:Chatty", python="/nowhere/python"),
    ):
        pass


@pytest.mark.slow
def test_a_process_that_never_becomes_ready_is_lost(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "START_S", 0.01)
    with (
        opened(project, "sides:Chatty") as process,
        pytest.raises(LostError, match="no answer in time"),
    ):
        process.ready()
