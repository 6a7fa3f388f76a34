"""What equal scores decide: the best and the worst order, by trying all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.notices import Code
from retrieval_bench.metrics import Judgements, judge, judge_lists, parse_metrics
from retrieval_bench.metrics.judged import JudgedRun
from retrieval_bench.metrics.names import Metric
from retrieval_bench.metrics.tied import TieEffect, tie_effect
from retrieval_bench.metrics.ties import TiedHits, ties_of
from tests.builders import some

QRELS = {"q": {"a": 2, "b": 1, "c": 0, "z": 1, "d": -1}, "r": {"b": 1, "c": 1}, "s": {"a": 1}}
SCORES = {
    "q": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5, "e": 0.5, "z": 0.5},
    "r": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 2.0},
    "s": {"a": 9.0, "b": 8.0},
}
METRICS = parse_metrics(
    ["nDCG@2", "nDCG", "AP", "RR", "P@1", "R@2", "Success@1", "Bpref", "Rprec", "ERR@3", "GMAP",
     "RBP(p=0.8)", "nDCG(gain=exp)@3", "AP(rel=2)", "RR(judged_only=True)"]
)  # fmt: skip


def orders(scores: Mapping[str, float]) -> Iterator[list[str]]:
    """All orders of a ranking that keep its scores falling."""
    values = sorted(set(scores.values()), reverse=True)
    groups = [[doc for doc, score in scores.items() if score == value] for value in values]
    for parts in product(*map(permutations, groups)):
        yield [doc for part in parts for doc in part]


def extremes(metric: Metric) -> tuple[float, float]:
    """The lowest and the highest mean over all orders of every query."""
    ends = []
    for query, scores in SCORES.items():
        lists = {str(i): order for i, order in enumerate(orders(scores))}
        run = judge_lists(lists, list(lists), Judgements(dict.fromkeys(lists, QRELS[query])))
        values = metric.additive(metric.compute(run))
        ends.append((values.min(), values.max()))
    low, high = np.mean(ends, axis=0)
    return float(metric.from_additive(low)), float(metric.from_additive(high))


def of_lists(
    scores: Mapping[str, Mapping[str, float]], qrels: Mapping[str, Mapping[str, int]] = QRELS
) -> JudgedRun:
    """The join of lists, with the ties of their scores."""
    run = judge_lists({q: list(of) for q, of in scores.items()}, list(scores), Judgements(qrels))
    keys = np.array([score for of in scores.values() for score in of.values()])
    return replace(run, ties=ties_of(keys, run.lengths))


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_best_and_worst_are_those_of_all_orders_tried(metric: Metric) -> None:
    run = of_lists(SCORES)
    low, high = extremes(metric)
    effect = tie_effect(run, [metric])
    if high - low < 0.01:
        assert effect is None
    else:
        ends = some(effect)
        assert [ends.worst, ends.best] == pytest.approx([low, high])
        assert ends.metric == str(metric)


@pytest.mark.needs("retrieval_bench_score")
def test_lists_and_dictionaries_have_the_same_ties() -> None:
    from retrieval_bench_score.scored import judge_scores

    joins = (judge_scores(SCORES, list(SCORES), Judgements(QRELS)), of_lists(SCORES))
    effects = [tie_effect(run, METRICS[:1]) for run in joins]
    assert effects[0] == effects[1] == some(effects[0])


def test_arrays_without_scores_have_no_ties() -> None:
    docs = sorted({doc for of in SCORES.values() for doc in of})
    places = np.full((3, 6), -1, dtype=np.int32)
    for row, of in enumerate(SCORES.values()):
        places[row, : len(of)] = [docs.index(doc) for doc in of]
    arrays = judge(places, docs, list(SCORES), Judgements(QRELS))
    assert arrays.ties is None


def share(scores: Sequence[Sequence[float]], cut: int | None) -> float:
    return float(of_scores(scores).share(cut))


def of_scores(scores: Sequence[Sequence[float]]) -> TiedHits:
    lengths = np.array(list(map(len, scores)), dtype=np.int64)
    return some(ties_of(np.array([one for of in scores for one in of]), lengths))


def test_the_share_is_that_of_the_hits_down_to_the_cut() -> None:
    scores = [[3, 3, 2, 1, 1, 1], [], [5], [2, 1]]
    assert share(scores, None) == 5 / 9
    assert share(scores, 1) == 1 / 3
    assert share(scores, 3) == 2 / 6
    assert share(scores, 5) == 4 / 8
    assert of_scores(scores).constant().tolist() == [False] * 4
    assert of_scores([[1, 1], [], [1], [1, 1, 0]]).constant().tolist() == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "scores", [[], [[]], [[1.0]], [[2, 1], [1, 0]], [[], [1], [], [1], []], [[np.nan, np.nan]]]
)
def test_equal_scores_of_two_queries_are_no_tie(scores: Sequence[Sequence[float]]) -> None:
    lengths = np.array(list(map(len, scores)), dtype=np.int64)
    assert ties_of(np.array([one for of in scores for one in of]), lengths) is None


def test_ties_that_change_little_are_not_told() -> None:
    rows = {f"q{i:03}": {"a": 2.0, "b": 1.0} for i in range(101)}
    rows["q000"] = {"a": 1.0, "b": 1.0}
    judged = {query: {"a": 1} for query in rows}
    assert tie_effect(of_lists(rows, judged), parse_metrics(["RR"])) is None
    rows["q001"] = rows["q002"] = rows["q000"]
    effect = some(tie_effect(of_lists(rows, judged), parse_metrics(["RR"])))
    assert [effect.worst, effect.best] == pytest.approx([1 - 1.5 / 101, 1])
    assert not effect.constant


def test_of_a_metric_of_the_users_only_the_share_is_told() -> None:
    run = of_lists(SCORES)
    (own,) = parse_metrics(["tests.kernel.metrics.test_ties:share_of_hits@4"])
    effect = some(tie_effect(run, [own]))
    assert (effect.worst, effect.best, effect.share) == (None, None, 7 / 10)
    assert effect.notice("Do.") == (
        "70 % of the first 4 hits share their score with another hit, and the order of ids "
        "decides between them. Do."
    )
    assert tie_effect(run, [own, *parse_metrics(["RR"])]) == tie_effect(run, parse_metrics(["RR"]))


def share_of_hits(run: JudgedRun, cut: int | None) -> Any:
    """A metric of a user."""
    return run.count(run.relevant(1, cut).row) / 100


def test_the_words() -> None:
    effect = TieEffect("RR@10", 10, 0.384, constant=False, worst=0.25, best=0.5)
    assert effect.notice("Do this.") == (
        "38 % of the first 10 hits share their score with another hit, and the order of ids "
        "decides between them: in other orders MRR@10 would be anything from 0.250 to "
        "0.500. Do this."
    )
    assert effect.notice("").code is Code.TIES
    constant = TieEffect("AP", None, 1.0, constant=True, worst=0.25, best=0.5)
    assert constant.notice("Do this.") == (
        "All hits of a query have the same score, so their order is that of their ids: in other "
        "orders MAP would be anything from 0.250 to "
        "0.500. Do this."
    )


def test_orders_are_all_of_them() -> None:
    assert len(list(orders(SCORES["q"]))) == 36
    assert all(
        SCORES["r"][one] >= SCORES["r"][two]
        for order in orders(SCORES["r"])
        for one, two in pairwise(order)
    )
