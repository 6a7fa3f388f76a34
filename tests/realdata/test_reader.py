"""The official figures of two readers on the development set of SQuAD 2.0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrieval_bench_answers.answers import read_answers
from retrieval_bench_answers.reader import score_reader

pytestmark = pytest.mark.realdata


@pytest.mark.parametrize("name", ["pred_bert_single.json", "pred_nlnet_single.json"])
def test_every_row_of_the_official_script(bench_data: Path, name: str) -> None:
    folder = bench_data / "reader" / "squad2-dev"
    data = read_answers(folder / "dev.json", folder / name)
    result = score_reader(data.gold, data.predictions)
    expected = json.loads((folder / "expected_official.json").read_text(encoding="utf-8"))[name]
    assert data.warnings == ()
    assert set(result.official) == set(expected)
    assert result.official == pytest.approx(expected, abs=1e-9)
    assert f"{result.mean('exact').mean:.4f}" == f"{expected['exact']:.4f}"


def test_gold_spans_as_predictions_score_1_everywhere(bench_data: Path, tmp_path: Path) -> None:
    gold = bench_data / "reader" / "squad2-dev" / "dev.json"
    texts = tmp_path / "none.json"
    texts.write_text('{"nothing": ""}', encoding="utf-8")
    questions = read_answers(gold, texts).gold
    predicted = tmp_path / "predictions.jsonl"
    with predicted.open("w", encoding="utf-8") as file:
        for question in questions:
            answers = [
                {"text": text, "document": span.document, "start": span.start, "end": span.end}
                for text, span in zip(question.texts[:1], question.spans[:1], strict=True)
            ]
            record = {"id": question.id, "answers": answers or [{"text": ""}]}
            file.write(json.dumps(record) + "\n")
    data = read_answers(gold, predicted)
    result = score_reader(data.gold, data.predictions)
    assert data.warnings == ()
    assert result.counts.gold == 11_873
    assert {mean.mean for mean in result.metrics.values()} == {1.0, 100.0}
