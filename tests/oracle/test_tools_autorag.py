"""AutoRAG's retrieval metrics: statements T8 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, HEAD, SHORT, TWICE, dcg, differs, same

autorag: Any = Lazily("autorag.evaluation.metric.retrieval")

pytestmark = [pytest.mark.needs("autorag"), pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def _value(name: str, truth: Any, retrieved: Iterable[str] | None) -> Any:
    """One figure; ``truth`` is a list of groups of documents."""
    from autorag.schema import metricinput

    ids = None if retrieved is None else list(retrieved)
    given = metricinput.MetricInput(retrieval_gt=truth, retrieved_ids=ids)
    (value,) = getattr(autorag, f"retrieval_{name}")([given])
    return value


def test_t8_1_ap_is_divided_by_the_hits_of_a_group_and_averaged_over_groups() -> None:
    one_group = _value("map", [list("abcde")], GAP.ranking)
    differs(one_group, GAP.ours["AP(norm=hits)@3"], ours=GAP.ours["AP@3"])
    own_groups = _value("map", [[d] for d in "abcde"], GAP.ranking)
    differs(own_groups, (1 + 1 / 3) / 5, ours=GAP.ours["AP@3"])


def test_t8_2_relevance_is_binary_and_the_ideal_is_as_long_as_the_list() -> None:
    same(_value("ndcg", [list("abcde")], HEAD.ranking), HEAD.ours["nDCG@3"])
    short = _value("ndcg", [list("ab")], SHORT.ranking)
    differs(short, SHORT.ours["nDCG(ideal=returned)@3"], ours=SHORT.ours["nDCG@3"])
    same(_value("ndcg", [list("abcde")], GAP.ranking), GAP.ours["nDCG@3"])


_NOTHING: list[list[list[str]] | None] = [[], [[]], None]
NAMES = ["map", "ndcg", "mrr", "recall", "precision", "f1"]


@pytest.mark.parametrize("name", NAMES)
def test_t8_3_a_query_without_relevant_documents_has_no_value(name: str) -> None:
    for truth in _NOTHING:
        assert _value(name, truth, "a") is None


@pytest.mark.parametrize("name", NAMES)
def test_t8_4_a_query_with_an_empty_result_has_no_value(name: str) -> None:
    for retrieved in ("", None):
        assert _value(name, [["a"]], retrieved) is None


def test_t8_5_a_document_twice_gains_twice() -> None:
    same(_value("map", [["a"]], TWICE), (1 / 2 + 2 / 3) / 2)
    same(_value("ndcg", [["a"]], TWICE), dcg(0, 1, 1))
    same(_value("precision", [["a"]], TWICE), 1 / 3)
    same(_value("recall", [["a"]], TWICE), 1)


def test_t8_6_there_are_no_scores_the_list_is_the_ranking() -> None:
    same(_value("mrr", [["a"]], "ba"), 1 / 2)
    same(_value("mrr", [["a"]], "ab"), 1)


def test_t8_7_p_is_divided_by_the_documents_returned() -> None:
    value = _value("precision", [list("ab")], SHORT.ranking)
    differs(value, 1, ours=SHORT.ours["P@3"])


def test_t8_11_recall_is_the_share_of_groups_with_a_hit() -> None:
    same(_value("recall", [[d] for d in "abcde"], GAP.ranking), GAP.ours["R@3"])
    one_group = _value("recall", [list("abcde")], GAP.ranking)
    differs(one_group, GAP.ours["Success@3"], ours=GAP.ours["R@3"])


def test_t8_12_values_are_doubles_and_not_rounded() -> None:
    value = _value("map", [list("abcde")], GAP.ranking)
    assert type(value) is float
    assert abs(value - 5 / 6) < 1e-15


def test_t8_13_mrr_is_the_mean_over_groups() -> None:
    value = _value("mrr", [["a"], ["b"]], GAP.ranking)
    differs(value, (1 + 1 / 3) / 2, ours=1)
