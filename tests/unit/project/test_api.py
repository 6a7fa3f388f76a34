"""The Python front door, end to end on small data in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import retrieval_bench
from retrieval_bench import Document, Query, bench, compare, evaluate, load_dataset, tune
from retrieval_bench.api import BenchResult, ScoreResult
from retrieval_bench.core.errors import ConfigError, ContractError, DataError, HarnessError
from retrieval_bench.core.types import Dataset, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from tests.cli.project import make_project
from tests.conformance.reference import TermOverlap

ONCE = Protocol(rounds=1, warm_up_s=0)

DOCUMENTS = [
    Document("a1", "red apples", metadata={"page": "A"}),
    Document("a2", "red pears", metadata={"page": "A"}),
    Document("b1", "red whales", metadata={"page": "B"}),
    Document("c1", "blue <b>sea</b>", metadata={"page": "C"}),
]
QUERIES = [
    Query("q1", "red whales"),
    Query("q2", "blue"),
    Query("hello", "hello there", metadata={"answerable": False}),
    Query("red?", "red or not", metadata={"answerable": False}),
    Query("unjudged", "pears"),
]


def data(qrels: dict[str, dict[str, int]] | None = None, **options: Any) -> Dataset:
    judged = qrels or {"q1": {"b1": 1}, "q2": {"c1": 2}}
    return build_dataset("tiny", DOCUMENTS, QUERIES, judged, split="test", language="en", **options)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_result_shows_itself_as_text_and_as_html() -> None:
    result = bench("bm25", data(), protocol=ONCE)
    assert "bm25 on tiny (test), k = 10" in str(result)
    shown = result._repr_html_()
    assert shown.startswith('<div class="rb"><style>')
    assert "bm25 on tiny (test), k = 10</span></caption>" in shown
    assert ">nDCG@10</th>" in shown
    assert result.evaluation.query_ids == ("q1", "q2")


def test_names_from_data_are_escaped_in_html() -> None:
    named = build_dataset(
        "<script>", DOCUMENTS, QUERIES, {"q1": {"b1": 1}}, split="test", language=None
    )
    assert "<script>" not in bench("bm25", named, protocol=ONCE)._repr_html_()


@pytest.mark.slow
def test_nothing_is_saved_unless_asked_for(tmp_path: Path) -> None:
    assert bench("bm25", data(), protocol=ONCE).folder is None
    assert list(tmp_path.iterdir()) == []
    saved = bench("bm25", data(), protocol=ONCE, out="here")
    assert saved.folder == tmp_path / "here"


def test_queries_that_count_are_run_and_the_others_only_counted() -> None:
    summary = bench("bm25", data(), protocol=ONCE).summary
    assert summary["dataset"]["n_queries"] == 2
    assert summary["dataset"]["n_unanswerable"] == 2
    assert summary["dataset"]["n_not_run"] == 1
    assert summary["latency_ms"]["n"] == 4
    assert summary["unanswerable"] == {
        "n": 2,
        "returned_hits": 1,
        "false_empty": 0,
        "precision": 1.0,
        "recall": 0.5,
        "f1": pytest.approx(2 / 3),
    }
    assert summary["metrics"]["nDCG@10"] == {"mean": 1.0, "ci95": [1.0, 1.0], "n": 2}


def test_judgements_on_pages_while_chunks_are_searched() -> None:
    pages = data({"q1": {"B": 1}, "q2": {"C": 1}}, unit_key="page")
    result = bench("bm25", pages, k=2, protocol=ONCE)
    assert result.summary["metrics"]["RR@2"]["mean"] == 1.0
    assert set(result.run.rankings.doc_ids) <= {"A", "B", "C"}
    assert result.summary["n_collapsed"] > 0


def test_retrievers_may_be_objects_functions_mappings_and_langchain_retrievers() -> None:
    from retrieval_bench_retrievers.langchain import as_langchain

    def first(text: str, k: int) -> list[str]:
        return ["b1", "c1"][:k]

    inner = TermOverlap()
    inner.index(DOCUMENTS)
    systems = [
        TermOverlap(),
        first,
        {"target": "bm25", "name": "k1 of 2", "params": {"k1": 2.0}},
        as_langchain(inner, 3, DOCUMENTS),
    ]
    result = compare(systems, data(), k=3, protocol=ONCE)
    assert [run.name for run in result.runs][:3] == ["TermOverlap", "first", "k1 of 2"]
    assert all(run.summary["metrics"]["R@3"]["mean"] == 1.0 for run in result.runs)
    assert len(result.deltas) == 6 * 5
    assert "TermOverlap" in str(result)
    assert [found.dataset for found in result.recommendations] == ["tiny"]
    assert "<table>" in result._repr_html_()


@pytest.mark.slow
def test_results_can_be_compared_afterwards() -> None:
    one, two = (bench(name, data(), protocol=ONCE) for name in ("bm25", "bm25s"))
    again = compare([one, two.run])
    assert [delta.b for delta in again.deltas] == ["bm25s"] * 5
    with pytest.raises(ConfigError, match="1 run to compare"):
        compare([one])
    with pytest.raises(ConfigError, match="1 retriever to compare"):
        compare(["bm25"], data())


@pytest.mark.parametrize("wrong", [3, None, object()])
def test_what_is_no_retriever_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigError, match="as retriever"):
        bench(wrong, data())


def test_overrides_need_a_retriever_by_name() -> None:
    with pytest.raises(ConfigError, match="overrides for a TermOverlap"):
        bench(TermOverlap(), data(), overrides=["a=1"])


def test_a_retriever_without_index_is_told_to_have_one() -> None:
    class Forgetful(retrieval_bench.Retriever):
        def search(self, query: Query, k: int) -> Ranking:
            return Ranking(())

    with pytest.raises(ContractError, match=r"has no index\(\)"):
        bench(Forgetful(), data())


def test_a_dataset_without_corpus_needs_an_external_retriever(tmp_path: Path) -> None:
    (tmp_path / "questions" / "qrels").mkdir(parents=True)
    (tmp_path / "questions" / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "red"}\n', encoding="utf-8"
    )
    (tmp_path / "questions" / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\tb1\t1\n", encoding="utf-8"
    )
    with pytest.raises(DataError, match="has no corpus, and bm25 needs one"):
        bench("bm25", "questions")
    result = bench(lambda _text, _k: ["x1", "x2"], "questions", protocol=ONCE)
    assert any("none of the 2 returned ids is judged" in w for w in result.summary["warnings"])


def test_several_problems_are_told_together() -> None:
    with pytest.raises(HarnessError, match="3 problems"):
        bench("bm52", "no-such-data", metrics=["nDGC"])


@pytest.mark.slow
def test_a_replayed_run_yields_no_latency(tmp_path: Path) -> None:
    first = bench("bm25", data(), protocol=ONCE, out="first")
    replay = {"target": "trec_run", "params": {"path": str(tmp_path / "first")}}
    again = bench(replay, data())
    assert again.summary["metrics"] == first.summary["metrics"]
    assert again.summary["latency_ms"]["p50"]["value"] is None
    assert "saved run" in again.summary["latency_ms"]["p50"]["reason"]
    assert again.summary["latency_ms"]["mean"] is None


def test_retrievers_are_closed_whatever_happens() -> None:
    closed = []

    class Closing(TermOverlap):
        def close(self) -> None:
            closed.append(True)

        def search(self, query: Query, k: int) -> Ranking:
            return Ranking(["nowhere"], [1.0])

    with pytest.raises(ContractError, match="not in the corpus"):
        bench(Closing(), data())
    assert closed == [True]


def test_public_names_are_loaded_when_used() -> None:
    assert set(retrieval_bench.__all__) <= set(dir(retrieval_bench))
    assert isinstance(bench("bm25", load_dataset("science-mini"), protocol=ONCE), BenchResult)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = retrieval_bench.nothing


@pytest.mark.slow
def test_bm25_runs_without_anything_heavy() -> None:
    code = (
        "import sys\n"
        "from retrieval_bench import bench\n"
        "from retrieval_bench.measure.protocol import Protocol\n"
        "bench('bm25', protocol=Protocol(rounds=1, warm_up_s=0))\n"
        "print(sorted({'torch', 'faiss', 'sentence_transformers', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_hash_of_a_config_sees_the_configs_of_its_legs(tmp_path: Path) -> None:
    folder = tmp_path / "configs" / "retrievers"
    folder.mkdir(parents=True)

    def hashed(k1: float) -> Any:
        (folder / "leg.yaml").write_text(f"target: bm25\nparams: {{k1: {k1}}}\n", encoding="utf-8")
        hybrid = {"target": "hybrid", "params": {"legs": ["leg", "bm25s"]}}
        return bench(hybrid, data(), protocol=ONCE).run.manifest["retriever"]["hash"]

    assert hashed(0.9) == hashed(0.9)
    assert hashed(0.9) != hashed(2.5)
    assert bench(TermOverlap(), data(), protocol=ONCE).run.manifest["retriever"]["hash"] is None


def test_problems_found_before_the_run_close_what_was_built() -> None:
    closed = []

    class Closing(TermOverlap):
        def close(self) -> None:
            closed.append(True)

    with pytest.raises(HarnessError):
        compare([Closing(), "bm52"], data())
    assert closed == [True]


def test_a_bare_metric_name_is_one_metric() -> None:
    result = bench("bm25", data(), metrics="P@2", protocol=ONCE)
    assert list(result.summary["metrics"]) == ["P@2"]


@pytest.mark.parametrize("k", [0, "10", 2.5, True])
def test_k_is_a_whole_number(k: Any) -> None:
    with pytest.raises(HarnessError, match="k = "):
        bench("bm25", data(), k=k)


def test_a_mapping_with_a_wrong_key_is_told_without_its_values() -> None:
    with pytest.raises(ConfigError, match="unknown key 'parms'") as raised:
        bench({"target": "bm25", "parms": {"key": "sk-secret"}}, data())
    assert "sk-secret" not in str(raised.value)


def test_overrides_reach_a_mapping() -> None:
    result = bench({"target": "bm25"}, data(), overrides=["k1=7.5"], protocol=ONCE)
    assert result.run.manifest["retriever"]["params"] == {"k1": 7.5}


def test_one_text_for_each_kind_of_failure() -> None:
    def ill(text: str, k: int) -> list[str]:
        raise ConnectionError(f"request {hash(text)} failed")

    warnings = bench(ill, data(), protocol=ONCE).summary["warnings"]
    assert sum("failed: ConnectionError" in warning for warning in warnings) == 1


def test_a_hook_that_fails_before_the_measurement_is_told_with_the_retriever() -> None:
    class Odd(TermOverlap):
        def use_k(self, k: int) -> None:
            raise RuntimeError("no k today")

    with pytest.raises(ContractError, match="RuntimeError: no k today"):
        bench(Odd(), data())


RUN = {"q1": {"x": 3.0, "b1": 2.0}, "q2": {"c1": 1.0}}
QRELS = {"q1": {"b1": 1}, "q2": {"c1": 2}}


class TestEvaluate:
    def test_scores_and_lists_by_judgements(self) -> None:
        for run in (RUN, {"q1": ["x", "b1"], "q2": ["c1"]}):
            result = evaluate(run, QRELS, metrics=["RR", "nDCG@10"])
            assert isinstance(result, ScoreResult)
            assert result.means["RR"] == 0.75
            assert list(result.means) == ["RR", "nDCG@10"]
            assert result.evaluation.query_ids == ("q1", "q2")
            assert result.as_dict()["metrics"]["RR"]["n"] == 2
            assert "per_query" not in result.as_dict()
            assert result.as_dict(per_query=True)["per_query"]["q1"]["RR"] == 0.5

    def test_files_and_folders_by_files_and_datasets(self, tmp_path: Path) -> None:
        (tmp_path / "run.json").write_text(json.dumps(RUN), encoding="utf-8")
        (tmp_path / "qrels.json").write_text(json.dumps(QRELS), encoding="utf-8")
        for run in ("run.json", Path("run.json")):
            for judged_by in ("qrels.json", Path("qrels.json"), QRELS, data()):
                assert evaluate(run, judged_by, metrics=["RR"]).means == {"RR": 0.75}

    def test_a_run_of_our_own_gives_its_own_figures(self) -> None:
        made = bench("bm25", data(), protocol=ONCE, out="here")
        again = evaluate("here", data(), metrics=list(made.summary["metrics"]))
        assert again.as_dict()["metrics"] == made.summary["metrics"]
        assert again.as_dict()["tie_rule"] == "as saved"

    def test_a_dataset_knows_its_queries_and_those_without_an_answer(self) -> None:
        result = evaluate({**RUN, "hello": {"a1": 0.1}}, data())
        counts = result.as_dict()["counts"]
        assert (counts["unanswerable"], counts["unjudged_queries"]) == (2, 1)
        assert counts["unknown_queries"] == 0
        assert result.as_dict()["abstention"]["run"]["n"] == 4
        assert "Abstention" in str(result)

    def test_it_shows_itself_as_text_and_as_html(self) -> None:
        result = evaluate({**RUN, "<b>": {"d": 1.0}}, QRELS)
        assert str(result).startswith("run against judgements")
        assert "!  1 query of the run unknown, not scored: <b>" in str(result)
        assert "not scored: &lt;b&gt;" in result._repr_html_()

    def test_the_convention_decides(self) -> None:
        qrels = {"q1": {"b1": 1, "b2": 1}, "gone": {"x": 1}}
        means = {
            name: next(iter(evaluate({"q1": ["b1"]}, qrels, convention=name).means.items()))
            for name in ("trec", "mala2025", "piaf")
        }
        assert means["mala2025"] == ("AP(norm=hits)@3", 1.0)
        assert means["piaf"] == ("Success", 0.5)
        assert evaluate({"q1": ["b1"]}, qrels, metrics=["AP"]).means == {"AP": 0.25}
        Path("run.json").write_text('{"q1": ["b1"]}', encoding="utf-8")
        assert evaluate("run.json", qrels, convention="mala2025").means["AP(norm=hits)@3"] == 1.0

    def test_the_threshold_may_be_chosen_on_given_queries(self) -> None:
        qrels = {f"q{i}": {"d": 1} if i % 2 else {} for i in range(12)}
        run = {q: {"d" if of else "x": 1.0 + bool(of)} for q, of in qrels.items()}
        result = evaluate(run, qrels, dev_ids=["q0", "q1", "q2"])
        assert result.as_dict()["abstention"]["threshold"]["n_dev"] == 3
        with pytest.raises(DataError, match="1 dev query that this run does not know: zz"):
            evaluate(run, qrels, dev_ids=["q0", "q1", "zz"])

    def test_the_same_whatever_the_order_of_the_dictionaries(self) -> None:
        turned = {q: dict(reversed(list(of.items()))) for q, of in reversed(RUN.items())}
        qrels = {q: dict(reversed(list(of.items()))) for q, of in reversed(QRELS.items())}
        assert evaluate(turned, qrels).means == evaluate(RUN, QRELS).means

    @pytest.mark.parametrize("convention", ["trec", "mala2025"])
    def test_a_score_that_is_not_a_number_is_told(self, convention: str) -> None:
        with pytest.raises(DataError, match="score nan of document 'b1', query 'q1'"):
            evaluate({"q1": {"b1": float("nan")}}, QRELS, convention=convention)

    @pytest.mark.parametrize("run", [{"q1": ["b1"], "q2": {"c1": 1.0}}, {"q1": "b1"}, ["b1"], 7])
    def test_what_is_no_run_is_told(self, run: Any) -> None:
        with pytest.raises(DataError, match="give every query the same form"):
            evaluate(run, QRELS)

    def test_names_and_files_that_are_not_there_are_told_before_anything_is_read(self) -> None:
        with pytest.raises(ConfigError, match="convention 'trac'"):
            evaluate("nope", "nope", convention="trac")
        with pytest.raises(ConfigError, match="metric 'nDGC'"):
            evaluate("nope", "nope", metrics=["nDGC"])
        with pytest.raises(DataError, match="nope: no such file"):
            evaluate("nope", QRELS)
        with pytest.raises(HarnessError, match="nope"):
            evaluate(RUN, "nope")

    def test_a_split_of_a_folder_is_loaded_first(self, tmp_path: Path) -> None:
        make_project(tmp_path)
        rows = "query-id\tcorpus-id\tscore\nq2\td1\t1\n"
        (tmp_path / "data/qrels/dev.tsv").write_text(rows, encoding="utf-8")
        run = {"q2": ["d2", "d1"]}
        assert evaluate(run, load_dataset("data", "dev"), metrics=["RR"]).means == {"RR": 0.5}
        assert evaluate(run, "data", metrics=["RR"]).means == {"RR": 0.25}


@pytest.mark.slow
def test_a_comparison_writes_its_report_and_finds_the_dataset_of_the_runs(tmp_path: Path) -> None:
    found = compare(["bm25", "bm25s"], "science-mini", protocol=ONCE)
    page = found.write_report(tmp_path / "pages" / "r.html").read_text(encoding="utf-8")
    assert "q-ast-01" in page
    bare = compare(["bm25", "bm25s"], data(), protocol=ONCE)
    assert "not found again" in bare.write_report(tmp_path / "b.html").read_text("utf-8")
    with_data = bare.write_report(tmp_path / "c.html", data()).read_text(encoding="utf-8")
    assert "not found again" not in with_data


def test_tuning_gives_a_retriever_that_can_be_measured() -> None:
    found = tune("bm25", data(), grid={"k1": [0.5, 1.5]}, folds=2, repeats=1)
    assert bench(found.recommended, data(), protocol=ONCE).run.name == "bm25"
    assert "optimism gap" in str(found)
    assert found.as_dict()["retriever"] == "bm25"
    assert found.delta.metric == "nDCG@10"
