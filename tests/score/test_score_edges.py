"""Answers and judgements at the edge of what can be scored: figures, or a clean error."""

from __future__ import annotations

import random

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.metrics import Judgements
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scoring import Answers, score
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
