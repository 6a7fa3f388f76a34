"""The programs of the guide: as short as it says, and all languages find the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.plugins import construct
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.programs.command import Command
from tests.builders.guide import guide_page

PROGRAMS = dict(
    re.findall(
        r"<!-- file: (search\.\w+) -->\n```\w+\n(.*?)```", guide_page("any-language.md"), re.DOTALL
    )
)
RUNS = {"search.mjs": ["node", "search.mjs"], "search.sh": ["sh", "search.sh"]}
NEEDS = {"search.mjs": "node", "search.sh": "jq", "search.rs": "rustc", "search.go": "go"}
COMPILES = {
    "search.rs": ["rustc", "-O", "search.rs"],
    "search.go": ["go", "build", "-o", "search", "search.go"],
}
DOCUMENTS = [
    Document("d1", "Annual leave: 25 days a year.\r\nAsk early.", "Holidays"),
    Document("d2", 'Sick leave needs a "note"\tfrom a doctor \\', "Illness"),
    Document("d3", "연차 휴가는 25일이다.", "휴가"),
    Document("d4", "Nothing of that kind, \"k\":7 and 'text'", "", {"tenant": "a", "k": 3}),
    Document("문서 5", "Leave, leave and leave again", "Leave"),
]
FOUND = {
    "leave": ["d1", "d2", "문서 5"],
    "annual LEAVE days": ["d1", "d2", "문서 5"],
    "연차": ["d3"],
    '"note" \\ early\n': ["d1", "d2"],
    "ask": ["d1"],
    "r": [],
    "unheard": [],
}


QUIET: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def _tool(name: str) -> str:
    given = shutil.which(NEEDS[name])
    # Rust's own installer puts it where only login shells look.
    usual = Path.home() / ".cargo" / "bin" / "rustc"
    if given is None and name == "search.rs" and usual.is_file():
        given = str(usual)
    # A name of Rust's installer may stand there without a compiler behind it.
    works = given and (name != "search.rs" or not subprocess.call([given, "--version"], **QUIET))
    if not given or not works:
        pytest.skip(f"needs {NEEDS[name]}")
    return given


@pytest.fixture(params=sorted(NEEDS))
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Command]:
    """Each of the guide's, with its documents."""
    name: str = request.param
    tool = _tool(name)
    (tmp_path / name).write_text(PROGRAMS[name], encoding="utf-8")
    if name in COMPILES:
        command = [tool, *COMPILES[name][1:]]
        home = {"GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off", "GOTELEMETRY": "off"}
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
    given: Any = RUNS.get(name, ["./search"])
    params = {"command": given, "cwd": str(tmp_path), "documents": "stdin"}
    retriever = construct("command", params)
    assert isinstance(retriever, Command)
    try:
        retriever.index(DOCUMENTS)
        yield retriever
    finally:
        retriever.close()


def test_the_guide_has_programs_in_four_languages_of_25_lines_at_most() -> None:
    assert set(PROGRAMS) == set(NEEDS)
    assert [name for name, text in PROGRAMS.items() if text.count("\n") > 25] == []


@pytest.mark.slow
def test_programs_in_all_languages_find_the_same(program: Command) -> None:
    for text, expected in FOUND.items():
        ranking = program.search(Query("질문 1", text, metadata={"k": 1, "title": "year"}), 10)
        assert sorted(ranking.doc_ids) == expected, text
        assert ranking.scores is None or sorted(ranking.scores, reverse=True) == ranking.scores
    assert program.search(Query("q", "annual leave days"), 1).doc_ids == ["d1"]
    (score,) = program.search(Query("q", "연차"), 5).scores or ()
    assert score == pytest.approx(1.791759469228055, abs=1e-12)  # ln(1 + 5 / 1)
    assert len(program.search(Query("q", "leave"), 2)) == 2
