"""The records of a measurement: who is measured, every call, and what was seen."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.calls.failures import Retry
from retrieval_bench.core.calls.usage import Price
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Ranking, Usage
from retrieval_bench.measure.attempts import Attempts

Clock = Callable[[], int]
"""Nanoseconds of a monotonic clock."""

OK = "ok"
NOT_RUN = "not run"


@dataclass(slots=True)
class System:
    """One retriever in a measurement.

    Attributes:
        known_ids: None where the corpus is not known.
        retry: which failed calls are made again.
        rate_limit: calls a second, at most; None = no limit.
        server: number of the process that answers, whose cost is a figure; None = not known.
        price: of what it uses up, where it does not say itself.
    """

    name: str
    retriever: Retriever
    known_ids: Container[str] | None = None
    retry: Retry = field(default_factory=Retry)
    rate_limit: float | None = None
    server: int | None = None
    price: Price | None = None


@dataclass(slots=True)
class Timings:
    """Every measured call, in the order made. Arrays of one length.

    Attributes:
        wall_ns: int64 nanoseconds.
        round: of its launch, from 0.
        position: place in its round, from 0.
        query: number of the query, from 0.
        failed: True where the call raised or took too long.
        stages: stage -> int64 nanoseconds, -1 where the call did not report it.
        launch: the process that made the call, from 0; without it there was one.
        first_ns: int64 (launches, queries), the first call of each query, which the warm-up made;
            -1 where it made none.
        usage: stage -> float64 (calls, 4), what each call used up by :data:`.FIELDS`; NaN where it
            did not say.
    """

    wall_ns: NDArray[np.int64]
    round: NDArray[np.int32]
    position: NDArray[np.int32]
    query: NDArray[np.int32]
    failed: NDArray[np.bool_]
    stages: dict[str, NDArray[np.int64]]
    launch: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    first_ns: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    usage: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.launch) != len(self.wall_ns):
            self.launch = np.zeros(len(self.wall_ns), dtype=np.int32)


@dataclass(slots=True)
class Measurement:
    """Record of one retriever's calls.

    Attributes:
        rankings: one for each query, None where it failed or was not reached.
        status: one for each query: "ok", "not run", or why it failed.
        timings: all measured calls, failed ones included.
        warm_up_calls: calls before the measured ones.
        steady_after: calls of the warm-up until times had stopped changing, None where they had
            not when it ended.
        unstable: queries whose later calls returned another ranking than the first.
        interrupted: the user stopped the run.
        overhead_ns: what the same measurement says of a retriever that does nothing (median).
        noise: what else went on meanwhile, see :mod:`retrieval_bench.measure.machine.noise`.
        attempts: what failed calls cost whoever makes them again.
        spent: what all calls used up, those of the warm-up included; None where none told.
    """

    rankings: list[Ranking | None]
    status: list[str]
    timings: Timings
    warm_up_calls: int
    unstable: int
    interrupted: bool
    overhead_ns: int
    steady_after: int | None = None
    noise: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    attempts: Attempts | None = None
    spent: Usage | None = None
