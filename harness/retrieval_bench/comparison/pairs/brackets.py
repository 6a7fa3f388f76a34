"""The interval of a difference: the randomisation test inverted at the one level that Holm leaves
to a table, so that it excludes 0 exactly where the word is better or worse; decision record
0049."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA
from retrieval_bench.stats.paired import PairedTests

Ends = tuple[float, float] | None

WEIGHTY = 15
"""So many queries must carry a difference for its interval to hold 95 % (93 % in the study)."""


class Bracket(NamedTuple):
    """Interval of one pair on one metric.

    Attributes:
        ci: the means that the test does not reject; None where it can reject none.
        level: of ``ci`` and ``bound``.
        bound: Gaffke's interval; where fewer than :data:`WEIGHTY` queries carry the difference,
            or where only ``ci`` is within the margin.
        within: whether the difference is shown to be within the margin.
        few: fewer than :data:`WEIGHTY` queries carry the difference.
    """

    ci: Ends
    level: float
    bound: Ends
    within: bool
    few: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Brackets:
    """Intervals of all pairs and metrics.

    Attributes:
        found: the tests.
        alpha: 1 minus the level of each, (pairs, metrics).
        ends, bounds: by the test, and by Gaffke's bound.
    """

    found: PairedTests
    alpha: NDArray[np.float64]
    ends: NDArray[np.float64]
    bounds: NDArray[np.float64]

    @classmethod
    def of(cls, paired_tests: PairedTests, alpha: NDArray[np.float64]) -> Brackets:
        """Worked out at ``alpha``."""
        return cls(paired_tests, alpha, paired_tests.intervals(alpha), paired_tests.bounds(alpha))

    def at(self, place: tuple[int, int], p_equivalence: float = 1.0) -> Bracket:
        """The bracket of one pair on one metric.

        Args:
            p_equivalence: of the pair, below 5 % where the bound is within the margin.
        """
        ends, bound = _pair(self.ends[place]), _pair(self.bounds[place])
        margin = self.found.margin
        inside = ends is not None and -margin < ends[0] and ends[1] < margin
        within = inside and bool(p_equivalence < QUALITY_ALPHA)
        few = bool(self.found.weighty[place] < WEIGHTY)
        if not few and within == inside:
            bound = None
        return Bracket(ends, 1 - float(self.alpha[place]), bound, within, few)


def hull(ends: Ends, other: Ends) -> Ends:
    """The least interval that holds both; None where there is one of them only."""
    return ends and other and (min(ends[0], other[0]), max(ends[1], other[1]))


def _pair(ends: NDArray[np.float64]) -> Ends:
    return None if np.isnan(ends[0]) else (float(ends[0]), float(ends[1]))
