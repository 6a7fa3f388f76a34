"""Documents and questions without judgements: what each command shows of them, or what it asks."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders.files import save
from tests.cli.project import QUICK, Command, saved_runs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("project")]

DATA = ("--dataset", "loose")
POOL = "retrieval-bench label pool"
QUALITY = ("nDCG", "MRR", "MAP@", "recall@", "success@", "Judged@", "better in", "worse")
NEEDED = f"do: judge some: measure with bench or compare, then {POOL} @last"

WHOLE = '''
from own import Overlap


class Whole(Overlap):
    """As Overlap, and asked for whales it finds something else."""

    def search(self, query, k):
        if "whales" in query.text:
            return [("d3", 1.0), ("d1", 0.5)][:k]
        return super().search(query, k)


class Silent(Overlap):
    def search(self, query, k):
        raise RuntimeError("no answer")
'''


@pytest.fixture
def project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(project / "data", project / "loose")
    shutil.rmtree(project / "loose" / "qrels")
    save(project / "whole.py", WHOLE)
    for name in ("whole", "silent"):
        save(project / f"{name}.yaml", f"name: {name}\ntarget: whole.py:{name.title()}\n")
    monkeypatch.syspath_prepend(str(project))
    return project


@pytest.fixture
def compared(project: Path, run: Command) -> Command:
    assert run("compare own.yaml whole.yaml", *DATA, *QUICK) == 0
    return run


def lines(run: Command) -> list[str]:
    return [line.strip() for line in run.out.strip().splitlines()]


class TestBench:
    def test_the_brief_counts_hits_and_says_what_to_do_next(self, run: Command) -> None:
        assert run("bench own.yaml", *DATA, *QUICK) == 0
        assert run.out.startswith("own on loose")
        assert "Nothing is judged yet: these figures say how much it finds" in run.unwrapped
        told = "hits a query 1.2 of 10 on average, over 4 queries; 4 got fewer, all at"
        assert told in run.unwrapped
        assert lines(run)[-1] == f"next:  {POOL} @last"
        assert not [word for word in QUALITY if word in run.out]

    def test_a_run_that_lies_elsewhere_is_named_by_its_folder(self, run: Command) -> None:
        """``@last`` is the newest of those that lie where runs usually do."""
        assert run("bench own.yaml --out 'my run'", *DATA, *QUICK) == 0
        assert lines(run)[-1] == f"next:  {POOL} 'my run'"

    def test_all_tables_have_no_quality_and_say_why(self, project: Path, run: Command) -> None:
        assert run("bench own.yaml", *DATA, *QUICK, "-v") == 0
        assert "Nothing is judged yet" in run.out
        assert "4 queries, none of them judged" in run.unwrapped
        assert not [word for word in QUALITY if word in run.out]
        (saved,) = saved_runs(project)
        assert "hits a query" in (saved / "summary.txt").read_text("utf-8")

    def test_means_are_null_and_hits_are_counted(self, run: Command) -> None:
        found = run.json("bench own.yaml", *DATA, *QUICK)
        assert found["dataset"]["n_queries"] == 0
        assert found["dataset"]["n_not_run"] == 0
        assert found["judged"] == {}
        assert found["hits"] == {"n": 4, "mean": 1.25, "fewer_than_k": 4, "none": 0}
        assert {one["mean"] for one in found["metrics"].values()} == {None}
        assert {one["n"] for one in found["metrics"].values()} == {0}

    @pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
    def test_every_format_leaves_quality_out(self, run: Command, form: str) -> None:
        assert run("bench own.yaml", *DATA, *QUICK, "--format", form) == 0
        assert "hits" in run.out
        assert not [word for word in QUALITY if word in run.out]

    def test_unanswerable_queries_are_asked_too(self, project: Path, run: Command) -> None:
        path = project / "loose" / "queries.jsonl"
        line = {"_id": "none", "text": "apples", "metadata": {"answerable": False}}
        path.write_text(path.read_text("utf-8") + json.dumps(line) + "\n", encoding="utf-8")
        found = run.json("bench own.yaml", *DATA, *QUICK)
        assert (found["hits"]["n"], found["unanswerable"]["n"]) == (5, 1)

    def test_failed_queries_are_told_once(self, run: Command) -> None:
        assert run("bench own.yaml", *DATA, *QUICK, "--set", "fail_on=whales") == 0
        assert "over 3 queries" in run.unwrapped
        assert run.out.count("failed") == 1
        assert "counts 0" not in run.out

    def test_where_no_query_is_answered_nothing_was_measured(self, run: Command) -> None:
        assert run("bench silent.yaml", *DATA, *QUICK) == 4
        assert "nothing could be measured of silent: no query was answered" in run.err
        assert "no query was answered" in run.out

    def test_a_plan_and_a_probe_need_no_judgements(self, run: Command) -> None:
        assert run("bench own.yaml --dry-run", *DATA) == 0
        assert "nothing is judged yet" in run.unwrapped
        assert run("bench own.yaml --probe 1", *DATA) == 0
        assert "A grade stands only where there is a judgement" in run.unwrapped

    def test_a_cold_start_needs_no_judgements(self, run: Command) -> None:
        assert run("bench bm25", *DATA, *QUICK, "--cold", "1") == 0
        assert "until first answer" in run.out


class TestCompare:
    def test_the_brief_has_no_quality_and_what_can_be_said(self, compared: Command) -> None:
        run = compared
        assert run.out.startswith("loose: 4 queries, none judged, 4 documents, top 10")
        assert "Nothing is judged yet, so nobody can tell which system is better." in run.unwrapped
        assert "own and whole share 75 % of their top 10, RBO 0.75." in run.unwrapped
        assert "overlap@10" in run.out
        assert "Where they differ most, and what each finds first" in run.out
        assert "q2: whales" in run.out
        assert "blue whales" in run.out  # without titles the texts begin
        assert not [word for word in QUALITY if word in run.out]
        assert lines(run)[-1] == f"next:  {POOL} @last"

    def test_saved_runs_are_told_in_full(self, compared: Command) -> None:
        run = compared
        assert run("compare @last -v") == 0
        assert "What the systems on loose find" in run.out
        assert "How alike the systems on loose answer" in run.out
        assert "Time and cost on loose" in run.out
        assert not [word for word in QUALITY if word in run.out]
        assert run("compare @last") == 0
        assert lines(run)[-1].startswith(f"next:  {POOL} results/runs/")

    def test_without_the_dataset_ids_are_shown(self, compared: Command, project: Path) -> None:
        run = compared
        (project / "loose").rename(project / "moved")
        assert run("compare @last") == 0
        assert "Ids only: the dataset 'loose' of the run was not found again" in run.unwrapped
        assert "blue whales" not in run.out
        assert run("compare @last --dataset moved") == 2  # a setting of measuring
        assert run("report @last --dataset moved") == 0

    def test_the_document(self, compared: Command) -> None:
        run = compared
        found: dict[str, Any] = run.json("compare @last")
        (alike,) = found["likeness"]
        assert found["comparisons"] == []
        assert (alike["dataset"], alike["k"], alike["p"]) == ("loose", 10, 0.9)
        (pair,) = alike["pairs"]
        assert (pair["n"], pair["same"], pair["overlap"]["mean"]) == (4, 3, 0.75)
        assert [one["query_id"] for one in alike["differing"]] == ["q2"]
        assert alike["differing"][0]["text"] == "whales"
        assert found["recommendations"][0]["system"] is None

    def test_columns(self, compared: Command) -> None:
        run = compared
        assert run("compare @last --format csv") == 0
        rows = [row for row in csv.DictReader(io.StringIO(run.out)) if row["against"]]
        assert [(row["metric"], row["mean"]) for row in rows] == [
            ("overlap@10", "0.75"),
            ("RBO", "0.75"),
        ]

    @pytest.mark.parametrize("form", ["markdown", "latex"])
    def test_other_formats(self, compared: Command, form: str) -> None:
        assert compared("compare", "@last", "--format", form) == 0
        assert not [word for word in QUALITY if word in compared.out]

    def test_judged_and_unjudged_datasets_stand_beside_each_other(self, run: Command) -> None:
        assert run("compare own.yaml whole.yaml --dataset loose data", *QUICK) == 0
        assert "loose: 4 queries, none judged" in run.out
        assert "data: 4 queries, 4 documents" in run.out
        assert "nDCG@10" in run.out
        # @last would be the runs on the last dataset alone
        assert lines(run)[-1].startswith(f"next:  {POOL} results/runs/")
        assert lines(run)[-1].count("-loose-") == 2

    def test_equal_answers_are_told(self, project: Path, run: Command) -> None:
        (project / "twin.yaml").write_text("name: twin\ntarget: own.py:Overlap\n", "utf-8")
        assert run("compare own.yaml twin.yaml", *DATA, *QUICK) == 0
        assert "own and twin answer all 4 queries the same." in run.unwrapped
        assert "differ most" not in run.out

    def test_a_system_that_fails_throughout_is_an_error(self, run: Command) -> None:
        assert run("compare own.yaml silent.yaml", *DATA, *QUICK) == 4
        assert "No query was answered by two systems." in run.unwrapped
        assert "nothing could be measured of silent" in run.err

    def test_a_fusion_of_saved_runs_needs_no_judgements(self, compared: Command) -> None:
        assert compared("compare", "@last", "--fuse") == 0
        assert "Of 3 pairs" in compared.unwrapped


class TestReport:
    def test_the_page_leaves_out_what_needs_judgements(
        self, compared: Command, project: Path
    ) -> None:
        run = compared
        assert run("report @last") == 0
        page = (project / "results" / "report.html").read_text("utf-8")
        assert "Nothing is judged here, so the page leaves out quality" in page
        assert "How alike the systems answer" in page
        assert "Speed, memory, disk" in page
        assert "q2: whales" in page
        for part in ("d1-front", "d1-differences", "d1-slices", "d1-queries"):
            assert f'id="{part}"' not in page
            assert f'href="#{part}"' not in page
        assert run("report --verify results/report.html") == 0

    def test_no_text_leaves_no_text(self, compared: Command, project: Path) -> None:
        assert compared("report", "@last", "--no-text") == 0
        page = (project / "results" / "report.html").read_text("utf-8")
        assert "q2" in page
        assert "blue whales" not in page
        assert "whales" not in page

    def test_methods_need_judgements(self, compared: Command) -> None:
        assert "--methods rests on judgements" in compared.refused("report", "@last", "--methods")


class TestWhatNeedsJudgements:
    @pytest.mark.parametrize(
        ("command", "what"),
        [
            (("tune", "bm25", *DATA), "tuning"),
            (("baseline", "own.yaml", *DATA), "the quality gate"),
            (("regress", "own.yaml", *DATA), "the quality gate"),
            (("explain", "own.yaml", "--by", "stage", *DATA), "explain --by stage"),
            (("compare", "own.yaml", "bm25", *DATA, "--until-decided"), "--until-decided"),
            (("compare", "own.yaml", "bm25", *DATA, "--slices"), "--slices"),
            (("score", "qa", "own.yaml", *DATA), "qa"),
        ],
    )
    def test_a_command_says_so_before_it_measures(
        self, project: Path, run: Command, command: tuple[str, ...], what: str
    ) -> None:
        assert run(*command) == 2
        assert f"nothing is judged in 'loose', and {what} rests on judgements" in run.err
        assert "accepted: a dataset of which some queries are judged" in run.err
        assert NEEDED in run.err
        assert not (project / "results").exists()

    @pytest.mark.parametrize(
        ("command", "what"),
        [
            (("explain", "@last", "--by", "stage"), "explain --by stage"),
            (("explain", "own@latest", "whole@latest"), "explain"),
            (("compare", "@last", "--slices"), "--slices"),
            (("compare", "@last", "--fuse", "tuned-rrf"), "tuning"),
        ],
    )
    def test_saved_runs_do_not_help(
        self, compared: Command, command: tuple[str, ...], what: str
    ) -> None:
        assert f"and {what} rests on judgements" in compared.refused(*command)

    def test_a_score_does_too(self, compared: Command, project: Path) -> None:
        folder = next((project / "results" / "runs").glob("*-own-*"))
        assert compared("score", "run", str(folder), *DATA) == 2
        assert "and a score rests on judgements" in compared.err

    def test_history_lists_the_runs(self, compared: Command) -> None:
        assert compared("data", "history", "--no-pictures") == 0
        assert "loose" in compared.out
        assert compared("data", "history", "own", "--no-pictures") == 0
