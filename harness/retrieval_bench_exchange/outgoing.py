"""What the ways out share: lines of JSON, checks, and what a format has no place for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import DataError, counted
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.data.faults import Faults, shown
from retrieval_bench.data.source import Judgement


def json_line(record: Mapping[str, Any], what: str) -> str:
    """``record`` as one line.

    Raises:
        DataError: its metadata hold what is no JSON.
    """
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise DataError(
            f"metadata that is no JSON: {problem}",
            where=what,
            accepted="texts, numbers, lists and mappings",
            fix="correct the metadata, or leave it out",
        ) from None


def with_metadata(record: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """``record`` with its metadata in a place of their own, where there are any."""
    return {**record, "metadata": dict(metadata)} if metadata else record


def query_lines(dataset: Dataset, id_key: str) -> list[str]:
    """The queries as JSON lines, each with its filter where it has one."""
    lines = []
    for query in dataset.queries:
        condition = {} if query.filter is None else {"filter": dict(query.filter.source)}
        record = {id_key: query.id, "text": query.text, **condition}
        lines.append(json_line(with_metadata(record, query.metadata), f"query {query.id}"))
    return lines


def document_lines(dataset: Dataset, id_key: str) -> Iterator[str]:
    """The corpus as JSON lines, made while it is walked."""
    for document in dataset.documents or ():
        record = {id_key: document.id, "title": document.title, "text": document.text}
        yield json_line(with_metadata(record, document.metadata), f"document {document.id}")


def judged(dataset: Dataset) -> list[Query]:
    """The queries with judgements in this split."""
    return [query for query in dataset.queries if query.id in dataset.qrels]


def judgements(dataset: Dataset) -> Iterator[Judgement]:
    """The judgements of this split, in their order."""
    for query_id, grades in dataset.qrels.items():
        for doc_id, grade in grades.items():
            yield Judgement(query_id, doc_id, grade)


def by_documents(dataset: Dataset, faults: Faults) -> None:
    """Report truth by rule, which has no judgement of a document."""
    if dataset.qrels and not any(True for _ in judgements(dataset)):
        accepted = "judgements of documents; plain and beir hold rules"
        faults.of("judgements").error(None, "no judgement of a document", accepted)


def only_rated(dataset: Dataset, faults: Faults, holder: str) -> None:
    """Report grades below 0, which say "not judged" and would be ratings to ``holder``."""
    by_documents(dataset, faults)
    for query_id, doc_id, grade in judgements(dataset):
        if grade < 0:
            fault = f"document {shown(doc_id)} has grade {grade}, which is not judged"
            place = f"query {shown(query_id)}"
            faults.of("judgements").error(place, fault, f"0 or more in {holder}")


def relevant(dataset: Dataset, faults: Faults) -> dict[str, list[str]]:
    """Query id -> its relevant documents, of those that have any; for formats in which a document
    is relevant or not named. That there is none at all is reported."""
    by_query = {
        query.id: [
            doc_id for doc_id, grade in dataset.qrels.get(query.id, {}).items() if grade >= 1
        ]
        for query in dataset.queries
    }
    kept = {query_id: documents for query_id, documents in by_query.items() if documents}
    if dataset.qrels and not kept:
        found_none = "no document is relevant in this split"
        faults.of("judgements").error(None, found_none, "at least one grade of 1 or more")
    return kept


def lost_grades(dataset: Dataset) -> list[str]:
    """Say what is lost where a document is relevant or not named, a phrase each."""
    grades = [judgement.grade for judgement in judgements(dataset)]
    lost_grades = []
    if above := sum(grade > 1 for grade in grades):
        lost_grades.append(f"the grades above 1 of {counted(above, 'judgement')}")
    if below := sum(grade < 1 for grade in grades):
        lost_grades.append(f"{counted(below, 'judgement')} with a grade below 1")
    return lost_grades


def turns(query: Query) -> list[dict[str, str]]:
    """A conversation, or the one question of a user."""
    if not query.messages:
        return [{"role": "user", "content": query.text}]
    return [{"role": message.role, "content": message.content} for message in query.messages]


def lost(
    dataset: Dataset,
    *,
    documents: bool = False,
    metadata: bool = False,
    unjudged: bool = False,
    filters: bool = False,
    conversations: bool = False,
    only: Sequence[Query] | None = None,
    held: Collection[str] = (),
) -> list[str]:
    """List the losses of a dataset where none of the named parts is held, a phrase each.

    Args:
        only: the queries that are held, where those without a relevant document are not.
        held: keys of the queries' metadata that are held where the others are not.
    """
    lost = []
    if not documents and dataset.n_documents:
        lost.append(f"the texts of {counted(dataset.n_documents, 'document')}")
    kept = dataset.queries if unjudged else judged(dataset) if only is None else only
    if left := len(dataset.queries) - len(kept):
        what = "judgement" if only is None else "relevant document"
        lost.append(f"{counted(left, 'query')} without a {what} in this split")
    if not metadata:
        if flagged := sum(not query.answerable for query in kept):
            lost.append(f"the flag of {counted(flagged, 'unanswerable query')}")
        told = (*_FLAGS, *held)
        others = [key for query in kept for key in query.metadata if key not in told]
        if others:
            names = ", ".join(sorted(dict.fromkeys(others))[:5])
            lost.append(f"metadata of queries ({names})")
    if conditions := sum(query.filter is not None for query in kept) * (not filters):
        lost.append(f"the filters of {counted(conditions, 'query')}")
    if several := sum(len(query.messages) > 1 for query in kept) * (not conversations):
        lost.append(f"the turns of {counted(several, 'conversation')} before the last")
    return lost


_FLAGS = ("answerable", "is_impossible")
