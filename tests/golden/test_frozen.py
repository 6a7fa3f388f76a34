"""Documents that programs of users read: JSON and CSV of reading commands to the byte, keys and
types of what measuring commands print. See ``frozen/README.md``."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.cli import main

HERE = Path(__file__).parent / "frozen"
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

RUNS = ("bm25", "words", "hybrid", "flaky", "launches", "other")
READING: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "bm25", "words", "hybrid", "--tests", "t", "wilcoxon"),
    "compare-failed": ("compare", "bm25", "flaky", "--margin", "0.05"),
    "compare-unlike": ("compare", "bm25", "launches"),
    "compare-baseline": ("compare", "bm25", "words", "other", "hybrid", "--baseline", "words"),
    "compare-slices": ("compare", "bm25", "words", "--slices", "length", "relevant"),
    "diff": ("diff", "bm25", "words"),
    "diff-hybrid": ("diff", "hybrid", "--queries", "5"),
    "diff-other": ("diff", "words", "hybrid", "--sort", "better", "--queries", "all"),
    "evaluate": ("evaluate", "--run", "hybrid", "--dataset", "science-ko-mini", "--per-query",
                 "--metrics", "nDCG@10", "AP", "RR", "RBP(p=0.8)", "Judged@10"),
    "evaluate-scienceqa": ("evaluate", "--run", "bm25/run.trec", "--dataset", "science-ko-mini",
                           "--convention", "scienceqa"),
    "audit": ("audit", "--dataset", "science-ko-mini", "bm25/run.trec", "words/run.trec",
              "hybrid/run.trec", "--k", "5"),
    "reader": ("reader", "--gold", "gold.json", "--predictions", "answers.json", "--per-question"),
    "outcomes": ("outcomes", "--records", "labels.jsonl"),
    "history": ("history", "--no-pictures"),
    "history-one": ("history", "--retriever", "bm25", "--no-pictures"),
}  # fmt: skip

QUICK = ("--dataset", "science-ko-mini", "--k", "5")
ONCE = ("--rounds", "1", "--warm-up", "0", "--no-pictures")
MEASURING: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "bench": ("bench", "--retriever", "hybrid.yaml", *QUICK, *ONCE),
    "bench-dry": ("bench", "--retriever", "bm25", *QUICK, "--dry-run"),
    "bench-launches": ("bench", "--retriever", "bm25", *QUICK, *ONCE, "--launches", "1"),
    "bench-cold": ("bench", "--retriever", "bm25", *QUICK, *ONCE, "--cold", "1"),
    "bench-tutorial": ("bench", "--retriever", "bm25", *QUICK, "--protocol", "tutorial"),
    "compare": ("compare", "--retrievers", "bm25", "hybrid.yaml", *QUICK, *ONCE),
    "report": ("report", "--retrievers", "bm25", "hybrid.yaml", *QUICK, *ONCE),
    "tune": ("tune", "--retriever", "bm25", "--grid", "k1=[0.9,1.5]", "--folds", "2", *QUICK),
    "baseline": (
        "baseline",
        "--retriever",
        "bm25",
        *QUICK,
        "--min-calls",
        "40",
        "--policy",
        "policy.yaml",
    ),
    "regress": (
        "regress",
        "--retriever",
        "bm25",
        *QUICK,
        "--duet",
        "never",
        "--policy",
        "policy.yaml",
    ),
    "submit": ("submit", "--retriever", "bm25", *QUICK),
    "qa": ("qa", "--retriever", "bm25", "--reader", "answers.json", "--dataset", "squad"),
}

HYBRID = """
name: hybrid
target: hybrid
params:
  legs: [{name: bigrams, target: bm25}, {name: words, target: bm25, params: {k1: 0.9}}]
  depth: 20
"""
POLICY = "limits: {p50: 5%, nDCG@5: -0.01}\n"


@pytest.fixture
def folder(here: Path) -> Path:
    """Where the saved runs and files stand; the runs also where `history` looks for them."""
    for name in RUNS:
        shutil.copytree(HERE / "runs" / name, here / name)
        shutil.copytree(HERE / "runs" / name, here / "results" / "runs" / name)
    shutil.copytree(HERE / "files", here, dirs_exist_ok=True)
    return here


def kept(path: Path, text: str) -> None:
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("name", READING)
def test_what_reading_commands_print(
    name: str, form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*READING[name], "--format", form])
    printed = capsys.readouterr().out.replace(str(folder), "FOLDER")
    path = HERE / "expected" / f"{name}.{form}"
    if form == "csv":
        kept(path, printed)
    elif UPDATE and _rounded(printed) != _rounded(path.read_text("utf-8")):
        path.write_text(printed, encoding="utf-8")
    else:
        assert _rounded(printed) == _rounded(path.read_text("utf-8"))


def _rounded(text: str) -> str:
    """A document with its numbers to 12 digits: in the last ones processors differ."""
    return re.sub(r"-?\d+\.\d+(e[+-]\d+)?", lambda found: f"{float(found[0]):.12g}", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURING)
def test_the_keys_of_what_measuring_commands_print(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "hybrid.yaml").write_text(HYBRID, encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "squad").mkdir()
    (folder / "gold.json").rename(folder / "squad" / "test.json")
    if name == "regress":
        main([*MEASURING["baseline"]])
        capsys.readouterr()
    main([*MEASURING[name], "--format", "json"])
    found = dict(sorted(paths_of(json.loads(capsys.readouterr().out))))
    path = HERE / "keys" / f"{name}.txt"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{key}: {kind}\n" for key, kind in found.items()), "utf-8")
    frozen = dict(line.rsplit(": ", 1) for line in path.read_text("utf-8").splitlines())
    assert list(found) == list(frozen)
    # What may be missing is null in one run and there in the next.
    differ = {key for key in found if NULL not in (found[key], frozen[key])}
    assert {key: found[key] for key in differ} == {key: frozen[key] for key in differ}


_MAPS = ("metrics", "queries", "packages", "memory_limits", "values", "parameters", "params")
"""Keys below which names are data."""


NULL = "null"


def paths_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every key of a document with the type of its value, however deep."""
    if isinstance(value, dict):
        inner = path.rpartition(".")[2]  # of a list of records the keys are ours
        for key, item in value.items():
            yield from paths_of(item, f"{path}.{'*' if inner in _MAPS else key}".lstrip("."))
    elif isinstance(value, list):
        yield path, "list"
        if path.rpartition(".")[2] == "warnings":  # there may be none the next time
            assert all(set(item) == {"code", "text"} for item in value)
            return
        for item in value:  # of one of plain values it may be empty the next time
            if isinstance(item, dict | list):
                yield from paths_of(item, f"{path}[]")
    elif value is None:
        yield path, NULL
    else:
        kinds = {str: "text", bool: "truth"}
        yield path, kinds.get(type(value), "number")
