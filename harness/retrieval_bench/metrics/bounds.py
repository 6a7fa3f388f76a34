"""How far two lists can be apart in a metric, whatever is judged relevant.

A document that both lists hold has one grade. nDCG is a ratio that is additive over layers of equal
grades, so that no assignment of grades beats the best one of 0 and 1 (:func:`_ndcg`); RR is most
where one document alone is relevant; P counts documents. Judged documents outside of both lists
only shrink a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.metrics.names import Metric

List = Sequence[str]
Bounds = tuple[float, float]
"""The lowest and the highest b minus a can be on a query."""


def bounds(metric: Metric, a: List, b: List) -> Bounds:
    """Bound ``metric`` of ``b`` minus that of ``a``, whatever is judged relevant.

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
