"""Statistics of paired differences, of many systems at once: arrays in, arrays out.

A difference is b minus a, query by query. All pairs and metrics see the same resamples, so that
their figures belong together. The module knows no name, no run and no verdict. Where queries come
in clusters, these are what is tested and counted; differences and wins are of queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.defaults import EQUIVALENCE, EXTRA, MARGIN
from retrieval_bench.stats.intervals import Scale, fitting, mean_intervals
from retrieval_bench.stats.power import Moments, Needed, queries_needed
from retrieval_bench.stats.randomization import ROUNDING, Randomization
from retrieval_bench.stats.resampling import RESAMPLES, SEED, mean_below_p, student_p

Floats = NDArray[np.float64]

_CELLS = 4_000_000
"""Differences that are held at once; bounds the memory of a large comparison."""


@dataclass(frozen=True, slots=True, eq=False)
class PairedTests:
    """Tests of the differences of each pair on each metric; arrays (pairs, metrics).

    Attributes:
        n: queries of each.
        units: what is independent: clusters, else queries.
        margin: that of ``p_equivalence``.
        difference: mean of b minus mean of a; 0 without a query.
        p: paired randomisation test, two-sided; 1 without a query.
        effect_size: mean of the differences over their standard deviation (Cohen's d_z); NaN
            where they do not vary.
        wins, ties, losses: queries on which b is above, equal to, below a; int.
        p_equivalence: the larger p of two one-sided tests against the margin, each by
            :func:`retrieval_bench.stats.resampling.mean_below_p`; 1 without a query.
        extra: test of :data:`EXTRA` -> its two-sided p; 1 where all queries tie.
        weighty: how many units carry the difference, each by its share: (sum |d|)^2 / sum d^2.
        moments: of the differences of units, pair by pair: what :meth:`queries_needed` goes by.
        test: what gives p, and the intervals.
        scales: what the values of each metric can be; None where no range is known.
    """

    n: int
    units: int
    margin: float
    difference: Floats
    p: Floats
    effect_size: Floats
    wins: NDArray[np.int64]
    ties: NDArray[np.int64]
    losses: NDArray[np.int64]
    p_equivalence: Floats
    extra: Mapping[str, Floats]
    weighty: Floats
    moments: Moments
    test: Randomization
    scales: Sequence[Scale | None]

    @property
    def clusters(self) -> int | None:
        """Number of clusters; None where queries are independent."""
        return None if self.test.sizes is None else self.units

    def intervals(self, alpha: Floats) -> Floats:
        """The inverted randomisation test, (pairs, metrics, 2): 0 is outside exactly where p is
        below alpha. The range of a difference, or NaN, where the queries are too few for any end.

        Args:
            alpha: (pairs, metrics), 1 minus the level of each.
        """
        if self.units < 2:
            return np.full((*self.difference.shape, 2), np.nan)
        ends = self.test.intervals(alpha)
        ranges = [scale.of_differences[:2] if scale else (np.nan, np.nan) for scale in self.scales]
        return np.where(np.isinf(ends), np.array(ranges), ends)

    def bounds(self, alpha: Floats) -> Floats:
        """Gaffke's bound, (pairs, metrics, 2), wider for it assumes nothing but the range; NaN
        where that is not known, or with fewer than two queries."""
        ends, sizes = np.full((*self.difference.shape, 2), np.nan), self.test.sizes
        for level in np.unique(alpha):
            for at, scale in enumerate(self.scales):
                rows = np.flatnonzero(alpha[:, at] == level)
                step = max(1, _CELLS // max(1, self.units))
                for start in range(0, len(rows) if scale else 0, step):
                    part = rows[start : start + step]
                    a, b = self.test.places[part].T
                    d = (self.test.values[b, :, at] - self.test.values[a, :, at]).T
                    d = d if sizes is None else d / sizes[:, None]
                    of_pairs = [scale and scale.of_differences] * len(part)
                    ends[part, at] = mean_intervals(d, of_pairs, alpha=float(level), sizes=sizes)
        ends[np.abs(ends) <= ROUNDING] = 0.0
        return ends

    def queries_needed(
        self, alpha: ArrayLike, *, equivalence_alpha: ArrayLike | None = None
    ) -> list[list[Needed]]:
        """Compute :func:`.queries_needed` for each pair and metric, in queries; a level is one for
        all or (pairs, metrics)."""
        shape = self.difference.shape
        levels = [
            np.broadcast_to(np.asarray(level, dtype=np.float64), shape).ravel()
            for level in (alpha, alpha if equivalence_alpha is None else equivalence_alpha)
        ]
        flat = queries_needed(
            self.moments, levels[0], margin=self.margin, equivalence_alpha=levels[1]
        )
        if self.units < self.n:
            flat = [needed.of_clusters(self.n / self.units) for needed in flat]
        pairs, metrics = shape
        return [flat[row * metrics : (row + 1) * metrics] for row in range(pairs)]


def paired_tests(
    values: Floats,
    pairs: ArrayLike,
    *,
    margin: float = MARGIN,
    extra: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = SEED,
    scales: Sequence[Scale | None] = (),
    equivalence: str = EQUIVALENCE[0],
    clusters: Clusters | None = None,
) -> PairedTests:
    """Tests of every pair on every metric.

    Args:
        values: (systems, queries, metrics), on the scale whose arithmetic mean counts; queries in
            an order that does not depend on how they were given.
        pairs: (pairs, 2), places of a and b among the systems.
        margin: up to this absolute difference of means two systems are as good as equal.
        extra: further tests, of :data:`EXTRA`.
        resamples: sign patterns of the randomisation test.
        scales: what the values of each metric can be; without, no range is known.
        equivalence: of :data:`EQUIVALENCE`.
        clusters: of the queries; None where each is independent of all others.
    """
    places = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    n, metrics = values.shape[1:]
    sizes = None if clusters is None else clusters.sizes
    units = n if clusters is None else clusters.n
    columns: dict[str, Callable[[Floats], Floats]] = {"weighty": _weighty}
    columns |= {name: _EXTRA_P[name] for name in extra}
    moments: list[Moments] = []
    of_units: list[Moments] = []
    columns_of: dict[str, list[Floats]] = {name: [] for name in ("equivalence", *columns)}
    step = max(1, _CELLS // max(1, n * metrics))
    for start in range(0, max(1, len(places)), step):
        a, b = places[start : start + step].T
        d = (values[b] - values[a]).transpose(1, 0, 2).reshape(n, len(a) * metrics)
        d[np.abs(d) <= ROUNDING] = 0.0
        moments.append(Moments.of(d))
        if clusters is not None:
            mean, d = d.mean(axis=0), clusters.sums(d) * (units / n)
            # What moves a mean over queries: a cluster's sum less that of so many average queries.
            of_units.append(Moments.of(d + mean * (1 - clusters.sizes[:, None] * (units / n))))
        columns_of["equivalence"].append(_EQUIVALENCE_P[equivalence](d, margin, sizes))
        for name, column in columns.items():
            columns_of[name].append(column(d))
    shape = (len(places), metrics)
    p = {name: np.concatenate(parts).reshape(shape) for name, parts in columns_of.items()}
    m = Moments.joined(moments)
    sd = np.sqrt(m.variance * (n / max(1, n - 1)))
    grouped = values if clusters is None else clusters.sums(values)
    test = Randomization(grouped, places, resamples, seed, sizes)
    effect = np.where(sd > 0, m.mean / np.where(sd > 0, sd, 1.0), np.nan)
    return PairedTests(
        n,
        units,
        margin,
        m.mean.reshape(shape),
        test.p(),
        effect.reshape(shape),
        m.above.reshape(shape),
        (n - m.above - m.below).reshape(shape),
        m.below.reshape(shape),
        p["equivalence"],
        {name: p[name] for name in extra},
        p["weighty"],
        Moments.joined(of_units) if of_units else m,
        test,
        [
            fitting(scale, values[:, :, at]) if n else None
            for at, scale in enumerate(scales or [None] * metrics)
        ],
    )


def _weighty(differences: Floats) -> Floats:
    squares = (differences**2).sum(axis=0)
    shares = np.abs(differences).sum(axis=0) ** 2 / np.where(squares > 0, squares, 1.0)
    return np.asarray(shares)


def tost_p(differences: Floats, margin: float = MARGIN, sizes: Floats | None = None) -> Floats:
    """Test equivalence as :func:`equivalence_p`, by two one-sided t tests: too sure of itself where
    differences are few, or rare and large. p is 1 with fewer than two queries; without any spread,
    0 or 1.

    Args:
        sizes: as of :func:`equivalence_p`.

    Source: Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15.
    """
    n, columns = differences.shape
    if n < 2:
        return np.ones(columns)
    mean = differences.mean(axis=0)
    around = mean if sizes is None else mean * (sizes / sizes.mean())[:, None]
    error = np.sqrt(((differences - around) ** 2).sum(axis=0) / (n - 1) / n)
    distance = np.abs(mean) - margin
    return student_p(distance, error, n - 1)


def equivalence_p(
    differences: Floats, margin: float = MARGIN, sizes: Floats | None = None
) -> Floats:
    """p-values that each column's mean is less than ``margin`` away from 0, (columns,): the larger
    of two one-sided tests (:func:`retrieval_bench.stats.resampling.mean_below_p`).

    A query that was not seen may differ by 1, or by as much as any seen one if that is more: that
    many ties in a row prove little (about 300 show a mean below 0.01).

    Args:
        differences: (queries, columns); p is 1 where there are none.
        margin: above 0 and below 1.
        sizes: (rows,), where each row is the sum of a cluster of so many queries, over the queries
            of an average one: a cluster that was not seen is no larger than the largest.
    """
    n, columns = differences.shape
    if n == 0:
        return np.ones(columns)
    shares = np.ones(n) if sizes is None else sizes / sizes.mean()
    largest = np.maximum(1.0, np.abs(differences / shares[:, None]).max(axis=0))
    most, beyond = shares.max() * (largest - margin), margin * (shares[:, None] - 1)
    return np.maximum(
        mean_below_p(differences - beyond, margin, most + margin),
        mean_below_p(-differences - beyond, margin, most + margin),
    )


def _t_p(differences: Floats) -> Floats:
    from scipy.stats import ttest_1samp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one query, or no variance
        p = np.asarray(ttest_1samp(differences, 0.0, axis=0).pvalue, dtype=np.float64)
    return np.where(np.isnan(p), 1.0, p)


def _wilcoxon_p(differences: Floats) -> Floats:
    from scipy.stats import wilcoxon

    p = np.ones(differences.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ties and zeros: which p is taken then
        for i, column in enumerate(differences.T.round(12)):  # equal sizes get equal ranks
            if column.any():
                p[i] = wilcoxon(column).pvalue
    return p


_EQUIVALENCE_P = dict(zip(EQUIVALENCE, (equivalence_p, tost_p), strict=True))
_EXTRA_P = dict(zip(EXTRA, (_t_p, _wilcoxon_p), strict=True))
