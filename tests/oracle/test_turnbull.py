"""Times to visible against Turnbull's estimate of lifelines: its distribution lies between those of
the lower and of the upper ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrieval_bench_writes.delays import Delay
from retrieval_bench_writes.study import Kind
from tests.builders.fresh_engine import FreshEngine, VirtualClock, every, studied
from tests.lazily import Lazily

lifelines: Any = Lazily("lifelines")


@pytest.mark.needs("lifelines")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("level", [50.0, 90.0])
def test_turnbulls_percentiles_lie_between_ours(level: float) -> None:
    engine = FreshEngine(
        VirtualClock(), every(1.0), loses=lambda kind, n: kind == "add" and n % 40 == 1
    )
    seen = studied(200, engine, limit_s=5.0)
    added = [write for write in seen.writes if write.kind is Kind.ADD]
    before = np.array([write.before for write in added])
    after = np.array([write.after for write in added])
    delay = Delay.of([write.acknowledged_s or 0.0 for write in added], before, after, level)
    fitted = lifelines.KaplanMeierFitter().fit_interval_censoring(before, after)
    below = fitted.survival_function_ <= 1 - level / 100
    first, last = (float(below.index[below[name]][0]) for name in below.columns)
    # A distribution jumps, and a percentile interpolates: by one rank.
    slack = float(np.max(np.diff(np.sort(after[np.isfinite(after)]))))
    assert delay.at_least_s is not None
    assert delay.at_most_s is not None
    assert delay.at_least_s - slack <= min(first, last)
    assert max(first, last) <= delay.at_most_s + slack
