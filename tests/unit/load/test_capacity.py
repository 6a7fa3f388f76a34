"""The bracket of the highest rate that keeps a limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.load.capacity import Capacity, Evidence, Limit, Search, Shown, shown
from retrieval_bench.load.levels import State, judged
from tests.benchmarks.load import searched
from tests.builders.queued import queue, served


def _evidence(above: int, calls: int = 100, state: State = State.MEASURED) -> Evidence:
    return Evidence(np.full(20, above), np.full(20, calls), state)


def test_a_limit_is_read_from_words() -> None:
    assert Limit.parse("p99<200ms") == Limit(99.0, 200.0)
    assert Limit.parse(" p99.9 <= 1.5 s ") == Limit(99.9, 1_500.0)
    for text in ("99<200ms", "p99<200", "p100<1s", "p99>1s", "p99<0ms"):
        with pytest.raises(ConfigError, match="--slo"):
            Limit.parse(text)


def test_what_levels_show_of_a_limit() -> None:
    limit = Limit(95.0, 10.0)
    assert shown([_evidence(1)], limit) is Shown.KEEPS
    assert shown([_evidence(9)], limit) is Shown.BREAKS
    assert shown([_evidence(5)], limit) is Shown.UNCLEAR
    assert shown([_evidence(0, state=State.OVERLOADED)], limit) is Shown.BREAKS
    assert shown([_evidence(9, state=State.NOT_MEASURED)], limit) is Shown.UNCLEAR
    assert shown([_evidence(0, calls=2)], Limit(99.0, 10.0)) is Shown.UNCLEAR, "too few calls"


@pytest.mark.parametrize("first", [20.0, 260.0, 2_000.0])
def test_the_bracket_holds_the_capacity_of_a_queue(first: float) -> None:
    found, capacity = searched(load=0.7, level=95.0, seed=3, first=first)
    assert found.keeps is not None
    assert found.breaks is not None
    assert found.keeps <= capacity <= found.breaks
    assert found.breaks / found.keeps < 1.6


def test_a_search_without_time_says_so() -> None:
    limit = Limit(95.0, 10.0)
    found = Search(limit, lambda rate, n: _evidence(0), more=lambda: False).run(10.0)
    assert found == Capacity(limit, None, None, 0, rough=True, reason=found.reason)
    assert "--max-minutes" in str(found.reason)


def test_rates_that_cannot_be_made_are_no_evidence() -> None:
    def measure(rate: float, _: int) -> Evidence:
        return _evidence(0, state=State.NOT_MEASURED if rate > 100 else State.MEASURED)

    found = Search(Limit(95.0, 10.0), measure).run(50.0)
    assert found.breaks is None
    assert "--processes" in str(found.reason)


def test_a_level_that_the_lag_decides_shows_nothing() -> None:
    made = queue(0.3, 30.0, 5)
    calls = made.calls
    late = np.where(calls.due % 10**9 < 10**8, calls.due // 10**9 * 10**9 + 10**8, calls.due)
    late_made = replace(made, calls=replace(served(late, calls.done - calls.sent), due=calls.due))
    limit = Limit(95.0, 12.0)
    result = judged(made, in_process=True)
    assert shown([Evidence.of(made, result, limit)], limit) is Shown.KEEPS
    assert Evidence.of(late_made, result, limit).state is State.NOT_MEASURED
