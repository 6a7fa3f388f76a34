"""TorchMetrics' retrieval metrics: statements T10 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, GRADED, SHORT, dcg, differs, same

retrieval: Any = Lazily("torchmetrics.retrieval")
functional: Any = Lazily("torchmetrics.functional.retrieval")
torch: Any = Lazily("torch")

pytestmark = [
    pytest.mark.needs("torch", "torchmetrics"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]
SINGLE = 1e-6
"""Values come in single precision."""


def _value(name: str, scores: Sequence[float], grades: Sequence[int], **options: Any) -> Any:
    metric = getattr(functional, f"retrieval_{name}")
    return metric(torch.tensor(scores, dtype=torch.float64), torch.tensor(grades), **options)


def _map(grades: Sequence[int], queries: Sequence[int], **options: str) -> float:
    """MAP over hits that all have score 1."""
    metric = retrieval.RetrievalMAP(**options)
    value = metric(torch.ones(len(grades)), torch.tensor(grades), indexes=torch.tensor(queries))
    return float(value)


def test_t10_1_ap_is_divided_by_the_hits_in_the_top_k() -> None:
    everything = [*GAP.hits, 1, 1, 1]
    value = _value("average_precision", [6, 5, 4, 3, 2, 1], everything, top_k=3)
    differs(value, GAP.ours["AP(norm=hits)@3"], ours=GAP.ours["AP@3"], within=SINGLE)


def test_t10_2_gain_is_linear_and_the_ideal_is_the_array_cut_at_k() -> None:
    grades = list(GRADED.grades.values())
    graded = _value("normalized_dcg", [6, 5, 4, 3, 2, 1], grades, top_k=3)
    same(graded, GRADED.ours["nDCG@3"], within=SINGLE)
    returned = _value("normalized_dcg", [3, 2, 1], GAP.hits, top_k=3)
    expected = GAP.ours["nDCG(ideal=returned)@3"]
    differs(returned, expected, ours=GAP.ours["nDCG@3"], within=SINGLE)


def test_t10_3_a_query_without_relevant_documents_is_0_1_skipped_or_an_error() -> None:
    same(_map([1, 0], [0, 1]), 1 / 2)
    same(_map([1, 0], [0, 1], empty_target_action="pos"), 1)
    same(_map([1, 0, 0], [0, 1, 2], empty_target_action="skip"), 1)
    with pytest.raises(ValueError, match="no positive target"):
        _map([1, 0], [0, 1], empty_target_action="error")


def test_t10_4_a_query_that_the_run_lacks_is_not_counted() -> None:
    same(_map([1, 1], [0, 7]), 1)


def test_t10_6_ties_are_averaged_in_ndcg_only() -> None:
    for hits in ([1, 0], [0, 1]):
        value = _value("normalized_dcg", [1, 1], hits)
        same(value, dcg(1 / 2, 1 / 2), within=SINGLE)
    first, second = (_value("reciprocal_rank", [1, 1], hits) for hits in ([1, 0], [0, 1]))
    same(first + second, 3 / 2, within=SINGLE)


def test_t10_7_p_is_divided_by_k_unless_adaptive_and_the_ideal_is_the_array() -> None:
    value = _value("precision", [1], [1], top_k=3)
    same(value, SHORT.ours["P@3"], within=SINGLE)
    same(_value("precision", [1], [1], top_k=3, adaptive_k=True), 1)
    short = _value("normalized_dcg", [1], [1], top_k=3)
    differs(short, 1, ours=SHORT.ours["nDCG@3"], within=SINGLE)


def test_t10_8_a_negative_grade_is_a_negative_gain_and_an_error_elsewhere() -> None:
    value = _value("normalized_dcg", [2, 1], [-1, 1])
    differs(value, dcg(-1, 1) / dcg(1, -1), ours=dcg(0, 1), within=SINGLE)
    for grades in ([-1, 1], [2, 1]):
        for name in ("average_precision", "reciprocal_rank", "precision", "recall", "hit_rate"):
            with pytest.raises(ValueError, match="binary"):
                _value(name, [2, 1], grades)


def test_t10_11_recall_divides_by_the_relevant_documents_of_the_array() -> None:
    everything = [*GAP.hits, 1, 1, 1]
    value = _value("recall", [6, 5, 4, 3, 2, 1], everything, top_k=3)
    same(value, GAP.ours["R@3"], within=SINGLE)
    returned = _value("recall", [3, 2, 1], GAP.hits, top_k=3)
    differs(returned, 1, ours=GAP.ours["R@3"], within=SINGLE)
    same(_value("hit_rate", [3, 2, 1], GAP.hits, top_k=3), GAP.ours["Success@3"])


def test_t10_12_values_are_in_single_precision() -> None:
    value = _value("average_precision", [3, 2, 1], GAP.hits)
    assert value.dtype == torch.float32
    assert float(value) != 5 / 6


def test_t10_13_a_score_of_0_or_less_is_no_hit_but_in_ndcg_and_hit_rate() -> None:
    for name in ("average_precision", "reciprocal_rank", "precision", "recall"):
        differs(_value(name, [0, -1], [1, 0], top_k=1), 0, ours=1)
    for name in ("normalized_dcg", "hit_rate"):
        same(_value(name, [0, -1], [1, 0], top_k=1), 1)
