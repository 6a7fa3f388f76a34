"""When calls are due: known before the first, the same for a seed, at the rate asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench_load.engine.schedule import Pace, due_ns, read_recorded, visits


def test_independent_callers_come_at_the_rate_and_are_the_same_for_a_seed() -> None:
    due = due_ns(Pace(50.0), 400.0, 7)
    assert np.array_equal(due, due_ns(Pace(50.0), 400.0, 7))
    assert not np.array_equal(due, due_ns(Pace(50.0), 400.0, 8)[: len(due)])
    gaps = np.diff(due) / 1e9
    assert len(due) == pytest.approx(20_000, abs=600)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05), "gaps of a Poisson stream"
    assert due[-1] < 400e9


def test_shares_of_processes_add_up_to_the_whole_rate() -> None:
    shares = [due_ns(Pace(60.0), 200.0, seed, share=3) for seed in range(3)]
    assert sum(map(len, shares)) == pytest.approx(12_000, abs=450)


def test_constant_gaps_and_a_ramp() -> None:
    due = due_ns(Pace(10.0, "constant"), 5.0, 0) / 1e9
    assert np.diff(due) == pytest.approx(0.1)
    ramped = due_ns(Pace(10.0, "constant", ramp_s=10.0), 5.0, 0) / 1e9
    assert np.count_nonzero(ramped < 10.0) in {49, 50, 51}, "half of the calls of a full rate"
    assert np.diff(ramped[ramped > 10.5]) == pytest.approx(0.1)


def test_recorded_times_count_from_the_first(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("1700000003.5\n1700000001\n1700000002.25\n")
    times = read_recorded(file)
    assert times == (0.0, 1.25, 2.5)
    assert due_ns(Pace(recorded=times), 2.0, 0).tolist() == [0, 1_250_000_000]
    for text in ("", "one\n", "nan\n"):
        file.write_text(text)
        with pytest.raises(DataError, match=r"log\.txt"):
            read_recorded(file)


def test_a_rate_that_is_a_slip_of_the_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="calls at 1e"):
        due_ns(Pace(1e9), 10.0, 0)


def test_every_query_is_visited_before_one_comes_again() -> None:
    order = visits(25, 10, 3)
    assert sorted(order[:10].tolist()) == sorted(order[10:20].tolist()) == list(range(10))
    assert len(order) == 25
