"""Documents that programs of users read: JSON and CSV of reading commands to the byte; what
measuring commands print is as the schemas say. See ``frozen/README.md``."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest

from retrieval_bench.cli import main
from retrieval_bench.cli.console import BAD_INPUT
from retrieval_bench_duet import controller
from tests.builders.fake_sides import FakeSides
from tests.builders.frozen import ALSO_CSV, HERE, MEASURING, READING
from tests.builders.json_schemas import faults, unnoticed
from tests.builders.memory_store import add_memory_store
from tests.builders.own_irds import own_irds

UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

RUNS = ("bm25", "words", "hybrid", "flaky", "launches", "other")
HYBRID = """
name: hybrid
target: hybrid
params:
  legs: [{name: bigrams, target: bm25}, {name: words, target: bm25, params: {k1: 0.9}}]
  depth: 20
"""
POLICY = "limits: {p50: 5%, nDCG@5: -0.01}\n"


@pytest.fixture
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the saved runs and files stand; the runs also where `history` looks for them."""
    for name in RUNS:
        shutil.copytree(HERE / "runs" / name, here / name)
        shutil.copytree(HERE / "runs" / name, here / "results" / "runs" / name)
    shutil.copytree(HERE / "files", here, dirs_exist_ok=True)
    monkeypatch.setenv("BENCH_DATA", str(here))
    return here


def kept(path: Path, text: str) -> None:
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "form"), [*((name, "json") for name in READING), *((name, "csv") for name in ALSO_CSV)]
)
def test_what_reading_commands_print(
    name: str, form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*READING[name], "--format", form]) != BAD_INPUT
    printed = capsys.readouterr().out.replace(str(folder), "FOLDER")
    path = HERE / "expected" / f"{name}.{form}"
    if not path.exists():
        kept(path, printed)
    elif UPDATE and _rounded(printed) != _rounded(path.read_text("utf-8")):
        path.write_text(printed, encoding="utf-8")
    else:
        assert _rounded(printed) == _rounded(path.read_text("utf-8"))


@pytest.mark.parametrize("name", [name for name in READING if name not in ALSO_CSV])
@pytest.mark.usefixtures("folder")
def test_the_csv_of_reading_commands_has_rows_as_wide_as_their_header(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*READING[name], "--format", "csv"]) != BAD_INPUT
    tables = capsys.readouterr().out.split("\n\n")
    for table in tables:
        rows = [row for row in csv.reader(table.splitlines()) if not row[0].startswith("# ")]
        assert len({len(row) for row in rows}) <= 1


@contextmanager
def prepared(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a command needs besides, while it works."""
    (folder / "hybrid.yaml").write_text(HYBRID, encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "squad").mkdir()
    (folder / "gold.json").rename(folder / "squad" / "test.json")
    if name == "loads":
        for words in (MEASURING["load"], (*MEASURING["load"], "--set", "k1=1.5")):
            main([*words])
    first = {"regress": MEASURING["baseline"], "verify": ("report", "bm25", "words")}.get(name)
    if first is not None:
        main([*first])
    if name in ("pool", "status", "started", "imported", "exported"):
        main([*MEASURING["pool"]])
        main(["label", "import", "anna.txt", "--who", "anna"])
    if name in ("pool", "status", "exported"):
        main([*MEASURING["imported"]])
    if name == "verify":  # of a page on which a figure was changed
        page = folder / "results" / "report.html"
        text = page.read_text("utf-8").replace('<td class="n">0.', '<td class="n">1.', 1)
        page.write_text(text, encoding="utf-8")
    if name == "selftest":  # half a minute of real processes
        monkeypatch.setattr(controller, "SideProcess", FakeSides())
        short = partial(controller.DuetProtocol, seconds=1e-9, warm_up_s=1e-9)
        monkeypatch.setattr("retrieval_bench_duet.selftest.DuetProtocol", short)
        monkeypatch.setattr("retrieval_bench_duet.selftest.REPLAYS", 20)
    if name.startswith("loaded"):
        add_memory_store(monkeypatch)
    with own_irds(folder, monkeypatch) if name.startswith("fetch") else nullcontext():
        yield


def _rounded(text: str) -> str:
    """A document with its numbers to 12 digits: in the last ones processors differ."""
    return re.sub(r"-?\d+\.\d+(e[+-]\d+)?", lambda found: f"{float(found[0]):.12g}", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURING)
def test_what_measuring_commands_print_is_as_the_schema_says(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with prepared(name, folder, monkeypatch):
        capsys.readouterr()
        main([*MEASURING[name], "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert ("error" in document) == (name == "error"), document
    kind = name.partition("-")[0]
    assert not faults(document, kind)
    assert not unnoticed(document, kind)
