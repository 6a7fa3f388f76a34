"""Delays that are known between two ends each, and shares of writes.

Writes that wait for the same refresh are no independent values. The interval of a percentile takes
equal parts of the round as what was repeated, and there is none where so few refreshes as explain
what was seen say too little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.stats.intervals import clopper_pearson
from retrieval_bench.stats.percentiles import CallSample, Clusters, percentile
from retrieval_bench_writes.study import Write

Times = Sequence[float] | NDArray[np.float64]

LEVELS = (50.0, 95.0, 99.0)

AGREE = 0.1
"""Two ends that differ by at most so much of the upper one are printed as one figure."""

_NEVER = 1e300
"""Stands for what was never seen: behind all ranks, and still a number, between which and a delay
the rule of percentiles can interpolate. Whatever is mixed with it is over the limit."""

PARTS = 10
"""Equal parts of a round."""

_BEYOND, FEWEST = 5, 30
"""Refreshes beyond a percentile, and in all, that its interval takes. From simulation
(test_delays.py): at least 90 % of the intervals that are printed cover the figure."""

_STEPS = 20
"""Points of the share that shows over time."""

_ONE_SIDED = 0.1
"""Both sides of the exact interval whose upper side holds with 95 %."""


@dataclass(frozen=True, slots=True)
class Delay(Documented):
    """A percentile of delays, in seconds.

    Attributes:
        percentile: 0 to 100.
        at_least_s: of the lower ends, the last polls without it; null with `reason`.
        at_least_ci95: its interval over parts of the round; null with `unsure`.
        at_most_s: of the upper ends, the first answers with it; null also where it is over the
            limit.
        at_most_ci95: its interval; an end that is null is over the limit.
        reason: why there is no figure; null where there is one.
        unsure: why there is no interval; null where there is one.
    """

    percentile: float
    at_least_s: float | None = None
    at_least_ci95: tuple[float, float] | None = None
    at_most_s: float | None = None
    at_most_ci95: tuple[float | None, float | None] | None = None
    reason: str | None = None
    unsure: str | None = None

    @classmethod
    def of(cls, at: Times, before: Times, after: Times, level: float) -> Self:
        """Take the percentile of lower and of upper ends of writes that were acknowledged ``at``;
        the ends of one that never showed are its last poll and infinity."""
        lows, since = np.array(before, dtype=float), np.array(at, dtype=float)
        highs = np.minimum(np.array(after, dtype=float), _NEVER)
        low, high = (percentile(ends, level, "write") for ends in (lows, highs))
        if low.reason or low.value is None or high.value is None:
            return cls(level, reason=low.reason)
        at_most, at_least = _known(high.value), low.value
        if at_most is None:  # it may lie between one that showed and one that did not
            at_least = float(np.sort(lows)[int(level / 100 * (len(lows) - 1))])
        fewest = max(FEWEST, math.ceil(_BEYOND / (1 - level / 100)))
        if (there := refreshes(since + lows, since + highs)) < fewest:
            seen = counted(there, "refresh time")
            why = f"{seen} seen, the interval of p{level:g} takes {fewest:,}"
            return cls(level, at_least, None, at_most, None, None, why)
        part = parts_of(since)
        parts = Clusters(part, PARTS, "parts of the round", repeated=False)
        query = np.zeros(len(since), dtype=np.int32)
        (least, most) = (
            CallSample(ends, query, parts).percentile(level).ci95 for ends in (lows, highs)
        )
        assert most is not None
        upper = (_known(most[0]), _known(most[1]))
        return cls(level, at_least, least, at_most, upper)

    @property
    def surely_after(self) -> float:
        """The interval of the lower end says that it is at least this; 0 without one."""
        return 0.0 if self.at_least_ci95 is None else self.at_least_ci95[0]

    @property
    def surely_by(self) -> float | None:
        """The interval of the upper end says that it is at most this; None = nothing does."""
        return None if self.at_most_ci95 is None else self.at_most_ci95[1]

    @property
    def agrees(self) -> bool:
        """True if both ends are one figure."""
        low, high = self.at_least_s, self.at_most_s
        return low is not None and high is not None and high - low <= AGREE * high


def parts_of(since: Any) -> Any:
    """The part of the round, 0 to 9, of each write, by when it was acknowledged."""
    length = np.ptp(since) or 1.0
    return np.minimum(PARTS * (since - since.min()) / length, PARTS - 1).astype(np.int64)


def refreshes(without: Any, within: Any) -> int:
    """The fewest moments of which each write saw one between its two ends: as few refreshes of the
    engine explain what was seen."""
    n, last = 0, -math.inf
    for at in np.argsort(within):
        if without[at] > last:
            n, last = n + 1, float(within[at])
    return n


def _known(value: float) -> float | None:
    return None if value > _NEVER * 1e-100 else value


@dataclass(frozen=True, slots=True)
class Share(Documented):
    """A share of writes.

    Attributes:
        n: of so many.
        count: so many.
        at_most: the share that it is at most, one-sided 95 %; null of none.
        ci95: its exact interval; null of none.
    """

    n: int
    count: int
    at_most: float | None
    ci95: tuple[float, float] | None

    @classmethod
    def of(cls, count: int, n: int) -> Self:
        """``count`` of ``n``."""
        if not n:
            return cls(n, count, None, None)
        return cls(
            n, count, clopper_pearson(count, n, alpha=_ONE_SIDED)[1], clopper_pearson(count, n)
        )


@dataclass(frozen=True, slots=True)
class Point(Documented):
    """A point of the share of writes that shows over time, in seconds.

    Attributes:
        share: of the writes.
        not_before_s: so many do not show before: the lower ends in their order.
        by_s: so many show by then: the upper ends in their order; null over the limit.
    """

    share: float
    not_before_s: float
    by_s: float | None


@dataclass(frozen=True, slots=True)
class Shown(Documented):
    """How writes of one kind showed.

    Attributes:
        n: acknowledged writes of which a poll was answered. One that was not decided, since the
            study was stopped or the last poll failed, stands in the last ranks.
        unacknowledged: writes that the engine did not acknowledge; they are in no figure.
        unanswered: acknowledged ones of which no poll was answered; likewise.
        never: those that did not show within the limit, of those that were decided.
        outdated: those of which an answer, asked after the acknowledgement, still held what was
            there before.
        back: those that showed, and did not in a later answer.
        percentiles: of the time until they showed.
        mean_s: of the middles between both ends; null where one never showed, or there is none.
        longest_s: the largest upper end; null likewise.
        course: the share that shows over time, in steps of a twentieth.
    """

    KEYS = "n unacknowledged unanswered never outdated back percentiles mean_s longest_s course!"

    n: int
    unacknowledged: int
    unanswered: int
    never: Share
    outdated: Share
    back: Share
    percentiles: tuple[Delay, ...]
    mean_s: float | None
    longest_s: float | None
    course: tuple[Point, ...] = ()

    @classmethod
    def of(cls, writes: Sequence[Write], leg: str | None = None) -> Self:
        """Sum up writes of one kind, as a leg showed them or all together."""
        polled = [
            (write, ends)
            for write in writes
            if write.polls and (ends := write if leg is None else write.legs.get(leg)) is not None
        ]
        every = [ends for _, ends in polled]
        at = [write.acknowledged_s or 0.0 for write, _ in polled]
        before, after = [ends.before for ends in every], [ends.after for ends in every]
        shown = sum(ends.shown for ends in every)
        decided = sum(write.decided or ends.shown for write, ends in polled)
        all_shown = shown == len(every) > 0
        return cls(
            len(every),
            sum(write.acknowledged_s is None for write in writes),
            sum(write.acknowledged_s is not None and not write.polls for write in writes),
            Share.of(decided - shown, decided),
            Share.of(sum(ends.outdated for ends in every), len(every)),
            Share.of(sum(ends.back for ends in every), shown),
            tuple(Delay.of(at, before, after, level) for level in LEVELS),
            float(np.mean([before, after])) if all_shown else None,
            max(after) if all_shown else None,
            _course(sorted(before), sorted(after)),
        )

    def at(self, level: float) -> Delay:
        """The percentile of this level."""
        return next(delay for delay in self.percentiles if delay.percentile == level)


def _course(before: Sequence[float], after: Sequence[float]) -> tuple[Point, ...]:
    n = len(before)
    at = sorted({math.ceil(step * n / _STEPS) - 1 for step in range(1, _STEPS + 1)} if n else ())
    return tuple(Point((i + 1) / n, before[i], _known(min(after[i], _NEVER))) for i in at)
