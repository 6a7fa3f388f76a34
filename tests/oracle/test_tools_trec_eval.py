"""trec_eval through pytrec_eval-terrier: statements T1 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, GRADED, HEAD, SHORT, dcg, same

pytrec_eval: Any = Lazily("pytrec_eval")


def _per_query(
    qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]], *names: str
) -> dict[str, dict[str, float]]:
    result: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    return result


def _value(grades: Mapping[str, int], scores: Mapping[str, float], name: str) -> float:
    (values,) = _per_query({"q": grades}, {"q": scores}, name).values()
    return values[name]


def test_t1_1_ap_is_divided_by_all_relevant_documents() -> None:
    same(_value(GAP.grades, GAP.run["q"], "map_cut_3"), GAP.ours["AP@3"])


def test_t1_2_gain_is_linear_and_the_ideal_is_all_judged_documents_cut_at_k() -> None:
    same(_value(GRADED.grades, GRADED.run["q"], "ndcg_cut_3"), GRADED.ours["nDCG@3"])
    same(_value(HEAD.grades, HEAD.run["q"], "ndcg_cut_3"), HEAD.ours["nDCG@3"])
    same(_value(HEAD.grades, HEAD.run["q"], "ndcg"), HEAD.ours["nDCG"])


def test_t1_3_a_query_without_relevant_documents_is_0_and_counted() -> None:
    assert _per_query({"q": {"a": 0}}, {"q": {"a": 1.0}}, "map") == {"q": {"map": 0}}


def test_t1_4_a_query_that_the_run_lacks_is_left_out() -> None:
    qrels = {"q": {"a": 1}, "lacking": {"a": 1}}
    assert _per_query(qrels, {"q": {"a": 1.0}}, "map") == {"q": {"map": 1}}
    assert _per_query(qrels, {"q": {"a": 1.0}, "lacking": {}}, "map")["lacking"] == {"map": 0}


def test_t1_5_a_run_file_with_a_document_twice_is_refused() -> None:
    with pytest.raises(AssertionError):
        pytrec_eval.parse_run(["q Q0 a 1 2 tag", "q Q0 a 2 1 tag"])


@pytest.mark.parametrize("scores", [{"a": 0.7, "b": 0.7}, {"a": 0.700000001, "b": 0.7}])
def test_t1_6_ties_go_to_the_greater_id_and_scores_are_compared_in_single_precision(
    scores: dict[str, float],
) -> None:
    same(_value({"b": 1}, scores, "recip_rank"), 1)
    same(_value({"a": 1}, scores, "recip_rank"), 1 / 2)


def test_t1_7_p_is_divided_by_k_and_the_ideal_is_not_shortened() -> None:
    same(_value(SHORT.grades, SHORT.run["q"], "P_3"), SHORT.ours["P@3"])
    same(_value(SHORT.grades, SHORT.run["q"], "ndcg_cut_3"), SHORT.ours["nDCG@3"])


def test_t1_8_a_negative_grade_counts_as_not_judged() -> None:
    scores = {"a": 2.0, "b": 1.0}
    same(_value({"a": -1, "b": 1}, scores, "ndcg"), dcg(0, 1))
    same(_value({"a": -1, "b": 1}, scores, "bpref"), 1)
    same(_value({"a": 0, "b": 1}, scores, "bpref"), 0)


def test_t1_9_an_unjudged_document_is_not_relevant_and_bpref_skips_it() -> None:
    scores = {"x": 2.0, "b": 1.0}
    same(_value({"b": 1, "c": 0}, scores, "map"), 1 / 2)
    same(_value({"b": 1, "c": 0}, scores, "bpref"), 1)


def test_t1_10_a_query_with_nothing_judged_is_left_out() -> None:
    run = {"q": {"a": 1.0}, "empty": {"a": 1.0}, "unknown": {"a": 1.0}}
    assert set(_per_query({"q": {"a": 1}, "empty": {}}, run, "map")) == {"q"}


def test_t1_11_recall_is_hits_by_relevant_and_success_is_the_hit_rate() -> None:
    same(_value(GAP.grades, GAP.run["q"], "recall_3"), GAP.ours["R@3"])
    same(_value(GAP.grades, GAP.run["q"], "success_3"), GAP.ours["Success@3"])


def test_t1_12_values_are_doubles_and_not_rounded() -> None:
    value = _value(GAP.grades, GAP.run["q"], "map_cut_3")
    assert type(value) is float
    assert abs(value - 1 / 3) < 1e-15


def test_t1_13_a_score_that_is_not_a_number_passes() -> None:
    same(_value({"a": 1}, {"a": math.nan}, "map"), 1)
