"""Means of bounded values, looked at after every value: statements that hold at all looks together.

Against each mean that is in question two gamblers start with a capital of 1: one bets that the true
mean is above it, one that it is below. If it is the true mean, neither is ever worth ``2 / alpha``
but with chance ``alpha / 2``, however often one looks and whenever one stops. So a mean that either
has won so much against is ruled out for good, and those that are left are an interval. Each gambler
spreads the capital over fixed shares of what may be lost at once (:data:`BETS`), so that nothing
has to be known or estimated of the spread. What a gambler owns against a mean falls, or rises, with
that mean: what is left has no holes, and its ends can be searched for.

Values drawn without replacement are bet on against the mean of what is left, and when all were
drawn, the mean is known.

Values may also be drawn with unequal chances (:class:`Draw`): a value divided by its chance has, at
every draw, the sum of all that is left as its mean, so that bets on it are bets on that sum. Where
chances are in proportion to what a value can be at most, such a quotient has the narrowest range.

Sources: Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting,
JRSS B 86: hedged capital, its proposition 4 for draws without replacement, a mixture of bets;
Shekhar, Xu, Lipton, Liang & Ramdas (2023), Risk-limiting financial audits via weighted sampling
without replacement, UAI: unequal chances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.core.types import Verdict
from retrieval_bench.stats.intervals import ALPHA, Floats, Scale

BETS = np.arange(0.05, 1.0, 0.1)
"""Shares of the most that may be lost at once, each with an equal part of the capital."""

_GRID, _PASSES = 65, 4
"""Candidates for each end, and how often they close in on it: 1e-7 of the range is left."""


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One value drawn with a chance of its own from those that are left; arrays (streams,).

    Attributes:
        chance: of its being drawn now, above 0; known before it is.
        low, high: what any value that could be drawn now, divided by its chance, can be.
        left_low, left_high: what the sum of those that are left after it can be; both 0 when none
            is left.
    """

    chance: Floats
    low: Floats
    high: Floats
    left_low: Floats
    left_high: Floats


class Betting:
    """Bets against means of streams of values, one value of each stream after the other.

    Args:
        means: (streams, k) or (k,), the means in question.
        scale: what a value can be.
        streams: how many, where ``means`` does not say it.
        alpha: chance of ever ruling out the true mean of a stream.
        total: values in all, drawn without replacement, whose mean is meant; None = the mean of a
            population that values are drawn from independently.
        known: (streams,), the sum of values that need no drawing; they count in ``total``, and all
            others come with a :class:`Draw`.

    Attributes:
        n: values of each stream so far.
        too_low, too_high: bool (streams, k), means that are ruled out, for good; the true one is
            above, below.
    """

    def __init__(
        self,
        means: ArrayLike,
        scale: Scale,
        *,
        streams: int = 1,
        alpha: float = ALPHA,
        total: int | None = None,
        known: ArrayLike | None = None,
    ) -> None:
        given = np.asarray(means, dtype=np.float64)
        self._means = given if given.ndim > 1 else np.tile(given, (streams, 1))
        self._scale, self._total = scale, total
        self._needed = np.log(2 / alpha)
        self._sum = np.zeros((len(self._means), 1))
        if known is not None:
            self._sum += np.asarray(known, dtype=np.float64)[:, None]
        self._logs = np.zeros((2, *self._means.shape, len(BETS)))
        self.n = 0
        self.too_low = np.zeros(self._means.shape, dtype=bool)
        self.too_high = self.too_low.copy()

    @property
    def complete(self) -> bool:
        """True if all values were drawn, so that the means are known."""
        return self.n == self._total

    def add(self, values: ArrayLike, draw: Draw | None = None) -> None:
        """Look at one more value of each stream, (streams,).

        Raises:
            ValueError: a value outside of the range, or more values than there are.
        """
        x = np.asarray(values, dtype=np.float64)[:, None]
        if draw is not None:
            self._add_drawn(x, draw)
            return
        low, high, _ = self._scale
        rounding = 1e-9 * (high - low)
        if not (np.all(x >= low - rounding) and np.all(x <= high + rounding)):
            raise ValueError(f"a value outside of [{low:g}, {high:g}]")
        expected = self._means
        if self._total is not None:
            if self.n == self._total:
                raise ValueError(f"more than {self._total} values")
            expected = (self._total * self._means - self._sum) / (self._total - self.n)
        above, below = self._bet(x, expected, low, high, rounding)
        self._sum += x
        if self._total is not None:  # what is left cannot be lower, or higher, than this
            left, rest = self._total - self.n, self._total * self._means - self._sum
            surely_above = rest < left * low - rounding * self._total
            surely_below = rest > left * high + rounding * self._total
            if not left:  # nothing was won or lost by chance any more
                self.too_low, self.too_high = surely_above, surely_below
                return
            above, below = above | surely_above, below | surely_below
        self.too_low |= above
        self.too_high |= below

    def _add_drawn(self, x: Floats, draw: Draw) -> None:
        """A value that had a chance of its own."""
        if self._total is None:
            raise ValueError("a chance of being drawn from a population")
        quotient, low, high = x / draw.chance[:, None], draw.low[:, None], draw.high[:, None]
        rounding = 1e-9 * np.maximum(high - low, 1e-9)
        if not (np.all(quotient >= low - rounding) and np.all(quotient <= high + rounding)):
            raise ValueError("a value outside of what it can be")
        expected = self._total * self._means - self._sum
        above, below = self._bet(quotient, expected, low, high, rounding)
        self._sum += x
        self.settle(draw.left_low, draw.left_high)
        if np.any(draw.left_high > draw.left_low):
            self.too_low |= above
            self.too_high |= below

    def settle(self, left_low: Floats, left_high: Floats) -> None:
        """Rule out what the values known so far exclude, whatever the others are.

        Args:
            left_low, left_high: (streams,), what the sum of the others can be; where both are 0
                there are none, and the means are known.
        """
        if self._total is None:
            raise ValueError("nothing is known of the rest of a population")
        rest, rounding = self._total * self._means - self._sum, 1e-9 * self._total
        above, below = rest < left_low[:, None] - rounding, rest > left_high[:, None] + rounding
        if not np.any(left_high > left_low):
            self.n = self._total
            self.too_low, self.too_high = above, below
            return
        self.too_low |= above
        self.too_high |= below

    def _bet(
        self,
        x: Floats,
        expected: Floats,
        low: Floats | float,
        high: Floats | float,
        rounding: Floats | float,
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Play one round; the means against which enough was won, betting above and below them."""
        gains = np.stack([x - expected, expected - x])
        most = np.stack([expected - low, high - expected])  # that can be lost
        shares = np.maximum(gains / np.maximum(most, rounding), -1.0)
        self._logs += np.log1p(BETS * shares[..., None])
        self.n += 1
        above, below = np.logaddexp.reduce(self._logs, axis=-1) - np.log(len(BETS)) >= self._needed
        return above, below


def verdicts(betting: Betting) -> list[Verdict]:
    """For each stream of differences what is shown, where the means in question are ``-margin``,
    0 and ``margin``."""
    verdicts = []
    for low, high in zip(betting.too_low, betting.too_high, strict=True):
        if low[1] != high[1]:
            verdicts.append(Verdict.BETTER if low[1] else Verdict.WORSE)
        else:
            within = low[0] and high[2] and not low[1]
            verdicts.append(Verdict.EQUIVALENT if within else Verdict.UNDECIDED)
    return verdicts


def anytime_intervals(
    values: Floats,
    scale: Scale,
    *,
    alpha: float = ALPHA,
    total: int | None = None,
    draws: Sequence[Draw] = (),
    known: Floats | None = None,
) -> Floats:
    """Two-sided intervals of the means of streams, (streams, 2), that hold at every look together.

    Args:
        values: (n, streams), in the order drawn.
        scale, alpha, total, known: as of :class:`Betting`.
        draws: of values with chances of their own, one for each row; some are left.
    """
    n, streams = values.shape
    if n == total:
        return np.repeat(values.mean(axis=0)[:, None], 2, axis=1)
    lower = np.tile([scale.low, scale.high], (streams, 1))
    upper = lower.copy()
    each = np.arange(streams)
    for _ in range(_PASSES):
        grids = [np.linspace(ends[:, 0], ends[:, 1], _GRID, axis=1) for ends in (lower, upper)]
        betting = Betting(np.hstack(grids), scale, alpha=alpha, total=total, known=known)
        for row, draw in zip_longest(values, draws):
            betting.add(row, draw)
        out = np.count_nonzero(betting.too_low[:, :_GRID], axis=1)
        last = np.maximum(out - 1, 0)  # nothing is ruled out: the end of the range
        lower = np.stack([grids[0][each, last], grids[0][each, np.minimum(out, _GRID - 1)]], axis=1)
        first = _GRID - np.count_nonzero(betting.too_high[:, _GRID:], axis=1)
        last = np.minimum(first, _GRID - 1)
        upper = np.stack([grids[1][each, np.maximum(first - 1, 0)], grids[1][each, last]], axis=1)
    # Were all means ruled out, which has chance alpha, the gap between the ends is what is left.
    return np.sort(np.stack([lower[:, 0], upper[:, 1]], axis=1), axis=1)
