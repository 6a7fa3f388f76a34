"""The command ``reproduce``, as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from retrieval_bench.cli import main

PAPER = """
title: A paper
url: https://example.org
outcomes:
  - {name: a, source: page 3, records: records.jsonl, system: a, values: {accuracy: VALUE}}
"""


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        '{"id": "1", "outcomes": {"a": "correct"}}',
        '{"id": "2", "outcomes": {"a": "rejected"}}',
    ]
    (tmp_path / "records.jsonl").write_text("\n".join(records), encoding="utf-8")
    monkeypatch.setenv("BENCH_DATA", str(tmp_path))


def paper(tmp_path: Path, value: float) -> str:
    path = tmp_path / "paper.yaml"
    path.write_text(PAPER.replace("VALUE", str(value)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("value", "code", "status"), [(0.5, 0, "OK"), (0.505, 0, "CLOSE"), (0.6, 1, "FAIL")]
)
def test_the_exit_code_says_whether_a_number_was_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: float, code: int, status: str
) -> None:
    assert main(["lab", "reproduce", "--paper", paper(tmp_path, value)]) == code
    out = capsys.readouterr().out
    assert f"Values: 1 {status}." in out


def test_nothing_measured_exits_with_4_and_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = paper(tmp_path, 0.5)
    (tmp_path / "records.jsonl").unlink()
    assert main(["lab", "reproduce", "--paper", name]) == 4
    captured = capsys.readouterr()
    assert "Values: 1 NOT MEASURED." in captured.out
    assert f"nothing could be measured: the data are not in {tmp_path}" in captured.err
    monkeypatch.delenv("BENCH_DATA")
    assert main(["lab", "reproduce", "--paper", name]) == 4
    captured = capsys.readouterr()
    assert "records.jsonl" in captured.out
    assert "BENCH_DATA=path/to/data" in captured.err


def test_all_files_together_have_a_summary_that_fits_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [paper(tmp_path, 0.5), str(tmp_path / "other.yaml")]
    Path(names[1]).write_text(PAPER.replace("VALUE", "0.6"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["lab", "reproduce", "--paper", "paper.yaml", "other.yaml"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"paper\.yaml +1 +0 +0 +0 +OK", out)
    assert re.search(r"other\.yaml +0 +0 +1 +0 +FAIL", out)
    assert max(map(len, out.splitlines())) <= 80


def test_without_data_every_file_is_listed_with_what_it_wants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BENCH_DATA")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["lab", "reproduce"]) == 4
    out = capsys.readouterr().out
    for wanted in ("scifact", "beir/scifact", "trec-eval", "fusion", "mala2025"):
        assert wanted in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = paper(tmp_path, 0.5)
    assert main(["lab", "reproduce", "--paper", name, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["papers"][name]["outcomes"][0]["status"] == "OK"


def test_an_unknown_paper_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "reproduce", "--paper", "mala2024"]) == 2
    assert "did you mean mala2025" in capsys.readouterr().err
