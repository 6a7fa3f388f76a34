"""Intervals of means that hold: the method goes by what a value can be, never by the values seen.

* Nothing but two values, such as a hit or none: Clopper & Pearson's, which is exact.
* Any value of a known range, such as nDCG from 0 to 1, and differences of such values: Gaffke's
  bound on either side. It assumes nothing but the range, so it also holds where nine of ten values
  are 0, or all of ten are 1; that it does is a conjecture, which no search has broken.
* No known range: the percentile bootstrap, which takes the values seen for all there are, and is
  too short for few or skewed ones.

Sources: Clopper & Pearson (1934), Biometrika 26; Gaffke (2005), Mathematical Methods of Statistics
14; Learned-Miller & Thomas (2019), A new confidence interval for the mean of a bounded random
variable; Efron & Tibshirani (1993), An Introduction to the Bootstrap, ch. 13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.stats.resampling import RESAMPLES, SEED, bootstrap_means, gamma_sum_p

Floats = NDArray[np.float64]

ALPHA = 0.05
"""Of an interval that is not corrected for others beside it: 95 %."""


class Scale(NamedTuple):
    """What the value of one query can be.

    Attributes:
        low, high: the ends of its range.
        two_valued: nothing but these two.
    """

    low: float
    high: float
    two_valued: bool = False

    @property
    def of_differences(self) -> Scale:
        """Of a value minus another one."""
        return Scale(self.low - self.high, self.high - self.low)


SHARE = Scale(0.0, 1.0)
"""From nothing to all, with anything between."""
HIT = Scale(0.0, 1.0, two_valued=True)
"""0 or 1."""


def mean_intervals(
    values: Floats, scales: Sequence[Scale | None], *, alpha: float = ALPHA, seed: int = SEED
) -> Floats:
    """Two-sided intervals of column means, at level 1 - ``alpha``, rows as the sample.

    Args:
        values: (queries, columns).
        scales: one for each column; None = no known range.

    Returns:
        (columns, 2), lower and upper end; NaN with fewer than two rows.

    Raises:
        ValueError: a value outside of its scale.
    """
    n, columns = values.shape
    ends = np.full((columns, 2), np.nan)
    if n < 2:
        return ends
    for column, scale in enumerate(scales):
        if scale is not None and columns:
            _check(values[:, column], scale)
    free = [at for at, scale in enumerate(scales) if scale is None]
    counted = [at for at, scale in enumerate(scales) if scale is not None and scale.two_valued]
    bounded = [at for at, scale in enumerate(scales) if scale is not None and not scale.two_valued]
    if free:
        ends[free] = bootstrap_interval(values[:, free], alpha=alpha, seed=seed)
    for at in counted:
        low, high, _ = _known(scales[at])
        hits = int(np.count_nonzero(values[:, at] > (low + high) / 2))
        ends[at] = low + (high - low) * np.array(clopper_pearson(hits, n, alpha=alpha))
    if bounded:
        low, high = np.array([_known(scales[at])[:2] for at in bounded]).T
        ends[bounded] = gaffke(values[:, bounded], low, high, alpha=alpha)
    return ends


def bootstrap_interval(values: Floats, *, alpha: float = ALPHA, seed: int = SEED) -> Floats:
    """The middle 1 - ``alpha`` of resampled column means, (columns, 2). A small ``alpha`` takes
    more resamples, so that twenty of them lie beyond each end."""
    resamples = max(RESAMPLES, math.ceil(40 / alpha))
    means = bootstrap_means(values, seed=seed, resamples=resamples)
    return np.quantile(means, [alpha / 2, 1 - alpha / 2], axis=0).T


def clopper_pearson(hits: int, n: int, *, alpha: float = ALPHA) -> tuple[float, float]:
    """The interval of a share of which ``hits`` of ``n`` were seen: exact, so at least 1 - alpha."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, n - hits + 1, alpha / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - alpha / 2)) if hits < n else 1.0
    return low, high


def gaffke(values: Floats, low: Floats, high: Floats, *, alpha: float = ALPHA) -> Floats:
    """Gaffke's bounds of column means, each at ``alpha`` / 2, (columns, 2).

    The bound from above: every value, and the highest that there could be once more, gets an
    exponential weight; with chance ``alpha`` / 2 the weighted mean is above the bound. From below
    likewise, with the lowest.

    Args:
        values: (queries, columns), at least one row.
        low, high: (columns,), the range of the values.
    """
    rows = np.ascontiguousarray(values.T)
    return np.column_stack([-_upper(-rows, -low, alpha / 2), _upper(rows, high, alpha / 2)])


def _upper(rows: Floats, high: Floats, alpha: float) -> Floats:
    """For each row the bound above which the weighted mean is with chance ``alpha``."""
    columns, n = rows.shape
    found = np.empty(columns)
    step = max(1, _CACHED // n)
    for start in range(0, columns, step):
        part = slice(start, start + step)
        found[part] = _solved(rows[part], high[part], alpha)
    return found


def _solved(rows: Floats, high: Floats, alpha: float) -> Floats:
    from scipy.special import ndtri

    mean = rows.mean(axis=1)
    wanted = ndtri(alpha)
    # The normal quantile of p is nearly a line in the bound: secants, kept within a bracket.
    least, most = mean.copy(), high.copy()
    done = rows.min(axis=1) >= high  # all are as high as can be
    error = np.sqrt(rows.var(axis=1) / rows.shape[1])
    bound = np.minimum(mean - wanted * error + (high - mean) / rows.shape[1], (mean + high) / 2)
    before, z_before = mean.copy(), np.zeros(len(mean))
    for _ in range(_STEPS):
        inside = done | ((bound > least) & (bound < most))
        bound = np.where(inside, bound, (least + most) / 2)
        at = np.flatnonzero(~done)
        if not len(at):
            break
        p = gamma_sum_p(rows[at] - bound[at, None], high[at] - bound[at])
        z = np.full(len(mean), wanted)
        z[at] = ndtri(np.clip(p, 1e-300, 1 - 1e-16))
        least = np.where(~done & (z > wanted), bound, least)
        most = np.where(~done & (z < wanted), bound, most)
        rise = np.where(z == z_before, np.inf, (bound - before) / (z - z_before))
        following = bound + (wanted - z) * rise
        close = (np.abs(z - wanted) < 1e-6) | (most - least <= 1e-12 * (high - mean))
        before, z_before = np.where(done, before, bound), np.where(done, z_before, z)
        done |= close
        bound = np.where(done, bound, following)
    return np.where(rows.min(axis=1) >= high, high, bound)


def _known(scale: Scale | None) -> Scale:
    assert scale is not None
    return scale


def _check(values: Floats, scale: Scale) -> None:
    slack = 1e-9 * (scale.high - scale.low)
    if values.min() < scale.low - slack or values.max() > scale.high + slack:
        raise ValueError(
            f"values from {values.min():g} to {values.max():g} on a scale from {scale.low:g} to "
            f"{scale.high:g}"
        )


_CACHED = 50_000
_STEPS = 60
