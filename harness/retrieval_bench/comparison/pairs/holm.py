"""Holm's correction over all pairs of a table, metric by metric, and what decides them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.stats.intervals import bracket
from retrieval_bench.stats.paired import PairedTests
from retrieval_bench.stats.power import Needed
from retrieval_bench.stats.resampling import holm

QUALITY_ALPHA = 0.05
"""Level of a difference in quality, after Holm."""

Pair = tuple[int, int]
"""Places of a and b among the runs."""


@dataclass(frozen=True, slots=True, eq=False)
class Corrected:
    """Holm's correction of the p-values of all pairs, metric by metric; arrays (pairs, metrics).

    Attributes:
        p, equivalence, tests: corrected.
        level: what he holds each p against.
        bracket: 1 minus the level of all intervals, see :func:`bracket`.
    """

    p: NDArray[np.float64]
    level: NDArray[np.float64]
    bracket: NDArray[np.float64]
    tests: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, paired_tests: Sequence[PairedTests]) -> Corrected:
        """Correct over the pairs of all tests together."""
        if not paired_tests:
            nothing = np.empty((0, 0))
            return cls(nothing, nothing, nothing, {})
        names = paired_tests[0].extra
        p, level = corrected([part.p for part in paired_tests])
        return cls(
            p,
            level,
            bracket(p),
            {name: corrected([part.extra[name] for part in paired_tests])[0] for name in names},
        )

    def rows(self, start: int, end: int) -> Corrected:
        """The rows of the pairs from ``start`` to ``end``."""
        return Corrected(
            self.p[start:end],
            self.level[start:end],
            self.bracket[start:end],
            {name: p[start:end] for name, p in self.tests.items()},
        )


def with_larger(
    block: Sequence[Pair], paired_tests: PairedTests, again: Mapping[Pair, PairedTests | None]
) -> PairedTests:
    """``paired_tests`` with the larger p where ``again`` has another one, so that a p that rests on
    failures rejects nothing; 1 where nothing was answered."""
    p = paired_tests.p.copy()
    extra = {name: of_test.copy() for name, of_test in paired_tests.extra.items()}
    for row, pair in enumerate(block):
        if pair in again:
            other = again[pair]
            p[row] = 1.0 if other is None else np.maximum(p[row], other.p[0])
            for name, own in extra.items():
                own[row] = 1.0 if other is None else np.maximum(own[row], other.extra[name][0])
    return replace(paired_tests, p=p, extra=extra)


def corrected(
    parts: Sequence[NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Holm's p of all ``parts`` together, each (pairs, metrics), and the level that he holds each
    of them against."""
    p = np.concatenate(parts)
    rank = np.empty(p.shape, dtype=np.int64)
    order = np.argsort(p, axis=0, kind="stable")
    np.put_along_axis(rank, order, np.arange(len(p))[:, None], axis=0)
    adjusted = np.column_stack([holm(column) for column in p.T])
    return adjusted, QUALITY_ALPHA / (len(p) - rank)


def stepped(needed: Sequence[Sequence[Needed]], part: Corrected) -> list[list[Needed]]:
    """Holm decides a pair only once he has decided all with a smaller p: none needs fewer queries
    to show a difference than one before it; where one before it is hopeless, so is the pair."""
    made = [list(row) for row in needed]
    for column in range(part.p.shape[1]):
        most: int | None = 0
        for row in np.argsort(part.level[:, column], kind="stable"):
            own = made[row][column].difference
            most = None if own is None or most is None else max(most, own)
            made[row][column] = replace(made[row][column], difference=most)
    return made
