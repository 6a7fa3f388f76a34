"""Documents that programs of users read: JSON and CSV of reading commands to the byte; what
measuring commands print is as the schemas say. See ``frozen/README.md``."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pytest

from retrieval_bench.cli import main
from retrieval_bench.cli.console import BAD_INPUT
from retrieval_bench.runs.records import to_json
from tests.builders.frozen import ALSO_CSV, HERE, MEASURING, READING, prepared, put_files
from tests.builders.json_schemas import faults, unnoticed

UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))


@pytest.fixture
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the saved runs and files stand; the runs also where `history` looks for them."""
    put_files(here)
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
    assert main([*READING[name], "--full", "--format", form]) != BAD_INPUT
    printed = capsys.readouterr().out.replace(str(folder), "FOLDER")
    if form == "json":
        assert printed.count("\n") == 1, "one line where there is no terminal"
        printed = to_json(json.loads(printed)) + "\n"
    path = HERE / "expected" / f"{name}.{form}"
    if not path.exists():
        kept(path, printed)
    elif UPDATE and _rounded(printed) != _rounded(path.read_text("utf-8")):
        path.write_text(printed, encoding="utf-8")
    else:
        assert _rounded(printed) == _rounded(path.read_text("utf-8"))


@pytest.mark.parametrize("name", [name for name in READING if "export" not in name])
@pytest.mark.usefixtures("folder")
def test_short_documents_are_as_the_schemas_say_and_hold_what_the_whole_ones_hold(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = []
    for full in ([], ["--full"]):
        main([*READING[name], *full, "--format", "json"])
        documents.append(json.loads(capsys.readouterr().out))
    short, whole = documents
    assert not faults(short, name.partition("-")[0])
    assert set(short) <= set(whole)
    assert len(json.dumps(short)) <= len(json.dumps(whole))
    assert "values" in whole or name.partition("-")[0] != "diff"
    assert "values" not in short


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
