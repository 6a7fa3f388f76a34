"""``compare`` with all that it takes: baselines, margins, tests, slices, several datasets."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Command

pytestmark = pytest.mark.usefixtures("project")

QUICK = ("--rounds", "1", "--no-pictures", "--warm-up", "0")
BOTH = ("--retrievers", "own.yaml", "bm25")


@pytest.fixture
def second(project: Path) -> Path:
    """Another dataset, with a query less."""
    folder = project / "more"
    shutil.copytree(project / "data", folder)
    queries = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "queries.jsonl").write_text("\n".join(queries[:-1]) + "\n", encoding="utf-8")
    kept = {json.loads(line)["_id"] for line in queries[:-1]}
    qrels = folder / "qrels" / "test.tsv"
    head, *rows = qrels.read_text(encoding="utf-8").splitlines()
    rows = [row for row in rows if row.split("\t")[0] in kept]
    qrels.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return folder


def document(run: Command) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run.out)
    return found


class TestVerdicts:
    def test_the_answer_comes_first_and_the_family_is_stated(self, run: Command) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK, "-v") == 0
        assert "Holm-corrected over 1 pair of this metric and dataset" in run.unwrapped
        assert "Paired differences in nDCG@10 on data" in run.out
        # Both find the same; whether one is shown to be faster is the machine's.
        assert run.out.startswith(("own and bm25 have the same, highest nDCG@10", "Use "))

    @pytest.mark.slow
    def test_baseline_margin_and_further_tests_reach_the_document(self, run: Command) -> None:
        code = run(
            "compare --retrievers bm25 own.yaml bm25s --dataset data "
            "--baseline own --margin 0.2 --tests t wilcoxon --format json",
            *QUICK,
        )
        assert code == 0
        found = document(run)
        assert (found["baseline"], found["margin"]) == ("own", 0.2)
        assert {(row["a"], row["b"]) for row in found["comparisons"]} == {
            ("own", "bm25"),
            ("own", "bm25s"),
        }
        assert {"p_t", "p_t_adjusted", "p_wilcoxon", "p_wilcoxon_adjusted"} <= set(
            found["comparisons"][0]
        )
        assert {row["dataset"] for row in found["latency"]} == {"data"}
        assert [row["dataset"] for row in found["recommendations"]] == ["data"]

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (("--baseline", "onw"), "did you mean own"),
            (("--margin", "0"), "above 0 and below 1"),
            (("--tests", "welch"), "test 'welch'"),
            (("--slices", "lenght"), "length"),
        ],
    )
    def test_bad_input_is_told_before_anything_is_measured(
        self, project: Path, run: Command, given: tuple[str, ...], says: str
    ) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK, *given) == 2
        assert says in run.err
        assert not (project / "results").exists()


@pytest.mark.slow
class TestSeveralDatasets:
    @pytest.mark.slow
    def test_each_has_its_tables_and_all_have_a_board(
        self, project: Path, second: Path, run: Command
    ) -> None:
        assert run("compare --dataset data more", *BOTH, *QUICK) == 0
        for said in (
            "data: 4 queries, 4 documents, top 10; times interleaved, 1 client",
            "more: 3 queries, 4 documents, top 10; times interleaved, 1 client",
            "nDCG@10 on 2 datasets",
            "average",
        ):
            assert said in run.out
        assert len(list((project / "results" / "runs").glob("[!.]*"))) == 4

    @pytest.mark.slow
    def test_saved_runs_are_sorted_by_their_dataset(
        self, project: Path, second: Path, run: Command
    ) -> None:
        assert run("compare --dataset data more", *BOTH, *QUICK) == 0
        folders = [str(path) for path in sorted((project / "results" / "runs").glob("[!.]*"))]
        assert run("compare", *folders, "--format", "json") == 0
        found = document(run)
        assert [row["dataset"] for row in found["comparisons"][:1]] == ["data"]
        assert next(board["datasets"] for board in found["boards"]) == ["data", "more"]

    def test_faults_of_all_of_them_come_at_once(self, run: Command) -> None:
        assert run("compare --dataset none gone", *BOTH, *QUICK) == 2
        assert "2 problems" in run.err
        assert "none" in run.err
        assert "gone" in run.err

    def test_a_dry_run_plans_each(self, project: Path, second: Path, run: Command) -> None:
        assert run("compare --dataset data more --dry-run --format json", *BOTH) == 0
        plans = document(run)["experiments"]
        assert [plan["dataset"] for plan in plans] == ["data", "more"]
        assert not (project / "results").exists()


class TestTwice:
    def test_a_run_or_a_dataset_that_is_given_twice_is_refused(
        self, project: Path, run: Command
    ) -> None:
        assert run("compare --dataset data ./data", *BOTH, *QUICK) == 2
        assert "is given twice" in run.err
        assert run("compare --dataset data", *BOTH, *QUICK) == 0
        one = str(next((project / "results" / "runs").glob("[!.]*")))
        assert run(f"compare {one} {one}") == 2
        assert "is given twice" in run.err

    def test_a_table_for_programs_has_a_row_for_each_pair(self, run: Command) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK, "--format", "csv") == 0
        rows = list(csv.DictReader(io.StringIO(run.out)))
        pairs = [row for row in rows if row["against"]]
        assert {(row["system"], row["against"]) for row in pairs} == {("bm25", "own")}
        assert len({row["metric"] for row in pairs}) == len(pairs) == 5
        assert all((row["mean"] == "") == bool(row["against"]) for row in rows)
        means = {row["system"]: float(row["mean"]) for row in rows if row["metric"] == "nDCG@10"
                 and not row["against"]}  # fmt: skip
        (gap,) = [float(row["difference"]) for row in pairs if row["metric"] == "nDCG@10"]
        assert gap == pytest.approx(means["bm25"] - means["own"])


class TestSlices:
    @pytest.mark.slow
    def test_slices_of_saved_runs_find_the_dataset_again(self, project: Path, run: Command) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK) == 0
        folders = [str(path) for path in sorted((project / "results" / "runs").glob("[!.]*"))]
        assert run("compare", *folders, "--slices", "relevant", "--format", "json") == 0
        (found,) = document(run)["slices"]
        assert sum(one["n"] for one in found["slices"]) == found["whole"]["n"]
        shutil.move(project / "data", project / "moved")
        assert run("compare", *folders, "--slices", "relevant") == 2
        assert "--dataset" in run.err
        assert run("compare", *folders, "--slices", "relevant", "--dataset", "moved") == 0

    def test_a_dataset_without_slices_does_nothing_for_saved_runs(
        self, project: Path, run: Command
    ) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK) == 0
        folders = [str(path) for path in sorted((project / "results" / "runs").glob("[!.]*"))]
        assert run("compare", *folders, "--dataset", "data") == 2
        assert "--dataset beside saved runs" in run.err


class TestFusion:
    def test_saved_runs_are_fused_and_the_fusion_is_saved(self, run: Command) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK) == 0
        assert run("compare @last --fuse rrf tuned-convex --format json") == 2
        assert "accepted: at least one for each of 5 folds" in run.err
        assert run("compare @last --fuse --format json") == 0
        names = [system["name"] for system in document(run)["systems"]]
        assert names == ["own", "bm25", "rrf of own + bm25"]
        assert run("explain @last --format json") == 0

    def test_what_cannot_be_fused_is_refused(self, run: Command) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK) == 0
        assert run("compare @last --fuse borda") == 2
        assert "accepted: convex, rrf, tuned-convex, tuned-rrf" in run.err

    def test_tune_takes_saved_runs_or_a_retriever(self, run: Command) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK) == 0
        assert run("tune own@latest bm25@latest --folds 2 --format json") == 0
        found = document(run)
        assert found["retriever"] == "fusion of own + bm25"
        assert set(found["grid"]) == {"fusion.k", "fusion.weights"}
        assert run("tune own@latest hybrid") == 2
        assert "one retriever, or saved runs to fuse" in run.err
        assert run("tune own@latest bm25@latest --split dev") == 2


def test_the_test_of_equivalence_is_named(run: Command) -> None:
    assert run("compare --dataset data", *BOTH, *QUICK, "--format", "json") == 0
    assert document(run)["equivalence"] == "bound"
    assert run("compare @last --equivalence tost --format json") == 0
    assert document(run)["equivalence"] == "tost"
    assert run("compare @last --equivalence nhst") == 2


class TestUntilDecided:
    """Retrievers that are asked no more than it takes."""

    def test_the_answer_says_what_was_saved_and_which_interval_it_is(self, run: Command) -> None:
        asked = ("compare", *BOTH, "--dataset", "data", "--until-decided")
        assert run(*asked) == 0
        meant = "anytime-valid intervals by betting, of the mean of "
        assert f"{meant}queries like these" in run.unwrapped
        assert "p50" not in run.out
        assert run(*asked, "split") == 0
        assert f"{meant}all queries of this split" in run.unwrapped
        assert run(*asked, "--format", "json") == 0
        found = document(run)
        (saved,) = found["until_decided"]
        assert saved["target"] == "population"
        assert saved["calls"] + saved["calls_saved"] == 2 * saved["queries"]
        assert found["comparisons"][0]["interval"] == "anytime-valid, betting"
        assert found["latency"] == []
        assert run("compare @last --format json") == 0
        assert document(run)["until_decided"] == found["until_decided"]
        assert run("report @last --methods") == 0
        assert "betting confidence sequences" in Path("results/report.tex").read_text("utf-8")

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (("--until-decided", "--rounds", "2"), "--rounds with --until-decided"),
            (("--until-decided", "--tests", "t"), "--tests with --until-decided"),
            (("--until-decided", "--slices"), "--slices with --until-decided"),
            (("--until-decided", "all"), "target 'all'"),
        ],
    )
    def test_what_does_not_go_with_it_is_refused(
        self, run: Command, more: tuple[str, ...], said: str
    ) -> None:
        assert run("compare --dataset data", *BOTH, *more) == 2
        assert said in run.err

    def test_saved_runs_were_asked_already(self, run: Command) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK) == 0
        assert run("compare @last --until-decided") == 2
        assert "--until-decided beside saved runs" in run.err


RUNS = {
    "one.run": "q1 Q0 d2 1 9.5 x\nq1 Q0 d1 2 8.5 x\nq2 Q0 d2 1 3.5 x\n",
    "two.trec": "q1 Q0 d1 1 0.9 x\nq1 Q0 d3 2 0.8 x\nq2 Q0 d2 1 0.7 x\nq3 Q0 d3 1 0.6 x\n",
}


class TestFusing:
    @pytest.fixture(autouse=True)
    def runs(self, project: Path) -> None:
        for name, text in RUNS.items():
            (project / name).write_text(text, encoding="utf-8")

    def test_two_run_files_are_fused_in_one_step(self, run: Command, project: Path) -> None:
        systems = ("one.run", "two.trec", "--dataset", "data", "--fuse")
        assert run("compare", *systems, *QUICK) == 0
        assert "rrf of one + two" in run.out
        # d1 is second and first, d2 first, d3 second: 1/61 + 1/62 is above both.
        runs = (project / "results" / "runs").iterdir()
        (folder,) = (path for path in runs if "rrf" in path.name)
        assert (folder / "run.trec").read_text(encoding="utf-8").startswith("q1 Q0 d1 1 ")

    def test_a_run_file_beside_a_retriever_as_well(self, run: Command) -> None:
        systems = ("own.yaml", "one.run", "--dataset", "data", "--fuse", "convex")
        assert run("compare", *systems, *QUICK) == 0
        assert "convex of own + one" in run.out
        assert "Times were measured apart" not in run.out

    def test_a_name_that_is_no_fusion_is_refused_before_anything_is_measured(
        self, run: Command, project: Path
    ) -> None:
        assert run("compare one.run two.trec --dataset data --fuse borda") == 2
        assert "fusion 'borda'" in run.err
        assert not (project / "results").exists()

    def test_a_fusion_needs_the_queries_that_all_were_asked(self, run: Command) -> None:
        systems = ("one.run", "two.trec", "--dataset", "data", "--fuse", "--until-decided")
        assert run("compare", *systems) == 2
        assert "--fuse with --until-decided" in run.err

    def test_a_file_of_code_is_no_run(self, run: Command) -> None:
        assert run("compare one.run own.py --dataset data") == 2
        assert "unknown retriever 'own.py'" in run.err
