"""Queries in clusters, such as turns of one conversation: the cluster is the unit that is drawn,
flipped and counted; what is estimated stays the mean over queries."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Clusters of queries.

    Attributes:
        of: (queries,), the number of the cluster of each.
        sizes: (clusters,), queries of each.
    """

    of: NDArray[np.int64]
    sizes: Floats

    @classmethod
    def by(cls, labels: Sequence[Hashable] | None) -> Clusters | None:
        """Make them of a label of each query; None where no two have the same, or without any."""
        numbers: dict[Hashable, int] = {}
        of = [numbers.setdefault(label, len(numbers)) for label in labels or ()]
        if len(numbers) == len(of):
            return None
        return cls(np.array(of, dtype=np.int64), np.bincount(of).astype(np.float64))

    @classmethod
    def of_queries(cls, labels: Mapping[str, str], query_ids: Sequence[str]) -> Clusters | None:
        """Make them of the label of each query; one without is a cluster by itself. None where no
        two have the same, or without any label."""
        return cls.by([labels.get(q, f"id {q}") for q in query_ids] if labels else None)

    @property
    def n(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    def at(self, queries: NDArray[np.bool_]) -> Clusters | None:
        """Those of the ``queries`` for which it is true."""
        return self.by(self.of[queries].tolist())

    def sums(self, values: Floats) -> Floats:
        """Sums over the queries of each cluster: (..., queries, columns) to (..., clusters,
        columns)."""
        order = np.argsort(self.of, kind="stable")
        starts = np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.int64)
        return np.add.reduceat(values[..., order, :], starts, axis=-2)

    def means(self, values: Floats) -> Floats:
        """Likewise their means."""
        return np.asarray(self.sums(values) / self.sizes[:, None])


def number_of(clusters: Clusters | None) -> int | None:
    """Count ``clusters``; None where queries are independent."""
    return None if clusters is None else clusters.n
