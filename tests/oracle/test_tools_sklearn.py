"""scikit-learn's ranking metrics: statements T5 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, GRADED, HEAD, SHORT, dcg, differs, same

metrics: Any = Lazily("sklearn.metrics")


def test_t5_1_ap_is_divided_by_the_relevant_documents_of_the_array() -> None:
    value = metrics.average_precision_score(GAP.hits, [3, 2, 1])
    differs(value, GAP.ours["AP(norm=hits)@3"], ours=GAP.ours["AP@3"])


def test_t5_2_gain_is_linear_and_the_ideal_is_the_array_cut_at_k() -> None:
    graded = metrics.ndcg_score([list(GRADED.grades.values())], [[6, 5, 4, 3, 2, 1]], k=3)
    same(graded, GRADED.ours["nDCG@3"])
    returned = metrics.ndcg_score([GAP.hits], [[3, 2, 1]], k=3)
    differs(returned, GAP.ours["nDCG(ideal=returned)@3"], ours=GAP.ours["nDCG@3"])
    # with the documents that were not returned behind the others it is ours
    everything = metrics.ndcg_score([[*GAP.hits, 1, 1, 1]], [[6, 5, 4, 0, 0, 0]], k=3)
    same(everything, GAP.ours["nDCG@3"])
    same(metrics.ndcg_score([[1, 1, 1, 1, 1]], [[5, 4, 3, 0, 0]], k=3), HEAD.ours["nDCG@3"])


def test_t5_3_a_query_without_relevant_documents_is_0_1_or_0_with_a_warning() -> None:
    same(metrics.ndcg_score([[1, 0], [0, 0]], [[2, 1], [2, 1]]), 1 / 2)
    one = metrics.label_ranking_average_precision_score([[0, 0]], [[2, 1]])
    differs(one, 1, ours=0)
    with pytest.warns(UserWarning, match="No positive class"):
        same(metrics.average_precision_score([0, 0], [2, 1]), 0)


def test_t5_6_ties_are_averaged_or_go_to_the_last_column() -> None:
    for hits, last in (([1, 0], 1 / np.log2(3)), ([0, 1], 1)):
        same(metrics.ndcg_score([hits], [[1, 1]]), dcg(1 / 2, 1 / 2))
        same(metrics.ndcg_score([hits], [[1, 1]], ignore_ties=True), last)
        same(metrics.average_precision_score(hits, [1, 1]), 1 / 2)


def test_t5_7_what_was_not_returned_still_gains_at_the_ranks_behind_the_list() -> None:
    value = metrics.ndcg_score([[1, 1]], [[1, 0]], k=3)
    differs(value, 1, ours=SHORT.ours["nDCG@3"])


def test_t5_8_a_negative_grade_is_an_error_in_ndcg() -> None:
    with pytest.raises(ValueError, match="negative"):
        metrics.ndcg_score([[-1, 1]], [[2, 1]])


def test_t5_9_an_unjudged_document_must_be_given_as_0() -> None:
    with pytest.raises(ValueError, match="NaN"):
        metrics.ndcg_score([[np.nan, 1]], [[2, 1]])
    same(metrics.ndcg_score([[0, 1]], [[2, 1]]), dcg(0, 1))


def test_t5_12_values_are_doubles_and_not_rounded() -> None:
    value = metrics.ndcg_score([list(GRADED.grades.values())], [[6, 5, 4, 3, 2, 1]], k=3)
    assert isinstance(value, float)
    assert abs(value - GRADED.ours["nDCG@3"]) < 1e-15


def test_t5_13_a_list_of_one_document_is_an_error() -> None:
    with pytest.raises(ValueError, match="more than 1 document"):
        metrics.ndcg_score([[1]], [[1]])
