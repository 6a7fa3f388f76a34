"""Scripted retrievers through the whole chain, mock clock, runner and report: what is reported is
the truth, exactly or within the interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from retrieval_bench.core.types import Query
from retrieval_bench.measure.calls import Measurement, System
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.measure.runner import measure
from retrieval_bench.runs.latency import latency_report
from retrieval_bench.runs.timing_facts import LatencyFacts
from tests.builders import some
from tests.builders.timed import Timed

MS = 1_000_000
QUERIES = tuple(Query(f"q{i}", "text") for i in range(250))


def measured(
    cost: Callable[[int, Query], float], rounds: int = 20
) -> tuple[Measurement, LatencyFacts]:
    retriever = Timed(cost)
    protocol = Protocol(rounds=rounds)
    (found,) = measure([System("s", retriever)], QUERIES, 1, protocol, clock=retriever.clock)
    report = latency_report(found.timings)
    return found, report


def within(report: LatencyFacts, level: int, truth: float) -> bool:
    found = report.at(f"p{level}")
    return some(found.ci95)[0] <= truth <= some(found.ci95)[1]


@pytest.mark.slow
def test_two_kinds_of_queries_are_two_humps() -> None:
    rng = np.random.default_rng(1)
    noise = rng.lognormal(0, 0.05, 20_000)
    _, report = measured(lambda n, query: MS * (2 if int(query.id[1:]) % 5 else 20) * noise[n])
    assert within(report, 50, float(np.exp(np.log(2) + 0.05 * 0.3186)))  # 5/8 of the lower hump
    assert within(report, 95, float(np.exp(np.log(20) + 0.05 * 0.6745)))  # 3/4 of the upper
    slow = [found.value for found in report.mix.levels.values()]
    assert slow[0] == pytest.approx(2, rel=0.05)
    assert slow[1] == pytest.approx(20, rel=0.05)


def test_slow_first_calls_are_warmed_up_and_told_apart() -> None:
    found, report = measured(lambda n, query: 20 * MS if n < len(QUERIES) else MS)
    assert found.steady_after is not None
    assert report.max == 1.0
    assert (report.first_visit.ratio, report.first_visit.n) == (20.0, len(QUERIES))


def test_times_that_fall_at_a_constant_rate_are_not_steady() -> None:
    found, _ = measured(lambda n, query: 20 * MS * float(np.exp(-n / 2_000)), rounds=1)
    assert found.steady_after is None
