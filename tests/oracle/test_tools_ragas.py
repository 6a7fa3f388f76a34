"""Ragas' metrics of retrieved contexts: statements T11 of ``harness/docs/understand/tools.md``."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import Any

import pytest

from tests.lazily import Lazily
from tests.oracle.tools_cases import GAP, SHORT, TWICE, differs, same

ragas: Any = Lazily("ragas", needs=("rapidfuzz", "ragas.metrics"))

pytestmark = [
    pytest.mark.needs("ragas", "rapidfuzz"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]


def _by_id(name: str, reference: Iterable[str], retrieved: Iterable[str]) -> float:
    sample = ragas.SingleTurnSample(
        reference_context_ids=list(reference), retrieved_context_ids=list(retrieved)
    )
    metric = getattr(ragas.metrics, f"IDBased{name}")()
    value: float = asyncio.run(metric.single_turn_ascore(sample))
    return value


def _context_precision(reference: Iterable[str], retrieved: Iterable[str]) -> float:
    """Documents as texts; which are relevant is decided by likeness, here equal or not at all."""
    sample = ragas.SingleTurnSample(
        reference_contexts=[letter * 9 for letter in reference],
        retrieved_contexts=[letter * 9 for letter in retrieved],
    )
    metric = ragas.metrics.NonLLMContextPrecisionWithReference()
    value: float = asyncio.run(metric.single_turn_ascore(sample))
    return value


def test_t11_1_context_precision_is_ap_divided_by_the_hits() -> None:
    value = _context_precision("abcde", GAP.ranking)
    differs(value, GAP.ours["AP(norm=hits)@3"], ours=GAP.ours["AP@3"])


def test_t11_3_without_relevant_documents_the_metrics_give_an_error_0_or_no_number() -> None:
    with pytest.raises(ValueError, match="empty"):
        _context_precision("", "a")
    same(_by_id("ContextPrecision", "", "a"), 0)
    assert math.isnan(_by_id("ContextRecall", "", "a"))


def test_t11_4_of_an_empty_result_precision_by_id_is_no_number_and_the_others_0() -> None:
    assert math.isnan(_by_id("ContextPrecision", "a", ""))
    same(_by_id("ContextRecall", "a", ""), 0)
    same(_context_precision("a", ""), 0)


def test_t11_5_a_document_twice_gains_twice_but_ids_are_compared_as_sets() -> None:
    same(_context_precision("a", TWICE), (1 / 2 + 2 / 3) / 2)
    same(_by_id("ContextPrecision", "a", TWICE), 1 / 2)
    same(_by_id("ContextRecall", "a", TWICE), 1)


def test_t11_7_p_is_divided_by_the_distinct_documents_returned() -> None:
    value = _by_id("ContextPrecision", "ab", SHORT.ranking)
    differs(value, 1, ours=SHORT.ours["P@3"])


def test_t11_11_recall_by_id_is_hits_by_relevant() -> None:
    same(_by_id("ContextRecall", "abcde", GAP.ranking), GAP.ours["R@3"])


def test_t11_12_a_perfect_context_precision_stays_just_below_1() -> None:
    assert 1 - 1e-9 < _context_precision("a", "a") < 1
