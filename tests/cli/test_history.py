"""``history`` through the command line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.builders.history_sample import save_duet, save_run
from tests.cli.project import Command, make_project

pytestmark = pytest.mark.usefixtures("project")

PICTURE = Path("results") / "history.svg"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for day in range(4):
        save_run(Path("results/runs"), day, commit=day // 2, p50=2.0 + day // 2)
    save_run(Path("results/runs"), 9, retriever="검색", dataset="다른")
    save_duet(Path("results/duets"), 1)
    return tmp_path


@pytest.mark.slow
def test_real_runs_are_listed_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    make_project(tmp_path)
    for _ in range(2):
        bench = "bench --retriever own.yaml --dataset data --profile smoke"
        assert run(f"{bench} --no-pictures") == 0
    assert run("data history --retriever own --dataset data --no-pictures") == 0
    assert run.out.startswith("own on data: 2 runs")
    assert not PICTURE.exists()
    assert run("data history --retriever own.yaml --metric R@10 MRR") == 2
    assert "'RR', which no saved run has" in run.err
    assert run("data history --retriever", str(tmp_path / "own.yaml"), "--no-pictures") == 0
    assert run.out.startswith("own on data: 2 runs")
    assert run("data history --retriever own.yaml --metric R@10 RR@10") == 0
    assert re.search(r"^  .* recall@10  .* MRR@10", run.out, re.M)
    assert "mean RR@10" in PICTURE.read_text(encoding="utf-8")


def test_one_subject_is_shown_with_the_command_that_compares_its_newest_runs(run: Command) -> None:
    assert run("data history --retriever bm25 --no-pictures") == 0
    assert run.err == ""
    assert "bm25 on tiny: 4 runs" in run.out
    assert "bm25 on tiny: 1 duet" in run.out
    runs = Path("results/runs")
    command = f"retrieval-bench compare {runs / 'run-002'} {runs / 'run-003'}"
    assert run.out.splitlines()[-1].strip() == command


def test_times_beside_another_retriever_stay_apart_when_one_is_asked_for(run: Command) -> None:
    save_run(Path("results/runs"), 10, commit=2, beside=["dense"])
    save_run(Path("results/runs"), 11, beside=["bm25"], retriever="dense")
    asked = "data history --retriever bm25 --dataset tiny --format json"
    assert run(asked) == 0
    (subject,) = json.loads(run.out)["subjects"]
    alone, beside = subject["runs"][-2]["same_times"], subject["runs"][-1]["same_times"]
    assert (subject["keys"][alone]["beside"], subject["keys"][beside]["beside"]) == ([], ["dense"])


@pytest.mark.parametrize(
    "file", ["configs/retrievers/mine.yaml", "elsewhere/my.yaml", "gone/mine.yml"]
)
def test_a_retriever_is_found_by_its_file_and_its_duets_by_the_name_in_it(
    project: Path, run: Command, file: str
) -> None:
    if not file.startswith("gone"):
        Path(file).parent.mkdir(parents=True)
        Path(file).write_text("target: bm25\nname: mine\n", encoding="utf-8")
    save_run(Path("results/runs"), 5, retriever="mine", source=str(project / file))
    save_run(Path("results/runs"), 6, retriever="mine", source="/another/mine.yaml")
    save_duet(Path("results/duets"), 2, retriever="mine")
    for given in (file, f"./{file}", str(project / file)):
        assert run(f"data history --retriever {given} --no-pictures") == 0
        assert "mine on tiny: 1 run\n" in run.out
        assert "mine on tiny: 1 duet\n" in run.out
    assert run("data history --retriever mine --no-pictures") == 0
    assert "mine on tiny: 2 runs" in run.out
    assert run("data history --retriever elsewhere/other.yaml --no-pictures") == 4


@pytest.mark.parametrize("given", ["my/tiny", "./my/../my/tiny", "tiny"])
def test_a_dataset_is_found_by_its_folder(project: Path, run: Command, given: str) -> None:
    for day in (5, 6):
        save_run(Path("results/runs"), day, commit=day, data=str(project / "my" / "tiny"), p50=day)
    assert run(f"data history --dataset {given} --no-pictures") == 0
    assert f"bm25 on tiny: {6 if given == 'tiny' else 2} runs" in run.out
    assert "bm25 on tiny: 1 duet" in run.out
    assert run("data history --dataset my/other --no-pictures") == 4


def test_duets_alone_are_found_by_the_folder_of_their_dataset(project: Path, run: Command) -> None:
    folder = project / "my" / "data"
    folder.mkdir(parents=True)
    (folder / "dataset.yaml").write_text("name: tiny\nformat: beir\n", encoding="utf-8")
    for given in ("my/data", "my/data/dataset.yaml"):
        assert run(f"data history --dataset {given} --no-pictures") == 0
        assert "bm25 on tiny: 1 duet" in run.out


def test_several_subjects_are_an_overview_without_a_picture(run: Command) -> None:
    assert run("data history") == 0
    assert "Saved runs of 2 retrievers" in run.out
    assert not PICTURE.exists()
    assert "--out for 2 retrievers or datasets" in run.refused("data history --out h.svg")


def test_json_is_one_document(run: Command) -> None:
    document = run.json("data history --retriever bm25 --last 2")
    (subject,) = document["subjects"]
    assert [one["run_id"] for one in subject["runs"]] == ["run-002", "run-003"]
    assert (subject["n_runs"], subject["n_duets"]) == (4, 1)
    assert subject["runs"][0]["latency_ms"]["p50"]["value"] == 3.0
    assert {one["same_times"] for one in subject["runs"]} | {
        one["same_quality"] for one in subject["runs"]
    } | {subject["duets"][0]["same_times"]} == set(subject["keys"])


@pytest.mark.parametrize("form", ["markdown", "csv", "latex"])
def test_other_formats_have_the_same_rows(run: Command, form: str) -> None:
    assert run(f"data history --retriever bm25 --format {form} --no-pictures") == 0
    assert len(re.findall(r"^[| ]*2026-01-01", run.out, re.M)) == 4


def test_a_summary_has_the_newest_runs_unless_all_are_asked_for(run: Command) -> None:
    for day in range(10, 60):
        save_run(Path("results/runs"), day)
    assert run("data history --retriever bm25 --format markdown --no-pictures") == 0
    assert run.out.count("| 2026-01-") == 30
    assert "the newest 30 of 54 runs" in run.out
    assert run("data history --retriever bm25 --last all --no-pictures") == 0
    assert run.out.count(" 2026-01-") == 54


def test_the_action_gets_a_file_for_each_direction(run: Command) -> None:
    form = "data history --format github-action-benchmark --what"
    assert run(f"{form} latency") == 0
    entries = json.loads(run.out)
    assert [entry["name"].split(" [")[0] for entry in entries] == [
        "bm25 on tiny: p50",
        "검색 on 다른: p50",
    ]
    for entry in entries:
        assert set(entry) <= {"name", "unit", "value", "range", "extra"}
        assert isinstance(entry["value"], float)
    assert "bm25 on tiny: run-003, revision 2222222" in run.err
    assert run(f"{form} quality --metric R@10") == 0
    assert [entry["value"] for entry in json.loads(run.out)] == [0.25, 0.25]
    assert not PICTURE.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--format", "github-action-benchmark"), "without --what"),
        (("--what", "quality"), "--what without --format"),
        (("--no-pictures", "--out", "x.svg"), "no picture to write"),
        (("--last", "0"), "--last 0"),
        (("--last", "some"), "neither a number nor `all`"),
        (("--runs", "nowhere"), "no such folder"),
        (("--metric", "nonsense"), "nonsense"),
        (("--metric", "RR@3"), "'RR@3', which no saved run has"),
        (("--retriever", "bm25", "--out", "results"), "the picture would replace a folder"),
    ],
)
def test_what_cannot_be_done_is_bad_input(
    run: Command, options: tuple[str, ...], told: str
) -> None:
    assert run("data history", *options) == 2
    assert run.out == ""
    assert told in run.err


def test_nothing_to_show_is_told_with_the_command_that_helps(run: Command) -> None:
    (Path("results/runs") / "odd").mkdir()
    assert run("data history --retriever bm52 --dataset tiny") == 4
    assert run.out == ""
    assert "no saved run of retriever 'bm52' and dataset 'tiny'" in run.err
    assert "there are: bm25 on tiny, 검색 on 다른" in run.err
    assert "retrieval-bench bench bm52 --dataset tiny" in run.err
    assert f"Left out: {Path('results/runs/odd')}" in run.err
    assert run.json("data history --retriever bm52", code=4)["subjects"] == []
    assert run("data history --retriever 'my own' --dataset 'two words'") == 4
    assert "bench 'my own' --dataset 'two words'" in run.err


@pytest.mark.parametrize("other", [{"p50": None}, {"status": "partial"}])
def test_a_file_of_the_action_without_entries_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command, other: dict[str, str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    save_run(Path("results/runs"), 1, **other)
    form = ("--format", "github-action-benchmark", "--what", "latency")
    assert run("data history", *form) == 4
    assert json.loads(run.out) == []
    assert run.err


def test_a_picture_that_nobody_asked_for_costs_no_table(run: Command) -> None:
    PICTURE.mkdir(parents=True)
    assert run("data history --retriever bm25") == 0
    assert "bm25 on tiny: 4 runs" in run.out
    assert f"no picture: the picture would replace a folder ({PICTURE})" in run.out
    assert run(f"data history --retriever bm25 --out {PICTURE}") == 2


def test_without_vl_convert_there_is_a_table_and_a_word(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert run("data history --retriever bm25") == 0
    assert "no picture: the package vl-convert-python is not installed" in run.out
    assert run("data history --retriever bm25 --out x.svg") == 2
