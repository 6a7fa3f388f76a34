"""The bracket of the highest rate that keeps a limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_load.engine.bracket import Capacity, Search
from retrieval_bench_load.engine.capacity import Evidence, Limit, Shown, shown
from retrieval_bench_load.engine.levels import State, judged
from tests.benchmarks.load import KINDS, searched
from tests.builders.queued import SERVICE_S, queue, served, sojourn_ms


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


@pytest.mark.slow
@pytest.mark.parametrize("first", [20.0, 90.0, 500.0])
def test_the_bracket_holds_the_capacity_of_a_queue(first: float) -> None:
    """200 of them in ``tests/benchmarks/load.py``."""
    found = searched(*KINDS["one worker"], seed=3, first=first)
    assert found.keeps is not None
    assert found.breaks is not None
    assert found.keeps <= 123.2 <= found.breaks
    assert found.breaks / found.keeps < 1.6


def test_the_true_rate_of_the_study_is_that_of_theory() -> None:
    service, limit = KINDS["one worker"]
    ours = sojourn_ms(123.2 * service.takes_s, limit.level, constant=True)
    assert ours * service.takes_s / SERVICE_S == pytest.approx(limit.ms, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "lost"), [(88.0, 0.0), (300.0, 0.0), (30.0, 0.4)])
def test_a_search_over_a_service_that_stands_still_ends_with_a_bracket(
    first: float, lost: float
) -> None:
    """L3: 19 levels, down to 5.2 calls a second, and no rate was shown."""
    found = searched(*KINDS["stall"], seed=1, first=first, lost=lost)
    assert found.keeps is not None
    assert found.breaks is not None
    assert 20.0 < found.keeps < found.breaks < 200.0


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [350.0, 80.0])
def test_endless_capacity_has_the_end_of_the_generator(seconds: float) -> None:
    """L5: 256 slots of 400 ms were called the capacity of the service; with 90 s nothing was."""
    found = searched(*KINDS["endless"], seed=1, seconds=seconds)
    assert found.keeps is not None
    assert found.breaks is None
    if seconds > 100.0:
        assert found.keeps < (found.generator_ends or 0.0) < 660.0


def _found(measure: Callable[[float], Evidence], levels: int = 40, first: float = 50.0) -> Search:
    search = Search(Limit(95.0, 10.0), first, 1.0)
    while (rate := search.next(levels - search.levels)) is not None:
        search.add(rate, measure(rate))
    return search


def test_a_search_without_time_says_so() -> None:
    found = _found(lambda rate: _evidence(0), levels=0).found()
    assert found == Capacity(found.limit, None, None, 0, rough=True, reason=found.reason)
    assert "--max-minutes" in str(found.reason)


def test_a_search_of_which_nothing_was_measured_says_so() -> None:
    found = _found(lambda rate: _evidence(0, state=State.NOT_MEASURED)).found()
    assert found.levels == found.not_measured > 0
    assert str(found.reason).startswith("no level at a rate was measured")


@pytest.mark.parametrize("levels", [1, 2, 3, 40])
def test_what_was_shown_once_is_rough_when_time_is_up(levels: int) -> None:
    """L5, with less time: "no rate was shown", beside six levels that keep the limit."""
    found = _found(lambda rate: _evidence(0 if rate < 100 else 20), levels).found()
    assert found.keeps is not None
    assert found.rough is (levels < 40)


def test_rates_that_cannot_be_made_are_the_end_of_the_generator() -> None:
    def measure(rate: float) -> Evidence:
        return _evidence(0, state=State.NOT_MEASURED if rate > 100 else State.MEASURED)

    found = _found(measure).found()
    assert found.breaks is None
    assert found.generator_ends is not None
    assert 90 < found.keeps <= 100 < found.generator_ends  # type: ignore[operator]
    assert "--processes" in str(found.reason)
    bounded = _found(lambda rate: replace(measure(rate), bounded=rate > 100))
    assert max(map(len, bounded.seen.values())) <= 2, "a bound on slots is certain"


def test_an_unclear_rate_is_asked_again_and_never_left_far_downwards() -> None:
    """L3: an unclear rate was left downwards, to where no percentile can be shown."""
    search = _found(lambda rate: _evidence(0 if rate < 45 else 5 if rate < 70 else 9))
    assert len(search.seen[50.0]) >= 2
    assert min(search.seen) >= 50.0 / 1.6
    assert 40.0 <= (search.found().keeps or 0.0) < 45.0


def test_a_level_that_the_lag_decides_shows_nothing() -> None:
    made = queue(0.3, 30.0, 5)
    calls = made.calls
    late = np.where(calls.due % 10**9 < 10**8, calls.due // 10**9 * 10**9 + 10**8, calls.due)
    late_made = replace(made, calls=replace(served(late, calls.done - calls.sent), due=calls.due))
    limit = Limit(95.0, 12.0)
    result = judged(made, in_process=True)
    assert shown([Evidence.of(made, result, limit)], limit) is Shown.KEEPS
    assert Evidence.of(late_made, result, limit).state is State.NOT_MEASURED
