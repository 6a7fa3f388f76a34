"""What levels at a rate show of a limit: it is kept, it is broken, or neither is shown."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_load.engine.generator import LevelCalls
from retrieval_bench_load.engine.levels import LevelResult, State, Times
from retrieval_bench_load.engine.tails import BLOCKS, Floats

_ALPHA = 0.05

_MERGED = 2
"""Parts of a level that count as one: what comes again each second or two is in each."""


@dataclass(frozen=True, slots=True)
class Limit(Documented):
    """A percentile that must stay below so many milliseconds.

    Attributes:
        level: 0 to 100.
        ms: that calls of this share are answered in.
    """

    level: float
    ms: float

    def __str__(self) -> str:
        return f"p{self.level:g} below {self.ms:g} ms"

    @classmethod
    def parse(cls, text: str) -> Limit:
        """``p99<200ms``, with ``s`` or ``ms``.

        Raises:
            ConfigError: it says something else.
        """
        found = re.fullmatch(r"\s*p(\d+(?:\.\d+)?)\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s)\s*", text)
        level, value = (float(found[1]), float(found[2])) if found else (0.0, 0.0)
        if found is None or not 0 < level < 100 or not value > 0:
            raise ConfigError(
                f"limit {text!r}",
                where="--slo",
                accepted="a percentile and a time, such as 'p99<200ms' or 'p95<1s'",
                fix="correct --slo, in quotes",
            )
        return cls(level, value * (1e3 if found[3] == "s" else 1.0))


class Shown(StrEnum):
    """Evidence of the levels at one rate on the limit."""

    KEEPS = "keeps"
    BREAKS = "breaks"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A level beside the limit.

    Attributes:
        above: calls beyond the limit, in each part of the window; those without an answer are.
        calls: in each part.
        state: of the level.
        bounded: it was not measured since the generator has no more slots: it ends there.
    """

    above: NDArray[np.int64]
    calls: NDArray[np.int64]
    state: State = State.MEASURED
    bounded: bool = False

    @classmethod
    def of(cls, made: LevelCalls, result: LevelResult, limit: Limit) -> Evidence:
        """What a level was; nothing where the generator's own lag decides what it shows."""
        times = Times.of(made)
        calls = np.bincount(times.block, minlength=BLOCKS)
        one, without = (
            cls(
                np.bincount(times.block[times.failed | (ms > limit.ms)], minlength=BLOCKS),
                calls,
                result.state,
            )
            for ms in (times.latency, times.latency - times.lag)
        )
        if shown([one], limit) is not shown([without], limit):
            return replace(one, state=State.NOT_MEASURED)
        return replace(one, bounded=result.slots_needed > 0)


def shown(evidence: Sequence[Evidence], limit: Limit, *, leans: bool = False) -> Shown:
    """What all levels at a rate show together: the share of calls beyond the limit against the
    share that may be, by a one-sided test over the parts of their windows, of 95 % and of more
    with each level.

    Args:
        leans: say what is likelier, where nothing is shown.

    A level that was overloaded breaks every limit; one that was not measured shows nothing.
    """
    from scipy.special import stdtrit

    if any(one.state is State.OVERLOADED for one in evidence):
        return Shown.BREAKS
    usable = [one for one in evidence if one.state is State.MEASURED]
    if not usable:
        return Shown.UNCLEAR
    above, calls = (
        np.concatenate([getattr(one, name).reshape(-1, _MERGED).sum(axis=1) for one in usable])
        for name in ("above", "calls")
    )
    n, may = float(calls.sum()), 1 - limit.level / 100
    share = float(above.sum()) / n
    parts = len(calls)
    excess: Floats = above - share * calls
    error = math.sqrt(float(excess @ excess) * parts / (parts - 1)) / n
    # Parts that agree by chance know the share no better than as many independent calls would.
    error = max(error, math.sqrt(may * (1 - may) / n))
    # Where few calls are beyond the limit, parts differ by less than they do at the limit.
    error *= math.sqrt(max(1.0, may / max(share, may / 4)))
    # A rate that is asked again until something is shown has as many chances to show it wrongly.
    reach = float(stdtrit(parts - 1, 1 - _ALPHA / len(usable))) * error
    reach = 0.0 if leans else reach
    if share + reach < may:
        return Shown.KEEPS
    return Shown.BREAKS if share - reach > may else Shown.UNCLEAR
