"""Haystack's document evaluators: statements T7 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, GRADED, HEAD, SHORT, TWICE, dcg, differs, same

haystack: Any = Lazily("haystack", needs=("haystack.components.evaluators",))

pytestmark = [pytest.mark.needs("haystack"), pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def _documents(contents: Iterable[str]) -> list[Any]:
    return [haystack.Document(content=content) for content in contents]


def _graded(grades: Mapping[str, float]) -> list[Any]:
    return [haystack.Document(content=c, score=float(g)) for c, g in grades.items()]


def _score(name: str, truth: Any, retrieved: str, *options: str) -> float:
    """Score of one query; ``truth`` is a string of documents or a list of them."""
    evaluator = getattr(haystack.components.evaluators, f"Document{name}Evaluator")(*options)
    truths = _documents(truth) if isinstance(truth, str) else truth
    value: float = evaluator.run([truths], [_documents(retrieved)])["score"]
    return value


def test_t7_1_ap_is_divided_by_all_relevant_documents() -> None:
    same(_score("MAP", "abcde", GAP.ranking), GAP.ours["AP@3"])


def test_t7_2_gain_is_the_score_of_the_truth_and_the_ideal_is_never_cut() -> None:
    value = _score("NDCG", _graded(GRADED.grades), "abc")
    expected = dcg(3, 2, 3) / dcg(3, 3, 2, 2, 1)
    differs(value, expected, ours=GRADED.ours["nDCG@3"])
    binary = _score("NDCG", "abcde", HEAD.ranking)
    differs(binary, HEAD.ours["nDCG"], ours=HEAD.ours["nDCG@3"])


@pytest.mark.parametrize("name", ["MAP", "NDCG", "MRR", "Recall"])
def test_t7_3_a_query_without_relevant_documents_is_0_and_counted(name: str) -> None:
    evaluator = getattr(haystack.components.evaluators, f"Document{name}Evaluator")()
    truth = [_documents("a"), []]
    same(evaluator.run(truth, [_documents("a")] * 2)["score"], 1 / 2)


@pytest.mark.parametrize("name", ["MAP", "NDCG", "MRR", "Recall"])
def test_t7_4_queries_are_paired_by_position_and_an_empty_result_is_0(name: str) -> None:
    evaluator = getattr(haystack.components.evaluators, f"Document{name}Evaluator")()
    truth = [_documents("a")] * 2
    same(evaluator.run(truth, [_documents("a"), []])["score"], 1 / 2)
    with pytest.raises(ValueError, match="length"):
        evaluator.run(truth, [_documents("a")])


def test_t7_5_a_document_twice_counts_once_at_its_first_rank() -> None:
    same(_score("MAP", "a", TWICE), 1 / 2)
    same(_score("NDCG", "a", TWICE), dcg(0, 1))
    same(_score("MRR", "a", TWICE), 1 / 2)
    same(_score("Recall", "a", TWICE, "multi_hit"), 1)


def test_t7_6_the_list_is_the_ranking_and_its_scores_are_ignored() -> None:
    rising = [haystack.Document(content=c, score=s) for c, s in (("x", 0.1), ("a", 0.9))]
    evaluator = haystack.components.evaluators.DocumentMRREvaluator()
    same(evaluator.run([_documents("a")], [rising])["score"], 1 / 2)


def test_t7_7_there_is_no_cut_and_the_ideal_is_not_shortened() -> None:
    same(_score("MAP", "ab", SHORT.ranking), SHORT.ours["AP"])
    same(_score("NDCG", "ab", SHORT.ranking), SHORT.ours["nDCG@3"])


def test_t7_8_a_negative_score_of_the_truth_is_a_negative_gain() -> None:
    value = _score("NDCG", _graded({"a": -1, "b": 1}), "ab")
    differs(value, dcg(-1, 1) / dcg(1, -1), ours=dcg(0, 1))


def test_t7_11_recall_is_the_hit_rate_unless_multi_hit_is_asked_for() -> None:
    value = _score("Recall", "abcde", GAP.ranking)
    differs(value, GAP.ours["Success@3"], ours=GAP.ours["R@3"])
    same(_score("Recall", "abcde", GAP.ranking, "multi_hit"), GAP.ours["R@3"])


def test_t7_12_values_are_doubles_and_not_rounded() -> None:
    value = _score("MAP", "abcde", GAP.ranking)
    assert type(value) is float
    assert abs(value - 1 / 3) < 1e-15


def test_t7_13_documents_are_equal_by_text_and_grade_0_is_relevant_but_for_ndcg() -> None:
    truth = [haystack.Document(id="1", content="same text")]
    found = [haystack.Document(id="2", content="same text")]
    by = haystack.components.evaluators.DocumentMRREvaluator
    same(by().run([truth], [found])["score"], 1)
    same(by(document_comparison_field="id").run([truth], [found])["score"], 0)
    differs(_score("MRR", _graded({"a": 0, "b": 1}), "ab"), 1, ours=1 / 2)
    differs(_score("MAP", _graded({"a": 0, "b": 1}), "ab"), 1, ours=1 / 2)
