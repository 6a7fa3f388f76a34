"""A dataset in four languages for the way out, and what each format holds of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import export_dataset
from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset, Document, Qrels, Query
from retrieval_bench.data import build_dataset
from retrieval_bench_exchange.export import targets
from retrieval_bench_exchange.formats.squad import paragraph_id

DOCUMENTS = [
    Document("congés", "25 jours.", "Congés", {"page": 3}),
    Document("연차", "15일이 주어진다.\n둘째 줄"),
    Document("报销", "两周", metadata={"metadata": {"deep": [1, None]}}),
]
QUERIES = [
    Query("q1", "combien de jours ?"),
    Query("질문-2", '연차는 "며칠", =1+1'),
    Query("q3", "=SUM(报销)"),
]
QRELS: Qrels = {"q1": {"congés": 2, "연차": 0}, "질문-2": {"연차": 1}, "q3": {"报销": 3}}


def dataset(queries: Sequence[Query] = QUERIES, qrels: Qrels = QRELS, **more: Any) -> Dataset:
    return build_dataset("Manuel 안내", DOCUMENTS, queries, qrels, **more)


def refused(folder: Path, to: str, data: Dataset) -> tuple[str, ...]:
    with pytest.raises(DataError) as caught:
        export_dataset(data, to, folder / "out")
    assert list(folder.iterdir()) == []
    return caught.value.faults


OF_DOCUMENTS = tuple(name for name in targets() if name != "spans")
"""Formats of judged documents."""

GRADED = ("beir", "trec", "plain", "quepid", "rank_eval")
"""Formats that hold grades; in the others a document is relevant or not named."""

ROWS = ("quotes", "ragas", "langsmith")
"""Formats with a row for a question."""


def held_by(to: str, qrels: Qrels, documents: Sequence[Document] = DOCUMENTS) -> Qrels:
    """What a format holds of judgements, with the ids of documents that it gives."""
    if to in GRADED:
        return qrels
    texts = {document.id: document.text for document in documents}
    found = {
        query: {
            paragraph_id(texts[one]) if to == "squad" else one: 1
            for one, grade in of.items()
            if grade >= 1
        }
        for query, of in qrels.items()
    }
    return {query: of for query, of in found.items() if of}
