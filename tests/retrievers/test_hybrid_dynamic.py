"""The hybrid of arXiv 2504.05324: synonyms, weights by query, and each of them switched off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import bench
from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import ConfigError, MissingDependencyError
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_retrievers.hybrid.dynamic.dynamic import HybridDynamic
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from tests.builders import some
from tests.builders.scripted import Scripted
from tests.builders.tiny_wordnet import write_wordnet

DOCUMENTS = [
    Document("a", "the automobile museum"),
    Document("b", "the physician of the town"),
    Document("c", "the town and the road"),
    Document("d", "the road and the river"),
]


def listening(ids: str = "abcd", *, external: bool = False) -> Scripted:
    """Gives the same list for every query."""
    hits = {doc_id: -float(at) for at, doc_id in enumerate(ids)}
    return Scripted(hits, capabilities=Capabilities(external=external))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_wordnet(tmp_path / "wordnet")


def made(folder: Path | None, legs: Sequence[Any] | None = None, **params: Any) -> HybridDynamic:
    if folder is not None:
        given = params.get("expansion", {})
        params["expansion"] = {**given, "wordnet": str(folder)}
    else:
        params.setdefault("expansion", False)
    hybrid = HybridDynamic(legs=legs or [listening(), listening("dcba")], **params)
    hybrid.index(DOCUMENTS)
    return hybrid


def test_each_leg_is_asked_the_query_with_up_to_two_synonyms_for_a_term(folder: Path) -> None:
    legs = [listening(), listening()]
    made(folder, legs).search(Query("q", "Where do Cars go?"), 2)
    assert legs[0].heard == legs[1].heard == ["Where do Cars go? auto automobile"]


@pytest.mark.parametrize(
    ("which", "heard"), [("sparse", ("car auto", "car")), ("dense", ("car", "car auto"))]
)
def test_only_the_chosen_leg_gets_synonyms(
    folder: Path, which: str, heard: tuple[str, str]
) -> None:
    legs = [listening(), listening()]
    made(folder, legs, expansion={"synonyms": 1, "legs": which}).search(Query("q", "car"), 2)
    assert (legs[0].heard[0], legs[1].heard[0]) == heard


def test_stop_words_and_words_that_are_there_already_add_nothing(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wn", {"noun": [["in", "inch"], ["car", "auto"]]})
    legs = [listening(), listening()]
    made(folder, legs).search(Query("q", "in a car, an Auto"), 2)
    assert legs[0].heard == ["in a car, an Auto"]


def test_a_query_in_another_language_is_asked_as_it_is(folder: Path) -> None:
    legs = [listening(), listening()]
    made(folder, legs).search(Query("q", "자동차는 어디에 있습니까"), 2)
    assert legs[0].heard == ["자동차는 어디에 있습니까"]


def test_a_specific_query_leans_to_the_first_leg_and_a_general_one_to_the_second() -> None:
    hybrid = made(None, weighting={"tokenizer": "word"})
    specific = hybrid.search(Query("q", "museum"), 4)
    general = hybrid.search(Query("q", "the"), 4)
    assert specific.doc_ids[0] == "a"
    assert general.doc_ids[0] == "d"


def test_the_weights_are_those_of_weighted_rrf_from_rank_0() -> None:
    legs = [listening("ab"), listening("b")]
    found = made(None, legs, weighting={"tokenizer": "word"}, depth=2).search(
        Query("q", "museum"), 2
    )
    scores = dict(zip(found.doc_ids, found.scores if found.scores is not None else [], strict=True))
    assert scores == pytest.approx({"a": 0.7 / 60, "b": 0.7 / 61 + 0.3 / 60})


def test_without_both_it_is_the_plain_hybrid_with_ranks_from_0() -> None:
    plain = Hybrid(legs=["bm25", "bm25s"], fusion={"base": 0}, depth=3)
    plain.index(DOCUMENTS)
    dynamic = made(None, ["bm25", "bm25s"], weighting=False)
    for text in ("the town", "museum", "road river"):
        one, other = plain.search(Query("q", text), 3), dynamic.search(Query("q", text), 3)
        assert list(one.doc_ids) == list(other.doc_ids)
        assert other.scores == pytest.approx(one.scores)


def test_a_fixed_share_is_the_hybrid_with_these_weights() -> None:
    weights = {"bm25": 0.8, "bm25s": 0.2}
    plain = Hybrid(legs=["bm25", "bm25s"], fusion={"base": 0, "weights": weights}, depth=3)
    plain.index(DOCUMENTS)
    dynamic = made(None, ["bm25", "bm25s"], weighting={"specific": 0.8, "general": 0.8})
    one, other = (
        plain.search(Query("q", "town road"), 3),
        dynamic.search(Query("q", "town road"), 3),
    )
    assert list(one.doc_ids) == list(other.doc_ids)
    assert other.scores == pytest.approx(one.scores)


def test_convex_fusion_takes_the_weights_of_the_query_too() -> None:
    hybrid = made(
        None,
        [listening("ab"), listening("ba")],
        fusion={"method": "convex"},
        weighting={"tokenizer": "word"},
    )
    found = hybrid.search(Query("q", "museum"), 2)
    assert list(found.doc_ids) == ["a", "b"]
    assert found.scores == pytest.approx([0.7, 0.3])


def test_synonyms_count_for_the_weights_only_when_asked_for(folder: Path) -> None:
    text = "the car"
    as_asked = made(folder, weighting={"tokenizer": "word", "of": "query"})
    expanded = made(folder, weighting={"tokenizer": "word", "of": "expanded"})
    assert as_asked.search(Query("q", text), 4).doc_ids[0] == "d"  # "the" stands everywhere
    assert expanded.plan(Query("q", text)).fusion.weights[0] == pytest.approx(0.5)


def test_it_finds_by_a_synonym_what_the_plain_one_does_not(folder: Path) -> None:
    query = Query("q", "doctor with a car")
    assert len(made(None, ["bm25", "bm25s"]).search(query, 4)) == 0
    assert set(made(folder, ["bm25", "bm25s"]).search(query, 4).doc_ids) == {"a", "b"}


def test_what_it_does_before_the_legs_are_stages_of_their_own(folder: Path) -> None:
    stages = made(folder).search(Query("q", "car"), 2).stages
    assert {"expand", "weigh", "leg:Scripted", "leg:Scripted#2", "fuse"} <= set(stages)
    plain = made(None, weighting=False).search(Query("q", "car"), 2).stages
    assert not {"expand", "weigh"} & set(plain)


def test_legs_side_by_side_give_the_same(folder: Path) -> None:
    query = Query("q", "the physician of the car museum")
    one = made(folder, ["bm25", "bm25s"]).search(query, 3)
    both = made(folder, ["bm25", "bm25s"], parallel=True)
    other = both.search(query, 3)
    both.close()
    assert list(one.doc_ids) == list(other.doc_ids)
    assert other.scores == pytest.approx(one.scores)


def test_weights_need_the_corpus_even_where_the_legs_have_their_own() -> None:
    legs = [listening(external=True), listening(external=True)]
    assert not HybridDynamic(legs=legs, expansion=False).capabilities.external
    plain = HybridDynamic(legs=legs, expansion=False, weighting=False)
    assert plain.capabilities.external
    assert len(plain.search(Query("q", "x"), 2)) == 2


def test_an_iterator_of_documents_is_enough_for_legs_and_counts() -> None:
    legs = [listening(), listening()]
    hybrid = HybridDynamic(legs=legs, expansion=False)
    hybrid.index(iter(DOCUMENTS))
    assert len(some(legs[0].indexed)) == 4
    assert hybrid.plan(Query("q", "museum")).fusion.weights[0] == pytest.approx(0.7)


def test_the_manifest_says_constants_wordnet_and_formula(folder: Path) -> None:
    facts = made(folder).describe()
    assert facts["expansion"]["synonyms"] == 2
    assert facts["expansion"]["wordnet"]["version"] == "9.9"
    assert facts["weighting"]["specific"] == 0.7
    assert "ln(" in facts["weighting"]["specificity"]
    assert "weights" not in facts["fusion"]
    assert facts["fusion"]["text"].endswith("by specificity")
    assert facts["fusion"]["base"] == 0
    assert str(folder) not in str(facts)
    plain = made(None, weighting=False).describe()
    assert plain["expansion"] is plain["weighting"] is None
    assert plain["fusion"]["weights"] == {"Scripted": 1.0, "Scripted#2": 1.0}


def test_health_tells_synonyms_and_weights(folder: Path) -> None:
    hybrid = made(folder)
    queries = [Query("1", "the car"), Query("2", "museum river")]
    facts = hybrid.health_facts(queries)
    assert "expansion: 1 of 2 queries got synonyms, 1.0 each on average" in facts
    assert any(fact.startswith("weight of Scripted: 0.") for fact in facts)
    assert hybrid.health(queries) == []
    (warning,) = hybrid.health([Query("3", "자동차")])
    assert "expansion does nothing" in warning


def test_it_can_be_measured_like_any_other(folder: Path) -> None:
    config = {
        "target": "hybrid-dynamic",
        "params": {"legs": ["bm25", "bm25s"], "expansion": {"wordnet": str(folder)}},
    }
    dataset = build_dataset("tiny", DOCUMENTS, [Query("q", "doctor")], {"q": {"b": 1}})
    result = bench(config, dataset, k=3, protocol=Protocol(rounds=1, warm_up_s=0))
    assert result.summary["metrics"]["AP@3"]["mean"] == 1


def test_the_configs_of_the_ablation_differ_in_nothing_else() -> None:
    names = ("", "-plain", "-expansion", "-weights")
    params = [load_retriever_config(f"hybrid-dynamic{name}").params for name in names]
    shared = [{k: v for k, v in p.items() if k not in ("expansion", "weighting")} for p in params]
    assert shared == [shared[0]] * 4
    switched = [(p["expansion"] is not False, p["weighting"] is not False) for p in params]
    assert switched == [(True, True), (False, False), (True, False), (False, True)]
    assert params[0]["fusion"] == {"method": "rrf", "k": 60, "base": 0}
    assert params[0]["expansion"] == params[2]["expansion"]
    assert params[0]["weighting"] == params[3]["weighting"]


def test_what_is_worth_tuning_names_parameters_that_exist(folder: Path) -> None:
    space = made(folder).search_space()
    assert [values[0] for values in space.values()] == [3, 0.7, 0.3]
    assert set(space) == {"depth", "weighting.specific", "weighting.general"}
    assert set(made(folder, weighting=False).search_space()) == {"depth"}
    assert made(folder).named_legs() == {}


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"expansion": {"synonyms": 0}}, "synonyms"),
        ({"expansion": {"legs": "both"}}, "legs"),
        ({"expansion": 3}, "expansion"),
        ({"weighting": {"specific": 1.1}}, "specific"),
        ({"weighting": {"low": 0.9, "high": 0.1}}, "low is above high"),
        ({"fusion": {"weights": [1, 2]}}, "fusion.weights"),
        ({"fusion": "rrf"}, "fusion given as str"),
        ({"legs": ["bm25", "bm25s", "bm25"]}, "legs given: 3"),
        ({"legs": ["bm25"]}, "legs given: 1"),
        ({"depth": 0}, "depth"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(params: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        HybridDynamic(**{"legs": ["bm25", "bm25s"], "expansion": False, **params})


def test_without_wordnet_no_leg_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    monkeypatch.setattr(
        "retrieval_bench_retrievers.hybrid.legs.load_retriever_config", built.append
    )
    monkeypatch.setattr(
        "retrieval_bench_retrievers.hybrid.dynamic.wordnet._usual_places", lambda: iter([tmp_path])
    )
    with pytest.raises(MissingDependencyError, match="apt install wordnet-base"):
        HybridDynamic(legs=["bm25", "bm25s"])
    assert built == []


def test_a_relative_folder_of_wordnet_starts_at_the_config(tmp_path: Path) -> None:
    write_wordnet(tmp_path / "files")
    path = tmp_path / "mine.yaml"
    path.write_text(
        "target: hybrid-dynamic\nparams: {legs: [bm25, bm25s], expansion: {wordnet: files}}\n",
        encoding="utf-8",
    )
    hybrid = load_retriever_config(str(path)).build()
    assert isinstance(hybrid, HybridDynamic)
