from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.measure.calls import Timings
from retrieval_bench.runs.latency import LEVELS, first_visit, latency_report, stalls, without_times
from retrieval_bench.runs.timing_facts import LatencyFacts
from tests.builders import some

MS = 1_000_000


@dataclass
class Calls:
    """Arrays of one length, one entry a call."""

    wall_ns: NDArray[np.int64]
    query: NDArray[np.int32]
    round_: NDArray[np.int32]
    position: NDArray[np.int32]
    failed: NDArray[np.bool_]
    launch: NDArray[np.int32]

    def report(self, levels: Sequence[float] = LEVELS, **changed: Any) -> LatencyFacts:
        """Of these calls, with some arrays changed."""
        one = {**vars(self), **changed}
        first, launch = one.get("first_ns"), one["launch"]
        return latency_report(
            Timings(
                one["wall_ns"],
                one["round_"],
                one["position"],
                one["query"],
                one["failed"],
                {},
                np.zeros(0, np.int32) if launch is None else launch,
                np.zeros((0, 0), np.int64) if first is None else first,
            ),
            levels,
        )

    def take(self, order: NDArray[np.integer] | NDArray[np.bool_]) -> Calls:
        return Calls(**{name: array[order] for name, array in vars(self).items()})


def calls(ms: Any, launches: int = 1) -> Calls:
    """Calls of a table of milliseconds, (rounds, queries), or (launches * rounds, queries)."""
    table = np.asarray(ms, dtype=float)
    shape = (launches, len(table) // launches, table.shape[1])
    launch, round_, query = np.indices(shape, dtype=np.int32).reshape(3, -1)
    rng = np.random.default_rng(0)
    return Calls(
        np.rint(table.ravel() * MS).astype(np.int64),
        query,
        round_,
        rng.permuted(query.reshape(len(table), -1), axis=1).ravel(),
        np.zeros(table.size, dtype=bool),
        launch,
    )


def random_calls(seed: int, queries: int, rounds: int, launches: int = 1) -> Calls:
    rng = np.random.default_rng(seed)
    base = rng.lognormal(1, 0.5, queries)
    noise = rng.lognormal(0, 0.1, (launches * rounds, queries))
    slow = rng.random(noise.shape) < 0.02
    return calls(base * noise * np.where(slow, 10, 1), launches)


def inside(found: Any, truth: float) -> bool:
    return found.ci95 is not None and bool(found.ci95[0] <= truth <= found.ci95[1])


def test_constant_times_give_that_time_everywhere() -> None:
    report = calls(np.full((7, 166), 2.5)).report()
    assert (report.n, report.mix.n, report.rounds, report.launches) == (1_162, 166, 7, 1)
    assert (report.mean, report.min, report.max) == (2.5, 2.5, 2.5)
    assert report.sd == pytest.approx(0.0, abs=1e-12)
    assert report.throughput == pytest.approx(400.0)
    assert report.stalls == 0
    assert report.first_visit.ratio == 1.0
    for found in (*report.levels.values(), report.mix.levels["p50"]):
        assert found.value == 2.5
        assert found.ci95 == (2.5, 2.5)


def test_the_two_families_answer_different_questions() -> None:
    """One call in fifty stalls, whatever the query: no query is slow, and two in a hundred calls
    are."""
    table = np.full((10, 250), 2.0)
    table.ravel()[::50] = 200.0
    report = calls(table).report()
    assert [found.value for found in report.levels.values()] == [2.0, 2.0, 200.0]
    assert [found.value for found in list(report.mix.levels.values())[:2]] == [2.0, 2.0]
    assert report.mix.levels["p99"].value is None
    assert report.mix.levels["p99"].reason == "250 queries, p99 needs 1,000: 750 more queries"


def test_one_stall_in_fifty_is_counted_exactly_and_stays_in_the_figures() -> None:
    rng = np.random.default_rng(1)
    table = rng.lognormal(1, 0.5, 100) * rng.lognormal(0, 0.03, (10, 100))
    at = rng.permutation(table.size)[: table.size // 50]
    table.ravel()[at] *= 20
    report = calls(table).report()
    assert report.stalls == 20
    assert report.max == pytest.approx(table.max(), abs=1e-6)
    assert report.mean == pytest.approx(table.mean(), rel=1e-6)


@pytest.mark.parametrize("rounds", [3, 4, 5, 6, 7])
def test_usual_noise_is_no_stall_however_few_rounds(rounds: int) -> None:
    table = np.random.default_rng(2).lognormal(0, 0.1, (rounds, 2_000))
    assert calls(table).report().stalls == 0


@pytest.mark.parametrize(
    ("table", "at", "ms", "n"),
    [
        (np.exp(np.tile([[-0.02], [0.0], [0.1]], (1, 100))), (2, 0), np.exp(0.5), 0),
        (np.exp(np.tile([[-0.02], [0.0], [0.1]], (1, 100))), (2, 0), np.exp(1.0), 1),
        (np.tile([1.0] * 99 + [500.0], (5, 1)), (0, 99), 500.0, 0),
        (np.full((5, 100), 10.0), (2, 3), 11.5, 0),
        (np.full((5, 100), 10.0), (2, 3), 11.7, 1),
    ],
    ids=["near the middle of three", "far off", "slow query", "15 % slower", "17 % slower"],
)
def test_a_stall_is_at_least_16_percent_slower_than_the_other_calls_of_its_query(
    table: Any, at: tuple[int, int], ms: float, n: int
) -> None:
    table = table.copy()
    table[at] = ms
    assert calls(table).report().stalls == n


def test_one_or_two_calls_of_a_query_cannot_show_a_stall() -> None:
    table = np.ones((2, 50))
    table[1, 7] = 900.0
    assert calls(table).report().stalls is None
    once_more = np.r_[np.full(3, MS), [MS, 900 * MS]]
    assert stalls(once_more, np.array([0, 0, 0, 1, 1], dtype=np.int32)) == 0


def test_bimodal_times_are_found_within_the_interval() -> None:
    """Six queries in ten take about 1 ms, the others about 5 ms."""
    rng = np.random.default_rng(3)
    base = np.repeat([1.0, 5.0], [120, 80])
    report = calls(base * rng.lognormal(0, 0.1, (6, 200))).report(levels=(50.0, 95.0))
    # Of the fast ones 5/6 lie below the median: z = 0.967; of the slow ones 7/8: z = 1.150.
    assert inside(report.at("p50"), np.exp(0.1 * 0.9674))
    assert inside(report.at("p95"), 5 * np.exp(0.1 * 1.1503))


def test_first_calls_that_are_slow_show_in_the_first_visit_of_each_launch() -> None:
    rng = np.random.default_rng(4)
    table = rng.lognormal(1, 0.5, 200) * rng.lognormal(0, 0.02, (5, 200))
    table[0] *= 3
    report = calls(table).report()
    assert report.first_visit.n == 200
    assert report.first_visit.ratio == pytest.approx(3, rel=0.02)
    table = np.full((6, 40), 1.0)
    table[[0, 2, 4]] = 2.0
    report = calls(table, launches=3).report()
    assert (report.first_visit.ratio, report.first_visit.n) == (2.0, 120)


def test_the_very_first_calls_show_caches_that_the_warm_up_has_filled() -> None:
    made = calls(np.full((6, 60), 2.0), launches=3)
    first = np.full((3, 60), 20_000_000, dtype=np.int64)
    first[:, 7] = -1
    report = made.report(first_ns=first)
    assert (report.first_visit.ratio, report.first_visit.n) == (10.0, 3 * 59)
    unknown = made.report(first_ns=np.full((3, 60), -1, dtype=np.int64))
    assert unknown.first_visit == made.report().first_visit


def test_without_repeats_nothing_is_said_of_the_first_visit() -> None:
    report = calls(np.ones((1, 40))).report()
    assert (report.first_visit.ratio, report.first_visit.n) == (None, 0)
    zero = np.zeros(3, dtype=np.int32)
    found = first_visit(np.zeros(3, dtype=np.int64), zero, np.arange(3, dtype=np.int32), zero)
    assert found.ratio is None


def test_a_machine_that_drifts_widens_the_intervals() -> None:
    rng = np.random.default_rng(5)
    table = rng.lognormal(1, 0.5, 166) * rng.lognormal(0, 0.05, (7, 166))
    steady = calls(table).report().at("p50")
    drift = calls(table * np.linspace(0.9, 1.1, 7)[:, None]).report().at("p50")
    assert some(drift.ci95)[1] - some(drift.ci95)[0] > 2 * (
        some(steady.ci95)[1] - some(steady.ci95)[0]
    )
    assert inside(drift, float(np.median(table)))


def test_failed_calls_are_counted_and_their_time_is_kept() -> None:
    made = calls(np.ones((5, 40)))
    made.failed[:4] = True
    made.wall_ns[:4] = 60_000 * MS
    report = made.report()
    assert report.failed_calls == 4
    assert report.max == 60_000.0
    assert report.n == 200


@pytest.mark.parametrize("rounds", [4, 5])
def test_spread_and_throughput_are_those_of_numpy(rounds: int) -> None:
    made = random_calls(6, 60, rounds)
    ms = made.wall_ns / MS
    report = made.report()
    assert report.sd == pytest.approx(ms.std(ddof=1))
    assert report.throughput == pytest.approx(1_000 / ms.mean())
    assert [found.value for found in list(report.levels.values())[:2]] == pytest.approx(
        np.percentile(ms, [50, 95])
    )
    medians = np.median(ms.reshape(rounds, 60), axis=0)
    assert report.mix.levels["p50"].value == pytest.approx(np.median(medians))


def test_without_calls_there_are_reasons_and_no_numbers() -> None:
    report = calls(np.zeros((1, 0))).report()
    found = report.as_dict()
    assert found["n"] == found["rounds"] == found["launches"] == found["mix"]["n"] == 0
    for name in ("mean", "min", "max", "sd", "throughput", "stalls"):
        assert found[name] is None, name
    assert found["p50"]["reason"] == "0 calls, p50 needs 30: 30 more calls"
    assert found["mix"]["p50"]["reason"] == "0 queries, p50 needs 30: 30 more queries"


def test_a_clock_that_stands_still_and_one_call_are_no_fault() -> None:
    report = calls([[4.0]]).report()
    assert (report.n, report.mean, report.sd, report.throughput) == (1, 4.0, None, 250.0)
    report = calls(np.zeros((5, 40))).report()
    assert (report.mean, report.throughput, report.stalls) == (0.0, None, 0)
    assert report.first_visit.ratio is None


def test_other_percentiles_on_request_and_calls_without_a_launch_are_of_one() -> None:
    report = random_calls(7, 200, 5).report(levels=(10.0, 90.0, 99.9))
    found = report.as_dict()
    assert found["p10"]["value"] < found["p90"]["value"]
    assert found["p99.9"]["reason"] == "1,000 calls, p99.9 needs 10,000: 9,000 more calls"
    with pytest.raises(ConfigError):
        random_calls(7, 20, 5).report(levels=(100.0,))
    made = random_calls(8, 40, 5)
    assert made.report(launch=None) == made.report()


@pytest.mark.parametrize(
    ("rounds", "launches", "said"),
    [
        (7, 1, "by 7 rounds of one launch: not in them is the difference between launches, about"),
        (3, 2, "by 6 rounds of 2 launches: not in them is the difference between launches"),
        (20, 1, "by 10 groups of 2 rounds of one launch: not in them"),
        (4, 5, "by 5 launches: they hold for any launch"),
        (2, 1, "by parts of the rounds of one launch: not in them is the difference between round"),
    ],
)
def test_it_says_what_the_intervals_cover(rounds: int, launches: int, said: str) -> None:
    report = random_calls(9, 60, rounds, launches).report()
    assert report.intervals.startswith(said)
    assert report.rounds == rounds
    assert report.launches == launches


def test_the_summary_says_which_percentiles_gate_and_why_one_is_missing() -> None:
    found = random_calls(10, 166, 7).report().as_dict()
    assert found["family"] == "call"
    assert found["p50"].keys() == {"value", "ci95", "gates"}
    assert (found["p95"]["gates"], found["p99"]["gates"]) == (True, False)
    assert found["mix"]["p95"].keys() == {"value", "ci95", "gates", "reason"}
    assert json.loads(json.dumps(found)) == found


def test_withheld_times_leave_the_counts() -> None:
    report = without_times(
        random_calls(11, 166, 7).report(), "the rankings were read from a saved run"
    )
    found = report.as_dict()
    assert (found["n"], found["rounds"]) == (1_162, 7)
    for family in (found, found["mix"]):
        for level in ("p50", "p95", "p99"):
            assert family[level] == {
                "value": None,
                "ci95": None,
                "gates": False,
                "reason": "the rankings were read from a saved run",
            }
    for name in ("mean", "min", "max", "sd", "throughput", "stalls"):
        assert found[name] is None, name
    assert found["first_visit"] == {"ratio": None, "n": 0}


shapes = st.tuples(
    st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 9), st.sampled_from((1, 2, 5))
)


def numbers(report: LatencyFacts) -> list[float]:
    """Every time in the report, in milliseconds."""
    found = [report.mean, report.min, report.max, report.sd]
    for each in (*report.levels.values(), *report.mix.levels.values()):
        found += [each.value, *(each.ci95 or ())]
    return [value for value in found if value is not None]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(shapes)
def test_slower_by_a_factor_is_slower_by_it_everywhere(shape: tuple[int, int, int, int]) -> None:
    made = random_calls(*shape)
    once = made.report()
    made.wall_ns *= 8
    times_8 = made.report()
    assert numbers(times_8) == pytest.approx([8 * value for value in numbers(once)], rel=1e-9)
    assert times_8.stalls == once.stalls
    assert times_8.first_visit == once.first_visit


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(shapes)
def test_the_order_of_the_calls_does_not_matter(shape: tuple[int, int, int, int]) -> None:
    made = random_calls(*shape)
    order = np.random.default_rng(shape[0]).permutation(len(made.wall_ns))
    before, after = made.report(), made.take(order).report()
    assert numbers(after) == pytest.approx(numbers(before), rel=1e-9)
    assert (after.stalls, after.first_visit, after.intervals) == (
        before.stalls,
        before.first_visit,
        before.intervals,
    )


@settings(max_examples=60, deadline=None)
@given(shapes, st.lists(st.floats(10, 90), min_size=2, max_size=6, unique=True).map(sorted))
def test_a_higher_percentile_is_never_smaller(
    shape: tuple[int, int, int, int], levels: list[float]
) -> None:
    report = random_calls(*shape).report(levels=levels)
    for family in (report.levels, report.mix.levels):
        values = [found.value for found in family.values() if found.value is not None]
        assert values == sorted(values)
        for found in family.values():
            if found.ci95 is not None and found.value is not None:
                assert found.ci95[0] <= found.value <= found.ci95[1]


def test_queries_that_stopped_after_a_failure_do_not_disturb_the_rest() -> None:
    made = random_calls(12, 166, 7)
    kept = (made.query < 160) | (made.round_ == 0)
    report = made.take(kept).report()
    assert report.n == int(kept.sum())
    assert report.mix.n == 166
    assert report.at("p50").ci95 is not None
