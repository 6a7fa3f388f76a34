"""``compare`` with all that it takes: baselines, margins, tests, slices, several datasets."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from tests.builders.files import save_all
from tests.cli.project import QUICK, Command, saved_runs

pytestmark = pytest.mark.usefixtures("project")

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


class TestVerdicts:
    def test_the_answer_comes_first_and_the_family_is_stated(self, run: Command) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK, "-v") == 0
        assert "Holm-corrected over 1 pair of this metric and dataset" in run.unwrapped
        assert "Paired differences in nDCG@10 on data" in run.out
        # Both find the same; whether one is shown to be faster is the machine's.
        assert run.out.startswith(("own and bm25 return identical rankings", "Use "))

    @pytest.mark.slow
    def test_baseline_margin_and_further_tests_reach_the_document(self, run: Command) -> None:
        found = run.json(
            "compare --retrievers bm25 own.yaml bm25s --dataset data "
            "--baseline own --margin 0.2 --tests t wilcoxon",
            *QUICK,
        )
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
            (("--equivalence", "nhst"), "invalid choice: 'nhst'"),
            (("--dataset", "data", "./data"), "is given twice"),
            (("--dataset", "none", "gone"), "2 problems"),
            (("--dataset", "none", "gone"), "'none'"),
            (("--dataset", "none", "gone"), "'gone'"),
            (("--until-decided", "--rounds", "2"), "--rounds with --until-decided"),
            (("--until-decided", "--tests", "t"), "--tests with --until-decided"),
            (("--until-decided", "--slices"), "--slices with --until-decided"),
            (("--until-decided", "all"), "target 'all'"),
        ],
    )
    def test_bad_input_is_told_before_anything_is_measured(
        self, project: Path, run: Command, given: tuple[str, ...], says: str
    ) -> None:
        assert says in run.refused("compare --dataset data", *BOTH, *given)
        assert not (project / "results").exists()

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (("--dataset", "data"), "--dataset beside saved runs"),
            (("--until-decided",), "--until-decided beside saved runs"),
            (("--fuse", "borda"), "accepted: convex, rrf, tuned-convex, tuned-rrf"),
            (("--fuse", "rrf", "tuned-convex"), "accepted: 5 or more: each is answered"),
            (("own@latest",), "is given twice"),
        ],
    )
    def test_of_saved_runs_all_is_settled(
        self, run: Command, given: tuple[str, ...], says: str
    ) -> None:
        assert run("compare --dataset data", *BOTH, *QUICK) == 0
        assert says in run.refused("compare @last", *given)


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
        folders = list(map(str, saved_runs(project)))
        assert len(folders) == 4
        found = run.json("compare", *folders)  # sorted by their dataset
        assert [row["dataset"] for row in found["comparisons"][:1]] == ["data"]
        assert next(board["datasets"] for board in found["boards"]) == ["data", "more"]

    @pytest.mark.usefixtures("second")
    def test_a_dry_run_plans_each(self, project: Path, run: Command) -> None:
        plans = run.json("compare --dataset data more --dry-run", *BOTH)["experiments"]
        assert [plan["dataset"] for plan in plans] == ["data", "more"]
        assert not (project / "results").exists()


def test_a_table_for_programs_has_a_row_for_each_pair(run: Command) -> None:
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


@pytest.mark.slow
def test_slices_of_saved_runs_find_the_dataset_again(project: Path, run: Command) -> None:
    assert run("compare --dataset data", *BOTH, *QUICK) == 0
    sliced = ("compare", *map(str, saved_runs(project)), "--slices", "relevant")
    (found,) = run.json(*sliced)["slices"]
    assert sum(one["n"] for one in found["slices"]) == found["whole"]["n"]
    shutil.move(project / "data", project / "moved")
    assert "--dataset" in run.refused(*sliced)
    assert run(*sliced, "--dataset", "moved") == 0


def test_saved_runs_are_fused_tested_or_tuned(run: Command) -> None:
    found = run.json("compare --dataset data", *BOTH, *QUICK)
    assert found["equivalence"] == "bound"
    assert run.json("compare @last --equivalence tost")["equivalence"] == "tost"
    found = run.json("tune own@latest bm25@latest --folds 2")
    assert found["retriever"] == "fusion of own + bm25"
    assert set(found["grid"]) == {"fusion.k", "fusion.weights"}
    assert "one retriever, or saved runs to fuse" in run.refused("tune own@latest hybrid")
    assert run("tune own@latest bm25@latest --split dev") == 2
    names = [system["name"] for system in run.json("compare @last --fuse")["systems"]]
    assert names == ["own", "bm25", "rrf of own + bm25"]
    assert run("explain @last --format json") == 0, "the fusion was saved"


def test_until_decided_says_what_was_saved_and_which_interval_it_is(run: Command) -> None:
    """Retrievers are asked no more than it takes."""
    asked = ("compare", *BOTH, "--dataset", "data", "--until-decided")
    assert run(*asked) == 0
    meant = "anytime-valid intervals by betting, of the mean of "
    assert f"{meant}queries like these" in run.unwrapped
    assert "p50" not in run.out
    assert run(*asked, "split") == 0
    assert f"{meant}all queries of this split" in run.unwrapped
    found = run.json(*asked)
    (saved,) = found["until_decided"]
    assert saved["target"] == "population"
    assert saved["calls"] + saved["calls_saved"] == 2 * saved["queries"]
    assert found["comparisons"][0]["interval"] == "anytime-valid, betting"
    assert found["latency"] == []
    assert run.json("compare @last")["until_decided"] == found["until_decided"]
    assert run("report @last --methods") == 0
    assert "betting confidence sequences" in Path("results/report.tex").read_text("utf-8")


RUNS = {
    "one.run": "q1 Q0 d2 1 9.5 x\nq1 Q0 d1 2 8.5 x\nq2 Q0 d2 1 3.5 x\n",
    "two.trec": "q1 Q0 d1 1 0.9 x\nq1 Q0 d3 2 0.8 x\nq2 Q0 d2 1 0.7 x\nq3 Q0 d3 1 0.6 x\n",
}


class TestFusing:
    @pytest.fixture(autouse=True)
    def runs(self, project: Path) -> None:
        save_all(project, RUNS)

    def test_two_run_files_are_fused_in_one_step(self, run: Command, project: Path) -> None:
        systems = ("one.run", "two.trec", "--dataset", "data", "--fuse")
        assert run("compare", *systems, *QUICK) == 0
        assert "rrf of one + two" in run.out
        # d1 is second and first, d2 first, d3 second: 1/61 + 1/62 is above both.
        (folder,) = (path for path in saved_runs(project) if "rrf" in path.name)
        assert (folder / "run.trec").read_text(encoding="utf-8").startswith("q1 Q0 d1 1 ")

    def test_a_run_file_beside_a_retriever_as_well(self, run: Command) -> None:
        systems = ("own.yaml", "one.run", "--dataset", "data", "--fuse", "convex")
        assert run("compare", *systems, *QUICK) == 0
        assert "convex of own + one" in run.out
        assert "Times were measured apart" not in run.out

    def test_of_files_alone_nothing_is_said_of_calls(self, run: Command) -> None:
        assert run("compare one.run two.trec --dataset data -v") == 0
        assert "the rankings were read from a saved run" in run.out
        assert "Calls:" not in run.out
        assert "Times were measured" not in run.out
        assert "explain @last" in run.refused("explain one.run two.trec")

    @pytest.mark.parametrize(
        ("more", "says"),
        [("borda", "fusion 'borda'"), ("--until-decided", "--fuse with --until-decided")],
    )
    def test_what_cannot_be_fused_is_refused_before_anything_is_measured(
        self, run: Command, project: Path, more: str, says: str
    ) -> None:
        assert says in run.refused(f"compare one.run two.trec --dataset data --fuse {more}")
        assert not (project / "results").exists()

    def test_a_file_of_code_is_no_run(self, run: Command) -> None:
        assert "unknown retriever 'own.py'" in run.refused("compare one.run own.py --dataset data")


def test_a_plan_gives_all_documents_to_what_asks_a_service(run: Command, here: Path) -> None:
    service = (
        "from retrieval_bench.core.retriever import Capabilities, Retriever\n"
        "from retrieval_bench.core.types import Ranking\n\n\n"
        "class Service(Retriever):\n"
        "    @property\n"
        "    def capabilities(self):\n"
        "        return Capabilities(external=True)\n\n"
        "    def search(self, query, k):\n"
        "        return Ranking(['d55'], [1.0])\n\n\n"
        "class Own(Service):\n"
        "    def __init__(self):\n"
        "        self.retriever = object()\n\n\n"
        "def score(text, documents):\n"
        "    return [1.0 for _ in documents]\n"
    )
    documents = [json.dumps({"_id": f"d{at}", "text": f"text {at}"}) for at in range(60)]
    save_all(
        here,
        {
            "svc.py": service,
            "many/corpus.jsonl": "\n".join(documents),
            "many/queries.jsonl": '{"_id": "q", "text": "text"}',
            "many/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td55\t1\n",
            "both.yaml": "target: hybrid\nparams: {legs: [bm25, {target: 'svc.py:Service'}]}\n",
            "read.yaml": "target: pipeline\nparams:\n  steps:\n"
            "  - retrieve: {target: 'svc.py:Service'}\n  - rerank: 'svc.py:score'\n",
        },
    )
    for config in ("both.yaml", "read.yaml", "svc:Own"):
        assert run(f"bench {config} --dataset many --dry-run") == 0, run.err
