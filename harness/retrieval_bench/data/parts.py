"""Documents, queries and judgements from files of records, as :mod:`.files.rows` reads them.

Which key or column is what, :class:`~retrieval_bench.data.settings.Columns` says; the others become
metadata.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import BaseModel

from retrieval_bench.core.types import Document, Query
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.files.rows import in_cells, rows, yes_or_no
from retrieval_bench.data.files.shards import Location
from retrieval_bench.data.settings import DocumentColumns, JudgementColumns, QueryColumns
from retrieval_bench.data.source import (
    Judgement,
    Located,
    Stream,
    file_stream,
    rest,
    take_filter,
    take_grade,
    take_id,
    take_text,
    take_title,
)


def documents(location: Location, columns: DocumentColumns) -> Stream[Document]:
    """The documents of a file of records, or of several."""
    return file_stream(location, partial(_documents, columns))


def queries(location: Location, columns: QueryColumns) -> Stream[Query]:
    """The queries of a file of records, or of several."""
    return file_stream(location, partial(_queries, columns))


def judgements(location: Location, columns: JudgementColumns) -> Stream[Judgement]:
    """The judgements of a file of records, or of several."""
    return file_stream(location, partial(_judgements, columns))


def _documents(columns: DocumentColumns, path: Path, faults: Faults) -> Located[Document]:
    report = faults.of(path)
    used = frozenset(name for name in (columns.id, columns.text, columns.title) if name)
    needed = _needed(columns, "id", "text")
    for number, record in rows(path, needed, faults):
        doc_id = take_id(record, columns.id, number, report)
        text = take_text(record, columns.text, number, report)
        title = take_title(record, columns.title, number, report)
        if doc_id is not None and text is not None and title is not None:
            yield number, Document(doc_id, text, title, rest(record, used))


def _queries(columns: QueryColumns, path: Path, faults: Faults) -> Located[Query]:
    report = faults.of(path)
    used = frozenset((columns.id, columns.text, columns.answerable, columns.filter))
    needed = _needed(columns, "id", "text")
    for number, record in rows(path, needed, faults):
        query_id = take_id(record, columns.id, number, report)
        text = take_text(record, columns.text, number, report)
        metadata = rest(record, used)
        flags = {"answerable": columns.answerable, "is_impossible": "is_impossible"}
        for name, column in flags.items():
            flag = record.get(column)
            if in_cells(path) and isinstance(flag, str):
                metadata.pop(name, None)
                flag = yes_or_no(flag, column, number, report)
            if flag is not None:
                metadata[name] = flag
        given = record.get(columns.filter)
        condition = None if given in (None, "") else take_filter(given, number, report)
        if query_id is not None and text is not None:
            yield number, Query(query_id, text, metadata=metadata, filter=condition)


def _judgements(columns: JudgementColumns, path: Path, faults: Faults) -> Located[Judgement]:
    report = faults.of(path)
    needed = [name for name in (columns.query, columns.document, columns.grade) if name]
    for number, record in rows(path, needed, faults):
        query_id = take_id(record, columns.query, number, report)
        doc_id = take_id(record, columns.document, number, report)
        grade = take_grade(record, columns.grade, number, report) if columns.grade else 1
        if query_id is not None and doc_id is not None and grade is not None:
            yield number, Judgement(query_id, doc_id, grade)


def _needed(columns: BaseModel, *always: str) -> list[str]:
    """Columns that a header must have: the necessary ones, and those that the config names."""
    fields = [f for f in type(columns).model_fields if f in always or f in columns.model_fields_set]
    return [name for name in (getattr(columns, field) for field in fields) if name is not None]
