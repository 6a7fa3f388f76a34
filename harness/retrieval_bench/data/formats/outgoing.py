"""What the ways out share: lines of JSON, checks, and what a format has no place for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from retrieval_bench.core.errors import DataError, counted
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.data.faults import Faults, shown


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


def with_filter(query: Query) -> dict[str, Any]:
    """The filter of a query under its key, where it has one."""
    return {} if query.filter is None else {"filter": dict(query.filter.source)}


def document_lines(dataset: Dataset, id_key: str) -> Iterator[str]:
    """The corpus as JSON lines, made while it is walked."""
    for document in dataset.documents or ():
        record = {id_key: document.id, "title": document.title, "text": document.text}
        yield json_line(with_metadata(record, document.metadata), f"document {document.id}")


def judged(dataset: Dataset) -> list[Query]:
    """The queries with judgements in this split."""
    return [query for query in dataset.queries if query.id in dataset.qrels]


def only_rated(dataset: Dataset, faults: Faults, holder: str) -> None:
    """Report grades below 0, which say "not judged" and would be ratings to ``holder``."""
    for query_id, grades in dataset.qrels.items():
        for doc_id, grade in grades.items():
            if grade < 0:
                found = f"document {shown(doc_id)} has grade {grade}, which is not judged"
                place = f"query {shown(query_id)}"
                faults.of("judgements").error(place, found, f"0 or more in {holder}")


def lost(
    dataset: Dataset,
    *,
    documents: bool = False,
    metadata: bool = False,
    unjudged: bool = False,
    filters: bool = False,
) -> list[str]:
    """What is lost of a dataset where none of the named parts is held, a phrase each."""
    found = []
    if not documents and dataset.n_documents:
        found.append(f"the texts of {counted(dataset.n_documents, 'document')}")
    kept = dataset.queries if unjudged else judged(dataset)
    if left := len(dataset.queries) - len(kept):
        found.append(f"{counted(left, 'query')} without a judgement in this split")
    if not metadata:
        if flagged := sum(not query.answerable for query in kept):
            found.append(f"the flag of {counted(flagged, 'unanswerable query')}")
        others = [key for query in kept for key in query.metadata if key not in _FLAGS]
        if others:
            names = ", ".join(sorted(dict.fromkeys(others))[:5])
            found.append(f"metadata of queries ({names})")
    if conditions := sum(query.filter is not None for query in kept) * (not filters):
        found.append(f"the filters of {counted(conditions, 'query')}")
    if turns := sum(bool(query.messages) for query in kept):
        found.append(f"the turns of {counted(turns, 'conversation')} before the last")
    return found


_FLAGS = ("answerable", "is_impossible")
