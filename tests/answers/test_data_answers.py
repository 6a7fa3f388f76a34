"""Gold and predictions of a reader: what is read, what is refused, what is counted."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import DataError, HarnessError
from retrieval_bench_answers.answers import Answer, GoldQuestion, Predictions, Span, read_answers
from retrieval_bench_answers.reader import score_reader
from retrieval_bench_exchange.formats.squad import paragraph_id
from tests.builders.files import json_lines, save

CONTEXT = "대한민국의 수도는 서울이다. 😀 Seoul."
DOCUMENT = paragraph_id(CONTEXT)
SEOUL = CONTEXT.index("서울")
LATIN = CONTEXT.index("Seoul")


def question(question_id: object, *texts: str, **more: object) -> dict[str, Any]:
    answers = [{"text": text, "answer_start": CONTEXT.find(text)} for text in texts]
    return {"id": question_id, "question": "?", "answers": answers, **more}


def span(text: str, start: int, **more: object) -> dict[str, Any]:
    found = {"text": text, "document": DOCUMENT, "start": start, "end": start + len(text)}
    return {**found, **more}


QUESTIONS = (question("q1", "서울", "Seoul"), question("q2", is_impossible=True))


def write_gold(folder: Path, *questions: dict[str, Any]) -> Path:
    paragraph = {"context": CONTEXT, "qas": list(questions or QUESTIONS)}
    path = folder / "gold.json"
    document = {"version": "v2.0", "data": [{"title": "", "paragraphs": [paragraph]}]}
    save(path, json.dumps(document))
    return path


def write_lines(folder: Path, *records: dict[str, Any]) -> Path:
    return save(folder / "predictions.jsonl", json_lines(records))


def write_squad(folder: Path, value: object) -> Path:
    return save(folder / "predictions.json", json.dumps(value))


def faults_in(gold: Path, predictions: Path) -> tuple[str, ...]:
    with pytest.raises(DataError) as caught:
        read_answers(gold, predictions)
    return caught.value.faults


def test_gold_spans_end_behind_the_last_character(tmp_path: Path) -> None:
    data = read_answers(write_gold(tmp_path), write_squad(tmp_path, {"q1": "서울", "q2": ""}))
    assert data.gold == (
        GoldQuestion(
            "q1",
            ("서울", "Seoul"),
            (Span(DOCUMENT, SEOUL, SEOUL + 2), Span(DOCUMENT, LATIN, LATIN + 5)),
            (DOCUMENT,),
        ),
        GoldQuestion("q2", ()),
    )
    assert [q.answerable for q in data.gold] == [True, False]
    assert data.predictions == Predictions({"q1": (Answer("서울"),), "q2": (Answer(""),)}, False)
    assert data.warnings == ()


def test_version_1_has_no_marks_and_repeated_golds_count_once(tmp_path: Path) -> None:
    gold = write_gold(tmp_path, question(7, "Seoul", "Seoul"))
    data = read_answers(gold, write_squad(tmp_path, {"7": None}))
    assert data.gold[0].id == "7"
    assert data.gold[0].texts == ("Seoul",)
    assert len(data.gold[0].spans) == 1
    assert data.predictions.answers["7"] == (Answer(""),)


def test_json_lines_keep_answers_in_their_order_with_spans_or_as_texts_alone(
    tmp_path: Path,
) -> None:
    lines = write_lines(
        tmp_path,
        {"id": "q1", "answers": [span("Seoul", LATIN, score=2), span("서울", SEOUL, score=0.5)]},
        {"id": "q2", "answers": [{"text": None, "document": None, "start": 0, "end": 0}]},
    )
    predictions = read_answers(write_gold(tmp_path), lines).predictions
    assert predictions.has_spans
    assert predictions.answers["q1"] == (
        Answer("Seoul", Span(DOCUMENT, LATIN, LATIN + 5), 2),
        Answer("서울", Span(DOCUMENT, SEOUL, SEOUL + 2), 0.5),
    )
    assert predictions.answers["q2"] == (Answer(""),)
    path = tmp_path / "answers.txt"  # the content tells the format where the name does not
    save(path, '{"id": "q1", "answers": [{"text": "서울"}]}\n')
    predictions = read_answers(write_gold(tmp_path), path).predictions
    assert not predictions.has_spans
    assert predictions.answers == {"q1": (Answer("서울"),)}


def test_marks_windows_line_ends_and_gzip_are_read(tmp_path: Path) -> None:
    record = json.dumps({"id": "q1", "answers": [span("서울", SEOUL)]}, ensure_ascii=False)
    lines = save(
        tmp_path / "predictions.jsonl.gz", gzip.compress(f"\ufeff{record}\r\n\r\n".encode())
    )
    gold = write_gold(tmp_path)
    packed = save(tmp_path / "gold.json.gz", gzip.compress(b"\xef\xbb\xbf" + gold.read_bytes()))
    data = read_answers(str(packed), str(lines))
    assert data.predictions.answers["q1"][0].span == Span(DOCUMENT, SEOUL, SEOUL + 2)


def test_all_faults_of_both_files_come_at_once(tmp_path: Path) -> None:
    gold = write_gold(tmp_path, *QUESTIONS, question("q1", "Seoul"), question("q3", "Busan"))
    lines = tmp_path / "predictions.jsonl"
    records = [
        {"id": "q1", "answers": [span("서울", SEOUL), span("Seoul", LATIN - 1)]},
        {"id": "q1", "answers": []},
        {"id": "q2", "answers": [span("서울", SEOUL, end=SEOUL - 1)]},
        {"id": "q4", "answers": [span("x", len(CONTEXT)), {"text": 5}]},
        {"id": "q5", "answers": [span("", 3, end=4), "서울", {"score": 1}]},
        {"id": "q6", "answers": [span("서울", SEOUL, document=None), span("서울", True)]},
        {"id": "q7", "answers": "서울"},
        {"answers": []},
    ]
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    text += '{"id": "q8", "answers": [{"text": "", "score": NaN}]}\n'
    text += '{"id": "q9", "answers": [{"text": "", "score": 1e999}]}\n[]\n'
    save(lines, text)
    told = "\n".join(faults_in(gold, lines))
    for expected in (
        "predictions.jsonl:1: answers[1].text is 'Seoul', its passage has ' Seou' there",
        f"predictions.jsonl:2: id 'q1' again, first at {lines}:1",
        f"predictions.jsonl:3: answers[0] has start {SEOUL} and end {SEOUL - 1}",
        f"predictions.jsonl:4: answers[0] has end {len(CONTEXT) + 1}, its passage",
        "predictions.jsonl:4: answers[1].text is 5",
        "predictions.jsonl:5: answers[0] is empty and has start 3 and end 4",
        "predictions.jsonl:5: answers[1] is '서울'",
        "predictions.jsonl:5: answers[2] has no 'text'",
        "predictions.jsonl:6: answers[0].document is None",
        "predictions.jsonl:6: answers[1] has start True",
        "predictions.jsonl:7: answers is '서울'",
        "predictions.jsonl:8: no 'id'",
        "predictions.jsonl:9: no JSON: NaN is no JSON value",
        "predictions.jsonl:10: answers[0].score is inf",
        "predictions.jsonl:11: []",
        f"qas[2]: id 'q1' again, first at {gold}: data[0].paragraphs[0].qas[0]",
        "qas[3].answers[0]: 'Busan' does not stand at answer_start -1",
    ):
        assert expected in told


def test_offsets_of_some_answers_only_or_in_utf_16_units_are_faults(tmp_path: Path) -> None:
    answers = [span("서울", SEOUL), {"text": "Seoul"}, {"text": ""}]
    told = faults_in(write_gold(tmp_path), write_lines(tmp_path, {"id": "q1", "answers": answers}))
    assert len(told) == 1
    assert "answers[1] has no offsets" in told[0]
    units = len(CONTEXT[:LATIN].encode("utf-16-le")) // 2
    assert units == LATIN + 1
    answers = [span("Seoul", units)]
    told = faults_in(write_gold(tmp_path), write_lines(tmp_path, {"id": "q1", "answers": answers}))
    assert "counted in Unicode characters" in told[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"q1": ["서울"]}, "['q1']: ['서울']; accepted: the text of the answer"),
        (["서울"], "['서울']; accepted: {question id: text}"),
        ({}, "no predictions"),
    ],
)
def test_squad_json_of_another_shape_is_refused(
    tmp_path: Path, value: object, expected: str
) -> None:
    told = faults_in(write_gold(tmp_path), write_squad(tmp_path, value))
    assert len(told) == 1
    assert expected in told[0]


def test_a_question_predicted_twice_and_gold_without_questions_are_faults(tmp_path: Path) -> None:
    path = save(tmp_path / "predictions.json", '{"q1": "x", "q1": "y"}')
    assert "key 'q1' given twice" in faults_in(write_gold(tmp_path), path)[0]
    path = save(tmp_path / "gold.json", '{"data": []}')
    assert "no questions" in faults_in(path, write_squad(tmp_path, {"q1": ""}))[0]


@pytest.mark.parametrize("content", ["", "\n", "{"])
def test_empty_and_broken_files_are_named(tmp_path: Path, content: str) -> None:
    for name in ("predictions.json", "predictions.jsonl", "gold.json"):
        path = save(tmp_path / "x" / name, content)
        other = write_squad(tmp_path, {"q1": ""})
        pair = (path, other) if name == "gold.json" else (write_gold(tmp_path), path)
        assert any(str(path) in fault for fault in faults_in(*pair))
    assert faults_in(tmp_path / "none", other)[0].endswith("no such file")


def test_what_can_be_scored_nonetheless_is_counted_and_named(tmp_path: Path) -> None:
    gold = write_gold(
        tmp_path,
        *QUESTIONS,
        question("q3", "Seoul", is_impossible=True),
        question("q4"),
        question("q5", "", "Seoul"),
    )
    lines = write_lines(
        tmp_path,
        {"id": "q1", "answers": [span("SEOUL", LATIN), span("x", 5, document="other")]},
        {"id": "q2", "answers": []},
        {"id": "q3", "answers": [span("서울", SEOUL, score=1), span("서울", SEOUL, score=2)]},
        {"id": "q9", "answers": [{"text": " "}]},
    )
    data = read_answers(gold, lines)
    told = "\n".join(data.warnings)
    for expected in (
        "predictions for questions that are not in the gold file, not scored: 1",
        "'q9'",
        "questions without a prediction, scored 0: 2",
        "'q4'",
        "answers in documents that are not in the gold file, offsets not checked: 1",
        "answers[1] in 'other'",
        "texts that differ from the passage in blanks or case: 1",
        "in which scores rise, the order of the list counts: 1",
        "empty lists of answers, each read as one empty answer: 1",
        "questions marked impossible with answers, counted as answerable: 1",
        "questions with neither answers nor is_impossible, counted as without: 1",
        "gold answers without text, left out: 1",
    ):
        assert expected in told
    assert len(data.warnings) == 9
    assert [q.answerable for q in data.gold] == [True, False, True, False, True]
    assert data.predictions.answers["q2"] == (Answer(""),)


def test_gold_offsets_matter_only_to_answers_that_have_offsets(tmp_path: Path) -> None:
    record = question("q1", "서울")
    record["answers"][0]["answer_start"] += 1
    gold = write_gold(tmp_path, record)
    data = read_answers(gold, write_squad(tmp_path, {"q1": "서울"}))
    assert data.gold[0].spans == ()
    assert data.gold[0].documents == (DOCUMENT,)
    assert "only the text counts: 1" in data.warnings[0]
    del record["answers"][0]["answer_start"]
    gold = write_gold(tmp_path, record)
    assert read_answers(gold, write_squad(tmp_path, {"q1": "서울"})).warnings == ()
    lines = write_lines(tmp_path, {"id": "q1", "answers": [span("서울", SEOUL)]})
    assert "answer_start None" in faults_in(gold, lines)[0]


POOL = [
    *(b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\n", b" ", b'"', b"\\", b"{", b"}", b"[", b"]", b","),
    *(b"null", b"true", b"NaN", b"-1", b"1.5", b"1e999", b'"\\ud800"', b"9" * 5000, b"q2"),
    *("한글".encode(), b"\x1f\x8b", b'"text": "", ', b'"start": 0, ', b'"end": 99, '),
]


@pytest.mark.slow
def test_mutated_files_end_in_a_result_or_a_clean_error(tmp_path: Path) -> None:
    gold = write_gold(tmp_path)
    lines = write_lines(
        tmp_path,
        {"id": "q1", "answers": [span("Seoul", LATIN, score=1.5), span("서울", SEOUL)]},
        {"id": "q2", "answers": [{"text": ""}]},
    )
    texts = write_squad(tmp_path, {"q1": "서울", "q2": ""})
    rng = random.Random(7)
    ends = {"result": 0, "error": 0}
    for turn in range(600):
        pair = [gold, lines if turn % 2 else texts]
        victim = rng.randrange(2)
        raw = bytearray(pair[victim].read_bytes())
        for _ in range(rng.randint(1, 3)):
            at, width = rng.randrange(len(raw) + 1), rng.choice([0, 0, 1, 7])
            raw[at : at + width] = rng.choice(POOL)
        pair[victim] = tmp_path / f"mutated{pair[victim].suffix}"
        save(pair[victim], bytes(raw))
        try:
            data = read_answers(*pair)
            score_reader(data.gold, data.predictions).as_dict()
            ends["result"] += 1
        except HarnessError:
            ends["error"] += 1
    assert min(ends.values()) > 20
