"""A fresh process: how it starts and ends, what it said last, and its errors here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ContractError, DataError
from retrieval_bench.measure.child import described, last_words, rebuilt, started
from tests.builders.processes import alive, within

MODULE = """
import os, subprocess, time

def main(spec):
    other = subprocess.Popen(["sleep", "600"])
    os.write(1, f"{spec['word']} {os.environ['TOLD']} {other.pid}".encode())
    time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="the system knows no groups of processes")
def test_a_process_is_told_what_to_do_and_nothing_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_test_child.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    said = tmp_path / "said"
    with (
        said.open("wb") as stdout,
        started(
            "module_of_test_child", {"word": "그것"}, stdout=stdout, variables={"TOLD": "it"}
        ) as process,
    ):
        while said.stat().st_size == 0:
            assert process.poll() is None
    *words, other = said.read_text(encoding="utf-8").split()
    assert words == ["그것", "it"]
    assert process.returncode is not None
    assert within(10, lambda: not alive(int(other)))


def test_a_module_that_is_not_there_ends_the_process() -> None:
    with started(
        "no_such_module", {}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.wait(60) == 1


def test_last_words_are_the_last_lines_or_a_fatal_error() -> None:
    assert last_words(" \n\n") == ""
    assert last_words("\n".join("abcdefg")) == "; its last words: c / d / e / f / g"
    fatal = "Fatal Python error: Aborted\n\nCurrent thread:\n  File x"
    text = "\n".join(["before", fatal, *"abcdefg"])
    assert last_words(text).startswith("; its last words: Fatal Python error: Aborted / Current")
    assert len(last_words("x" * 10_000)) < 600


def test_no_secret_is_among_the_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPOT_KEY", "first line\nsecond line")
    assert last_words("no entry with first line\nsecond line") == (
        "; its last words: no entry with ${DEPOT_KEY}"
    )


def test_an_error_keeps_its_parts_on_the_way() -> None:
    problem = DataError("그것", where="here", accepted="x", fix="do", faults=["a", "b"])
    again = rebuilt(described(problem), ["launch 2 of 3"])
    assert type(again) is DataError
    assert again.faults == ("a", "b")
    assert (again.given, again.where) == ("그것", "here; launch 2 of 3")
    assert (again.accepted, again.fix) == ("x", "do")

    class OwnError(ContractError):
        """A subclass that the parent does not know."""

    assert type(rebuilt(described(OwnError("given")))) is ContractError
