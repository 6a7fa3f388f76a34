"""A user's project in a temporary folder: data, a retriever of their own, and the command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.cli import main
from retrieval_bench.core.wrapping import wrapped
from tests.builders.files import beir, save_all

OWN = '''
from retrieval_bench import Retriever, Ranking


class Overlap(Retriever):
    """Counts shared words."""

    def __init__(self, *, boost: float = 1.0, fail_on: str = "") -> None:
        self.boost, self.fail_on, self.texts = boost, fail_on, None

    def index(self, documents):
        self.texts = {d.id: set(d.contents.lower().split()) for d in documents}

    def search(self, query, k):
        if self.fail_on and self.fail_on in query.text:
            raise RuntimeError(f"cannot answer {query.id}")
        words = set(query.text.lower().split())
        scores = {i: self.boost * len(words & t) for i, t in self.texts.items()}
        hits = sorted(((i, s) for i, s in scores.items() if s), key=lambda h: (-h[1], h[0]))
        return hits[:k]


class Foreign(Overlap):
    """Returns ids that no corpus has."""

    def search(self, query, k):
        return [("nowhere", 1.0)]


class Broken(Overlap):
    """Cannot index."""

    def index(self, documents):
        raise ConnectionError("no route to the engine")


def answer(text, k):
    return ["d1", "d2"][:k]


def not_a_retriever(**params):
    return {"hits": []}


def not_a_factory(documents, k):
    return {"hits": []}
'''

DOCUMENTS = {
    "d1": "red apples and pears",
    "d2": "blue whales",
    "d3": "green apples",
    "문서": "사과 배",
}
QUERIES = {"q1": "red apples", "q2": "whales", "q3": "green things", "질문": "사과"}
QRELS = {"q1": {"d1": 2, "d3": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}, "질문": {"문서": 1}}

QUICK = ("--rounds", "1", "--no-pictures", "--warm-up", "0")
"""Each query is asked once: of tests that do not look at times."""
ONCE = "--dataset many --no-pictures --rounds 1 --warm-up 0"
"""Of the queries of ``many``, likewise."""


def make_project(folder: Path) -> Path:
    """A BEIR folder ``data`` and a module ``own.py`` in ``folder``."""
    judged = [(query, doc, grade) for query, of in QRELS.items() for doc, grade in of.items()]
    beir(folder / "data", DOCUMENTS, QUERIES, judged)
    config = "name: own\ntarget: own.py:Overlap\n"
    return save_all(folder, {"own.py": OWN, "own.yaml": config})


def saved_runs(folder: Path) -> list[Path]:
    """The folders of runs that were saved in ``folder``."""
    return sorted((folder / "results" / "runs").glob("[!.]*"))


def is_too_wide(line: str) -> bool:
    """Whether a line is wider than 100 columns and could be broken: no row of a table, nothing to
    be pasted, and neither a command nor a word that is as wide alone."""
    return line not in wrapped(line).split("\n") and re.search(r"\S {2,}\S", line) is None


def _for_programs(line: str, words: Sequence[str]) -> bool:
    typed = [*shlex.split(line), *words]
    if {"--format", "--debug", "--help"} & {*typed} or len(typed) < 2:  # help: a line an option
        return True
    return typed[-1:] == ["tutorial"] or typed[:2] == ["data", "schema"]


class Command:
    """Runs the command line in this process and keeps what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = ""
        self.err = ""

    def __call__(self, line: str = "", *words: str) -> int:
        """Run ``line``, which is split as a shell does, with further words as they are."""
        try:
            code = main([*shlex.split(line), *words])
        except SystemExit as stop:  # argparse
            code = int(stop.code or 0)
        self.out, err = self._capsys.readouterr()
        too_wide = [line for line in (self.out + err).splitlines() if is_too_wide(line)]
        assert not too_wide or _for_programs(line, words), too_wide
        self.err = re.sub(r"\n {4}(?=\S)", " ", err)  # what was wrapped
        return code

    def json(self, line: str, *words: str, code: int = 0) -> Any:
        """Give the whole document that ``--format json --full`` prints."""
        given = self(line, *words, "--format", "json", "--full")
        assert given == code, f"exit code {given}: {self.err}"
        return json.loads(self.out)

    def refused(self, line: str, *words: str) -> str:
        """Give what bad input is told: exit code 2, nothing on stdout, and no traceback."""
        given = self(line, *words)
        assert (given, self.out) == (2, ""), f"exit code {given}: {self.out}{self.err}"
        assert "Traceback" not in self.err
        return self.err

    @property
    def unwrapped(self) -> str:
        """What was printed to stdout, a blank between all words."""
        return " ".join(self.out.split())
