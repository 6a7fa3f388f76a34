"""Answers that come sooner than anything can be looked up are told."""

from __future__ import annotations

import pytest

from retrieval_bench.experiment.warnings import remembered
from retrieval_bench.runs.timing_facts import LatencyFacts

CLOCK = "The p50 is below what the clock can tell (answers are remembered?)."


@pytest.mark.parametrize(
    ("ratio", "p50", "told"),
    [
        (1.0, 0.3, []),
        (None, None, []),
        (1.0, 0.0005, []),
        (1.0, 0.0004, [CLOCK]),
        (None, 0.0, [CLOCK]),
    ],
)
def test_a_p50_that_would_be_written_as_nothing(
    ratio: float | None, p50: float | None, told: list[str]
) -> None:
    facts = {"first_visit": {"ratio": ratio}, "p50": {"value": p50}}
    assert remembered(LatencyFacts.model_validate(facts)) == told


def test_a_first_call_that_took_far_longer() -> None:
    (text,) = remembered(LatencyFacts.model_validate({"first_visit": {"ratio": 40.0}}))
    assert text.startswith("The first call of a query took 40 times as long as later ones")
