"""ranx gives what we give on generated runs, where its definitions are ours.

Not compared: its bpref, which is no number without judged documents that are not relevant, and its
RBP of graded judgements; both are pinned below. Its order of ties depends on insertion, so that
scores are distinct here. The first call on a machine compiles for half a minute, later ones do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.metrics import Judgements
from retrieval_bench.metrics.conventions import convention
from retrieval_bench.scoring.scoring import Answers, score
from tests.builders.generated import Generated, generated
from tests.lazily import Lazily

ranx: Any = Lazily("ranx")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TREC = convention("trec")

NAMES = {
    "nDCG": "ndcg",
    "nDCG@1": "ndcg@1",
    "nDCG@10": "ndcg@10",
    "nDCG(gain=exp)": "ndcg_burges",
    "nDCG(gain=exp)@10": "ndcg_burges@10",
    "AP": "map",
    "AP@3": "map@3",
    "AP(rel=2)@10": "map@10-l2",
    "RR": "mrr",
    "RR@3": "mrr@3",
    "P@1": "precision@1",
    "P@10": "precision@10",
    "P(rel=3)@10": "precision@10-l3",
    "R@10": "recall@10",
    "R": "recall",
    "R(rel=2)@5": "recall@5-l2",
    "F1@1": "f1@1",
    "F1@5": "f1@5",
    "F1@100": "f1@100",
    "F1(rel=2)@5": "f1@5-l2",
    "Success@5": "hit_rate@5",
    "Rprec": "r-precision",
    "Rprec(rel=2)": "r-precision-l2",
}

BINARY = {"RBP(p=0.8)": "rbp.80", "RBP(p=0.95)": "rbp.95", "RBP(p=0.5)": "rbp.5"}


def _theirs(data: Generated, names: list[str]) -> dict[str, dict[str, float]]:
    qrels = ranx.Qrels(data.qrels)
    run = ranx.Run(data.scores).make_comparable(qrels)  # adds the queries that the run lacks
    ranx.evaluate(qrels, run, names, threads=1)
    return {name: dict(run.scores[name]) for name in names}


def _value(
    name: str, qrels: Mapping[str, Mapping[str, int]], scores: Mapping[str, Mapping[str, float]]
) -> float:
    return float(ranx.evaluate(ranx.Qrels(qrels), ranx.Run(scores), name, threads=1))


def _ours(
    name: str, qrels: Mapping[str, Mapping[str, int]], scores: Mapping[str, Mapping[str, float]]
) -> float:
    scored = score(Answers(scores=scores), Judgements(qrels), TREC, TREC.parse([name]))
    return scored.evaluation.means[0].mean


def _compare(data: Generated, names: Mapping[str, str]) -> None:
    scored = score(Answers(scores=data.scores), Judgements(data.qrels), TREC, TREC.parse([*names]))
    theirs = _theirs(data, list(names.values()))
    for (ours, name), column in zip(names.items(), scored.evaluation.per_query.T, strict=True):
        expected = [theirs[name][query_id] for query_id in scored.evaluation.query_ids]
        assert np.abs(column - expected).max() < 1e-9, ours


def test_generated_queries_score_as_in_ranx() -> None:
    shallow = generated(300, 1000, kinds=("distinct",), lengths=(1, 1, 2, 3, 5, 10, 30, 100))
    deep = generated(301, 100, kinds=("distinct",))
    assert max(map(len, deep.scores.values())) == 1000
    _compare(shallow.joined_with(deep), NAMES)


def test_rbp_of_binary_judgements_is_as_in_ranx() -> None:
    _compare(generated(302, 500, kinds=("distinct",), lowest=0, highest=1), BINARY)


def test_a_name_of_ranx_is_the_metric_that_ranx_computes() -> None:
    for ours, theirs in (NAMES | BINARY).items():
        if "-l" not in theirs:
            assert [str(m) for m in TREC.parse([theirs])] == [ours]


def test_bpref_of_ranx_is_no_number_where_every_judged_document_is_relevant() -> None:
    qrels, scores = {"q": {"a": 1}}, {"q": {"x": 2.0, "a": 1.0}}
    assert math.isnan(_value("bpref", qrels, scores))
    assert _ours("Bpref", qrels, scores) == 1


def test_bpref_of_ranx_takes_a_negative_grade_for_judged() -> None:
    qrels, scores = {"q": {"a": 1, "b": -1}}, {"q": {"b": 2.0, "a": 1.0}}
    assert _value("bpref", qrels, scores) == 0
    assert _ours("Bpref", qrels, scores) == 1


def test_rbp_of_ranx_multiplies_by_the_grade_and_exceeds_one() -> None:
    qrels, scores = {"q": {"a": 3, "b": 3}}, {"q": {"a": 2.0, "b": 1.0}}
    assert _value("rbp.80", qrels, scores) == pytest.approx(3 * 0.2 * (1 + 0.8))
    assert _ours("RBP(p=0.8)", qrels, scores) == pytest.approx(0.2 * (1 + 0.8))


def test_ties_of_ranx_go_by_insertion_and_scores_stay_double() -> None:
    for documents, theirs in (("ab", 1.0), ("ba", 0.5)):
        scores = {"q": dict.fromkeys(documents, 1.0)}
        assert _value("mrr", {"q": {"a": 1}}, scores) == theirs
        assert _ours("RR", {"q": {"a": 1}}, scores) == 0.5
    nearly = {"q": {"a": 0.700000001, "b": 0.7}}
    assert _value("mrr", {"q": {"a": 1}}, nearly) == 1
    assert _ours("RR", {"q": {"a": 1}}, nearly) == 0.5


def test_ranx_keeps_the_last_score_of_a_document_that_stands_twice() -> None:
    run = ranx.Run()
    run.add("q", ["a", "x", "a"], [3.0, 2.0, 1.0])
    assert float(ranx.evaluate(ranx.Qrels({"q": {"a": 1}}), run, "mrr", threads=1)) == 0.5
    with pytest.raises(DataError, match="more than once"):
        score(
            Answers(lists={"q": ["a", "x", "a"]}), Judgements({"q": {"a": 1}}), TREC,
            TREC.parse(["RR"]),
        )  # fmt: skip


def test_ranx_refuses_a_run_that_lacks_a_query() -> None:
    qrels, scores = {"q": {"a": 1}, "lacking": {"a": 1}}, {"q": {"a": 1.0}}
    with pytest.raises(AssertionError, match="do not match"):
        _value("map", qrels, scores)
    assert _ours("AP", qrels, scores) == 0.5


def test_hits_of_ranx_is_a_number_of_documents_and_no_hit_rate() -> None:
    qrels, scores = {"q": {"a": 1, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    assert _value("hits@2", qrels, scores) == 2
    assert _ours("Success@2", qrels, scores) == 1
