"""The commands ``outcomes`` and ``reproduce``, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrieval_bench.cli import main

RECORDS = [
    {
        "id": "1",
        "source": "drop",
        "team": "A",
        "outcomes": {"bm25": "correct", "hybrid": "correct"},
    },
    {
        "id": "2",
        "source": "drop",
        "team": "A",
        "outcomes": {"bm25": "rejected", "hybrid": "correct"},
    },
    {"id": "3", "source": "covid", "outcomes": {"bm25": "hallucinated", "hybrid": "correct"}},
]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), encoding="utf-8")
    return path


def test_tables_of_rates_groups_and_differences(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "outcomes", "--records", str(records)]) == 0
    out = capsys.readouterr().out
    assert "records.jsonl: outcomes of answers, in percent" in out
    assert "By source, in percent" in out
    assert "\n  hybrid - bm25 " in out


def test_json_is_one_document(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "outcomes", "--records", str(records), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["records"] == str(records)
    assert [group["label"] for group in document["by"][0]["groups"]] == ["drop", "covid"]
    assert document["all"]["systems"][1]["accuracy"]["value"] == 1


def test_markdown_and_fields(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["score", "outcomes", "--records", str(records), "--by", "team", "source"]
    assert main([*arguments, "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert "**By team, in percent**" in out
    assert "**By source, in percent**" in out


def test_faults_exit_with_2(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "outcomes", "--records", str(records), "--by", "sauce"]) == 2
    assert "did you mean source" in capsys.readouterr().err
    records.write_text('{"id": "1", "outcomes": {"a": "good"}}\n', encoding="utf-8")
    assert main(["score", "outcomes", "--records", str(records)]) == 2
    assert "records.jsonl:1" in capsys.readouterr().err
