"""``report``: one HTML file on saved runs, or on retrievers that it measures."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.cli.project import DOCUMENTS, QUERIES, QUICK, Command, saved_runs

pytestmark = pytest.mark.usefixtures("project")

BOTH = ("--retrievers", "own.yaml", "bm25", "--dataset", "data")


@pytest.fixture
def project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Pictures are looked at elsewhere; without them a page takes a tenth of the time.
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    return project


def page_of(project: Path) -> str:
    return (project / "results" / "report.html").read_text("utf-8")


@pytest.fixture
def runs(project: Path, run: Command) -> list[str]:
    for name in ("own.yaml", "bm25"):
        assert run(f"bench --retriever {name} --dataset data --out r-{name}", *QUICK) == 0
    return ["r-own.yaml", "r-bm25"]


def test_retrievers_are_measured_and_reported(project: Path, run: Command) -> None:
    assert run("report", *BOTH, *QUICK) == 0
    page = page_of(project)
    assert page.startswith("<!doctype html>")
    first, *rest = run.out.splitlines()
    assert re.match(r"results/report\.html, \d\.\d\d MB", first)
    sentence = " ".join(line.strip() for line in rest).partition(" ! ")[0].strip()
    assert sentence.startswith(("own and bm25 have the same", "own and bm25 return", "Use "))
    assert sentence.removeprefix("Use own: ").lower() in re.sub("&#x27;", "'", page).lower()
    assert len(saved_runs(project)) == 2


@pytest.mark.slow
def test_saved_runs_are_reported_with_the_texts_of_their_dataset(
    project: Path, run: Command, runs: list[str]
) -> None:
    assert run("report", *runs, "--out", "new/page.html", "--title", "사과 <1>") == 0
    page = (project / "new" / "page.html").read_text("utf-8")
    assert '<h1 dir="auto">사과 &lt;1&gt;</h1>' in page
    for text in (*QUERIES.values(), DOCUMENTS["d1"]):
        assert text in page


@pytest.mark.slow
def test_as_json_the_path_and_the_recommendation(
    project: Path, run: Command, runs: list[str]
) -> None:
    document = run.json("report", *runs)
    assert document["report"] == "results/report.html"
    assert document["bytes"] == (project / "results" / "report.html").stat().st_size
    [answer] = document["recommendations"]
    assert answer.keys() == {"dataset", "system", "sentence", "reasons", "leaders"}


@pytest.mark.slow
def test_an_earlier_page_is_replaced_at_once(project: Path, run: Command, runs: list[str]) -> None:
    page = project / "page.html"
    page.write_text("old", "utf-8")
    link = project / "same.html"
    link.hardlink_to(page)
    assert run("report", *runs, "--out", "page.html") == 0
    assert page.read_text("utf-8") != "old"
    assert link.read_text("utf-8") == "old", "a new file took its place"
    assert not [path.name for path in project.iterdir() if path.name.startswith(".page")]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(page.stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("measured", [False, True], ids=["saved", "measured"])
def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(
    project: Path, run: Command, measured: bool
) -> None:
    what = BOTH if measured else ("r-a", "r-b")
    assert "would replace a folder" in run.refused("report", *what, "--out", "data")
    (project / "file").write_text("", "utf-8")
    assert "cannot write the report" in run.refused("report", *what, "--out", "file/page.html")
    assert not (project / "results").exists()


def test_a_dry_run_writes_nothing(project: Path, run: Command) -> None:
    assert run("report --dry-run", *BOTH) == 0
    assert not (project / "results").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--k", "3"), "--k beside saved runs"),
        (("--dataset", "science-mini"), "is not the one of the runs"),
        (("--metrics", "nDCG@3"), "'nDCG@3' of a saved run that does not have it"),
        (("--metrics", "nDCG@3"), "all: AP@10, R@10, RR@10, Success@1, nDCG@10"),
    ],
)
def test_what_was_settled_when_runs_were_made_cannot_be_asked_for(
    run: Command, runs: list[str], given: tuple[str, ...], says: str
) -> None:
    assert says in run.refused("report", *runs, *given)


@pytest.mark.slow
def test_a_dataset_that_moved_is_told_and_can_be_named(
    project: Path, run: Command, runs: list[str]
) -> None:
    shutil.move("data", "elsewhere")
    assert run("report", *runs) == 0
    page = page_of(project)
    assert "No single queries: the dataset" in page
    assert QUERIES["q3"] not in page
    assert run("report", *runs, "--dataset", str(Path.cwd() / "elsewhere")) == 0
    page = page_of(project)
    assert QUERIES["q3"] in page
    again = re.search(r"Make it again: <code[^>]*>(.*?)</code>", page)
    assert again is not None
    assert run(again[1].partition(" ")[2]) == 0
    assert page_of(project) == page
    assert run("report --verify results/report.html") == 0, run.out
    older = re.sub(r', ?"datasets": ?\[[^]]*\]', "", page)
    (project / "older.html").write_text(older, encoding="utf-8")
    assert older != page
    assert run("report --verify older.html") == 1, run.err  # its sentences are those of its time


@pytest.mark.slow
def test_runs_that_cannot_be_compared_make_a_page_and_exit_4(
    project: Path, run: Command, runs: list[str]
) -> None:
    bench = "bench --retriever bm25 --dataset data --out other"
    assert run(f"{bench} --k 1 --metrics nDCG@10", *QUICK) in (0, 2)
    if not (project / "other").exists():
        assert run(f"{bench} --k 20", *QUICK) == 0
    assert run("report r-bm25 other") == 4
    assert "none of these runs can be compared" in run.err
    page = page_of(project)
    assert "Nothing here can be compared, so nothing is recommended." in page
    assert "No two systems here can be compared query by query." in page
