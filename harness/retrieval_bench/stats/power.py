"""How many queries a paired test needs: from the moments of the differences seen so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.randomization import ROUNDING, signs
from retrieval_bench.stats.resampling import gamma_sum_p

Floats = NDArray[np.float64]


def check_margin(margin: float) -> None:
    """Raises:
    ConfigError: a margin that is none.
    """
    if not 0 < margin < 1:
        raise ConfigError(
            f"margin {margin:g}",
            accepted="a difference of means above 0 and below 1",
            fix="give the largest difference that does not matter to you, such as 0.01",
        )


POWER = 0.8

_MOST = 2.0**40
"""Queries; what needs more is told to be out of reach."""

_NEAR = 0.001


@dataclass(frozen=True, slots=True)
class Needed:
    """Further queries, at least 1, until a test has 80 % power; None when no number helps.

    Attributes:
        difference: for the two-sided test to show the difference.
        equivalence: for the two one-sided tests to show that it is within the margin.
    """

    difference: int | None
    equivalence: int | None

    def of_clusters(self, size: float) -> Needed:
        """Count queries, where these are clusters of ``size`` queries."""
        found = (self.difference, self.equivalence)
        return Needed(*(None if n is None else math.ceil(n * size) for n in found))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of differences over ``n`` queries; arrays (columns,).

    Attributes:
        mean, second, third, fourth: means of the differences and of their powers.
        above, below: queries on which the difference is above, below 0.
        size: that of every difference other than 0, where they have one; else 0.
        largest: a bound of the size of a difference: 1, or more where more was seen.
    """

    n: int
    mean: Floats
    second: Floats
    third: Floats
    fourth: Floats
    above: NDArray[np.int64]
    below: NDArray[np.int64]
    size: Floats
    largest: Floats

    @classmethod
    def of(cls, differences: Floats) -> Moments:
        """Compute the moments of each column of ``differences``, (queries, columns)."""
        n, columns = differences.shape
        sign = signs(differences)
        above, below = sign > 0, sign < 0
        if n == 0:
            zero, none = np.zeros(columns), np.zeros(columns, dtype=np.int64)
            return cls(0, zero, zero, zero, zero, none, none, zero, zero + 1)
        square, sizes = differences**2, np.abs(differences)
        mean, most = differences.mean(axis=0), sizes.max(axis=0)
        least = np.where(above | below, sizes, np.inf).min(axis=0)
        return cls(
            n,
            np.where(np.abs(mean) <= ROUNDING, 0.0, mean),
            square.mean(axis=0),
            (square * differences).mean(axis=0),
            (square**2).mean(axis=0),
            above.sum(axis=0),
            below.sum(axis=0),
            np.where(most - least <= ROUNDING, most, 0.0),
            np.maximum(1.0, most),
        )

    @classmethod
    def joined(cls, parts: Sequence[Moments]) -> Moments:
        """All columns of ``parts``, which are of the same queries."""
        arrays = [
            np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(cls)[1:]
        ]
        return cls(parts[0].n, *arrays)

    def at(self, columns: NDArray[np.bool_]) -> Moments:
        """Return the moments of the columns for which ``columns`` is true."""
        return Moments(self.n, *(getattr(self, f.name)[columns] for f in fields(self)[1:]))

    @property
    def variance(self) -> Floats:
        """Around the mean, over n; 0 where it is nothing but rounding."""
        variance = self.second - self.mean**2
        return np.where(variance <= ROUNDING * self.second, 0.0, variance)

    @property
    def skewness(self) -> Floats:
        """0 where nothing varies."""
        variance = self.variance
        central = self.third - 3 * self.mean * self.second + 2 * self.mean**3
        cube = np.where(variance > 0, variance, 1.0) ** 1.5
        return np.where(variance > 0, central / cube, 0.0)


def queries_needed(
    differences: Floats | Moments,
    alpha: ArrayLike,
    *,
    margin: float = MARGIN,
    equivalence_alpha: ArrayLike | None = None,
) -> list[Needed]:
    """Further queries until a test has 80 % power, if all queries were like those seen.

    Args:
        differences: (queries, columns), or their moments.
        alpha: level of the two-sided randomisation test, one or (columns,).
        margin: of the test of equivalence.
        equivalence_alpha: its level; None = ``alpha``.

    Returns:
        One for each column; nothing helps with fewer than two queries.
    """
    moments = differences if isinstance(differences, Moments) else Moments.of(differences)
    columns = len(moments.mean)
    if moments.n < 2:
        return [Needed(None, None)] * columns
    levels = [
        np.broadcast_to(np.asarray(level, dtype=np.float64), columns)
        for level in (alpha, alpha if equivalence_alpha is None else equivalence_alpha)
    ]
    needed = _for_difference(moments, levels[0]), _for_equivalence(moments, levels[1], margin)
    return [
        Needed(*(_further(total, moments.n) for total in totals))
        for totals in zip(*(total.tolist() for total in needed), strict=True)
    ]


def _further(total: float, n: int) -> int | None:
    return max(1, int(total) - n) if total < _MOST else None


def _least(enough: Callable[[Floats], NDArray[np.bool_]], start: Floats) -> Floats:
    """The least whole number from ``start`` on that is enough, above 1,000 to a thousandth;
    infinite where none is."""
    low, high = np.ceil(start) - 1, np.ceil(start)
    n = enough(high)
    while not (n | ~(high < _MOST)).all():  # also ends on NaN
        low, high = np.where(n, low, high), np.where(n, high, 2 * high)
        n |= enough(high)
    while (wide := high - low > np.maximum(1.0, _NEAR * high)).any():
        middle = np.where(wide, np.floor((low + high) / 2), high)
        reached = enough(middle)
        high, low = np.where(reached, middle, high), np.where(reached, low, middle)
    return np.where(n, high, np.inf)


def _for_difference(m: Moments, alpha: Floats) -> Floats:
    """Queries in all until the randomisation test at ``alpha`` finds the mean."""
    from scipy.special import betainc, ndtri

    queries = np.full(len(m.mean), np.inf)
    there = m.mean != 0
    m, alpha = m.at(there), alpha[there]
    mean, second, third = np.abs(m.mean), m.second, np.sign(m.mean) * m.third
    critical, wanted = -ndtri(alpha / 2), ndtri(POWER)

    # Differences of one sign: p is 2 / 2^k where k queries differ, and k is binomial.
    share = (m.above + m.below) / m.n
    signs = np.ceil(1 - np.log2(alpha) - ROUNDING)
    one_sign = np.minimum(m.above, m.below) == 0

    # Otherwise their sum is held against `bound` times the root of the sum of their squares, which
    # varies along with the sum. The bound has the kurtosis of a sum of random signs (Cornish &
    # Fisher); where that bends it by more than a quarter, the queries are too few to tell.
    tails = m.fourth / second**2
    bend = (critical**2 - 3) / 12
    fewest = np.maximum(signs / share, tails * np.maximum(2.0, 4 * bend))
    with_square, of_square = third - mean * second, m.fourth - second**2

    def normal(total: Floats) -> NDArray[np.bool_]:
        bound = critical * (1 - bend * tails / total)
        root = np.sqrt(total * second)
        ahead = total * mean - bound * root * (1 - of_square / (8 * total * second**2))
        ahead -= m.size  # sums of one size move by two of them, and a tie speaks for chance
        pull = bound / root
        variance = second - mean**2 - pull * with_square + (pull / 2) ** 2 * of_square
        return np.asarray(ahead >= wanted * np.sqrt(total * np.maximum(variance, 0.0)))

    def enough(total: Floats) -> NDArray[np.bool_]:
        counted = betainc(signs, np.maximum(total - signs, 0.0) + 1, share) >= POWER
        return np.where(one_sign, counted & (total >= signs), normal(total))

    queries[there] = _least(enough, np.where(one_sign, signs, fewest))
    return queries


def _for_equivalence(m: Moments, alpha: Floats, margin: float) -> Floats:
    """Queries in all until both one-sided tests at ``alpha`` reject a mean beyond the margin."""
    from scipy.special import ndtr, ndtri

    queries = np.full(len(m.mean), np.inf)
    within = np.abs(m.mean) < margin
    m, alpha = m.at(within), alpha[within]
    values, shares = _three_values(m)

    def room(sign: float, total: Floats) -> Floats:
        """Return how many standard errors the mean may be off, towards ``sign``, and the test
        passes: by two points, through which the normal quantile of p is nearly a line."""
        error = np.sqrt(m.variance / total)
        ends = [
            _p_in_sample(sign * values, shares, total, z * error, top=m.largest, margin=margin)
            for z in _AT
        ]
        first, second = (ndtri(np.clip(p, 1e-15, 1 - 1e-15)) for p in ends)
        rise = np.maximum(second - first, ROUNDING)
        return np.asarray(_AT[0] + (ndtri(alpha) - first) * (_AT[1] - _AT[0]) / rise)

    def enough(total: Floats) -> NDArray[np.bool_]:
        power = ndtr(room(1.0, total)) + ndtr(room(-1.0, total)) - 1
        return np.asarray(power >= POWER)

    # Ties alone need log(alpha) / log(1 - margin); the rest hardly less.
    queries[within] = _least(enough, np.log(alpha) / np.log1p(-margin) / 2)
    return queries


_AT = (0.8, 2.0)


def _three_values(m: Moments) -> tuple[Floats, Floats]:
    """0 and two more values, and their shares, (columns, 3), with the ties, mean, variance and
    skewness of the differences."""
    some = np.where(m.above + m.below > 0, (m.above + m.below) / m.n, 1.0)
    rest = replace(m, mean=m.mean / some, second=m.second / some, third=m.third / some)
    skewness, sd = rest.skewness, np.sqrt(rest.variance)
    high = (1 - skewness / np.sqrt(4 + skewness**2)) / 2
    low = 1 - high
    values = [0 * high, rest.mean - sd * np.sqrt(high / low), rest.mean + sd * np.sqrt(low / high)]
    return np.column_stack(values), np.column_stack([1 - some, some * low, some * high])


def _p_in_sample(
    values: Floats, shares: Floats, total: Floats, shift: Floats, *, top: Floats, margin: float
) -> Floats:
    """p of the one-sided test in a sample of ``total`` queries whose mean is too high by ``shift``,
    with the shares that such a sample is expected to have."""
    mean = (shares * values).sum(axis=1)
    away = values - mean[:, None]
    variance = np.maximum((shares * away**2).sum(axis=1), ROUNDING**2)
    tilted = np.maximum(shares * (1 + away * (shift / variance)[:, None]), 0.0)
    tilted /= tilted.sum(axis=1, keepdims=True)
    short = mean + shift - (tilted * values).sum(axis=1)  # where no share could fall further
    terms = values + short[:, None] - margin
    return gamma_sum_p(terms, np.maximum(top - margin, terms.max(axis=1)), total[:, None] * tilted)
