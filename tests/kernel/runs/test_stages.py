"""Where the time of a call goes, from scripted timings with known answers, and what the adapters of
foreign code report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableLambda
from numpy.typing import NDArray

import retrieval_bench_retrievers.functions.callable
import retrieval_bench_retrievers.libraries.factories
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.core.units import collapsing
from retrieval_bench.reports.tables.measure.stage import stage_sentences, stage_tables
from retrieval_bench.runs.stages import StageReport, stage_report
from retrieval_bench.runs.timing_facts import LegsFacts, StageFacts
from retrieval_bench_retrievers.functions.callable import CallableRetriever
from retrieval_bench_retrievers.libraries.langchain import LangChainRetriever
from tests.builders import some
from tests.builders.tables import texts

QUERY = Query("q", "bread")
MS = 1_000_000


def ns(*ms: float) -> NDArray[np.int64]:
    return np.array([round(each * MS) if each >= 0 else -1 for each in ms], dtype=np.int64)


def constant(n: int, **ms: float) -> dict[str, NDArray[np.int64]]:
    """Stages that take the same in each of ``n`` calls; ``leg_x`` is written for ``leg:x``."""
    return {name.replace("leg_", "leg:"): ns(*[each] * n) for name, each in ms.items()}


def named(report: StageReport) -> dict[str, StageFacts]:
    return dict(report.stages)


def legs_of(report: StageReport) -> LegsFacts:
    return some(report.legs)


# --- stages and what they leave over


def test_each_stage_has_its_figures_and_its_share_and_the_rest_is_other() -> None:
    report = stage_report(ns(10, 20), {"encode": ns(6, 10), "dense": ns(2, 4)})
    stages = named(report)
    assert list(stages) == ["encode", "dense", "other"]
    assert (stages["encode"].mean, stages["encode"].p50) == (8.0, 8.0)
    assert stages["encode"].share == 16 / 30
    assert stages["dense"].share == 6 / 30
    assert stages["other"].share == 8 / 30
    assert stages["other"].mean == 4.0
    assert all(stage.direct for stage in report.stages.values())
    assert some(report.call).mean == 15.0
    assert report.legs is None


def test_p95_is_that_of_numpy_and_given_from_as_many_calls_as_it_takes_to_print_one() -> None:
    for n, p95 in ((199, None), (200, 3.0)):
        report = stage_report(ns(*[4] * n), constant(n, sparse=3))
        assert named(report)["sparse"].p95 == p95
    sparse = np.arange(1, 1001) * MS
    report = stage_report(sparse + MS, {"sparse": sparse})
    assert named(report)["sparse"].p95 == np.percentile(np.arange(1, 1001), 95)


def test_a_call_without_stages_counts_nowhere_and_a_rare_stage_is_averaged_over_its_calls() -> None:
    whole = stage_report(ns(10, 60_000, 10), {"sparse": ns(4, -1, 4)})
    assert whole == stage_report(ns(10, 10), {"sparse": ns(4, 4)})
    report = stage_report(ns(10, 10, 20), {"sparse": ns(5, 5, 5), "rerank": ns(-1, -1, 8)})
    rerank = named(report)["rerank"]
    assert (rerank.mean, rerank.n, rerank.share) == (8.0, 1, 0.2)


@pytest.mark.parametrize("stages", [{}, {"sparse": ns(-1, -1)}])
def test_without_stages_there_is_nothing_to_report(stages: Mapping[str, Any]) -> None:
    report = stage_report(ns(1, 2), stages)
    assert report.as_dict() == {"stages_ms": {}}
    assert stage_tables("x", report) == []
    assert stage_sentences(report) == []


def test_no_calls_and_calls_of_no_time_are_no_error() -> None:
    assert stage_report(ns(), {"sparse": ns()}).call is None
    assert named(stage_report(ns(0), {"sparse": ns(0)}))["sparse"].share == 0.0


def test_a_retriever_s_own_stage_named_other_keeps_its_name() -> None:
    assert list(named(stage_report(ns(3), {"other": ns(1)}))) == ["other", "other#2"]


def test_stages_that_ran_at_the_same_time_leave_nothing_over() -> None:
    report = stage_report(ns(10, 10), {"a": ns(8, 3), "b": ns(8, 3)})
    assert report.overlapping == 1
    assert named(report)["other"].mean == 2.0
    assert any("in 1 of 2 calls" in sentence for sentence in stage_sentences(report))


@pytest.mark.parametrize(
    ("names", "direct"),
    [
        (["tokenize", "sparse"], {"tokenize", "sparse"}),
        (["tokenize", "wrapper"], {"tokenize", "wrapper"}),
        (["langchain", "factory", "wrapper"], {"langchain", "factory", "wrapper"}),
        (["sparse", "function", "wrapper"], {"function", "wrapper"}),
        (["encode", "request", "server", "wrapper"], {"encode", "request", "wrapper"}),
        (["request", "function", "wrapper"], {"function", "wrapper"}),
        (["encode", "x.wrapper", "leg:x", "leg:y", "fuse"], {"leg:x", "leg:y", "fuse"}),
        (["function", "wrapper", "leg:x", "leg:y", "fuse"], {"leg:x", "leg:y", "fuse"}),
        (["leg:x", "leg:y", "fuse", "leg.leg:a", "leg.fuse"], {"leg:x", "leg:y", "fuse"}),
    ],
)
def test_a_part_of_a_stage_is_not_counted_twice(names: list[str], direct: set[str]) -> None:
    report = stage_report(ns(100), {name: ns(1) for name in names})
    assert {name for name, one in report.stages.items() if one.direct} == {*direct, "other"}
    assert named(report)["other"].mean == 100 - len(direct)


# --- legs


def serial(n: int = 300) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Legs of 1 and 4 ms, 0.5 ms to fuse and 0.25 ms around them, one after the other."""
    return ns(*[5.75] * n), constant(n, sparse=0.9, leg_bm25=1, leg_dense=4, fuse=0.5)


def test_parallel_legs_are_computed_from_serial_ones_and_the_other_way_round() -> None:
    report = stage_report(*serial())
    legs = legs_of(report)
    assert legs.measured == "serial"
    assert legs.overlapping == report.overlapping == 0
    assert (legs.serial.p50, legs.serial.p95) == (5.75, 5.75)
    assert (legs.parallel.p50, legs.parallel.p95) == (4.75, 4.75)
    assert named(report)["other"].mean == 0.25
    wall, stages = ns(*[4.75] * 300), serial()[1]
    for parallel in (None, True):
        report = stage_report(wall, stages, parallel=parallel)
        legs = legs_of(report)
        assert legs.measured == "parallel"
        assert legs.overlapping == 300
        assert (legs.serial.p50, legs.parallel.p50) == (5.75, 4.75)
        assert named(report)["other"].mean == 0.25


def test_what_the_manifest_says_wins_over_what_the_times_look_like() -> None:
    wall, stages = serial()
    report = stage_report(wall, stages, parallel=True)
    legs = legs_of(report)
    assert legs.measured == "parallel"
    assert (legs.serial.p50, legs.parallel.p50) == (6.75, 5.75)
    assert named(report)["other"].mean == 1.25


def test_percentiles_of_both_orders_are_over_calls_not_over_legs() -> None:
    # Legs are slow in different calls: no call has both, so a sum of the legs' p95 is no p95.
    one, two = np.full(1000, MS), np.full(1000, MS)
    one[:80], two[80:160] = 9 * MS, 9 * MS
    legs = legs_of(stage_report(one + two, {"leg:one": one, "leg:two": two}))
    assert (legs.serial.p95, legs.parallel.p95) == (10.0, 9.0)
    assert [leg.p95 for leg in legs.of.values()] == [9.0, 9.0]


def test_the_longest_leg_is_counted_overall_and_in_the_tail() -> None:
    rng = np.random.default_rng(7)
    bm25 = rng.integers(MS, 2 * MS, 1000)
    dense = rng.integers(2 * MS, 3 * MS, 1000)
    bm25[:49], bm25[49] = 20 * MS, 2 * MS
    dense[49] = 30 * MS
    wall = bm25 + dense
    legs = legs_of(stage_report(wall, {"leg:bm25": bm25, "leg:dense": dense}))
    assert [leg.longest for leg in legs.of.values()] == [49, 951]
    assert legs.tail == 50
    assert [leg.longest_in_tail for leg in legs.of.values()] == [49, 1]
    assert legs.decisive == "bm25"
    assert legs.of["bm25"].extra_in_tail == pytest.approx(
        (49 * 20 + 2) / 50 - float(np.median(bm25)) / MS
    )


def test_one_after_the_other_a_long_leg_of_constant_time_does_not_decide_the_tail() -> None:
    bm25 = np.arange(1, 1001) * 1000
    dense = np.full(1000, 50 * MS)
    report = stage_report(bm25 + dense, {"leg:bm25": bm25, "leg:dense": dense})
    assert legs_of(report).of["dense"].longest_in_tail == 50
    assert legs_of(report).decisive == "bm25"
    assert any(s.startswith("bm25 decides the tail") for s in stage_sentences(report))


def test_side_by_side_the_longest_leg_of_the_tail_decides_it() -> None:
    bm25 = np.arange(1, 1001) * 1000
    dense = np.full(1000, 50 * MS)
    dense[-50:] += 10
    report = stage_report(dense, {"leg:bm25": bm25, "leg:dense": dense}, parallel=True)
    sentences = stage_sentences(report)
    decides = "dense decides the tail: it is the longest leg in 100 % of the slowest 5 % of calls."
    assert any(sentence.startswith(decides) for sentence in sentences)


def test_of_calls_that_take_the_same_or_whose_tail_has_no_leg_nobody_decides() -> None:
    report = stage_report(*serial())
    legs = legs_of(report)
    assert (legs.tail, legs.decisive) == (0, None)
    assert [leg.longest for leg in legs.of.values()] == [0, 300]
    assert not any("decides" in sentence for sentence in stage_sentences(report))
    wall, stages = serial(1000)
    wall[:20] *= 3
    assert legs_of(stage_report(wall, stages)).tail == 20
    assert legs_of(stage_report(wall, stages)).decisive is None


def test_one_leg_is_no_hybrid_and_a_call_without_a_leg_is_in_no_figure_of_the_legs() -> None:
    assert stage_report(ns(2), {"leg:a": ns(1)}).legs is None
    report = stage_report(ns(9, 9), {"leg:a": ns(2, 2), "leg:b": ns(3, -1)}, parallel=False)
    assert legs_of(report).n == 1
    assert named(report)["other"].mean == (4 + 7) / 2


durations = st.integers(0, 10**10)


@st.composite
def hybrids(draw: st.DrawFn) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]], bool]:
    """Calls that a clock could have given: legs in turn, or at the same time, and then the rest."""
    n, n_legs = draw(st.integers(1, 40)), draw(st.integers(2, 4))
    parallel = draw(st.booleans())
    columns = st.lists(durations, min_size=n, max_size=n).map(
        lambda values: np.array(values, dtype=np.int64)
    )
    legs = [draw(columns) for _ in range(n_legs)]
    fuse, rest = draw(columns), draw(columns)
    covered = np.max(legs, axis=0) if parallel else np.sum(legs, axis=0)
    stages = {f"leg:{i}": leg for i, leg in enumerate(legs)}
    return covered + fuse + rest, {**stages, "fuse": fuse}, parallel


@pytest.mark.slow
@given(hybrids())
def test_what_holds_for_every_hybrid(
    case: tuple[NDArray[np.int64], dict[str, NDArray[np.int64]], bool],
) -> None:
    wall, stages, parallel = case
    report = stage_report(wall, stages, parallel=parallel)
    legs = legs_of(report)
    assert (legs.parallel if parallel else legs.serial) == report.call
    assert legs.parallel.mean <= legs.serial.mean
    assert legs.parallel.p50 <= legs.serial.p50
    assert sum(leg.longest for leg in legs.of.values()) == legs.n
    assert (
        sum(leg.longest_in_tail for leg in legs.of.values())
        == legs.tail
        <= max(1, legs.n // 20 + 1)
    )
    other = named(report)["other"]
    assert other.p50 >= 0
    taken = sum(leg.mean for leg in legs.of.values())
    longest = np.max([v for k, v in stages.items() if k != "fuse"], axis=0).mean() / MS
    rest = report.call.mean - named(report)["fuse"].mean - (longest if parallel else taken)
    assert other.mean == pytest.approx(rest, rel=1e-9, abs=1e-6)
    assert legs.serial.mean - legs.parallel.mean == pytest.approx(taken - longest, abs=1e-6)


@given(st.randoms(use_true_random=False), st.integers(2, 60))
def test_the_order_of_the_calls_does_not_matter(random: Any, n: int) -> None:
    rng = np.random.default_rng(random.randrange(2**32))
    stages = {name: rng.integers(-1, 5 * MS, n) for name in ("leg:a", "leg:b", "fuse", "encode")}
    wall = rng.integers(0, 20 * MS, n)
    order = rng.permutation(n)
    shuffled = {name: values[order] for name, values in stages.items()}
    assert stage_report(wall[order], shuffled) == stage_report(wall, stages)


def test_what_was_given_is_not_changed() -> None:
    wall, stages = serial(5)
    stages["leg:dense"][0] = -1
    before = {name: values.copy() for name, values in stages.items()}
    stage_report(wall, stages)
    assert all(np.array_equal(values, before[name]) for name, values in stages.items())


# --- for people and for programs


def test_the_summary_keeps_mean_p50_and_n_of_every_stage() -> None:
    document = json.loads(json.dumps(stage_report(*serial()).as_dict(), allow_nan=False))
    assert document["stages_ms"]["sparse"] == {
        **{"mean": 0.9, "p50": 0.9, "p95": 0.9, "n": 300},
        **{"share": pytest.approx(0.9 / 5.75), "direct": False},
    }
    assert document["legs"]["measured"] == "serial"
    assert document["legs"]["serial"] == {"mean": 5.75, "p50": 5.75, "p95": 5.75, "n": 300}
    assert document["legs"]["of"]["dense"]["longest"] == 300
    assert document["legs"]["decisive"] is None
    assert "legs" not in stage_report(ns(2), {"sparse": ns(1)}).as_dict()


def test_the_tables_show_parts_below_the_whole_call_and_say_what_was_computed() -> None:
    stages, legs = stage_tables("hybrid", stage_report(*serial()))
    assert list(map(tuple, texts(stages))) == [
        ("leg:bm25", "1.000", "1.000", "1.000", "17.4 %", "300"),
        ("leg:dense", "4.000", "4.000", "4.000", "69.6 %", "300"),
        ("fuse", "0.500", "0.500", "0.500", "8.7 %", "300"),
        ("other", "0.250", "0.250", "0.250", "4.3 %", "300"),
        ("whole call", "5.750", "5.750", "5.750", "100.0 %", "300"),
        ("sparse", "0.900", "0.900", "0.900", "15.7 %", "300"),
    ]
    assert stages.rules == [4, 5]
    assert list(stages.notes)[2:] == [
        (
            "The legs ran one after the other: median 5.750 ms. Run side by side, they would take "
            "at least 4.750 ms (computed from the same calls)."
        ),
    ]
    assert list(map(tuple, texts(legs))) == [
        ("one after the other", "5.750", "5.750", "5.750", "measured", "", ""),
        ("side by side", "4.750", "4.750", "4.750", "computed", "", ""),
        ("leg bm25", "1.000", "1.000", "1.000", "measured", "0.0 %", "-"),
        ("leg dense", "4.000", "4.000", "4.000", "measured", "100.0 %", "-"),
    ]


def test_what_cannot_be_said_is_a_dash() -> None:
    (table,) = stage_tables("bm25", stage_report(ns(2, 2), {"sparse": ns(1, 1)}))
    assert texts(table)[0] == ["sparse", "1.000", "-", "1.000", "50.0 %", "2"]


# --- what the adapters of foreign code report


class Clock:
    """Moves only when told to."""

    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    adapters: Sequence[ModuleType] = (
        retrieval_bench_retrievers.functions.callable,
        retrieval_bench_retrievers.libraries.factories,
    )
    for adapter in adapters:
        monkeypatch.setattr(adapter, "perf_counter_ns", made)
    return made


def stages_of(retriever: Retriever, k: int = 2) -> dict[str, int]:
    ranking = retriever.search(QUERY, k)
    assert isinstance(ranking, Ranking)
    return dict(ranking.stages)


def test_a_function_s_time_is_apart_from_the_adapter_s(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(query: str, k: int) -> list[tuple[str, float]]:
        clock.now += 700
        return [("a", 2.0), ("b", 1.0)]

    convert = CallableRetriever._from_pairs

    def slow(self: CallableRetriever, hits: list[Any], stages: Mapping[str, int]) -> Ranking:
        clock.now += 30
        return convert(self, hits, stages)

    monkeypatch.setattr(CallableRetriever, "_from_pairs", slow)
    assert stages_of(CallableRetriever(search)) == {"function": 700, "wrapper": 30}


def test_a_generator_s_work_is_the_function_s(clock: Clock) -> None:
    def search(query: str, k: int) -> Iterator[str]:
        for each in ("a", "b"):
            clock.now += 50
            yield each

    assert stages_of(CallableRetriever(search)) == {"function": 100, "wrapper": 0}


def test_a_ranking_of_a_function_keeps_what_it_carries(clock: Clock) -> None:
    def search(query: str, k: int) -> Ranking:
        clock.now += 9
        return Ranking(["a"], [1.0], {"encode": 4}, collapsed=3)

    ranking = CallableRetriever(search).search(QUERY, 1)
    assert ranking == Ranking(["a"], [1.0], {"encode": 4, "function": 9, "wrapper": 0}, collapsed=3)


def found(*ids: str) -> list[LangChainDocument]:
    return [LangChainDocument("text", id=each) for each in ids]


@pytest.mark.parametrize("use_async", [None, False, True])
def test_time_inside_of_langchain_is_apart_from_the_adapter_s(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, use_async: bool | None
) -> None:
    def search(query: str) -> list[LangChainDocument]:
        clock.now += 700
        return found("a", "b")

    async def asearch(query: str) -> list[LangChainDocument]:
        return search(query)

    def slow(*given: Any) -> Ranking:
        clock.now += 30
        return collapsing.collapse(*given)

    monkeypatch.setattr(retrieval_bench_retrievers.libraries.factories, "collapse", slow)
    retriever = LangChainRetriever(RunnableLambda(search, asearch), use_async=use_async)
    assert stages_of(retriever) == {"langchain": 700, "wrapper": 30}
    retriever.close()


def test_an_async_only_engine_is_timed_inside_of_the_loop(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def search(query: str) -> list[LangChainDocument]:
        clock.now += 700
        return found("a")

    class AsyncOnly(RunnableLambda[str, list[LangChainDocument]]):
        def invoke(self, *given: Any, **options: Any) -> list[LangChainDocument]:
            clock.now += 5
            raise NotImplementedError

    retriever = LangChainRetriever(AsyncOnly(search))
    run = retriever._loop.run

    def slow(call: Any) -> Any:
        clock.now += 40  # handing over to the loop is the adapter's own cost
        return run(call)

    monkeypatch.setattr(retriever._loop, "run", slow)
    assert stages_of(retriever) == {"langchain": 705, "wrapper": 40}  # tries invoke first
    assert stages_of(retriever) == {"langchain": 700, "wrapper": 40}
    retriever.close()


def test_asking_for_more_adds_up_and_building_for_more_is_no_cost_of_the_adapter(
    clock: Clock,
) -> None:
    def factory(k: int) -> RunnableLambda[str, list[LangChainDocument]]:
        clock.now += 5_000

        def search(query: str) -> list[LangChainDocument]:
            clock.now += 100 * k
            return found(*["a", "a", "b", "c"][:k])

        return RunnableLambda(search)

    retriever = LangChainRetriever(factory, external=True)
    assert stages_of(retriever) == {"langchain": 600, "factory": 10_000, "wrapper": 0}
    assert stages_of(retriever) == {"langchain": 600, "wrapper": 0}
