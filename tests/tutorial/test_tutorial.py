"""The tutorial's measurement, with a clock that is told what to say."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_tutorial.tutorial import tutorial_latency
from tests.builders.guide import guide_page


class Service:
    """Takes as many seconds as its queries say, on its own clock."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.asked: list[float] = []

    def search(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


def measured(seconds: Iterable[float], **options: Any) -> Any:
    service = Service()
    return tutorial_latency(service.search, list(seconds), clock=service.clock, **options)


def test_the_first_queries_are_asked_and_lost_unless_there_is_no_warm_up() -> None:
    service = Service()
    found = tutorial_latency(service.search, [9.0, 8.0, 0.25, 0.5, 0.75], clock=service.clock)
    assert service.asked == [9.0, 8.0, 0.25, 0.5, 0.75]
    assert (found.n, found.warmup) == (3, 2)
    assert (found.mean, found.p50) == (500.0, 500.0)
    assert found.p95 == pytest.approx(725.0)
    assert found.p99 == pytest.approx(745.0)
    assert (measured([0.5, 1.5], warmup=0).mean, measured([0.5, 1.5], warmup=0).n) == (1_000.0, 2)
    parameters = inspect.signature(tutorial_latency).parameters
    assert parameters["clock"].default is time.time
    assert parameters["warmup"].default == 2


def test_the_figures_are_numpy_s() -> None:
    seconds = np.random.default_rng(3).integers(1, 4_000, 1_002) / 1_024  # exact on the clock
    found = measured(seconds.tolist())
    ms = seconds[2:] * 1_000
    assert found.mean == ms.mean()
    assert [found.p50, found.p95, found.p99] == np.percentile(ms, [50, 95, 99]).tolist()
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("queries", "lost", "warning"),
    [
        ([], 0, "no queries; the zeros are no times"),
        ([1.0], 1, "no query is left to time: warming up took all 1; the zeros are no times"),
        ([1.0, 1.0], 2, "no query is left to time: warming up took all 2; the zeros are no times"),
    ],
)
def test_nothing_left_gives_zeros_as_in_the_tutorial_and_says_so(
    queries: list[float], lost: int, warning: str
) -> None:
    found = measured(queries)
    assert (found.mean, found.p50, found.p95, found.p99, found.n) == (0, 0, 0, 0, 0)
    assert found.warmup == lost
    assert found.warnings == (warning,)


def test_percentiles_of_too_few_calls_are_given_with_a_warning() -> None:
    assert measured([0.5] * 10).warnings == (
        "p50, p95, p99 of 8 calls: this takes at least 30, 200, 1,000 calls",
    )
    assert measured([0.5] * 999).warnings == ("p99 of 997 calls: this takes at least 1,000 calls",)


def test_a_wall_clock_that_is_set_back_leaves_negative_times_in_the_figures() -> None:
    found = measured([1.0] * 1_001 + [-60.0])
    assert found.mean < 1_000
    assert found.warnings == (
        "the wall clock was set back in 1 call: negative times are in the figures",
    )


def test_what_the_search_raises_ends_the_measurement() -> None:
    def fails(query: str) -> None:
        raise OSError(query)

    with pytest.raises(OSError, match="first"):
        tutorial_latency(fails, ["first", "second"])


@pytest.mark.parametrize("warmup", [-1, True, 1.5, None])
def test_a_warm_up_that_is_no_number_of_queries_is_refused(warmup: Any) -> None:
    with pytest.raises(ConfigError, match=r"protocol tutorial(.|\n)*at least 0"):
        measured([1.0], warmup=warmup)


def test_the_guide_shows_what_its_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = guide_page("tutorial-protocol.md")
    section = page.partition("\n## The faults, made visible\n")[2]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (output,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out == output
