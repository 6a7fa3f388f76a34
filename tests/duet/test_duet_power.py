"""What a duet is said to find is what its own rules find."""

from __future__ import annotations

import math

import numpy as np
import pytest

from retrieval_bench.core.types import Verdict
from retrieval_bench_duet.decision import (
    CONFIRM,
    FOUND,
    GATES,
    SEARCH,
    Trial,
    fails,
    overall,
    visible,
)

P50 = GATES["p50"]


def said(thetas: np.ndarray) -> bool:
    """Whether a trial says FAIL to these log ratios."""
    trial = Trial({"p50": P50.limit}, lambda _, launches: launches)
    parts = iter(thetas[: SEARCH[-1]]), iter(thetas[SEARCH[-1] :])
    while not trial.over:
        trial.add(float(next(parts[bool(trial.signs)])))
    return overall(trial.results()) is Verdict.WORSE


@pytest.mark.parametrize("slower", [0.0, 0.02, 0.04])
@pytest.mark.parametrize("spread", [0.004, 0.02, 0.06])
def test_many_at_once_end_as_each_alone(slower: float, spread: float) -> None:
    rng = np.random.default_rng(1)
    thetas = math.log1p(slower) + spread * rng.standard_normal((40, SEARCH[-1] + CONFIRM[-1]))
    assert fails(thetas, P50.delta, P50.limit).tolist() == [said(one) for one in thetas]


@pytest.mark.parametrize("spread", [0.002, 0.01, 0.05])
def test_nine_of_ten_find_what_is_visible(spread: float) -> None:
    share = visible(spread, P50.delta, P50.limit)
    noise = np.random.default_rng(2).standard_normal((4000, SEARCH[-1] + CONFIRM[-1]))
    found = fails(math.log1p(share) + spread * noise, P50.delta, P50.limit).mean()
    assert found == pytest.approx(FOUND, abs=0.03)


@pytest.mark.slow
def test_more_noise_hides_more() -> None:
    seen = [visible(spread, P50.delta, P50.limit) for spread in (0.0, 0.001, 0.003, 0.01, 0.1)]
    assert seen[0] == pytest.approx(P50.delta, abs=1e-4)
    assert seen == sorted(set(seen))
