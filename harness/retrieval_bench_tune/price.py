"""What the winner of tuning takes beside the default: both timed, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from retrieval_bench.comparison.pairs.call_pairs import log_ratios, theta
from retrieval_bench.core.progress import Phase, Reporter, Step
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.measure import runner
from retrieval_bench.measure.calls import System
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.measure.threads import search_threads
from retrieval_bench_tune.grid import Setting
from retrieval_bench_tune.search import Tunable, ready

QUERIES, WARM_UP_S = 100, 3.0
"""One pass over so many at most, after a warm-up: enough to tell what is dear."""

_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Price:
    """Milliseconds of the median call.

    Attributes:
        default, tuned: of each.
        ratio: tuned over default, the typical query, side by side.
        n: calls of each.
    """

    default: float
    tuned: float
    ratio: float
    n: int


def price_of(
    tunable: Tunable,
    winner: Setting,
    data: Dataset,
    queries: Sequence[Query],
    *,
    k: int,
    reporter: Reporter,
) -> Price | None:
    """Time the default and the winner; None where that is the default, or lists were read from
    saved runs.

    Raises:
        HarnessError: one of them breaks its contract.
    """
    if winner.as_is or not winner.values or tunable.base.capabilities.replays:
        return None
    names = ("default", "tuned")
    with ExitStack() as stack:
        made = [
            stack.enter_context(ready(tunable, setting, data, k))
            for setting in (Setting(as_is=True), winner)
        ]
        config = tunable.config
        systems = [
            System(name, retriever, None, config.retry, config.rate_limit)
            for name, retriever in zip(names, made, strict=True)
        ]
        protocol = Protocol(rounds=1, warm_up_s=WARM_UP_S)
        stack.enter_context(search_threads(protocol.threads))
        task = stack.enter_context(reporter.phase(Phase(Step.SEARCHING, " and ".join(names))))
        measurements = runner.measure(systems, queries[:QUERIES], k, protocol, progress=task)
    default, tuned = (measurement.timings for measurement in measurements)
    pairs = log_ratios(default, tuned)
    if not len(pairs.query):
        return None
    return Price(
        float(np.median(default.wall_ns[~default.failed])) / _NS_PER_MS,
        float(np.median(tuned.wall_ns[~tuned.failed])) / _NS_PER_MS,
        math.exp(theta(pairs.log_ratio, pairs.query)),
        len(pairs.query),
    )
