"""Answer spans against gold spans, by hand and by property."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_bench_answers.reader_spans import (
    ALIASES,
    METRICS,
    Span,
    SpanScores,
    exact_match,
    mean,
    overlaps,
    position_f1,
    score,
)

GOLD: Span = ("d", 10, 20)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    start = draw(st.integers(0, 12))
    return draw(st.sampled_from(["d", "e"])), start, start + draw(st.integers(0, 8))


ANSWERS = st.lists(st.none() | spans(), max_size=5)
GOLDS = st.lists(spans(), max_size=3)


@pytest.mark.parametrize(
    ("answer", "overlap", "exact", "f1"),
    [
        (("d", 10, 20), True, True, 1),
        (("d", 12, 18), True, False, 2 * 6 / (10 + 6)),
        (("d", 15, 25), True, False, 2 * 5 / (10 + 10)),
        (("d", 0, 30), True, False, 2 * 10 / (10 + 30)),
        (("d", 20, 25), True, False, 0),  # touches: inclusive, as the original
        (("d", 5, 10), True, False, 0),
        (("d", 21, 25), False, False, 0),
        (("d", 5, 9), False, False, 0),
        (("d", 15, 15), True, False, 0),  # empty
        (("e", 10, 20), False, False, 0),  # another document
    ],
)
def test_two_spans_by_hand(answer: Span, overlap: bool, exact: bool, f1: float) -> None:
    assert overlaps(GOLD, answer) is overlap
    assert exact_match(GOLD, answer) is exact
    assert position_f1(GOLD, answer) == pytest.approx(f1)


def test_top1_looks_at_the_first_answer_and_topk_at_the_best_each_against_its_best_gold_span() -> (
    None
):
    answers = [("d", 15, 25), ("e", 10, 20), ("d", 10, 20)]
    found = score([GOLD, ("d", 40, 50)], answers)
    assert found == SpanScores(
        top1_accuracy=1,
        topk_accuracy=1,
        top1_em=0,
        topk_em=1,
        top1_f1=0.5,
        topk_f1=1,
        topk_mean_f1=0.5,
    )
    assert score([("d", 10, 30), ("d", 10, 12)], [("d", 10, 12)]).top1_f1 == 1


def test_an_empty_answer_is_wrong_where_there_is_an_answer_and_else_right_first_or_anywhere() -> (
    None
):
    assert score([GOLD], [None]) == SpanScores(0, 0, 0, 0, 0, 0, 0)
    assert score([GOLD], [None, GOLD]) == SpanScores(0, 1, 0, 1, 0, 1, 0.5)
    assert score([], [None, GOLD]) == SpanScores(1, 1, 1, 1, 1, 1, 1)
    assert score([], [GOLD, None]) == SpanScores(0, 1, 0, 1, 0, 1, 1)
    assert score([], [GOLD]) == SpanScores(0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("golds", [[], [GOLD]])
def test_no_answer_at_all_scores_nothing(golds: list[Span]) -> None:
    assert score(golds, []) == SpanScores(0, 0, 0, 0, 0, 0, 0)


def test_names_are_those_of_piaf() -> None:
    both = ("accuracy", "em", "f1")
    named = [f"reader_{top}_{what}" for top in ("top1", "topk") for what in both]
    named += ["reader_topk_mean_f1"]
    named += [f"{name}_has_answer" for name in named]
    named += ["reader_top1_no_answer_accuracy", "reader_topk_no_answer_accuracy"]
    assert set(METRICS) == set(named)
    assert METRICS["reader_topk_f1_has_answer"] == ("topk_f1", "has_answer")
    assert METRICS["reader_top1_no_answer_accuracy"] == ("top1_accuracy", "no_answer")
    assert ALIASES["reader_top1_fk"] == "reader_topk_f1"
    assert set(ALIASES.values()) <= set(METRICS)


def test_a_mean_over_none_is_not_defined() -> None:
    assert mean([]) is None
    assert mean([0.1] * 10) == 0.1


@given(GOLDS, ANSWERS)
def test_scores_lie_between_0_and_1_in_their_order(
    golds: list[Span], answers: list[Span | None]
) -> None:
    found = score(golds, answers)
    assert all(0 <= value <= 1 for value in found)
    assert found.top1_accuracy <= found.topk_accuracy
    assert found.top1_em <= found.topk_em
    assert found.top1_f1 <= found.topk_f1
    assert found.topk_mean_f1 <= found.topk_f1 + 1e-12
    assert found.topk_f1 <= found.topk_accuracy  # a common position is an overlap


@given(spans(), spans())
def test_two_spans_may_change_places(gold: Span, answer: Span) -> None:
    assert overlaps(gold, answer) == overlaps(answer, gold)
    assert position_f1(gold, answer) == position_f1(answer, gold)


@given(spans(), spans())
def test_position_f1_is_that_of_sets_of_positions(gold: Span, answer: Span) -> None:
    ours = {(gold[0], i) for i in range(gold[1], gold[2])}
    theirs = {(answer[0], i) for i in range(answer[1], answer[2])}
    common = len(ours & theirs)
    expected = 2 * common / (len(ours) + len(theirs)) if common else 0
    assert position_f1(gold, answer) == expected


@given(GOLDS, ANSWERS, st.randoms(use_true_random=False))
def test_the_order_of_gold_spans_changes_nothing(
    golds: list[Span], answers: list[Span | None], order: random.Random
) -> None:
    shuffled = list(golds)
    order.shuffle(shuffled)
    assert score(shuffled, answers) == score(golds, answers)


@given(GOLDS, ANSWERS.filter(bool), st.none() | spans())
def test_one_more_answer_never_lowers_topk_and_leaves_top1(
    golds: list[Span], answers: list[Span | None], more: Span | None
) -> None:
    before, after = score(golds, answers), score(golds, [*answers, more])
    assert after.topk_accuracy >= before.topk_accuracy
    assert after.topk_em >= before.topk_em
    assert after.topk_f1 >= before.topk_f1
    assert after.top1_accuracy == before.top1_accuracy
    assert after.top1_em == before.top1_em
    assert after.top1_f1 == before.top1_f1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_a_mean_does_not_depend_on_the_order(values: list[float], order: random.Random) -> None:
    shuffled = list(values)
    order.shuffle(shuffled)
    assert mean(shuffled) == mean(values)
