"""Moments that come again and again: after how long, and whether chance would have made that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

_NEAR = (0.01, 0.03, 0.1)
"""How far a gap may be from a multiple of the period, as a share of it: each is tried."""

_MULTIPLES = 4
"""Periods in a gap, at most: a moment may have been missed."""


_TRIED = 50
"""Gaps that are tried as the period, at most."""


def period(
    moments: Sequence[NDArray[np.float64]], grain: float = 0.0, lasts: float = 0.0
) -> tuple[float, float]:
    """The period of ``moments``, rising, of one or more stretches of time, and the probability that
    independent ones would be as regular; 1 where there are too few.

    Gaps are tried as the period. Of independent moments a gap lies near a multiple of it with a
    probability of twice the tolerance at most, whatever their rate.

    Args:
        grain: moments lie on a grid as fine as this, which makes it likelier by one of its steps.
        lasts: none is nearer to the one before, so that only what is left of a gap is by chance.
    """
    from scipy.special import bdtrc

    gaps = np.concatenate([np.empty(0), *(np.diff(of) for of in moments)])
    gaps, best = np.sort(gaps[gaps > 0]), (1.0, 0.0)
    tried = gaps[np.unique(np.linspace(0, len(gaps) - 1, _TRIED).astype(int))] if len(gaps) else ()
    for near, each in product(_NEAR, tried):
        times = np.round(gaps / each)
        fit = (times >= 1) & (times <= _MULTIPLES) & (abs(gaps / each - times) <= near)
        regular, left = int(fit.sum()), max(float(each) - lasts, 1e-9)
        q = min((2 * near * float(each) + grain) / left, 1.0)
        # The gap that is tried fits in any case.
        chance = float(bdtrc(regular - 2, len(gaps) - 1, q)) if regular > 1 else 1.0
        chance *= len(_NEAR) * len(tried)
        best = min(best, (chance, float(gaps[fit].sum() / times[fit].sum())))
    return best[1], best[0]
