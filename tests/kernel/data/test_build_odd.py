"""Odd but right input of datasets: numbers of numpy, generators, empty values, flags in cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core.types import Document, Query
from retrieval_bench.data import build_dataset, load_dataset
from retrieval_bench.runs.dataset import labels_of
from tests.builders.files import save_all

DOCUMENTS = [Document("d1", "apple"), Document("d2", "pear")]


def test_grades_may_be_whole_numbers_of_numpy() -> None:
    made = build_dataset("mine", DOCUMENTS, [Query("q1", "apple")], {"q1": {"d1": np.int64(2)}})  # type: ignore[dict-item]
    assert made.qrels == {"q1": {"d1": 2}}


def test_documents_may_come_from_a_generator() -> None:
    given = (document for document in DOCUMENTS)
    made = build_dataset("mine", given, [Query("q1", "apple")], {"q1": {"d1": 1}})  # type: ignore[arg-type]
    assert [document.id for document in made.documents or ()] == ["d1", "d2"]


def test_a_query_without_a_value_is_a_cluster_by_itself() -> None:
    values: tuple[dict[str, Any], ...] = (
        {},
        {"talk": None},
        {"talk": ""},
        {"talk": "a"},
        {"talk": "a"},
    )
    queries = [Query(f"q{at}", f"text {at}", metadata=of) for at, of in enumerate(values)]
    made = replace(build_dataset("mine", None, queries, {"q0": {"d": 1}}), cluster_key="talk")
    assert len(set(labels_of(made, queries))) == 4


def test_tags_may_be_nothing_or_a_number() -> None:
    assert Query("q", "text", metadata={"tags": None}).tags == ()
    assert Query("q", "text", metadata={"tags": 7}).tags == ("7",)


def test_a_table_may_say_that_a_question_is_impossible(tmp_path: Path) -> None:
    folder = save_all(
        tmp_path / "asked",
        {
            "queries.csv": "id,text,is_impossible\nq1,apple,false\nq2,pear,true\n",
            "qrels.csv": "query,document,grade\nq1,d1,1\n",
            "documents.jsonl": '{"id": "d1", "text": "apple"}',
            "dataset.yaml": "format: plain\nfiles: {queries: queries.csv, documents: "
            "documents.jsonl}\nsplits: {test: qrels.csv}\n"
            "columns: {judgements: {query: query, document: document, grade: grade}}\n",
        },
    )
    assert [query.answerable for query in load_dataset(folder).queries] == [True, False]
