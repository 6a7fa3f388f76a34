"""Retriever and reader, and the Korean competition's loop, on real collections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_answers.question_answering import QuestionAnswering, answer_questions
from retrieval_bench_answers.submission import submit

pytestmark = [pytest.mark.realdata, pytest.mark.slow]

ONCE = Protocol(rounds=1, warm_up_s=0.01)


def answered(
    dataset: Path, split: str, predictions: Path | None = None, retriever: object = "bm25"
) -> QuestionAnswering:
    experiment = prepare([retriever], dataset, split=split, k=5, protocol=ONCE, save=False)
    return answer_questions(experiment, predictions, name="saved")


@pytest.mark.parametrize(
    "name",
    ["pred_bert_single.json", pytest.param("pred_nlnet_single.json", marks=pytest.mark.long)],
)
def test_saved_predictions_score_as_the_official_script_says(bench_data: Path, name: str) -> None:
    folder = bench_data / "reader" / "squad2-dev"
    result = answered(folder, "dev", folder / name)
    expected = json.loads((folder / "expected_official.json").read_text(encoding="utf-8"))[name]
    assert result.readings["all"].official == pytest.approx(expected, abs=1e-9)
    found = {one.metric: one for one in result.retrieval}
    assert found["Success@5"].mean == pytest.approx(0.942, abs=0.005)
    assert found["AP@5"].mean == pytest.approx(0.860, abs=0.005)
    counts = result.readings["retrieved"].counts
    assert (counts.gold, counts.no_answer) == (11_873, 5_945)
    assert counts.not_retrieved == round(5_928 * (1 - (found["Success@5"].mean or 0)))
    assert result.warnings == ()


def test_the_retriever_of_french_questions(bench_data: Path) -> None:
    french = {"target": "bm25", "params": {"tokenizer": {"name": "auto", "language": "fr"}}}
    found = {}
    for name, retriever in (("none", "bm25"), ("fr", french)):
        result = answered(bench_data / "beir" / "piaf-v1.0", "test", None, retriever)
        found[name] = {one.metric: one.mean for one in result.retrieval}
        assert {one.n for one in result.retrieval} == {3_835}
    assert found["fr"]["Success@5"] == pytest.approx(0.866, abs=0.005)
    assert found["fr"]["AP@5"] == pytest.approx(0.7615, abs=0.005)
    assert (found["fr"]["RR@5"] or 0) > (found["none"]["RR@5"] or 0) + 0.01


@pytest.mark.parametrize(
    ("tokenizer", "low", "high"),
    [("auto", 0.88, 0.91), ("word", 0.77, 0.79), ("whitespace", 0.72, 0.75)],
)
def test_bigrams_within_words_find_korean_documents(
    bench_data: Path, tokenizer: str, low: float, high: float
) -> None:
    config = {"target": "bm25", "params": {"k1": 1.5, "b": 0.75, "tokenizer": tokenizer}}
    experiment = prepare(
        [config], bench_data / "beir" / "autorag-ko", k=100, save=False, every_query=True
    )
    made = submit(experiment)
    found = {one.metric: one.submitted for one in made.scores}
    assert low <= found["RR@100"] <= high
    assert made.decision.reason == "no query is marked as unanswerable"
    assert made.counts.lines == 114
