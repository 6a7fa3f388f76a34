"""How far judges agree beyond chance: Cohen's kappa of two, Krippendorff's alpha of any number.

Both are computed from counts that add up over groups of judgements (queries), so that intervals
come from resampling whole groups: judgements of one query are alike.

Sources: Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20, and
(1968), Psychol. Bull. 70 for weights; Krippendorff (2011), Computing Krippendorff's
alpha-reliability, with its ordinal difference; Efron & Tibshirani (1993), ch. 13, for the
percentile bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_bench.stats.intervals import Floats, interval
from retrieval_bench.stats.resampling import RESAMPLES, SEED

_BLOCK = 1000
"""Resamples that are drawn at a time."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient: 1 = in everything, 0 = as by chance.

    Attributes:
        value: NaN where nothing can disagree, since only one grade occurs.
        ci95: percentile bootstrap over groups; None with fewer than two groups, or no value.
        n: judgements that two judges have in common, of alpha things that two judged.
    """

    value: float
    ci95: tuple[float, float] | None
    n: int


def cohen_kappa(
    pairs: Mapping[str, Sequence[tuple[int, int]]], grades: int, *, weighted: bool = False
) -> Agreement:
    """Cohen's kappa of two judges.

    Args:
        pairs: group -> grades from 0 that both gave.
        grades: how many there are.
        weighted: quadratic weights, so that 0 beside 3 is worse than 2 beside 3.
    """
    counts = np.zeros((len(pairs), grades, grades))
    for at, of_group in enumerate(pairs.values()):
        for first, second in of_group:
            counts[at, first, second] += 1
    far = _squared(grades) if weighted else 1.0 - np.eye(grades)

    def kappa(table: Floats) -> Floats:
        shares = table / np.maximum(table.sum(axis=(1, 2), keepdims=True), 1e-300)
        chance = shares.sum(axis=2)[:, :, None] * shares.sum(axis=1)[:, None, :]
        seen, expected = (shares * far).sum(axis=(1, 2)), (chance * far).sum(axis=(1, 2))
        return _one_minus(seen, expected)

    return _agreement(counts, kappa, int(counts.sum()))


def krippendorff_alpha(units: Mapping[str, Sequence[Sequence[int]]], grades: int) -> Agreement:
    """Krippendorff's alpha of any number of judges, with the difference of ordinal grades.

    Args:
        units: group -> for each thing that was judged the grades from 0 that it got.
        grades: how many there are.
    """
    counts, n = np.zeros((len(units), grades, grades)), 0
    for at, things in enumerate(units.values()):
        for given in things:
            if len(given) < 2:
                continue
            n += 1
            values = np.bincount(given, minlength=grades).astype(float)
            counts[at] += (np.outer(values, values) - np.diag(values)) / (len(given) - 1)

    def alpha(table: Floats) -> Floats:
        totals = table.sum(axis=2)
        every = totals.sum(axis=1)
        far = _ordinal(totals)
        seen = (table * far).sum(axis=(1, 2))
        expected = (totals[:, :, None] * totals[:, None, :] * far).sum(axis=(1, 2))
        return _one_minus(seen, expected / np.maximum(every - 1, 1e-300))

    return _agreement(counts, alpha, n)


def _squared(grades: int) -> Floats:
    steps = np.arange(grades)
    return np.asarray((steps[:, None] - steps[None, :]) ** 2.0)


def _ordinal(totals: Floats) -> Floats:
    """(tables, grades, grades), squared: how many values lie between two grades, with half of
    those at the ends."""
    middle = np.cumsum(totals, axis=1) - totals / 2
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)


def _one_minus(seen: Floats, expected: Floats) -> Floats:
    """1 - seen / expected; NaN where nothing is expected."""
    ratio = np.divide(seen, expected, out=np.full_like(seen, np.nan), where=expected > 0)
    return np.asarray(1.0 - ratio)


def _agreement(counts: Floats, coefficient: Callable[[Floats], Floats], n: int) -> Agreement:
    """The coefficient of the sum of ``counts`` (groups, grades, grades), and its interval."""
    counts = counts[counts.sum(axis=(1, 2)) > 0]
    if not len(counts):
        return Agreement(float("nan"), None, n)
    value = float(coefficient(counts.sum(axis=0, keepdims=True))[0])
    if len(counts) < 2 or np.isnan(value):
        return Agreement(value, None, n)
    rng = np.random.default_rng(SEED)
    shares, flat = np.full(len(counts), 1 / len(counts)), counts.reshape(len(counts), -1)
    blocks = [  # the same draws as at once, in less memory
        rng.multinomial(len(counts), shares, size=min(_BLOCK, RESAMPLES - start)) @ flat
        for start in range(0, RESAMPLES, _BLOCK)
    ]
    resampled = coefficient(np.concatenate(blocks).reshape(RESAMPLES, *counts.shape[1:]))
    resampled = resampled[~np.isnan(resampled)]
    low, high = interval(resampled[:, None])[0]
    return Agreement(value, (float(low), float(high)), n)
