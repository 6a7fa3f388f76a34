"""The highest rate that keeps a limit, as a bracket: one rate that is shown to keep it, and one
that is shown to break it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.load.generator import Made
from retrieval_bench.load.levels import LevelResult, State, Times
from retrieval_bench.load.tails import BLOCKS, Floats

_ALPHA = 0.05
_STEP = 1.5
"""From one rate to the next, until one keeps the limit and one breaks it."""

_NARROW = 1.1
"""Ratio of the ends at which the search ends."""

_MOST_LEVELS = 40

_FEWEST = 2.7
"""Calls beyond the limit that may be expected of a level, below which it cannot show anything: the
square of Student's t."""


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
    """What levels at one rate show of the limit."""

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
    """

    above: NDArray[np.int64]
    calls: NDArray[np.int64]
    state: State = State.MEASURED

    @classmethod
    def of(cls, made: Made, result: LevelResult, limit: Limit) -> Evidence:
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
        return one


def shown(evidence: Sequence[Evidence], limit: Limit) -> Shown:
    """What all levels at a rate show together: the share of calls beyond the limit against the
    share that may be, by a one-sided test of 95 % over the parts of their windows.

    A level that was overloaded breaks every limit; one that was not measured shows nothing.
    """
    from scipy.special import stdtrit

    if any(one.state is State.OVERLOADED for one in evidence):
        return Shown.BREAKS
    usable = [one for one in evidence if one.state is State.MEASURED]
    if not usable:
        return Shown.UNCLEAR
    above = np.concatenate([one.above for one in usable]).astype(np.float64)
    calls = np.concatenate([one.calls for one in usable]).astype(np.float64)
    n, may = float(calls.sum()), 1 - limit.level / 100
    share = float(above.sum()) / n
    parts = len(calls)
    excess: Floats = above - share * calls
    error = math.sqrt(float(excess @ excess) * parts / (parts - 1)) / n
    # Parts that agree by chance know the share no better than as many independent calls would.
    error = max(error, math.sqrt(may * (1 - may) / n))
    reach = float(stdtrit(parts - 1, 1 - _ALPHA)) * error
    if share + reach < may:
        return Shown.KEEPS
    return Shown.BREAKS if share - reach > may else Shown.UNCLEAR


@dataclass(frozen=True, slots=True)
class Capacity(Documented):
    """The highest rate that keeps a limit.

    Attributes:
        limit: what must be kept.
        keeps: the highest rate that was shown to keep it, twice; None where none was.
        breaks: the lowest rate above it that was shown to break it, twice; None where none was.
        levels: how many were made.
        rough: the time was up before the ends were near each other.
        reason: why an end is missing; None where none is.
    """

    limit: Limit
    keeps: float | None
    breaks: float | None
    levels: int
    rough: bool
    reason: str | None = None


@dataclass(slots=True)
class Search:
    """Looks for the bracket: steps to the first failure, then halves what is between on the
    logarithm, then asks again at both ends.

    Args:
        measure: a level at a rate, with the number of this level, which gives its seed.
        more: whether there is time for another level.
    """

    limit: Limit
    measure: Callable[[float, int], Evidence]
    more: Callable[[], bool] = lambda: True
    seen: dict[float, list[Evidence]] = field(default_factory=dict)

    def run(self, first: float) -> Capacity:
        """Look for it from a first guess of the rate."""
        self._steps(first)
        while self._open() and (rate := self._between()) is not None:
            self._ask(rate)
        self._confirm()
        return self.found(whole=self._open())

    def found(self, *, whole: bool) -> Capacity:
        """The bracket by the levels so far.

        Args:
            whole: the search came to its end; else what was shown once is better than nothing.
        """
        keeps, breaks = self._ends(twice=True)
        early = not whole and self._open()
        if not whole:
            once = self._ends()
            keeps, breaks = keeps or once[0], breaks or once[1]
        near = keeps is not None and breaks is not None and breaks <= _NARROW**2.5 * keeps
        reason = None
        if any(all(one.state is State.NOT_MEASURED for one in them) for them in self.seen.values()):
            reason = (
                "the generator could not make some rates: --processes shares the load where cores "
                "are free, --on where other machines are"
            )
        elif keeps is None or breaks is None:
            reason = "too little time (--max-minutes), or too few calls in a level (--duration)"
        if early:
            reason = f"the search was ended after {counted(self.levels, 'level')}"
        return Capacity(self.limit, keeps, breaks, self.levels, early or not near, reason)

    @property
    def levels(self) -> int:
        """How many were made."""
        return sum(map(len, self.seen.values()))

    def _open(self) -> bool:
        return self.levels < _MOST_LEVELS and self.more()

    def _ask(self, rate: float) -> Shown:
        for _ in range(2):  # a level that was not measured is made once again
            one = self.measure(rate, self.levels + 1)
            self.seen.setdefault(rate, []).append(one)
            if one.state is not State.NOT_MEASURED:
                break
        return self._shown(rate)

    def _shown(self, rate: float) -> Shown:
        return shown(self.seen[rate], self.limit)

    def _steps(self, rate: float) -> None:
        """Up while the limit is kept, and down until it is."""
        down = rate
        while self._open() and self._ask(rate) is not Shown.BREAKS:
            rate *= _STEP
        while self._open() and self._ends()[0] is None and self._enough(down):
            down /= _STEP
            self._ask(down)

    def _enough(self, rate: float) -> bool:
        """Whether a level at this rate had calls enough to show that the limit is kept."""
        may = 1 - self.limit.level / 100
        return max(int(one.calls.sum()) for one in self.seen[rate]) * may >= _FEWEST

    def _ends(self, *, twice: bool = False) -> tuple[float | None, float | None]:
        """The highest rate that keeps the limit with none below it that breaks it, and the lowest
        that breaks it above; ``twice``: shown by two levels at least."""
        rates = sorted(
            rate for rate, them in self.seen.items() if not twice or len(_usable(them)) > 1
        )
        broken = [rate for rate in rates if self._shown(rate) is Shown.BREAKS]
        kept = [rate for rate in rates if self._shown(rate) is Shown.KEEPS]
        keeps = max((one for one in kept if not broken or one < broken[0]), default=None)
        return keeps, min((one for one in broken if keeps is None or one > keeps), default=None)

    def _between(self) -> float | None:
        """The next rate to ask at: in the middle of the widest gap between the ends and what is
        unclear; None where all are narrow."""
        keeps, breaks = self._ends()
        if keeps is None or breaks is None:
            return None
        inside = sorted(rate for rate in self.seen if keeps < rate < breaks)
        places = [keeps, *inside, breaks]
        # Only next to an end: between two unclear rates nothing can be shown either.
        gaps = {(places[0], places[1]), (places[-2], places[-1])}
        low, high = max(gaps, key=lambda gap: gap[1] / gap[0])
        return math.sqrt(low * high) if high / low > _NARROW else None

    def _confirm(self) -> None:
        """Ask again at both ends, with new seeds; an end that does not hold gives way."""
        for end in (0, 1):
            for _ in range(4):
                rate = self._ends()[end]
                if rate is None or len(_usable(self.seen[rate])) > 1 or not self._open():
                    break
                self._ask(rate)


def _usable(evidence: Sequence[Evidence]) -> list[Evidence]:
    return [one for one in evidence if one.state is not State.NOT_MEASURED]
