"""What the READMEs tell people to type works."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from retrieval_bench.cli import parser
from tests.builders.processes import completed
from tests.cli.project import Command

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
KOREAN = (ROOT / "README.ko.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


COMMANDS = [
    line
    for text in (README, KOREAN)
    for block in blocks(text, "bash")
    for line in block.splitlines()
    if line.strip()
]


MAKE = ("make", "-n", "-o", ".venv/.ready-light")


@pytest.mark.parametrize("line", sorted(set(COMMANDS)))
def test_every_command_is_one_that_exists(line: str) -> None:
    words = shlex.split(line)
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):  # a variable set for this one command
        del words[0]
    if words[0] == "make":
        if shutil.which("make") is None:
            pytest.skip("make is not installed")
        done = completed(*MAKE, *words[1:], cwd=ROOT, check=False)
        assert done.returncode == 0, done.stderr
    else:
        assert words[0] == "retrieval-bench"
        parser().parse_args(words[1:])


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("given", "called"),
    [
        (["A=x", "B=y"], ["--a", "x", "--b", "y"]),
        (["B=y", "REV_A=main"], ["--b", "y", "--retriever", "hybrid", "--rev-a", "main"]),
        (["A=x"], ["--a", "x", "--retriever", "hybrid"]),
        (["RETRIEVER=z", "REV_B=v1"], ["--retriever", "z", "--rev-b", "v1"]),
        # which the command refuses: nothing that was given is left out without a word
        (["A=x", "B=y", "RETRIEVER=z"], ["--a", "x", "--b", "y", "--retriever", "z"]),
    ],
)
def test_make_duet_passes_all_that_it_is_given(given: list[str], called: list[str]) -> None:
    variables = dict(word.split("=") for word in given)
    for words, more in ((given, {}), ([], variables)):  # on the command line, in the environment
        done = completed(*MAKE, "duet", *words, cwd=ROOT, check=True, **more)
        (line,) = [line for line in done.stdout.splitlines() if " duet " in line]
        said = shlex.split(line)
        assert said[said.index("duet") + 1 : said.index("--dataset")] == called


@pytest.mark.slow
def test_the_ten_lines_are_a_retriever(project: Path, run: Command) -> None:
    (block,) = [b for b in blocks(README, "python") if b.startswith("# my_search.py")]
    assert len([line for line in block.splitlines() if line.strip()]) <= 10 + 1
    (project / "my_search.py").write_text(block, encoding="utf-8")
    assert run("bench my_search:MySearch --dataset data --rounds 1") == 0, run.err
    assert "MySearch on data" in run.out


BRIEFLY = """
from functools import partialmethod
from retrieval_bench.measure.protocol import Protocol

Protocol.__init__ = partialmethod(Protocol.__init__, rounds=1, warm_up_s=0.0)
"""
"""Ask each query once, not a thousand calls of an encoder after a warm-up: nothing here looks at
times."""


@pytest.mark.slow
@pytest.mark.dense
def test_the_python_lines_run(tmp_path: Path) -> None:
    (block,) = [
        b for b in blocks(README, "python") if b.startswith("from retrieval_bench import bench")
    ]
    done = completed(sys.executable, "-c", BRIEFLY + block, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "bm25 on science-mini" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Use dense: ")
    assert not list(tmp_path.iterdir()), "nothing is saved unless asked for"
