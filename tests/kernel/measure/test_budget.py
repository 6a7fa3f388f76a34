"""Money: a measurement ends before the call that would be one too many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from retrieval_bench import bench
from retrieval_bench.core.calls.failures import Retry
from retrieval_bench.core.calls.usage import Price, report_usage
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Query, Ranking, Usage
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.budget import Budget
from retrieval_bench.measure.calls import Measurement, System
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.measure.runner import measure
from tests.builders import some
from tests.builders.timed import MockClock, Timed

QUERIES = [Query(f"q{i}", f"text {i}") for i in range(4)]


def costing(money: float | Callable[[int], float | None] | None, **usage: Any) -> Any:
    """What a call does that takes so much."""

    def act(n: int, query: Query) -> Ranking:
        own = money(n) if callable(money) else money
        used = {} if own is None and not usage else {"call": Usage(money=own, **usage)}
        return Ranking(["d1"], [1.0], usage=used)

    return act


def run(
    *acts: Any, limit: float | None, rounds: int = 1, warm_up_s: float = 0, **about: Any
) -> list[Measurement]:
    clock = MockClock()
    systems = [
        System(f"s{at}", Timed(1_000, act, clock=clock), **about) for at, act in enumerate(acts)
    ]
    protocol = Protocol(rounds=rounds, max_cost=limit, warm_up_s=warm_up_s)
    return measure(systems, QUERIES, 1, protocol, clock=clock)


def spent(found: Sequence[Measurement]) -> float:
    return sum(some(some(one.spent).money) for one in found)


def test_a_budget_counts_what_is_spent_and_the_dearest_call() -> None:
    budget = Budget(1.0)
    for money in (0.25, 0.5, None):
        budget.pay(Usage(money=money), "s")
    assert (budget.spent, budget.dearest, budget.empty) == (0.75, 0.5, True)
    assert not Budget().empty
    assert not Budget(1.0).empty


def test_no_call_is_made_that_might_be_one_too_many() -> None:
    (found,) = run(costing(0.25), limit=1.6, rounds=5)
    assert spent([found]) == 1.5
    assert found.warm_up_calls + len(found.timings.wall_ns) == 6
    assert found.status == ["ok"] * 4
    assert not found.interrupted
    told = "1 of 5 rounds were finished when 1.5 of 1.6 were spent: --max-cost"
    assert told in found.warnings


@pytest.mark.parametrize(
    ("money", "limit", "total"),
    [(lambda n: 0.5 if n == 1 else 0.1, 1.05, 0.6), (0.25, 1.0, 1.0)],
    ids=["the dearest call so far", "reached exactly"],
)
def test_what_the_next_call_might_take_is_kept_within_the_limit(
    money: Any, limit: float, total: float
) -> None:
    (found,) = run(costing(money), limit=limit, rounds=5)
    assert spent([found]) == pytest.approx(total)


def test_queries_that_were_finished_are_kept_and_the_others_were_not_run() -> None:
    (found,) = run(costing(0.25), limit=0.75)
    assert sorted(found.status) == ["not run", "not run", "ok", "ok"]
    assert sum(one is not None for one in found.rankings) == 2
    assert "0 of 1 rounds were finished when 0.75 of 0.75 were spent: --max-cost" in found.warnings


def test_a_run_that_ended_for_money_is_partial_and_says_so() -> None:
    def search(text: str, k: int) -> list[str]:
        report_usage(money=0.25)
        return ["a"]

    data = build_dataset("tiny", None, QUERIES, {q.id: {"a": 1} for q in QUERIES})
    protocol = Protocol(rounds=1, warm_up_s=0, max_cost=0.5)
    summary = bench(
        {"target": "callable", "params": {"function": search}}, data, k=1, protocol=protocol
    ).run.summary.as_dict()
    assert summary["status"] == "partial"
    assert summary["n_unreached"] == 2
    assert any("--max-cost" in one for one in summary["warnings"])


def test_the_warm_up_leaves_enough_for_a_round_and_is_one_call_without_money_for_more() -> None:
    (found,) = run(costing(0.25), limit=2.0, warm_up_s=10)
    assert found.warm_up_calls == 3
    assert found.status == ["ok"] * 4
    assert spent([found]) == 1.75
    assert found.warnings == []
    (found,) = run(costing(0.25), limit=1.25, warm_up_s=10)
    assert found.warm_up_calls == 1
    assert found.status == ["ok"] * 4


def test_several_systems_share_the_budget() -> None:
    found = run(costing(0.25), costing(0.05), limit=1.0, rounds=5)
    assert spent(found) <= 1.0
    assert abs(len(found[0].timings.wall_ns) - len(found[1].timings.wall_ns)) <= 1
    assert all("--max-cost" in one.warnings[0] for one in found)


def test_systems_without_money_beside_one_with_it_or_that_cost_nothing_are_measured() -> None:
    found = run(costing(None), costing(0.01), limit=5.0, rounds=10)
    assert [len(one.timings.wall_ns) for one in found] == [40, 40]
    free = costing(lambda n: 0.0 if n == 1 else None, calls=1)
    (one,) = run(free, limit=5.0, rounds=10)
    assert len(one.timings.wall_ns) == 40


@pytest.mark.parametrize("act", [costing(None), costing(None, tokens_in=5)])
def test_a_retriever_that_says_nothing_of_money_is_refused(act: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        run(act, limit=5.0, rounds=10)
    assert "--max-cost 5: 20 answers of s0 say nothing of money" in str(caught.value)
    assert "add `price: " in str(caught.value)
    assert len(run(act, limit=None, rounds=10)[0].timings.wall_ns) == 40


def test_a_price_is_money_and_calls_that_fail_are_paid_for_at_it() -> None:
    (found,) = run(costing(None, calls=2), limit=1.0, rounds=10, price=Price(calls=0.1))
    assert spent([found]) == pytest.approx(1.0)
    (found,) = run(failing, limit=2.5, price=Price(calls=0.75), retry=Retry(times=0))
    assert spent([found]) == 2.25
    assert sorted(found.status)[:2] == ["ConnectionError: busy"] * 2


def failing(n: int, query: Query) -> Ranking:
    report_usage(calls=1)
    raise ConnectionError("busy")


@pytest.mark.parametrize(("profile", "money"), [("default", 5), (RANKINGS_ONLY, 2)])
def test_no_failed_call_is_made_again_where_there_is_no_money_for_it(
    profile: str, money: int
) -> None:
    clock = MockClock()
    retry = Retry(times=5, respect_retry_after=False)
    system = System("s", Timed(1_000, failing, clock=clock), retry=retry, price=Price(calls=1))
    # One call to warm up; of the others the last that there is money for fails, too.
    protocol = Protocol(profile=profile, rounds=1, warm_up_s=0, max_cost=money + 0.5)
    (found,) = measure([system], QUERIES, 1, protocol, clock=clock)
    assert spent([found]) == money
