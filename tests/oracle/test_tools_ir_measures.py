"""ir-measures: statements T2 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, GRADED, HEAD, SHORT, dcg, differs, same

ir_measures: Any = Lazily("ir_measures")


def _mean(name: str, qrels: Any, run: Any) -> float:
    measure = ir_measures.parse_measure(name)
    value: float = ir_measures.calc_aggregate([measure], qrels, run)[measure]
    return value


def test_t2_1_ap_is_divided_by_all_relevant_documents() -> None:
    same(_mean("AP@3", GAP.qrels, GAP.run), GAP.ours["AP@3"])


def test_t2_2_gain_is_linear_unless_mapped_and_the_ideal_is_all_judged_cut_at_k() -> None:
    same(_mean("nDCG@3", GRADED.qrels, GRADED.run), GRADED.ours["nDCG@3"])
    mapped = "nDCG(gains={2:3,3:7})@3"
    same(_mean(mapped, GRADED.qrels, GRADED.run), GRADED.ours["nDCG(gain=exp)@3"])
    same(_mean("nDCG@3", HEAD.qrels, HEAD.run), HEAD.ours["nDCG@3"])
    same(_mean("nDCG", HEAD.qrels, HEAD.run), HEAD.ours["nDCG"])


@pytest.mark.parametrize("name", ["AP", "nDCG@3", "RR", "RR@3"])
def test_t2_3_a_query_without_relevant_documents_is_0_and_counted(name: str) -> None:
    qrels = {"q": {"a": 1}, "none": {"a": 0}}
    same(_mean(name, qrels, {"q": {"a": 1.0}, "none": {"a": 1.0}}), 1 / 2)


@pytest.mark.parametrize("name", ["AP", "nDCG@3", "RR", "RR@3", "P@1"])
def test_t2_4_a_query_that_the_run_lacks_is_0_and_counted(name: str) -> None:
    same(_mean(name, {"q": {"a": 1}, "lacking": {"a": 1}}, {"q": {"a": 1.0}}), 1 / 2)


@pytest.mark.parametrize(("scores", "rank"), [([3.0, 1.0], 2), ([1.0, 3.0], 1)])
def test_t2_5_of_a_document_twice_the_last_score_is_kept(scores: list[float], rank: int) -> None:
    hits = [ir_measures.ScoredDoc("q", "a", score) for score in scores]
    hits.insert(1, ir_measures.ScoredDoc("q", "x", 2.0))
    for name in ("AP", "RR@3"):
        same(_mean(name, [ir_measures.Qrel("q", "a", 1)], hits), 1 / rank)


def test_t2_6_rr_and_rr_at_k_break_ties_in_opposite_directions() -> None:
    tied = {"q": {"a": 1.0, "b": 1.0}}
    same(_mean("RR", {"q": {"b": 1}}, tied), 1)
    same(_mean("RR@3", {"q": {"b": 1}}, tied), 1 / 2)
    same(_mean("RR", {"q": {"a": 1}}, tied), 1 / 2)
    same(_mean("RR@3", {"q": {"a": 1}}, tied), 1)


def test_t2_7_p_is_divided_by_k_and_the_ideal_is_not_shortened() -> None:
    same(_mean("P@3", SHORT.qrels, SHORT.run), SHORT.ours["P@3"])
    same(_mean("nDCG@3", SHORT.qrels, SHORT.run), SHORT.ours["nDCG@3"])


def test_t2_8_a_negative_grade_counts_as_not_judged_but_not_in_judged_at_k() -> None:
    qrels, run = {"q": {"a": -1, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    same(_mean("nDCG", qrels, run), dcg(0, 1))
    same(_mean("Bpref", qrels, run), 1)
    same(_mean("Judged@2", qrels, run), 1)


def test_t2_9_judged_at_k_divides_by_the_hits_there_are_and_fails_on_an_empty_list() -> None:
    same(_mean("Judged@3", SHORT.qrels, SHORT.run), SHORT.ours["Judged@3"])
    same(_mean("Judged@3", GAP.qrels, GAP.run), 2 / 3)
    with pytest.raises(ZeroDivisionError):
        _mean("Judged@3", SHORT.qrels, {"q": {}})


def test_t2_10_a_query_with_nothing_judged_is_0_and_counted_but_dropped_from_rr_at_k_alone() -> (
    None
):
    qrels, run = {"q": {"a": 1}, "empty": {}}, {"q": {"a": 1.0}, "empty": {"a": 1.0}}
    for name in ("AP", "nDCG@3", "RR", "P@1"):
        differs(_mean(name, qrels, run), 1 / 2, ours=1)
    same(_mean("RR@3", qrels, run), 1)
    names = [ir_measures.parse_measure(name) for name in ("RR@3", "AP")]
    together = ir_measures.calc_aggregate(names, qrels, run)
    differs(together[names[0]], 1 / 2, ours=1)


def test_t2_11_recall_is_hits_by_relevant_and_success_is_the_hit_rate() -> None:
    same(_mean("R@3", GAP.qrels, GAP.run), GAP.ours["R@3"])
    same(_mean("Success@3", GAP.qrels, GAP.run), GAP.ours["Success@3"])


def test_t2_12_values_are_doubles_except_those_that_a_perl_script_rounds() -> None:
    assert abs(_mean("AP@3", GAP.qrels, GAP.run) - 1 / 3) < 1e-15
    if shutil.which("perl") is None:
        pytest.skip("perl is missing, which ir-measures calls for nDCG(dcg='exp-log2') and ERR")
    numeric = {"1": GRADED.qrels["q"]}, {"1": GRADED.run["q"]}
    value = _mean("nDCG(dcg='exp-log2')@3", *numeric)
    assert value == round(GRADED.ours["nDCG(gain=exp)@3"], 5)


def test_t2_13_a_path_object_is_read_as_no_judgements(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("q 0 a 1\n", encoding="utf-8")
    assert list(ir_measures.read_trec_qrels(path)) == []
    assert len(list(ir_measures.read_trec_qrels(str(path)))) == 1
