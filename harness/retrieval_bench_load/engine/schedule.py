"""When calls are due, and what each asks: fixed before the first of them is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError, DataError

MOST_CALLS = 5_000_000
"""Of one level: their stamps are files, and a rate is easily a thousand times too high."""

POISSON, CONSTANT = "poisson", "constant"
_NS = 1e9


@dataclass(frozen=True, slots=True)
class Pace:
    """How calls follow each other.

    Attributes:
        rate: calls a second; None where ``recorded`` says when they are due, or where clients call
            one after the other.
        arrivals: "poisson" (independent callers) or "constant".
        ramp_s: seconds in which the rate rises to ``rate`` in a line, before the warm-up.
        recorded: seconds of recorded arrivals, rising, from 0.
    """

    rate: float | None = None
    arrivals: str = POISSON
    ramp_s: float = 0.0
    recorded: tuple[float, ...] = ()

    @property
    def busiest(self) -> float:
        """Calls a second, of recorded times those of the second with the most."""
        if not self.recorded:
            return self.rate or 0.0
        times = np.asarray(self.recorded)
        return float(np.max(np.searchsorted(times, times + 1.0) - np.arange(len(times))))


def due_ns(
    pace: Pace, seconds: float, seed: int, *, share: int = 1, number: int = 0
) -> NDArray[np.int64]:
    """Nanoseconds after the start at which calls are due, rising, all below ``seconds``.

    Args:
        seconds: from the end of the ramp on.
        share: of so many processes; each has its own seed, and all together are one Poisson stream
            of the whole rate; recorded times and constant gaps are dealt out in turn.
        number: which of them, from 0.

    Raises:
        ConfigError: more than :data:`MOST_CALLS`.
    """
    rng = np.random.default_rng(seed)
    if pace.recorded:
        recorded = np.asarray(pace.recorded)[number::share]
        return np.asarray(recorded[recorded < seconds] * _NS, dtype=np.int64)
    rate, total = (pace.rate or 0.0) / share, expected(pace, seconds, share)
    if pace.arrivals == CONSTANT:
        steps = np.arange(math.ceil(total), dtype=np.float64) + number / share
    else:
        steps = np.empty(0)
        while not len(steps) or steps[-1] < total:
            more = rng.exponential(size=int(total / 4) + 64)
            steps = np.concatenate([steps, (steps[-1] if len(steps) else 0.0) + np.cumsum(more)])
    at = _at_rate(steps[steps < total], rate, pace.ramp_s)
    return np.asarray(at * _NS, dtype=np.int64)


def expected(pace: Pace, seconds: float, share: int) -> float:
    """How many calls each of ``share`` processes is to make at a rate; 0 of recorded times.

    Raises:
        ConfigError: more than :data:`MOST_CALLS`.
    """
    total = (pace.rate or 0.0) / share * (seconds + pace.ramp_s / 2)
    if total > MOST_CALLS:
        raise ConfigError(
            f"{total:,.0f} calls at {pace.rate:,g} a second for {seconds:g} s",
            accepted=f"up to {MOST_CALLS:,}",
            fix="lower the rate, or shorten --duration",
        )
    return total


def _at_rate(expected: NDArray[np.float64], rate: float, ramp_s: float) -> NDArray[np.float64]:
    """The seconds by which so many calls are expected: the cumulative rate, inverted."""
    in_ramp = rate * ramp_s / 2
    rising = np.sqrt(2 * np.minimum(expected, in_ramp) * ramp_s / rate) if ramp_s else 0.0
    return np.where(expected < in_ramp, rising, ramp_s + (expected - in_ramp) / rate)


def visits(n_calls: int, n_queries: int, seed: int) -> NDArray[np.int64]:
    """The query of each call: all of them in one fresh seeded order after the other."""
    rng = np.random.default_rng([seed, n_queries])
    rounds = [rng.permutation(n_queries) for _ in range(-(-n_calls // n_queries))]
    return np.concatenate([np.empty(0, dtype=np.int64), *rounds])[:n_calls].astype(np.int64)


_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Times since 1970 by their size: from which on they are in nanoseconds, micro-, milliseconds."""


def read_recorded(path: Path) -> tuple[float, ...]:
    """Recorded times, as seconds after the first: one a line, in any order, behind a header or not;
    seconds, times since 1970 in seconds or parts of them, or ISO 8601.

    Raises:
        DataError: no file, or a line that is no time.
    """
    try:
        lines = [
            line for text in path.read_text("utf-8-sig").splitlines() if (line := text.strip())
        ]
        times = np.sort(_times(lines[1:] if lines[1:] and _is_header(lines[0]) else lines))
    except (OSError, ValueError) as problem:
        raise DataError(
            f"recorded times: {problem}",
            where=str(path),
            accepted="a text file with a time on each line: seconds, milliseconds since 1970, or "
            "2024-02-29T12:00:00.5",
            fix="correct the file given with --replay",
        ) from None
    if not len(times) or len(times) > MOST_CALLS or not np.isfinite(times).all():
        raise DataError(
            f"{len(times):,} recorded times",
            where=str(path),
            accepted=f"1 to {MOST_CALLS:,} finite numbers",
            fix="correct the file given with --replay",
        )
    scale = next((scale for least, scale in _UNITS if times[-1] >= least), 1.0)
    return tuple(((times - times[0]) * scale).tolist())


def _is_header(line: str) -> bool:
    try:
        _times([line])
    except ValueError:
        return True
    return False


def _times(lines: Sequence[str]) -> NDArray[np.float64]:
    """Numbers as they are, else the seconds of dates.

    Raises:
        ValueError: a line is neither.
    """
    try:
        return np.array([float(line) for line in lines])
    except ValueError:
        return np.array([datetime.fromisoformat(line).timestamp() for line in lines])


def length_s(recorded: Sequence[float]) -> float:
    """Seconds that recorded times are a sample of: to the last one, and one mean gap more."""
    n = len(recorded)
    return recorded[-1] * n / (n - 1) if n > 1 and recorded[-1] > 0 else 1.0
