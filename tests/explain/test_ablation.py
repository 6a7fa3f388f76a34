"""Parts left out: kept lists come to what a retriever gives that was built without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.calls.failures import Retry
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench.core.units.collapsing import UnitRetriever
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.budget import Budget
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_explain.ablation import Ablation, Caller, LeftOut, can_be_left_out, left_out
from retrieval_bench_retrievers.hybrid.dynamic.dynamic import HybridDynamic
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from retrieval_bench_retrievers.lexical.bm25 import BM25
from retrieval_bench_retrievers.pipeline.pipeline import Pipeline
from retrieval_bench_retrievers.rerank.reranking import Reranked, Reranker, by_score
from tests.builders import some
from tests.builders.reference import Filtering, words
from tests.builders.scripted import Scripted
from tests.builders.tiny_wordnet import write_wordnet

WORDS = [
    "car",
    "auto",
    "doctor",
    "physician",
    "road",
    "river",
    "stone",
    "light",
    "town",
    "museum",
    "bird",
    "fish",
]
DOCUMENTS = [
    Document(
        f"d{at:02}",
        " ".join(WORDS[(at * step + step) % len(WORDS)] for step in range(1, 3 + at % 5)),
        metadata={"kind": "ab"[at % 2], "parent": f"p{at // 3}"},
    )
    for at in range(36)
]
QUERIES = [
    Query(f"q{at}", f"{WORDS[at]} {WORDS[(at * 5 + 2) % len(WORDS)]} stone") for at in range(8)
]
UNITS = {document.id: str(document.metadata["parent"]) for document in DOCUMENTS}
K = 4
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "x": {},
    "y": {"b": 0.0, "k1": 0.3},
    "z": {"variant": "plus", "b": 1.0},
}
Legs = Sequence[Any]
asked: Counter[tuple[str, ...]] = Counter()
"""Who was asked what, in the test that runs."""


class Counting(BM25):
    """BM25 that is seen asking."""

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(**params)
        self.name = name

    def search(self, query: Query, k: int) -> Ranking:
        asked[(self.name, query.id, query.text, str(query.filter))] += 1
        return super().search(query, k)


@pytest.fixture(autouse=True)
def _nobody_asked() -> None:
    asked.clear()


def leg(name: str) -> Counting:
    return Counting(name, **VARIANTS[name])


def hybrid(names: str = "xy", **params: Any) -> Hybrid:
    return Hybrid(legs=[leg(name) for name in names], **{"depth": 12, **params})


def searched(retriever: Retriever, queries: Sequence[Query] = QUERIES, k: int = K) -> list[Ranking]:
    if not retriever.capabilities.external:
        retriever.index(DOCUMENTS)
    return [
        checked_ranking(retriever.search(query, k), k, has_scores=retriever.capabilities.has_scores)
        for query in queries
    ]


def ids(rankings: Sequence[Ranking | None]) -> list[list[str] | None]:
    return [None if one is None else list(one.doc_ids) for one in rankings]


CALLER = Caller(Retry(times=0), None, None, None, Budget())


def ablated(
    retriever: Retriever, *, asks: bool = False, queries: Sequence[Query] = QUERIES, k: int = K
) -> tuple[Ablation, dict[str, LeftOut]]:
    rankings = searched(retriever, queries, k)
    asked.clear()
    found = left_out(retriever, queries, k, rankings, caller=CALLER if asks else None)
    return found, {one.part.name: one for one in found.parts}


def check(
    parts: Mapping[str, LeftOut],
    name: str,
    built: Retriever,
    queries: Sequence[Query] = QUERIES,
    k: int = K,
) -> None:
    """``built`` answers as the retriever without the part does, to the bit."""
    found = parts[name].rankings
    assert found is not None, name
    before = Counter(asked)
    expected = searched(built, queries, k)
    asked.clear()
    asked.update(before)
    assert ids(found) == ids(expected), name
    for one, other in zip(found, expected, strict=True):
        if one is not None and one.scores is not None and other.scores is not None:
            assert list(one.scores) == list(other.scores), name


# --- hybrids


@pytest.mark.parametrize("parallel", [False, True])
def test_of_two_legs_the_other_one_is_left_alone(parallel: bool) -> None:
    whole = hybrid(parallel=parallel)
    found, parts = ablated(whole)
    assert list(parts) == ["x", "y", "leg depth 12"]
    check(parts, "x", leg("y"))
    check(parts, "y", leg("x"))
    assert parts["x"].part.instead == "y alone"
    assert found.warnings == ()
    whole.close()


@pytest.mark.parametrize("method", ["rrf", "convex"])
def test_of_three_legs_the_others_are_fused_by_their_weights(method: str) -> None:
    weights = {"x": 0.5, "y": 0.3, "z": 0.2}
    _, parts = ablated(hybrid("xyz", fusion={"method": method, "weights": weights}))
    for gone in "xyz":
        rest = [name for name in "xyz" if name != gone]
        own = {"method": method, "weights": {name: weights[name] for name in rest}}
        built = hybrid("".join(rest), fusion=own)
        check(parts, gone, built)
    for name in "xyz":
        check(parts, f"fusion, {name} alone", leg(name))


def test_the_depth_that_is_left_out_is_k() -> None:
    _, parts = ablated(hybrid(depth=[12, 6]))
    assert parts["leg depth 12"].part.instead == f"depth {K}"
    check(parts, "leg depth 12", hybrid(depth=K))


def test_no_depth_is_left_out_where_it_is_k() -> None:
    assert list(ablated(hybrid(depth=K))[1]) == ["x", "y"]


def test_parts_of_a_leg_are_parts_of_the_whole() -> None:
    def nested(*names: str) -> Hybrid:
        inner = hybrid("xy") if len(names) == 2 else leg(names[0])
        inner.name = "inner"  # type: ignore[union-attr]
        return Hybrid(legs=[inner, leg("z")], depth=12)

    _, parts = ablated(nested("x", "y"))
    check(parts, "inner", leg("z"))
    check(parts, "z", Pipeline(steps=[{"retrieve": hybrid("xy"), "depth": 12}]))
    check(parts, "inner/x", nested("y"))
    check(parts, "inner/y", nested("x"))
    assert parts["inner/x"].part.gives == "inner/x"


def test_nobody_is_asked_for_what_was_kept() -> None:
    for retriever in (hybrid(), hybrid("xyz"), piped({"rerank": Pointwise()})):
        _, parts = ablated(retriever)
        assert all(one.rankings is not None and one.asked == 0 for one in parts.values())
        assert not asked


# --- pipelines


def shared(text: str, documents: Sequence[Document]) -> list[int]:
    asked["shared", text, *(document.id for document in documents)] += 1
    return [len(words(text) & words(document.text)) for document in documents]


def short(text: str, documents: Sequence[Document]) -> list[bool]:
    asked["short", text, *(document.id for document in documents)] += 1
    return [len(document.text.split()) < 5 for document in documents]


def museums(text: str) -> list[str]:
    asked["museums", text] += 1
    return [f"{text} museum", f"{text} light"]


class Pointwise(Reranker):
    """Each document on its own, and seen reading it."""

    pointwise = True

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        for document in documents:
            asked["pointwise", text, document.id] += 1
        numbers = [(len(document.text) * 7 + len(text)) % 11 for document in documents]
        return by_score(numbers, documents, "pointwise")


def piped(*after: Mapping[str, Any], before: Sequence[Any] = (), inner: Any = None) -> Pipeline:
    retrieve = {"retrieve": inner or leg("x"), "depth": 10}
    return Pipeline(steps=[*before, retrieve, *after])


@pytest.mark.parametrize("given", [shared, Pointwise()], ids=["listwise", "pointwise"])
def test_without_a_reranker_the_list_before_it_is_the_answer(given: Any) -> None:
    found, parts = ablated(piped({"rerank": given, "top": 3}))
    assert list(parts) == ["rerank", "rerank depth 10"]
    check(parts, "rerank", piped())
    part = parts["rerank"].part
    assert (part.gets, part.gives, part.stages) == ("retrieve", "rerank", ("step:rerank",))
    assert found.warnings == ()


def test_without_the_only_step_that_reads_the_depth_stays() -> None:
    def inner() -> Hybrid:
        return hybrid("xy", depth=2)

    _, parts = ablated(Pipeline(steps=[{"retrieve": inner()}, {"rerank": Pointwise()}]))
    check(parts, "rerank", Pipeline(steps=[{"retrieve": inner(), "depth": 100}]))
    flat = searched(Pipeline(steps=[{"retrieve": inner()}]))
    assert ids(flat) != ids(some(parts["rerank"].rankings))


def test_a_pointwise_reranker_is_not_asked_for_fewer_documents_or_others_that_it_read() -> None:
    whole = piped({"rerank": Pointwise()}, inner=hybrid("xy", depth=10))
    _, parts = ablated(whole)
    check(
        parts,
        "rerank depth 10",
        Pipeline(steps=[{"retrieve": hybrid("xy", depth=10), "depth": K}, {"rerank": Pointwise()}]),
    )
    assert parts["rerank depth 10"].asked == 0


@pytest.mark.parametrize("given", [shared, Pointwise()], ids=["listwise", "pointwise"])
def test_below_a_reranker_parts_are_known_where_it_may_be_asked(given: Any) -> None:
    def whole(names: str) -> Pipeline:
        inner = hybrid(names, depth=10) if len(names) == 2 else leg(names)
        return piped({"rerank": given}, inner=inner)

    _, parts = ablated(whole("xy"), asks=True)
    assert max(asked.values(), default=0) <= 1
    check(parts, "retrieve/x", whole("y"))
    check(parts, "retrieve/y", whole("x"))
    flat = {"retrieve": hybrid("xy", depth=10), "depth": K}
    check(parts, "rerank depth 10", Pipeline(steps=[flat, {"rerank": given}]))


def test_below_a_listwise_reranker_nothing_is_known_where_it_may_not_be_asked() -> None:
    _, parts = ablated(piped({"rerank": shared}, inner=hybrid("xy", depth=10)))
    assert parts["retrieve/x"].rankings is None
    assert parts["rerank"].rankings is not None
    assert not asked


def test_each_of_several_steps_is_left_out_on_its_own() -> None:
    steps: list[dict[str, Any]] = [
        {"rerank": Pointwise(), "top": 6},
        {"filter": short},
        {"rerank": shared, "name": "last"},
    ]
    _, parts = ablated(piped(*steps), asks=True)
    assert max(asked.values(), default=0) <= 1
    for gone, name in enumerate(["rerank", "filter", "last"]):
        check(parts, name, piped(*steps[:gone], *steps[gone + 1 :]))
    assert [parts[name].part.gets for name in ("rerank", "filter", "last")] == [
        "retrieve",
        "rerank",
        "filter",
    ]


@pytest.mark.parametrize("keep", [False, True])
def test_without_rewriting_the_retriever_is_asked_live(keep: bool) -> None:
    before = [{"rewrite": museums, "keep": keep}]
    whole = piped({"rerank": Pointwise()}, before=before)
    found, parts = ablated(whole, asks=True)
    assert max(asked.values()) == 1
    assert not [who for who, *_ in asked if who == "museums"]
    assert parts["rewrite"].asked >= (0 if keep else len(QUERIES))
    check(parts, "rewrite", piped({"rerank": Pointwise()}))
    check(parts, "rerank", piped(before=before))
    assert found.warnings == ()


def test_without_rewriting_nothing_is_known_where_nobody_may_be_asked() -> None:
    _, parts = ablated(piped({"rerank": shared}, before=[{"rewrite": museums}]))
    assert parts["rewrite"].rankings is None
    check(parts, "rerank", piped(before=[{"rewrite": museums}]))
    assert parts["rewrite"].as_dict()["known"] is False


def test_of_two_rewriters_each_is_left_out() -> None:
    def upper(text: str) -> str:
        asked["upper", text] += 1
        return f"{text} bird"

    first, second = {"rewrite": museums, "keep": True}, {"rewrite": upper, "name": "second"}
    _, parts = ablated(piped(before=[first, second]), asks=True)
    assert max(asked.values(), default=0) <= 1
    check(parts, "rewrite", piped(before=[second]))
    check(parts, "second", piped(before=[first]))
    _, parts = ablated(piped({"rerank": shared}, before=[first, second]))
    check(parts, "rerank", piped(before=[first, second]))
    assert not [who for who, *_ in asked if who in "xyz"]


def test_a_pipeline_inside_of_a_hybrid_and_of_a_pipeline_is_taken_apart() -> None:
    def inner(*after: Mapping[str, Any]) -> Pipeline:
        made = piped(*after)
        made.name = "inner"  # type: ignore[attr-defined]
        return made

    step = {"rerank": shared}
    beside = Hybrid(legs=[inner(step), leg("y")], depth=10)
    _, parts = ablated(beside)
    check(parts, "inner/rerank", Hybrid(legs=[inner(), leg("y")], depth=10))
    nested = Pipeline(steps=[{"retrieve": inner(step), "depth": 10}, {"rerank": Pointwise()}])
    _, parts = ablated(nested, asks=True)
    check(
        parts,
        "retrieve/rerank",
        Pipeline(steps=[{"retrieve": inner(), "depth": 10}, {"rerank": Pointwise()}]),
    )
    check(parts, "rerank", Pipeline(steps=[{"retrieve": inner(step), "depth": 10}]))


# --- hybrid-dynamic


def dynamic(folder: Path | None, **params: Any) -> HybridDynamic:
    given = {"expansion": False if folder is None else {"wordnet": str(folder)}, **params}
    return HybridDynamic(legs=[leg("x"), leg("y")], depth=8, **given)


def test_expansion_and_weighting_are_left_out(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wordnet")
    found, parts = ablated(dynamic(folder), asks=True)
    assert list(parts) == ["x", "y", "leg depth 8", "expansion", "weighting"]
    assert max(asked.values()) == 1
    check(parts, "expansion", dynamic(None))
    check(parts, "weighting", dynamic(folder, weighting=False))
    assert parts["weighting"].asked == 0
    assert parts["weighting"].part.instead == "equal weights"
    assert found.warnings == ()


def test_without_expansion_the_legs_must_be_asked(tmp_path: Path) -> None:
    _, parts = ablated(dynamic(write_wordnet(tmp_path / "wordnet")))
    assert parts["expansion"].rankings is None
    assert not asked
    check(parts, "weighting", dynamic(tmp_path / "wordnet", weighting=False))


# --- filters of queries, units


def test_filters_are_left_out_by_asking_without_them() -> None:
    queries = [replace(query, filter=parse_filter({"kind": "b"})) for query in QUERIES]
    whole = Filtering()
    _, parts = ablated(whole, asks=True, queries=queries)
    assert parts["filters"].part.kind == "filter"
    check(parts, "filters", Filtering(), QUERIES)
    _, parts = ablated(Filtering(), queries=queries)
    assert parts["filters"].rankings is None


@pytest.mark.parametrize("k", [2, 4])
def test_over_chunks_parts_are_left_out_of_lists_of_chunks(k: int) -> None:
    def units(inner: Retriever) -> UnitRetriever:
        return UnitRetriever(inner, UNITS)

    _, parts = ablated(units(hybrid(depth=12)), k=k)
    check(parts, "x", units(leg("y")), k=k)
    check(parts, "leg depth 12", units(hybrid(depth=k)), k=k)
    assert not asked
    step = {"rerank": Pointwise()}
    found, parts = ablated(units(piped(step, inner=hybrid(depth=10))), k=k, asks=True)
    check(parts, "rerank", units(piped(inner=hybrid(depth=10))), k=k)
    check(parts, "retrieve/x", units(piped(step, inner=leg("y"))), k=k)
    assert found.warnings == ()


# --- what cannot be


def test_what_is_made_of_nothing_has_no_parts() -> None:
    assert not can_be_left_out(leg("x"), QUERIES)
    assert not can_be_left_out(UnitRetriever(leg("x"), UNITS), QUERIES)
    assert can_be_left_out(hybrid(), QUERIES)
    assert can_be_left_out(UnitRetriever(piped(), UNITS), QUERIES)
    assert ablated(leg("x"))[0].parts == ()


def test_queries_that_failed_have_no_ranking_without_a_part() -> None:
    whole = hybrid()
    rankings: list[Ranking | None] = [*searched(whole)]
    rankings[2] = None
    found = left_out(whole, QUERIES, K, rankings)
    assert all(one.rankings is not None and one.rankings[2] is None for one in found.parts)
    assert all(one.rankings is not None and one.rankings[3] is not None for one in found.parts)


def test_rankings_that_kept_lists_do_not_come_to_are_left_out_and_told() -> None:
    whole = hybrid()
    rankings = searched(whole)
    rankings[1] = replace(rankings[1], doc_ids=list(rankings[1].doc_ids)[::-1])
    found = left_out(whole, QUERIES, K, rankings)
    assert found.warnings == (
        "parts were not left out for 1 query: the lists that were kept come to another ranking",
    )
    assert all(one.rankings is not None and one.rankings[1] is None for one in found.parts)


def test_a_fault_in_leaving_out_does_not_cost_the_measurement() -> None:
    class Broken(Scripted):
        def over(self, memory: Any, path: str = "") -> Retriever:
            raise RuntimeError("no")

    found = left_out(Broken(["a"]), QUERIES, K, [None] * len(QUERIES))
    assert found.parts == ()
    assert found.warnings == ("no part could be left out: RuntimeError: no",)


@pytest.mark.parametrize("ablate", [False, True])
def test_a_measured_run_holds_the_rankings_without_its_parts(ablate: bool) -> None:
    qrels = {query.id: {"d01": 1} for query in QUERIES}
    data = build_dataset("tiny", DOCUMENTS, QUERIES, qrels)
    whole = piped({"rerank": Pointwise()}, before=[{"rewrite": museums}])
    protocol = Protocol(rounds=1, warm_up_s=0)
    experiment = prepare([whole], data, k=K, protocol=protocol, save=False)
    (run,) = replace(experiment, ablate=ablate).run(save=False)
    known = {part.name for part in run.summary.parts if part.known}
    assert known == set(run.rankings.without)
    assert known == (
        {"rewrite", "rerank", "rerank depth 10"} if ablate else {"rerank", "rerank depth 10"}
    )
    names = run.rankings.doc_ids
    rows = run.rankings.without["rerank"].tolist()
    expected = ids(searched(piped(before=[{"rewrite": museums}])))
    assert [[names[at] for at in row if at >= 0] for row in rows] == expected
