"""A program that is asked over its pipes: what comes back, every way to fail, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.measure.deadline import QueryTimeoutError, deadline
from retrieval_bench_retrievers.programs import child as programs_child
from retrieval_bench_retrievers.programs.child import LINES, Child
from tests.builders import faulty_program
from tests.builders.processes import alive, within

Making = Callable[..., Child]
ASKED = b'{"n": 1}\n'


@pytest.fixture
def child() -> Iterator[Making]:
    """Starts programs, which are ended afterwards."""
    made: list[Child] = []

    def make(*command: str, **settings: Any) -> Child:
        made.append(Child(command, **settings))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.close()
        assert one.pid is None


def faulty(make: Making, fault: str, at: int = 0, **settings: Any) -> Child:
    return make(*faulty_program.command(fault, at, "echo"), **settings)


def soon(seconds: float) -> float:
    return time.monotonic() + seconds


def test_a_line_is_answered_with_a_line_in_any_script_and_of_any_length(child: Making) -> None:
    one = faulty(child, "-")
    for text in ("a", "연차 휴가 😀", "x" * 3_000_000):  # the last is far more than a pipe holds
        asked = faulty_program.line({"text": text})
        assert one.exchange(asked, soon(60)) == asked[:-1]
    assert one.starts == 1


def test_variables_and_the_folder_are_those_that_were_given(child: Making, tmp_path: Path) -> None:
    code = "import os, sys; input(); print(os.environ['GREETING'], os.getcwd(), os.getsid(0))"
    one = child(sys.executable, "-c", code, cwd=tmp_path, env={"GREETING": "안녕"})
    pid = one.pid
    said = one.exchange(b"?\n").decode()
    assert said == f"안녕 {tmp_path.resolve()} {pid}", "it leads a session of its own"


def test_a_program_that_is_not_there_is_a_fault_of_the_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'no-such-program': No such file"):
        Child(["no-such-program"]).start()
    with pytest.raises(ConfigError, match=r"'.*gone': No such file"):
        Child([sys.executable], cwd=tmp_path / "gone").start()


def test_what_does_not_run_is_not_asked() -> None:
    with pytest.raises(TransientError, match="does not run"):
        Child(["true"]).exchange(ASKED)


# --- every way to fail

DEATHS = {
    "dies": "ended .exit code 3.; its stderr ends: out of luck",
    "killed": "ended .killed by SIGKILL",
    "dies in a line": "ended .exit code 0. in the middle of a line: .*n",
    "closes": "closed its output",
    "leaves a grandchild": "ended .exit code 4.",
}


@pytest.mark.parametrize("fault", DEATHS)
def test_a_death_is_told_with_how_it_came(child: Making, fault: str) -> None:
    one = faulty(child, fault, 1)
    one.exchange(ASKED)
    with pytest.raises(TransientError, match=DEATHS[fault]) as failed:
        one.exchange(ASKED, soon(60))
    assert failed.value.kind is Kind.CONNECTION
    assert one.pid is None
    one.start()
    assert one.exchange(ASKED) == ASKED[:-1]
    assert one.starts == 2


def test_what_a_dead_program_had_started_ends_too(child: Making) -> None:
    one = child("sh", "-c", "sleep 300 & echo $!; read a; exit 4")
    left = int(one.next_line(soon(60)))
    with pytest.raises(TransientError, match="exit code 4"):
        one.exchange(ASKED, soon(60))
    assert within(60, lambda: not alive(left))


@pytest.mark.parametrize("fault", ["hangs", "half", "drips"])
def test_what_comes_late_is_never_the_next_answer(child: Making, fault: str) -> None:
    one = faulty(child, fault, 1)
    one.exchange(ASKED)
    pid = one.pid
    with pytest.raises(TransientError, match="in time") as failed:
        one.exchange(ASKED, soon(0.5))
    assert failed.value.kind is Kind.TIMEOUT
    assert pid is not None
    assert not alive(pid)
    one.start()
    assert one.exchange(b'{"n": 2}\n') == b'{"n": 2}'


def test_half_a_line_is_shown(child: Making) -> None:
    one = faulty(child, "half")
    one.send(ASKED)

    def said() -> str:
        with pytest.raises(TransientError) as failed:
            one.next_line(soon(0.1))
        return str(failed.value)

    assert within(60, lambda: 'wrote half a line and no end of it in time: {"' in said())


def test_a_deadline_of_the_harness_ends_it_too(child: Making) -> None:
    one = faulty(child, "half")
    with deadline(0.3) as timer:
        timer.arm()
        with pytest.raises(QueryTimeoutError):
            one.exchange(ASKED)
    assert one.pid is None


def test_an_endless_line_is_cut_off_while_it_is_read(child: Making) -> None:
    with pytest.raises(CallError, match=r"more than 1,000,000 bytes .*: \[\[\[") as failed:
        faulty(child, "endless", max_bytes=1_000_000).exchange(ASKED, soon(60))
    assert not isinstance(failed.value, TransientError)


def test_two_lines_are_no_answer_whenever_the_second_comes(child: Making, tmp_path: Path) -> None:
    with pytest.raises(CallError, match="answered more than one line"):
        faulty(child, "two").exchange(ASKED)
    script = "read a; echo 1; until test -e read; do sleep .02; done; echo 2; echo > two; sleep 60"
    late = child("sh", "-c", script, cwd=tmp_path)
    late.exchange(ASKED)
    (tmp_path / "read").touch()
    assert within(60, (tmp_path / "two").exists)
    with pytest.raises(CallError, match="a line that nobody asked for: 2"):
        late.exchange(ASKED)


def test_a_flood_of_complaints_blocks_nothing_and_its_last_lines_are_kept(child: Making) -> None:
    one = faulty(child, "flood")
    with pytest.raises(TransientError, match=r"ended .exit code 5..*19999: this goes on"):
        one.exchange(ASKED, soon(60))
    assert len(one.tail()) == LINES
    assert one.tail()[-1] == "warning 19999: this goes on and on"


def test_secrets_are_in_no_message(child: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_KEY", "s3cret-and-long")
    one = child("sh", "-c", "read a; echo $SEARCH_KEY >&2; printf '1\\n%s\\n' $SEARCH_KEY")
    with pytest.raises(CallError, match="behind 1 stands") as failed:
        one.exchange(ASKED)
    assert "s3cret" not in str(failed.value) + str(one.tail())
    assert "${SEARCH_KEY}" in str(failed.value)


def test_a_hint_is_given_where_nothing_was_ever_answered(child: Making) -> None:
    code = "for line in open(0): print(line.strip())"
    buffered = child(sys.executable, "-c", code, env={"PYTHONUNBUFFERED": ""})
    with pytest.raises(TransientError, match="flush each line"):
        buffered.exchange(ASKED, soon(0.5))


# --- a line without a question, and a question without a line


def test_lines_are_read_one_after_the_other_and_a_late_one_is_still_read(
    child: Making, tmp_path: Path
) -> None:
    script = "read a; echo one; echo two; printf th; until test -e go; do sleep .02; done; echo ree"
    one = child("sh", "-c", script, cwd=tmp_path)
    one.send(ASKED)
    assert one.next_line() == b"one"
    assert one.next_line() == b"two"
    with pytest.raises(TransientError):
        one.next_line(soon(0.1))
    (tmp_path / "go").touch()
    assert one.next_line(soon(60)) == b"three"

    double = child("sh", "-c", r"read a; printf '1\n\n'")
    with pytest.raises(CallError, match="behind 1 stands an empty line"):
        double.exchange(ASKED)


@pytest.mark.parametrize("where", ["1", "2"])
def test_it_is_waited_for_until_it_says_that_it_is_ready(child: Making, where: str) -> None:
    script = f"echo Hello; sleep .2; echo It listens now >&{where}; read a; echo $a; sleep 60"
    one = child("sh", "-c", script)
    one.wait_ready("listens", 20)
    assert one.exchange(b"first\n") == b"first"


def test_what_it_says_behind_that_hides_nothing(child: Making) -> None:
    code = "import sys; print('It listens', 'x' * 200_000, file=sys.stderr, flush=True)"
    one = child(sys.executable, "-c", f"{code}\nfor line in sys.stdin: print(1, flush=True)")
    one.wait_ready("listens", 20)
    assert one.exchange(ASKED) == b"1"


def test_a_slow_reader_has_its_time_for_each_part_that_it_reads(
    child: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import os, time\n"
        "left = 8_000_001\n"
        "while left > 0: left -= len(os.read(0, 1 << 16))\n"
        "print('all', flush=True); time.sleep(60)"
    )
    one = child(sys.executable, "-c", code)
    parts = [0]
    write = os.write

    def written(file: int, part: memoryview) -> int:
        n = write(file, part)
        parts[0] += 1
        return n

    with monkeypatch.context() as patched:  # 54 s pass with each part, and none besides
        patched.setattr(os, "write", written)
        clock = SimpleNamespace(monotonic=lambda: 54.0 * parts[0])
        patched.setattr(programs_child, "time", clock)
        one.send(b"x" * 8_000_000 + b"\n", idle_s=60)
    assert parts[0] > 3
    assert one.next_line(soon(60)) == b"all"
    stuck = child("sleep", "60")
    with pytest.raises(TransientError, match="did not read its input in time"):
        stuck.send(b"x" * 8_000_000 + b"\n", idle_s=0.2)


def test_what_does_not_get_ready_is_ended(child: Making) -> None:
    one = child("sh", "-c", "echo Hello; sleep 60")
    with pytest.raises(TransientError, match=r"did not write 'ready' within 0\.3 s"):
        one.wait_ready("ready", 0.3)
    assert one.pid is None


# --- the end

FAMILY = "sleep 300 & echo $!; trap '' TERM INT; while read a; do echo $a; done; sleep 300"
"""It has a child, and does not leave when it is told to."""


def _family(one: Child) -> list[int]:
    pid = one.pid
    assert pid is not None
    return [pid, int(one.next_line(soon(60)))]


def test_nothing_is_left_of_what_is_closed(child: Making) -> None:
    one = child("sh", "-c", FAMILY)
    family = _family(one)
    assert all(map(alive, family))
    one.close()
    assert within(60, lambda: not any(map(alive, family)))
    one.close()  # twice is once


def test_what_ends_by_itself_is_not_told_twice(
    child: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs_child, "_LEAVE_S", 60)
    told = tmp_path / "end"
    one = child("sh", "-c", f"while read a; do :; done; echo saved > {told}")
    one.close()
    assert told.read_text() == "saved\n", "it had a moment to do what it does at its end"


OURS = """
import json, os, sys
from retrieval_bench_retrievers.programs.child import Child
one = Child(["sh", "-c", {script!r}])
two = Child(["sh", "-c", {script!r}])
for child in (one, two):
    child.start()
print(json.dumps([p for c in (one, two) for p in (c.pid, int(c.next_line()))]), flush=True)
{then}
"""


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT", "the end", "a crash", "a fork"])
def test_nothing_is_left_when_this_process_ends(how: str) -> None:
    then = {
        "the end": "",
        "a crash": "os.abort()",
        "a fork": "os.fork() or sys.exit(); os.wait(); one.exchange(b'x\\n')",
    }.get(how, "one.next_line()")
    code = OURS.format(script=FAMILY, then=then)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as ours:
        assert ours.stdout is not None
        family = json.loads(ours.stdout.readline())
        assert len(family) == 4
        if how.startswith("SIG"):
            assert all(map(alive, family))
            os.killpg(ours.pid, getattr(signal, how))  # as a terminal and a duet's parent do it
        ours.communicate(timeout=60)
        assert ours.returncode == 0 or how not in {"the end", "a fork"}
    assert within(60, lambda: not any(map(alive, family)))


def test_a_fork_that_outlives_this_process_keeps_no_program_alive() -> None:
    then = "helper = os.fork()\nif not helper: time.sleep(300)\nprint(helper, flush=True)\n"
    code = "import time\n" + OURS.format(script=FAMILY, then=f"{then}one.next_line()")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    ) as ours:
        assert ours.stdout is not None
        family = json.loads(ours.stdout.readline())
        helper = int(ours.stdout.readline())
        try:
            ours.kill()
            assert within(60, lambda: not any(map(alive, family)))
            assert alive(helper)
        finally:
            os.kill(helper, signal.SIGKILL)
