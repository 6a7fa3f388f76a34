"""A table of questions, their answers and the passage that each is answered by.

CSV, TSV, JSON lines, a JSON list or parquet, with the columns ``question``, ``answer`` and
``quote`` (:mod:`.incoming` says what becomes of them); also ``id``, and ``doc_id`` for the
id of the document. All others become metadata of the query. A file is a split that
``dataset.yaml`` names, beside ``files: {documents: CORPUS}`` where there is a corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from retrieval_bench.core.types import Dataset
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.formats.outgoing import json_line
from retrieval_bench.data.formats.questions.incoming import Usual, open_questions
from retrieval_bench.data.formats.questions.written import (
    Answered,
    answered,
    one_or_all,
    other_metadata,
    outgoing,
)
from retrieval_bench.data.source import DataFormat, Outgoing

USUAL = Usual(("question",), ("answer",), ("quote",), ("doc_id",))


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """A row for each relevant document, whose whole text is the quote; one without a quote for a
    query that nothing answers."""
    questions = answered(dataset, USUAL, faults, unanswerable=True)
    return outgoing(dataset, questions, _rows, metadata=True)


def _rows(answered: Answered) -> Iterator[str]:
    sources = zip(answered.documents, answered.texts, strict=True)
    for document, text in [*sources] or [("", "")]:
        row = {
            "id": answered.query.id,
            "question": answered.query.text,
            "answer": one_or_all(answered.answers),
            "quote": one_or_all([text]),
            "doc_id": one_or_all([document]),
            **other_metadata(answered.query),
        }
        yield json_line(row, f"query {answered.query.id}")


FORMAT = DataFormat(
    "quotes: a table of questions, answers and quoted sources that dataset.yaml names",
    ("judgements",),
    partial(open_questions, usual=USUAL),
    columns=("documents", "rows"),
    sharded=("documents", "judgements"),
    write=write,
)
