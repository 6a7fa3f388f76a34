"""ppi-python's mean: estimate, and standard error, with its slope and with a given one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from retrieval_bench_judges.estimate import both
from tests.lazily import Lazily

ppi: Any = Lazily("ppi_py", needs=("ppi_py.ppi",))

pytestmark = [pytest.mark.needs("ppi_py"), pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("slope", [None, 0.0, 0.4, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_mean_and_error_are_those_of_ppi_python(seed: int, slope: float | None) -> None:
    rng = np.random.default_rng(seed)
    n, more = int(rng.integers(5, 60)), rng.normal(size=int(rng.integers(20, 300)))
    judged = rng.normal(size=n)
    people = rng.uniform(-0.5, 1.5) * judged + rng.normal(size=n)
    own = both(people, judged, more, None if slope is None else np.asarray(slope), hc3=False)
    mean = ppi.ppi_mean_pointestimate(people, judged, more, lam=slope)
    low, high = ppi.ppi_mean_ci(people, judged, more, alpha=0.1, lam=slope)
    assert float(own.mean) == pytest.approx(float(np.squeeze(mean)), abs=1e-9)
    error = float(np.squeeze(high - low)) / 2 / norm.ppf(0.95)
    assert float(own.error) == pytest.approx(error, abs=1e-9)
