"""The names of saved runs: a folder, ``@last``, ``NAME@latest``, the beginning of an id."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.runs.find import find_run, find_runs, is_run
from retrieval_bench.runs.records import DEFAULT_ROOT, MANIFEST, SUMMARY
from tests.builders.files import save

OLD = "20260101T000000Z-bm25-data-11111111"
MIDDLE = "20260102T000000Z-dense-data-22222222"
NEW = "20260102T000001Z-bm25-data-33333333"


@pytest.fixture
def root(here: Path) -> Path:
    """Three saved runs, and what is none: a later folder that was never finished, and a file."""
    for name, retriever in ((MIDDLE, "dense"), (NEW, "bm25"), (OLD, "bm25")):
        summary = {"schema_version": 1, "retriever": retriever}
        save(here / DEFAULT_ROOT / name / SUMMARY, json.dumps(summary))
    save(here / DEFAULT_ROOT / "20260103T000000Z-bm25-data-44444444" / "run.trec", "")
    save(here / DEFAULT_ROOT / "notes.txt", "")
    return DEFAULT_ROOT


@pytest.mark.parametrize(
    ("given", "run"),
    [
        ("@last", NEW),
        ("@latest", NEW),
        ("bm25@latest", NEW),
        ("bm25@last", NEW),
        ("dense@latest", MIDDLE),
        ("20260101", OLD),
        (OLD, OLD),
        (str(DEFAULT_ROOT / MIDDLE), MIDDLE),
    ],
)
def test_a_run_has_several_names(root: Path, given: str, run: str) -> None:
    assert is_run(given)
    assert find_run(given) == root / run


@pytest.mark.parametrize(
    ("sessions", "found"),
    [
        ({MIDDLE: "s", NEW: "s"}, [MIDDLE, NEW]),
        ({OLD: "s", MIDDLE: "t", NEW: "s"}, [NEW]),
        ({MIDDLE: "s"}, [NEW]),
        ({}, [NEW]),
    ],
)
def test_the_last_runs_are_all_that_were_measured_together(
    root: Path, sessions: dict[str, str], found: list[str]
) -> None:
    for name, session in sessions.items():
        save(root / name / MANIFEST, json.dumps({"schema_version": 1, "session": session}))
    assert find_runs("@last") == [root / name for name in found]
    assert find_runs("bm25@latest") == [root / NEW]


@pytest.mark.parametrize(("day", "last"), [(1, NEW), (3, "mine")])
def test_a_run_with_another_name_is_as_old_as_its_files(root: Path, day: int, last: str) -> None:
    save(root / "mine" / SUMMARY, json.dumps({"schema_version": 1, "retriever": "bm25"}))
    written = datetime(2026, 1, day, tzinfo=UTC).timestamp()
    os.utime(root / "mine" / SUMMARY, (written, written))
    assert find_run("@last") == root / last


def test_two_measurements_of_one_second_stay_apart(here: Path) -> None:
    names = [f"20260102T000000Z-{name}" for name in ("own-1", "bm25-2", "own-3", "bm25-4")]
    for at, name in enumerate(names):
        folder = here / DEFAULT_ROOT / name
        summary = save(folder / SUMMARY, json.dumps({"schema_version": 1, "retriever": name}))
        os.utime(summary, ns=(at * 1_000_000, at * 1_000_000))
        save(folder / MANIFEST, json.dumps({"schema_version": 1, "session": "ab"[at // 2]}))
    assert find_runs("@last") == [DEFAULT_ROOT / name for name in names[2:]]


def test_the_name_of_a_retriever_is_one_whatever_folder_is_called_so(here: Path) -> None:
    (here / "bm25").mkdir()
    assert not is_run("bm25")
    save(here / "bm25" / SUMMARY, "{}")
    assert is_run("bm25")


def test_a_folder_elsewhere_is_taken_as_it_is(root: Path, here: Path) -> None:
    (here / "kept").mkdir()
    assert is_run("kept")
    assert find_run(Path("kept")) == Path("kept")


def test_several_runs_that_begin_alike_are_named(root: Path) -> None:
    assert is_run("20260102")
    with pytest.raises(ConfigError) as caught:
        find_run("20260102")
    told = str(caught.value)
    assert "2 saved runs begin with '20260102'" in told
    assert f"{NEW}, {MIDDLE}" in told
    assert "write more of the id" in told


@pytest.mark.parametrize(
    ("given", "says"),
    [("splade@latest", "no saved run of 'splade'"), ("bm@latest", "no saved run of 'bm'")],
)
def test_who_was_never_measured_has_no_latest_run(root: Path, given: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_run(given)
    assert says in str(caught.value)
    assert "NAME@latest" in caught.value.accepted


def test_without_any_saved_run_there_is_no_last_one(here: Path) -> None:
    with pytest.raises(ConfigError, match="no saved run"):
        find_run("@last")


def test_a_missing_one_is_left_to_what_reads_it(root: Path) -> None:
    assert find_run("no/such") == Path("no/such")
    assert find_run("2025") == Path("2025")


@pytest.mark.parametrize(
    "given",
    ["bm25", "own.yaml", "configs/own.yaml", "own.py:Overlap", "pkg/own.py:Overlap", "a:B", "202"],
)
def test_names_of_retrievers_are_no_runs(root: Path, given: str) -> None:
    assert not is_run(given)


@pytest.mark.parametrize("given", ["results/runs/gone", "@last", "bm52@latest"])
def test_what_is_written_as_only_a_run_is_stays_one_where_it_is_missing(
    root: Path, given: str
) -> None:
    assert is_run(given)


def test_a_summary_that_cannot_be_read_does_not_hide_the_others(root: Path) -> None:
    save(root / "20260104T000000Z-bm25-data-55555555" / SUMMARY, "{")
    assert find_run("bm25@latest") == root / NEW
