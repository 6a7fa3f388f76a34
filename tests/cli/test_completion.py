"""The shell asks how a word may go on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.builders.processes import completed


@pytest.mark.skipif(sys.platform == "win32", reason="argcomplete answers on a file descriptor")
def test_a_command_is_completed(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    start = (
        "import os, sys; fd = os.open(sys.argv.pop(), os.O_WRONLY | os.O_CREAT); os.dup2(fd, 8); "
        "from retrieval_bench.cli import command; command()"
    )
    line = "retrieval-bench ba"
    completed(
        sys.executable, "-c", start, str(answer), check=False, _ARGCOMPLETE="1", COMP_LINE=line,
        COMP_POINT=str(len(line)), PATH=os.environ["PATH"],
    )  # fmt: skip
    assert answer.read_text().strip() == "baseline"
