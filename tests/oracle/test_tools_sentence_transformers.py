"""sentence-transformers' InformationRetrievalEvaluator: statements T9 of the guide's tools.md.

Its scoring is called with rankings, so that no model is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.oracle.tools_cases import GAP, HEAD, SHORT, TWICE, dcg, differs, same

pytestmark = [pytest.mark.dense, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def evaluation() -> Any:
    from sentence_transformers.sentence_transformer import evaluation

    return evaluation


def _scores(
    evaluation: Any,
    relevant: Mapping[str, Any],
    rankings: Mapping[str, Iterable[tuple[str, float]]],
) -> dict[str, float]:
    """All figures, cut at 3, over the queries that the evaluator keeps."""
    evaluator = evaluation.InformationRetrievalEvaluator(
        queries=dict.fromkeys(rankings, "text"),
        corpus=dict.fromkeys("abcdex", "text"),
        relevant_docs=relevant,
        mrr_at_k=[3],
        ndcg_at_k=[3],
        accuracy_at_k=[3],
        precision_recall_at_k=[3],
        map_at_k=[3],
    )
    hits = [
        [{"corpus_id": doc_id, "score": score} for doc_id, score in rankings[query_id]]
        for query_id in evaluator.queries_ids
    ]
    return {name: values[3] for name, values in evaluator.compute_metrics(hits).items()}


def _of(evaluation: Any, relevant: str, ranking: str) -> dict[str, float]:
    hits = [(doc_id, -float(rank)) for rank, doc_id in enumerate(ranking)]
    return _scores(evaluation, {"q": set(relevant)}, {"q": hits})


def test_t9_1_ap_is_divided_by_the_relevant_documents_but_at_most_by_k(evaluation: Any) -> None:
    value = _of(evaluation, "abcde", GAP.ranking)["map@k"]
    differs(value, (1 + 2 / 3) / 3, ours=GAP.ours["AP@3"])


def test_t9_2_relevance_is_binary_and_the_ideal_is_all_relevant_cut_at_k(evaluation: Any) -> None:
    same(_of(evaluation, "abcde", GAP.ranking)["ndcg@k"], GAP.ours["nDCG@3"])
    same(_of(evaluation, "abcde", HEAD.ranking)["ndcg@k"], HEAD.ours["nDCG@3"])


@pytest.mark.parametrize("relevant", [{"q": {"a"}, "none": set()}, {"q": {"a"}}])
def test_t9_3_a_query_without_relevant_documents_is_left_out(
    evaluation: Any, relevant: dict[str, set[str]]
) -> None:
    rankings = {"q": [("a", 1.0)], "none": [("a", 1.0)]}
    for name in ("map@k", "ndcg@k", "mrr@k", "accuracy@k", "recall@k"):
        differs(_scores(evaluation, relevant, rankings)[name], 1, ours=1 / 2)


def test_t9_5_the_scoring_counts_a_document_twice(evaluation: Any) -> None:
    values = _of(evaluation, "a", TWICE)
    same(values["map@k"], 1 / 2 + 2 / 3)
    same(values["ndcg@k"], dcg(0, 1, 1))
    same(values["recall@k"], 2)


def test_t9_6_ties_go_to_the_smaller_id(evaluation: Any) -> None:
    for order in ("ab", "ba"):
        tied = {"q": [(doc_id, 1.0) for doc_id in order]}
        same(_scores(evaluation, {"q": {"a"}}, tied)["mrr@k"], 1)
        same(_scores(evaluation, {"q": {"b"}}, tied)["mrr@k"], 1 / 2)


def test_t9_7_p_is_divided_by_k_and_the_ideal_is_not_shortened(evaluation: Any) -> None:
    values = _of(evaluation, "ab", SHORT.ranking)
    same(values["precision@k"], SHORT.ours["P@3"])
    same(values["ndcg@k"], SHORT.ours["nDCG@3"])


def test_t9_8_grades_are_not_read_so_grade_0_and_below_are_relevant(evaluation: Any) -> None:
    hits = {"q": [("a", 2.0), ("b", 1.0)]}
    for grade in (0, -1):
        value = _scores(evaluation, {"q": {"a": grade, "b": 1}}, hits)["mrr@k"]
        differs(value, 1, ours=1 / 2)


def test_t9_11_recall_is_hits_by_relevant_and_accuracy_is_the_hit_rate(evaluation: Any) -> None:
    values = _of(evaluation, "abcde", GAP.ranking)
    same(values["recall@k"], GAP.ours["R@3"])
    same(values["accuracy@k"], GAP.ours["Success@3"])


def test_t9_12_values_are_doubles_and_not_rounded(evaluation: Any) -> None:
    value = _of(evaluation, "abcde", GAP.ranking)["map@k"]
    assert isinstance(value, float)
    assert abs(value - 5 / 9) < 1e-15
