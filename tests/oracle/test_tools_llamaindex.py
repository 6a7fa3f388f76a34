"""LlamaIndex's retrieval metrics: statements T6 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, HEAD, SHORT, TWICE, dcg, differs, same

metrics: Any = Lazily("llama_index.core.evaluation.retrieval.metrics")

pytestmark = [pytest.mark.needs("llama_index"), pytest.mark.slow]

_NAMES = ["HitRate", "MRR", "Precision", "Recall", "AveragePrecision", "NDCG"]


def _score(metric: Any, expected: str, retrieved: str) -> float:
    result = metric.compute(expected_ids=list(expected), retrieved_ids=list(retrieved))
    value: float = result.score
    return value


def test_t6_1_ap_is_divided_by_all_expected_documents() -> None:
    same(_score(metrics.AveragePrecision(), "abcde", GAP.ranking), GAP.ours["AP@3"])


@pytest.mark.parametrize("mode", ["linear", "exponential"])
def test_t6_2_relevance_is_binary_and_the_ideal_is_all_expected_and_never_cut(mode: str) -> None:
    value = _score(metrics.NDCG(mode=mode), "abcde", HEAD.ranking)
    differs(value, HEAD.ours["nDCG"], ours=HEAD.ours["nDCG@3"])


@pytest.mark.parametrize("name", _NAMES)
def test_t6_3_a_query_without_relevant_documents_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="must be provided"):
        _score(getattr(metrics, name)(), "", "a")


@pytest.mark.parametrize("name", _NAMES)
def test_t6_4_an_empty_result_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="must be provided"):
        _score(getattr(metrics, name)(), "a", "")


def test_t6_5_a_document_twice_gains_twice_in_ap_and_ndcg() -> None:
    same(_score(metrics.AveragePrecision(), "a", TWICE), 1 / 2 + 2 / 3)
    same(_score(metrics.NDCG(), "a", TWICE), dcg(0, 1, 1))
    same(_score(metrics.NDCG(), "a", "aa"), dcg(1, 1))
    same(_score(metrics.Precision(), "a", TWICE), 1 / 2)
    same(_score(metrics.Recall(), "a", TWICE), 1)


def test_t6_6_there_are_no_scores_the_list_is_the_ranking() -> None:
    same(_score(metrics.MRR(), "a", "ba"), 1 / 2)
    same(_score(metrics.MRR(), "a", "ab"), 1)


def test_t6_7_p_is_divided_by_the_distinct_documents_returned() -> None:
    differs(_score(metrics.Precision(), "ab", SHORT.ranking), 1, ours=SHORT.ours["P@3"])
    same(_score(metrics.NDCG(), "ab", SHORT.ranking), SHORT.ours["nDCG@3"])


def test_t6_11_hit_rate_is_0_or_1_and_granular_hit_rate_counts_occurrences() -> None:
    same(_score(metrics.HitRate(), "abcde", GAP.ranking), GAP.ours["Success@3"])
    same(_score(metrics.Recall(), "abcde", GAP.ranking), GAP.ours["R@3"])
    granular = metrics.HitRate(use_granular_hit_rate=True)
    same(_score(granular, "abcde", GAP.ranking), GAP.ours["R@3"])
    same(_score(granular, "a", "aa"), 2)


def test_t6_12_values_are_doubles_and_not_rounded() -> None:
    value = _score(metrics.AveragePrecision(), "abcde", GAP.ranking)
    assert type(value) is float
    assert abs(value - 1 / 3) < 1e-15


def test_t6_13_granular_mrr_is_the_mean_over_the_hits_and_repeats_lengthen_the_ideal() -> None:
    granular = metrics.MRR(use_granular_mrr=True)
    differs(_score(granular, "abcde", GAP.ranking), (1 + 1 / 3) / 2, ours=1)
    differs(_score(metrics.NDCG(), "aa", "a"), 1 / dcg(1, 1), ours=1)
