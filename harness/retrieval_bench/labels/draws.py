"""Which query is judged next: those whose lists differ most come first, with known chances.

What a difference of two systems on one query can be at most is known before anything is judged: of
two lists that hold the same documents in the same places nothing, of lists that share nothing up
to 1. Queries are drawn one after the other without replacement, each with a chance in proportion
to that bound among those that are left. A difference divided by its chance is then an unbiased
estimate of the sum over all that are left, and its range is as narrow as it can be.

Bounds: nDCG is a ratio that is additive over layers of equal grades, so that no assignment of
grades beats the best one of 0 and 1 (:func:`_ndcg`); RR is most where one document alone is
relevant; P counts documents. Judged documents outside of both lists only shrink a difference.

Sources: Des Raj (1956), Some estimators in sampling with varying probabilities without
replacement, JASA 51: the estimate; Efraimidis & Spirakis (2006), Weighted random sampling with a
reservoir: the order by exponential keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.metrics import Metric
from retrieval_bench.stats.intervals import Floats

List = Sequence[str]
Bounds = tuple[float, float]
"""The lowest and the highest b minus a can be on a query."""


def bounds(metric: Metric, a: List, b: List) -> Bounds:
    """What ``metric`` of ``b`` minus that of ``a`` can be, whatever is judged relevant.

    Raises:
        ConfigError: the values of the metric have no known range.
    """
    if metric.scale is None:
        raise ConfigError(
            f"metric {metric} to decide by",
            where="--metric",
            accepted="a metric whose values have a known range, such as nDCG@10",
            fix="name another one",
        )
    if metric.cut is not None:
        a, b = a[: metric.cut], b[: metric.cut]
    if list(a) == list(b):
        return 0.0, 0.0
    known = _KNOWN.get(metric.name)
    if known is None or str(metric) != f"{metric.name}@{metric.cut}":
        return metric.scale.of_differences[:2]
    return -known(b, a, metric.cut or len(a)), known(a, b, metric.cut or len(a))


def _ndcg(a: List, b: List, cut: int) -> float:
    """The most that nDCG of ``b`` can be above that of ``a``."""
    discounts = 1 / np.log2(np.arange(2, cut + 2))
    gains: dict[str, float] = {}
    for sign, documents in ((-1.0, a), (1.0, b)):
        for document, discount in zip(documents, discounts, strict=False):
            gains[document] = gains.get(document, 0.0) + sign * float(discount)
    best = np.cumsum(sorted(gains.values(), reverse=True))
    ideal = np.cumsum(discounts)[np.minimum(np.arange(len(best)), cut - 1)]
    return max(0.0, float((best / ideal).max())) if len(best) else 0.0


def _rr(a: List, b: List, cut: int) -> float:  # noqa: ARG001 - one signature for all
    """The most that RR of ``b`` can be above that of ``a``."""
    ranks = {document: rank for rank, document in enumerate(a, start=1)}
    gains = [
        1 / rank - (1 / ranks[document] if document in ranks else 0.0)
        for rank, document in enumerate(b, start=1)
    ]
    return max(0.0, *gains) if gains else 0.0


def _p(a: List, b: List, cut: int) -> float:
    """The most that P of ``b`` can be above that of ``a``."""
    return len(set(b) - set(a)) / cut


def _found(a: List, b: List, cut: int) -> float:  # noqa: ARG001
    """The most that recall or success of ``b`` can be above that of ``a``."""
    return 1.0 if set(b) - set(a) else 0.0


_KNOWN: Mapping[str, Callable[[List, List, int], float]] = {
    "nDCG": _ndcg,
    "RR": _rr,
    "P": _p,
    "R": _found,
    "Success": _found,
}
"""By name of a metric without parameters; of any other one the whole range counts."""


def all_bounds(
    metric: Metric, lists: Sequence[Mapping[str, List]], query_ids: Sequence[str]
) -> Floats:
    """(pairs of systems, queries, 2), the pairs as :func:`itertools.combinations` gives them.

    Args:
        lists: of each system, by query; a query that it lacks has an empty list.
    """
    pairs = list(combinations(lists, 2))
    found = np.zeros((len(pairs), len(query_ids), 2))
    for at, (a, b) in enumerate(pairs):
        for query, query_id in enumerate(query_ids):
            found[at, query] = bounds(metric, a.get(query_id, ()), b.get(query_id, ()))
    return found


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
