"""What answers use up: numbers that add up, however models and services call them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from retrieval_bench import bench
from retrieval_bench.core.calls.usage import (
    Price,
    checked,
    collected,
    report_usage,
    total,
    usage_of,
)
from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Dataset, Document, Query, Ranking, Usage
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.run import Run
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from retrieval_bench_retrievers.pipeline.pipeline import Pipeline
from tests.builders.scripted import Scripted

ONCE = Protocol(rounds=1, warm_up_s=0)
DOCUMENTS = [Document(i, f"text of {i}") for i in "abc"]


def data(n: int = 4) -> Dataset:
    queries = [Query(str(at), f"text {at}") for at in range(n)]
    return build_dataset("tiny", DOCUMENTS, queries, {q.id: {"a": 1} for q in queries})


class Paid(Scripted):
    """Answers, and says what it used up."""

    def __init__(self, tell: Callable[[Query], Any] = lambda query: None) -> None:
        super().__init__({"a": 2.0, "b": 1.0})
        self.tell = tell

    def search(self, query: Query, k: int) -> Ranking:
        return Ranking(["a", "b"][:k], [2.0, 1.0][:k], usage=self.tell(query) or {})


def measured(retriever: Any, protocol: Protocol = ONCE) -> Run:
    return bench(retriever, data(), k=2, protocol=protocol).run


def used_up(run: Run) -> Any:
    return run.summary.as_dict()["usage"]


# --- the numbers


def test_usage_adds_up_and_unknown_money_does_not_make_known_money_unknown() -> None:
    whole = Usage(1, 2, 3, 4.0) + Usage(10, 20, 30, 0.5)
    assert whole == Usage(11, 22, 33, 4.5)
    assert total([None, Usage(1), None, Usage(2)]) == Usage(3)
    assert total([None]) is total([]) is None
    assert (Usage(1) + Usage(2)).money is None
    assert (Usage(1) + Usage(2, money=0.5)).money == 0.5
    assert (Usage(1, money=0.0) + Usage(2)).money == 0.0


def test_a_price_makes_money_of_tokens_and_calls_unless_it_is_told() -> None:
    price = Price(tokens_in=2, tokens_out=10, calls=0.001)
    assert price.of(Usage(1_000_000, 500_000, 3)).money == pytest.approx(7.003)
    assert price.of(Usage(5, 5, 5, 0.25)).money == 0.25
    assert price.of(Usage(5, 5, 5, 0.0)).money == 0.0
    assert Price().of(Usage(5)).money == 0.0


@pytest.mark.parametrize(
    "given", [{"tokens_in": -1}, {"calls": float("inf")}, {"tokens": 3}, {"calls": "much"}]
)
def test_prices_are_numbers_of_nothing_or_more(given: Mapping[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Price.model_validate(given)


@pytest.mark.parametrize("field", ["tokens_in", "tokens_out", "calls", "money"])
@pytest.mark.parametrize(
    "bad", [-1, float("nan"), float("inf"), "3", True, [1], Decimal("NaN"), None]
)
def test_usage_that_is_no_number_of_nothing_or_more_is_refused(field: str, bad: Any) -> None:
    if field == "money" and bad is None:
        assert checked(Usage(money=None)).money is None, "it alone may be unknown"
        return
    with pytest.raises(ContractError, match=f"usage with {field} = "):
        checked(Usage(**{field: bad}))


def test_numbers_of_numpy_and_decimals_become_plain_ones() -> None:
    given: list[Any] = [np.int64(3), np.float32(0.5), 1, Decimal("0.25")]
    found = checked(Usage(*given))
    assert found == Usage(3, 0.5, 1, 0.25)
    assert all(type(one) in (int, float) for one in (found.tokens_in, found.calls, found.money))


# --- what models and services call them


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"tokens_in": 3, "tokens_out": 4, "calls": 5, "money": 6}, Usage(3, 4, 5, 6)),
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}, Usage(3, 4, 1)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, Usage(3, 4, 1)),
        ({"prompt_eval_count": 3, "eval_count": 4}, Usage(3, 4, 1)),
        ({"input_tokens": 3, "prompt_tokens": 30, "output_tokens": None}, Usage(3, 0, 1)),
        ({"money": 0.5}, Usage(0, 0, 1, 0.5)),
        ({"input_tokens": 3, "calls": 0}, Usage(3, 0, 0)),
        ({"total_tokens": 7}, None),
        ({}, None),
        (None, None),
        ("input_tokens", None),
        (Usage(3), Usage(3)),
        (SimpleNamespace(usage={"prompt_tokens": 3}), Usage(3, 0, 1)),
        (SimpleNamespace(usage=SimpleNamespace(prompt_tokens=3)), Usage(3, 0, 1)),
        (SimpleNamespace(usage=Usage(3)), Usage(3)),
        (SimpleNamespace(usage="much"), None),
        (SimpleNamespace(usage_metadata=None, usage={"input_tokens": 3}), Usage(3, 0, 1)),
        (SimpleNamespace(response_metadata={"token_usage": {"prompt_tokens": 3}}), Usage(3, 0, 1)),
        (SimpleNamespace(response_metadata={"eval_count": 3}), Usage(0, 3, 1)),
        (SimpleNamespace(response_metadata={"model": "x"}), None),
    ],
)
def test_usage_is_read_by_the_names_of_several_services(given: Any, found: Usage | None) -> None:
    assert usage_of(given) == found


def test_a_message_of_langchain_says_what_it_used_up() -> None:
    from langchain_core.messages import AIMessage

    told = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
    message = AIMessage("x", usage_metadata=told)
    assert usage_of(message) == Usage(30, 5, 1)
    assert usage_of(AIMessage("x")) is None
    old = AIMessage("x", response_metadata={"token_usage": {"prompt_tokens": 3}})
    assert usage_of(old) == Usage(3, 0, 1)


def test_what_they_say_is_checked() -> None:
    with pytest.raises(ContractError, match="tokens_in = -3"):
        usage_of({"prompt_tokens": -3})
    with pytest.raises(ContractError, match="money = nan"):
        usage_of(Usage(money=float("nan")))


def test_the_usage_of_a_ranking_is_by_stage_or_of_the_whole_call() -> None:
    for given in (Usage(3), {"tokens_in": 3, "calls": 0}):
        usage: Any = given
        assert checked_ranking(Ranking(["a"], usage=usage), 1).usage == {"call": Usage(3)}
    by_stage = {"rewrite": Usage(3), "rerank": {"prompt_tokens": 4}}
    found = checked_ranking(Ranking(["a"], usage=by_stage), 1).usage  # type: ignore[arg-type]
    assert found == {"rewrite": Usage(3), "rerank": Usage(4, 0, 1)}
    with pytest.raises(ContractError, match="usage 7 of 'rerank'"):
        checked_ranking(Ranking(["a"], usage={"rerank": 7}), 1)  # type: ignore[dict-item]


# --- reporting


def test_a_report_inside_is_collected_and_elsewhere_does_nothing() -> None:
    report_usage(calls=1)
    with collected() as outer:
        assert outer() is None
        report_usage(tokens_in=1)
        with collected() as inner:
            report_usage(tokens_in=2, money=0.5)
            report_usage(calls=1)
        assert inner() == Usage(2, 0, 1, 0.5)
        assert outer() == Usage(1)
    report_usage(calls=1)
    assert outer() == Usage(1)


@pytest.mark.slow
def test_a_report_inside_of_search_counts() -> None:
    def search(text: str, k: int) -> list[str]:
        report_usage(tokens_in=10, money=0.25)
        report_usage(tokens_out=2)
        return ["a"]

    run = measured(search)
    assert used_up(run)["stages"] == {
        "call": {"tokens_in": 10.0, "tokens_out": 2.0, "calls": 0.0, "money": 0.25}
    }
    assert used_up(run)["spent"]["money"] == 1.0


@pytest.mark.slow
def test_reports_of_async_functions_and_of_parallel_legs_count() -> None:
    class Reporting(Scripted):
        def search(self, query: Query, k: int) -> Ranking:
            report_usage(calls=1)
            return Ranking(["a"], [1.0])

    async def later(text: str, k: int) -> list[str]:
        await asyncio.sleep(0)
        report_usage(calls=3)
        return ["a"]

    assert measured(later).summary.as_dict()["usage"]["per_query"]["calls"] == 3.0
    for parallel in (False, True):
        hybrid = Hybrid(legs=[Reporting(), Reporting()], parallel=parallel)
        assert measured(hybrid).summary.as_dict()["usage"]["per_query"]["calls"] == 2.0


def test_reports_count_where_a_loop_runs_already() -> None:
    async def rewrite(text: str) -> str:
        await asyncio.sleep(0)
        report_usage(calls=3)
        return text

    pipeline = Pipeline(steps=[{"rewrite": rewrite}, {"retrieve": Scripted(["a"])}])

    async def inside() -> Ranking:
        return pipeline.search(Query("1", "x"), 1)

    assert asyncio.run(inside()).usage == {"step:rewrite": Usage(calls=3)}
    pipeline.close()


# --- steps of a pipeline


def rewriting(text: str) -> dict[str, Any] | str:
    report_usage(tokens_in=100, calls=1)
    return text


def test_what_a_step_uses_up_is_its_own_at_its_own_price() -> None:
    def scores(text: str, documents: Sequence[Document]) -> list[int]:
        report_usage(tokens_in=7, money=0.5)
        return [0] * len(documents)

    inner = Paid(lambda query: {"call": Usage(calls=2)})
    whole = Pipeline(
        steps=[
            {"rewrite": rewriting, "price": {"tokens_in": 1_000, "calls": 0.9}},
            {"retrieve": inner},
            {"rerank": scores, "price": {"tokens_in": 1_000}},
        ]
    )
    whole.index(DOCUMENTS)
    assert whole.search(Query("1", "x"), 2).usage == {
        "step:rewrite": Usage(100, 0, 1, 1.0),
        "step:retrieve": Usage(calls=2),
        "step:rerank": Usage(7, money=0.5),
    }


def test_usage_inside_of_a_step_stands_under_the_stage_whose_time_it_goes_with() -> None:
    legs = [Paid(lambda query: {"call": Usage(calls=1)}), Paid()]
    pipeline = Pipeline(steps=[{"rewrite": rewriting}, {"retrieve": Hybrid(legs=legs)}])
    found = pipeline.search(Query("1", "x"), 2)
    assert found.usage == {"step:rewrite": Usage(100, 0, 1), "leg:Paid": Usage(calls=1)}
    assert set(found.usage) <= set(found.stages)
    nested = Pipeline(steps=[{"retrieve": pipeline}]).search(Query("1", "x"), 2)
    assert set(nested.usage) == {"retrieve.step:rewrite", "leg:Paid"}
    assert set(nested.usage) <= set(nested.stages)
    beside = Hybrid(legs=[Scripted(["a"]), pipeline]).search(Query("1", "x"), 2)
    assert set(beside.usage) == {"Pipeline.step:rewrite", "Pipeline.leg:Paid"}
    assert set(beside.usage) <= set(beside.stages)


def test_a_call_that_fails_in_a_later_step_is_paid_for() -> None:
    def scores(text: str, documents: Sequence[Document]) -> list[int]:
        report_usage(tokens_in=5)
        return []

    steps: list[dict[str, Any]] = [
        {"rewrite": rewriting, "price": {"calls": 0.5}},
        {"retrieve": Paid()},
        {"rerank": scores, "price": {"tokens_in": 100_000}},
    ]
    pipeline = Pipeline(steps=steps)
    pipeline.index(DOCUMENTS)
    with collected() as reported, pytest.raises(Exception, match="gave 0 scores"):
        pipeline.search(Query("1", "x"), 2)
    assert reported() == Usage(105, 0, 1, 1.0)


# --- the summary


def test_the_figures_are_means_over_answers_and_sums_of_all_calls() -> None:
    used = {
        "0": {"call": Usage(10, 1, 1, 0.5)},
        "1": {"call": Usage(20, 2, 1), "rerank": Usage(calls=4)},
        "2": {"rerank": Usage(calls=4, money=0.25)},
    }
    run = measured(Paid(lambda query: used.get(query.id)))
    assert used_up(run) == {
        "n": 4,
        "silent": 1,
        "per_query": {"tokens_in": 7.5, "tokens_out": 0.75, "calls": 2.5, "money": 0.1875},
        "money_per_1000_queries": 187.5,
        "stages": {
            "call": {"tokens_in": 7.5, "tokens_out": 0.75, "calls": 0.5, "money": 0.125},
            "rerank": {"tokens_in": 0.0, "tokens_out": 0.0, "calls": 2.0, "money": 0.0625},
        },
        "spent": {"tokens_in": 30, "tokens_out": 3, "calls": 10, "money": 0.75},
    }
    (told,) = [
        one for one in run.summary.warnings if isinstance(one, Notice) and one.code == Code.NO_USAGE
    ]
    assert told == "1 of 4 answers said nothing of what they used up: they count as nothing."


def test_money_of_which_nothing_is_known_is_not_nothing_and_who_says_nothing_has_no_usage() -> None:
    run = measured(Paid(lambda query: Usage(10)))
    assert used_up(run)["per_query"]["money"] is None
    assert used_up(run)["money_per_1000_queries"] is None
    assert used_up(run)["silent"] == 0
    assert measured(Paid()).summary.usage is None


def test_the_warm_up_is_spent_and_in_no_mean() -> None:
    run = measured(Paid(lambda query: Usage(money=1.0)), Protocol(rounds=2, max_calls=13))
    assert run.summary.latency_ms.warm_up_calls == 5
    assert used_up(run)["n"] == 8
    assert used_up(run)["per_query"]["money"] == 1.0
    assert used_up(run)["spent"]["money"] == 13.0


def test_the_price_of_the_config_is_that_of_the_call() -> None:
    config = {
        "target": "callable",
        "params": {"function": _telling},
        "price": {"tokens_in": 1_000_000, "calls": 2},
    }
    assert measured(config).summary.as_dict()["usage"]["per_query"]["money"] == 5.0


def _telling(text: str, k: int) -> list[str]:
    report_usage(tokens_in=3, calls=1)
    return ["a"]


@pytest.mark.parametrize("bad", [Usage(-1), Usage(money=float("nan")), {"call": 3}])
def test_usage_that_makes_no_sense_ends_the_measurement(bad: Any) -> None:
    with pytest.raises(ContractError, match=r"usage .*\n.*retriever 'Paid', query"):
        measured(Paid(lambda query: bad))
