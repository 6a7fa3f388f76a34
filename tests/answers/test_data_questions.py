"""Gold answers from a dataset, and predictions checked against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset, load_dataset
from retrieval_bench_answers.answers import Answer, Span, read_answers
from retrieval_bench_answers.question_answering import Questions, documents_of, questions_of
from retrieval_bench_exchange.formats.squad import paragraph_id
from tests.builders import some
from tests.builders.files import json_lines, save

FIRST = "Every employee has 25 days of paid leave a year."
SECOND = "연차 휴가는 입사 후 1년이 지나면 15일이 주어집니다."
D1, D2 = paragraph_id(FIRST), paragraph_id(SECOND)


def squad(folder: Path, **changes: Any) -> Dataset:
    """Two paragraphs; ``changes`` replaces the answers of a question."""
    answers: dict[str, list[dict[str, Any]]] = {
        "s1": [{"text": "25 days", "answer_start": 19}, {"text": "25", "answer_start": 19}],
        "s2": [],
        "s3": [{"text": "15일", "answer_start": 20}],
    } | changes
    qas = [
        {"id": q, "question": f"{q}?", "answers": of, "is_impossible": not of}
        for q, of in answers.items()
    ]
    paragraphs = [{"context": FIRST, "qas": qas[:2]}, {"context": SECOND, "qas": qas[2:]}]
    content = {"data": [{"title": "t", "paragraphs": paragraphs}]}
    (folder / "dev.json").write_text(json.dumps(content), encoding="utf-8")
    return load_dataset(folder, "dev")


def texts_only(**answers: Any) -> Dataset:
    documents = [Document("a", "alpha"), Document("b", "beta")]
    queries = [Query(q, "?", metadata={"answers": of}) for q, of in answers.items()]
    queries.append(Query("none", "?", metadata={"answers": [], "is_impossible": True}))
    return build_dataset("plain", documents, queries, {"q": {"a": 1, "b": 0}})


def asked(data: Dataset, predictions: Path | None = None) -> Questions:
    return questions_of(data, data.queries, predictions)


def written(folder: Path, *lines: dict[str, Any]) -> Path:
    return save(folder / "answers.jsonl", json_lines(lines))


def test_the_gold_of_squad_files_is_what_the_reader_command_reads(tmp_path: Path) -> None:
    found = asked(squad(tmp_path))
    assert found.has_spans
    assert found.predictions is None
    path = written(tmp_path, {"id": "s1", "answers": []})
    assert found.gold == read_answers(tmp_path / "dev.json", path).gold
    assert found.gold[0].spans == (Span(D1, 19, 26), Span(D1, 19, 21))
    assert [question.documents for question in found.gold] == [(D1,), (), (D2,)]


def test_answers_decide_where_the_mark_says_something_else(tmp_path: Path) -> None:
    squad(tmp_path)
    path = tmp_path / "dev.json"
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace('"is_impossible": false', '"is_impossible": true', 1), "utf-8")
    found = asked(load_dataset(tmp_path, "dev"))
    assert found.gold[0].answerable
    assert found.gold[0].documents == (D1,)
    assert "questions marked impossible with answers" in found.warnings[0]


def test_answers_may_be_texts_without_spans_but_not_missing_or_of_another_kind() -> None:
    found = asked(texts_only(q=["alpha", "beta"]))
    assert not found.has_spans
    assert found.gold[0].texts == ("alpha", "beta")
    assert found.gold[0].documents == ("a",)
    assert not found.gold[1].answerable
    assert found.warnings == ()
    data = build_dataset("x", [Document("a", "b")], [Query("q", "?")], {"q": {"a": 1}})
    with pytest.raises(DataError, match="no query of 'x' has answers"):
        asked(data)
    with pytest.raises(DataError, match="answers is 'alpha'"):
        asked(texts_only(q="alpha"))


def test_gold_offsets_that_do_not_fit_are_named_and_counted(tmp_path: Path) -> None:
    data = squad(
        tmp_path,
        s1=[{"text": "25 days", "answer_start": 18}],
        s3=[{"text": "15일", "answer_start": 900}],
    )
    with pytest.raises(DataError) as caught:
        asked(data)
    assert len(caught.value.faults) == 2
    assert "query 's1'" in caught.value.faults[0]
    assert "does not stand at answer_start 900" in caught.value.faults[1]
    # Texts alone do not need them.
    path = tmp_path / "texts.json"
    path.write_text('{"s1": "25 days", "s2": "", "s3": ""}', encoding="utf-8")
    (told,) = asked(data, path).warnings
    assert "only the text counts: 2" in told


def test_predictions_are_read_and_the_own_document_is_filled_in(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"id": "s1", "answers": [{"text": "25", "start": 19, "end": 21}]},
        {"id": "s2", "answers": []},
        {"id": "s3", "answers": [{"text": "days", "document": D1, "start": 22, "end": 26}]},
    )
    found = some(asked(squad(tmp_path), path).predictions)
    assert found.has_spans
    assert found.answers["s1"] == (Answer("25", Span(D1, 19, 21)),)
    assert found.answers["s3"] == (Answer("days", Span(D1, 22, 26)),)


def test_predictions_that_do_not_fit_are_named_and_counted(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"id": "s1", "answers": [{"text": "25", "document": D1, "start": 90, "end": 92}]},
        {"id": "s3", "answers": [{"text": "25", "document": D2, "start": 1, "end": 3}]},
    )
    with pytest.raises(DataError) as caught:
        asked(squad(tmp_path), path)
    assert "answers.jsonl:1: answers[0] has end 92, its passage has 48" in caught.value.faults[0]
    assert "answers.jsonl:2: answers[0].text is '25'" in caught.value.faults[1]


def test_unknown_and_missing_questions_are_warnings_with_names(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"id": "s1", "answers": [{"text": "25", "start": 19, "end": 21}]},
        {"id": "zz", "answers": [{"text": "x", "document": "far", "start": 0, "end": 1}]},
    )
    told = " / ".join(asked(squad(tmp_path), path).warnings)
    assert "not in the gold file, not scored: 1 (" in told
    assert "'zz'" in told
    assert "questions without a prediction, scored 0: 2 (" in told
    assert "'s2'" in told
    assert "'far'" in told


def test_documents_are_found_by_their_ids(tmp_path: Path) -> None:
    found = documents_of(squad(tmp_path), {D2, "nowhere"})
    assert {name: document.text for name, document in found.items()} == {D2: SECOND}
