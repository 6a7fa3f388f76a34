"""Means from people's labels of some queries and a model's labels of these and of many more.

Of n queries people's value Y and the model's value f are known, of N others f alone. With a slope l

    mean = mean_n(Y) + l (mean_N(f) - mean_n(f))

is the mean of Y whatever f is, as long as the n are a random sample of all: what the model gets
wrong in general cancels out, and what it gets wrong by chance only widens the interval. l is that
of PPI++, worked out from all n:

    l = cov_n(Y, f) / ((1 + n / N) var_{n+N}(f)), from 0 to 1.

A slope that follows the n points makes their residuals e = (Y - mean Y) - l (f - mean f) too small,
and most so where a single f lies far out. So each is divided by 1 - h of its own leverage,
h = 1/n + (f - mean f)^2 / sum (f - mean f)^2, as in HC3:

    error^2 = sum (e / (1 - h))^2 / n^2 + l^2 var_N(f) / N,

and intervals and p are Student's with n - 2 degrees of freedom; normal ones hold .86 in place of
.95 at n = 20. Of strata, each drawn at random, the means add up by their shares, and the degrees of
freedom are Satterthwaite's. All functions take arrays (..., queries) and work on the last axis.

Sources: Angelopoulos, Duchi & Zrnic (2023), PPI++, arXiv 2311.01453; GLIDE (2026), arXiv
2605.31278; PRECISE (2026), arXiv 2606.05308; MacKinnon & White (1985), Journal of Econometrics 29,
for HC3; Fisch et al. (2024), Stratified prediction-powered inference, arXiv 2406.04291.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.stats.intervals import ALPHA
from retrieval_bench.stats.randomization import ROUNDING

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVERAGE = 0.8
"""No query may weigh more in the slope than this."""
FEWEST = 3
"""So many queries must have a judged difference, or a judge that never saw one would decide."""
DIFFER = 2
"""On so many queries people and model must differ: fewer errors have no spread that can be told."""
GAIN = 0.9
"""Of the half-width that people alone give, below which that of both must be."""


class Estimate(NamedTuple):
    """A mean with its uncertainty; arrays of one shape.

    Attributes:
        mean: the estimate.
        error: its standard error.
        df: degrees of freedom of Student's t.
        slope: of the model's values; 0 where people alone decide.
        leverage: the largest of a query.
    """

    mean: Floats
    error: Floats
    df: Floats
    slope: Floats
    leverage: Floats

    def half_width(self, alpha: ArrayLike = ALPHA) -> Floats:
        """Half of the interval at level 1 - alpha."""
        from scipy.special import stdtrit

        return np.asarray(stdtrit(self.df, 1 - np.asarray(alpha) / 2) * self.error)

    def p(self, value: ArrayLike = 0.0) -> Floats:
        """Two-sided p that the mean is ``value``; without any spread 0 or 1."""
        return np.minimum(1.0, 2 * self._below(-np.abs(self.mean - np.asarray(value))))

    def p_within(self, margin: float) -> Floats:
        """The larger p of two one-sided tests that the mean is less than ``margin`` away from 0."""
        return self._below(np.abs(self.mean) - margin)

    def _below(self, distance: Floats) -> Floats:
        """Chance that a t is below ``distance`` over the error."""
        from scipy.special import stdtr

        spread = self.error > 0
        t = np.divide(distance, self.error, out=np.zeros_like(self.mean), where=spread)
        return np.where(spread, stdtr(self.df, t), np.where(distance < -ROUNDING, 0.0, 1.0))


def people_alone(people: Floats) -> Estimate:
    """The mean of what people judged, with Student's t of n - 1."""
    n = people.shape[-1]
    mean = people.mean(axis=-1)
    error = people.std(axis=-1, ddof=1) / np.sqrt(n)
    none = np.zeros_like(mean)
    return Estimate(mean, error, np.full_like(mean, n - 1), none, none + 1 / n)


def slope_of(people: Floats, judged: Floats, more: Floats) -> Floats:
    """The slope of PPI++ from all n; 0 where the model's values do not vary."""
    n, others = judged.shape[-1], more.shape[-1]
    covariance = (centred(people) * centred(judged)).mean(axis=-1)
    variance = np.concatenate([judged, more], axis=-1).var(axis=-1, ddof=1)
    whole = (1 + n / others) * variance
    ratio = np.divide(covariance, whole, out=np.zeros_like(whole), where=whole > ROUNDING**2)
    return np.asarray(np.clip(ratio, 0.0, 1.0))


def both(
    people: Floats, judged: Floats, more: Floats, slope: Floats | None = None, *, hc3: bool = True
) -> Estimate:
    """The mean of people's values with what the model adds; see the module.

    Args:
        people, judged: (..., n), people's values and the model's of the same queries.
        more: (..., N), the model's values of other queries.
        slope: None = that of PPI++.
        hc3: divide residuals by 1 - leverage; without, the error is that of PPI++ (ddof 0).
    """
    n, others = judged.shape[-1], more.shape[-1]
    at = slope_of(people, judged, more) if slope is None else np.asarray(slope, dtype=np.float64)
    far = centred(judged) ** 2
    whole = far.sum(axis=-1, keepdims=True)
    leverage = 1 / n + np.divide(far, whole, out=np.zeros_like(far), where=whole > ROUNDING**2)
    residuals = centred(people) - at[..., None] * centred(judged)
    if hc3:
        residuals = residuals / np.maximum(1 - leverage, ROUNDING)
    variance = (residuals**2).mean(axis=-1) / n + at**2 * more.var(axis=-1) / others
    mean = people.mean(axis=-1) + at * (more.mean(axis=-1) - judged.mean(axis=-1))
    df = np.full_like(mean, n - 2)
    return Estimate(mean, np.sqrt(variance), df, at, leverage.max(axis=-1))


def stratified(parts: Sequence[Estimate], shares: ArrayLike) -> Estimate:
    """The mean over strata, each an estimate of its own and such a share of all queries:

        mean = sum of share_s mean_s,    error^2 = sum of share_s^2 error_s^2.

    What is left of 1 is known to be 0 without an error: where systems return the same, they differ
    by nothing. Shares are known, so that the mean is that of these queries, not of others to come.
    """
    of = np.asarray(shares, dtype=np.float64).reshape(-1, *[1] * parts[0].mean.ndim)
    mean, error, df, slope, leverage = (np.stack(values) for values in zip(*parts, strict=True))
    variances = (of * error) ** 2
    whole = variances.sum(axis=0)
    terms = (variances**2 / df).sum(axis=0)
    freedom = np.where(terms > 0, whole**2 / np.where(terms > 0, terms, 1.0), df.min(axis=0))
    slopes = (of * slope).sum(axis=0) / of.sum(axis=0)
    return Estimate((of * mean).sum(axis=0), np.sqrt(whole), freedom, slopes, leverage.max(axis=0))


def judge_counts(people: Floats, judged: Floats, alone: Estimate, with_judge: Estimate) -> Bools:
    """The switch: where the model's labels count beside people's. Fixed, not tuned.

    Args:
        people, judged: (..., n), people's values and the model's; of strata those of all.
    """
    seen = (np.abs(people) > ROUNDING).sum(axis=-1) >= FEWEST
    seen &= (np.abs(people - judged) > ROUNDING).sum(axis=-1) >= DIFFER
    steady = with_judge.leverage <= LEVERAGE
    narrow = with_judge.half_width() < GAIN * alone.half_width()
    return np.asarray(seen & steady & narrow, dtype=np.bool_)


def chosen(counts: Bools, with_judge: Estimate, alone: Estimate) -> Estimate:
    """``with_judge`` where it counts, else people alone."""
    pairs = zip(with_judge, alone, strict=True)
    return Estimate(*(np.where(counts, model, people) for model, people in pairs))


def centred(values: Floats) -> Floats:
    """``values`` less their mean."""
    return np.asarray(values - values.mean(axis=-1, keepdims=True))
