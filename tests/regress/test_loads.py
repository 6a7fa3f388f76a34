"""Two loads level by level; their servers are made up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.types import Verdict
from retrieval_bench.data import load_dataset
from retrieval_bench_load.engine.bracket import Capacity
from retrieval_bench_load.engine.capacity import Limit
from retrieval_bench_load.engine.generator import Generator, Level, LevelCalls
from retrieval_bench_load.engine.load import LoadResult, Plan, load
from retrieval_bench_load.engine.saved import find_load, read_load
from retrieval_bench_load.engine.tails import Tail
from retrieval_bench_load.loads import (
    ComparedLoads,
    PercentilePair,
    _both,
    _capacity,
    _judged,
    _pairs,
    compare_loads,
    judge_load,
    regress_load,
)
from retrieval_bench_load.tables.pairs import load_pair_tables
from retrieval_bench_regress.gate import Regression, worst
from retrieval_bench_regress.latency_gates import LatencyGate, LatencyResult
from retrieval_bench_regress.policy import Policy, load_policy
from retrieval_bench_regress.regress import Request
from retrieval_bench_regress.tables.regress import regress_tables
from tests.builders.queued import Queued

PLAN = Plan(rates=[100.0, 250.0], clients=[2], seconds=30.0)
DATA = load_dataset("science-mini")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _server(slower: float = 1.0, wrong: int = 0) -> Queued:
    """It is asked 60 queries, each with a relevant document; the first ``wrong`` ones get none."""
    best = [max(of := DATA.qrels.get(query.id, {}), key=of.__getitem__, default="") for query in
            DATA.asked[:60]]  # fmt: skip
    hits = [("none",) if at < wrong else (one,) for at, one in enumerate(best)]
    return Queued(slower, hits)


def _made(
    monkeypatch: pytest.MonkeyPatch, slower: float = 1.0, plan: Plan = PLAN, wrong: int = 0
) -> LoadResult:
    _server(slower, wrong).instead(monkeypatch)
    return load("bm25", "science-mini", plan, metrics=["nDCG@10"])


def test_a_saved_load_is_read_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _made(monkeypatch)
    assert made.folder is not None
    for name in ("@load", "bm25@load", str(made.folder), made.folder.name[:17]):
        found = read_load(find_load(name))
        assert replace(found, folder=made.folder).as_dict() == made.as_dict()


def test_what_is_no_load_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no saved load"):
        find_load("@load")
    made = _made(monkeypatch)
    assert made.folder is not None
    for said in ("{}", '{"schema_version": 2}'):
        (made.folder / "load.json").write_text(said, encoding="utf-8")
        with pytest.raises(RecordError, match="load of schema version"):
            read_load(made.folder)
    (made.folder / "load.json").write_text('{"schema_version": 1}', encoding="utf-8")
    with pytest.raises(RecordError, match="damaged or was edited"):
        read_load(made.folder)
    (made.folder / "SHA256SUMS").unlink()
    with pytest.raises(RecordError, match="lacks something"):
        read_load(made.folder)


def test_the_interval_of_a_ratio_is_that_of_both_percentiles() -> None:
    a, b = Tail(50.0, 2.0, (1.6, 2.5), 900.0), Tail(50.0, 3.0, (2.4, 3.75), 900.0)
    found = PercentilePair.of(a, b)
    assert found.interval is not None
    assert found.interval == pytest.approx((1.5 * 0.8**2**0.5, 1.5 * 1.25**2**0.5))
    assert found.verdict == "can't tell", "two moments of a machine differ by as much"
    slow = Tail(50.0, 4.0, (3.2, 5.0), 900.0)
    assert PercentilePair.of(a, slow).verdict == "slower"
    assert PercentilePair.of(slow, a).verdict == "faster"
    assert PercentilePair.of(a, replace(b, ci95=(1.5, None))).verdict == "can't tell"
    above = Tail(50.0, None, None, 900.0, above_ms=10_000.0)
    late = PercentilePair.of(a, above)
    assert (late.b, late.ratio, late.verdict) == (None, None, "slower")
    assert late.interval is not None
    assert (round(late.interval[0] or 0.0), late.interval[1]) == (4_000, None)
    assert PercentilePair.of(above, a).verdict == "can't tell"
    assert _judged(a, above, (4_000.0, math.inf), 0.2)["reason"] == "above the time-out"


def test_a_p95_that_is_slower_has_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(PLAN, rates=[100.0], clients=[])
    kept = _made(monkeypatch, plan=plan)
    level = kept.levels[0]
    p50, _, p99 = level.result.latency
    slow = Tail(95.0, None, None, 900.0, above_ms=10_000.0)
    result = replace(level.result, latency=(p50, slow, p99))
    now = replace(kept, levels=(replace(level, result=result),))
    pairs = tuple(_pairs(kept, now))
    (table,) = load_pair_tables(ComparedLoads(pairs, (), (), "", (kept, now)))
    (row,) = [row for row in table.rows if row[1] == "p95 ms"]
    assert row[-1] == "slower"
    assert "> 10 s" in str(row[3])


def test_rough_ends_of_two_searches_are_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _made(monkeypatch, plan=replace(PLAN, rates=[100.0], clients=[]))
    limit = Limit(99.0, 200.0)
    sides = [
        replace(made, capacity=Capacity(limit, low, high, 9, rough=False))
        for low, high in ((50.0, 60.0), (70.0, 80.0))
    ]
    assert _capacity(*sides) == "higher"
    rough = replace(sides[1], capacity=Capacity(limit, 70.0, 80.0, 3, rough=True))
    assert _capacity(sides[0], rough) == "can't tell"


def test_a_level_without_percentiles_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _made(monkeypatch, plan=replace(PLAN, rates=[100.0], clients=[]))
    level = kept.levels[0]
    dead = tuple(Tail(p, None, None, 0.0, reason="all calls failed") for p in (50.0, 95.0, 99.0))
    now = replace(kept, levels=(replace(level, result=replace(level.result, latency=dead)),))
    found = judge_load(kept, now, Policy({}, {})).latency
    assert found is not None
    assert found.gates[0].reason == "all calls failed"


@pytest.mark.slow
def test_a_slower_service_is_slower_at_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _made(monkeypatch), _made(monkeypatch, 1.3)
    found = compare_loads([str(a.folder), str(b.folder)])
    by_name = {pair.level: pair for pair in found.levels}
    assert by_name.keys() == {"one at a time", "2 clients", "100/s", "250/s"}
    assert by_name["250/s"].percentiles[0].verdict == "slower"
    assert by_name["250/s"].difference == 0.0
    text = str(load_pair_tables(found))
    assert "b is slower at" in text
    again = compare_loads([str(a.folder), str(a.folder)])
    assert {one.verdict for pair in again.levels for one in pair.percentiles} == {"can't tell"}


@pytest.mark.slow
def test_levels_that_only_one_has_and_what_is_not_the_same_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = _made(monkeypatch)
    b = _made(monkeypatch, plan=replace(PLAN, rates=[100.0, 450.0], arrivals="constant"))
    found = compare_loads([str(a.folder), str(b.folder)])
    assert found.alone == ("250/s (a)", "450/s (b)")
    assert found.notes == ("arrivals poisson and constant",)
    with pytest.raises(ConfigError, match="3 loads"):
        compare_loads([str(a.folder)] * 3)


@pytest.mark.slow
def test_a_level_that_is_overloaded_in_one_is_slower_without_a_percentile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = _made(monkeypatch), _made(monkeypatch, 2.4)
    pair = compare_loads([str(a.folder), str(b.folder)]).levels[-1]
    assert (pair.level, pair.percentiles, pair.verdict) == ("250/s", (), "slower")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slower", "code", "word"), [(1.0, 0, "PASS"), (1.5, 1, "FAIL"), (2.4, 1, "FAIL")]
)
def test_a_kept_load_is_a_baseline(
    monkeypatch: pytest.MonkeyPatch, slower: float, code: int, word: str
) -> None:
    kept = _made(monkeypatch, plan=replace(PLAN, rates=[150.0, 250.0], clients=[], seconds=90.0))
    _server(slower).instead(monkeypatch)
    found = regress_load(Request("bm25"), str(kept.folder))
    assert (found.code, found.word) == (code, word)
    assert word in str(regress_tables(found))


@pytest.mark.slow
def test_a_sign_that_does_not_come_again_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _made(monkeypatch, plan=replace(PLAN, rates=[250.0], clients=[], seconds=60.0))
    once = _server(1.6).instead(monkeypatch)
    whole = once.run

    def run(level: Level, spec: Mapping[str, Any]) -> LevelCalls:
        if once.made == 2:  # one call at a time, and the level
            once.slower = 1.0
        return whole(level, spec)

    monkeypatch.setattr(once, "run", run)
    found = regress_load(Request("bm25"), str(kept.folder))
    assert (found.code, found.word) == (3, "INCONCLUSIVE")
    assert found.latency is not None
    assert "not shown again when repeated" in found.latency.reason


@pytest.mark.parametrize(
    ("again", "verdict", "why"),
    [
        (Verdict.WORSE, Verdict.WORSE, ""),
        (Verdict.EQUIVALENT, Verdict.UNDECIDED, "worse once, and not shown again when repeated"),
        (Verdict.MISSING, Verdict.UNDECIDED, "worse once, and not shown again when repeated"),
        (None, Verdict.UNDECIDED, "worse once, and not shown again when repeated"),
    ],
)
@pytest.mark.parametrize("gate", ["p95 at 50/s", "refused or failed at 50/s"])
def test_only_what_is_worse_twice_fails(
    gate: str, again: Verdict | None, verdict: Verdict, why: str
) -> None:
    def of(*verdicts: Verdict) -> Regression:
        gates = tuple(LatencyGate(gate, one, 0.2) for one in verdicts)
        latency = LatencyResult(worst(verdicts), gates, "", unsupported=())
        return Regression({}, Policy({}, {}), {}, None, latency)  # type: ignore[typeddict-item]

    found = _both(of(Verdict.WORSE), of(*([] if again is None else [again]))).latency
    assert found is not None
    if gate.startswith("refused") and again is not None:
        assert found.gates[0].verdict is again, "it is of both measurements together"
    else:
        assert (found.gates[0].verdict, found.gates[0].reason) == (verdict, why)


@pytest.mark.slow
def test_quality_under_load_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, now = _made(monkeypatch), _made(monkeypatch, wrong=30)
    found = judge_load(kept, now, load_policy(k=10))
    assert found.quality is not None
    assert {gate.verdict for gate in found.quality.gates} == {Verdict.WORSE}
    assert found.quality.gates[0].metric == "nDCG@10 at 2 clients"
    assert found.code == 1
    same = judge_load(kept, kept, load_policy(k=10)).quality
    assert same is not None
    assert {gate.verdict for gate in same.gates} == {Verdict.EQUIVALENT}
    assert (same.n, found.quality.n) == (60, 60)
    assert "same values" in same.reason  # which rankings were kept is not known


@pytest.mark.slow
def test_worse_quality_alone_is_no_reason_to_measure_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _made(monkeypatch)
    _server(wrong=30).instead(monkeypatch)
    found = regress_load(Request("bm25"), str(kept.folder))
    assert found.code == 1
    assert len(list(Path("results/loads").glob("[!.]*"))) == 2


def test_a_load_of_another_machine_says_nothing_of_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _made(monkeypatch)
    there = replace(kept, environment={"machine": {"fingerprint": "another"}})
    found = judge_load(there, kept, Policy({}, {}))
    assert found.code == 4
    assert found.latency is not None
    assert "another machine" in found.latency.reason


def test_a_load_of_other_queries_or_of_another_retriever_is_refused_before_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = _made(monkeypatch)

    def called(*_: object) -> None:
        raise AssertionError("a level was made")

    monkeypatch.setattr(Generator, "run", called)
    monkeypatch.setattr(Generator, "prepare", called)
    for request, problem in (
        (Request("bm25", k=5), "k 5 beside a load of 10"),
        (Request("langchain-in-memory"), "langchain-in-memory beside a load of bm25"),
        (Request("bm25", "science-ko-mini"), "dataset science-ko-mini beside a load of"),
    ):
        with pytest.raises(ConfigError, match=problem):
            regress_load(request, str(kept.folder))
