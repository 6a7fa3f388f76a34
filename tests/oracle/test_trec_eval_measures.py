"""All measures and modes of trec_eval 9.0.8, through the C code in pytrec_eval, on generated runs.

Never given to it: what ``test_trec_eval.py`` names, and gains less than 1 apart, which it does not
put in order (it compares them as whole numbers).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.metrics import Judgements
from retrieval_bench.metrics.definitions import DEFINITIONS
from retrieval_bench.metrics.names import Metric, parse_metric
from retrieval_bench.metrics.trec_names import Row, expanded
from retrieval_bench_score.conventions import Missing, convention
from retrieval_bench_score.scored import judge_scores
from retrieval_bench_score.scoring import Answers, score
from tests.builders.generated import Generated, generated, in_order

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pytrec_eval
    import pytrec_eval_ext as extension

NOT_IN_9 = ("rbp", "rbp_resid", "unj_5", "unj_10", "unj_20")

EACH = [row for row in expanded("all_trec") if row.metric and row.name not in NOT_IN_9]

WITH_PARAMETERS = [
    *("P.1,3,7,1001", "recall.1,4", "success.2,1000", "map_cut.1,2", "ndcg_cut.2,9"),
    *("relative_P.1,2,33", "iprec_at_recall.0,0.05,0.33,0.5,0.999,1", "Rprec_mult.0.05,0.5,3,10"),
    *("11pt_avg.0.2,0.5,0.8", "utility.2,-0.5,-1,0", "utility.1,-1,0,0.25", "set_F.0.5", "set_F.3"),
    *("ndcg.1=4.5,2=9,4=7", "ndcg.0=-1,1=0,2=5", "ndcg_rel.1=4.5,2=9,4=7", "G.1=4.5,2=9,4=7"),
    *("Rndcg.1=4.5,2=9,4=7", "Rndcg.1=2,3=2,4=10", "ndcg.0=1,1=2,2=4,3=8,4=16", "ndcg.9=20"),
]


def _theirs(
    data: Generated, measure: str, level: int, *, judged_only: bool = False
) -> dict[str, dict[str, float]]:
    evaluator = extension.RelevanceEvaluator(
        query_relevance=data.qrels,
        measures={measure},
        relevance_level=level,
        judged_docs_only_flag=judged_only,
    )
    result: dict[str, dict[str, float]] = evaluator.evaluate(data.scores)
    return result


def _compare(data: Generated, metric: Metric, theirs: list[float], what: str) -> None:
    ours = metric.compute(judge_scores(data.scores, list(data.scores), Judgements(data.qrels)))
    expected = np.array(theirs)
    if metric.geometric:
        expected = np.exp(expected)
    assert np.abs(ours - expected).max() < 1e-9, what


def _of_9(row: Row) -> Metric:
    """As version 9 has it, which the oracle is."""
    return parse_metric(row.metric).also({"rounding": "up"})


def _at(row: Row, level: int, *, judged_only: bool = False) -> Metric:
    return _of_9(row).also({"rel": level, "judged_only": judged_only})


@pytest.mark.slow
@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_every_measure_at_every_level(level: int, judged_only: bool) -> None:
    data = generated(300 + level, 160, missing=0)
    assert any(grade < 0 for grades in data.qrels.values() for grade in grades.values())
    for measure in sorted(pytrec_eval.supported_measures - {"runid", "relstring"}):
        theirs = _theirs(data, measure, level, judged_only=judged_only)
        rows = [row for row in EACH if row.name in next(iter(theirs.values()))]
        assert rows, measure
        for row in rows:
            values = [theirs[query_id][row.name] for query_id in data.scores]
            _compare(data, _at(row, level, judged_only=judged_only), _clean(values), row.name)


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("measure", WITH_PARAMETERS)
def test_every_parameter(measure: str, level: int) -> None:
    data = generated(400 + level, 120, missing=0)
    theirs = _theirs(data, measure, level)
    for row in expanded(measure):
        printed = row.name if row.name in theirs[next(iter(theirs))] else measure.partition(".")[0]
        values = [theirs[query_id][printed] for query_id in data.scores]
        _compare(data, _at(row, level), _clean(values), row.name)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 10, 100])
def test_at_most_so_many_hits(depth: int) -> None:
    data = generated(500 + depth, 100, missing=0)
    cut = Generated(
        data.qrels,
        {q: {doc: row[doc] for doc in in_order(row)[:depth]} for q, row in data.scores.items()},
    )
    for measure in sorted(pytrec_eval.supported_measures - {"runid", "relstring"}):
        theirs = _theirs(cut, measure, 1)
        for row in EACH:
            if row.name in next(iter(theirs.values())):
                values = [theirs[query_id][row.name] for query_id in data.scores]
                metric = _of_9(row).also({"depth": depth})
                _compare(data, metric, _clean(values), row.name)


def test_every_measure_of_the_tool_has_a_name_here() -> None:
    known = {row.name for row in EACH}
    for measure in pytrec_eval.supported_measures - {"runid", "relstring"}:
        assert any(name == measure or name.startswith(f"{measure}_") for name in known), measure
    assert {parse_metric(row.metric).name for row in EACH} <= set(DEFINITIONS)


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["left out", "zero"])
def test_every_mean_with_and_without_c(missing: Missing) -> None:
    data = generated(600, 300)
    rules = replace(convention("trec"), missing=missing, also={"rounding": "up"})
    metrics = rules.parse([row.metric for row in EACH])
    evaluation = score(
        Answers(scores=data.scores), Judgements(data.qrels), rules, metrics
    ).evaluation
    theirs = pytrec_eval.RelevanceEvaluator(data.qrels, {"all_trec"}).evaluate(data.scores)
    assert len(theirs) < len(data.qrels)
    for row in EACH:
        values = _clean([of[row.name] for of in theirs.values()])
        lacking = len(data.qrels) - len(values) if missing == "zero" else 0
        if row.name.startswith("gm_"):
            expected = math.exp((sum(values) + lacking * math.log(1e-5)) / (len(values) + lacking))
        elif row.name.startswith("num_"):
            expected = sum(values)
        else:
            expected = sum(values) / (len(values) + lacking)
        if missing == "zero" and row.name in ("num_q", "num_rel"):
            whole = [grade for grades in data.qrels.values() for grade in grades.values()]
            expected = len(data.qrels) if row.name == "num_q" else sum(g > 0 for g in whole)
        ours = evaluation.mean(rules.parse(row.metric)[0]).mean
        assert ours == pytest.approx(expected, abs=1e-9), row.name


def test_gains_less_than_1_apart_have_no_best_order_in_trec_eval() -> None:
    """It compares 3.5 with 3 as whole numbers, so that the best ranking is not worth 1."""
    data = Generated({"q": {"a": 1, "b": 3}}, {"q": {"a": 2.0, "b": 1.0}})
    metric = parse_metric("nDCG(gains={1:3.5})")
    run = judge_scores(data.scores, ["q"], Judgements(data.qrels))
    assert metric.compute(run).tolist() == [1]
    dcg = 3.5 + 3 / math.log2(3)
    assert _theirs(data, "ndcg.1=3.5", 1)["q"]["ndcg"] == pytest.approx(
        dcg / (3 + 3.5 / math.log2(3))
    )


def _clean(values: list[float]) -> list[float]:
    """trec_eval divides 0 by 0 where nothing gains; that is 0 here."""
    return [0.0 if math.isnan(value) else value for value in values]
