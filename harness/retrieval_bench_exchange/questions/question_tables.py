"""Tables of questions with their answers and sources: of Ragas, of LangSmith, and quoted ones.

All are JSON lines, a JSON list, CSV or parquet; :mod:`.incoming` says what becomes of a row.

``ragas``: the columns are those of ragas 0.4.3 (``dataset_schema.SingleTurnSample``):
``user_input`` is the query (of a conversation the last turn of the user), ``reference`` the
answer; ``reference_contexts`` and ``reference_context_ids`` are its sources. What a system gave,
``retrieved_contexts`` and ``response``, becomes metadata as all others do. The head ``<1-hop>`` of
a source is taken off. CSV holds lists as Python prints them.
Names of versions before 0.2 are read, too: ``question``, and ``ground_truth`` or
``ground_truths``. Their ``contexts`` are sources in a generated test set, which has
``evolution_type``; elsewhere they are what a system retrieved, and sources only where
``columns: {rows: {sources: contexts}}`` says so.

``langsmith``: an exported example is ``{"id", "inputs": {...}, "outputs": {...}, "metadata":
{...}}`` (langsmith 0.15.0, ``schemas.ExampleBase``). What is in ``inputs`` and ``outputs`` is the
user's own: the question is ``inputs.question`` (or ``input``, ``query``, ``messages``), the answer
``outputs.answer`` (or ``output``), the sources are ``outputs.contexts`` (or ``documents``), unless
``columns: {rows: ...}`` names others. A dotted name leads into objects, also where a cell of a
table holds one as JSON. Ids of documents are read where ``columns: {rows: {documents: NAME}}``
names them.

``quotes``: a table, also TSV, with the columns ``question``, ``answer`` and ``quote``, the passage
that answers it; also ``id``, and ``doc_id`` for the id of the document. All others become metadata
of the query. A file is a split that ``dataset.yaml`` names, beside ``files: {documents: CORPUS}``
where there is a corpus.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.faults import Faults, shown
from retrieval_bench.data.files.lines import kind_of
from retrieval_bench.data.files.literals import looks_listed
from retrieval_bench.data.files.rows import first_keys
from retrieval_bench.data.source import DataFormat, Found, Outgoing, found_splits
from retrieval_bench_exchange.outgoing import json_line, turns
from retrieval_bench_exchange.questions.incoming import Usual, open_questions
from retrieval_bench_exchange.questions.written import (
    Answered,
    answered,
    lost_contexts,
    one_or_all,
    other_metadata,
    outgoing,
)

_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv")
_SOURCES = ("reference_contexts", "reference_context_ids")
_HOP = re.compile(r"\A<[0-9]+-hop>\s*")
_IDS = "context_ids"


def _found_ragas(folder: Path) -> Found | None:
    """Every file with ``user_input`` and reference contexts is a split of its name."""
    return found_splits(folder, _is_ragas)


def _is_ragas(path: Path) -> bool:
    keys = first_keys(path) if kind_of(path) in _ENDINGS else ()
    return "user_input" in keys and any(name in keys for name in _SOURCES)


def _prepared(record: dict[str, Any]) -> dict[str, Any]:
    """Contexts of an old test set by the name of today."""
    if "evolution_type" not in record or "contexts" not in record:
        return record
    return {**record, "reference_contexts": record["contexts"]}


RAGAS = Usual(
    ("user_input", "question"),
    ("reference", "ground_truth", "ground_truths"),
    ("reference_contexts",),
    ("reference_context_ids",),
    prepared=_prepared,
    source=lambda text: _HOP.sub("", text),
)
_LANGSMITH = Usual(
    ("inputs.question", "inputs.input", "inputs.query", "inputs.messages"),
    ("outputs.answer", "outputs.output"),
    ("outputs.contexts", "outputs.documents"),
)
_QUOTES = Usual(("question",), ("answer",), ("quote",), ("doc_id",))


def _write_ragas(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """A row for each query with a relevant document; the first of its answers is the reference. Its
    ``id`` is passed over by Ragas."""
    questions = answered(dataset, RAGAS, faults, unanswerable=False)
    for question in questions:
        if question.answers and looks_listed(question.answers[0]):
            fault = f"answer {shown(question.answers[0])} would be read as a list"
            place = f"query {shown(question.query.id)}"
            faults.of("queries").error(place, fault, "a text that is no list; beir holds it")
    gone = []
    if several := sum(len(question.answers) > 1 for question in questions):
        gone.append(f"all answers but the first of {counted(several, 'query')}")
    return outgoing(dataset, questions, _ragas_row, gone=[*gone, *lost_contexts(questions)])


def _ragas_row(answered: Answered) -> Iterator[str]:
    row: dict[str, Any] = {"id": answered.query.id, "user_input": answered.query.text}
    if answered.answers:
        row["reference"] = answered.answers[0]
    if all(answered.texts):
        row["reference_contexts"] = list(answered.texts)
    row["reference_context_ids"] = list(answered.documents)
    yield json_line(row, f"query {answered.query.id}")


def _write_langsmith(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """An example for each query with a relevant document, or that nothing answers."""
    questions = answered(dataset, _LANGSMITH, faults, unanswerable=True)
    return outgoing(
        dataset,
        questions,
        _example,
        columns={"documents": f"outputs.{_IDS}"},
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


def _write_quotes(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """A row for each relevant document, whose whole text is the quote; one without a quote for a
    query that nothing answers."""
    questions = answered(dataset, _QUOTES, faults, unanswerable=True)
    return outgoing(dataset, questions, _quotes, metadata=True)


def _quotes(answered: Answered) -> Iterator[str]:
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


def _table(layout: str, usual: Usual, write: Callable[..., Outgoing], **more: Any) -> DataFormat:
    return DataFormat(
        layout,
        ("judgements",),
        partial(open_questions, usual=usual),
        columns=("documents", "rows"),
        sharded=("documents", "judgements"),
        write=write,
        **more,
    )


RAGAS_FORMAT = _table(
    "Ragas: files with user_input and reference_contexts, each a split of its name",
    RAGAS,
    _write_ragas,
    find=_found_ragas,
)
QUOTES_FORMAT = _table(
    "quotes: one row a question with its quotes or ids, in a table that dataset.yaml names",
    _QUOTES,
    _write_quotes,
)
LANGSMITH_FORMAT = _table(
    "LangSmith: an exported dataset that dataset.yaml names", _LANGSMITH, _write_langsmith
)
