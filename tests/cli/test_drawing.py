"""Pictures are optional: one process draws all of a command, and ends nothing else with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import BrokenDependencyError
from retrieval_bench_pictures import draw
from tests.builders.processes import alive, completed, python, within
from tests.cli.project import Command, saved_runs

BENCH = "bench own.yaml --dataset data --rounds 1 --warm-up 0"
LINE = "retrieval-bench: no {}: the process that draws ended: killed by SIGTRAP; raise `ulimit -v`"

linux = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")


@linux
@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "answer", "what"),
    [
        (BENCH, "own on data: nDCG@10", "pictures"),
        ("compare own.yaml bm25 --dataset data --rounds 1 --warm-up 0", "nDCG@10", "pictures"),
        (
            "load own.yaml --dataset data --clients 1 --duration .2 --warm-up 0",
            "answers a second",
            "picture",
        ),
    ],
)
def test_s1_under_a_limit_on_address_space_only_pictures_are_missing(
    project: Path, line: str, answer: str, what: str
) -> None:
    """S1: V8 reserves 70 GB of address space, and clusters allow less."""
    limited = f"ulimit -v 20000000; exec {sys.executable} -m retrieval_bench {line}"
    done = completed("bash", "-c", limited, cwd=project, check=False)
    assert done.returncode == 0, done.stderr
    assert answer in done.stdout
    assert [text for text in done.stderr.splitlines() if LINE.format(what) in text]
    assert not list(project.rglob("*.svg"))


@linux
@pytest.mark.slow
def test_s1_a_page_and_a_history_without_pictures_are_made(project: Path, run: Command) -> None:
    assert run(f"compare own.yaml bm25 {BENCH.partition(' own.yaml ')[2]} --no-pictures") == 0
    names = " ".join(map(str, saved_runs(project)))
    printed = []
    for words in (f"report {names}", "data history bm25"):
        limited = f"ulimit -v 20000000; exec {sys.executable} -m retrieval_bench {words}"
        done = completed("bash", "-c", limited, cwd=project, check=False)
        assert done.returncode == 0, done.stderr
        printed.append(" ".join(done.stdout.split()))
    assert "no pictures: the process that draws ended: killed by SIGTRAP." in printed[0]
    assert "no picture: the process that draws ended" in printed[1]
    page = (project / "results/report.html").read_text("utf-8")
    assert "This page was made without pictures." in page


def test_s1_one_process_draws_all_pictures_once_figures_are_printed(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []

    def broken(texts: Any) -> list[str]:
        printed.append(sys.stdout.getvalue())  # type: ignore[union-attr]
        assert len(saved_runs(project)) == 2
        raise BrokenDependencyError("it ended", where="here", fix="go on")

    monkeypatch.setattr(draw, "in_a_process", broken)
    assert run("compare own.yaml bm25 --dataset data --rounds 1 --warm-up 0") == 0
    assert len(printed) == 1
    assert "nDCG@10" in printed[0]
    assert run.err.splitlines()[-1] == "retrieval-bench: no pictures: it ended (here); go on"


@pytest.mark.slow
def test_s1_one_process_draws_the_page_and_the_folders_of_its_runs(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    drawing = draw.in_a_process

    def counted(texts: Sequence[str]) -> list[str]:
        asked.append(len(texts))
        return drawing(texts)

    monkeypatch.setattr(draw, "in_a_process", counted)
    assert run("report own.yaml bm25 --dataset data --rounds 1 --warm-up 0") == 0
    assert len(asked) == 1
    assert "<svg" in (project / "results" / "report.html").read_text("utf-8")
    assert all((folder / "pictures" / "latency.svg").is_file() for folder in saved_runs(project))


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("kill -SEGV $$", "ended: killed by SIGSEGV"),
        ("echo told; echo why >&2; exit 3", "ended: exit code 3: why"),
        ("exec sleep 60", "took more than 0.2 s"),
        ("echo no list", "ended: exit code 0: no list"),
        ("exit 0", "ended: exit code 0"),
    ],
)
@linux
def test_what_a_process_of_pictures_can_do_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    if "sleep" in script:
        monkeypatch.setattr(draw, "LONGEST_S", 0.2)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(BrokenDependencyError) as caught:
        draw.in_a_process(["{}"])
    assert caught.value.given == f"the process that draws {why}"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(BrokenDependencyError, match="cannot be started: No such file"):
        draw.in_a_process(["{}"])


@linux
def test_the_process_of_pictures_ends_with_the_one_that_asked(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys\n"
        "child = 'import os, sys, time; from retrieval_bench.measure.parent import end_with; '\n"
        "child += f'print(end_with({os.getpid()}), end_with(1), flush=True); time.sleep(60)'\n"
        "started = subprocess.Popen([sys.executable, '-c', child], stdout=subprocess.PIPE)\n"
        "print(started.pid, started.stdout.readline().decode(), flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = completed(sys.executable, "-c", code, check=False)
    pid, *answers = done.stdout.split()
    assert answers == ["True", "False"]
    assert within(60, lambda: not alive(int(pid)))


def test_drawing_reads_no_module_of_the_users_folder(tmp_path: Path) -> None:
    for name in ("json", "vl_convert", "random"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'mine: {__name__}')")
    code = "import sys; from retrieval_bench_pictures.draw import in_a_process as draw; "
    code += 'sys.path.insert(0, \'\'); print(draw([\'{"mark": "bar", "data": {}}\'])[0][:4])'
    assert python(code, cwd=tmp_path, PYTHONSAFEPATH="1", PYTHONWARNINGS="error") == "<svg"
