"""ranx: statements T3 of the guide's ``tools.md``. Its first call compiles for half a minute."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle.tools_cases import GAP, GRADED, HEAD, SHORT, TWICE, dcg, differs, same

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def ranx() -> Any:
    import ranx

    return ranx


def _mean(
    ranx: Any,
    name: str,
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
    **options: bool,
) -> Any:
    return ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), name, **options)


def test_t3_1_ap_is_divided_by_all_relevant_documents(ranx: Any) -> None:
    same(_mean(ranx, "map@3", GAP.qrels, GAP.run), GAP.ours["AP@3"])


def test_t3_2_ndcg_is_linear_and_ndcg_burges_exponential_with_our_ideal(ranx: Any) -> None:
    same(_mean(ranx, "ndcg@3", GRADED.qrels, GRADED.run), GRADED.ours["nDCG@3"])
    exponential = _mean(ranx, "ndcg_burges@3", GRADED.qrels, GRADED.run)
    same(exponential, GRADED.ours["nDCG(gain=exp)@3"])
    same(_mean(ranx, "ndcg@3", HEAD.qrels, HEAD.run), HEAD.ours["nDCG@3"])
    same(_mean(ranx, "ndcg", HEAD.qrels, HEAD.run), HEAD.ours["nDCG"])


def test_t3_3_a_query_without_relevant_documents_is_0_and_counted(ranx: Any) -> None:
    qrels = {"q": {"a": 1}, "none": {"a": 0}}
    same(_mean(ranx, "map", qrels, {"q": {"a": 1.0}, "none": {"a": 1.0}}), 1 / 2)


def test_t3_4_a_query_that_the_run_lacks_is_an_error_unless_0_is_asked_for(ranx: Any) -> None:
    qrels = {"q": {"a": 1}, "lacking": {"a": 1}}
    with pytest.raises(AssertionError, match="query ids do not match"):
        _mean(ranx, "map", qrels, {"q": {"a": 1.0}})
    same(_mean(ranx, "map", qrels, {"q": {"a": 1.0}}, make_comparable=True), 1 / 2)


def test_t3_5_of_a_document_twice_the_last_score_is_kept(ranx: Any, tmp_path: Path) -> None:
    for scores, rank in (([2.0, 3.0, 1.0], 2), ([2.0, 1.0, 3.0], 1)):
        run = ranx.Run()
        run.add("q", list(TWICE), scores)
        same(ranx.evaluate(ranx.Qrels({"q": {"a": 1}}), run, "map"), 1 / rank)
    path = tmp_path / "run.trec"
    path.write_text("q Q0 a 1 3 t\nq Q0 x 2 2 t\nq Q0 a 3 1 t\n", encoding="utf-8")
    run = ranx.Run.from_file(str(path), kind="trec")
    same(ranx.evaluate(ranx.Qrels({"q": {"a": 1}}), run, "map"), 1 / 2)


def test_t3_6_ties_depend_on_the_order_of_insertion_and_scores_stay_doubles(ranx: Any) -> None:
    values = [
        _mean(ranx, "mrr", {"q": {"a": 1}}, {"q": dict.fromkeys(order, 1.0)})
        for order in ("ab", "ba")
    ]
    assert values == [1, 1 / 2]
    nearly = {"q": {"a": 0.700000001, "b": 0.7}}
    differs(_mean(ranx, "mrr", {"q": {"b": 1}}, nearly), 1 / 2, ours=1)


def test_t3_7_p_is_divided_by_k_and_the_ideal_is_not_shortened(ranx: Any) -> None:
    same(_mean(ranx, "precision@3", SHORT.qrels, SHORT.run), SHORT.ours["P@3"])
    same(_mean(ranx, "ndcg@3", SHORT.qrels, SHORT.run), SHORT.ours["nDCG@3"])
    same(_mean(ranx, "f1@3", SHORT.qrels, SHORT.run), SHORT.ours["F1@3"])


def test_t3_8_a_negative_grade_gains_nothing_but_is_judged_for_bpref(ranx: Any) -> None:
    qrels, run = {"q": {"a": -1, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    same(_mean(ranx, "ndcg", qrels, run), dcg(0, 1))
    differs(_mean(ranx, "bpref", qrels, run), 0, ours=1)


def test_t3_9_an_unjudged_document_is_not_relevant_and_bpref_skips_it(ranx: Any) -> None:
    qrels, run = {"q": {"b": 1, "c": 0}}, {"q": {"x": 2.0, "b": 1.0}}
    same(_mean(ranx, "map", qrels, run), 1 / 2)
    same(_mean(ranx, "bpref", qrels, run), 1)


def test_t3_10_a_query_with_nothing_judged_is_0_and_counted(ranx: Any) -> None:
    run = {"q": {"a": 1.0}, "empty": {"a": 1.0}}
    differs(_mean(ranx, "map", {"q": {"a": 1}, "empty": {}}, run), 1 / 2, ours=1)


def test_t3_11_recall_is_hits_by_relevant_hit_rate_is_0_or_1_and_hits_is_a_count(ranx: Any) -> None:
    same(_mean(ranx, "recall@3", GAP.qrels, GAP.run), GAP.ours["R@3"])
    same(_mean(ranx, "hit_rate@3", GAP.qrels, GAP.run), GAP.ours["Success@3"])
    same(_mean(ranx, "hits@3", GAP.qrels, GAP.run), 2)


def test_t3_12_values_are_doubles_and_not_rounded(ranx: Any) -> None:
    value = _mean(ranx, "map@3", GAP.qrels, GAP.run)
    assert value.dtype == np.float64
    assert abs(value - 1 / 3) < 1e-15


def test_t3_13_graded_rbp_exceeds_1_and_bpref_can_be_no_number(ranx: Any) -> None:
    assert _mean(ranx, "rbp.80", GRADED.qrels, GRADED.run) > 1
    assert math.isnan(_mean(ranx, "bpref", {"q": {"b": 1}}, {"q": {"x": 2.0, "b": 1.0}}))
