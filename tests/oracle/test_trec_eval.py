"""Every metric equals trec_eval (through pytrec_eval) to 1e-9 on generated runs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from harness.metrics import judge, judged, parse_metric

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytrec_eval = pytest.importorskip("pytrec_eval")

CUTS = [1, 3, 5, 10, 100]

NAMES = {"nDCG": "ndcg", "AP": "map", "RR": "recip_rank"} | {
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


def _generated(seed: int) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    """Up to 12 queries with lists of 0 to 300 hits and up to 40 judgements, grades -1 to 4."""
    rng = np.random.default_rng(seed)
    rankings, qrels = {}, {}
    for i in range(int(rng.integers(1, 13))):
        pool = [f"d{j}" for j in rng.permutation(400)]
        rankings[f"q{i}"] = pool[: int(rng.choice([0, 1, 2, 5, 20, 100, 300]))]
        judged = rng.choice(400, size=int(rng.integers(1, 40)), replace=False)
        grades = rng.integers(-1, int(rng.integers(1, 5)) + 1, size=len(judged))
        # Only negative grades in a query make pytrec_eval write outside its buffers and hang later.
        grades[0] = max(grades[0], 0)
        qrels[f"q{i}"] = {f"d{j}": int(g) for j, g in zip(judged, grades, strict=True)}
    return rankings, qrels


@pytest.mark.parametrize("seed", range(40))
def test_both_ways_of_joining_give_the_same(seed: int) -> None:
    rankings, qrels = _generated(seed)
    doc_ids = [f"d{i}" for i in range(400)]
    array = np.full((len(rankings), 300), -1, dtype=np.int32)
    for at, row in enumerate(rankings.values()):
        array[at, : len(row)] = [int(doc_id[1:]) for doc_id in row]
    per_query = [qrels[query_id] for query_id in rankings]
    rows = np.repeat(np.arange(len(rankings)), [len(row) for row in per_query])
    grade = np.array([g for row in per_query for g in row.values()], dtype=np.int32)
    lengths = np.array([len(row) for row in rankings.values()])
    from_judgements = judged._join_from_judgements(array, doc_ids, per_query, rows, grade)
    from_hits = judged._join_from_hits(array, doc_ids, per_query, lengths)
    assert np.array_equal(from_judgements, from_hits)


@pytest.mark.parametrize("seed", range(150))
def test_generated_runs_score_as_in_trec_eval(seed: int) -> None:
    rankings, qrels = _generated(seed)
    cuts = ",".join(map(str, CUTS))
    measures = {"ndcg", "map", "recip_rank"} | {
        f"{m}.{cuts}" for m in ("ndcg_cut", "map_cut", "P", "recall", "success")
    }
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, measures)
    theirs = evaluator.evaluate(
        {q: {d: float(-i) for i, d in enumerate(row)} for q, row in rankings.items() if row}
    )
    query_ids = list(rankings)
    doc_ids = sorted({d for row in rankings.values() for d in row})
    position = {doc_id: i for i, doc_id in enumerate(doc_ids)}
    array = np.full((len(query_ids), 300), -1, dtype=np.int32)
    for at, row in enumerate(rankings.values()):
        array[at, : len(row)] = [position[d] for d in row]
    run = judge(array, doc_ids, query_ids, qrels)
    for ours, name in NAMES.items():
        values = parse_metric(ours).compute(run)
        expected = [theirs[q][name] if q in theirs else 0.0 for q in query_ids]
        assert np.abs(values - expected).max() < 1e-9, ours
