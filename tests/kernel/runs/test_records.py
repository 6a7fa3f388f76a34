from __future__ import annotations

import csv
import dataclasses
import errno
import json
import math
import os
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import RecordError
from retrieval_bench.core.types import LegTrace, Ranking
from retrieval_bench.measure.calls import Timings
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.runs import records
from retrieval_bench.runs.arrays import RANKINGS
from retrieval_bench.runs.checksums import SUMS
from retrieval_bench.runs.evaluation import Mean, evaluate
from retrieval_bench.runs.find import find_run
from retrieval_bench.runs.records import SCHEMA_VERSION, read_run, to_json, write_run
from retrieval_bench.runs.run import Run, pack_rankings
from retrieval_bench.runs.summary import Summary
from tests.builders import some


def make_run(name: str = "sample", **summary: Any) -> Run:
    rankings = pack_rankings(
        ["q:1", "q2", "질문"],
        [
            Ranking(
                ["d1", "문서둘"],
                [2.0, 1.0],
                legs={
                    "a": LegTrace([1, 0], [5.0, float("nan")]),
                    "b": LegTrace([0, 2], [float("nan"), 3.0], ["다른것", "문서둘"], [4.0, 3.0]),
                    "none": LegTrace([0, 0], [float("nan")] * 2, []),
                },
            ),
            None,
            Ranking(["d3"]),
        ],
        k=3,
    )
    evaluation = evaluate(
        rankings.ranking[:2],
        rankings.doc_ids,
        ["q:1", "q2"],
        {"q:1": {"d1": 1}, "q2": {"d1": 1}},
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
        "k": 10,
        "metrics": evaluation.as_dict(),
    }
    return Run(
        Summary.model_validate(content | summary),
        {"note": "사용자"},
        rankings,
        ("ok", "ValueError: x", "ok"),
        timings,
        evaluation,
    )


pytestmark = pytest.mark.usefixtures("here")


def test_a_run_reads_back_as_it_was_written() -> None:
    written = write_run(make_run())
    assert some(written.folder).parent == Path("results/runs").absolute()
    read = read_run(some(written.folder))
    assert read.summary == written.summary
    assert read.manifest == written.manifest
    assert read.status == written.status
    assert read.rankings.query_ids == written.rankings.query_ids
    assert np.array_equal(read.rankings.ranking, written.rankings.ranking)
    assert np.array_equal(read.rankings.scores, written.rankings.scores, equal_nan=True)
    assert np.array_equal(read.rankings.leg_ranks["a"], written.rankings.leg_ranks["a"])
    assert read.rankings.doc_ids == ("d1", "문서둘", "d3", "다른것")
    lists = {leg: rows.tolist() for leg, rows in read.rankings.leg_lists.items()}
    assert lists == {"b": [[3, 1], [-1, -1], [-1, -1]], "none": [[-1], [-1], [-1]]}
    scores = read.rankings.leg_list_scores
    nan = np.nan
    assert np.array_equal(scores["b"], [[4.0, 3.0], [nan, nan], [nan, nan]], equal_nan=True)
    assert np.isnan(scores["none"]).all()
    assert np.array_equal(read.timings.wall_ns, written.timings.wall_ns)
    assert np.array_equal(read.timings.stages["sparse"], written.timings.stages["sparse"])
    assert np.array_equal(read.evaluation.per_query, written.evaluation.per_query)
    assert read.evaluation.metrics == written.evaluation.metrics


def test_rankings_saved_before_the_lists_of_legs_were_kept_still_load(tmp_path: Path) -> None:
    folder = some(write_run(make_run(), tmp_path / "old").folder)
    with np.load(folder / RANKINGS) as arrays:
        kept = {name: arrays[name] for name in arrays.files if "leg_list" not in name}
    np.savez_compressed(folder / RANKINGS, **kept)
    (folder / "SHA256SUMS").unlink()  # of a version before
    read = read_run(folder).rankings
    assert (read.leg_lists, read.leg_list_scores) == ({}, {})
    assert set(read.leg_ranks) == {"a", "b", "none"}


def test_all_documented_files_are_there_and_nothing_else() -> None:
    folder = some(write_run(make_run(), Path("out")).folder)
    assert sorted(p.name for p in folder.iterdir()) == [
        "SHA256SUMS",
        "manifest.json",
        "per_query.csv",
        "rankings.npz",
        "run.trec",
        "summary.json",
        "timings.npz",
    ]
    assert (folder / "per_query.csv").read_text(encoding="utf-8").splitlines() == [
        "query_id,status,metric,value",
        "q:1,ok,nDCG@3,1.0",
        "q:1,ok,RR@3,1.0",
        "q2,ValueError: x,nDCG@3,0.0",
        "q2,ValueError: x,RR@3,0.0",
        "질문,ok,,",
    ]
    with np.load(folder / "timings.npz") as arrays:
        assert set(arrays.files) == {
            "wall_ns", "launch", "round", "position", "query", "failed", "first_ns", "stage:sparse",
        }  # fmt: skip


def test_names_that_are_no_file_names_are_made_safe_and_equal_runs_do_not_collide() -> None:
    folder = some(write_run(make_run("../검색/bm 25")).folder)
    assert folder.parent == Path("results/runs").absolute()
    assert "검색_bm_25-tiny_set" in folder.name
    assert write_run(make_run()).folder != write_run(make_run("other")).folder


def test_the_order_of_a_session_is_not_that_of_a_coarse_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.time_ns", count(1_000_001).__next__)
    folders = [some(write_run(make_run(name)).folder) for name in ("own", "bm25")]
    first, second = ((one / records.SUMMARY).stat().st_mtime_ns for one in folders)
    assert first < second < 2_000_000
    assert find_run("@last").absolute() == folders[1]


def test_a_share_that_lets_nobody_set_times_keeps_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "utime", refused)
    assert read_run(some(write_run(make_run(), tmp_path / "run").folder)).name == "sample"


def test_a_folder_that_holds_a_run_or_other_files_is_refused_and_an_empty_one_taken(
    tmp_path: Path,
) -> None:
    folder = some(write_run(make_run(), Path("out")).folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(RecordError, match="already holds a run"):
        write_run(make_run("new"), Path("out"))
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").touch()
    with pytest.raises(RecordError, match="is not empty"):
        records.check_destination(tmp_path / "used")
    (tmp_path / "empty").mkdir()
    assert write_run(make_run(), tmp_path / "empty").folder == tmp_path / "empty"


def test_a_place_that_cannot_be_written_to_is_found_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(RecordError, match="cannot write the run"):
        records.check_destination(None)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_read_only_folder_is_found_before_the_run(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RecordError, match="Permission denied"):
        records.check_destination(tmp_path / "out")


def test_no_run_at_all_and_one_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"no summary\.json"):
        read_run(tmp_path)
    folder = some(write_run(make_run(schema_version=SCHEMA_VERSION + 1), tmp_path / "out").folder)
    with pytest.raises(RecordError, match=f"schema version {SCHEMA_VERSION + 1}"):
        read_run(folder)


def test_no_secret_reaches_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_filled", {"MY_TOKEN": "s3cret-value"})
    run = make_run(warnings=["got s3cret-value"])
    leaky = Run(
        run.summary,
        {"retriever": {"name": "sample", "params": {"key": "s3cret-value"}}},
        run.rankings,
        ("ok", "HTTPError: bad key s3cret-value", "ok"),
        run.timings,
        run.evaluation,
    )
    folder = some(write_run(leaky, tmp_path / "out").folder)
    for path in folder.iterdir():
        assert b"s3cret-value" not in path.read_bytes(), path.name
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["retriever"]["params"]["key"] == "${MY_TOKEN}"


def test_secrets_that_equal_a_word_of_the_record_do_not_rewrite_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"A": "complete", "B": "mean", "C": "sample", "D": "not run", "E": "tiny/set"}
    monkeypatch.setattr(secrets, "_filled", words)
    run = dataclasses.replace(make_run(), status=("ok", "not run", "ok"))
    folder = some(write_run(run, tmp_path / "out").folder)
    read = read_run(folder)
    assert read.summary.replace(run_id="") == run.summary.replace(run_id="")
    assert read.manifest["note"] == run.manifest["note"]
    assert read.status == run.status


def _files(folder: Path | None) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in some(folder).iterdir()}


class TestDestinations:
    def test_a_link_to_an_empty_folder_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "disk").mkdir()
        (tmp_path / "link").symlink_to("disk")
        written = write_run(make_run(), tmp_path / "link")
        assert written.folder == tmp_path / "link"
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "disk" / "summary.json").is_file()
        assert read_run(tmp_path / "link").summary == written.summary
        assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "link"]

    def test_an_existing_folder_is_filled_and_not_replaced(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rename = Path.replace

        def mounted(path: Path, target: Path) -> Path:
            if Path(target) == tmp_path / "volume":
                raise OSError(errno.EBUSY, "Device or resource busy")
            return rename(path, target)

        monkeypatch.setattr(Path, "replace", mounted)
        (tmp_path / "volume").mkdir()
        write_run(make_run(), tmp_path / "volume")
        assert read_run(tmp_path / "volume").name == "sample"
        assert len(_files(tmp_path / "volume")) == 7

    @pytest.mark.parametrize("failing", ["per_query.csv", "manifest.json", ".summary.json"])
    def test_a_failure_in_an_existing_folder_leaves_it_empty(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
    ) -> None:
        (tmp_path / "out").mkdir()
        opened = Path.open

        def full(path: Path, *given: Any, **named: Any) -> Any:
            if path.name == failing:
                path.touch()
                raise OSError(errno.ENOSPC, "No space left on device")
            return opened(path, *given, **named)

        monkeypatch.setattr(Path, "open", full)
        with pytest.raises(RecordError, match="No space left"):
            write_run(make_run(), tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []

    def test_the_summary_is_the_last_file_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "out").mkdir()
        there: list[str] = []
        rename = Path.replace

        def note(path: Path, target: Path) -> Path:
            there.extend(sorted(other.name for other in path.parent.iterdir()))
            return rename(path, target)

        monkeypatch.setattr(Path, "replace", note)
        write_run(make_run(), tmp_path / "out")
        assert there == [
            ".summary.json", "manifest.json", "per_query.csv", "rankings.npz", "run.trec",
            "timings.npz",
        ]  # fmt: skip

    def test_a_file_is_called_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "own.py").write_text("code", encoding="utf-8")
        with pytest.raises(RecordError, match="output folder is a file"):
            records.check_destination(tmp_path / "own.py")
        assert (tmp_path / "own.py").read_text(encoding="utf-8") == "code"

    @pytest.mark.parametrize("out", [Path("a/b/run"), None])
    def test_the_check_leaves_no_folders_behind(self, tmp_path: Path, out: Path | None) -> None:
        (tmp_path / "kept").mkdir()
        records.check_destination(out)
        assert list(tmp_path.iterdir()) == [tmp_path / "kept"]
        assert write_run(make_run(), out).folder is not None

    @pytest.mark.parametrize(
        ("number", "advice"),
        [
            (errno.ENOSPC, "free some space"),
            (errno.EDQUOT, "free some space"),
            (errno.EACCES, "that you may write to with --out"),
            (errno.EROFS, "that you may write to with --out"),
            (errno.EBUSY, "name another folder"),
        ],
    )
    def test_the_advice_fits_the_fault_and_nothing_is_left_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(np, "savez_compressed", fail)
        with pytest.raises(RecordError) as caught:
            write_run(make_run(), tmp_path / "out")
        assert os.strerror(number) in caught.value.given
        assert advice in caught.value.fix
        assert ("space" in caught.value.fix) == (number in (errno.ENOSPC, errno.EDQUOT))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["검" * 120, "a" + "検" * 120, "x" * 500, "é" * 200])
    def test_long_names_are_cut_between_characters(self, name: str) -> None:
        folder = some(write_run(make_run(name)).folder)
        slug = folder.name.split("-")[1]
        assert name.startswith(slug)
        assert 57 < len(slug.encode()) <= 60
        assert read_run(folder).name == name


class TestOddTexts:
    def test_lone_surrogates_do_not_lose_a_run(self) -> None:
        run = make_run("name \udc80", warnings=["odd \udcff"], health=["odd \udcff"])
        run = dataclasses.replace(
            run,
            manifest={"\udc80": "\udc80", "facts": {1: ["\udc80"]}},
            status=("ok", "ValueError: \udc80", "ok"),
        )
        read = read_run(write_run(run).folder or Path())
        assert read.name == r"name \udc80"
        assert read.summary.warnings == read.summary.health == [r"odd \udcff"]
        assert read.manifest["facts"] == {"1": [r"\udc80"]}
        assert read.manifest[r"\udc80"] == r"\udc80"
        assert read.status[1] == r"ValueError: \udc80"

    @pytest.mark.parametrize("odd", ["", "a\tb", "a\rb", "a\nb", "a\x1bb", "a\udc80b"])
    def test_odd_ids_do_not_lose_a_run(self, odd: str) -> None:
        run = make_run()
        rankings = dataclasses.replace(
            run.rankings, query_ids=(odd, "q2", "질문"), doc_ids=(odd, "d2", "d3")
        )
        evaluation = dataclasses.replace(run.evaluation, query_ids=(odd, "q2"))
        run = dataclasses.replace(run, rankings=rankings, evaluation=evaluation)
        read = read_run(write_run(run).folder or Path())
        assert read.rankings.query_ids == (odd, "q2", "질문")
        assert read.rankings.doc_ids == (odd, "d2", "d3")
        assert read.evaluation.query_ids == (odd, "q2")
        assert read.status == run.status

    def test_a_run_that_is_no_trec_text_is_saved_without_it(self) -> None:
        run = make_run(warnings=["before"])
        odd = dataclasses.replace(run.rankings, doc_ids=("a\tb", "d2", "d3"))
        written = write_run(dataclasses.replace(run, rankings=odd))
        why = r"id 'a\tb' cannot stand in a TREC run, which is split at white space"
        warnings = ["before", f"run.trec was not written: {why}"]
        assert written.summary.warnings == warnings
        assert sorted(_files(written.folder)) == [
            "SHA256SUMS", "manifest.json", "per_query.csv", "rankings.npz", "summary.json",
            "timings.npz",
        ]  # fmt: skip
        assert read_run(written.folder or Path()).summary.warnings == warnings
        run = make_run()
        odd = dataclasses.replace(run.rankings, doc_ids=("검색 안내.pdf", "d2", "d3"))
        written = write_run(dataclasses.replace(run, rankings=odd))
        (warning,) = written.summary.warnings
        assert warning.startswith(
            "run.trec was not written: id '검색 안내.pdf' cannot stand in a TREC run"
        )
        assert "run.trec" not in _files(written.folder)
        assert read_run(written.folder or Path()).rankings.doc_ids == odd.doc_ids

    def test_control_characters_become_visible(self) -> None:
        run = make_run(warnings=["\x1b[2Jgone\u202e"], health=["a\rb", "ক্ষ é 검색 👩‍🔬"])
        run = dataclasses.replace(run, status=("ok", "E: \x1b[31m\nred\x00", "ok"))
        read = read_run(write_run(run).folder or Path())
        assert read.summary.warnings == [r"\x1b[2Jgone\u202e"]
        assert read.summary.health == [r"a\rb", "ক্ষ é 검색 👩‍🔬"]
        assert read.status[1] == r"E: \x1b[31m\nred\x00"
        assert b"\x1b" not in b"".join(
            content for name, content in _files(read.folder).items() if not name.endswith("npz")
        )

    def test_an_id_that_turns_text_round_reads_back_as_it_was(self) -> None:
        run = make_run()
        ids = ("q\u202e1", *run.rankings.query_ids[1:])
        odd = dataclasses.replace(run.rankings, query_ids=ids)
        judged = dataclasses.replace(run.evaluation, query_ids=ids[:2])
        folder = some(write_run(dataclasses.replace(run, rankings=odd, evaluation=judged)).folder)
        file = folder / "per_query.csv"
        assert "\u202e" not in file.read_text(encoding="utf-8")
        assert read_run(folder).rankings.query_ids == ids
        (folder / SUMS).unlink()
        earlier = file.read_text(encoding="utf-8").replace(r"\u202e", "\u202e")
        file.write_text(earlier, encoding="utf-8")
        assert read_run(folder).evaluation.query_ids == judged.query_ids

    def test_a_huge_status_is_cut_and_reads_back(self) -> None:
        run = dataclasses.replace(make_run(), status=("ok", "E: " + "x" * 300_000, "ok"))
        written = write_run(run)
        assert written.status[1] == "E: " + "x" * 494 + "..."
        assert read_run(written.folder or Path()).status == written.status

    def test_a_field_that_csv_does_not_take_is_told_as_damage(self, tmp_path: Path) -> None:
        folder = some(write_run(make_run(), tmp_path / "out").folder)
        with (folder / "per_query.csv").open("a", encoding="utf-8") as file:
            file.write("q9," + "x" * 5_001 + ",,\n")
        limit = csv.field_size_limit(5_000)  # of the process; other libraries raise it
        try:
            with pytest.raises(RecordError, match="damaged"):
                read_run(folder)
        finally:
            csv.field_size_limit(limit)


def test_a_record_that_nobody_made_a_document_of_is_no_text() -> None:
    with pytest.raises(TypeError, match="Mean is a record"):
        to_json({"mean": Mean(0.5, None, 3)})


def test_json_holds_nothing_that_a_strict_reader_refuses_whatever_texts_hold() -> None:
    text = to_json({"검색": [math.nan, -math.inf, 1.5], 2: ("\udc80", Path("a"))})
    text.encode("utf-8")

    def refuse(word: str) -> None:
        raise AssertionError(word)

    assert json.loads(text, parse_constant=refuse) == {
        "검색": [None, None, 1.5],
        "2": [r"\udc80", "a"],
    }
    assert "검색" in text
    given = {"a\x9bkey": "\x1b[2J\x7f\x85\x9b1A\u2028\u202e 한 \t"}
    text = to_json(given)
    assert not [c for c in text if c != "\n" and (not c.isprintable() or c in "\x7f\x85")]
    assert json.loads(text) == given


class TestPacking:
    def test_lists_of_legs_may_be_longer_than_k_and_lack_scores_and_their_own_ids_come_last(
        self,
    ) -> None:
        legs = {"x": LegTrace([2], [1.0], ["p", "d1"], [2.0, 1.0])}
        packed = pack_rankings(
            ["a", "b"], [Ranking(["d1"], [1.0], legs=legs), Ranking(["d2"], [1.0])], k=1
        )
        assert packed.doc_ids == ("d1", "d2", "p")
        assert packed.ranking.tolist() == [[0], [1]]
        assert packed.leg_lists["x"].tolist() == [[2, 0], [-1, -1]]
        legs = {"x": LegTrace([1], [1.0], ["d", "e", "f"]), "y": LegTrace([0], [float("nan")])}
        packed = pack_rankings(["a"], [Ranking(["d"], [1.0], legs=legs)], k=1)
        assert packed.leg_lists["x"].shape == (1, 3)
        assert np.isnan(packed.leg_list_scores["x"]).all()
        assert set(packed.leg_lists) == {"x"}
        assert set(packed.leg_ranks) == {"x", "y"}

    def test_arrays_are_as_wide_as_the_longest_ranking(self) -> None:
        packed = pack_rankings(
            ["a", "b"],
            [Ranking(["d1"], [1.0]), Ranking(["d2", "d1"], [2.0, 1.0])],
            k=1_000_000_000,
        )
        assert packed.ranking.tolist() == [[0, -1], [1, 0]]
        assert packed.scores.shape == (2, 2)
        run = evaluate(
            packed.ranking,
            packed.doc_ids,
            packed.query_ids,
            {"a": {"d1": 1}, "b": {"d1": 1}},
            parse_metrics(["P@1000000000", "nDCG@1000000000", "R@10", "AP@10"]),
        )
        assert run.per_query[:, 0].tolist() == [1e-9, 1e-9]
        assert run.per_query[:, 2].tolist() == [1.0, 1.0]

    def test_without_any_hit_there_is_still_one_column_and_more_than_asked_for_are_an_error(
        self,
    ) -> None:
        for rankings in ([None, None], [Ranking([]), None]):
            assert pack_rankings(["a", "b"], rankings, k=5).ranking.tolist() == [[-1], [-1]]
        with pytest.raises(ValueError, match="2 hits, k = 1"):
            pack_rankings(["a"], [Ranking(["d1", "d2"])], k=1)
