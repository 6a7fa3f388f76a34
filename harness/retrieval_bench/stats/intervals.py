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
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.percentiles import quantiles
from retrieval_bench.stats.resampling import RESAMPLES, SEED, bootstrap_means, gamma_sum_p

Floats = NDArray[np.float64]

ALPHA = 0.05
"""Of an interval that is not corrected for others beside it: 95 %."""


class Scale(NamedTuple):
    """Range of the value of one query.

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


def graded(scale: Scale | None) -> Scale | None:
    """``scale`` for means over several of its values."""
    return scale and scale._replace(two_valued=False)


def method(scale: Scale | None) -> str:
    """The name of what :func:`mean_intervals` does for a column."""
    if scale is None:
        return "percentile bootstrap"
    return "Clopper-Pearson" if scale.two_valued else "Gaffke's bound"


def methods(scales: Iterable[Scale | None]) -> str:
    """The names for several columns, each once, in words."""
    return " and ".join(dict.fromkeys(map(method, scales)))


def levels_text(levels: Iterable[float]) -> str:
    """Levels of intervals as "95 %", of several from the lowest to the highest."""
    shown = dict.fromkeys(f"{100 * level:.4g}" for level in sorted(levels))
    return " to ".join(list(shown)[:: max(1, len(shown) - 1)]) + " %"


def bracket(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 minus the level of the intervals of all pairs, one for each metric: of ``p`` after Holm,
    (pairs, metrics), as is what is returned.

    It is the level of the first p that he does not reject, and so above every p that he does, and
    no higher than any other: an interval excludes 0 exactly where he rejects.
    """
    decided = np.count_nonzero(p < ALPHA, axis=0)
    return np.broadcast_to(ALPHA / np.maximum(1, len(p) - decided), p.shape)


def as_far_as(alpha: NDArray[np.float64], equivalence: NDArray[np.float64]) -> NDArray[np.float64]:
    """p of equivalence, doubled and corrected as far as intervals of level 1 - ``alpha`` are: below
    5 % exactly where both one-sided tests reject at half of ``alpha``."""
    return np.minimum(1.0, 2 * equivalence * ALPHA / alpha)


def mean_intervals(
    values: Floats,
    scales: Sequence[Scale | None],
    *,
    alpha: float = ALPHA,
    seed: int = SEED,
    clusters: Clusters | None = None,
    sizes: Floats | None = None,
) -> Floats:
    """Two-sided intervals of column means, at level 1 - ``alpha``, rows as the sample.

    Args:
        values: (queries, columns).
        clusters: of the queries, where these are not independent: the mean is over queries, the
            sample are clusters, none of which is larger than the largest here. Their means have
            more than two values.
        sizes: (rows,), where each row is the mean of a cluster of so many queries already.
        scales: one for each column; None = no known range. Of a two-valued one every value above
            the middle counts as the higher.

    Returns:
        (columns, 2), lower and upper end; NaN with fewer than two rows.
    """
    if clusters is not None:
        values, sizes = clusters.means(values), clusters.sizes
    n, columns = values.shape
    ends = np.full((columns, 2), np.nan)
    if n < 2:
        return ends
    # A value outside of the range proves that the range is not known.
    scales = [fitting(scale, column) for scale, column in zip(scales, values.T, strict=True)]
    unknown = [at for at, scale in enumerate(scales) if scale is None]
    if sizes is not None:
        scales = [graded(scale) for scale in scales]
    counted = [at for at, scale in enumerate(scales) if scale is not None and scale.two_valued]
    bounded = [at for at, scale in enumerate(scales) if scale is not None and not scale.two_valued]
    if unknown:
        resampled = bootstrap_means(
            values[:, unknown], seed=seed, resamples=resamples_for(alpha), sizes=sizes
        )
        ends[unknown] = interval(resampled, alpha)
    for at in counted:
        low, high, _ = _known(scales[at])
        hits = int(np.count_nonzero(values[:, at] > (low + high) / 2))
        ends[at] = low + (high - low) * np.array(clopper_pearson(hits, n, alpha=alpha))
    if bounded:
        low, high = np.array([_known(scales[at])[:2] for at in bounded]).T
        ends[bounded] = gaffke(values[:, bounded], low, high, alpha=alpha, sizes=sizes)
    return ends


def mean_interval(
    values: Floats, scale: Scale | None, *, clusters: Clusters | None = None
) -> tuple[float, float] | None:
    """The interval of the mean of ``values`` (queries,), None where there are too few."""
    low, high = mean_intervals(values[:, None], [scale], clusters=clusters)[0].tolist()
    return None if math.isnan(low) else (low, high)


def interval(resampled: Floats, alpha: float = ALPHA) -> Floats:
    """The middle 1 - ``alpha`` of each column of ``resampled``, (columns, 2)."""
    ends: Floats = quantiles(resampled, [alpha / 2, 1 - alpha / 2], axis=0)
    return ends.T


def resamples_for(alpha: float) -> int:
    """So many that twenty of them lie beyond each end of the middle 1 - ``alpha``."""
    return max(RESAMPLES, math.ceil(40 / alpha))


def clopper_pearson(hits: int, n: int, *, alpha: float = ALPHA) -> tuple[float, float]:
    """The exact interval of a share of which ``hits`` of ``n`` were seen."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, n - hits + 1, alpha / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - alpha / 2)) if hits < n else 1.0
    return low, high


def gaffke(
    values: Floats,
    low: Floats,
    high: Floats,
    *,
    alpha: float = ALPHA,
    sizes: Floats | None = None,
) -> Floats:
    """Gaffke's bounds of column means, each at ``alpha`` / 2, (columns, 2).

    The bound from above: every value, and the highest that there could be once more, gets an
    exponential weight; with chance ``alpha`` / 2 the weighted mean is above the bound. From below
    likewise, with the lowest.

    Args:
        values: (queries, columns), at least one row.
        low, high: (columns,), the range of the values.
        sizes: (rows,), as of :func:`mean_intervals`: what a row is above the bound counts so often.
    """
    rows = np.ascontiguousarray(values.T)
    shares = np.ones(len(values)) if sizes is None else sizes / sizes.mean()
    below, above = (
        _upper(side, end, alpha / 2, shares) for side, end in ((-rows, -low), (rows, high))
    )
    return np.column_stack([-below, above])


def _upper(rows: Floats, high: Floats, alpha: float, shares: Floats) -> Floats:
    """For each row the bound above which the weighted mean is with chance ``alpha``."""
    columns, n = rows.shape
    upper = np.empty(columns)
    step = max(1, _CACHED // n)
    for start in range(0, columns, step):
        part = slice(start, start + step)
        upper[part] = _solved(rows[part], high[part], alpha, shares)
    return upper


def _solved(rows: Floats, high: Floats, alpha: float, shares: Floats) -> Floats:
    from scipy.special import ndtri

    rows = np.minimum(rows, high[:, None])
    mean, wanted = (rows * shares).mean(axis=1), ndtri(alpha)
    largest = shares.max()
    full = high - rows.min(axis=1) <= _ROUNDING  # all are as high as can be
    # The normal quantile of p is nearly a line in the bound: secants, kept within a bracket.
    least, most = mean.copy(), high.copy()
    done = full.copy()
    error = np.sqrt(rows.var(axis=1) / rows.shape[1])
    bound = np.minimum(mean - wanted * error + (high - mean) / rows.shape[1], (mean + high) / 2)
    before, z_before = mean.copy(), np.zeros(len(mean))
    for _ in range(_STEPS):
        inside = done | ((bound > least) & (bound < most))
        bound = np.where(inside, bound, (least + most) / 2)
        at = np.flatnonzero(~done)
        if not len(at):
            break
        p = gamma_sum_p(shares * (rows[at] - bound[at, None]), largest * (high[at] - bound[at]))
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
    return np.where(full, high, bound)


def _known(scale: Scale | None) -> Scale:
    assert scale is not None
    return scale


def fitting(scale: Scale | None, values: Floats) -> Scale | None:
    """``scale``, or None where ``values`` show that it is not theirs."""
    if scale is None:
        return None
    slack = _ROUNDING * (scale.high - scale.low)
    inside = values.min() >= scale.low - slack and values.max() <= scale.high + slack
    return scale if inside else None


_CACHED = 50_000
_ROUNDING = 1e-7
"""Nearer than this values are equal; ranges are 1 to 100 wide."""
_STEPS = 60
