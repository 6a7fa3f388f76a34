"""The measurement itself is killed, alone or with its server: the next one removes what it left,
and nothing of others is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.builders import durable_program
from tests.builders.processes import alive

ROOT = Path(__file__).parents[2]
OTHERS = {"others": "of somebody else", "retrieval-benchmark": "a document with a name like ours"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A program with an index of its own, in which two documents of others are."""
    lines = "".join(json.dumps([name, text]) + "\n" for name, text in OTHERS.items())
    (tmp_path / "notes").write_text(lines, encoding="utf-8")
    command = [sys.executable, "-I", "-S", durable_program.__file__, str(tmp_path / "notes")]
    (tmp_path / "notes.yaml").write_text(
        f"""
name: notes
target: command
params:
  command: {json.dumps(command)}
  write:
    into: notes
    add: {{put: "{{document.id}}", text: "{{document.text}}"}}
    delete: {{drop: "{{document.id}}"}}
""",
        encoding="utf-8",
    )
    return tmp_path


def bench(project: Path) -> subprocess.Popen[bytes]:
    """A measurement in a process of its own."""
    command = "bench notes.yaml --writes 200 --write-count 60 --write-limit 2 --writes-into notes"
    env = {**os.environ, "RETRIEVAL_BENCH_CACHE": str(project / "cache")}
    return subprocess.Popen(
        [sys.executable, "-m", "retrieval_bench", *command.split()],
        cwd=project,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def held(project: Path) -> dict[str, str]:
    """What the collection holds, by its file."""
    found: dict[str, str] = {}
    for line in (project / "notes").read_text("utf-8").splitlines():
        with suppress(ValueError):
            name, text = json.loads(line)
            found.pop(name, None)
            if text is not None:
                found[name] = text
    return found


def servers(project: Path) -> list[int]:
    """Processes that have the file as an argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(project / "notes").encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def killed_at(project: Path, seconds: float, *, both: bool) -> int:
    """Kill a measurement so long after its first write; gives how many probes it left."""
    before = (project / "notes").stat().st_size
    running = bench(project)
    until = time.monotonic() + 120
    while (project / "notes").stat().st_size <= before and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(seconds)
    there = servers(project) if both else []
    for pid in (running.pid, *there):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.wait()
    while any(map(alive, servers(project))) and time.monotonic() < until:
        time.sleep(0.01)  # the server ends with who started it
    return len(held(project)) - len(OTHERS)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_after_30_kills_of_the_generator_or_of_both_nothing_is_left(project: Path) -> None:
    rng = np.random.default_rng(11)
    left = [
        killed_at(project, float(rng.uniform(0.0, 0.8)), both=at % 2 == 1)
        for at in range(int(os.environ.get("KILLS", "30")))
    ]
    assert max(left) > 0  # some of them came amid the writes
    last = bench(project)
    assert last.wait(120) == 0
    assert held(project) == OTHERS
    assert not list((project / "cache").rglob("*.ids"))
