"""BEIR: statements T4 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, GRADED, HEAD, SHORT, dcg, differs, same

evaluation: Any = Lazily("beir.retrieval.evaluation")

pytestmark = [pytest.mark.needs("beir"), pytest.mark.slow]


def _value(
    name: str, qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]]
) -> float:
    """One figure of ``evaluate`` or of ``evaluate_custom``, such as MAP@3 or MRR@3."""
    metric, _, k = name.partition("@")
    evaluator = evaluation.EvaluateRetrieval
    if metric in ("NDCG", "MAP", "Recall", "P"):
        tables = evaluator.evaluate(qrels, run, [int(k)])
        found: float = {key: value for table in tables for key, value in table.items()}[name]
    else:
        found = evaluator.evaluate_custom(qrels, run, [int(k)], metric)[name]
    return found


def test_t4_1_ap_is_divided_by_all_relevant_documents() -> None:
    same(_value("MAP@3", GAP.qrels, GAP.run), GAP.ours["AP@3"], within=1e-5)


def test_t4_2_gain_is_linear_and_the_ideal_is_all_judged_documents_cut_at_k() -> None:
    same(_value("NDCG@3", GRADED.qrels, GRADED.run), GRADED.ours["nDCG@3"], within=1e-5)
    same(_value("NDCG@3", HEAD.qrels, HEAD.run), HEAD.ours["nDCG@3"])


def test_t4_3_a_query_without_relevant_documents_is_0_and_counted_but_ends_r_cap() -> None:
    qrels, run = {"q": {"a": 1}, "none": {"a": 0}}, {"q": {"a": 1.0}, "none": {"a": 1.0}}
    for name in ("NDCG@1", "MAP@1", "Recall@1", "P@1", "MRR@1", "Accuracy@1"):
        same(_value(name, qrels, run), 1 / 2)
    with pytest.raises(ZeroDivisionError):
        _value("R_cap@1", qrels, run)


def test_t4_4_a_query_that_the_run_lacks_is_dropped_from_ndcg_but_0_in_mrr() -> None:
    qrels, run = {"q": {"a": 1}, "lacking": {"a": 1}}, {"q": {"a": 1.0}}
    for name in ("NDCG@1", "MAP@1", "Recall@1", "P@1"):
        differs(_value(name, qrels, run), 1, ours=1 / 2)
    for name in ("MRR@1", "R_cap@1", "Accuracy@1"):
        same(_value(name, qrels, run), 1 / 2)


def test_t4_6_ties_go_to_the_greater_id_in_ndcg_and_by_insertion_in_mrr() -> None:
    qrels = {"q": {"a": 1}}
    for order, rank in (("ab", 1), ("ba", 2)):
        run = {"q": dict.fromkeys(order, 1.0)}
        same(_value("NDCG@2", qrels, run), dcg(0, 1), within=1e-5)
        same(_value("MRR@2", qrels, run), 1 / rank)


def test_t4_7_p_is_divided_by_k_and_the_ideal_is_not_shortened() -> None:
    same(_value("P@3", SHORT.qrels, SHORT.run), SHORT.ours["P@3"], within=1e-5)
    same(_value("NDCG@3", SHORT.qrels, SHORT.run), SHORT.ours["nDCG@3"], within=1e-5)


def test_t4_8_a_negative_grade_gains_nothing() -> None:
    qrels, run = {"q": {"a": -1, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    same(_value("NDCG@2", qrels, run), dcg(0, 1), within=1e-5)
    same(_value("MRR@2", qrels, run), 1 / 2)


def test_t4_9_hole_counts_only_what_no_query_has_judged_and_divides_by_k() -> None:
    qrels, run = {"q": {"a": 1}, "other": {"b": 1}}, {"q": {"b": 2.0, "x": 1.0}, "other": {}}
    # ours: of the two hits of q none is judged for q
    differs(_value("Hole@4", qrels, run), (1 / 4 + 0) / 2, ours=1 / 2)


def test_t4_10_a_query_with_nothing_judged_is_dropped_from_ndcg_but_0_in_mrr() -> None:
    qrels, run = {"q": {"a": 1}, "empty": {}}, {"q": {"a": 1.0}, "empty": {"a": 1.0}}
    same(_value("NDCG@1", qrels, run), 1)
    differs(_value("MRR@1", qrels, run), 1 / 2, ours=1)
    with pytest.raises(ZeroDivisionError):
        _value("NDCG@1", {"empty": {}}, {"empty": {"a": 1.0}})
    with pytest.raises(KeyError):
        _value("MRR@1", {"q": {"a": 1}}, {"unknown": {"a": 1.0}})


def test_t4_11_recall_is_hits_by_relevant_r_cap_by_at_most_k_accuracy_is_the_hit_rate() -> None:
    same(_value("Recall@3", GAP.qrels, GAP.run), GAP.ours["R@3"])
    differs(_value("R_cap@3", GAP.qrels, GAP.run), 2 / 3, ours=GAP.ours["R@3"], within=1e-5)
    same(_value("Accuracy@3", GAP.qrels, GAP.run), GAP.ours["Success@3"])


def test_t4_12_means_are_rounded_to_five_decimals() -> None:
    assert _value("MAP@3", GAP.qrels, GAP.run) == 0.33333


def test_t4_13_a_document_named_like_the_query_is_taken_out_of_the_callers_run() -> None:
    run = {"1": {"1": 2.0, "a": 1.0}}
    differs(_value("MAP@2", {"1": {"a": 1}}, run), 1, ours=1 / 2)
    assert run == {"1": {"a": 1.0}}
