"""How far two judges agree beyond chance: Cohen's kappa.

It is computed from counts that add up over groups of judgements (queries), so that intervals come
from resampling whole groups: judgements of one query are alike.

Sources: Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20, and
(1968), Psychol. Bull. 70 for weights; Efron & Tibshirani (1993), ch. 13, for the percentile
bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.stats.intervals import Floats, interval
from retrieval_bench.stats.resampling import RESAMPLES, SEED

_BLOCK = 1000
"""Resamples that are drawn at a time."""


@dataclass(frozen=True, slots=True)
class Agreement(Documented):
    """A coefficient: 1 = in everything, 0 = as by chance.

    Attributes:
        value: NaN where nothing can disagree, since only one grade occurs.
        ci95: percentile bootstrap over groups; None with fewer than two groups, or no value.
        n: judgements that the two have in common.
    """

    KEYS = "value=known ci95 n"

    value: float
    ci95: tuple[float, float] | None
    n: int

    @property
    def known(self) -> float | None:
        """The value; None where nothing can disagree, since only one grade occurs."""
        return None if math.isnan(self.value) else self.value


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
    steps = np.arange(grades)
    far = (steps[:, None] - steps) ** 2.0 if weighted else 1.0 - np.eye(grades)

    def kappa(table: Floats) -> Floats:
        shares = table / np.maximum(table.sum(axis=(1, 2), keepdims=True), 1e-300)
        chance = shares.sum(axis=2)[:, :, None] * shares.sum(axis=1)[:, None, :]
        seen, expected = (shares * far).sum(axis=(1, 2)), (chance * far).sum(axis=(1, 2))
        ratio = np.divide(seen, expected, out=np.full_like(seen, np.nan), where=expected > 0)
        return np.asarray(1.0 - ratio)

    n = int(counts.sum())
    counts = counts[counts.sum(axis=(1, 2)) > 0]
    if not len(counts):
        return Agreement(float("nan"), None, n)
    value = float(kappa(counts.sum(axis=0, keepdims=True))[0])
    if len(counts) < 2 or np.isnan(value):
        return Agreement(value, None, n)
    rng = np.random.default_rng(SEED)
    shares, flat = np.full(len(counts), 1 / len(counts)), counts.reshape(len(counts), -1)
    blocks = [  # the same draws as at once, in less memory
        rng.multinomial(len(counts), shares, size=min(_BLOCK, RESAMPLES - start)) @ flat
        for start in range(0, RESAMPLES, _BLOCK)
    ]
    resampled = kappa(np.concatenate(blocks).reshape(RESAMPLES, *counts.shape[1:]))
    resampled = resampled[~np.isnan(resampled)]
    low, high = interval(resampled[:, None])[0]
    return Agreement(value, (float(low), float(high)), n)
