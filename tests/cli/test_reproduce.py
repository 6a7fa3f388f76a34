"""The command ``reproduce``, as a user types it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.project import Command

PAPER = """
title: A paper
url: https://example.org
outcomes:
  - {name: a, source: page 3, records: records.jsonl, system: a, values: {accuracy: VALUE}}
"""
RECORDS = """
{"id": "1", "outcomes": {"a": "correct"}}
{"id": "2", "outcomes": {"a": "rejected"}}
"""


@pytest.fixture(autouse=True)
def data(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of data; a paper of one number that they give."""
    (here / "records.jsonl").write_text(RECORDS.lstrip(), encoding="utf-8")
    (here / "paper.yaml").write_text(PAPER.replace("VALUE", "0.5"), encoding="utf-8")
    monkeypatch.setenv("BENCH_DATA", str(here))
    return here


@pytest.mark.parametrize(
    ("value", "code", "status"), [(0.5, 0, "OK"), (0.505, 0, "CLOSE"), (0.6, 1, "FAIL")]
)
def test_the_exit_code_says_whether_a_number_was_missed(
    run: Command, value: float, code: int, status: str
) -> None:
    Path("paper.yaml").write_text(PAPER.replace("VALUE", str(value)), encoding="utf-8")
    assert run("lab reproduce --paper paper.yaml") == code
    assert f"Values: 1 {status}." in run.out


def test_nothing_measured_exits_with_4_and_says_what_to_set(
    data: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "records.jsonl").unlink()
    assert run("lab reproduce --paper paper.yaml") == 4
    assert "Values: 1 NOT MEASURED." in run.out
    assert f"nothing could be measured: the data are not in {data}" in run.err
    monkeypatch.delenv("BENCH_DATA")
    assert run("lab reproduce --paper paper.yaml") == 4
    assert "records.jsonl" in run.out
    assert "BENCH_DATA=path/to/data" in run.err


def test_all_files_together_have_a_summary_that_fits_the_terminal(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("other.yaml").write_text(PAPER.replace("VALUE", "0.6"), encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "80")
    assert run("lab reproduce --paper paper.yaml other.yaml") == 1
    assert re.search(r"paper\.yaml +1 +0 +0 +0 +OK", run.out)
    assert re.search(r"other\.yaml +0 +0 +1 +0 +FAIL", run.out)
    assert max(map(len, run.out.splitlines())) <= 80


def test_without_data_every_file_is_listed_with_what_it_wants(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BENCH_DATA")
    monkeypatch.setenv("COLUMNS", "80")
    assert run("lab reproduce") == 4
    for wanted in ("scifact", "beir/scifact", "trec-eval", "fusion", "mala2025"):
        assert wanted in run.out
    assert max(map(len, run.out.splitlines())) <= 80


def test_an_unknown_paper_exits_with_2(run: Command) -> None:
    assert "did you mean mala2025" in run.refused("lab reproduce --paper mala2024")
