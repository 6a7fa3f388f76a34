"""Answers and judgements at the edge of what can be scored: figures, or a clean error."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.metrics import Judgements, parse_metrics
from retrieval_bench.metrics.tied import tie_effect
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scored import judge_scores
from retrieval_bench_score.scoring import Answers, score
from tests.builders import some
from tests.builders.generated import generated

TREC = convention("trec")
AP = TREC.parse(["AP"])


def test_scores_under_a_convention_of_lists_keep_the_order_of_equal_ones() -> None:
    rules = convention("scienceqa")
    scored = score(
        Answers(scores={"q": {"a": 1.0, "b": 1.0}}),
        Judgements({"q": {"a": 1}}),
        rules,
        rules.parse(["AP"]),
    )
    assert scored.tie_rule == "order of the list"
    assert scored.evaluation.means[0].mean == 1.0


@pytest.mark.parametrize("rules", ["trec", "tutorial", "blog"])
def test_lists_that_are_all_empty_have_default_metrics(rules: str) -> None:
    assert convention(rules).default_metrics(0)


def test_the_order_of_the_judgements_changes_no_interval() -> None:
    data = generated(1, 60)
    shuffled = list(data.qrels)
    random.Random(0).shuffle(shuffled)
    first, second = (
        score(Answers(scores=data.scores), Judgements(qrels), TREC, AP).evaluation.means
        for qrels in (data.qrels, {query_id: data.qrels[query_id] for query_id in shuffled})
    )
    assert first == second


def test_a_repetition_far_down_is_found() -> None:
    long = [*map(str, range(30_000)), "29999"]
    with pytest.raises(DataError, match="29999"):
        score(Answers(lists={"q": long}), Judgements({"q": {"a": 1}}), TREC, AP)


def test_nothing_to_compute_is_told() -> None:
    with pytest.raises(ConfigError, match="no metric"):
        score(Answers(lists={"q": ["a"]}), Judgements({"q": {"a": 1}}), TREC, ())


def test_a_query_that_contradicts_itself_or_has_negative_grades_only_is_told() -> None:
    scored = score(Answers(lists={"q": ["a"]}), Judgements({"q": {"a": -1}}), TREC, AP)
    assert scored.counts.evaluated == 1
    assert "1 query judged without a relevant document" in scored.warnings
    scored = score(
        Answers(lists={"q": ["a"], "r": ["a"]}),
        Judgements({"q": {"a": 1}, "r": {"a": 1}}),
        TREC,
        AP,
        unanswerable={"q"},
    )
    assert scored.counts.evaluated == 1
    assert any("said to have no answer" in warning for warning in scored.warnings)


def test_any_number_is_a_score() -> None:
    scores: Any = {"q": {"a": np.float32(2), "b": 1, "c": True}}
    run = judge_scores(scores, ["q"], Judgements({"q": {"a": 1}}))
    assert run.judged.rank.tolist() == [1]


def test_equal_in_single_precision_is_equal() -> None:
    rows = {"q": {"a": 0.700000001, "b": 0.70}}
    found = tie_effect(
        judge_scores(rows, ["q"], Judgements({"q": {"a": 1}})), parse_metrics(["RR"])
    )
    assert (some(found).worst, some(found).best) == (0.5, 1.0)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("at", range(5))
def test_a_score_that_is_no_number_is_told_with_its_query_and_document(
    score: float, at: int
) -> None:
    run = {
        "q1": {},
        "q2": {"d0": 1.0, "d1": 1.0},
        "q3": {},
        "q4": {"d2": 1.0, "d3": 1.0, "d4": 1.0},
    }
    place = "q2" if at < 2 else "q4"
    run[place][f"d{at}"] = score
    with pytest.raises(DataError) as caught:
        judge_scores(run, [*run, "q5"], Judgements({"q2": {"d0": 1}}))
    assert caught.value.given == f"score {score} of document 'd{at}', query {place!r}"
    assert caught.value.accepted == "finite numbers"
    assert caught.value.fix


def test_a_score_that_is_no_number_in_a_query_that_does_not_count_does_not_matter() -> None:
    run = {"q": {"a": 1.0}, "other": {"a": float("nan")}}
    assert judge_scores(run, ["q"], Judgements({"q": {"a": 1}})).judged.rank.tolist() == [1]
