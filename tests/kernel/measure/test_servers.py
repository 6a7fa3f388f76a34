"""The cost of a named server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import bench
from retrieval_bench.core.config import validate
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.measure.machine.noise import NoiseRecorder, Usage
from retrieval_bench.measure.machine.servers import Server, server_use
from retrieval_bench.measure.protocol import Protocol

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

LISTENING = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def listening() -> Iterator[tuple[int, int]]:
    """Number and port of another process."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTENING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.kill()


def server(**given: Any) -> Server:
    return validate(Server, given, where="test")


def test_a_process_is_found_by_the_port_it_listens_at(listening: tuple[int, int]) -> None:
    pid, port = listening
    assert server(port=port).find() == pid
    assert server(pid=pid).find() == pid
    use = server_use(pid)
    assert use.processes == 1
    assert use.memory_bytes is not None
    assert use.memory_bytes > 1_000_000
    assert use.cpu_s >= 0


def test_what_is_no_server_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConfigError, match=f"nothing listens at port {port}"):
        server(port=port).find()
    with pytest.raises(ConfigError, match="no process 99999999"):
        server(pid=99999999).find()
    for given in ({}, {"pid": 1, "port": 2}, {"port": 0}, {"host": "x"}):
        with pytest.raises(ConfigError):
            server(**given)


def test_a_server_that_is_gone_has_used_nothing() -> None:
    assert server_use(99999999).processes == 0


def _booked(root: Path, busy: int, pid: int, ticks: int) -> None:
    """A machine whose core was busy for so many ticks, of which the server used some."""
    process = root / "proc" / str(pid)
    (process / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
    (process / "task" / str(pid) / "children").write_text("")
    fields = ["S", *["0"] * 10, str(ticks), "0", "0", "0", *["0"] * 30]
    (process / "stat").write_text(f"{pid} (my server) {' '.join(fields)}\n")
    (process / "statm").write_text("100 50 0 0 0 0 0\n")
    (root / "proc/stat").write_text(f"cpu {busy} 0 0 1000 0 0 0 0\n")


def test_its_work_is_not_that_of_other_processes(tmp_path: Path) -> None:
    recorder = NoiseRecorder(
        root=tmp_path, clock=lambda: 0, usage=lambda: Usage(cpu_s=0.0), servers=[7]
    )
    _booked(tmp_path, 1000, 7, 100)
    recorder.start()
    _booked(tmp_path, 2000, 7, 900)
    record = recorder.stop()
    assert record["servers"]["7"] == {"processes": 1, "cpu_s": 8.0, "memory_bytes": 50 * 4096}
    assert record["cores"]["servers"] == pytest.approx(0.8)
    assert record["cores"]["others"] == pytest.approx(0.2)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_run_says_what_its_server_cost(listening: tuple[int, int]) -> None:
    pid, port = listening
    Path("answering.py").write_text("def answer(text, k):\n    return ['phy-001']\n")
    given = {
        "target": "callable",
        "params": {"function": "answering.py:answer"},
        "server": {"port": port},
    }
    result = bench(given, "science-mini", k=5, protocol=Protocol(rounds=1, warm_up_s=0.0))
    found = result.run.summary.as_dict()["server"]
    assert (found["pid"], found["processes"]) == (pid, 1)
    assert found["memory_bytes"] > 1_000_000
    assert found["cpu_ms_per_call"] >= 0
    assert "server memory MB" in str(result.details)
    with pytest.raises(ConfigError, match="pid or port"):
        bench({**given, "server": {"pid": 1, "port": 2}}, "science-mini")
    assert os.getpid() != pid
