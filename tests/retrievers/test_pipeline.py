"""Rewrite, retrieve, rerank as one retriever: order, depth, what is kept, and bad configs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench import bench
from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.config import config_hash, load_retriever_config
from retrieval_bench.core.errors import ConfigError, ContractError, DataError, HarnessError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.ranking import checked_ranking, levels
from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.testing import sample_documents, sample_queries
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from retrieval_bench_retrievers.pipeline import pipeline as pipeline_module
from retrieval_bench_retrievers.pipeline.pipeline import Pipeline
from retrieval_bench_retrievers.rerank.reranking import Reranked, Reranker
from tests.builders import some
from tests.builders.reference import Filtering as FilteringRetriever
from tests.builders.scripted import Scripted

QUERY = Query("q1", "apples")
ONCE = Protocol(rounds=1, warm_up_s=0)
DOCUMENTS = [Document(i, f"text of {i}") for i in "abcdef"]
LIST = {"a": 6.0, "b": 5.0, "c": 4.0, "d": 3.0, "e": 2.0, "f": 1.0}
HYBRID = {
    "name": "both",
    "target": "hybrid",
    "params": {"legs": ["bm25", {"target": "bm25", "name": "plus", "params": {"variant": "plus"}}]},
}
CONVEX = {
    "target": "hybrid",
    "params": {**HYBRID["params"], "fusion": {"method": "convex"}, "depth": 5},  # type: ignore[dict-item]
}


def backwards(text: str, documents: Sequence[Document]) -> list[float]:
    """The last id first."""
    return [float(ord(document.id[0])) for document in documents]


def alike(text: str, documents: Sequence[Document]) -> list[int]:
    return [1] * len(documents)


def shout(text: str) -> str:
    return text.upper()


def twice(text: str) -> list[str]:
    return [f"{text} one", f"{text} two"]


def vowels(text: str, documents: Sequence[Document], least: int = 1) -> list[bool]:
    return [(document.id in "aeiou") >= least for document in documents]


def indexed(*steps: Mapping[str, Any]) -> Pipeline:
    pipeline = Pipeline(steps=list(steps))
    pipeline.index(DOCUMENTS)
    return pipeline


def over(hits: Any = None, **declared: Any) -> Scripted:
    given = {"external": False, **declared}
    return Scripted(LIST if hits is None else hits, capabilities=Capabilities(**given))


def ids(ranking: Ranking) -> list[str]:
    return list(ranking.doc_ids)


def fault(*steps: Any, error: type[HarnessError] = ConfigError) -> str:
    with pytest.raises(error) as caught:
        Pipeline(steps=list(steps))
    return str(caught.value)


def samples() -> Dataset:
    queries = sample_queries()
    qrels = {q.id: {d.id: 1} for q, d in zip(queries, sample_documents(), strict=False)}
    return build_dataset("samples", sample_documents(), queries, qrels)


# --- one step is what it retrieves with


@pytest.mark.parametrize("given", ["bm25", HYBRID, CONVEX], ids=["bm25", "hybrid", "convex"])
@pytest.mark.parametrize("depth", [None, 3, 50])
def test_a_pipeline_that_only_retrieves_gives_the_same_to_the_bit(given: Any, depth: Any) -> None:
    alone = (
        construct("bm25", {}) if given == "bm25" else construct(given["target"], given["params"])
    )
    step = {"retrieve": given} if depth is None else {"retrieve": given, "depth": depth}
    whole = Pipeline(steps=[step])
    for one in (alone, whole):
        one.index(sample_documents())
    for query in sample_queries():
        for k in (1, 5, 30):
            asked = checked_ranking(alone.search(query, max(k, depth or 0)), max(k, depth or 0))
            found = whole.search(query, k)
            assert ids(found) == ids(asked)[:k]
            assert list(some(found.scores)) == list(some(asked.scores))[:k]


@pytest.mark.slow
@pytest.mark.parametrize("given", ["bm25", HYBRID], ids=["bm25", "hybrid"])
def test_measured_it_has_the_same_figures(given: Any) -> None:
    alone = bench(given, samples(), k=5, protocol=ONCE).run
    steps: list[dict[str, Any]] = [{"retrieve": given}]
    whole = bench({"target": "pipeline", "params": {"steps": steps}}, samples(), protocol=ONCE, k=5)
    assert whole.run.summary.metrics == alone.summary.metrics
    assert np.array_equal(whole.run.rankings.scores, alone.rankings.scores, equal_nan=True)
    assert whole.run.rankings.doc_ids[: len(alone.rankings.doc_ids)]


def test_the_steps_take_the_whole_call(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(
        steps=[{"rewrite": twice}, {"retrieve": "bm25", "depth": 10}, {"rerank": backwards}]
    )
    pipeline.index(sample_documents())
    # No two spans between looks at this clock are as long: a time that no step has, or two, shows.
    looks = (2**i for i in itertools.count())
    monkeypatch.setattr(pipeline_module, "perf_counter_ns", lambda: next(looks))
    stages = pipeline.search(sample_queries()[0], 5).stages
    assert [ns for name, ns in stages.items() if name.startswith("step:")] == [1, 2, 4]


# --- depth


@pytest.mark.parametrize(
    ("depth", "k", "asked"), [(None, 3, 100), (None, 200, 200), (20, 3, 20), (20, 30, 30)]
)
def test_the_retriever_is_asked_for_the_depth_or_k(depth: Any, k: int, asked: int) -> None:
    inner = over()
    step = {"retrieve": inner} if depth is None else {"retrieve": inner, "depth": depth}
    indexed(step, {"rerank": alike}).search(QUERY, k)
    assert inner.asked == [asked]


def test_without_a_step_that_reads_it_is_asked_for_k() -> None:
    inner = over()
    indexed({"rewrite": shout}, {"retrieve": inner}).search(QUERY, 3)
    assert inner.asked == [3]


def test_the_retriever_is_told_before_what_it_will_be_asked_for() -> None:
    told: list[int] = []

    class Learning(Scripted):
        def use_k(self, k: int) -> None:
            told.append(k)

    Pipeline(steps=[{"retrieve": Learning()}, {"rerank": alike}]).use_k(10)
    assert told == [100]


# --- rewriting


def test_what_is_asked_is_what_the_rewriter_gave() -> None:
    inner = over()
    found = indexed({"rewrite": shout}, {"retrieve": inner}).search(QUERY, 3)
    assert inner.heard == ["APPLES"]
    assert found.steps["rewrite"].texts == ["APPLES"]
    assert found.steps["rewrite"].doc_ids is None


def test_the_lists_of_several_texts_are_fused() -> None:
    lists = {"apples one": ["a", "b"], "apples two": ["b", "c"]}
    inner = over(lambda query: lists[query.text])
    found = indexed({"rewrite": twice}, {"retrieve": inner}).search(QUERY, 3)
    assert ids(found) == ["b", "a", "c"]
    assert list(some(found.scores)) == [1 / 62 + 1 / 61, 1 / 61, 1 / 62]
    assert list(found.steps) == ["rewrite", "retrieve", "retrieve[2]", "retrieve (fused)"]
    assert found.steps["retrieve"].doc_ids == ["a", "b"]
    assert found.steps["retrieve[2]"].doc_ids == ["b", "c"]
    assert found.steps["retrieve (fused)"].doc_ids == ["b", "a", "c"]
    assert 0 < found.stages["more texts of rewrite"] <= found.stages["step:retrieve"]


def test_how_they_are_fused_can_be_said() -> None:
    lists: dict[str, Any] = {"apples one": {"a": 9.0, "b": 8.0}, "apples two": {"b": 3.0, "c": 1.0}}
    step = {"rewrite": twice, "fusion": {"method": "convex"}}
    found = indexed(step, {"retrieve": over(lambda query: lists[query.text])}).search(QUERY, 3)
    assert list(found) == [("a", 0.5), ("b", 0.5), ("c", 0.0)]


def test_the_own_text_is_kept_where_it_is_wanted_and_no_text_is_asked_twice() -> None:
    inner = over()
    steps = {"rewrite": lambda text: [text, "pears", "pears", " "], "keep": True}
    found = indexed(steps, {"retrieve": inner}).search(QUERY, 3)
    assert inner.heard == ["apples", "pears"]
    assert found.steps["rewrite"].texts == ["apples", "pears"]


def test_a_second_rewriter_gets_each_text_of_the_first() -> None:
    inner = over()
    steps: list[dict[str, Any]] = [
        {"rewrite": twice},
        {"rewrite": shout, "name": "loud", "keep": True},
    ]
    found = indexed(*steps, {"retrieve": inner}).search(QUERY, 3)
    assert inner.heard == ["apples one", "APPLES ONE", "apples two", "APPLES TWO"]
    assert found.steps["loud"].texts == ["apples one", "APPLES ONE"]
    assert found.steps["loud[2]"].texts == ["apples two", "APPLES TWO"]


def test_the_rewriter_gets_the_whole_query_on_request() -> None:
    seen: list[Query] = []

    def remember(query: Query) -> str:
        seen.append(query)
        return query.text

    query = Query("q7", "apples", metadata={"tags": ["fruit"]})
    indexed({"rewrite": remember, "pass_query": True}, {"retrieve": over()}).search(query, 3)
    assert seen == [query]


@pytest.mark.parametrize(("text", "heard"), [("original", "apples"), ("rewritten", "APPLES")])
def test_a_reranker_reads_the_text_as_it_was_asked_unless_said(text: str, heard: str) -> None:
    told: list[str] = []

    def scores(text: str, documents: Sequence[Document]) -> list[int]:
        told.append(text)
        return [0] * len(documents)

    step = {"rerank": scores, "text": text}
    indexed({"rewrite": shout}, {"retrieve": over()}, step).search(QUERY, 3)
    indexed({"rewrite": shout}, {"retrieve": over()}, {**step, "top": 2}).search(QUERY, 3)
    assert told == [heard] * 2


def test_the_filter_of_the_query_stays_with_every_text() -> None:
    from retrieval_bench.core.filters import parse_filter

    inner = FilteringRetriever()
    pipeline = Pipeline(steps=[{"rewrite": twice}, {"retrieve": inner}])
    assert pipeline.capabilities.filters
    pipeline.index([Document(i, "apples one two", metadata={"kind": i}) for i in "ab"])
    query = Query("q", "apples", filter=parse_filter({"kind": "b"}))
    assert ids(pipeline.search(query, 3)) == ["b"]


# --- reranking and filtering


def test_documents_come_in_the_order_of_the_reranker_s_numbers() -> None:
    found = indexed({"retrieve": over()}, {"rerank": backwards}).search(QUERY, 3)
    assert list(found) == [("f", 102.0), ("e", 101.0), ("d", 100.0)]
    assert found.steps["retrieve"].doc_ids == list("abcdef")
    assert list(some(found.steps["retrieve"].doc_scores)) == [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    assert found.steps["rerank"].doc_ids == list("fedcba")


MIXED = {"c": 3.0, "b": 2.0, "a": 2.0, "f": 1.0, "e": 1.0, "d": 0.5}
SATURATED = {"a": 1.0, "b": 0.5, "c": 1.0, "d": 0.0, "e": 0.5, "f": 1.0}
"""As a sigmoid gives them in half precision."""


def saturated(text: str, documents: Sequence[Document]) -> list[float]:
    return [SATURATED[document.id] for document in documents]


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        ([{"rerank": alike}], "cabefd"),
        ([{"rerank": alike}, {"rerank": alike, "name": "again"}], "cabefd"),
        ([{"rerank": saturated}], "cafbed"),
        ([{"rerank": saturated, "top": 4}, {"rerank": alike, "name": "again"}], "cafb"),
        ([{"rerank": backwards}, {"rerank": saturated}], "fcaebd"),
        ([{"rerank": saturated}, {"filter": lambda t, d: [True] * len(d)}], "cafbed"),
        ([{"filter": vowels}, {"rerank": alike}], "ae"),
    ],
)
def test_stages_keep_the_order_they_got_where_scores_tie(
    steps: list[dict[str, Any]], wanted: str
) -> None:
    """K2: ids decide only where no stage before did, as between a and b, which the retriever gave
    the same score."""
    pipeline = indexed({"retrieve": over(MIXED)}, *steps)
    for k in (6, 3):
        found = checked_ranking(pipeline.search(QUERY, k), k)
        assert ids(found) == list(wanted)[:k]


def test_a_constant_reranker_changes_nothing_on_the_way_to_a_run() -> None:
    """K2: alone, over units, and as a leg of a hybrid."""
    documents = [Document(i, f"apples {i}", metadata={"unit": i.upper()}) for i in "abcdef"]
    queries, first = [Query("q1", "apples")], {"c": 3.0, "a": 2.0, "b": 1.0}
    units = build_dataset("units", documents, queries, {"q1": {"C": 1}}, unit_key="unit")
    plain = build_dataset("plain", documents, queries, {"q1": {"c": 1}})
    for more in ([], [{"rerank": alike}]):
        pipeline = [Pipeline(steps=[{"retrieve": over(first)}, *more]) for _ in range(3)]
        hybrid = Hybrid(legs=[pipeline[2], over({"f": 1.0})])
        runs = [
            bench(made, data, k=2, metrics=["nDCG@2"], protocol=ONCE).run
            for made, data in ((pipeline[0], plain), (pipeline[1], units), (hybrid, plain))
        ]
        found = [run.rankings.row(0).doc_ids for run in runs]
        assert found == [["c", "a"], ["C", "A"], ["c", "f"]]
    assert runs[0].summary.tie_rule == "score desc, then as the stage before had it, id asc"


def test_a_rerankers_ties_are_ties_only_where_the_list_before_tied() -> None:
    """K2: what a stage decided is no accident of ids, and what none did is one."""
    found = indexed({"retrieve": over(MIXED)}, {"rerank": alike}).search(QUERY, 6)
    assert levels(found).tolist() == [0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    "form",
    [
        *("column", "lists", "row"),
        *(
            pytest.param(form, marks=pytest.mark.needs("torch"))
            for form in ("tensor", "learning", "bfloat16")
        ),
    ],
)
def test_numbers_of_a_reranker_come_in_any_form_that_holds_one_for_each(form: str) -> None:
    """K5: logits of shape (n, 1), as models with one label give them, and tensors as they are."""

    def scores(text: str, documents: Sequence[Document]) -> Any:
        values = np.array(backwards(text, documents))
        if form in ("column", "lists", "row"):
            column = values[:, None]
            return {"column": column, "lists": column.tolist(), "row": values}[form]
        import torch

        tensor = torch.tensor(values[:, None], requires_grad=form == "learning")
        return tensor.to(torch.bfloat16) if form == "bfloat16" else tensor

    assert ids(indexed({"retrieve": over()}, {"rerank": scores}).search(QUERY, 3)) == list("fed")


def test_two_numbers_for_each_document_are_told_with_their_shape() -> None:
    """K5: which of two labels is meant nobody can tell."""
    step = {"rerank": lambda text, documents: np.zeros((len(documents), 2))}
    with pytest.raises(CallError, match=r"12 scores of the shape \(6, 2\) for 6 documents"):
        indexed({"retrieve": over()}, step).search(QUERY, 3)


def test_top_cuts_what_a_reranker_leaves_and_its_whole_list_is_kept() -> None:
    found = indexed({"retrieve": over()}, {"rerank": backwards, "top": 2}).search(QUERY, 5)
    assert ids(found) == ["f", "e"]
    assert found.steps["rerank"].doc_ids == list("fedcba")


def test_rerankers_follow_each_other() -> None:
    steps: list[dict[str, Any]] = [{"rerank": backwards, "top": 3}, {"rerank": alike}]
    found = indexed({"retrieve": over()}, *steps).search(QUERY, 5)
    assert ids(found) == ["f", "e", "d"]
    assert list(found.steps) == ["retrieve", "rerank", "rerank#2"]


def test_a_filter_leaves_out_documents_and_says_how_many() -> None:
    pipeline = indexed({"retrieve": over()}, {"filter": vowels, "name": "vowels"})
    found = pipeline.search(QUERY, 5)
    assert list(found) == [("a", 6.0), ("e", 2.0)]
    assert found.steps["vowels"].doc_ids == ["a", "e"]
    assert pipeline.health_facts([QUERY]) == ["vowels left out 4 documents in 1 call"]


def test_a_filter_takes_parameters_and_may_be_made_by_a_class() -> None:
    class Longer:
        def __init__(self, than: str) -> None:
            self.than = than

        def __call__(self, text: str, documents: Sequence[Document]) -> list[bool]:
            return [document.id > self.than for document in documents]

    step = {"filter": vowels, "params": {"least": 0}}
    assert len(indexed({"retrieve": over()}, step).search(QUERY, 9)) == 6
    step = {"filter": Longer, "params": {"than": "d"}}
    assert ids(indexed({"retrieve": over()}, step).search(QUERY, 9)) == ["e", "f"]


def test_an_empty_list_is_not_reranked() -> None:
    def never(text: str, documents: Sequence[Document]) -> list[float]:
        raise AssertionError

    found = indexed({"retrieve": over([])}, {"rerank": never}, {"filter": never}).search(QUERY, 3)
    assert ids(found) == []
    assert found.steps["rerank"].doc_ids == []


def test_a_step_that_is_off_is_not_there_and_its_names_stay_those_of_the_config() -> None:
    steps: list[dict[str, Any]] = [
        {"rewrite": "no.such:module", "on": False},
        {"retrieve": over()},
        {"rerank": alike, "on": False},
        {"rerank": backwards},
    ]
    found = indexed(*steps).search(QUERY, 1)
    assert ids(found) == ["f"]
    assert list(found.steps) == ["retrieve", "rerank#2"]


def test_no_scores_come_from_a_reranker_that_gives_none() -> None:
    class Turned(Reranker):
        has_scores = False

        def rerank(
            self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
        ) -> Reranked:
            return Reranked(range(len(documents))[::-1], None)

    pipeline = indexed({"retrieve": over()}, {"rerank": Turned()})
    assert not pipeline.capabilities.has_scores
    found = pipeline.search(QUERY, 2)
    assert (ids(found), found.scores) == (["f", "e"], None)


# --- nested


def hybrid(*legs: Retriever, names: str = "xy") -> Hybrid:
    for name, leg in zip(names, legs, strict=True):
        leg.name = name  # type: ignore[attr-defined]
    return Hybrid(legs=list(legs), depth=4)


def test_a_hybrid_inside_of_a_pipeline_keeps_its_lists() -> None:
    inner = hybrid(over(), over(["c", "b"]))
    found = indexed({"retrieve": inner}, {"rerank": backwards}).search(QUERY, 2)
    assert list(found.steps) == ["retrieve", "retrieve/x", "retrieve/y", "rerank"]
    assert found.steps["retrieve/x"].doc_ids == list("abcdef")
    assert found.steps["retrieve/y"].doc_ids == ["c", "b"]
    assert {"leg:x", "leg:y", "fuse", "step:retrieve", "step:rerank"} <= set(found.stages)


def test_lists_of_each_text_are_kept_apart_also_inside() -> None:
    inner = hybrid(over(lambda q: ["a"] if q.text == "apples one" else ["b"]), over(["c"]))
    found = indexed({"rewrite": twice}, {"retrieve": inner}).search(QUERY, 2)
    assert found.steps["retrieve/x"].doc_ids == ["a"]
    assert found.steps["retrieve/x[2]"].doc_ids == ["b"]


def test_a_pipeline_as_a_leg_keeps_its_lists_and_texts() -> None:
    leg = Pipeline(steps=[{"rewrite": shout}, {"retrieve": over()}, {"rerank": backwards}])
    whole = hybrid(leg, over(["a"]))
    whole.index(DOCUMENTS)
    found = whole.search(QUERY, 2)
    assert list(found.steps) == ["x/rewrite", "x/retrieve", "x/rerank"]
    assert found.steps["x/rewrite"].texts == ["APPLES"]
    assert found.steps["x/rerank"].doc_ids == list("fedcba")
    assert found.legs["x"].doc_ids == list("fedc")
    assert {"leg:x", "x.step:rewrite", "x.step:retrieve", "x.step:rerank"} <= set(found.stages)


def test_a_pipeline_inside_of_a_pipeline_keeps_its_lists_and_texts() -> None:
    inner = Pipeline(steps=[{"rewrite": shout}, {"retrieve": over()}])
    found = indexed({"retrieve": inner}, {"rerank": backwards}).search(QUERY, 2)
    assert list(found.steps) == ["retrieve", "retrieve/rewrite", "retrieve/retrieve", "rerank"]
    assert found.steps["retrieve/rewrite"].texts == ["APPLES"]
    assert {"retrieve.step:rewrite", "retrieve.step:retrieve"} <= set(found.stages)


# --- what it says of itself


def test_it_describes_its_steps_and_its_depth() -> None:
    facts = indexed({"rewrite": shout}, {"retrieve": "bm25"}, {"rerank": alike, "top": 3})
    described = facts.describe()
    assert described["depth"] == 100
    assert described["steps"]["rewrite"] == {"function": f"{__name__}:shout"}
    assert described["steps"]["retrieve"]["target"] == "bm25"
    assert described["steps"]["rerank"] == {"function": f"{__name__}:alike", "top": 3}
    assert json.loads(json.dumps(described)) == described


def test_warnings_and_facts_of_the_retriever_are_its_own() -> None:
    inner = Scripted(LIST, warnings=["it is cold"])
    assert list(Pipeline(steps=[{"retrieve": inner}]).health([])) == ["it is cold"]


def test_what_is_worth_tuning_are_depth_top_and_which_steps_are_on() -> None:
    space = indexed(
        {"rewrite": shout, "on": False}, {"retrieve": over()}, {"rerank": alike, "top": 7}
    ).search_space()
    assert space == {
        "steps.0.on": [False, True],
        "steps.1.depth": [100, 20, 50, 200],
        "steps.2.on": [True, False],
        "steps.2.top": [7, 5, 10, 20, 50],
    }


def test_the_hash_of_a_config_knows_what_a_step_s_retriever_is(here: Path) -> None:
    folder = here / "configs" / "retrievers"
    folder.mkdir(parents=True)
    found = []
    for b in (0.1, 0.2):
        (folder / "mine.yaml").write_text(f"target: bm25\nparams: {{b: {b}}}", encoding="utf-8")
        found.append(config_hash("pipeline", {"steps": [{"retrieve": "mine"}, {"rerank": "x:y"}]}))
    assert found[0] != found[1]


# --- bad configs


def test_steps_must_be_a_list_with_one_that_retrieves() -> None:
    for given in ((), "bm25", {"retrieve": "bm25"}):
        with pytest.raises(ConfigError, match="steps given as"):
            Pipeline(steps=given)  # type: ignore[arg-type]
    assert "0 steps that retrieve" in fault({"rewrite": shout})
    assert "2 steps that retrieve" in fault({"retrieve": "bm25"}, {"retrieve": "bm25"})


def test_the_order_is_rewrite_retrieve_rerank() -> None:
    late = fault({"retrieve": "bm25"}, {"rewrite": shout})
    assert "the order retrieve, rewrite" in late
    assert "the order rerank, retrieve" in fault({"rerank": alike}, {"retrieve": "bm25"})
    assert "correct `steps:`" in late


def test_all_faults_of_all_steps_are_told_at_once() -> None:
    told = fault(
        {"rewrite": shout, "keeep": True},
        {"retrieve": "bm25", "depth": 0},
        {"retrieve": "bm25", "rerank": alike},
        {"rerank": alike, "name": "a/b"},
        {"rerank": alike, "top": True, "text": "mine"},
        {"rerrank": alike},
        {},
        "bm25",
        {1: 2},
        {"filter": vowels, "on": "no"},
        {"rewrite": shout, "fusion": {"method": "sum"}},
        {"rewrite": shout, "fusion": {"weights": [1]}},
        {"rewrite": shout, "price": {"calls": -1}},
        {"retrieve": "bm25", 7: 1},
    )
    for part in (
        "step 1: unknown key 'keeep'",
        "step 2: 'depth'",
        "step 3: retrieve and rerank in one step",
        "step 4: 'name'",
        "step 5: 'text'",
        "step 5: 'top'",
        "step 6: keys rerrank (did you mean rerank?",
        "step 7: keys none",
        "step 8: a str",
        "step 9: keys 1",
        "step 10: 'on'",
        "step 11: 'fusion': unknown method 'sum'",
        "step 12: 'fusion': Value error, no weights",
        "step 13: 'price.calls'",
        "step 14: unknown key '7'",
    ):
        assert part in told, told


def test_all_that_cannot_be_built_is_told_at_once_with_its_step() -> None:
    told = fault(
        {"rewrite": "no.such:thing"},
        {"retrieve": "bm52"},
        {"rerank": lambda: 3, "name": "mine"},
        error=HarnessError,
    )
    assert "no.such" in told
    assert "step 'rewrite'" in told
    assert "did you mean bm25" in told
    assert "step 'retrieve'" in told
    assert "made int" in told
    assert "step 'mine'" in told


@pytest.mark.parametrize("step", ["rewrite", "rerank", "filter"])
def test_what_is_no_function_is_refused_by_what_would_be_one(step: str) -> None:
    steps: list[dict[str, Any]] = [{"retrieve": "bm25"}, {step: 3}]
    told = fault(*(steps[::-1] if step == "rewrite" else steps))
    assert "3 is no name and no function" in told
    assert "function of (text" in told


def test_a_function_that_does_not_take_what_it_gets_is_refused() -> None:
    told = fault({"retrieve": "bm25"}, {"rerank": lambda text, documents, extra: [], "params": {}})
    assert "cannot be called as function(text, documents)" in told
    told = fault({"retrieve": "bm25"}, {"rerank": alike, "params": {"depth": 3}})
    assert "depth" in told


def test_a_pipeline_cannot_contain_itself(here: Path) -> None:
    folder = here / "configs" / "retrievers"
    folder.mkdir(parents=True)
    loop = {"target": "hybrid", "params": {"legs": ["bm25", "mine"]}}
    configs = {"mine": {"target": "pipeline", "params": {"steps": [{"retrieve": "loop"}]}}}
    for name, config in {**configs, "loop": loop}.items():
        (folder / f"{name}.yaml").write_text(json.dumps(config), encoding="utf-8")
    for name in ("mine", "loop"):
        with pytest.raises(ConfigError, match="contains itself") as caught:
            load_retriever_config(name).build()
        assert "take its name out of its own legs or steps" in str(caught.value)


# --- life


class Closing(Reranker):
    def __init__(self, problem: Exception | None = None) -> None:
        self.closed = 0
        self.problem = problem

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        raise NotImplementedError

    def close(self) -> None:
        self.closed += 1
        if self.problem:
            raise self.problem


def test_closing_closes_every_step_once_also_when_one_fails_to() -> None:
    inner, good, bad = over(), Closing(), Closing(ValueError("stuck"))
    pipeline = Pipeline(steps=[{"retrieve": inner}, {"rerank": good}, {"rerank": bad}])
    with pytest.raises(ValueError, match="stuck"):
        pipeline.close()
    pipeline.close()
    assert (inner.closed, good.closed, bad.closed) == (1, 1, 1)


def test_a_constructor_that_fails_closes_what_it_built() -> None:
    first = Closing()
    steps: list[dict[str, Any]] = [{"rerank": first}, {"rerank": "no.such:thing"}]
    fault({"retrieve": "bm25"}, *steps, error=HarnessError)
    assert first.closed == 1


def test_the_same_over_memory_closes_nothing() -> None:
    from retrieval_bench.core.remembered import Memory

    inner, reranker = over(), Closing()
    pipeline = Pipeline(steps=[{"retrieve": inner}, {"rerank": reranker}])
    pipeline.over(Memory()).close()
    assert (inner.closed, reranker.closed) == (0, 0)


def test_an_external_retriever_needs_no_documents_unless_a_step_reads_them() -> None:
    external = Scripted(LIST)
    plain = Pipeline(steps=[{"rewrite": shout}, {"retrieve": external}])
    assert plain.capabilities.external
    assert ids(plain.search(QUERY, 2)) == ["a", "b"]

    reading = Pipeline(steps=[{"retrieve": Scripted(LIST)}, {"rerank": backwards}])
    assert not reading.capabilities.external
    with pytest.raises(ContractError, match="before index"):
        reading.search(QUERY, 2)
    reading.index(iter(DOCUMENTS))
    assert external.indexed is None
    assert ids(reading.search(QUERY, 2)) == ["f", "e"]


def test_a_dataset_without_documents_serves_no_pipeline_that_reads_them() -> None:
    data = build_dataset("none", None, [QUERY], {"q1": {"a": 1}})
    steps: list[dict[str, Any]] = [{"retrieve": Scripted(LIST)}]
    run = bench(Pipeline(steps=steps), data, k=2, protocol=ONCE).run
    assert run.summary.metrics["R@2"].mean == 1.0
    with pytest.raises(DataError, match="has no corpus"):
        bench(Pipeline(steps=[*steps, {"rerank": alike}]), data, k=2, protocol=ONCE)


def test_a_list_with_a_document_that_is_not_in_the_corpus_cannot_be_read() -> None:
    pipeline = indexed({"retrieve": Scripted({"z": 1.0})}, {"rerank": alike})
    with pytest.raises(ContractError, match="document 'z' of the list is not in the corpus") as c:
        pipeline.search(QUERY, 2)
    assert "step 'rerank'" in str(c.value)
