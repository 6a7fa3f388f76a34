"""What leaves code that is not ours becomes an error with a remedy."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from retrieval_bench.core.calls.foreign import (
    WorkingFolder,
    folder_kept,
    foreign_code,
    how_ended,
    innermost,
    message_of,
)
from retrieval_bench.core.errors import ConfigError, ContractError
from tests.builders.processes import python


class PanicError(BaseException):
    """Stands for a panic of a Rust extension."""


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


RAISED = (
    RuntimeError("boom"),
    SystemExit(0),
    GeneratorExit(),
    StopIteration(3),
    asyncio.CancelledError("gone"),
    PanicError("panicked"),
    UnprintableError(),
    MemoryError(),
)


@pytest.mark.parametrize("problem", RAISED, ids=lambda one: type(one).__name__)
def test_whatever_leaves_is_translated_and_keeps_its_cause(problem: BaseException) -> None:
    with (
        pytest.raises(ContractError) as raised,
        foreign_code(lambda one: ContractError(f"failed with {message_of(one)}")),
    ):
        raise problem
    assert type(problem).__name__ in raised.value.given
    assert raised.value.__cause__ is problem


def test_errors_of_ours_and_ctrl_c_pass() -> None:
    for problem in (ConfigError("k = 0"), KeyboardInterrupt()):
        with (
            pytest.raises(type(problem)) as raised,
            foreign_code(lambda one: ContractError("translated")),
        ):
            raise problem
        assert raised.value is problem


@pytest.mark.slow
def test_a_long_message_is_cut_and_says_how_long_it_was() -> None:
    text = message_of(RuntimeError("x" * 50_000_000))
    assert len(text) < 3_000
    assert text.endswith("(50,000,000 characters)")


def test_where_it_was_raised_is_the_user_s_line_and_not_the_library_s() -> None:
    with pytest.raises(RuntimeError) as raised:
        raise RuntimeError("here")
    assert innermost(raised.value).startswith(__file__)
    assert innermost(RuntimeError("never raised")) == ""
    with pytest.raises(json.JSONDecodeError) as in_library:
        json.loads("no json")
    assert innermost(in_library.value).startswith(f"{__file__}:")


def test_a_fork_that_returns_ends_and_the_parent_goes_on() -> None:
    code = (
        "import os\n"
        "from retrieval_bench.core.calls.foreign import foreign_code\n"
        "with foreign_code(lambda problem: RuntimeError()):\n"
        "    if os.fork():\n"
        "        os.wait()\n"
        "print('once', flush=True)\n"
    )
    assert python(code) == "once"


def test_each_side_stands_in_its_own_folder(here: Path) -> None:
    (here / "theirs").mkdir()
    folder = WorkingFolder()
    with folder.lent():
        os.chdir("theirs")
    assert Path.cwd() == here
    with folder.lent():
        assert Path.cwd() == here / "theirs"
    assert folder.place == here / "theirs"
    with folder_kept():
        os.chdir("theirs")
    assert Path.cwd() == here


def test_a_folder_that_is_gone_stops_nothing(here: Path) -> None:
    folder = WorkingFolder()
    with folder.lent():
        Path("gone").mkdir()
        os.chdir("gone")
        (here / "gone").rmdir()
    assert Path.cwd() == here


def test_how_a_process_ended() -> None:
    assert how_ended(0) == "exit code 0"
    assert how_ended(-11) == "killed by SIGSEGV"
    assert "lack of memory" in how_ended(-9)
