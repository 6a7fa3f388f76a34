"""What each gate makes of launches."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval_bench.comparison.pairs.call_pairs import Pairs
from retrieval_bench_duet.decision import GATES, SLOWEST, slow_queries, thetas

QUERIES = 200
SLOW = int(SLOWEST * QUERIES)


def launches(n: int, slower: np.ndarray, *, stalls: float = 0.0) -> list[Pairs]:
    """Launches of one round; the time of a query rises with its number, a share ``stalls`` of the
    calls takes far longer."""
    rng = np.random.default_rng(1)
    zeros, query = np.zeros(QUERIES, dtype=np.int32), np.arange(QUERIES, dtype=np.int32)
    found = []
    for number in range(n):
        logs = np.linspace(0, 1, QUERIES) + rng.normal(0, 0.01, (2, QUERIES))
        logs += 1.5 * (rng.random((2, QUERIES)) < stalls)
        found.append(Pairs(logs[0], logs[1] + np.log(slower), zeros + number, zeros, query, query))
    return found


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    ("slower", "stalls"), [(1.2, 0.0), (1.0, 0.08)], ids=["a slow-down of all", "stalls"]
)
def test_every_gate_sees_a_slow_down_of_all_and_no_stalls_of_the_machine(
    gate: str, slower: float, stalls: float
) -> None:
    found = thetas(gate, launches(8, np.full(QUERIES, slower), stalls=stalls))
    assert np.exp(found) == pytest.approx([slower] * 8, abs=0.02)


def test_the_slowest_fifth_is_that_of_all_launches() -> None:
    slower = np.where(np.arange(QUERIES) >= QUERIES - SLOW, 1.1, 1.0)
    made = launches(8, slower, stalls=0.08)
    assert np.exp(thetas("slowest-fifth", made)) == pytest.approx([1.1] * 8, abs=0.01)
    assert np.exp(thetas("p50", made)) == pytest.approx([1.0] * 8, abs=0.02)


def test_a_query_that_one_launch_did_not_answer_is_none_of_the_slow_ones() -> None:
    missing = np.arange(QUERIES) >= QUERIES - SLOW // 2
    whole, *others = launches(5, np.where(missing, 1.5, 1.2))
    made = [whole.take(~missing), *others]
    queries = QUERIES - SLOW // 2
    n = int(SLOWEST * queries)
    assert set(slow_queries(made).tolist()) == set(range(queries - n, queries))
    assert np.exp(thetas("slowest-fifth", made)) == pytest.approx([1.2] * 5, abs=0.02)
