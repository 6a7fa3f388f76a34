"""``regress`` that asks no more queries than it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from retrieval_bench.comparison.pairs.anytime import Asked
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric, parse_metric
from retrieval_bench.regression.baseline import FAILED
from retrieval_bench.regression.policy import Rise
from retrieval_bench.regression.until_decided import DropWatch, judge_asked
from retrieval_bench.regression.worse import QualityResult
from tests.builders import some
from tests.builders.baselines import quality

NDCG, RR = parse_metric("nDCG@10"), parse_metric("RR@10")
LIMIT = {NDCG: 0.05}
N = 200
Values = Sequence[float] | np.ndarray[Any, Any]
START = np.full(N, 0.5)


def regressed(
    now: Values | Mapping[str, Values],
    *,
    limits: Mapping[Metric, float] = LIMIT,
    split: bool = True,
    failed: Sequence[int] = (),
    failed_before: Sequence[int] = (),
    most: int = N,
    rise: Rise = Rise.PASS,
) -> QualityResult:
    """What is said of values that are asked in their order, until decided or ``most`` were."""
    given = now if isinstance(now, Mapping) else {"nDCG@10": now}
    then = dict.fromkeys(given, START)
    values = {name: np.asarray(of, dtype=float).copy() for name, of in given.items()}
    old, new = ["old"] * N, ["new"] * N
    for at in failed:
        new[at] = FAILED
    for at in failed_before:
        old[at] = FAILED
    for name in given:
        values[name][list(failed)] = 0.0
    then = {name: np.where([q == FAILED for q in old], 0.0, of) for name, of in then.items()}
    before = quality({name: of.tolist() for name, of in then.items()}, old)
    after = quality({name: of.tolist() for name, of in values.items()}, new)
    metrics = [parse_metric(name) for name in sorted(given)]
    watch = DropWatch(before, limits, metrics, N if split else None)
    asked: list[str] = []
    for at, query in enumerate(before.evaluated[:most]):
        row = np.array([[values[str(metric)][at] for metric in metrics]])
        asked.append(query)
        if watch(query, row, np.array([new[at] != FAILED])):
            break
    far = Asked(
        "split" if split else "population", len(asked), N, len(asked), N - len(asked), False
    )
    return judge_asked(before, after, limits, asked, far, rise=rise)


def far(result: QualityResult) -> int:
    return some(result.asked).asked


def test_a_clear_drop_is_shown_by_few_queries() -> None:
    found = regressed(START - 0.4)
    (gate,) = found.gates
    assert gate.verdict is Verdict.WORSE
    assert far(found) == found.n < N / 4
    assert some(found.asked).decided
    assert [gate.before, gate.now] == pytest.approx([0.5, 0.1])
    assert gate.p is None
    low, high = some(gate.ci95)
    assert low <= -0.4 <= high < -0.05
    assert "not by chance" in gate.reason


def test_one_query_fewer_would_leave_it_open() -> None:
    n = far(regressed(START - 0.4))
    fewer = regressed(START - 0.4, most=n - 1)
    assert fewer.gates[0].verdict is Verdict.UNDECIDED
    assert not some(fewer.asked).decided


def test_rankings_that_changed_nothing_pass_before_all_are_asked() -> None:
    found = regressed(START)
    assert found.gates[0].verdict is Verdict.EQUIVALENT
    assert N / 4 < far(found) < N
    low, high = some(found.gates[0].ci95)
    assert -0.05 < low < 0 < high < 0.05


def test_a_rise_is_better() -> None:
    found = regressed(START + 0.4)
    assert found.gates[0].verdict in (Verdict.BETTER, Verdict.EQUIVALENT)
    assert far(found) < N / 4


def test_one_metric_that_fails_ends_it() -> None:
    found = regressed({"nDCG@10": START, "RR@10": START - 0.4}, limits={NDCG: 0.05, RR: 0.05})
    assert [gate.verdict for gate in found.gates] == [Verdict.UNDECIDED, Verdict.WORSE]
    assert far(found) < N / 4
    assert some(found.asked).decided


def test_when_all_were_asked_the_mean_of_the_split_is_known() -> None:
    every_second = np.arange(N) % 2
    at_limit = regressed(START - 0.1 * every_second)
    just_beyond = regressed(START - 0.101 * every_second)
    assert far(at_limit) == far(just_beyond) == N
    assert at_limit.gates[0].verdict is Verdict.EQUIVALENT
    assert just_beyond.gates[0].verdict is Verdict.WORSE
    assert just_beyond.gates[0].ci95 == pytest.approx((-0.0505, -0.0505))
    assert (
        just_beyond.gates[0].reason == "dropped by more than the limit on the queries of this split"
    )


def test_when_the_queries_run_out_the_interval_of_the_population_stands() -> None:
    found = regressed(START - 0.06, limits={NDCG: 0.05}, split=False)
    assert found.gates[0].verdict is Verdict.UNDECIDED
    assert some(found.asked).sentence == "Not decided, though all 200 queries were asked."


@pytest.mark.parametrize(
    ("most", "rise", "verdict"),
    [
        (N, Rise.PASS, Verdict.EQUIVALENT),
        (N, Rise.UNDECIDED, Verdict.UNDECIDED),
        (N - 1, Rise.PASS, Verdict.UNDECIDED),
    ],
)
def test_a_rise_passes_once_all_queries_were_asked(most: int, rise: Rise, verdict: Verdict) -> None:
    values = START + np.where(np.arange(N) % 2, 0.32, -0.3)
    found = regressed(values, split=False, most=most, rise=rise)
    assert found.gates[0].verdict is verdict
    assert not some(found.asked).decided


def test_failures_alone_fail_nothing_and_pass_nothing() -> None:
    found = regressed(START, failed=range(0, N, 15), limits={NDCG: 0.02})
    assert found.gates[0].verdict is Verdict.MISSING
    assert "that had an answer failed" in found.gates[0].reason


def test_a_drop_on_what_was_answered_fails_beside_failures() -> None:
    found = regressed(START - 0.4, failed=[0, 3])
    assert found.gates[0].verdict is Verdict.WORSE
    assert found.unanswered == 2


def test_failures_of_the_baseline_hide_no_drop() -> None:
    """Each that is answered now is a rise, which does not make up for what fell."""
    now = START.copy()
    now[20:] -= 0.06
    found = regressed(now, failed_before=range(20))
    assert found.gates[0].verdict is Verdict.WORSE


def test_a_metric_that_the_baseline_lacks_is_missing() -> None:
    found = regressed({"nDCG@10": START - 0.4}, limits={NDCG: 0.05, RR: 0.05})
    assert [gate.verdict for gate in found.gates] == [Verdict.WORSE, Verdict.MISSING]


def test_nothing_can_be_bet_on_values_without_a_range() -> None:
    unbounded = parse_metric("NumRelRet")
    kept = quality({"NumRelRet": START.tolist()}, ["old"] * N)
    with pytest.raises(ConfigError, match="metric NumRelRet with --until-decided"):
        DropWatch(kept, {unbounded: 0.05}, [unbounded], N)


@pytest.mark.slow
def test_the_drop_is_rarely_shown_where_there_is_none_at_any_look() -> None:
    """200 orders of values whose mean is the limit exactly, watched without end."""
    rng = np.random.default_rng(7)
    wrong = 0
    values = np.where(np.arange(N) < N // 5, 0.25, 0.5)  # falls by .05 in the mean
    for _ in range(200):
        found = regressed(rng.permutation(values))
        wrong += found.gates[0].verdict is Verdict.WORSE
    assert wrong <= 10
