"""Delays that are known between two ends each, and shares of writes, with exact intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.stats.intervals import clopper_pearson
from retrieval_bench.stats.percentiles import percentile
from retrieval_bench_writes.study import Write

LEVELS = (50.0, 95.0, 99.0)

AGREE = 0.1
"""Two ends that differ by at most so much of the upper one are printed as one figure."""

_NEVER = 1e300
"""Stands for what was never seen: behind all ranks, and still a number, between which and a delay
the rule of percentiles can interpolate. Whatever is mixed with it is over the limit."""

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
        at_least_ci95: its exact interval by ranks.
        at_most_s: of the upper ends, the first answers with it; null also where it is over the
            limit.
        at_most_ci95: its exact interval by ranks; an end that is null is over the limit.
        reason: why there is no figure; null where there is one.
    """

    percentile: float
    at_least_s: float | None = None
    at_least_ci95: tuple[float, float] | None = None
    at_most_s: float | None = None
    at_most_ci95: tuple[float | None, float | None] | None = None
    reason: str | None = None

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float], level: float) -> Self:
        """Take the percentile of lower and of upper ends; those of a write that never showed are
        its last poll and infinity."""
        low = percentile(np.array(before, dtype=float), level, "write")
        ends = np.minimum(np.array(after, dtype=float), _NEVER)
        high = percentile(ends, level, "write")
        if low.reason or low.ci95 is None or high.ci95 is None or high.value is None:
            return cls(level, reason=low.reason)
        upper = (_known(high.ci95[0]), _known(high.ci95[1]))
        return cls(level, low.value, low.ci95, _known(high.value), upper)

    @property
    def surely_after(self) -> float:
        """The exact interval of the lower end says that it is at least this; 0 without one."""
        return 0.0 if self.at_least_ci95 is None else self.at_least_ci95[0]

    @property
    def surely_by(self) -> float | None:
        """The exact interval of the upper end says that it is at most this; None = nothing does."""
        return None if self.at_most_ci95 is None else self.at_most_ci95[1]

    @property
    def agrees(self) -> bool:
        """True if both ends are one figure."""
        low, high = self.at_least_s, self.at_most_s
        return low is not None and high is not None and high - low <= AGREE * high


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
        n: acknowledged writes that were polled until it was decided.
        unacknowledged: writes that the engine did not acknowledge; they are in no figure.
        never: those that did not show within the limit.
        outdated: those of which an answer, asked after the acknowledgement, still held what was
            there before.
        percentiles: of the time until they showed.
        mean_s: of the middles between both ends; null where one never showed, or there is none.
        longest_s: the largest upper end; null likewise.
        course: the share that shows over time, in steps of a twentieth.
    """

    KEYS = "n unacknowledged never outdated percentiles mean_s longest_s course!"

    n: int
    unacknowledged: int
    never: Share
    outdated: Share
    percentiles: tuple[Delay, ...]
    mean_s: float | None
    longest_s: float | None
    course: tuple[Point, ...] = ()

    @classmethod
    def of(cls, writes: Sequence[Write], leg: str | None = None) -> Self:
        """Sum up writes of one kind, as a leg showed them or all together; one that no poll was
        answered for, or that was not decided when the study was stopped, is not known, and does not
        count as never."""
        decided = [write for write in writes if write.polls and write.decided]
        polled = decided if leg is None else [w.legs[leg] for w in decided if leg in w.legs]
        before = [write.before for write in polled]
        after = [write.after for write in polled]
        all_shown = bool(polled) and all(map(math.isfinite, after))
        return cls(
            len(polled),
            sum(write.acknowledged_s is None for write in writes),
            Share.of(sum(not write.shown for write in polled), len(polled)),
            Share.of(sum(write.outdated for write in polled), len(polled)),
            tuple(Delay.of(before, after, level) for level in LEVELS),
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
