"""Order in which queries are judged: those whose lists differ most come first, with known chances.

What a difference of two systems on one query can be at most is known before anything is judged: of
two lists that hold the same documents in the same places nothing, of lists that share nothing up
to 1 (:func:`retrieval_bench.metrics.bounds.bounds`). Queries are drawn one after the other without
replacement, each with a chance in proportion to that bound among those that are left. A difference
divided by its chance is then an unbiased estimate of the sum over all that are left, and its range
is as narrow as it can be.

Sources: Des Raj (1956), Some estimators in sampling with varying probabilities without
replacement, JASA 51: the estimate; Efraimidis & Spirakis (2006), Weighted random sampling with a
reservoir: the order by exponential keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.metrics import Metric
from retrieval_bench.metrics.bounds import List, bounds
from retrieval_bench.stats.intervals import Floats


def all_bounds(
    metric: Metric, lists: Sequence[Mapping[str, List]], query_ids: Sequence[str]
) -> Floats:
    """(pairs of systems, queries, 2), the pairs as :func:`itertools.combinations` gives them.

    Args:
        lists: of each system, by query; a query that it lacks has an empty list.
    """
    pairs = list(combinations(lists, 2))
    both_bounds = np.zeros((len(pairs), len(query_ids), 2))
    for at, (a, b) in enumerate(pairs):
        for query, query_id in enumerate(query_ids):
            both_bounds[at, query] = bounds(metric, a.get(query_id, ()), b.get(query_id, ()))
    return both_bounds


def weights(limits: Floats) -> Floats:
    """(queries,), what the chance of each is in proportion to: how far the systems can be apart,
    each pair of them by the mean over queries.

    Args:
        limits: as of :func:`all_bounds`.
    """
    most = np.abs(limits).max(axis=2)
    totals = most.sum(axis=1, keepdims=True)
    shares = np.divide(most, totals, out=np.zeros_like(most), where=totals > 0)
    return np.asarray(shares.mean(axis=0)) if len(most) else np.zeros(limits.shape[1])


def drawn_order(chances: Floats, seed: int, generation: int = 1) -> NDArray[np.int64]:
    """All queries in the order in which they are drawn; those that change nothing come last.

    Args:
        generation: another one gives another order.
    """
    rng = np.random.default_rng([seed, 1, generation])
    keys = rng.exponential(size=len(chances))
    late = np.divide(keys, chances, out=np.full(len(chances), np.inf), where=chances > 0)
    return np.lexsort((keys, late))


def estimate(values: Floats, chances: Floats, order: NDArray[np.int64], n: int) -> float:
    """Des Raj's unbiased estimate of the mean of all ``values`` after ``n`` draws.

    Each draw gives one estimate; they are averaged with weights that are fixed before anything is
    drawn, the inverse of what their variances are expected to be in proportion to.

    Args:
        values: of all queries; only those of the first ``n`` in ``order``, and those without a
            chance, which are known, are looked at.
        order: as of :func:`drawn_order`.
    """
    known = float(values[chances <= 0].sum())
    drawn = order[: int(np.count_nonzero(chances > 0))]
    if n >= len(drawn):
        return float(values.mean()) if len(values) else 0.0
    left = float(chances.sum())
    precision = 1 / np.maximum(_expected_left(chances[chances > 0], n), 1e-12) ** 2
    total = 0.0
    for at in range(n):
        query = drawn[at]
        total += precision[at] * (known + values[query] * left / chances[query])
        known += values[query]
        left -= chances[query]
    return total / float(precision.sum()) / len(values) if n else 0.0


def _expected_left(chances: Floats, n: int) -> Floats:
    """(n,), the weight that is expected to be left before each of the first ``n`` draws.

    With exponential keys a query is still there at a time t with the chance exp(-weight t).
    """
    times = np.geomspace(1e-4, 1e4, 400) / chances.mean()
    there = np.exp(-np.outer(times, chances))
    drawn = len(chances) - there.sum(axis=1)
    return np.asarray(np.interp(np.arange(n), drawn, there @ chances))
