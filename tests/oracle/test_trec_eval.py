"""Every metric that trec_eval has equals it, through pytrec_eval, to 1e-9 on generated runs.

Never given to pytrec_eval, which would read or write outside its memory: a query that has only
negative grades, and one with an empty ranking (left out, which is the same with ``-c``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np
import pytest

from retrieval_bench.metrics import Judgements
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scoring import Answers, Scored, score
from tests.builders.generated import Generated, as_arrays, generated

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pytrec_eval

TREC = convention("trec")

CUTS = (1, 3, 5, 10, 100, 1000)

NAMES = {
    "nDCG": "ndcg",
    "AP": "map",
    "RR": "recip_rank",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "set_P": "set_P",
    "set_R": "set_recall",
    "set_F": "set_F",
} | {
    f"{ours}@{cut}": f"{theirs}_{cut}"
    for ours, theirs in [
        ("nDCG", "ndcg_cut"),
        ("AP", "map_cut"),
        ("P", "P"),
        ("R", "recall"),
        ("Success", "success"),
    ]
    for cut in CUTS
}


def _theirs(data: Generated) -> dict[str, dict[str, float]]:
    cuts = ",".join(map(str, CUTS))
    measures = {name for name in NAMES.values() if not name[-1].isdigit()}
    measures |= {f"{name}.{cuts}" for name in ("ndcg_cut", "map_cut", "P", "recall", "success")}
    measures |= {"gm_map", "num_ret", "num_rel_ret", "num_nonrel_judged_ret"}
    evaluator = pytrec_eval.RelevanceEvaluator(data.qrels, measures)
    result: dict[str, dict[str, float]] = evaluator.evaluate(data.scores)
    return result


def _ours(data: Generated, names: list[str]) -> Scored:
    answers = Answers(scores=data.scores)
    return score(answers, Judgements(data.qrels), TREC, TREC.parse(names))


def _compare(scored: Scored, theirs: Mapping[str, Mapping[str, float]], names: list[str]) -> None:
    evaluation = scored.evaluation
    for ours, column, mean in zip(names, evaluation.per_query.T, evaluation.means, strict=True):
        name = NAMES[ours]
        expected = [theirs[q][name] if q in theirs else 0.0 for q in evaluation.query_ids]
        assert np.abs(column - expected).max() < 1e-9, ours
        assert mean.mean == pytest.approx(sum(expected) / len(expected), abs=1e-9), ours
        assert mean.n == len(expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_four_thousand_generated_queries_score_as_in_trec_eval(seed: int) -> None:
    data = generated(seed, 500)
    scored = _ours(data, list(NAMES))
    assert scored.counts.missing > 0
    _compare(scored, _theirs(data), list(NAMES))


def test_gmap_is_the_geometric_mean_that_trec_eval_prints() -> None:
    data = generated(200, 300)
    scored = _ours(data, ["GMAP"])
    theirs = _theirs(data)
    logs = [theirs[q]["gm_map"] if q in theirs else math.log(1e-5) for q in data.qrels]
    assert scored.evaluation.means[0].mean == pytest.approx(math.exp(sum(logs) / len(logs)))
    assert np.abs(np.log(scored.evaluation.per_query[:, 0]) - logs).max() < 1e-9


def test_judged_documents_are_those_that_trec_eval_counts() -> None:
    data = generated(201, 300)
    theirs = _theirs(data)
    scored = _ours(data, ["Judged@1000"])
    for query_id, (value,) in zip(
        scored.evaluation.query_ids, scored.evaluation.per_query.tolist(), strict=True
    ):
        counts = theirs.get(query_id, {})
        judged = counts.get("num_rel_ret", 0) + counts.get("num_nonrel_judged_ret", 0)
        assert value == pytest.approx(judged / counts.get("num_ret", 1), abs=1e-9)


@pytest.mark.slow
def test_the_joins_of_lists_and_of_arrays_score_the_same_to_the_bit() -> None:
    from retrieval_bench.runs.evaluation import evaluate

    data = generated(202, 300)
    judgements, metrics = Judgements(data.qrels), TREC.parse([*NAMES, "Judged@10", "GMAP"])
    scores = score(Answers(scores=data.scores), judgements, TREC, metrics)
    lists = score(Answers(lists=data.lists), judgements, TREC, metrics)
    ranking, doc_ids = as_arrays(data.lists, data.qrels)
    arrays = evaluate(ranking, doc_ids, list(data.qrels), data.qrels, metrics)
    assert np.array_equal(scores.evaluation.per_query, lists.evaluation.per_query)
    assert np.array_equal(scores.evaluation.per_query, arrays.per_query)
    assert scores.evaluation.means == lists.evaluation.means == arrays.means


def test_scores_equal_in_single_precision_are_equal() -> None:
    scores = {"q": {"a": 0.700000001, "b": 0.70}}
    for relevant, value in (("b", 1.0), ("a", 0.5)):
        data = Generated({"q": {relevant: 1}}, scores)
        assert _theirs(data)["q"]["recip_rank"] == value
        assert _ours(data, ["RR"]).evaluation.means[0].mean == value


@pytest.mark.parametrize(
    "scores", [{"a": 2e39, "b": 1e39, "c": -1e39, "d": -2e39}, {"a": 0.0, "b": -0.0}]
)
def test_scores_beyond_single_precision_and_both_zeros_are_equal(scores: dict[str, float]) -> None:
    data = Generated({"q": {"a": 1}}, {"q": scores})
    assert _theirs(data)["q"]["recip_rank"] == 0.5
    assert _ours(data, ["RR"]).evaluation.means[0].mean == 0.5


def test_gm_map_of_one_query_is_a_logarithm_in_pytrec_eval() -> None:
    data = Generated({"q": {"a": 1}}, {"q": {"x": 2.0, "a": 1.0}})
    assert _theirs(data)["q"]["gm_map"] == pytest.approx(math.log(0.5))
    assert _ours(data, ["GMAP"]).evaluation.per_query.item() == pytest.approx(0.5)
