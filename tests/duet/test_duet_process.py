"""One side's real process: what it answers, and every way in which it can be lost."""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core import secrets
from retrieval_bench_duet import launch
from retrieval_bench_duet.launch import BrokenSideError, LostError, SideProcess
from retrieval_bench_duet.sides import Place, Side
from retrieval_bench_duet.worker import FAILED
from tests.builders.processes import completed
from tests.cli.project import make_project

SIDES = """
import os, signal, subprocess, sys, threading, time
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


class Endless(Overlap):
    def index(self, documents):
        child = subprocess.Popen(["sleep", "600"])
        with open("children.part", "w") as file:
            file.write(str(child.pid))
        os.replace("children.part", "children")
        time.sleep(600)


class Threaded(Overlap):
    def search(self, query, k):
        found = []
        thread = threading.Thread(target=lambda: found.append(self.slowly(query, k)))
        thread.start()
        thread.join()
        return found[0]

    def slowly(self, query, k):
        done = time.thread_time() + 0.002
        while time.thread_time() < done:
            pass
        return super().search(query, k)


class Forking(Overlap):
    def search(self, query, k):
        if os.fork() == 0:
            time.sleep(600)
        os.kill(os.getpid(), signal.SIGKILL)


class Keyless(Overlap):
    def index(self, documents):
        {}["title"]


class Telling(Overlap):
    def __init__(self, *, host):
        raise ConnectionError(f"no route to {host}")


class Sobbing(Overlap):
    def __init__(self, *, host):
        self.host = host

    def index(self, documents):
        sys.stderr.write(f"no route to {self.host}\\n")
        os._exit(7)


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
    folder: Path,
    given: str | Mapping[str, Any],
    *,
    call_s: float = 20.0,
    python: str = sys.executable,
) -> Iterator[SideProcess]:
    (folder / "sides.py").write_text(SIDES, encoding="utf-8")
    place = Place("", folder, python=Path(python), sys_path=(str(folder), *sys.path))
    spec = {"dataset": str(folder / "data"), "split": "test", "k": 3, "threads": 1}
    process = SideProcess(Side(given, place), spec, hash_seed=1, call_s=call_s)
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


@pytest.mark.slow
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
        first, again = (process.digests([0, 1, n - 1]) for _ in range(2))
        assert first == again
        assert len(set(first)) > 1
        last = process.last()
        assert last["environment"]["threads"] == 1
        assert {"packages", "thread_pools"} <= last["environment"].keys()
        assert last["complaints"] == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system keeps to no core")
def test_it_keeps_to_a_core_as_it_is_told(project: Path) -> None:
    everywhere = os.sched_getaffinity(0)
    with opened(project, "sides:Chatty") as process:
        n, pid = len(process.ready()["queries"]), process._process.pid
        assert process.keep_to(min(everywhere))
        assert os.sched_getaffinity(pid) == {min(everywhere)}
        process.times(range(n))
        assert process.keep_to(None)
        assert os.sched_getaffinity(pid) == everywhere
        assert not process.keep_to(100_000)
        assert os.sched_getaffinity(pid) == everywhere
        assert len(process.times(range(n))) == n


@pytest.mark.slow
def test_it_knows_whether_a_search_is_the_work_of_one_thread(project: Path) -> None:
    for name, one in (("Chatty", True), ("Threaded", False)):
        with opened(project, f"sides:{name}") as process:
            n = len(process.ready()["queries"])
            for _ in range(5):
                process.times(range(n))
            assert process.one_threaded() is one


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are those of Linux")
def test_it_takes_no_huge_pages(project: Path) -> None:
    with opened(project, "sides:Chatty") as process:
        process.ready()
        status = Path(f"/proc/{process._process.pid}/status").read_text(encoding="utf-8")
        if "THP_enabled" not in status:
            pytest.skip("this kernel does not tell")
        assert "THP_enabled:\t0" in status


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
@pytest.mark.parametrize(
    ("name", "call_s", "told"),
    [
        pytest.param("sides:Hanging", 0.3, "no answer in time", id="hangs"),
        pytest.param("sides:Forking", 600, "killed by SIGKILL", id="ends while its child lives"),
    ],
)
def test_a_process_is_waited_for_no_longer_than_it_may_take(
    project: Path, name: str, call_s: float, told: str
) -> None:
    with opened(project, name, call_s=call_s) as process:
        process.ready()
        begin = time.monotonic()
        with pytest.raises(LostError, match=told):
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
    monkeypatch.setattr(launch, "START_S", 0.01)
    with (
        opened(project, "sides:Chatty") as process,
        pytest.raises(LostError, match="no answer in time"),
    ):
        process.ready()


@pytest.mark.slow
@pytest.mark.parametrize(
    "ask",
    [lambda process: process.times([0] * 64), lambda process: process.digests([0, 1, 2])],
    ids=["a turn of many calls", "a search for its ranking"],
)
def test_what_hangs_has_the_time_of_one_call(
    project: Path, ask: Callable[[SideProcess], object]
) -> None:
    with opened(project, "sides:Hanging", call_s=0.3) as process:
        process.ready()
        begin = time.monotonic()
        with pytest.raises(LostError, match="no answer in time"):
            ask(process)
        assert time.monotonic() - begin < 10


@pytest.mark.slow
def test_an_interruption_while_it_is_ended_leaves_no_process(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(project, "sides:Hanging") as process:
        process.ready()
        process._send(struct.pack("=qq", 1, 0))  # never to be answered
        wait = process._process.wait

        def interrupted(timeout: float | None = None) -> int:
            if timeout is not None:
                raise KeyboardInterrupt
            return wait()

        monkeypatch.setattr(process._process, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            process.close()
        monkeypatch.undo()


CONTROLLER = """
import os, sys, time
from pathlib import Path
from retrieval_bench_duet.launch import SideProcess
from retrieval_bench_duet.sides import Place, Side
folder = Path(sys.argv[1])
place = Place("", folder, sys_path=(str(folder), *sys.path))
spec = {"dataset": str(folder / "data"), "split": "test", "k": 3, "threads": 1}
process = SideProcess(Side("sides:Endless", place), spec, hash_seed=1, call_s=1)
while not (folder / "children").exists():
    time.sleep(0.01)
print(process._process.pid, flush=True)
os._exit(9)
"""


@pytest.mark.slow
def test_a_side_and_what_it_started_end_with_the_process_that_asked(project: Path) -> None:
    (project / "sides.py").write_text(SIDES, encoding="utf-8")
    done = completed(sys.executable, "-c", CONTROLLER, project, check=False)
    child = int((project / "children").read_text(encoding="utf-8"))
    end = time.monotonic() + 20
    for process in (int(done.stdout), child):
        while _lives(process):
            assert time.monotonic() < end
            time.sleep(0.02)


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return False
    return state[0] != "Z"  # whoever takes it over may never look


@pytest.mark.slow
def test_what_is_printed_before_the_first_line_is_no_answer(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome', flush=True)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with opened(project, "sides:Leaving") as process:
        process.ready()
        with pytest.raises(LostError, match="welcome / out of memory"):
            process.times([0])


@pytest.mark.slow
def test_an_error_shows_its_kind_and_keeps_where_it_came_from(project: Path) -> None:
    with opened(project, "sides:Keyless") as process, pytest.raises(BrokenSideError) as caught:
        process.ready()
    assert str(caught.value) == "KeyError: 'title'"
    assert "in index" in str(caught.value.__cause__)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Telling", "Sobbing"])
def test_what_a_config_was_filled_with_is_never_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(secrets, "_filled", {})
    monkeypatch.setenv("HOST_OF_MINE", "engine.example")
    given = {"target": f"sides:{name}", "params": {"host": "${HOST_OF_MINE}"}}
    with (
        opened(project, given) as process,
        pytest.raises(
            (BrokenSideError, LostError), match=r"no route to \$\{HOST_OF_MINE\}"
        ) as told,
    ):
        process.ready()
    assert "engine.example" not in f"{told.value} {told.value.__cause__}"


def test_no_folder_for_temporary_files_is_told(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(**_: str) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.TemporaryDirectory", nowhere)
    with (
        pytest.raises(BrokenSideError, match="No usable temporary directory"),
        opened(project, "sides:Chatty"),
    ):
        pass
