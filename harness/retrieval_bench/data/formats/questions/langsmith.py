"""Exported datasets of LangSmith: JSON lines, a JSON list or CSV.

An example is ``{"id", "inputs": {...}, "outputs": {...}, "metadata": {...}}`` (langsmith 0.15.0,
``schemas.ExampleBase``). What is in ``inputs`` and ``outputs`` is the user's own: the question is
``inputs.question`` (or ``input``, ``query``, ``messages``), the answer ``outputs.answer`` (or
``output``), the sources are ``outputs.contexts`` (or ``documents``), unless ``columns: {rows:
...}`` names others. A dotted name leads into objects, also where a cell of a table holds one as
JSON. :mod:`.questions.incoming` says what becomes of a row. Ids of documents are read where
``columns: {rows: {documents: NAME}}`` names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from retrieval_bench.core.types import Dataset
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.formats.outgoing import json_line, turns
from retrieval_bench.data.formats.questions.incoming import Usual, open_questions
from retrieval_bench.data.formats.questions.written import (
    Answered,
    answered,
    lost_contexts,
    one_or_all,
    other_metadata,
    outgoing,
)
from retrieval_bench.data.source import DataFormat, Outgoing

_IDS = "context_ids"

USUAL = Usual(
    ("inputs.question", "inputs.input", "inputs.query", "inputs.messages"),
    ("outputs.answer", "outputs.output"),
    ("outputs.contexts", "outputs.documents"),
)


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """An example for each query with a relevant document, or that nothing answers."""
    questions = answered(dataset, USUAL, faults, unanswerable=True)
    columns = {"documents": f"outputs.{_IDS}"}
    return outgoing(
        dataset,
        questions,
        _example,
        columns=columns,
        gone=lost_contexts(questions),
        metadata=True,
        conversations=True,
    )


def _example(answered: Answered) -> Iterator[str]:
    query = answered.query
    outputs: dict[str, Any] = {"answer": one_or_all(answered.answers)} if answered.answers else {}
    if all(answered.texts):
        outputs["contexts"] = list(answered.texts)
    example = {
        "id": query.id,
        "inputs": {"messages": turns(query)} if query.messages else {"question": query.text},
        "outputs": {**outputs, _IDS: list(answered.documents)},
        **other_metadata(query),
    }
    yield json_line(example, f"query {query.id}")


FORMAT = DataFormat(
    "LangSmith: an exported dataset that dataset.yaml names",
    ("judgements",),
    partial(open_questions, usual=USUAL),
    columns=("documents", "rows"),
    sharded=("documents", "judgements"),
    write=write,
)
