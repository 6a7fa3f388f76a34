from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import records, secrets
from harness.errors import RecordError
from harness.evaluation import evaluate
from harness.measure.runner import Timings
from harness.metrics import parse_metrics
from harness.records import read_run, write_run
from harness.run import Run, pack_rankings
from harness.summary import SCHEMA_VERSION, quality
from harness.types import LegTrace, Ranking


def make_run(name: str = "sample", **summary: Any) -> Run:
    rankings = pack_rankings(
        ["q 1", "q2", "질문"],
        [
            Ranking(
                ["d1", "문서 둘"], [2.0, 1.0], legs={"a": LegTrace([1, 0], [5.0, float("nan")])}
            ),
            None,
            Ranking(["d3"]),
        ],
        k=3,
    )
    evaluation = evaluate(
        rankings.ranking[:2],
        rankings.doc_ids,
        ["q 1", "q2"],
        {"q 1": {"d1": 1}, "q2": {"d1": 1}},
        parse_metrics(["nDCG@3", "RR@3"]),
    )
    timings = Timings(
        np.array([5, 6, 7], dtype=np.int64),
        np.zeros(3, dtype=np.int32),
        np.arange(3, dtype=np.int32),
        np.array([2, 0, 1], dtype=np.int32),
        np.array([False, False, True]),
        {"sparse": np.array([1, 2, -1], dtype=np.int64)},
    )
    content = {
        "schema_version": SCHEMA_VERSION,
        "status": "complete",
        "retriever": name,
        "dataset": {"name": "tiny/set"},
        "metrics": quality(evaluation),
    }
    return Run(
        content | summary,
        {"note": "사용자"},
        rankings,
        ("ok", "ValueError: x", "ok"),
        timings,
        evaluation,
    )


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_reads_back_as_it_was_written() -> None:
    written = write_run(make_run())
    assert written.folder is not None
    assert written.folder.parent == Path("results/runs").absolute()
    read = read_run(written.folder)
    assert read.summary == written.summary
    assert read.manifest == written.manifest
    assert read.status == written.status
    assert read.rankings.query_ids == written.rankings.query_ids
    assert read.rankings.doc_ids == ("d1", "문서 둘", "d3")
    assert np.array_equal(read.rankings.ranking, written.rankings.ranking)
    assert np.array_equal(read.rankings.scores, written.rankings.scores, equal_nan=True)
    assert np.array_equal(read.rankings.leg_ranks["a"], written.rankings.leg_ranks["a"])
    assert np.array_equal(read.timings.wall_ns, written.timings.wall_ns)
    assert np.array_equal(read.timings.stages["sparse"], written.timings.stages["sparse"])
    assert np.array_equal(read.evaluation.per_query, written.evaluation.per_query)
    assert read.evaluation.metrics == written.evaluation.metrics


def test_all_documented_files_are_there_and_nothing_else() -> None:
    folder = write_run(make_run(), Path("out")).folder
    assert folder is not None
    assert sorted(p.name for p in folder.iterdir()) == [
        "manifest.json",
        "per_query.csv",
        "rankings.npz",
        "run.trec",
        "summary.json",
        "timings.npz",
    ]
    assert (folder / "per_query.csv").read_text(encoding="utf-8").splitlines() == [
        "query_id,status,metric,value",
        "q 1,ok,nDCG@3,1.0",
        "q 1,ok,RR@3,1.0",
        "q2,ValueError: x,nDCG@3,0.0",
        "q2,ValueError: x,RR@3,0.0",
        "질문,ok,,",
    ]
    with np.load(folder / "timings.npz") as arrays:
        assert set(arrays.files) == {
            "wall_ns", "launch", "round", "position", "query", "failed", "stage:sparse",
        }  # fmt: skip


def test_names_that_are_no_file_names_are_made_safe() -> None:
    folder = write_run(make_run("../검색/bm 25")).folder
    assert folder is not None
    assert folder.parent == Path("results/runs").absolute()
    assert "검색_bm_25-tiny_set" in folder.name


def test_two_equal_runs_do_not_collide() -> None:
    assert write_run(make_run()).folder != write_run(make_run("other")).folder


def test_a_folder_that_holds_a_run_is_refused_and_left_alone() -> None:
    folder = write_run(make_run(), Path("out")).folder
    assert folder is not None
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(RecordError, match="already holds a run"):
        write_run(make_run("new"), Path("out"))
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_folder_with_other_files_is_refused_an_empty_one_taken(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").touch()
    with pytest.raises(RecordError, match="is not empty"):
        records.check_destination(tmp_path / "used")
    (tmp_path / "empty").mkdir()
    assert write_run(make_run(), tmp_path / "empty").folder == tmp_path / "empty"


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(RecordError, match="No space left on device"):
        write_run(make_run(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_found_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(RecordError, match="cannot write the run"):
        records.check_destination(None)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_read_only_folder_is_found_before_the_run(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RecordError, match="Permission denied"):
        records.check_destination(tmp_path / "out")


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    folder = write_run(make_run(schema_version=SCHEMA_VERSION + 1), tmp_path / "out").folder
    assert folder is not None
    with pytest.raises(RecordError, match=f"schema version {SCHEMA_VERSION + 1}"):
        read_run(folder)


@pytest.mark.parametrize("name", ["rankings.npz", "timings.npz", "per_query.csv", "summary.json"])
def test_a_damaged_folder_is_told_as_such(tmp_path: Path, name: str) -> None:
    folder = write_run(make_run(), tmp_path / "out").folder
    assert folder is not None
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(RecordError):
        read_run(folder)


def test_no_run_at_all_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"no summary\.json"):
        read_run(tmp_path)


def test_no_secret_reaches_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_filled", {"MY_TOKEN": "s3cret-value"})
    run = make_run(warnings=["got s3cret-value"])
    leaky = Run(
        run.summary,
        {"params": {"key": "s3cret-value"}},
        run.rankings,
        ("ok", "HTTPError: bad key s3cret-value", "ok"),
        run.timings,
        run.evaluation,
    )
    folder = write_run(leaky, tmp_path / "out").folder
    assert folder is not None
    for path in folder.iterdir():
        assert b"s3cret-value" not in path.read_bytes(), path.name
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["params"]["key"] == "${MY_TOKEN}"
