"""Statistics of paired differences, of many systems at once: arrays in, arrays out.

A difference is b minus a, query by query. All pairs and metrics see the same resamples, so that
their figures belong together. The module knows no name, no run and no verdict.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.stats.intervals import (
    ALPHA,
    Scale,
    fitting,
    interval,
    mean_intervals,
    resamples_for,
)
from retrieval_bench.stats.power import MARGIN, ROUNDING, Moments, Needed, queries_needed
from retrieval_bench.stats.resampling import (
    EXACT_ROWS,
    RESAMPLES,
    SEED,
    bootstrap_means,
    mean_below_p,
    randomization_p,
    sign_patterns,
    student_p,
)

Floats = NDArray[np.float64]

EXTRA = ("t", "wilcoxon")
"""Further tests of a difference, beside the randomisation test."""

EQUIVALENCE = ("bound", "tost")
"""Tests of equivalence: by the bound that assumes nothing but the range, which holds always; by two
one-sided t tests, which assume that means of so many differences are normal."""

_CELLS = 4_000_000
"""Differences that are held at once; bounds the memory of a large comparison."""


@dataclass(frozen=True, slots=True, eq=False)
class PairedTests:
    """What the differences of each pair on each metric show; arrays (pairs, metrics).

    Attributes:
        n: queries of each.
        margin: that of ``p_equivalence``.
        difference: mean of b minus mean of a; 0 without a query.
        ci95: (pairs, metrics, 2), interval of the difference, at 95 % or the level that was asked
            for, see :func:`.mean_intervals`; NaN with fewer than two queries.
        p: paired randomisation test, two-sided; 1 without a query.
        effect_size: mean of the differences over their standard deviation (Cohen's d_z); NaN
            where they do not vary.
        wins, ties, losses: queries on which b is above, equal to, below a; int.
        p_equivalence: the larger p of two one-sided tests against the margin, each by
            :func:`retrieval_bench.stats.resampling.mean_below_p`; 1 without a query.
        extra: test of :data:`EXTRA` -> its two-sided p; 1 where all queries tie.
        moments: of the differences, pair by pair: what :meth:`queries_needed` goes by.
    """

    n: int
    margin: float
    difference: Floats
    ci95: Floats
    p: Floats
    effect_size: Floats
    wins: NDArray[np.int64]
    ties: NDArray[np.int64]
    losses: NDArray[np.int64]
    p_equivalence: Floats
    extra: Mapping[str, Floats]
    moments: Moments

    def queries_needed(
        self, alpha: ArrayLike, *, equivalence_alpha: ArrayLike | None = None
    ) -> list[list[Needed]]:
        """As :func:`.queries_needed`, for each pair and metric; a level is one for all
        or (pairs, metrics)."""
        shape = self.difference.shape
        levels = [
            np.broadcast_to(np.asarray(level, dtype=np.float64), shape).ravel()
            for level in (alpha, alpha if equivalence_alpha is None else equivalence_alpha)
        ]
        flat = queries_needed(
            self.moments, levels[0], margin=self.margin, equivalence_alpha=levels[1]
        )
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
    alpha: float = ALPHA,
    equivalence: str = EQUIVALENCE[0],
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
        alpha: 1 minus the level of each interval.
        equivalence: of :data:`EQUIVALENCE`.
    """
    places = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    n, metrics = values.shape[1:]
    columns: dict[str, Callable[[Floats], Floats]] = {
        "equivalence": lambda d: _EQUIVALENCE_P[equivalence](d, margin)
    }
    columns |= {name: _EXTRA_P[name] for name in extra}
    if n <= EXACT_ROWS:
        columns["p"] = randomization_p
    moments: list[Moments] = []
    found: dict[str, list[Floats]] = {name: [] for name in columns}
    step = max(1, _CELLS // max(1, n * metrics))
    if n <= EXACT_ROWS:  # each difference is added up in every sign pattern
        step = max(1, min(step, 4 * _CELLS // (metrics << n)))
    for start in range(0, max(1, len(places)), step):
        a, b = places[start : start + step].T
        d = (values[b] - values[a]).transpose(1, 0, 2).reshape(n, len(a) * metrics)
        d[np.abs(d) <= ROUNDING] = 0.0
        moments.append(Moments.of(d))
        for name, column in columns.items():
            found[name].append(column(d))
    shape = (len(places), metrics)
    p = {name: np.concatenate(parts).reshape(shape) for name, parts in found.items()}
    m = Moments.joined(moments)
    sd = np.sqrt(m.variance * (n / max(1, n - 1)))
    effect = np.where(sd > 0, m.mean / np.where(sd > 0, sd, 1.0), np.nan)
    return PairedTests(
        n,
        margin,
        m.mean.reshape(shape),
        _intervals(values, places, scales or [None] * metrics, alpha, seed),
        p["p"] if n <= EXACT_ROWS else _sampled_p(values, places, resamples, seed),
        effect.reshape(shape),
        m.above.reshape(shape),
        (n - m.above - m.below).reshape(shape),
        m.below.reshape(shape),
        p["equivalence"],
        {name: p[name] for name in extra},
        m,
    )


def _intervals(
    values: Floats,
    places: NDArray[np.int64],
    scales: Sequence[Scale | None],
    alpha: float,
    seed: int,
) -> Floats:
    """Of each pair on each metric. Where no range is known: differences of resampled means, so that
    only the systems are resampled, not the many more pairs."""
    systems, n, metrics = values.shape
    ends = np.full((len(places), metrics, 2), np.nan)
    if n < 2 or not len(places):
        return ends
    known = [fitting(scale, values[:, :, at]) for at, scale in enumerate(scales)]
    step = max(1, _CELLS // n)
    for at, scale in enumerate(known):
        for start in range(0, len(places) if scale else 0, step):
            a, b = places[start : start + step].T
            d = (values[b, :, at] - values[a, :, at]).T
            of_pairs = [scale and scale.of_differences] * len(a)
            ends[start : start + step, at] = mean_intervals(d, of_pairs, alpha=alpha)
    free = [at for at, scale in enumerate(known) if scale is None]
    if free:
        flat = _side_by_side(values[:, :, free])
        means = bootstrap_means(flat, seed=seed, resamples=resamples_for(alpha))
        means = np.ascontiguousarray(means.T).reshape(systems, len(free), -1)
        for row, (i, j) in enumerate(places):
            ends[row, free] = interval((means[j] - means[i]).T, alpha)
    ends[np.abs(ends) <= ROUNDING] = 0.0
    return ends


def _sampled_p(values: Floats, places: NDArray[np.int64], resamples: int, seed: int) -> Floats:
    """As :func:`.randomization_p` for every pair, with the same sign patterns.

    Signed sums of differences are differences of signed sums, so that only the systems are
    multiplied with the patterns. Their rounding is not that of the differences: of two systems
    that are equal on most queries large sums are subtracted.
    """
    systems, n, metrics = values.shape
    table = _side_by_side(values)
    sums = table.sum(axis=0).reshape(systems, metrics)
    sizes = np.abs(table).sum(axis=0).reshape(systems, metrics)
    a, b = places.T
    # A sum of n terms, added in whatever order, is off by less than n * (eps / 2) * sum(|terms|).
    # There are two on each side, once signed and once observed; twice that covers the rest. Sums
    # that are so close (1e-7 of 10,000 queries) and yet not equal do not matter.
    rounding = 2 * n * np.finfo(np.float64).eps * (sizes[a] + sizes[b])
    threshold = np.abs(sums[b] - sums[a]) - ROUNDING - rounding
    extreme = np.zeros((len(places), metrics), dtype=np.int64)
    few = max(1, 2 * _CELLS // max(1, systems * metrics))
    pieces = (
        patterns[start : start + few]
        for patterns in sign_patterns(n, seed=seed, resamples=resamples)
        for start in range(0, len(patterns), few)
    )
    for signs in pieces:
        signed = (table.T @ signs.T).reshape(systems, metrics, -1)
        work = np.empty(signed.shape[1:])
        for row, (i, j) in enumerate(places):
            np.subtract(signed[j], signed[i], out=work)
            np.abs(work, out=work)
            reached = work >= threshold[row, :, None]
            extreme[row] += [np.count_nonzero(column) for column in reached]
    return np.asarray((extreme + 1) / (resamples + 1))


def _side_by_side(values: Floats) -> Floats:
    """(systems, queries, metrics) as (queries, systems * metrics)."""
    systems, n, metrics = values.shape
    return np.ascontiguousarray(values.transpose(1, 0, 2)).reshape(n, systems * metrics)


def tost_p(differences: Floats, margin: float = MARGIN) -> Floats:
    """As :func:`equivalence_p`, by two one-sided t tests: too sure of itself where differences are
    few, or rare and large. p is 1 with fewer than two queries; without any spread, 0 or 1.

    Source: Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15.
    """
    n, columns = differences.shape
    if n < 2:
        return np.ones(columns)
    error = differences.std(axis=0, ddof=1) / np.sqrt(n)
    distance = np.abs(differences.mean(axis=0)) - margin
    return student_p(distance, error, n - 1)


def equivalence_p(differences: Floats, margin: float = MARGIN) -> Floats:
    """p-values that each column's mean is less than ``margin`` away from 0, (columns,): the larger
    of two one-sided tests (:func:`retrieval_bench.stats.resampling.mean_below_p`).

    A query that was not seen may differ by 1, or by as much as any seen one if that is more: that
    many ties in a row prove little (about 300 show a mean below 0.01).

    Args:
        differences: (queries, columns); p is 1 where there are none.
        margin: above 0 and below 1.
    """
    n, columns = differences.shape
    if n == 0:
        return np.ones(columns)
    largest = np.maximum(1.0, np.abs(differences).max(axis=0))
    return np.maximum(
        mean_below_p(differences, margin, largest), mean_below_p(-differences, margin, largest)
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
