"""scikit-learn's ndcg_score gives our nDCG on generated runs, linear and exponential.

It knows no document without a score, so what was not retrieved is scored below all that was, and
is compared only where the cut-off does not reach it. Ties it averages, unless told otherwise; what
differs is pinned in ``test_tools_sklearn.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from retrieval_bench.metrics import Judgements
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scoring import Answers, score
from tests.builders.generated import generated
from tests.lazily import Lazily

metrics: Any = Lazily("sklearn.metrics")

TREC = convention("trec")


def _theirs(
    grades: Mapping[str, int],
    scores: Mapping[str, float],
    k: int | None,
    *,
    exponential: bool = False,
) -> float:
    bottom = min(scores.values()) - 1
    documents = [*scores, *(doc_id for doc_id in grades if doc_id not in scores)]
    gains = np.array([max(0, grades.get(doc_id, 0)) for doc_id in documents], dtype=np.float64)
    values = np.array([scores.get(doc_id, bottom) for doc_id in documents])
    gains = 2**gains - 1 if exponential else gains
    return float(metrics.ndcg_score([gains], [values], k=k, ignore_ties=True))


@pytest.mark.parametrize("gain", ["linear", "exp"])
@pytest.mark.parametrize("k", [3, 100, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 10))])
def test_generated_queries_score_as_in_scikit_learn(gain: str, k: int) -> None:
    data = generated(500 + k, 600, kinds=("distinct",), missing=0)
    name = f"nDCG(gain={gain})@{k}"
    scored = score(Answers(scores=data.scores), Judgements(data.qrels), TREC, TREC.parse([name]))
    compared = 0
    for query_id, value in zip(
        scored.evaluation.query_ids, scored.evaluation.per_query[:, 0].tolist(), strict=True
    ):
        grades, scores = data.qrels[query_id], data.scores[query_id]
        # It refuses a single document.
        if k <= len(scores) and len({*scores, *grades}) > 1:
            theirs = _theirs(grades, scores, k, exponential=gain == "exp")
            assert value == pytest.approx(theirs, abs=1e-9)
            compared += 1
    assert compared > 50


@pytest.mark.slow
@pytest.mark.parametrize("gain", ["linear", "exp"])
def test_without_a_cut_off_they_agree_where_everything_judged_was_retrieved(gain: str) -> None:
    data = generated(600, 600, kinds=("distinct",), missing=0)
    qrels = {
        query_id: {d: g for d, g in data.qrels[query_id].items() if d in row}
        for query_id, row in data.scores.items()
        if len(row) > 1
    }
    metric = TREC.parse([f"nDCG(gain={gain})"])
    scored = score(Answers(scores=data.scores), Judgements(qrels), TREC, metric)
    for query_id, value in zip(
        scored.evaluation.query_ids, scored.evaluation.per_query[:, 0].tolist(), strict=True
    ):
        scores = data.scores[query_id]
        theirs = _theirs(qrels[query_id], scores, None, exponential=gain == "exp")
        assert value == pytest.approx(theirs, abs=1e-9)
