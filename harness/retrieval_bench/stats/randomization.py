"""The paired randomisation test, and the intervals that it leaves: one procedure, so that an
interval excludes 0 exactly where the test rejects it.

Under the null hypothesis that the mean of the differences is t, the sign of each difference minus t
is a coin flip. A pattern of flips parts the queries into two groups, and its sum is as large as the
observed one exactly if t lies between the means of these groups. So p is the share of patterns
whose two means enclose 0, and the interval at level 1 - alpha holds every t that at least a share
of alpha of the patterns encloses: its ends are quantiles of the lower and of the higher mean.

Sources: Fisher (1935), The Design of Experiments; Smucker, Allan & Carterette (2007), CIKM; for
the inversion Tritchler (1984), Journal of the American Statistical Association 79.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.resampling import RESAMPLES, SEED

Floats = NDArray[np.float64]

EXACT_ROWS = 13
"""Up to so many queries all sign patterns are counted."""

ROUNDING = 1e-12
"""Sums and differences up to this are none."""


def signs(differences: Floats) -> NDArray[np.int64]:
    """1 where a difference is above 0, -1 where it is below, 0 where it is rounding only."""
    return np.where(np.abs(differences) <= ROUNDING, 0, np.sign(differences)).astype(np.int64)


_CELLS = 4_000_000
"""Figures that are held at once; bounds the memory of a large comparison."""


@dataclass(frozen=True, slots=True, eq=False)
class Randomization:
    """The test of pairs of systems on every metric, all with the same sign patterns.

    Signed sums of differences are differences of signed sums, so that only the systems are
    multiplied with the patterns, not the many more pairs.

    Of clusters of queries the signs are flipped, and not of queries: of each the sum counts, and
    the mean of a group is its sum over the number of its queries.

    Attributes:
        values: (systems, queries, metrics), on the scale whose mean counts; of clusters their sums.
        places: (pairs, 2), of a and b among the systems; a difference is b minus a.
        resamples: sign patterns; up to :data:`EXACT_ROWS` queries all there are.
        seed: of the patterns.
        sizes: (clusters,), queries of each; None where every query is a unit.
    """

    values: Floats
    places: NDArray[np.int64]
    resamples: int = RESAMPLES
    seed: int = SEED
    sizes: Floats | None = None

    def p(self) -> Floats:
        """Two-sided p of each pair on each metric, (pairs, metrics); 1 without a query."""
        pairs, metrics, n = len(self.places), self.values.shape[2], self.values.shape[1]
        if n == 0:
            return np.ones((pairs, metrics))
        sums, slack = self._sums()
        threshold = np.abs(sums) - slack
        extreme = np.zeros((pairs, metrics), dtype=np.int64)
        for _, signed in self._signed():
            work = np.empty(signed.shape[1:])
            for row, (a, b) in enumerate(self.places):
                np.subtract(signed[b], signed[a], out=work)
                np.abs(work, out=work)
                reached = work >= threshold[row, :, None]
                extreme[row] += [np.count_nonzero(column) for column in reached]
        patterns, observed = self._counted()
        return np.asarray((extreme + observed) / (patterns + observed))

    def intervals(self, alpha: Floats) -> Floats:
        """The means that the test does not reject, (pairs, metrics, 2); infinite where it can
        reject none, NaN without a query.

        Args:
            alpha: (pairs, metrics), 1 minus the level of each.
        """
        pairs, metrics, n = len(self.places), self.values.shape[2], self.values.shape[1]
        queries = n if self.sizes is None else self.sizes.sum()
        ends = np.full((pairs, metrics, 2), np.nan)
        if n == 0:
            return ends
        patterns, observed = self._counted()
        # p(t) is at least alpha from the rank on with which it reaches it.
        ranks = np.ceil(alpha * (patterns + observed) - observed - _EDGE).astype(np.int64)
        kept: dict[tuple[int, int], list[Floats]] = {}
        sums, slack = self._sums()
        for flips, signed in self._signed():
            for row, (a, b) in enumerate(self.places):
                lower, higher = _group_means(
                    sums[row, :, None], signed[b] - signed[a], slack[row, :, None], flips, queries
                )
                for at in range(metrics):
                    rank = int(ranks[row, at])
                    before = kept.get((row, at), [_NONE, _NONE])
                    # From above the highest are the lowest of what is negated.
                    parts = zip(before, (lower[at], -higher[at]), strict=True)
                    kept[row, at] = [_lowest(*part, rank) for part in parts]
        for (row, at), (low, high) in kept.items():
            reached = 0 < ranks[row, at] <= len(low)
            ends[row, at] = (low.max(), -high.max()) if reached else (-np.inf, np.inf)
        ends[np.abs(ends) <= ROUNDING] = 0.0
        return ends

    def _counted(self) -> tuple[int, int]:
        """Return how many patterns there are, and whether the observed one counts beside them."""
        n = self.values.shape[1]
        return (1 << n, 0) if n <= EXACT_ROWS else (self.resamples, 1)

    def _sums(self) -> tuple[Floats, Floats]:
        """The observed sums of the pairs, and what their rounding may come to."""
        n = self.values.shape[1]
        sums, sizes = self.values.sum(axis=1), np.abs(self.values).sum(axis=1)
        a, b = self.places.T
        # A sum of n terms, in whatever order, is off by less than n * (eps / 2) * sum(|terms|).
        # There are two on each side, once signed and once observed; twice that covers the rest.
        # Sums that are so close (1e-7 of 10,000 queries) and yet not equal do not matter.
        slack = ROUNDING + 2 * n * np.finfo(np.float64).eps * (sizes[a] + sizes[b])
        return sums[b] - sums[a], slack

    def _signed(self) -> Iterator[tuple[Floats, Floats]]:
        """Pieces of the patterns: of how many queries the sign stays in each, and the signed sums
        of the systems, (systems, metrics, patterns)."""
        systems, n, metrics = self.values.shape
        sizes = self.sizes
        table = np.ascontiguousarray(self.values.transpose(1, 0, 2)).reshape(n, systems * metrics)
        few = max(1, 2 * _CELLS // max(1, systems * metrics))
        for patterns in sign_patterns(n, seed=self.seed, resamples=self.resamples):
            for start in range(0, len(patterns), few):
                signs = patterns[start : start + few]
                signed = (table.T @ signs.T).reshape(systems, metrics, -1)
                stay = signs > 0
                yield stay.sum(axis=1, dtype=np.float64) if sizes is None else stay @ sizes, signed


def _group_means(
    total: Floats, signed: Floats, slack: Floats, kept: Floats, n: float
) -> tuple[Floats, Floats]:
    """The lower and the higher mean of the two groups of each pattern; infinite where one is
    empty, since such a pattern encloses every mean."""
    kept_mean, other = total + signed, total - signed
    for doubled in (kept_mean, other):
        doubled[np.abs(doubled) <= slack] = 0.0
    whole = (kept == 0) | (kept == n)
    kept_mean /= 2 * np.where(whole, 1.0, kept)
    other /= 2 * np.where(whole, 1.0, n - kept)
    kept_mean[:, whole], other[:, whole] = -np.inf, np.inf
    return np.minimum(kept_mean, other), np.maximum(kept_mean, other)


def _lowest(before: Floats, more: Floats, rank: int) -> Floats:
    """The ``rank`` lowest of those ``before`` and of ``more``, in any order; all of fewer."""
    if rank <= 0:
        return _NONE
    if len(before) == rank:  # few of later pieces are among the lowest
        more = more[more < before.max()]
    values = np.concatenate((before, more))
    return values if rank >= len(values) else np.partition(values, rank - 1)[:rank]


def randomization_p(
    differences: Floats,
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    clusters: Clusters | None = None,
) -> Floats:
    """Two-sided p-values of each column's mean against 0, (columns,); 1 where there are no rows.

    With at most :data:`EXACT_ROWS` rows all sign patterns are counted, so that p is exact;
    otherwise ``resamples`` seeded ones, and the observed pattern is one of them.

    Args:
        differences: (queries, columns).
        clusters: of the queries, where these are not independent.
    """
    differences = differences if clusters is None else clusters.sums(differences)
    values = np.stack([np.zeros_like(differences), differences])
    return np.asarray(Randomization(values, np.array([[0, 1]]), resamples, seed).p()[0])


def sign_patterns(n: int, *, seed: int = SEED, resamples: int = RESAMPLES) -> Iterator[Floats]:
    """Patterns of ``n`` coin flips, -1 or 1, in pieces of (patterns, n): all there are up to
    :data:`EXACT_ROWS`, else ``resamples``."""
    if n <= EXACT_ROWS:
        yield ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1) * np.float64(2) - 1
        return
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS // n)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        yield rng.integers(0, 2, size=(size, n), dtype=np.int8) * np.float64(2) - 1


def smallest_p(n: int) -> float:
    """Return the least p of :func:`randomization_p`, if all ``n`` differences have one sign."""
    return min(1.0, 2.0 ** (1 - n))


def fewest_rows(level: float) -> int:
    """The least n for which :func:`smallest_p` is below ``level``."""
    return math.floor(1 - math.log2(level)) + 1


_NONE: Floats = np.empty(0)
_EDGE = 1e-9
