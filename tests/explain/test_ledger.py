from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.calls import Timings
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import parse_metric
from retrieval_bench.reports.render.table import text_of
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.summary import PartFacts
from retrieval_bench_explain.diff import explain
from retrieval_bench_explain.ledger import ledger, ledger_of
from retrieval_bench_explain.part_costs import cost_of
from retrieval_bench_explain.parts import Ledger, Row, Worth
from retrieval_bench_explain.steps import reached
from retrieval_bench_explain.tables.ledger import answer, ledger_table, loud
from tests.builders import some
from tests.builders.planted_parts import (
    Placing,
    Scripted,
    base_ranks,
    by_query,
    collection,
    pipeline,
)

Steps = list[dict[str, Any]]

N = 40
RNG = np.random.default_rng(4)
RANKS = base_ranks(RNG, N)
LISTS = by_query(RANKS)


def measured(
    retriever: Retriever, *, ablate: bool = False, metrics: Sequence[str] = ("nDCG@10", "R@10")
) -> tuple[Run, Dataset]:
    data = collection(N)
    experiment = prepare(
        [retriever], data, metrics=metrics, protocol=Protocol(rounds=1, warm_up_s=0.0), save=False
    )
    return replace(experiment, ablate=ablate).run(save=False)[0], data


def rows_of(retriever: Retriever, **options: Any) -> dict[str, Row]:
    return {row.name: row for row in some(ledger(*measured(retriever, **options))).rows}


def reranked(ranks: np.ndarray[Any, np.dtype[np.int64]], **step: Any) -> Retriever:
    steps: Steps = [
        {"retrieve": Scripted("base", LISTS), "depth": 30},
        {"rerank": Placing(ranks), **step},
    ]
    return pipeline(steps)


class TestVerdicts:
    def test_a_gain_is_the_mean_with_the_part_minus_the_mean_without_it(self) -> None:
        run, data = measured(reranked(np.zeros(N, dtype=np.int64)))
        found = some(ledger(run, data))
        (row,) = [row for row in found.rows if row.name == "rerank"]
        assert found.mean == pytest.approx(1.0)
        without = np.where(RANKS < 10, 1 / np.log2(RANKS + 2), 0.0).mean()
        assert some(row.without) == pytest.approx(without)
        assert some(row.gain) == pytest.approx(1.0 - without)
        assert (row.helped, row.hurt) == (int((RANKS > 0).sum()), 0)
        assert row.worth is Worth.HELPS
        low, high = some(row.ci)
        assert low < some(row.gain) < high

    def test_a_part_that_harms_is_harmful_and_said_so_with_its_size(self) -> None:
        run, data = measured(reranked(np.full(N, 9)))
        found = some(ledger(run, data))
        assert [row.name for row in found.harmful] == ["rerank"]
        (sentence,) = map(text_of, loud(found))
        gap = abs(some(found.harmful[0].gain))
        assert sentence.startswith("Harmful: rerank (")
        assert sentence.endswith(f"Without it nDCG@10 is {gap:.3f} higher.")

    def test_a_list_that_is_that_of_another_leg_or_within_it_is_dead_where_no_ranking_changes(
        self,
    ) -> None:
        rows = rows_of(_hybrid(LISTS, LISTS))
        assert [rows[name].worth for name in ("a", "b")] == [Worth.DEAD, Worth.DEAD]
        assert rows["a"].why == "its list is the same as that of b"
        rows = rows_of(_hybrid(LISTS, by_query(RANKS, 12)))
        assert rows["b"].worth is Worth.DEAD
        assert rows["b"].why == "its list is contained in that of a"

    @pytest.mark.slow
    def test_the_same_list_beside_a_third_leg_is_not_dead_by_structure(self) -> None:
        other = by_query(RNG.permutation(RANKS))
        rows = rows_of(_hybrid(LISTS, LISTS, other))
        assert rows["a"].why == "its list is the same as that of b"
        assert rows["a"].changed
        assert rows["a"].worth is not Worth.DEAD

    def test_a_reranker_after_the_cut_is_dead_by_a_metric_that_sees_no_order(self) -> None:
        steps: Steps = [
            {"retrieve": Scripted("base", LISTS), "depth": 10},
            {"rerank": Placing(RANKS[::-1])},
        ]
        run, data = measured(pipeline(steps))
        by_recall = some(ledger(run, data, parse_metric("R@10"))).rows[0]
        assert by_recall.worth is Worth.DEAD
        assert by_recall.why == (
            "runs after the cut at 10: it cannot change which documents are there"
        )
        assert some(ledger(run, data)).rows[0].worth is not Worth.DEAD

    def test_what_changes_nothing_on_few_queries_waits_for_more(self) -> None:
        steps: Steps = [
            {"retrieve": Scripted("base", LISTS), "depth": 10},
            {"rerank": Placing(RANKS)},
        ]
        row = rows_of(pipeline(steps))["rerank"]
        assert (row.changed, row.worth, row.queries_needed) == (0, Worth.UNDECIDED, 299 - N)
        row = rows_of(pipeline([{"retrieve": Scripted("base", LISTS), "depth": 30}]))["depth 30"]
        assert (row.worth, row.changed, row.gain) == (Worth.UNDECIDED, 0, 0.0)
        assert row.queries_needed == 299 - N

    @pytest.mark.slow
    def test_what_has_to_be_asked_is_not_known_until_it_is(self) -> None:
        def shout(text: str) -> str:
            return text.replace("question", "QUESTION")

        lists = LISTS | {shout(text): found for text, found in by_query(np.zeros(N, int)).items()}
        steps: Steps = [{"rewrite": shout}, {"retrieve": Scripted("base", lists)}]
        row = rows_of(pipeline(steps))["rewrite"]
        assert (row.worth, row.gain) == (Worth.UNKNOWN, None)
        row = rows_of(pipeline(steps), ablate=True)["rewrite"]
        assert row.worth is Worth.HELPS

    @pytest.mark.slow
    def test_fusion_is_held_against_the_best_leg_alone(self) -> None:
        good, bad = by_query(np.zeros(N, int)), by_query(np.full(N, 20), first=30)
        rows = rows_of(_hybrid(good, bad, by_query(np.full(N, 25))))
        assert rows["fusion"].instead == "a alone"
        assert some(rows["fusion"].without) == pytest.approx(1.0)
        assert len([row for row in rows.values() if row.kind == "fusion"]) == 1

    def test_a_retriever_of_one_piece_has_no_ledger_and_no_metric_is_deeper_than_the_run(
        self,
    ) -> None:
        run, data = measured(Scripted("base", LISTS))
        assert ledger(run, data) is None
        assert ledger_of(run, data) is None
        run, data = measured(reranked(RANKS))
        with pytest.raises(ConfigError, match="nDCG@20 of a run with k = 10"):
            ledger(run, data, parse_metric("nDCG@20"))

    def test_failed_queries_count_nowhere(self) -> None:
        def scores(text: str, documents: Sequence[Any]) -> list[float]:
            if text == "question 3":
                return [float("nan")] * len(documents)
            return [-float(at) for at, _ in enumerate(documents)]

        steps: Steps = [{"retrieve": Scripted("base", LISTS), "depth": 30}, {"rerank": scores}]
        run, data = measured(pipeline(steps))
        found = some(ledger(run, data))
        assert run.summary.n_failed == 1
        assert (found.n, found.rows[0].n) == (N - 1, N - 1)
        assert found.rows[0].gain == 0.0


def _hybrid(*lists: Mapping[str, Sequence[str]]) -> Retriever:
    from retrieval_bench_retrievers.hybrid.hybrid import Hybrid

    return Hybrid(legs=[Scripted("abc"[at], each) for at, each in enumerate(lists)], depth=30)


def test_of_several_texts_the_fused_list_counts_query_by_query() -> None:
    def some_twice(text: str) -> list[str]:
        return [text, text + " again"] if text.endswith("1") else [text]

    lists = LISTS | {text + " again": found for text, found in LISTS.items()}
    steps: Steps = [
        {"rewrite": some_twice},
        {"retrieve": Scripted("base", lists), "depth": 30},
        {"rerank": Placing(RANKS)},
    ]
    run, data = measured(pipeline(steps))
    metric = parse_metric("nDCG@10")
    (after,) = reached(run, data, metric, 50.0)
    assert after.quality == pytest.approx(run.evaluation.mean(metric).mean)
    gap = explain([run], data).gap
    assert (gap.difference, gap.higher, gap.lower) == (0.0, 0, 0)


def test_what_makes_queries_fail_is_not_said_to_help() -> None:
    class Failing(Placing):
        def __call__(self, text: str, documents: Sequence[Any]) -> list[float]:
            if int(text.rsplit(maxsplit=1)[-1]) % 2:
                raise ValueError("cannot")
            return super().__call__(text, documents)

    steps: Steps = [
        {"retrieve": Scripted("base", LISTS), "depth": 30},
        {"rerank": Failing(np.zeros(N, dtype=np.int64))},
    ]
    found = some(ledger(*measured(pipeline(steps))))
    row = found.rows[0]
    assert (found.n, found.failed) == (N // 2, N // 2)
    assert (row.worth, some(row.p) < 0.05) == (Worth.UNDECIDED, True)
    assert row.why == "20 queries failed, which it may be the cause of"
    assert any("20 queries failed" in text_of(one) for one in answer(found))


def test_few_or_empty_lists_are_not_called_alike() -> None:
    nothing: dict[str, list[str]] = {text: [] for text in LISTS}
    row = rows_of(_hybrid(LISTS, nothing))["b"]
    assert (row.worth, row.why, row.changed) == (Worth.UNDECIDED, "", 0)


def test_the_share_of_a_depth_is_of_the_documents_there_are() -> None:
    short = {text: found[:20] for text, found in LISTS.items()}
    steps: Steps = [{"retrieve": Scripted("base", short), "depth": 100}, {"rerank": Placing(RANKS)}]
    run, _ = measured(pipeline(steps))
    (part,) = [one for one in run.summary.parts if one.kind == "depth"]
    stage = run.timings.stages["step:rerank"]
    half = replace(run, timings=replace(run.timings, wall_ns=2 * stage))
    assert cost_of(half, part).share == pytest.approx(0.25)


class TestCosts:
    def timed(self, run: Run, stages: Mapping[str, Sequence[int]], wall: Sequence[int]) -> Run:
        n = len(wall)
        zeros = np.zeros(n, dtype=np.int32)
        timings = Timings(
            np.array(wall, dtype=np.int64),
            zeros,
            zeros,
            zeros,
            np.zeros(n, dtype=np.bool_),
            {name: np.array(values, dtype=np.int64) for name, values in stages.items()},
        )
        return replace(run, timings=timings)

    def part(self, **given: Any) -> PartFacts:
        return PartFacts(name="rerank", kind="reranker", **given)

    def test_legs_in_a_row_save_their_own_time_and_side_by_side_what_the_call_waits_less(
        self,
    ) -> None:
        run, _ = measured(_hybrid(LISTS, LISTS))
        run = self.timed(
            run, {"leg:a": [3_000_000] * 40, "leg:b": [5_000_000] * 40}, [9_000_000] * 40
        )
        cost = cost_of(run, self.part(stages=["leg:a"]))
        assert (cost.p50_ms, cost.p95_ms) == (3.0, None)
        assert cost.share == pytest.approx(3 / 9)
        run = self.timed(
            run, {"leg:a": [3_000_000] * 40, "leg:b": [5_000_000] * 40}, [6_000_000] * 40
        )
        assert cost_of(run, self.part(stages=["leg:a"], beside=["leg:b"])).p50_ms == 0.0
        assert cost_of(run, self.part(stages=["leg:b"], beside=["leg:a"])).p50_ms == 2.0

    def test_a_share_of_a_stage_and_what_no_stage_tells(self) -> None:
        run, _ = measured(reranked(RANKS))
        run = self.timed(run, {"step:rerank": [8_000_000] * 40}, [9_000_000] * 40)
        assert cost_of(run, self.part(stages=["step:rerank"], share=0.75)).p50_ms == 6.0
        run, _ = measured(reranked(RANKS))
        assert cost_of(run, self.part(timed=False, stages=["step:rerank"])).p50_ms is None
        assert cost_of(run, self.part(stages=["step:other"])).p50_ms is None

    def test_usage_of_what_stands_inside_belongs_to_the_part(self) -> None:
        run, _ = measured(reranked(RANKS))
        rows = np.full((len(run.timings.wall_ns), 4), np.nan)
        rows[:, 0], rows[:, 3] = 100.0, 0.002
        run = replace(run, timings=replace(run.timings, usage={"one.step:rerank": rows}))
        cost = cost_of(run, self.part(stages=["leg:one"]))
        assert some(cost.usage)["tokens_in"] == 100.0
        assert some(cost.usage)["tokens_out"] is None
        assert cost.money_per_1000_queries == pytest.approx(2.0)
        assert cost_of(run, self.part(stages=["leg:on"])).usage is None


def test_how_far_a_pipeline_is_after_each_step() -> None:
    steps: Steps = [
        {"retrieve": Scripted("base", LISTS), "depth": 30},
        {"rerank": Placing(np.full(N, 1))},
        {"rerank": Placing(np.zeros(N, dtype=np.int64)), "name": "last"},
    ]
    run, data = measured(pipeline(steps))
    metric = parse_metric("nDCG@10")
    found = reached(run, data, metric, 50.0)
    assert [one.step for one in found] == ["retrieve", "rerank"]
    base = np.where(RANKS < 10, 1 / np.log2(RANKS + 2), 0.0).mean()
    assert [one.quality for one in found] == pytest.approx([base, 1 / np.log2(3)])
    first, second = (some(one.ms) for one in found)
    assert first < second < some(run.summary.latency_ms.levels["p50"].value)


def test_the_table_says_what_is_computed_and_what_was_not_asked() -> None:
    def same(text: str) -> str:
        return text + " "

    lists = LISTS | {text + " ": found for text, found in LISTS.items()}
    steps: Steps = [
        {"rewrite": same},
        {"retrieve": Scripted("base", lists)},
        {"rerank": Placing(RANKS)},
    ]
    found = some(ledger(*measured(pipeline(steps))))
    table = ledger_table(found, again=True)
    said = {str(row[0]): getattr(row[3], "value", row[3]) for row in table.rows}
    assert list(said.items()) == [
        ("rewrite", "not asked"),
        ("rerank", "can't tell"),
        ("rerank depth 100", "not asked"),
    ]
    notes = " ".join(map(text_of, table.notes))
    assert "Not asked: rewrite, rerank depth 100: what was kept does not say" in notes
    assert "explain Pipeline --by stage" in notes
    assert table.columns[2] == "effect on nDCG@10"


def test_where_no_query_was_answered_no_mean_is_told() -> None:
    def broken(text: str, documents: Sequence[Any]) -> list[float]:
        raise RuntimeError("no route to the model")

    steps: Steps = [{"retrieve": Scripted("base", LISTS), "depth": 30}, {"rerank": broken}]
    found = some(ledger(*measured(pipeline(steps))))
    assert (found.n, found.known_mean) == (0, None)
    assert ledger_table(found).title.endswith("part by part: no query that counts was answered")


def test_the_document_has_every_part_in_full() -> None:
    found: Ledger = some(ledger(*measured(reranked(np.full(N, 9)))))
    document = found.as_dict()
    assert document["n"] == N
    (part,) = [one for one in document["parts"] if one["name"] == "rerank"]
    assert part["worth"] == "harmful"
    assert set(part["cost"]) == {"p50_ms", "p95_ms", "share", "usage", "money_per_1000_queries"}
    assert replace(found, n=0, mean=float("nan")).as_dict()["mean"] is None
