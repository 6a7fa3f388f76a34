"""Kills at any moment: what was acknowledged is reported as lost only where it is."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.types import Query
from retrieval_bench_writes import kills as kills_of
from retrieval_bench_writes.journal import Journal, left_before
from retrieval_bench_writes.kills import Killing, Kills, is_ours
from retrieval_bench_writes.probes import PREFIX, endless
from retrieval_bench_writes.study import Seen
from tests.builders import durable_program
from tests.builders.fresh_engine import FreshEngine, RealClock

WRITE: dict[str, Any] = {
    "into": "notes",
    "add": {"put": "{document.id}", "text": "{document.text}"},
    "delete": {"drop": "{document.id}"},
}


def program(path: Path, *how: str) -> list[str]:
    return [sys.executable, "-I", "-S", durable_program.__file__, str(path), *how]


def kill(tmp_path: Path, kills: int, *how: str, shell: bool = False) -> tuple[Kills, Seen]:
    path, rng, seen = tmp_path / "notes", np.random.default_rng(5), Seen()
    path.write_text(json.dumps(["others", "of somebody else"]) + "\n", encoding="utf-8")
    line = program(path, *how)
    line = ["sh", "-c", f"{shlex.join(line)}; true"] if shell else line
    params = {"command": line, "write": WRITE}
    with closing(construct("command", params)) as retriever:
        retriever.search(Query("q", "anything"), 1)
        given: dict[str, Any] = {
            **{
                "writer": retriever,
                "pid": retriever.server_pid,
                "probes": endless(["the moon and the tide"], "k", rng),
            },
            **{"rate": 1.0, "k": 10, "limit_s": 0.1 if how else 10.0, "rng": rng, "seen": seen},
            **{"clock": time.perf_counter, "sleep": time.sleep},
        }
        killing = Killing(**given)
        made = killing.run(kills)
        killing.clean()
        hits = retriever.search(Query("q", "of somebody else"), 100)
        assert list(getattr(hits, "doc_ids", ())) == ["others"]  # and no probe, which has "the"
    return made, seen


@pytest.mark.slow
def test_of_30_kills_nothing_is_lost_that_was_written_before_it_was_acknowledged(
    tmp_path: Path,
) -> None:
    made, seen = kill(tmp_path, 30)
    assert made.kills == 30
    assert (made.lost, made.back, made.undoing.count) == (0, 0, 0)
    assert made.undoing.at_most == pytest.approx(1 - 0.05 ** (1 / made.undoing.n))
    assert made.additions > 100
    assert not seen.left


@pytest.mark.slow
def test_what_was_acknowledged_early_is_lost_and_counted(tmp_path: Path) -> None:
    made, _ = kill(tmp_path, 5, "early")
    assert made.lost > 0
    assert made.lost <= made.additions // 3
    assert 1 <= made.undoing.count <= 5


def test_a_server_behind_a_shell_is_killed_with_it(tmp_path: Path) -> None:
    made, _ = kill(tmp_path, 1, "early", shell=True)
    assert made.lost > 0


@pytest.mark.parametrize("pid", [None, 1, 2**30])
def test_a_kill_that_kills_nothing_is_not_counted(pid: int | None) -> None:
    engine = FreshEngine(RealClock())
    how: dict[str, Any] = {"rate": 1.0, "k": 10, "limit_s": 1.0, "clock": engine.clock}
    how |= {"sleep": engine.clock.sleep, "rng": np.random.default_rng(1), "pid": lambda: pid}
    killing = Killing(writer=engine, probes=endless(["the moon"], "k", how["rng"]), **how)
    with pytest.raises(HarnessError, match="a kill did not end the server"):
        killing.run(2)


def test_a_kill_before_any_acknowledged_write_is_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kills_of, "LONGEST_S", 0.01)
    monkeypatch.setattr(kills_of, "_killed", lambda server: True)
    engine = FreshEngine(RealClock(), fails=lambda kind, n: kind == "add")
    how: dict[str, Any] = {"rate": 1.0, "k": 10, "limit_s": 1.0, "clock": engine.clock}
    how |= {"sleep": engine.clock.sleep, "rng": np.random.default_rng(1)}
    how |= {"pid": itertools.count(100).__next__}
    killing = Killing(writer=engine, probes=endless(["the moon"], "k", how["rng"]), **how)
    made = killing.run(2)
    assert (made.kills, made.undoing.n, made.undoing.at_most) == (2, 0, None)


def test_only_processes_of_this_program_are_ours() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert is_ours(child.pid)
        assert not is_ours(os.getppid())
        assert not is_ours(1)
        child.communicate(b"\n")


def test_ids_stand_in_the_journal_until_nothing_is_left(tmp_path: Path) -> None:
    path, other = tmp_path / "ab-1.ids", tmp_path / "cd-1.ids"
    journal, foreign = Journal(path), Journal(other)
    for name in ("p1", "p2", "p1"):
        journal[name] = f"text of\n{name}"
    foreign["p9"] = "달"
    assert path.read_text("utf-8").count("\n") == 3
    journal.clear()
    journal.close()
    assert not path.exists()
    foreign.close()
    assert other.exists()


def test_the_journal_of_a_measurement_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    """That of one that was killed is taken, once: its lock went with it."""
    path, later = tmp_path / "ab-1.ids", tmp_path / "ab-2.ids"
    code = (
        "import sys; from pathlib import Path; from retrieval_bench_writes.journal import Journal\n"
        f"journal = Journal(Path({str(path)!r})); journal['p1'] = 'a b'; journal['p2'] = '달'\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    line = [sys.executable, "-c", code]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        assert list(left_before(later)) == []
        running.kill()
    taken = left_before(later)
    assert next(taken) == (path, {"p1": "a b", "p2": "달"})
    assert list(left_before(later)) == []
    assert list(taken) == []
    assert [file for file, _ in left_before(later)] == [path]


def test_probes_begin_with_what_says_whose_they_are() -> None:
    made = next(endless(["the moon"], "cafe", np.random.default_rng(0)))
    assert made.id == f"{PREFIX}-cafe-000000"
