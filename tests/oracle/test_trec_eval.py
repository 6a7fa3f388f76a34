"""Every metric that trec_eval has equals it, through pytrec_eval, to 1e-9 on generated runs.

Never given to pytrec_eval, which would read or write outside its memory: a query that has only
negative grades, and one with an empty ranking (left out, which is the same with ``-c``).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import pytest

from retrieval_bench.metrics import Judgements
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scoring import Answers, Scored, score
from tests.builders.generated import Generated, generated

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
