"""The scoring of a reader as a whole: groups, denominators, intervals, JSON and tables."""

from __future__ import annotations

import json
import random
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.reports.render.cells import COUNT, QUALITY
from retrieval_bench.reports.render.table import NoteKind, kind_of, text_of, warning
from retrieval_bench.reports.render.terminal import plain
from retrieval_bench.stats.intervals import SHARE, mean_intervals
from retrieval_bench_answers.answers import Answer, GoldQuestion, Predictions, Span
from retrieval_bench_answers.reader import ReaderResult, score_reader
from retrieval_bench_answers.reader_spans import METRICS as SPAN_METRICS
from retrieval_bench_answers.reader_text import METRICS as TEXT_METRICS
from retrieval_bench_answers.tables.reader import reader_tables


def answered(question_id: str, text: str, document: str, start: int) -> GoldQuestion:
    gold = Span(document, start, start + len(text))
    return GoldQuestion(question_id, (text,), (gold,), (document,))


def at(text: str, document: str, start: int) -> Answer:
    return Answer(text, Span(document, start, start + len(text)))


EMPTY = Answer("")
GOLD = (
    answered("q1", "서울특별시", "d1", 10),
    answered("q2", "blue whale", "d2", 0),
    answered("q3", "1998", "d3", 5),
    GoldQuestion("u1", ()),
    GoldQuestion("u2", ()),
)
PREDICTED = Predictions(
    {
        "q1": (at("서울", "d1", 10), at("서울특별시", "d1", 10)),
        "q2": (at("the blue whale", "d9", 0), EMPTY),
        "u1": (EMPTY,),
        "u2": (at("x", "d1", 0), EMPTY),
        "zz": (EMPTY,),
    },
    has_spans=True,
)
TEXTS = Predictions({"q1": (Answer("서울"),), "q2": (Answer("The Blue Whale"),)}, has_spans=False)


def means(result: ReaderResult) -> dict[str, float | None]:
    return {name: mean.mean for name, mean in result.metrics.items()}


def test_every_question_counts_in_the_denominator_all_with_texts_in_percent() -> None:
    result = score_reader(GOLD, PREDICTED)
    found = means(result)
    f1 = 2 * 2 / (2 + 5)  # two of five characters
    assert found["reader_top1_accuracy"] == pytest.approx((1 + 0 + 0 + 1 + 0) / 5)
    assert found["reader_topk_accuracy"] == pytest.approx((1 + 0 + 0 + 1 + 1) / 5)
    assert found["reader_top1_accuracy_has_answer"] == pytest.approx(1 / 3)
    assert found["reader_top1_em"] == pytest.approx(1 / 5)
    assert found["reader_topk_em_has_answer"] == pytest.approx(1 / 3)
    assert found["reader_top1_f1"] == pytest.approx((f1 + 1) / 5)
    assert found["reader_topk_f1"] == pytest.approx(3 / 5)
    assert found["reader_topk_mean_f1"] == pytest.approx(((f1 + 1) / 2 + 2) / 5)
    assert found["reader_topk_mean_f1_has_answer"] == pytest.approx((f1 + 1) / 2 / 3)
    assert found["reader_top1_no_answer_accuracy"] == pytest.approx(1 / 2)
    assert found["reader_topk_no_answer_accuracy"] == 1
    assert list(found) == [*TEXT_METRICS, *SPAN_METRICS]
    assert result.official == {
        "exact": pytest.approx(40),
        "f1": pytest.approx(40),
        "total": 5,
        "HasAns_exact": pytest.approx(100 / 3),
        "HasAns_f1": pytest.approx(100 / 3),
        "HasAns_total": 3,
        "NoAns_exact": 50,
        "NoAns_f1": 50,
        "NoAns_total": 2,
    }
    characters = 2 * 2 / (2 + 5) + 2 * 9 / (9 + 12)  # 서울, thebluewhale
    assert result.mean("HasAns_char_f1").mean == pytest.approx(100 * characters / 3)
    assert result.mean("exact").unit == "percent"
    assert result.mean("reader_top1_em").unit == "fraction"


def test_retrieved_leaves_out_what_the_retriever_did_not_find_but_no_unanswerable_one() -> None:
    run = {"q1": ["d7", "d1"], "q2": ["d9"], "u1": [], "elsewhere": ["d1"]}
    result = score_reader(GOLD, PREDICTED, "retrieved", run)
    assert result.denominator == "retrieved"
    assert result.question_ids == ("q1", "u1", "u2")
    assert result.mean("reader_top1_accuracy").mean == pytest.approx(2 / 3)
    assert result.mean("reader_top1_accuracy_has_answer").mean == 1
    assert result.mean("exact").n == 3
    counts = result.counts
    assert (counts.gold, counts.counted, counts.not_retrieved) == (5, 3, 2)
    assert (counts.has_answer, counts.no_answer) == (1, 2)
    assert (counts.unknown_rankings, counts.unknown_predictions) == (1, 1)


def test_one_of_several_gold_documents_is_enough() -> None:
    spans = (Span("d1", 0, 1), Span("d2", 0, 1))
    gold = [GoldQuestion("q", ("x",), spans, ("d1", "d2"))]
    result = score_reader(gold, PREDICTED, "retrieved", {"q": {"d2"}})
    assert result.counts.counted == 1


def test_a_question_without_a_prediction_scores_0_and_texts_have_no_span_metrics() -> None:
    result = score_reader(GOLD, Predictions({"q1": (at("서울특별시", "d1", 10),)}, True))
    assert result.counts.without_prediction == 4
    assert result.mean("exact").mean == pytest.approx(20)
    assert result.mean("NoAns_exact").mean == 0
    assert result.mean("reader_topk_accuracy").mean == pytest.approx(0.2)
    result = score_reader(GOLD, TEXTS)
    assert list(result.metrics) == list(TEXT_METRICS)
    assert not result.has_spans
    assert result.as_dict()["conventions"] == {"text": "squad"}
    with pytest.raises(ConfigError, match="reader_top1_em"):
        result.mean("reader_top1_em")
    with pytest.raises(FrozenInstanceError):
        score_reader(GOLD, PREDICTED).denominator = "retrieved"  # type: ignore[misc]


def test_the_names_of_the_piaf_text_are_read_and_intervals_are_those_of_each_group() -> None:
    result = score_reader(GOLD, PREDICTED)
    assert result.mean("reader_top1_fk") == result.mean("reader_topk_f1")
    assert result.mean("reader_top1_fk_has_answer") == result.mean("reader_topk_f1_has_answer")
    assert "reader_top1_fk" not in result.metrics
    with pytest.raises(ConfigError, match="did you mean reader_topk_f1"):
        result.mean("reader_topk_fx1")
    i = result.columns.index("top1_f1")
    for name, rows in (("", slice(0, 5)), ("_has_answer", slice(0, 3))):
        expected = mean_intervals(result.per_question[rows, i : i + 1], [SHARE])[0]
        assert result.mean(f"reader_top1_f1{name}").ci95 == pytest.approx(tuple(expected))
    assert score_reader(GOLD, PREDICTED).metrics == result.metrics


@pytest.mark.parametrize(
    ("gold", "group"), [(GOLD[:2], "no_answer"), (GOLD[3:], "has_answer"), ((), "all")]
)
def test_means_over_no_questions_are_not_defined_and_raise_nothing(
    gold: tuple[GoldQuestion, ...], group: str
) -> None:
    result = score_reader(gold, PREDICTED)
    groups = {name: group for name, (_, group) in {**TEXT_METRICS, **SPAN_METRICS}.items()}
    for name, mean in result.metrics.items():
        is_empty = group in ("all", groups[name])
        assert (mean.mean is None) == (mean.n == 0) == is_empty
        assert mean.reason == ("not defined: 0 questions" if is_empty else None)
        assert (mean.ci95 is None) == (mean.n < 2)
    assert "NoAns_exact" not in result.official or group == "has_answer"
    assert "not defined: 0 questions" in plain(reader_tables(result))
    json.dumps([result.as_dict(), result.by_question()], allow_nan=False)


def test_values_per_question_are_apart_and_their_mean_is_that_of_the_document() -> None:
    result = score_reader(GOLD, PREDICTED)
    document = result.as_dict()
    assert "per_question" not in document
    assert result.by_question()["q1"]["topk_em"] == 1
    mean = np.mean([values["exact"] for values in result.by_question().values()])
    assert document["metrics"]["exact"]["mean"] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("denominator", "run", "told"),
    [
        ("retreived", None, "did you mean retrieved"),
        ("retrieved", None, "without a run"),
        ("all", {}, "leave out the run"),
    ],
)
def test_denominators_that_make_no_sense_are_refused(
    denominator: str, run: dict[str, list[str]] | None, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        score_reader(GOLD, PREDICTED, denominator, run)


def test_gold_without_spans_does_not_pass_for_unanswerable() -> None:
    gold = [*GOLD, GoldQuestion("q9", ("x",))]
    with pytest.raises(DataError, match="1 question with an answer and without a gold span"):
        score_reader(gold, PREDICTED)
    assert score_reader(gold, TEXTS).counts.has_answer == 4


def test_the_tables_say_denominator_convention_and_counts() -> None:
    run = {"q1": ["d1"], "q3": ["d3"], "x": []}
    result = score_reader(GOLD, PREDICTED, "retrieved", run)
    texts, spans = reader_tables(result, "bert", warnings=["something"])
    assert texts.title == "bert: texts of first answers on 4 questions, in percent"
    assert spans.title == "bert: answer spans on 4 questions, k = 2, fractions from 0 to 1"
    assert [row[0] for row in texts.rows] == list(TEXT_METRICS)
    assert [row[0] for row in spans.rows] == list(SPAN_METRICS)
    assert texts.rules == [3, 6]
    assert spans.rules == [7, 14]
    assert texts.rows[0] == ["exact", QUALITY(25.0, result.mean("exact").ci95), COUNT(4)]
    notes = "\n".join(map(text_of, spans.notes))
    for told in (
        "Denominator retrieved",
        "Convention piaf",
        "Counts: 4 of 5 questions, 2 with an answer and 2 without, 1 not retrieved",
        "1 without a prediction (0 in the means), 1 prediction for unknown questions",
        "1 ranking of unknown questions",
        "reader_top1_fk is reader_topk_f1",
        "Clopper-Pearson and Gaffke's bound",
    ):
        assert told in notes
    assert spans.notes[-1] == warning("something")
    assert kind_of(spans.notes[-1]) is NoteKind.WARNING
    assert "convention squad" in "\n".join(map(text_of, texts.notes))
    assert max(map(len, plain([replace(spans, notes=())]).splitlines())) <= 80


def test_the_one_table_of_texts_says_why_there_are_no_spans() -> None:
    (table,) = reader_tables(score_reader(GOLD, TEXTS))
    assert any(
        "no span metrics: the answers have no offsets" in text_of(note) for note in table.notes
    )
    assert any("Denominator all" in text_of(note) for note in table.notes)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_questions_and_predictions_changes_no_mean(order: random.Random) -> None:
    gold, answers = list(GOLD), list(PREDICTED.answers.items())
    order.shuffle(gold)
    order.shuffle(answers)
    result = score_reader(gold, Predictions(dict(answers), True))
    assert means(result) == means(score_reader(GOLD, PREDICTED))
    assert result.counts == score_reader(GOLD, PREDICTED).counts
