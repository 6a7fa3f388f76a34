"""A fresh process: how it starts and ends, what it said last, and its errors here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ContractError, DataError
from retrieval_bench_launches import child
from retrieval_bench_launches.child import described, last_words, rebuilt, started
from tests.builders import some
from tests.builders.processes import alive, within

MODULE = """
import os, subprocess, sys, time
from retrieval_bench_launches.channel import channel

def main(spec):
    say = channel()
    other = subprocess.Popen(["sleep", "600"])
    say({"word": spec["word"], "variable": os.environ["TOLD"], "other": other.pid})
    print("printed")
    os.write(1, "그것\\n".encode())
    say({"order": sys.stdin.readline()})
    time.sleep(600)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "module_of_test_child.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return "module_of_test_child"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="the system knows no groups of processes")
def test_a_process_is_told_what_to_do_and_nothing_of_it_stays(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with started(module, {"word": "그것"}, variables={"TOLD": "it"}, more=True) as process:
        said = some(process.next())
        process.tell({"go": 1})
        assert some(process.next()) == {"order": '{"go": 1}\n'}
        assert process.next(until=0.0) is None
        process.pass_on()
        assert capsys.readouterr().err == "printed\n그것\n"
        assert process.last_words() == "; its last words: printed / 그것"
    assert (said["word"], said["variable"]) == ("그것", "it")
    assert process.process.returncode is not None
    assert within(10, lambda: not alive(said["other"]))
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] in ([], ["__pycache__"])


def test_what_was_printed_long_ago_is_forgotten(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(module, {"word": ""}, variables={"TOLD": ""}) as process:
        some(process.next())
        some(process.next())
        assert process.printed() == "printed\n그것\n"
        monkeypatch.setattr(child, "MOST_PRINTED", 10)
        assert process.running()
        assert (process.folder / "printed").stat().st_size == 0
        assert process.printed() == ""


def test_without_more_to_come_stdin_is_at_its_end(module: str) -> None:
    with started(module, {"word": ""}, variables={"TOLD": ""}) as process:
        some(process.next())
        assert some(process.next()) == {"order": ""}


def test_a_module_that_is_not_there_ends_the_process() -> None:
    with started("no_such_module", {}) as process:
        assert process.next() is None
        assert process.process.returncode == 1
        assert "No module named 'no_such_module'" in process.ended()
        process.tell({"nobody": "hears it"})


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
