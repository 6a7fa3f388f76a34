"""The command ``outcomes``, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.project import Command

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


@pytest.fixture(autouse=True)
def records(here: Path) -> Path:
    path = here / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), encoding="utf-8")
    return path


def test_tables_of_rates_groups_and_differences(run: Command) -> None:
    assert run("score outcomes --records records.jsonl -v") == 0
    assert "records.jsonl: outcomes of answers, in percent" in run.out
    assert "By source, in percent" in run.out
    assert "\n  hybrid - bm25 " in run.out


def test_fields_that_are_asked_for_have_a_table_each(run: Command) -> None:
    assert run("score outcomes --records records.jsonl --by team source -v --format markdown") == 0
    assert "**By team, in percent**" in run.out
    assert "**By source, in percent**" in run.out


def test_faults_exit_with_2(records: Path, run: Command) -> None:
    assert "did you mean source" in run.refused("score outcomes --records records.jsonl --by sauce")
    records.write_text('{"id": "1", "outcomes": {"a": "good"}}\n', encoding="utf-8")
    assert "records.jsonl:1" in run.refused("score outcomes --records records.jsonl")
