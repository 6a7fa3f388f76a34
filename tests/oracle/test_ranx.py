"""ranx gives what we give on generated runs, where its definitions are ours.

Not compared: its bpref, which is no number without judged documents that are not relevant, and its
RBP of graded judgements; what differs is pinned in ``test_tools_ranx.py``. Its order of ties
depends on insertion, so that scores are distinct here. The first call on a machine compiles for
half a minute, later ones do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from retrieval_bench.metrics import Judgements
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scoring import Answers, score
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
