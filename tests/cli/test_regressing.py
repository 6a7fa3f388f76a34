"""``baseline`` and ``regress`` as a user sees them; the duet is played by a stand-in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench_duet.result import DuetResult
from retrieval_bench_regress import regress as workflow
from retrieval_bench_regress.files import Places, write
from tests.builders.baselines import duet_result
from tests.builders.files import json_lines, save, save_all
from tests.builders.git_project import GitProject
from tests.cli.project import Command

pytestmark = pytest.mark.usefixtures("project")

OWN = """
from retrieval_bench import Ranking
from own import Overlap


class Turned(Overlap):
    '''Overlap, best first or last.'''

    def __init__(self, *, turn: str = "", fail_on: str = "") -> None:
        super().__init__(fail_on=fail_on)
        self.turn = turn

    def search(self, query, k):
        if self.turn == "stop":
            raise KeyboardInterrupt
        hits = super().search(query, k)
        if self.turn == "all" or (self.turn and query.id.endswith(self.turn)):
            return Ranking([h for h, _ in reversed(hits)])
        return Ranking([h for h, _ in hits])
"""
QUALITY = "limits: {nDCG@10: -0.01}\n"
LATENCY = "limits: {p50: 5%}\n"
BOTH = "limits: {p50: 5%, nDCG@10: -0.01}\n"


@pytest.fixture
def project(project: Path) -> Path:
    """Twelve more queries than usual: as few as a gate of latency and a test can do with."""
    with (project / "data/queries.jsonl").open("a", encoding="utf-8") as file:
        file.write(json_lines({"_id": f"n{i:02d}", "text": "red apples and"} for i in range(12)))
    with (project / "data/qrels/test.tsv").open("a", encoding="utf-8") as file:
        file.writelines(f"n{i:02d}\td1\t1\n" for i in range(12))
    policy(project, QUALITY)
    mine = "name: mine\ntarget: turned.py:Turned\n"
    return save_all(project, {"turned.py": OWN, "mine.yaml": mine})


def policy(folder: Path, text: str) -> None:
    save(folder / "configs" / "policy.yaml", text)


BASELINE = "baseline --retriever mine.yaml --dataset data --min-calls 32"
REGRESS = "regress --retriever mine.yaml --dataset data"


def baseline(run: Command, *more: str) -> int:
    return run(BASELINE, *more)


def regress(run: Command, *more: str) -> int:
    return run(REGRESS, *more)


def of_quality(folder: Path) -> Path:
    return folder / "results/baselines/mine-data.json"


def of_latency(folder: Path) -> Path:
    (path,) = (folder / "results/baselines").glob("*/mine-data.json")
    return path


def committed(folder: Path) -> None:
    GitProject(folder).commit({})


class TestBaseline:
    @pytest.mark.slow
    def test_it_writes_two_small_files_and_says_where(self, project: Path, run: Command) -> None:
        assert baseline(run) == 0
        assert "Baseline of mine on data (test), k = 10" in run.out
        assert "written: results/baselines/mine-data.json" in run.out
        assert f"written: {of_latency(project).relative_to(project)}" in run.out
        kept = json.loads(of_quality(project).read_text(encoding="utf-8"))
        assert kept["queries"]["q1"][-1] == 1.0
        assert "질문" in of_quality(project).read_text(encoding="utf-8")
        times = json.loads(of_latency(project).read_text(encoding="utf-8"))
        assert set(times["queries"]) == set(kept["queries"])
        assert all(type(ns) is int and ns > 0 for ns in times["queries"].values())
        assert times["protocol"]["min_calls"] == 32
        assert times["machine"]["fingerprint"] == of_latency(project).parent.name

    def test_it_measures_what_the_policy_limits(self, project: Path, run: Command) -> None:
        policy(project, "limits: {RBP(p=0.8)@5: -0.01}\n")
        document = run.json(BASELINE, "--metrics", "P@3")
        figures = {row["figure"] for row in document["changes"]}
        assert {"RBP(p=0.8)@5", "P@3", "nDCG@10"} <= figures

    def test_it_does_not_overwrite(self, project: Path, run: Command) -> None:
        baseline(run)
        before = of_quality(project).read_bytes()
        assert baseline(run, "--set", "turn=all") == 2
        assert "mine has a baseline on data" in run.err
        assert "do: compare with it: regress; replace it: --force" in run.err
        assert of_quality(project).read_bytes() == before

    @pytest.mark.slow
    @pytest.mark.parametrize("again", [(BASELINE, "--force"), (REGRESS, "--accept")])
    def test_force_and_accept_replace_it_and_say_what_changes(
        self, run: Command, again: tuple[str, str]
    ) -> None:
        baseline(run)
        assert run(*again, "--set", "turn=all") == 0
        assert re.search(r"nDCG@10 +1.0000 +0", run.out)
        assert regress(run, "--set", "turn=all") == 0

    @pytest.mark.slow
    def test_another_machine_adds_its_times_only(
        self, project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        baseline(run)
        of_latency(project).parent.rename(project / "results/baselines/000000000000")
        before = of_quality(project).read_bytes()
        assert baseline(run) == 0
        kept = "kept, since the rankings are the same as before: results/baselines/mine-data.json"
        assert kept in run.unwrapped
        assert of_quality(project).read_bytes() == before
        assert len(list((project / "results/baselines").glob("*/mine-data.json"))) == 2

    @pytest.mark.slow
    def test_another_machine_does_not_change_quality_unasked(
        self, project: Path, run: Command
    ) -> None:
        baseline(run)
        of_latency(project).unlink()
        assert baseline(run, "--set", "turn=all") == 2
        assert "it would change" in run.err
        assert regress(run) == 0

    @pytest.mark.slow
    def test_a_dirty_tree_is_told(self, project: Path, run: Command) -> None:
        committed(project)
        assert baseline(run) == 0
        assert "commit first" not in run.out
        (project / "own.py").write_text("# changed\n" + (project / "own.py").read_text())
        assert baseline(run, "--force") == 0
        assert "commit first, then retrieval-bench baseline mine.yaml" in run.unwrapped
        assert json.loads(of_latency(project).read_text())["revision"]["dirty"] is True

    @pytest.mark.slow
    def test_baselines_themselves_make_no_tree_dirty(self, project: Path, run: Command) -> None:
        baseline(run)
        committed(project)
        assert baseline(run, "--force", "--set", "turn=all") == 0
        assert baseline(run, "--force", "--set", "turn=all") == 0
        assert json.loads(of_latency(project).read_text())["revision"]["dirty"] is False

    @pytest.mark.slow
    def test_where_most_queries_fail_there_is_nothing_to_keep(
        self, project: Path, run: Command
    ) -> None:
        """Such a baseline would pass whatever is measured against it."""
        assert baseline(run, "--set", "fail_on=apples") == 4
        assert "13 of 16 judged queries failed: there is nothing to keep" in run.err
        assert "warning: 13 queries failed: RuntimeError" in run.err
        assert regress(run, "--accept", "--set", "fail_on=apples") == 4
        assert not of_quality(project).exists()
        assert baseline(run, "--set", "fail_on=whales") == 0
        assert regress(run, "--set", "fail_on=whales") == 0
        assert "identical (16 evaluated queries, 1 of them failed then and now)" in run.unwrapped

    @pytest.mark.slow
    def test_nothing_answered_is_nothing_to_keep(self, project: Path, run: Command) -> None:
        assert baseline(run, "--set", "fail_on=''") == 0
        (project / "data/queries.jsonl").write_text(
            '{"_id": "q1", "text": "red"}\n{"_id": "q2", "text": "red"}\n', encoding="utf-8"
        )
        (project / "data/qrels/test.tsv").write_text(
            "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\n", encoding="utf-8"
        )
        before = of_quality(project).read_bytes()
        assert baseline(run, "--force", "--set", "fail_on=red") == 4
        assert "there is nothing to keep" in run.err
        assert of_quality(project).read_bytes() == before


class TestQuality:
    @pytest.mark.slow
    def test_identical_rankings_pass(self, run: Command) -> None:
        baseline(run)
        assert regress(run) == 0
        assert "\n  saved: results/runs/" in run.out
        assert run.out.startswith("PASS: mine on data (test), k = 10")
        assert "Quality: all rankings are identical (16 evaluated queries)." in run.out

    @pytest.mark.slow
    def test_a_bug_fails_and_shows_the_queries(self, run: Command) -> None:
        baseline(run)
        assert regress(run, "--set", "turn=all") == 1
        assert run.out.startswith("FAIL: mine on data")
        assert "nDCG@10: dropped by more than the limit, and not by chance" in run.out
        assert "Rankings that changed: 13 of 16 evaluated queries" in run.out
        assert "3 more queries with other figures: --format json has all." in run.out
        assert "The settings of the retriever changed: " in run.unwrapped
        assert "if the change is wanted, --accept replaces the baseline." in run.unwrapped

    @pytest.mark.slow
    @pytest.mark.parametrize("gone", ["stdout", "stderr"])
    def test_a_reader_that_goes_away_makes_no_failure_a_success(
        self, run: Command, monkeypatch: pytest.MonkeyPatch, gone: str
    ) -> None:
        baseline(run)
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "w", encoding="utf-8") as nobody:
            monkeypatch.setattr(sys, gone, nobody)
            assert regress(run, "--set", "turn=all", "--format", "json") == 1

    @pytest.mark.slow
    def test_one_changed_query_is_inconclusive(self, run: Command) -> None:
        baseline(run)
        assert regress(run, "--set", "turn=n05") == 3
        assert run.out.startswith("INCONCLUSIVE: mine on data")
        assert " n05: red apples and   1.0000 -> 0.6309" in run.out
        assert "Look at the queries that changed, and undo the change, take it" in run.unwrapped
        told = "until then the key `undecided` of the policy decides the exit code."
        assert told in run.unwrapped

    @pytest.mark.slow
    @pytest.mark.parametrize(("undecided", "code"), [("pass", 0), ("fail", 1), ("inconclusive", 3)])
    def test_the_policy_says_what_that_means(
        self, project: Path, run: Command, undecided: str, code: int
    ) -> None:
        baseline(run)
        (project / "own-policy.yaml").write_text(QUALITY + f"undecided: {undecided}\n")
        assert regress(run, "--set", "turn=n05", "--policy", "own-policy.yaml") == code
        assert run.out.startswith("INCONCLUSIVE")

    def test_no_baseline_is_told_before_anything_is_measured(self, run: Command) -> None:
        assert regress(run, "--set", "turn=stop") == 4
        assert run.out.startswith("NOT MEASURED: mine on data")
        told = "make one: retrieval-bench baseline mine.yaml --dataset data --set turn=stop"
        assert told in run.out

    @pytest.mark.slow
    @pytest.mark.parametrize("file", [of_quality, of_latency])
    def test_a_broken_file_is_never_a_pass(
        self, project: Path, run: Command, file: Callable[[Path], Path]
    ) -> None:
        policy(project, BOTH if file is of_latency else QUALITY)
        baseline(run)
        save(file(project), "")
        assert regress(run) == 4
        assert run.out.startswith("NOT MEASURED")
        alike = "Quality: all rankings are identical (16 evaluated queries)."
        assert (alike in run.out) == (file is of_latency)

    @pytest.mark.slow
    def test_a_baseline_of_another_version_is_no_bad_input(
        self, project: Path, run: Command
    ) -> None:
        assert baseline(run) == 0
        at = Places(project / "results/baselines", "mine", "data", "")
        kept = at.read_quality()
        other = {
            "metrics_version": 99,
            "metrics": {**kept.metrics, "Novelty@3": 0.5},
            "queries": {q: [*row, *[0.5] * (len(row) > 1)] for q, row in kept.queries.items()},
        }
        write([(at.quality, kept.model_copy(update=other))])
        policy(project, BOTH)
        assert regress(run, "--duet", "never") == 4
        assert "Quality: the baseline has metrics version 99, now it is 1" in run.out
        assert "make the baseline anew: retrieval-bench baseline" in run.out
        assert regress(run, "--accept") == 0
        assert re.search(r"Novelty@3 +0.5000 +-", run.out)

    @pytest.mark.slow
    def test_other_data_is_never_a_pass(self, project: Path, run: Command) -> None:
        baseline(run)
        with (project / "data/qrels/test.tsv").open("a", encoding="utf-8") as file:
            file.write("n00\td2\t1\n")
        assert regress(run) == 4
        assert "of another dataset fingerprint: its content has changed" in run.unwrapped
        assert regress(run, "--k", "11") == 4

    @pytest.mark.slow
    def test_failing_queries_are_no_pass(self, run: Command) -> None:
        baseline(run)
        assert regress(run, "--set", "fail_on=apples") == 4
        assert "1.0000 -> 0.0000 (failed)" in run.out
        assert "13 queries failed" in run.out
        assert "\n  See why queries fail that were answered before" in run.out

    @pytest.mark.slow
    def test_an_interruption_judges_nothing(self, project: Path, run: Command) -> None:
        baseline(run)
        before = of_quality(project).read_bytes()
        for more in ((), ("--accept",)):
            assert regress(run, "--set", "turn=stop", *more) == 130
            assert "PASS" not in run.out
        assert of_quality(project).read_bytes() == before

    @pytest.mark.slow
    def test_json_is_one_document(self, run: Command) -> None:
        baseline(run)
        document = run.json(REGRESS, "--set", "turn=all", code=1)
        assert (document["verdict"], document["exit_code"]) == ("FAIL", 1)
        assert document["latency"] is None
        assert len(document["quality"]["changed"]) == 13
        assert document["baselines"]["quality"]["path"] == "results/baselines/mine-data.json"


def test_a_duet_that_nothing_could_be_judged_by_is_refused(run: Command) -> None:
    assert regress(run, "--duet", "always") == 2
    assert "a duet, and no limit on latency" in run.err


class TestAccept:
    @pytest.mark.slow
    def test_it_makes_the_first_one(self, run: Command) -> None:
        assert regress(run, "--accept") == 0
        assert "written: results/baselines/mine-data.json" in run.out

    @pytest.mark.parametrize(
        "words", [("--duet", "always"), ("--junit", "gates.xml"), ("--setup", "true")]
    )
    def test_what_is_accepted_is_not_judged(self, run: Command, words: tuple[str, ...]) -> None:
        assert regress(run, "--accept", *words) == 2
        assert f"{words[0]} with --accept" in run.err

    @pytest.mark.slow
    def test_what_cannot_be_written_leaves_everything(self, project: Path, run: Command) -> None:
        (project / "wall").write_text("", encoding="utf-8")
        assert regress(run, "--accept", "--baselines", "wall") == 2
        assert "cannot write the baseline" in run.err


class TestLatency:
    @pytest.fixture
    def duet(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[DuetResult], list[Any]]:
        """Put a result in place of a duet; gives the codes that it is asked for."""

        def placed(result: DuetResult) -> list[Any]:
            asked: list[Any] = []

            def against(code: Any, *_: Any, **options: Any) -> Callable[[], DuetResult]:
                def play() -> DuetResult:
                    asked.append(code)
                    return result

                return play

            monkeypatch.setattr(workflow, "duet_against", against)
            return asked

        return placed

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("verdict", "code"),
        [(Verdict.EQUIVALENT, 0), (Verdict.WORSE, 1), (Verdict.UNDECIDED, 3), (Verdict.MISSING, 4)],
    )
    def test_the_duet_decides(
        self, project: Path, run: Command, duet: Any, verdict: Verdict, code: int
    ) -> None:
        policy(project, BOTH)
        committed(project)
        baseline(run)
        asked = duet(duet_result(verdict, 1.08))
        assert regress(run, "--duet", "always") == code
        assert asked[0].retriever == "mine.yaml"
        assert "+8.0 %" in run.out
        assert "mine at WORKTREE" in run.out
        assert "Quality: all rankings are identical (16 evaluated queries)." in run.out

    @pytest.mark.slow
    def test_an_interrupted_duet_is_an_interruption(
        self, project: Path, run: Command, duet: Any
    ) -> None:
        policy(project, BOTH)
        committed(project)
        baseline(run)
        duet(duet_result(Verdict.EQUIVALENT, interrupted=True))
        document = run.json(REGRESS, "--duet", "always", code=130)
        assert document["exit_code"] == 130
        assert document["quality"]["gates"][0]["verdict"] == "PASS"
        assert run.err.endswith("retrieval-bench: interrupted: latency was not judged\n")
        assert regress(run, "--duet", "always", "--set", "turn=all") == 1
        assert "latency was not judged" in run.err
        duet(duet_result(Verdict.WORSE, interrupted=True))
        assert regress(run, "--duet", "always") == 1
        assert "not judged" not in run.err

    @pytest.mark.slow
    def test_another_machine_says_so_and_judges_quality(self, project: Path, run: Command) -> None:
        policy(project, BOTH)
        baseline(run)
        of_latency(project).parent.rename(project / "results/baselines/000000000000")
        assert regress(run) == 4
        assert "only of 000000000000: times of another machine say nothing here" in run.unwrapped
        assert "Quality: all rankings are identical (16 evaluated queries)." in run.out
        assert "or measure both revisions here: --duet always" in run.unwrapped
        assert regress(run, "--set", "turn=all") == 1

    @pytest.mark.slow
    def test_another_machine_can_measure_both_revisions(
        self, project: Path, run: Command, duet: Any
    ) -> None:
        policy(project, BOTH)
        committed(project)
        baseline(run, "--set", "turn=n05")
        of_latency(project).unlink()
        asked = duet(duet_result(Verdict.EQUIVALENT))
        assert regress(run, "--duet", "always", "--set", "turn=n05") == 0
        assert asked[0].overrides == ("turn=n05",)
        assert len(asked[0].commit) == 40
        told = f"i side a of the duet is {asked[0].commit[:10]}, the commit of the quality"
        assert told in run.unwrapped

    @pytest.mark.slow
    def test_no_revision_is_told(self, project: Path, run: Command) -> None:
        policy(project, BOTH)
        baseline(run)
        assert regress(run, "--duet", "always") == 4
        told = "the baseline names no revision: it was made outside of a git repository"
        assert told in run.unwrapped

    @pytest.mark.slow
    def test_other_versions_are_told(self, project: Path, run: Command) -> None:
        policy(project, BOTH)
        baseline(run)
        at = Places(project / "results/baselines", "mine", "data", of_latency(project).parent.name)
        kept = at.read_latency()
        old = kept.model_copy(update={"packages": {**kept.packages, "numpy": "0.1"}})
        write([(at.latency, old)])
        regress(run, "--duet", "never")
        assert "i other versions than the baseline's: numpy " in run.unwrapped
        assert "(was 0.1)" in run.unwrapped

    @pytest.mark.slow
    @pytest.mark.long
    def test_a_real_slow_down_is_found_by_a_real_duet(self, project: Path) -> None:
        """Nothing stands in for anything here: two revisions, processes of their own."""
        policy(project, LATENCY)
        code = "import time\n" + (project / "turned.py").read_text(encoding="utf-8")

        def sleeping(seconds: float) -> None:
            sleep = f"        time.sleep({seconds})\n"
            (project / "turned.py").write_text(
                code.replace("        hits = super", f"{sleep}        hits = super")
            )

        def made(*words: str) -> subprocess.CompletedProcess[str]:
            what = ("--retriever", "mine.yaml", "--dataset", "data")
            return subprocess.run(
                [sys.executable, "-m", "retrieval_bench", *words, *what],
                capture_output=True, encoding="utf-8", check=False,
            )  # fmt: skip

        sleeping(0.001)
        committed(project)
        assert made("baseline").returncode == 0
        sleeping(0.002)
        found = made("regress")
        assert found.returncode == 1, found.stdout + found.stderr
        assert found.stdout.startswith("FAIL: mine on data")
        assert "mine.yaml at WORKTREE" in found.stdout

    @pytest.mark.slow
    def test_too_few_queries_are_no_pass(self, project: Path, run: Command) -> None:
        policy(project, "limits: {p95: 10%}\n")
        baseline(run)
        assert regress(run) == 4
        assert "p95: 16 queries, it takes 200" in run.out
        assert "\n  Measure on more queries" in run.out


@pytest.mark.slow
def test_what_was_measured_is_in_the_history(project: Path, run: Command) -> None:
    """Rankings that were asked for once are no measurement of time."""
    folders = [run.json(BASELINE)["run"]]
    for limits in (BOTH, QUALITY):
        policy(project, limits)
        regress(run, "--duet", "never", "--format", "json")
        folders.append(json.loads(run.out)["run"])
    (subject,) = run.json("data history --no-pictures")["subjects"]
    assert {found["folder"] for found in subject["runs"]} == set(folders)
    by_folder = {found["folder"]: found for found in subject["runs"]}
    timed = [bool(by_folder[folder]["latency_ms"]) for folder in folders]
    assert timed == [True, True, False]
    assert [by_folder[folder]["same_times"] is None for folder in folders] == [False, False, True]


@pytest.mark.slow
def test_a_run_that_cannot_be_kept_changes_no_verdict(project: Path, run: Command) -> None:
    baseline(run)
    shutil.rmtree(project / "results/runs")
    save(project / "results/runs", "")
    assert run.json(REGRESS)["run"] is None
    assert "the run is not kept" in run.err


def test_all_that_is_wrong_comes_at_once(project: Path, run: Command) -> None:
    policy(project, "limits: {p50: 0%}\n")
    assert run("regress --retriever nothing --dataset nowhere") == 2
    for part in ("problems", "p50: '0%'", "unknown retriever 'nothing'", "nowhere"):
        assert part in run.err
