"""A long level in parts: does memory grow, does latency drift, and what came of an outage?"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.measure.machine.kernel import as_int, read_table
from retrieval_bench.measure.machine.servers import server_use
from retrieval_bench.stats.percentiles import needs, quantiles
from retrieval_bench_load.engine.generator import LevelCalls
from retrieval_bench_load.engine.levels import Times
from retrieval_bench_load.engine.stalls import Outage, outages_of
from retrieval_bench_load.engine.tails import Floats

PARTS = 10
_EVERY_S = 1.0
_DRIFTS = 0.01
"""p of "p50 does not change from part to part", below which it is said to drift."""


def watch(stopped: threading.Event, server: int | None) -> list[list[float | None]]:
    """Read memory each second from now until ``stopped``, in a thread: a list that grows of
    seconds, bytes of this process that no file holds (its stamps are in files), and of ``server``;
    empty where the system tells nothing."""
    begin, readings = time.monotonic(), list[list[float | None]]()

    def read() -> None:
        while not stopped.wait(_EVERY_S):
            words = read_table(Path("/proc/self/status")).get("RssAnon", "").split()
            own = as_int(words[0]) if words else None
            there = None if server is None else server_use(server).memory_bytes
            if own is not None:
                readings.append([time.monotonic() - begin, 1024.0 * own, there])

    threading.Thread(target=read, daemon=True).start()
    return readings


@dataclass(frozen=True, slots=True)
class Part(Documented):
    """A tenth of a level.

    Attributes:
        until_s: its end, seconds from the begin of the window.
        calls: due in it.
        failed: of these, without an answer.
        p50_ms, p99_ms: of latency; None where it has too few calls, or they had no answer.
        memory_mb: at its end, of all processes of the generator, beside the stamps; None where it
            is not known.
        server_mb: likewise of the server that the config names.
    """

    until_s: float
    calls: int
    failed: int
    p50_ms: float | None
    p99_ms: float | None
    memory_mb: float | None
    server_mb: float | None


@dataclass(frozen=True, slots=True)
class Course(Documented):
    """A level over time.

    Attributes:
        parts: in their order.
        memory_mb_a_minute, server_mb_a_minute: slope of a line through all readings after the first
            part; None where there are too few.
        drift: p50 at the end over that at the begin, by a line through the parts, where it is shown
            to change; None where it is not.
        outages: 10 calls or more behind each other without an answer.
    """

    parts: tuple[Part, ...]
    memory_mb_a_minute: float | None
    server_mb_a_minute: float | None
    drift: float | None
    outages: tuple[Outage, ...]


def course_of(made: LevelCalls) -> Course:
    """How a level went."""
    times, begin, seconds = Times.of(made), made.begin, made.seconds
    due = made.calls.due[made.inside]
    part = np.minimum((due - begin) * PARTS // max(1, made.end - begin), PARTS - 1)
    before = made.level.warm_up_s + (made.level.pace.ramp_s if made.level.pace else 0.0)
    own, server = _readings(made, before)
    parts = []
    for number in range(PARTS):
        ms, lost = (of[part == number] for of in (times.latency, times.failed))
        until = seconds * (number + 1) / PARTS
        known = [_percentile(ms, p) for p in (50.0, 99.0)]
        memory = [_at(readings, until) for readings in (own, server)]
        parts.append(
            Part(until, len(ms), int(lost.sum()), known[0], known[1], memory[0], memory[1])
        )
    return Course(
        tuple(parts),
        _slope(own, seconds / PARTS),
        _slope(server, seconds / PARTS),
        _drift([one.p50_ms for one in parts]),
        tuple(outages_of(made)),
    )


def _readings(made: LevelCalls, before: float) -> tuple[Floats, Floats]:
    """(n, 2) of seconds of the window and MB: of all processes together, and of the server."""
    members = [one.memory for one in made.processes if one is not None and one.memory]
    n = min(map(len, members), default=0)
    if not n:
        return np.empty((0, 2)), np.empty((0, 2))
    whole = np.array([member[:n] for member in members], dtype=np.float64)
    at = whole[0, :, 0] - before
    own = np.column_stack([at, whole[:, :, 1].sum(axis=0) / 1e6])
    server = np.column_stack([at, whole[0, :, 2] / 1e6])
    return own, server[~np.isnan(server[:, 1])]


def _at(readings: Floats, until: float) -> float | None:
    earlier = readings[readings[:, 0] <= until]
    return float(earlier[-1, 1]) if len(earlier) else None


def _slope(readings: Floats, after: float) -> float | None:
    settled = readings[readings[:, 0] > after]
    if len(settled) < PARTS:
        return None
    return 60.0 * float(np.polyfit(settled[:, 0], settled[:, 1], 1)[0])


def _percentile(ms: Floats, level: float) -> float | None:
    if len(ms) < needs(level).printed:
        return None
    found = float(quantiles(ms, level / 100, observed=True))
    return found if np.isfinite(found) else None


def _drift(medians: Sequence[float | None]) -> float | None:
    from scipy.stats import linregress

    known = [(at, one) for at, one in enumerate(medians) if one]
    if len(known) < PARTS // 2:
        return None
    at, values = (np.array(of, dtype=np.float64) for of in zip(*known, strict=True))
    if np.ptp(values) == 0:
        return None
    line = linregress(at, np.log(values))
    return float(np.exp(line.slope * (PARTS - 1))) if line.pvalue < _DRIFTS else None
