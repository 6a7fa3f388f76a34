"""The Python front door, end to end on small data in memory."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import retrieval_bench
from retrieval_bench import (
    Document,
    Query,
    audit,
    baseline,
    bench,
    compare,
    diff,
    duet,
    evaluate,
    history,
    load_dataset,
    reader,
    regress,
    report,
    tune,
)
from retrieval_bench.api.results import BenchResult
from retrieval_bench.core.errors import ConfigError, ContractError, DataError, HarnessError
from retrieval_bench.core.types import Dataset, Ranking, Verdict
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_duet import controller
from retrieval_bench_duet.revisions.environments import Setup
from retrieval_bench_regress.storing import NothingToKeepError
from retrieval_bench_score.api import ScoreResult
from tests.builders.fake_sides import FakeSides
from tests.builders.files import save
from tests.builders.processes import python
from tests.builders.reference import TermOverlap
from tests.cli.project import make_project

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


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.slow
def test_a_result_shows_itself_as_text_and_as_html() -> None:
    result = bench("bm25", data(), protocol=ONCE)
    assert "bm25 on tiny: nDCG@10 1.000" in str(result)
    assert "retrieval-bench" not in str(result), "a notebook has no command line"
    shown = result._repr_html_()
    assert shown.startswith('<div class="rb"><style>')
    assert "bm25 on tiny: nDCG@10 1.000 [0.156, 1.000]</span></caption>" in shown
    assert ">recall@10</th>" in shown
    assert result.evaluation.query_ids == ("q1", "q2")
    assert "bm25 on tiny (test), k = 10" in str(result.details)
    assert ">nDCG@10</th>" in result.details._repr_html_()


def test_a_result_is_one_line_as_repr() -> None:
    result = bench("bm25", data(), protocol=ONCE)
    assert repr(result) == "<BenchResult: bm25 on tiny: nDCG@10 1.000 [0.156, 1.000]>"
    both = compare([result, result.run])
    assert repr(both).startswith("<ComparisonResult: ")
    assert "\n" not in repr(both)


@pytest.mark.slow
def test_what_was_measured_comes_as_frames() -> None:
    result = bench("bm25", data(), protocol=ONCE)
    means = result.to_frame()
    assert list(means.columns) == ["dataset", "system", "metric", "mean", "low", "high", "n"]
    assert means.set_index("metric").loc["nDCG@10", "mean"] == 1.0
    queries = result.to_frame("queries")
    assert set(queries["query"]) == {"q1", "q2"}
    assert len(queries) == 2 * 5
    calls = result.to_frame("calls")
    assert len(calls) == 4
    assert (calls["ms"] > 0).all()
    hits = result.to_frame("hits")
    assert list(hits.columns) == ["system", "query", "rank", "document", "score"]
    assert hits[hits["query"] == "q1"].iloc[0]["document"] == "b1"
    with pytest.raises(ConfigError, match="no frame of 'query'"):
        result.to_frame("query")


def test_pairs_come_as_a_frame_with_p_and_verdict() -> None:
    result = compare(["bm25", "bm25"], data(), protocol=ONCE)
    pairs = result.to_frame("pairs")
    assert set(pairs["system"]) == {"bm25#2"}
    assert set(pairs["against"]) == {"bm25"}
    assert {"p", "verdict", "difference", "low", "high"} <= set(pairs.columns)
    assert "mean" not in pairs.columns
    assert set(result.to_frame("queries")["system"]) == {"bm25", "bm25#2"}


@pytest.mark.slow
def test_queries_have_text_and_tags_where_the_dataset_is_found() -> None:
    result = bench("bm25", "science-mini", protocol=ONCE)
    queries = result.to_frame("queries")
    worst = queries[queries["metric"] == "nDCG@10"].nsmallest(3, "value")
    assert worst["text"].str.len().min() > 0
    by_tag = queries.explode("tags").groupby(["tags", "metric"])["value"].mean()
    assert len(by_tag) > 5


@pytest.mark.slow
def test_pictures_come_from_the_result(tmp_path: Path) -> None:
    vega_lite = "application/vnd.vegalite.v5+json"
    result = bench("bm25", data(), protocol=Protocol(rounds=40, warm_up_s=0))
    picture = result.plot()
    shown = picture._repr_mimebundle_()
    assert list(shown) == [vega_lite, "image/svg+xml", "text/plain"], "never HTML"
    assert shown["image/svg+xml"].startswith("<svg")
    assert shown[vega_lite]["$schema"].endswith("/v5.json")
    assert picture.save(tmp_path / "a.svg").read_text("utf-8") == picture.svg
    both = compare(["bm25", "bm25"], data(), protocol=Protocol(rounds=40, warm_up_s=0))
    assert both.plot().spec["title"]["text"] == ["nDCG@10 against p50"]
    assert both.plot("quality").svg != both.plot("latency").svg
    with pytest.raises(ConfigError, match="no picture of 'pie'"):
        both.plot("pie")


def test_the_package_shows_its_functions_alone() -> None:
    assert set(dir(retrieval_bench)) == {*retrieval_bench.__all__, "__version__"}


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
    ndcg = summary["metrics"]["nDCG@10"]
    assert (ndcg["mean"], ndcg["n"]) == (1.0, 2)
    assert ndcg["ci95"] == pytest.approx([0.1558, 1.0], abs=1e-4)


def test_an_unanswerable_query_is_in_no_mean_though_its_documents_are_judged() -> None:
    judged = {"q1": {"b1": 1}, "q2": {"c1": 2}, "red?": {"a1": 0}}
    summary = bench("bm25", data(judged), protocol=ONCE).summary
    assert summary["dataset"]["n_queries"] == 2
    assert (summary["metrics"]["nDCG@10"]["mean"], summary["metrics"]["nDCG@10"]["n"]) == (1.0, 2)


def test_judgements_on_pages_while_chunks_are_searched() -> None:
    pages = data({"q1": {"B": 1}, "q2": {"C": 1}}, unit_key="page")
    result = bench("bm25", pages, k=2, protocol=ONCE)
    assert result.summary["metrics"]["RR@2"]["mean"] == 1.0
    assert set(result.run.rankings.doc_ids) <= {"A", "B", "C"}
    assert result.summary["n_collapsed"] > 0


@pytest.mark.slow
def test_retrievers_may_be_objects_functions_mappings_and_langchain_retrievers() -> None:
    from retrieval_bench_retrievers.libraries.langchain import as_langchain

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
    assert all(run.summary.metrics["R@3"].mean == 1.0 for run in result.runs)
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
    save(tmp_path / "questions" / "queries.jsonl", '{"_id": "q1", "text": "red"}\n')
    save(tmp_path / "questions" / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\tb1\t1\n")
    with pytest.raises(DataError, match="has no corpus, and bm25 needs one"):
        bench("bm25", "questions")
    result = bench(lambda _text, _k: ["x1", "x2"], "questions", protocol=ONCE)
    assert any("None of the 2 returned ids is judged" in w for w in result.summary["warnings"])


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
        _ = retrieval_bench.nothing  # type: ignore[attr-defined]


@pytest.mark.slow
def test_bm25_runs_without_anything_heavy() -> None:
    code = (
        "import sys\n"
        "from retrieval_bench import bench\n"
        "from retrieval_bench.measure.protocol import Protocol\n"
        "bench('bm25', protocol=Protocol(rounds=1, warm_up_s=0))\n"
        "print(sorted({'torch', 'faiss', 'sentence_transformers', 'numba'} & set(sys.modules)))"
    )
    assert python(code) == "[]"


@pytest.mark.slow
def test_the_hash_of_a_config_sees_the_configs_of_its_legs(tmp_path: Path) -> None:
    folder = tmp_path / "configs" / "retrievers"
    folder.mkdir(parents=True)

    def hashed(k1: float) -> Any:
        save(folder / "leg.yaml", f"target: bm25\nparams: {{k1: {k1}}}\n")
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


@pytest.mark.slow
@pytest.mark.usefixtures("no_pauses")
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
        save(tmp_path / "run.json", json.dumps(RUN))
        save(tmp_path / "qrels.json", json.dumps(QRELS))
        for run in ("run.json", Path("run.json")):
            for judged_by in ("qrels.json", Path("qrels.json"), QRELS, data()):
                assert evaluate(run, judged_by, metrics=["RR"]).means == {"RR": 0.75}

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
        save(Path("run.json"), '{"q1": ["b1"]}')
        assert evaluate("run.json", qrels, convention="mala2025").means["AP(norm=hits)@3"] == 1.0

    def test_the_threshold_may_be_chosen_on_given_queries(self) -> None:
        qrels = {f"q{i}": {"d": 1} if i % 2 else {} for i in range(12)}
        run = {q: {"d" if of else "x": 1.0 + bool(of)} for q, of in qrels.items()}
        result = evaluate(run, qrels, dev_ids=["q0", "q1", "q2"])
        assert result.as_dict()["abstention"]["threshold"]["n_dev"] == 3
        with pytest.raises(DataError, match="1 dev query that this run does not know: zz"):
            evaluate(run, qrels, dev_ids=["q0", "q1", "zz"])

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
        save(tmp_path / "data/qrels/dev.tsv", rows)
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


class TestRegress:
    @pytest.fixture(autouse=True)
    def project(self, tmp_path: Path) -> Path:
        (tmp_path / "policy.yaml").write_text("limits: {nDCG@10: -0.01}\n", encoding="utf-8")
        return make_project(tmp_path)

    @pytest.mark.slow
    def test_against_a_baseline(self, project: Path) -> None:
        own: dict[str, Any] = {"retriever": project / "own.yaml", "dataset": project / "data"}
        own |= {"policy": "policy.yaml"}
        with pytest.raises(ConfigError, match="duet 'sometimes'"):
            regress(**own, duet="sometimes")
        assert regress(**own).value.code == 4
        kept = baseline(**own, metrics=["P@3"], protocol={"min_calls": 8})
        assert "Baseline of own on data (test), k = 10" in str(kept)
        assert {"P@3", "nDCG@10"} <= {one["figure"] for one in kept.as_dict()["changes"]}
        assert "results/baselines/own-data.json" in kept.value.stored.written
        result = regress(**own)
        assert str(result).startswith("PASS: own on data (test), k = 10")
        assert result.as_dict()["exit_code"] == result.value.code == 0
        assert "PASS: own on data" in result._repr_html_()
        other = regress(**own, overrides=["boost=-1"])
        assert (other.value.verdict, other.value.code) == (Verdict.UNRESOLVABLE, 3)
        assert baseline(**own, overrides=["boost=-1"], as_before=True).value.stored.changes
        with pytest.raises(NothingToKeepError, match="there is nothing to keep"):
            baseline(**own, overrides=["fail_on=e"], force=True)

    def test_an_interruption_says_what_became_of_it(self, project: Path) -> None:
        (project / "stop.py").write_text(
            "from own import Overlap\n\n\nclass Stops(Overlap):\n"
            "    calls = 0\n\n"
            "    def search(self, query, k):\n"
            "        Stops.calls += 1\n"
            "        if Stops.calls > 12:\n            raise KeyboardInterrupt\n"
            "        return super().search(query, k)\n",
            encoding="utf-8",
        )
        with pytest.raises(KeyboardInterrupt, match="every baseline is as it was"):
            baseline("stop.py:Stops", "data", policy="policy.yaml", protocol={"warm_up_s": 0.0})
        assert not (project / "results").exists()


@pytest.mark.slow
def test_a_duet_of_two_settings_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path)
    monkeypatch.setattr(controller, "SideProcess", FakeSides())
    short = controller.DuetProtocol(seconds=1e-9)
    result = duet("own", "data", set_a=["boost=1"], set_b=["boost=2"], protocol=short)
    assert str(result).startswith("PASS: b = own boost=2 beside a = own boost=1")
    assert result.value.folder is not None
    assert result.as_dict()["folder"] == str(result.value.folder)
    assert (result.value.folder / "duet.json").is_file()
    with pytest.raises(ConfigError, match="both sides are own"):
        duet("own", "data")
    with pytest.raises(ConfigError, match="--extras or --setup without a revision"):
        duet("own", "data", setup=Setup(command="true"))


def test_the_history_of_saved_runs(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert "no saved run of retriever 'own.yaml'" in str(history("own.yaml"))
    assert history().as_dict()["subjects"] == []
    bench("own.yaml", "data", protocol=ONCE, save=True)
    result = history("own.yaml", "data", metrics=["nDCG@10"], out="course.svg")
    assert result.value.subject.metrics == ("nDCG@10",)
    assert len(result.as_dict()["subjects"]) == 1
    assert str(result).startswith("own on data: 1 run")
    assert (tmp_path / "course.svg").read_text("utf-8").startswith("<svg")
    with pytest.raises(ConfigError, match="metric 'R@3', which no saved run has"):
        history(metrics=["R@3"])


def test_an_audit_of_files(tmp_path: Path) -> None:
    Path("one.json").write_text('{"q1": ["b1", "a1"], "q2": ["a1"]}', encoding="utf-8")
    Path("two.json").write_text('{"q1": ["a1", "b1"], "q2": ["c1"]}', encoding="utf-8")
    result = audit(["one.json", "two.json"], data(), conventions=["trec", "piaf"], k=3)
    assert "trec" in str(result)
    assert result.as_dict()["base"] == "trec"
    assert {row.convention for row in result.value.rows} == {"trec", "piaf"}
    with pytest.raises(ConfigError, match="k 0"):
        audit(["one.json"], data(), k=0)


def test_answers_of_a_reader(tmp_path: Path) -> None:
    question = {"id": "q", "question": "?", "answers": [{"text": "a", "answer_start": 0}]}
    paragraph = {"context": "a b", "qas": [question]}
    gold = {"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph]}]}
    Path("gold.json").write_text(json.dumps(gold), encoding="utf-8")
    Path("texts.json").write_text('{"q": "a"}', encoding="utf-8")
    result = reader("gold.json", "texts.json")
    assert "texts.json" in str(result)
    assert result.value.result.counts.counted == 1
    assert result.as_dict(per_question=True)["per_question"]["q"]["exact"] == 100.0
    with pytest.raises(ConfigError, match="--denominator retrieved without --run"):
        reader("gold.json", "texts.json", denominator="retrieved")


@pytest.mark.slow
def test_where_two_runs_differ() -> None:
    one = bench("bm25", data(), protocol=ONCE)
    other = bench(TermOverlap(), data(), protocol=ONCE)
    result = diff([one, other.run], data(), queries=1, metric="RR@10")
    assert len(result.value.details) == 1
    assert "RR@10" in str(result)
    document = result.as_dict()
    assert (document["metric"], len(document["queries"])) == ("RR@10", 1)
    (only,) = diff([one, other], data(), query_ids=["q2"], texts=False).value.details
    assert only.query.id == "q2"
    with pytest.raises(ConfigError, match="query 'q9'"):
        diff([one, other], data(), query_ids=["q9"])
    with pytest.raises(ConfigError, match="group 'lost'"):
        diff([one, other], data(), group="lost")


@pytest.mark.slow
def test_a_report_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    one, other = bench("bm25", data(), protocol=ONCE), bench(TermOverlap(), data(), protocol=ONCE)
    result = report([one, other], "pages/r.html", data(), title="Two", metrics=["RR@10"])
    page = Path("pages/r.html").read_text(encoding="utf-8")
    assert "<title>Two" in page
    assert ">nDCG@10<" not in page
    assert str(result).startswith("pages/r.html, 0.")
    assert result.value.n_bytes == len(page.encode())
    assert result.as_dict()["recommendations"][0]["dataset"] == "tiny"
    with pytest.raises(ConfigError, match=r"metric 'R@3' of a saved run"):
        report([one, other], metrics=["R@3"])


@pytest.mark.slow
def test_without_a_dataset_retrievers_are_compared_on_the_bundled_one() -> None:
    quick = Protocol(rounds=1, warm_up_s=0.0)
    compared = retrieval_bench.compare(
        ["bm25", {"target": "bm25", "params": {"b": 0.2}}], protocol=quick
    )
    assert [run.summary.dataset.name for run in compared.runs] == ["science-mini"] * 2


def test_a_dataset_is_compared_on_once_and_rules_are_checked_first(tmp_path: Path) -> None:
    make_project(tmp_path)
    with pytest.raises(ConfigError, match="is given twice"):
        compare(["bm25", "bm25s"], ["data", tmp_path / "data"])
    with pytest.raises(ConfigError, match="baseline 'bm52' is none of the systems"):
        compare(["bm25", "bm25s"], "data", baseline="bm52")
    document = compare(["bm25", TermOverlap()], data(), protocol=ONCE).as_dict()
    assert document["recommendations"][0]["dataset"] == "tiny"
