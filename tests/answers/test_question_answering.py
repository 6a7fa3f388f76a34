"""Retriever and reader end to end: both denominators, labels, what is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Dataset, Document, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.candidate import Searched
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.calls import Timings
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_answers.answers import Answer, Span
from retrieval_bench_answers.contract import FunctionReader, Reader
from retrieval_bench_answers.question_answering import QuestionAnswering, answer_questions
from tests.builders import some
from tests.builders.scripted import Scripted

DOCUMENTS = {"d1": "red fox", "d2": "blue whale", "d3": "green frog"}
HITS = {"q1": ["d1", "d3"], "q2": ["d3", "d1"], "q3": ["d1", "d3"], "u1": ["d2"]}


def data(*, offsets: bool = True) -> Dataset:
    def query(name: str, document: str, answer: str) -> Query:
        gold: Any = answer
        if offsets:
            gold = {"text": answer, "answer_start": DOCUMENTS[document].index(answer)}
        return Query(name, f"{name}?", metadata={"answers": [gold], "document": document})

    queries = [
        query("q1", "d1", "red fox"),
        query("q2", "d2", "blue"),
        query("q3", "d3", "frog"),
        Query("u1", "u1?", metadata={"answers": [], "is_impossible": True}),
    ]
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}}
    documents = [Document(name, text, "title") for name, text in DOCUMENTS.items()]
    return build_dataset("zoo", documents, queries, qrels)


def fixed(hits: dict[str, list[str]] = HITS, *, external: bool = False) -> Scripted:
    capabilities = Capabilities(external=external, has_scores=False)
    return Scripted(lambda query: hits[query.id], capabilities=capabilities)


class Words(Reader):
    """Every first word of what was found, in order; the whole of the first document last."""

    def __init__(self) -> None:
        self.closed = 0

    def read(self, question: Query, documents: Sequence[Document], n: int) -> list[Answer]:
        if question.id == "u1":
            return [Answer(""), Answer("blue", Span("d2", 0, 4))]
        words = [(d, d.text.split()[0]) for d in documents]
        found = [Answer(word, Span(d.id, 0, len(word)), 1.0) for d, word in words]
        whole = documents[0]
        return [*found, Answer(whole.text, Span(whole.id, 0, len(whole.text)))][:n]

    def close(self) -> None:
        self.closed += 1


def run(
    reader: Any = None,
    retriever: Retriever | None = None,
    dataset: Dataset | None = None,
    k: int = 2,
    n: int = 3,
) -> QuestionAnswering:
    experiment = prepare(
        [retriever or fixed()],
        dataset or data(),
        k=k,
        save=False,
        protocol=Protocol(rounds=1, warm_up_s=0.01),
    )
    return answer_questions(experiment, reader, n, name="reader")


def mean(result: QuestionAnswering, denominator: str, name: str) -> Any:
    found = result.readings[denominator].metrics[name]
    return found.mean, found.n


def test_the_retriever_alone() -> None:
    result = run()
    found: dict[tuple[str, str], Any]
    found = {(one.convention, one.metric): (one.mean, one.n) for one in result.retrieval}
    assert found["piaf", "Success@2"] == (pytest.approx(2 / 3), 3)
    assert found["piaf", "AP@2"] == found["piaf", "RR@2"] == (pytest.approx((1 + 1 / 2) / 3), 3)
    assert found["trec", "nDCG@2"][0] == pytest.approx((1 + 0.63093) / 3, abs=1e-5)
    assert result.readings == {}
    assert [times.label for times in result.times] == ["retrieved", "not retrieved", "no answer"]
    assert all(times.read is None for times in result.times)


def test_both_denominators() -> None:
    result = run(Words())
    # q1: "red", then "green", then all of it: em is at k; q2 not retrieved; q3: frog not found.
    assert mean(result, "all", "reader_top1_accuracy") == (pytest.approx(2 / 4), 4)
    assert mean(result, "retrieved", "reader_top1_accuracy") == (pytest.approx(2 / 3), 3)
    assert mean(result, "all", "reader_topk_em_has_answer") == (pytest.approx(1 / 3), 3)
    assert mean(result, "retrieved", "reader_topk_em_has_answer") == (pytest.approx(1 / 2), 2)
    assert mean(result, "retrieved", "reader_top1_f1_has_answer")[0] == pytest.approx(
        2 * 3 / (3 + 7) / 2
    )
    assert mean(result, "all", "reader_top1_no_answer_accuracy") == (1.0, 1)
    assert mean(result, "all", "exact") == (pytest.approx(25), 4)
    assert result.readings["retrieved"].counts.not_retrieved == 1


def test_the_reader_gets_what_was_found_and_as_many_answers_as_asked_for() -> None:
    seen: dict[str, list[str]] = {}

    def reader(question: str, documents: list[Document], n: int) -> list[str]:
        seen[question] = [document.text for document in documents]
        return ["x"] * n

    result = run(FunctionReader(reader, "f"), k=1, n=4)
    assert seen == {
        "q1?": ["red fox"],
        "q2?": ["green frog"],
        "q3?": ["red fox"],
        "u1?": ["blue whale"],
    }
    assert {len(found) for found in result.predictions.answers.values()} == {4}


def test_texts_alone_are_scored_where_the_reader_or_the_gold_gives_no_offsets() -> None:
    result = run(FunctionReader(lambda q, d, n: "red fox", "f"))
    assert not result.readings["all"].has_spans
    assert mean(result, "all", "exact") == (pytest.approx(25), 4)
    assert result.warnings == ()
    result = run(Words(), dataset=data(offsets=False))
    assert not result.readings["all"].has_spans
    assert "the gold has no offsets: texts alone are scored" in result.warnings


def test_some_answers_without_a_span_are_counted() -> None:
    def reader(question: str, documents: list[Document], n: int) -> list[Any]:
        first = documents[0]
        word = first.text.split()[0]
        return [{"text": word, "document": first.id, "start": 0, "end": len(word)}, "fox"]

    result = run(FunctionReader(reader, "f"))
    assert not result.readings["all"].has_spans
    assert any(warning.startswith("4 answers without a span") for warning in result.warnings)


def test_a_reader_that_fails_scores_0_there_is_counted_and_named() -> None:
    class Failing(Words):
        def read(self, question: Query, documents: Sequence[Document], n: int) -> list[Answer]:
            if question.id == "q1":
                raise RuntimeError("no idea")
            return super().read(question, documents, n)

    result = run(Failing())
    assert (result.failed_searches, result.failed_readings) == (0, 1)
    assert "the reader failed on 1 question: q1 (RuntimeError: no idea)" in result.warnings
    assert result.readings["all"].counts.without_prediction == 1
    assert mean(result, "all", "reader_top1_accuracy") == (pytest.approx(1 / 4), 4)


def test_a_search_that_fails_leaves_nothing_to_read() -> None:
    hits = {name: found for name, found in HITS.items() if name != "q1"}
    result = run(FunctionReader(lambda q, d, n: f"{len(d)}", "f"), fixed(hits))
    assert (result.failed_searches, result.failed_readings) == (1, 0)
    assert result.predictions.answers["q1"] == (Answer("0"),)
    assert {times.label: times.n for times in result.times}["not retrieved"] == 2


def test_times_are_told_by_label() -> None:
    result = run(Words())
    assert {times.label: times.n for times in result.times} == {
        "retrieved": 2,
        "not retrieved": 1,
        "no answer": 1,
    }
    for times in result.times:
        assert times.search.mean > 0
        assert some(times.read).mean > 0
        assert some(times.read).p50 is None  # of so few


def test_a_time_belongs_to_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(self: Experiment, reporter: object) -> Searched:
        order = np.array([3, 1, 0, 2], dtype=np.int32)  # u1, q2, q1, q3: not that of the queries
        zeros = np.zeros(4, dtype=np.int32)
        wall = np.array([4_000_000, 2_000_000, 1_000_000, 8_000_000], dtype=np.int64)
        timings = Timings(wall, zeros, order, order, zeros.astype(bool), {})
        rankings = tuple(Ranking(HITS[query.id]) for query in self.queries)
        return Searched("scripted", rankings, ("ok",) * 4, timings, ())

    monkeypatch.setattr(Experiment, "search", search)
    found = {times.label: times.search.mean for times in run().times}
    assert found == {"retrieved": 4.5, "not retrieved": 2.0, "no answer": 4.0}


def test_everything_is_closed_once_also_after_a_mistake() -> None:
    retriever, reader = fixed(), Words()
    run(reader, retriever)
    assert (retriever.closed >= 1, reader.closed) == (True, 1)
    retriever, reader = fixed(), Words()
    with pytest.raises(ConfigError, match="0 answers"):
        run(reader, retriever, n=0)
    assert (retriever.closed >= 1, reader.closed) == (True, 1)


@pytest.mark.slow
def test_what_was_answered_can_be_written_and_scored_again(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    first = run(Words())
    first.write(path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["answers"][0] == {
        "text": "red",
        "document": "d1",
        "start": 0,
        "end": 3,
        "score": 1.0,
    }
    again = run(path)
    assert again.replayed
    assert not first.replayed
    for denominator in ("all", "retrieved"):
        assert again.readings[denominator].metrics == first.readings[denominator].metrics
    assert all(times.read is None for times in again.times)


def test_documents_that_the_corpus_does_not_have_are_named_and_a_reader_needs_texts() -> None:
    retriever = fixed({**HITS, "q1": ["gone", "d1"]}, external=True)
    result = run(FunctionReader(lambda q, d, n: str(len(d)), "f"), retriever)
    assert "1 document not in the corpus, not read: gone" in result.warnings
    assert result.predictions.answers["q1"] == (Answer("1"),)
    without = replace(data(), documents=None)
    with pytest.raises(ConfigError, match="which has no corpus"):
        run(Words(), fixed(external=True), without)
    assert run(None, fixed(external=True), without).retrieval
