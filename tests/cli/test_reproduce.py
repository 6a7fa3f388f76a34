"""The command ``reproduce``, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main

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
    assert main(["reproduce", "--paper", paper(tmp_path, value)]) == code
    out = capsys.readouterr().out
    assert f"values: 1 {status}" in out


def test_nothing_measured_exits_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BENCH_DATA")
    assert main(["reproduce", "--paper", paper(tmp_path, 0.5)]) == 3
    captured = capsys.readouterr()
    assert "NOT MEASURED" in captured.out
    assert "nothing could be measured" in captured.err


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = paper(tmp_path, 0.5)
    assert main(["reproduce", "--paper", name, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["papers"][name]["outcomes"][0]["status"] == "OK"


def test_an_unknown_paper_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--paper", "mala2024"]) == 2
    assert "did you mean mala2025" in capsys.readouterr().err
