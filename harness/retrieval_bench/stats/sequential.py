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

A value counts by its share of the range; a later weighted stream (labelling, with chances of
selection) needs a range of its own for each value in :meth:`Betting.add`, and nothing else.

Source: Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting,
JRSS B 86: hedged capital, its proposition 4 for draws without replacement, a mixture of bets.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.core.types import Verdict
from retrieval_bench.stats.intervals import ALPHA, Floats, Scale

BETS = np.arange(0.05, 1.0, 0.1)
"""Shares of the most that may be lost at once, each with an equal part of the capital."""

Watch = Callable[[str, NDArray[np.float64], NDArray[np.bool_]], bool]
"""Told of each query its id, the values, (systems, metrics), and which systems answered,
(systems,); True when enough is known."""

_GRID, _PASSES = 65, 4
"""Candidates for each end, and how often they close in on it: 1e-7 of the range is left."""


class Betting:
    """Bets against means of streams of values, one value of each stream after the other.

    Args:
        means: (streams, k) or (k,), the means in question.
        scale: what a value can be.
        streams: how many, where ``means`` does not say it.
        alpha: chance of ever ruling out the true mean of a stream.
        total: values in all, drawn without replacement, whose mean is meant; None = the mean of a
            population that values are drawn from independently.

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
    ) -> None:
        given = np.asarray(means, dtype=np.float64)
        self._means = given if given.ndim > 1 else np.tile(given, (streams, 1))
        self._scale, self._total = scale, total
        self._needed = np.log(2 / alpha)
        self._sum = np.zeros((len(self._means), 1))
        self._logs = np.zeros((2, *self._means.shape, len(BETS)))
        self.n = 0
        self.too_low = np.zeros(self._means.shape, dtype=bool)
        self.too_high = self.too_low.copy()

    @property
    def complete(self) -> bool:
        """Whether all values were drawn, so that the means are known."""
        return self.n == self._total

    def add(self, values: ArrayLike) -> None:
        """Look at one more value of each stream, (streams,).

        Raises:
            ValueError: a value outside of the range, or more values than there are.
        """
        x = np.asarray(values, dtype=np.float64)[:, None]
        low, high, _ = self._scale
        rounding = 1e-9 * (high - low)
        if not (np.all(x >= low - rounding) and np.all(x <= high + rounding)):
            raise ValueError(f"a value outside of [{low:g}, {high:g}]")
        expected = self._means
        if self._total is not None:
            if self.n == self._total:
                raise ValueError(f"more than {self._total} values")
            expected = (self._total * self._means - self._sum) / (self._total - self.n)
        gains = np.stack([x - expected, expected - x])
        most = np.stack([expected - low, high - expected])  # that can be lost
        shares = np.maximum(gains / np.maximum(most, rounding), -1.0)
        self._logs += np.log1p(BETS * shares[..., None])
        self.n += 1
        self._sum += x
        above, below = np.logaddexp.reduce(self._logs, axis=-1) - np.log(len(BETS)) >= self._needed
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


def verdicts(betting: Betting) -> list[Verdict]:
    """For each stream of differences what is shown, where the means in question are ``-margin``,
    0 and ``margin``."""
    found = []
    for low, high in zip(betting.too_low, betting.too_high, strict=True):
        if low[1] != high[1]:
            found.append(Verdict.BETTER if low[1] else Verdict.WORSE)
        else:
            within = low[0] and high[2] and not low[1]
            found.append(Verdict.EQUIVALENT if within else Verdict.UNDECIDED)
    return found


def anytime_intervals(
    values: Floats, scale: Scale, *, alpha: float = ALPHA, total: int | None = None
) -> Floats:
    """Two-sided intervals of the means of streams, (streams, 2), that hold at every look together.

    Args:
        values: (n, streams), in the order drawn.
        scale, alpha, total: as of :class:`Betting`.
    """
    n, streams = values.shape
    if n == total:
        return np.repeat(values.mean(axis=0)[:, None], 2, axis=1)
    lower = np.tile([scale.low, scale.high], (streams, 1))
    upper = lower.copy()
    each = np.arange(streams)
    for _ in range(_PASSES):
        grids = [np.linspace(ends[:, 0], ends[:, 1], _GRID, axis=1) for ends in (lower, upper)]
        betting = Betting(np.hstack(grids), scale, alpha=alpha, total=total)
        for row in values:
            betting.add(row)
        out = np.count_nonzero(betting.too_low[:, :_GRID], axis=1)
        last = np.maximum(out - 1, 0)  # nothing is ruled out: the end of the range
        lower = np.stack([grids[0][each, last], grids[0][each, np.minimum(out, _GRID - 1)]], axis=1)
        first = _GRID - np.count_nonzero(betting.too_high[:, _GRID:], axis=1)
        last = np.minimum(first, _GRID - 1)
        upper = np.stack([grids[1][each, np.maximum(first - 1, 0)], grids[1][each, last]], axis=1)
    # Were all means ruled out, which has chance alpha, the gap between the ends is what is left.
    return np.sort(np.stack([lower[:, 0], upper[:, 1]], axis=1), axis=1)
