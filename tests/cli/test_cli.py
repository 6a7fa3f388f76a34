from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.cli.options import Command as OwnCommand
from retrieval_bench.core import secrets
from retrieval_bench.core.errors import NAMED, MissingDependencyError
from tests.builders.files import save
from tests.builders.marks import also
from tests.builders.processes import completed, within
from tests.cli.project import QUICK, Command, saved_runs

pytestmark = pytest.mark.usefixtures("project")


def only_run(project: Path) -> Path:
    (folder,) = saved_runs(project)
    return folder


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


class TestBench:
    @pytest.mark.slow
    def test_a_user_s_own_retriever_on_their_own_folder(self, project: Path, run: Command) -> None:
        assert run("bench --retriever own.yaml --dataset data") == 0
        assert "own on data: nDCG@10 1.000 [0.395, 1.000]" in run.out
        for shown in ("MAP@10", "p50 ", "p95 ", "4 documents", "1,000 calls", "1 client"):
            assert shown in run.unwrapped
        assert len(run.out.splitlines()) <= 20
        whole = (only_run(project) / "summary.txt").read_text("utf-8")
        for shown in ("own on data (test), k = 10", "p50 ms", "p95 ms", "p99 ms", "Machine: "):
            assert shown in whole
        summary = read_json(only_run(project) / "summary.json")
        assert summary["metrics"]["RR@10"]["mean"] == 1.0
        assert summary["latency_ms"]["n"] == 1000
        phases = [line.removeprefix("retrieval-bench: ") for line in run.err.splitlines()]
        assert phases == ["indexing own ..."], "one line each half minute"

    def test_json_is_one_document_and_nothing_else(self, project: Path, run: Command) -> None:
        summary = run.json("bench --retriever own.yaml --dataset data", *QUICK)
        assert summary["schema_version"] == 2
        assert summary["status"] == "complete"
        assert summary["run_id"] == only_run(project).name
        assert summary["dataset"]["n_queries"] == 4
        assert summary["latency_ms"]["p99"]["value"] is None
        assert "more" in summary["latency_ms"]["p99"]["reason"]

    def test_metrics_k_split_and_overrides_are_taken(self, project: Path, run: Command) -> None:
        (project / "data/qrels/dev.tsv").write_text(
            "query-id\tcorpus-id\tscore\nq2\td2\t1\n", encoding="utf-8"
        )
        summary = run.json(
            "bench --retriever own.yaml --dataset data --split dev --k 2 "
            "--metrics P@2 MRR --set boost=2.5 --out here",
            *QUICK,
        )
        assert list(summary["metrics"]) == ["P@2", "RR"]
        assert summary["dataset"]["n_queries"] == 1
        manifest = read_json(project / "here/manifest.json")
        assert manifest["retriever"]["params"] == {"boost": 2.5}

    def test_a_dry_run_counts_calls_and_makes_none(self, project: Path, run: Command) -> None:
        document = run.json("bench --retriever own.yaml --dataset data --max-calls 30 --dry-run")
        assert document["measured_calls"] + document["warm_up_calls_at_most"] == 30
        assert document["tried"] == [{"retriever": "own", "documents": 4, "hits": 2}]
        assert document["not_checked"] == ["where the run would be saved"]
        assert not saved_runs(project)

    def test_a_dry_run_that_gets_no_answer_says_why(self, run: Command) -> None:
        plan = "bench --retriever own.yaml --dataset data --dry-run"
        assert run(f"{plan} --set fail_on=red") == 2
        assert "error: the first call failed: RuntimeError: cannot answer q1" in run.err
        assert "retriever 'own', query 'q1'" in run.err

    @pytest.mark.slow
    def test_a_probe_shows_answers_with_their_texts_and_measures_nothing(
        self, project: Path, run: Command
    ) -> None:
        probe = "bench --retriever own.yaml --dataset data"
        assert run(f"{probe} --probe 2") == 0
        assert "q1: red apples" in run.out
        assert "red apples and pears" in run.out
        assert not saved_runs(project)
        found = run.json(f"{probe} --probe 4 --set fail_on=whales")["queries"]
        assert [query["query_id"] for query in found] == ["q1", "q2", "q3", "질문"]
        assert found[0]["hits"][0] == {
            "doc_id": "d1",
            "score": 2.0,
            "grade": 2,
            "text": "red apples and pears",
            "fits": None,
        }
        assert found[1]["status"] == "RuntimeError: cannot answer q2"
        assert found[1]["hits"] == []
        assert run(f"{probe} --probe 1 --set fail_on=red") == 4
        assert "FAILED: RuntimeError" in run.out
        assert run(f"{probe} --probe 0") == 2

    def test_a_dry_run_asks_a_service_once_unless_calls_cost(self, run: Command) -> None:
        plan = "bench --retriever callable --dataset data --dry-run --set function=own:answer"
        assert run(plan) == 0
        assert "callable answered the first query: 2 hits." in run.out
        assert run(f"{plan} --no-calls") == 0
        assert "Not checked: callable was built, not asked: whether it answers." in run.out

    @pytest.mark.slow
    def test_max_calls_is_kept(self, project: Path, run: Command) -> None:
        save(
            project / "counting.py",
            "calls = []\ndef count(text, k):\n    calls.append(text)\n    return ['d1'][:k]\n",
        )
        bench = "bench --retriever callable --dataset data --max-calls 30"
        run.json(f"{bench} --set function=counting:count")
        assert len(sys.modules["counting"].calls) == 30

    def test_a_failing_query_is_told_and_counts_zero(self, project: Path, run: Command) -> None:
        assert run("bench --retriever own.yaml --dataset data --set fail_on=whales", *QUICK) == 0
        assert "Search FAILED on 1 query: each evaluated one counts 0" in run.out
        assert "RuntimeError: cannot answer q2" in run.out
        summary = read_json(only_run(project) / "summary.json")
        assert summary["n_failed"] == 1
        rr = summary["metrics"]["RR@10"]
        assert (rr["mean"], rr["n"]) == (0.75, 4)
        assert rr["ci95"] == pytest.approx([0.1934, 0.9939], abs=1e-4)

    @pytest.mark.slow
    def test_when_every_query_fails_nothing_was_judged(self, project: Path, run: Command) -> None:
        bench = ("bench --retriever own.yaml --dataset data", *QUICK)
        # not a failed query but a broken contract: scores are NaN
        run.refused(*bench, "--set", "fail_on=''", "boost=.nan")
        own = (project / "own.py").read_text(encoding="utf-8")
        save(project / "own.py", own.replace("if self.fail_on and", "if True or"))
        for name in [n for n in sys.modules if n.startswith("_harness_file_")]:
            del sys.modules[name]
        assert run(*bench) == 4
        assert "nothing could be judged" in run.err


class TestCompare:
    def test_retrievers_side_by_side(self, project: Path, run: Command) -> None:
        assert run("compare --retrievers bm25 own.yaml --dataset data", *QUICK) == 0
        assert "data: 4 queries, 4 documents, top 10; times interleaved, 1 client" in run.out
        assert len(run.out.splitlines()) <= 30
        assert len(saved_runs(project)) == 2

    @pytest.mark.slow
    def test_saved_runs_and_the_json_document(self, run: Command) -> None:
        for out in ("one", "two"):
            run(f"bench --retriever own.yaml --dataset data --out {out}", *QUICK)
        document = run.json("compare one two")
        assert [system["name"] for system in document["systems"]] == ["own", "own#2"]
        row = document["comparisons"][0]
        assert set(row) == {
            "dataset", "metric", "a", "b", "n", "difference", "ci", "level", "bound", "p",
            "p_adjusted", "effect_size", "wins", "ties", "losses", "p_equivalence", "within_margin",
            "verdict", "queries_needed", "identical",
        }  # fmt: skip
        assert (row["difference"], row["p"], row["verdict"]) == (0.0, 1.0, "unresolvable")

    @pytest.mark.slow
    def test_runs_on_different_data_are_not_comparable(self, project: Path, run: Command) -> None:
        run("bench --retriever own.yaml --dataset data --out one", *QUICK)
        with (project / "data/corpus.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"_id": "d9", "text": "new"}\n')
        run("bench --retriever own.yaml --dataset data --out two", *QUICK)
        assert run("compare one two") == 4
        assert "Not comparable: different dataset fingerprint." in run.unwrapped
        assert run("compare one two -v") == 4
        says = "! These runs cannot be compared: they are on 2 datasets or splits"
        assert says in run.unwrapped
        rows = run.json("compare one two", code=4)["comparisons"]
        assert {row["verdict"] for row in rows} == {"not comparable"}
        assert rows[0]["reason"] == "different dataset fingerprint"

    def test_neither_runs_nor_retrievers(self, run: Command) -> None:
        assert "compare A B --dataset D" in run.refused("compare")
        assert run("compare --retrievers own.yaml --dataset data") == 2


class TestBadInput:
    """Each with a clear message, exit code 2, and nothing half-written."""

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ("--retriever bm52", "did you mean bm25"),
            ("--retriever none.yaml", "no retriever file"),
            ("--retriever own.yaml --dataset scifct", "scifct"),
            ("--retriever own.yaml --dataset science-mni", "science-mini"),
            ("--retriever own.yaml --k 0", "k = 0"),
            ("--retriever own.yaml --metrics nDGC@10", "did you mean nDCG"),
            ("--retriever own.yaml --metrics nDCG@20", "raise --k to 20"),
            ("--retriever own.yaml --set bost=2", "unknown key 'bost'"),
            ("--retriever own.yaml --split dev", "test"),
            ("--retriever own.yaml --rounds 0", "above 0"),
            ("--retriever own.yaml --max-calls 2", "at least 4"),
            ("--retriever own:Missing", "no 'Missing'"),
            ("--retriever own:not_a_retriever", "a subclass of"),
            ("--retriever own:Foreign", "not in the corpus"),
            ("--retriever own:Broken", "ConnectionError: no route to the engine"),
            ("--retriever trec_run --set path=gone.trec", "gone.trec"),
            ("--retriever callable --set function=own:gone", "no 'gone'"),
            ("--retriever langchain --set factory=own:not_a_factory", "dict"),
            ("--retriever bm52 --dataset nowhere --metrics nDGC", "3 problems"),
            ("--retriever own.yaml --set boost=${NOT_SET}", "not set: NOT_SET"),
            ("--retriver bm25", "did you mean --retriever"),
            ("--retriever own.yaml --cold 0", "at least 1"),
            ("--retriever own.yaml --cold 1 --max-calls 100", "--max-calls with --cold"),
            (
                "--retriever own.yaml --protocol tutorial --rounds 2 --out x",
                "--out, --rounds with --protocol tutorial",
            ),
        ],
    )
    def test_one_clear_message(
        self, project: Path, run: Command, arguments: str, says: str
    ) -> None:
        data = "" if "--dataset" in arguments else "--dataset data"
        assert says in run.refused(f"bench {arguments} {data}")
        assert not (project / "results").exists()

    @pytest.mark.parametrize(
        ("name", "content", "says"),
        [
            ("data/corpus.jsonl", "", "corpus.jsonl"),
            ("data/queries.jsonl", "", "queries.jsonl"),
            ("own.yaml", "target: own.py:Overlap\nparam: {}\n", "unknown key 'param'"),
            ("results", "not a folder", "cannot write the run"),
        ],
    )
    def test_a_file_that_cannot_be_used(
        self, project: Path, run: Command, name: str, content: str, says: str
    ) -> None:
        save(project / name, content)
        assert says in run.refused("bench --retriever own.yaml --dataset data")
        assert name in run.err.replace("\\", "/")
        assert not saved_runs(project)

    def test_an_output_folder_that_holds_a_run(self, project: Path, run: Command) -> None:
        arguments = ["bench", "--retriever", "own.yaml", "--dataset", "data", *QUICK, "--out", "o"]
        assert run(*arguments) == 0
        before = sorted((p.name, p.stat().st_mtime_ns) for p in (project / "o").iterdir())
        assert "already holds a run" in run.refused(*arguments)
        assert sorted((p.name, p.stat().st_mtime_ns) for p in (project / "o").iterdir()) == before

    @pytest.mark.slow
    def test_a_disk_that_fills_up_costs_the_folder_but_not_the_figures(
        self, project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("numpy.savez_compressed", full)
        assert run("bench --retriever own.yaml --dataset data", *QUICK) == 2
        assert "cannot write the run: No space left on device" in run.err
        assert "nDCG@10" in run.out
        assert run("compare --retrievers own.yaml bm25 --dataset data", *QUICK) == 2
        assert "against own" in run.out
        assert re.search(r"^  bm25 +1\.000 ", run.out, re.M)
        assert not saved_runs(project)

    def test_no_secret_is_printed_or_written(
        self, project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(secrets, "_filled", {})
        monkeypatch.setenv("ENGINE_KEY", "hunter2-hunter2")
        save(project / "leaky.py", LEAKY)
        save(project / "leaky.yaml", "target: leaky:Search\nparams: {key: '${ENGINE_KEY}'}\n")
        assert run("bench --retriever leaky.yaml --dataset data", *QUICK) == 0
        assert "401 for key ${ENGINE_KEY}" in run.out
        assert "hunter2" not in run.out + run.err
        for path in only_run(project).iterdir():
            assert b"hunter2" not in path.read_bytes(), path.name


LEAKY = """
from own import Overlap


class Search(Overlap):
    def __init__(self, *, key: str):
        super().__init__()
        self.key = key

    def search(self, query, k):
        if query.id == 'q2':
            raise RuntimeError('401 for key ' + self.key)
        return super().search(query, k)

    def describe(self):
        return {'url': 'https://x/?key=' + self.key}
"""


NOISY = """
import os
from own import Overlap

print("imported")


class Noisy(Overlap):
    def index(self, documents):
        os.write(1, b"from below\\n")
        super().index(documents)

    def search(self, query, k):
        print("searching", query.id)
        return super().search(query, k)


class Leaving(Overlap):
    def search(self, query, k):
        raise SystemExit(0)


class LeavingEarly(Overlap):
    def index(self, documents):
        raise SystemExit(0)


class Unfriendly(Overlap):
    def health(self, queries):
        raise RuntimeError("no health today")

    def describe(self):
        raise RuntimeError("nor facts")

    def close(self):
        raise RuntimeError("stuck")


class Impatient(Overlap):
    def health(self, queries):
        import signal
        os.kill(os.getpid(), signal.SIGINT)
        return []
"""


class TestRetrieversThatMisbehave:
    @pytest.fixture(autouse=True)
    def _noisy(self, project: Path) -> None:
        save(project / "noisy.py", NOISY)

    def bench(self, name: str, *more: str) -> tuple[int, str, str]:
        process = command(
            *("bench", "--retriever", f"noisy:{name}", "--dataset", "data", *QUICK, *more)
        )
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    @pytest.mark.slow
    def test_what_it_prints_does_not_spoil_the_json(self) -> None:
        code, out, err = self.bench("Noisy", "--format", "json")
        assert code == 0
        assert json.loads(out)["retriever"] == "Noisy"
        for text in ("imported", "from below", "searching q1"):
            assert text in err

    @pytest.mark.slow
    def test_one_that_leaves_the_process_does_not_decide_the_exit_code(self) -> None:
        code, _, err = self.bench("Leaving")
        assert code == 4
        assert "nothing could be judged" in err
        code, _, err = self.bench("LeavingEarly")
        assert code == 2
        assert "indexing failed with SystemExit" in err

    @pytest.mark.slow
    def test_a_mistake_after_the_measurement_does_not_cost_it(self, project: Path) -> None:
        code, out, err = self.bench("Unfriendly")
        assert code == 0, err
        assert "health() of Unfriendly failed with RuntimeError: no health today" in out
        assert "close() of Unfriendly failed" in err
        assert (only_run(project) / "summary.json").exists()

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
    def test_ctrl_c_while_saving_waits_until_it_is_saved(self, project: Path) -> None:
        code, out, err = self.bench("Impatient")
        assert code == 0, err
        assert "Impatient on data" in out
        assert (only_run(project) / "summary.json").exists()


def test_an_unexpected_error_is_no_regression(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_filled", {"MY_KEY": "hunter2-hunter2"})

    def broken(*_: Any) -> None:
        raise RuntimeError("with hunter2-hunter2 inside")

    monkeypatch.setattr("retrieval_bench_catalog.tables.catalog.entries", broken)
    assert run("data list") == 70
    assert "this is a bug of retrieval-bench" in run.err
    assert "RuntimeError: with ${MY_KEY} inside" in run.err


def test_metrics_that_look_deeper_than_k_are_one_error(run: Command) -> None:
    deep = [f"P@{cut}" for cut in range(11, 60)]
    assert run("bench own.yaml --dry-run --metrics P@10", *deep) == 2
    assert "metric P@11 and 48 more with k = 10" in run.err
    assert "raise --k to 59" in run.err
    assert run.err.count("P@") == 1


@pytest.mark.parametrize(
    "line",
    [
        "bench own.yaml --dataset ~nobody-of-that-name/data",
        "score run ~nobody-of-that-name/x.run --dataset data",
        "score outcomes ~nobody-of-that-name/answers.jsonl",
        "data history --out ~nobody-of-that-name/x.svg",
    ],
)
def test_a_home_that_nobody_has_is_no_bug(project: Path, run: Command, line: str) -> None:
    assert run(line) == 2
    assert "no home folder is known of '~nobody-of-that-name" in run.err


def test_a_home_is_found_also_where_no_shell_looks_for_it(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert run("bench own.yaml --dataset data --out=~/mine", *QUICK) == 0
    assert (tmp_path / "home/mine/summary.json").is_file()
    assert not Path("~").exists()


@pytest.mark.parametrize("command", ["score run {} --dataset data", "data history --runs {}"])
def test_a_path_that_the_system_refuses_is_no_bug(
    project: Path, run: Command, command: str
) -> None:
    assert run(command.format("x" * 300)) == 2
    assert "a path that cannot be used: File name too long" in run.err
    assert "Traceback" not in run.err


def test_too_little_memory_is_no_bug(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def large(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("retrieval_bench_catalog.tables.catalog.entries", large)
    assert run("data list") == 4
    assert "not enough memory" in run.err
    assert "Traceback" not in run.err


def test_debug_shows_the_traceback_without_secrets(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_filled", {"MY_KEY": "hunter2-hunter2"})
    assert run("bench --retriever hunter2-hunter2 --dataset data --debug") == 2
    assert "Traceback" in run.err
    assert "hunter2" not in run.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shell")
@pytest.mark.parametrize("format_", ["table", *also("json", "markdown")])
def test_a_reader_that_goes_away_is_no_error(format_: str) -> None:
    done = subprocess.run(
        ["bash", "-c", (f"{sys.executable} -m retrieval_bench data list --format {format_} "
         "| head -1; echo ${PIPESTATUS[0]}")],
        capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0", done.stderr
    assert "Traceback" not in done.stderr


def test_a_pipe_that_breaks_elsewhere_is_no_success(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(options: Any) -> int:
        raise BrokenPipeError("of a service")

    own = OwnCommand(broken, "", (), {})
    monkeypatch.setattr("retrieval_bench_catalog.commands.list.run_list", own)
    assert run("data list") == 70
    assert "BrokenPipeError: of a service" in run.err


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_result_that_cannot_be_printed_is_told() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "retrieval_bench", "data", "list"], stdout=full,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "cannot print the result: No space left on device" in done.stderr


@pytest.mark.slow
def test_options_that_cannot_apply_are_refused(run: Command) -> None:
    for out in ("one", "two"):
        run(f"bench --retriever own.yaml --dataset data --out {out}", *QUICK)
    assert "--k beside saved runs" in run.refused("compare one two --k 3")
    assert run("compare one two --retrievers bm25") == 2


@pytest.mark.slow
def test_ids_that_are_not_in_the_corpus_judge_nothing(project: Path, run: Command) -> None:
    save(
        project / "ext.py",
        "def upper(text, k):\n    return ['D1', 'D2', 'D3'][:k]\n"
        "def bad(text, k):\n    return ['문서'][:k]\n",
    )
    for name, code in (("upper", 4), ("bad", 0)):
        params = f"{{function: 'ext.py:{name}', external: true}}"
        save(project / f"{name}.yaml", f"target: callable\nparams: {params}\n")
        assert run(f"bench {name}.yaml --dataset data", *QUICK) == code
        assert ("is in the corpus ('D1' beside 'd1')" in run.err) == (code == 4)
        assert (run.out == "") == (code == 4), "no figure of answers that mean nothing"
    assert run("compare bm25 upper.yaml --dataset data", *QUICK) == 4
    assert run.out == ""
    assert "bm25 is saved in results/runs/" in run.err
    assert run.json("bench upper.yaml --dataset data", *QUICK, code=4)["code"] == 4
    assert run("baseline upper.yaml --dataset data") == 4
    grid = "function=['ext.py:upper', 'ext.py:bad']"
    assert run("tune upper.yaml --dataset data --folds 2 --grid", grid) == 4
    assert run.out == ""
    assert run("load upper.yaml --dataset data --rate 20 --duration 1 --warm-up 0") == 4
    assert run.out == ""
    assert not list(project.glob("results/loads/*"))


def test_a_run_of_ids_that_no_document_has_is_scored_without_figures(
    project: Path, run: Command
) -> None:
    save(project / "far.run", "q1 Q0 D1 1 1.0 t\nq2 Q0 D2 1 1.0 t\n")
    document = run.json("score run far.run --dataset data --per-query", code=4)
    assert {(mean["mean"], mean["n"]) for mean in document["metrics"].values()} == {(None, 0)}
    assert document["per_query"] == {}
    assert run("score run far.run --dataset data --format trec") == 4
    assert run.out == ""
    assert not Path("results/baselines").exists()


def test_queries_that_none_can_judge_are_not_green(project: Path, run: Command) -> None:
    save(project / "data/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t0\n")
    assert run("bench --retriever own.yaml --dataset data", *QUICK) == 0
    assert "1 evaluated query has no relevant document" in run.out


@pytest.mark.slow
def test_list_shows_names_and_what_fails_to_load(run: Command) -> None:
    assert run("data list -v") == 0
    target = "retrieval_bench_retrievers.dense.dense:Dense"
    for shown in ("bm25", "hybrid-convex", "science-mini", "nDCG", target, "huggingface"):
        assert shown in run.out
    kinds = {"retrievers", "targets", "readers", "datasets", "metrics", "conventions"}
    assert kinds == set(run.json("data list")) - {"schema_version"}


def command(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "retrieval_bench", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        **options,
    )


SLOW = """
import pathlib, time
from own import Overlap


class Slow(Overlap):
    def search(self, query, k):
        with open("calls.txt", "a") as file:
            file.write(query.id + "\\n")
        time.sleep(0.02)
        return super().search(query, k)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_keeps_what_was_finished(project: Path) -> None:
    save(project / "slow.py", SLOW)
    process = command(
        *("bench", "--retriever", "slow:Slow", "--dataset", "data", "--rounds", "100000"),
        *("--warm-up", "0"),
    )
    calls = project / "calls.txt"
    assert within(60, lambda: calls.exists() and len(calls.read_text("utf-8").splitlines()) >= 20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "PARTIAL RUN" in out
    assert "marked as partial" in err
    summary = read_json(only_run(project) / "summary.json")
    assert summary["status"] == "partial"
    assert summary["latency_ms"]["n"] > 4
    assert summary["n_unreached"] == 0


@pytest.mark.slow
def test_an_interrupted_comparison_says_so_also_when_nothing_can_be_compared(
    project: Path, run: Command
) -> None:
    save(project / "behind.py", BEHIND)
    compare = "compare --retrievers behind:Counting behind:Stopping --dataset data --max-calls 4"
    rows = run.json(compare, code=130)["comparisons"]
    assert "marked as partial" in run.err
    assert {row["reason"] for row in rows} == {"different queries were finished"}
    assert len(saved_runs(project)) == 2


BEHIND = """
from own import Overlap


class Counting(Overlap):
    calls = 0

    def search(self, query, k):
        Counting.calls += 1
        return super().search(query, k)


class Stopping(Overlap):
    calls = 0

    def search(self, query, k):
        if Counting.calls > max(Stopping.calls, 1):
            raise KeyboardInterrupt
        Stopping.calls += 1
        return super().search(query, k)
"""
"""The second one is interrupted once the first has answered a query more."""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.slow
def test_ctrl_c_in_the_warm_up_saves_nothing(project: Path) -> None:
    save(project / "slow.py", SLOW.replace("0.02", "30"))
    process = command("bench", "--retriever", "slow:Slow", "--dataset", "data")
    assert within(60, (project / "calls.txt").exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted before it was done" in err
    assert not saved_runs(project)


@pytest.mark.slow
def test_a_terminal_that_is_not_utf8_still_prints() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = command(
        *("bench", "--retriever", "own.yaml", "--dataset", "data", *QUICK, "--set", "fail_on=사과"),
        env=environment,
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "nDCG@10" in out


@pytest.mark.slow
def test_a_project_with_folders_of_our_names_is_no_obstacle(project: Path) -> None:
    for name in ("harness", "retrievers"):
        save(project / name / "__init__.py", "raise ImportError('not mine')\n")
    save(project / "retrievers" / "mine.py", "from own import Overlap as Mine\n")
    script = Path(sys.executable).with_name("retrieval-bench")
    if not script.exists():
        pytest.skip("the console command is not installed")
    words = ("bench", "--retriever", "retrievers/mine.py:Mine", "--dataset", "data", *QUICK)
    done = completed(script, *words, check=False)
    assert done.returncode == 0, done.stderr
    assert "Mine on data" in done.stdout


@pytest.mark.slow
def test_a_saved_run_has_pictures_unless_they_are_declined(project: Path, run: Command) -> None:
    arguments = "bench --retriever own.yaml --dataset data --rounds 1 --warm-up 0"
    assert run(f"{arguments} --out drawn") == 0
    drawn = {path.name for path in (project / "drawn/pictures").iterdir()}
    assert {"latency.svg", "queries.svg"} <= drawn
    assert run(f"{arguments} --out bare --no-pictures") == 0
    assert not (project / "bare/pictures").exists()


def test_a_picture_that_cannot_be_drawn_costs_nothing_else(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> str:
        raise MissingDependencyError("no vl-convert-python", fix="pip install it")

    monkeypatch.setattr("retrieval_bench_pictures.of_runs.svgs", missing)
    arguments = "bench --retriever own.yaml --dataset data --rounds 1 --warm-up 0"
    assert run(f"{arguments} --out drawn -v") == 0
    assert "no pictures: no vl-convert-python" in run.err
    assert "nDCG@10" in run.out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="launches need POSIX")
def test_launches_share_the_calls_and_are_told(project: Path, run: Command) -> None:
    arguments = "bench --retriever own.yaml --dataset data --no-pictures"
    assert run(f"{arguments} --launches 2 --rounds 3 --warm-up 0 --out launched -v") == 0
    assert "2 launches of 3 rounds" in run.out
    summary = read_json(project / "launched/summary.json")
    n_queries = summary["dataset"]["n_queries"] + summary["dataset"]["n_unanswerable"]
    assert summary["latency_ms"]["launches"] == 2
    assert summary["latency_ms"]["n"] == 2 * 3 * n_queries
    manifest = read_json(project / "launched/manifest.json")
    assert [launch["status"] for launch in manifest["launches"]] == ["complete", "complete"]
    shutil.copytree(project / "launched", project / "copied")
    assert run("compare launched copied --format json") == 0


@pytest.mark.slow
def test_a_start_from_cold_is_shown_and_kept(project: Path, run: Command) -> None:
    arguments = ("bench", "--retriever", "own.yaml", "--dataset", "data", *QUICK, "--cold", "1")
    shown = run.json(*arguments, "--out", "cold")["cold"]
    assert shown == read_json(project / "cold/cold.json")
    assert shown["processes"] == 1


def test_a_saved_run_has_no_start_from_cold(project: Path, run: Command) -> None:
    (project / "run.trec").write_text("q Q0 d 1 1.0 x\n", encoding="utf-8")
    said = run.refused("bench trec_run --set path=run.trec --dataset data --cold 1", *QUICK)
    assert "--cold 1 with a retriever that reads its answers from a saved run" in said
    assert not list(project.glob("results/runs/*"))


def test_a_k_beyond_the_corpus_is_told(run: Command) -> None:
    arguments = ("bench", "--retriever", "own.yaml", "--dataset", "data", *QUICK)
    assert run(*arguments, "--k", "1000") == 0
    assert "k = 1,000 is more than the" in run.out


def test_a_partial_or_failing_run_says_so_when_it_is_scored(run: Command) -> None:
    arguments = ("bench", "--retriever", "own.yaml", "--dataset", "data", *QUICK)
    assert run(*arguments, "--set", "fail_on=사과", "--out", "failing") == 0
    document = run.json("score run --run failing --dataset data")
    texts = [warning["text"] for warning in document["warnings"]]
    assert any("failed, taken as not in the run" in text for text in texts)
    assert document["counts"]["missing"] >= 1


def test_with_json_an_error_is_a_document_too(run: Command) -> None:
    found = run.json("bench bm52", code=2)
    assert found["code"] == 2
    assert found["error"]["what"] == "unknown retriever 'bm52'"
    assert found["error"]["kind"] == "unknown-name"
    assert "bm25" in found["error"]["accepted"]
    assert found["error"]["accepted"].count(",") <= NAMED + 3
    assert run.err == "", "said once"
    assert run("bench bm52") == 2
    assert run.out == ""
