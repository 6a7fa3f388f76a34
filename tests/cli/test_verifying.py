"""``report --verify``: a page is held to the runs that it names."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from retrieval_bench.cli import main
from retrieval_bench_load.engine.load import Plan, load
from tests.builders.queued import Queued
from tests.cli.project import QUICK, Command, make_project, saved_runs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("project")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two saved runs and the page on them."""
    folder = tmp_path_factory.mktemp("made")
    project = make_project(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        patch.setitem(sys.modules, "vl_convert", None)
        assert main(["report", "own.yaml", "bm25", "--dataset", "data", *QUICK]) == 0
    return project


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "project"
    shutil.copytree(made, copy)
    monkeypatch.chdir(copy)
    # Pictures are looked at elsewhere; without them a page takes a tenth of the time.
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    return copy


PAGE = "results/report.html"


def test_a_page_as_it_was_made_holds(run: Command) -> None:
    assert run(f"report --verify {PAGE}") == 0, run.out
    assert f"{PAGE}: all " in run.out
    assert "figures are those of its runs; pictures are not compared." in run.out


def test_a_figure_that_was_changed_is_found_in_its_section(project: Path, run: Command) -> None:
    page = project / PAGE
    text = page.read_text("utf-8")
    assert '<td class="n">1.0000' in text
    page.write_text(text.replace('<td class="n">1.0000', '<td class="n">0.9999', 1), "utf-8")
    found = run.json(f"report --verify {PAGE}", code=1)
    assert not found["holds"]
    assert found["differences"] == [
        {"where": "section d1-systems", "says": "0.9999", "recomputed": "1.0000"}
    ]


def test_a_run_that_changed_is_not_taken_for_the_same(project: Path, run: Command) -> None:
    (folder,) = (project / "results" / "runs").glob("*-own-*")
    values = folder / "per_query.csv"
    values.write_text(values.read_text("utf-8").replace("1.0", "0.5", 1), "utf-8")
    assert run(f"report --verify {PAGE}") == 4
    told = f"{folder.relative_to(project)} is not the run that the page was made from"
    assert told in run.unwrapped


def test_runs_that_moved_are_named_behind_the_file(project: Path, run: Command) -> None:
    (project / "results" / "runs").rename(project / "elsewhere")
    assert run(f"report --verify {PAGE}") == 4
    assert "is not there: say where it is" in run.unwrapped
    moved = [str(folder) for folder in (project / "elsewhere").iterdir() if folder.is_dir()]
    assert run(f"report --verify {PAGE}", *moved) == 0, run.out


def test_without_the_dataset_the_rest_is_checked(made: Path, run: Command) -> None:
    (made / "data").rename(made / "gone")  # where the runs found it
    try:
        found = run.json(f"report --verify {PAGE}", code=4)
        assert (found["holds"], found["differences"]) == (False, [])
        assert run(f"report --verify {PAGE}") == 4, run.out
        assert "Not checked:" in run.out
        checked = f"{found['n_figures']} figures checked, as its runs give them"
        assert f"{checked}; {found['n_unchecked']} could not be checked" in run.unwrapped
        assert run(f"report --verify {PAGE} --dataset data") == 0
        assert "Not checked:" not in run.out
    finally:
        (made / "gone").rename(made / "data")


def test_a_value_that_the_rankings_do_not_give_is_found(project: Path, run: Command) -> None:
    """A run whose values were changed before the page was made."""
    (folder,) = (project / "results" / "runs").glob("*-own-*")
    values = folder / "per_query.csv"
    values.write_text(values.read_text("utf-8").replace(",1.0", ",0.5", 1), "utf-8")
    (folder / "SHA256SUMS").unlink()  # whoever means to deceive does it, too
    assert (folder / "summary.json").is_file()
    assert run("report", *map(str, saved_runs(project)), "--out", "again.html") == 0, run.err
    assert run("report --verify again.html") == 1
    assert "nDCG@10 of " in run.unwrapped


@pytest.mark.parametrize("text", ["<html></html>", '<script type="application/json" id="source">'])
def test_a_file_that_is_no_report_is_refused(project: Path, run: Command, text: str) -> None:
    (project / "page.html").write_text(text, "utf-8")
    assert run("report --verify page.html") == 2
    assert "does not name the runs that it was made from" in run.err


def test_methods_say_what_was_done_and_cite_it(project: Path, run: Command) -> None:
    runs = map(str, saved_runs(project))
    assert run("report", *runs, "--methods", "--out", "paper.html") == 0
    text, sources = (project / name for name in ("paper.tex", "paper.bib"))
    said = text.read_text("utf-8")
    assert r"Sparse retrieval is BM25 \cite{robertson2009}." in said
    assert "reciprocal rank fusion" not in said
    assert r"\begin{tabular}" in said
    assert "@article{holm1979," in sources.read_text("utf-8")
    assert "cormack2009" not in sources.read_text("utf-8")
    cited = {key for keys in re.findall(r"\\cite{(.*?)}", said) for key in keys.split(",")}
    assert cited == set(re.findall(r"^@\w+{(.*?),", sources.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", ["paper.tex", "paper.BIB"])
def test_methods_do_not_replace_the_report(project: Path, run: Command, name: str) -> None:
    runs = map(str, saved_runs(project))
    said = run.refused("report", *runs, "--methods", "--out", name)
    assert "the report would be replaced by its methods" in said
    assert not [*project.glob("paper.*")]


@pytest.mark.parametrize(
    "given", ["--methods", "--no-text", "--out x.html", "--k 3", "--loads bm25@load", "--margin 1"]
)
def test_what_the_page_says_itself_is_refused_with_verify(run: Command, given: str) -> None:
    told = f"{given.partition(' ')[0]} with --verify"
    assert told in run.refused(f"report --verify {PAGE} {given}")


def test_a_load_has_a_section_that_is_checked_as_well(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Queued().instead(monkeypatch)
    kept = load("bm25", "science-mini", Plan(rates=[100.0, 520.0], seconds=30.0)).folder
    assert kept is not None
    place = kept.relative_to(project)
    loads = ("--loads", "bm25@load", "--dataset", "data")
    assert run("report", *map(str, saved_runs(project)), *loads) == 0, run.out
    page = (project / PAGE).read_text("utf-8")
    assert "bm25 under load" in page
    assert f"--loads {place}" in page
    assert str(project) not in page
    assert run(f"report --verify {PAGE} --dataset data") == 0, run.out
    changed = page.replace("520/s", "920/s")
    (project / PAGE).write_text(changed, "utf-8")
    found = run.json(f"report --verify {PAGE} --dataset data", code=1)
    assert {one["where"] for one in found["differences"]} == {"section load1"}
    shutil.rmtree(kept)
    assert run(f"report --verify {PAGE} --dataset data") == 4
    assert f"{place} is not there" in run.unwrapped
