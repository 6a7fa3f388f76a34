"""All that a report says of a comparison, worked out before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core.types import Dataset
from retrieval_bench.metrics import parse_metric
from retrieval_bench.runs.run import Run
from retrieval_bench_pages.analysis import Analysis, QueryValues, analyse, query_values
from tests.builders import some
from tests.builders.hybrid_runs import make_dataset, make_run
from tests.builders.page_sample import make_dataset as page_dataset
from tests.builders.page_sample import make_runs

QUERIES = [f"q{i:02}" for i in range(8)]
DATA = make_dataset({query: {"a": 1} for query in QUERIES})
FIRST = dict.fromkeys(QUERIES, "axy")  # RR@3 1
SECOND = dict.fromkeys(QUERIES, "xay")  # 1/2
THIRD = dict.fromkeys(QUERIES, "xya")  # 1/3


def plain(name: str, lists: Mapping[str, str], data: Dataset = DATA) -> Run:
    return make_run(name, data, lists)


def hybrid(name: str = "mixed", fused: Mapping[str, str] = SECOND) -> Run:
    return make_run(name, DATA, fused, {"sparse": THIRD, "dense": FIRST})


def values_of(runs: Sequence[Run], best: str | None) -> QueryValues | None:
    return query_values(compare_runs(runs).groups[0], DATA, best)


@pytest.fixture(scope="module")
def page() -> Analysis:
    data = page_dataset()
    return analyse(compare_runs(make_runs(data)), [data])


class TestAnalyse:
    @pytest.mark.slow
    def test_each_dataset_is_worked_out_by_itself(self) -> None:
        data = [page_dataset(30, "one"), page_dataset(24, "two")]
        runs = [run for each in data for run in make_runs(each)]
        result = analyse(compare_runs(runs), data)
        assert [one.group.dataset for one in result.groups] == ["one", "two"]
        assert [len(some(one.queries).query_ids) for one in result.groups] == [30, 24]
        assert result.recommendations == tuple(one.recommendation for one in result.groups)
        assert [answer.dataset for answer in result.recommendations] == ["one", "two"]

    @pytest.mark.slow
    def test_slices_are_of_all_metrics(self, page: Analysis) -> None:
        (one,) = page.groups
        assert one.slicings
        assert all(slicing.metrics == one.group.metrics for slicing in one.slicings)

    def test_a_dataset_or_the_reason_why_there_is_none_is_given_for_each(self) -> None:
        runs = make_runs(page_dataset())
        (one,) = analyse(compare_runs(runs), ["no dataset at data/gone."]).groups
        assert one.without_dataset == "no dataset at data/gone."
        assert (one.slicings, one.queries) == ((), None)
        assert one.recommendation.sentence
        with pytest.raises(ValueError, match="zip"):
            analyse(compare_runs(make_runs(page_dataset())), [])


class TestQueryValues:
    def test_the_pair_is_the_best_or_first_that_can_be_compared_and_the_best_other(
        self,
    ) -> None:
        runs = [plain("low", THIRD), plain("high", FIRST), plain("middle", SECOND)]
        result = some(values_of(runs, "high"))
        assert result.names == ("low", "high", "middle")
        assert [result.names[at] for at in result.pair] == ["middle", "high"]  # b minus a
        assert result.values.tolist() == [pytest.approx([1 / 3, 1, 1 / 2])] * 8
        runs = [plain("alone", FIRST), plain("a", SECOND), plain("b", THIRD)]
        runs[0] = replace(runs[0], summary=runs[0].summary.replace(k=5))
        result = some(values_of(runs, None))
        assert result.names == ("a", "b")
        assert [result.names[at] for at in result.pair] == ["b", "a"]
        one, two = plain("one", FIRST), plain("two", SECOND)
        assert values_of([one, replace(two, summary=two.summary.replace(k=5))], None) is None
        assert values_of([one, replace(two, summary=two.summary.replace(k=5))], "one") is None

    def test_queries_that_a_run_finished_in_another_order_are_put_in_one(self) -> None:
        mixed = {query: ("axy" if at % 2 else "xya") for at, query in enumerate(QUERIES)}
        one, two = plain("one", FIRST), plain("two", mixed)
        turned = replace(
            two.evaluation,
            query_ids=two.evaluation.query_ids[::-1],
            per_query=two.evaluation.per_query[::-1],
        )
        result = some(values_of([one, replace(two, evaluation=turned)], "one"))
        assert result.query_ids == tuple(QUERIES)
        at = result.names.index("two")
        assert result.values[:, at].tolist() == pytest.approx([1 / 3, 1] * 4)

    def test_queries_come_in_turn_by_the_pair_and_by_the_widest_gap(self) -> None:
        values = np.array([[0, 0, 0], [0.5, 1, 0.5], [0, 0.1, 1], [1, 0, 1], [0, 0, 0.2]])
        shown = some(values_of([plain(name, FIRST) for name in ("x", "y", "z")], "x"))
        one = replace(shown, values=values, pair=(0, 1), query_ids=tuple(QUERIES[:5]))
        # by the pair 3, 1, 2, 0, 4; by the spread 2, 3, 1, 4, 0 (equal ones as they come)
        assert one.order() == [3, 2, 1, 0, 4]
        assert sorted(one.order()) == list(range(5))


class TestHybrids:
    def test_each_hybrid_that_kept_its_lists_is_explained(self) -> None:
        old = make_run("old", DATA, SECOND, {"dense": FIRST}, told=False)
        result = some(values_of([hybrid(), old, plain("bm25", THIRD)], "mixed"))
        assert [one.runs[0].name for one in result.explained] == ["mixed"]
        (explanation,) = result.explained
        assert explanation.metric == parse_metric("RR@3")
        ((ceiling,),) = explanation.ceilings([explanation.metric]).values()
        assert ceiling.best_leg == "dense"
        assert (some(ceiling.fused).mean, ceiling.choice.mean) == (0.5, 1.0)

    def test_groups_of_queries_are_named_after_their_hybrid(self) -> None:
        runs = [hybrid("mixed"), hybrid("other", FIRST), plain("bm25", THIRD)]
        result = some(values_of(runs, "other"))
        labels = {label for part in result.partitions for label in part.labels}
        assert {"mixed: lost by fusion", "other: lost by fusion"} <= labels
        for part in result.partitions:
            counts = dict.fromkeys(part.labels, 0)
            for place in part.member:
                counts[part.labels[place]] += 1
            if part.kind == "fusion":
                kept = "mixed: lost by fusion" if "mixed" in part.of else "other: as its best leg"
                assert counts[kept] == len(QUERIES)

    def test_equal_names_are_told_apart_as_in_the_comparison(self) -> None:
        result = some(values_of([hybrid(), hybrid(fused=FIRST)], None))
        assert result.names == ("mixed", "mixed#2")
        assert [one.runs[0].name for one in result.explained] == ["mixed", "mixed#2"]

    def test_a_metric_that_looks_deeper_than_the_lists_explains_nothing(self) -> None:
        deep = [
            make_run(name, DATA, lists, {"dense": FIRST}, metrics=("RR@10",))
            for name, lists in (("x", FIRST), ("y", SECOND))
        ]
        result = some(values_of(deep, "x"))
        assert (result.explained, result.partitions) == ((), ())
