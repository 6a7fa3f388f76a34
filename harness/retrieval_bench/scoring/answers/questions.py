"""Gold answers of a dataset, from the metadata of its queries; predictions checked against them.

``metadata.answers`` of a query holds texts, or as in SQuAD ``{"text", "answer_start"}``; the latter
stand in the document under ``metadata.document`` or, without that, in the one that is judged
relevant. All that is wrong comes in one error, as in :mod:`.answers.answers`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data.faults import Faults, reporting, shown
from retrieval_bench.scoring.answers.answers import (
    Given,
    GoldQuestion,
    Passage,
    Predictions,
    at_home,
    compare,
    gold_question,
    read_predictions,
)

_ACCEPTED = 'a list of texts, or of {"text": ..., "answer_start": ...}'


@dataclass(frozen=True, slots=True)
class Questions:
    """Gold of the queries that count, in their order.

    Attributes:
        predictions: from a file, checked; None where none was given.
        has_spans: whether the gold says where its answers stand.
    """

    gold: tuple[GoldQuestion, ...]
    predictions: Predictions | None
    has_spans: bool
    warnings: tuple[str, ...] = ()


def documents_of(data: Dataset, ids: Collection[str]) -> dict[str, Document]:
    """The documents with these ids, by id; one walk over the corpus."""
    return {document.id: document for document in data.documents or () if document.id in ids}


def questions_of(
    data: Dataset, queries: Sequence[Query], predictions: Path | None = None
) -> Questions:
    """The gold of ``queries``, and the predictions of a file where one is given.

    Offsets of the gold are checked where they are needed: for a reader that will say where its
    answers stand, and for predictions that do.

    Raises:
        DataError: no query has answers; everything that is wrong in the gold or the file.
    """
    if not any("answers" in query.metadata for query in queries):
        raise DataError(
            f"no query of {data.name!r} has answers in its metadata",
            accepted="SQuAD files, or `answers` in the metadata of the queries",
            fix="leave the reader out to score the retriever alone",
        )
    where = data.name if predictions is None else f"{data.name}, {predictions}"
    with reporting("the gold or the predictions", where) as faults:
        given: dict[str, Given] = {}
        spans_given = True
        if predictions is not None:
            given, spans_given = read_predictions(predictions, faults)
        own = {query.id: _document_of(query, data) for query in queries}
        given = {q: at_home(read, own.get(q)) for q, read in given.items()}
        wanted = {document for document in own.values() if document is not None}
        wanted |= {
            a.span.document for read in given.values() for a in read.answers if a.span is not None
        }
        passages = {name: found.text for name, found in documents_of(data, wanted).items()}
        has_spans = any(_has_offset(query) for query in queries)
        needed = has_spans and spans_given
        gold = []
        for query in queries:
            document = own[query.id] or ""
            passage = Passage(document, passages.get(document, ""), needed)
            gold.append(_gold(query, data, passage, faults))
        by_id = {question.id: question for question in gold}
        if predictions is not None:
            compare(given, by_id, passages, faults.of(predictions))
    made = None
    if predictions is not None:
        answers = {question: read.answers for question, read in given.items()}
        made = Predictions(answers, spans_given and has_spans)
    return Questions(tuple(gold), made, has_spans, faults.warnings())


def _document_of(query: Query, data: Dataset) -> str | None:
    """The document that the offsets of the gold count in."""
    named = query.metadata.get("document")
    if isinstance(named, str):
        return named
    relevant = _relevant(query, data)
    return relevant[0] if len(relevant) == 1 else None


def _relevant(query: Query, data: Dataset) -> tuple[str, ...]:
    grades = data.qrels.get(query.id, {})
    return tuple(doc_id for doc_id, grade in grades.items() if grade >= 1)


def _has_offset(query: Query) -> bool:
    answers = query.metadata.get("answers")
    return isinstance(answers, list) and any(
        isinstance(one, Mapping) and one.get("answer_start") is not None for one in answers
    )


def _gold(query: Query, data: Dataset, passage: Passage, faults: Faults) -> GoldQuestion:
    report = faults.of(data.name)
    place = f"query {shown(query.id)}"
    raw: Any = query.metadata.get("answers", [])
    if not isinstance(raw, list):
        report.error(place, f"answers is {shown(raw)}", _ACCEPTED)
        raw = []
    answers = [{"text": one} if isinstance(one, str) else one for one in raw]
    record = {"answers": answers, "is_impossible": not query.answerable}
    found = gold_question(query.id, record, passage, place, report)
    # A question that is marked impossible and has answers is judged by no one.
    documents = _relevant(query, data) or found.documents if found.texts else ()
    return GoldQuestion(found.id, found.texts, found.spans, documents)
