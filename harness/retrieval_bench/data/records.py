"""Documents, queries and judgements from files of records: JSON lines, CSV or TSV.

A table with a header line for ``.csv`` and ``.tsv``; JSON lines for ``.jsonl``, ``.ndjson`` and
``.json``, and for any other ending when the first line begins as an object does. Which key or
column is what, :class:`~retrieval_bench.data.config.Columns` says; the others become metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from retrieval_bench.core.types import Document, Query
from retrieval_bench.data.config import DocumentColumns, JudgementColumns, QueryColumns
from retrieval_bench.data.faults import Faults, FileFaults, shown
from retrieval_bench.data.files import first_line, json_lines, kind_of, table
from retrieval_bench.data.source import (
    Judgement,
    Located,
    Stream,
    file_stream,
    rest,
    take_grade,
    take_id,
    take_text,
    take_title,
)

_TABLES = (".csv", ".tsv")
_JSON = (".jsonl", ".ndjson", ".json")
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def documents(path: Path, columns: DocumentColumns) -> Stream[Document]:
    """The documents of a file of records."""
    return file_stream(path, partial(_documents, columns))


def queries(path: Path, columns: QueryColumns) -> Stream[Query]:
    """The queries of a file of records."""
    return file_stream(path, partial(_queries, columns))


def judgements(path: Path, columns: JudgementColumns) -> Stream[Judgement]:
    """The judgements of a file of records."""
    return file_stream(path, partial(_judgements, columns))


def _documents(columns: DocumentColumns, path: Path, faults: Faults) -> Located[Document]:
    report = faults.of(path)
    used = frozenset((columns.id, columns.text, columns.title))
    needed = _needed(columns, "id", "text")
    for number, record in _records(path, needed, faults):
        doc_id = take_id(record, columns.id, number, report)
        text = take_text(record, columns.text, number, report)
        title = take_title(record, columns.title, number, report)
        if doc_id is not None and text is not None and title is not None:
            yield number, Document(doc_id, text, title, rest(record, used))


def _queries(columns: QueryColumns, path: Path, faults: Faults) -> Located[Query]:
    report = faults.of(path)
    used = frozenset((columns.id, columns.text, columns.answerable))
    needed = _needed(columns, "id", "text")
    for number, record in _records(path, needed, faults):
        query_id = take_id(record, columns.id, number, report)
        text = take_text(record, columns.text, number, report)
        metadata = rest(record, used)
        flag = record.get(columns.answerable)
        if kind_of(path) in _TABLES and isinstance(flag, str):
            flag = _yes_or_no(flag, columns.answerable, number, report)
        if flag is not None:
            metadata["answerable"] = flag
        if query_id is not None and text is not None:
            yield number, Query(query_id, text, metadata=metadata)


def _judgements(columns: JudgementColumns, path: Path, faults: Faults) -> Located[Judgement]:
    report = faults.of(path)
    needed = [name for name in (columns.query, columns.document, columns.grade) if name]
    for number, record in _records(path, needed, faults):
        query_id = take_id(record, columns.query, number, report)
        doc_id = take_id(record, columns.document, number, report)
        grade = take_grade(record, columns.grade, number, report) if columns.grade else 1
        if query_id is not None and doc_id is not None and grade is not None:
            yield number, Judgement(query_id, doc_id, grade)


def _needed(columns: BaseModel, *always: str) -> list[str]:
    """Columns that a header must have: the necessary ones, and those that the config names."""
    fields = [f for f in type(columns).model_fields if f in always or f in columns.model_fields_set]
    return [getattr(columns, name) for name in fields]


def _records(
    path: Path, needed: Iterable[str], faults: Faults
) -> Iterator[tuple[int, dict[str, Any]]]:
    kind = kind_of(path)
    if kind in _TABLES:
        return _rows(path, list(needed), faults)
    if kind in _JSON or first_line(path).lstrip()[:1] in ("{", ""):
        return json_lines(path, faults)
    accepted = ", ".join((*_JSON, *_TABLES))
    faults.of(path).error(None, f"no format known for the ending {kind!r}", f"{accepted} [.gz]")
    return iter(())


def _rows(path: Path, needed: list[str], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    report = faults.of(path)
    header: list[str] | None = None
    for number, cells in table(path, faults):
        if header is None:
            header = [cell.strip() for cell in cells]
            missing = [name for name in needed if name not in header]
            twice = sorted({name for name in header if header.count(name) > 1})
            if missing or twice:
                found = f"header is {shown(' '.join(header))}"
                found += f", without {', '.join(map(repr, missing))}" if missing else ""
                found += f", with {', '.join(map(repr, twice))} twice" if twice else ""
                report.error(number, found, "columns " + ", ".join(needed))
                return
        elif len(cells) != len(header):
            plural = "" if len(cells) == 1 else "s"
            found = f"{len(cells)} column{plural} in {shown(' '.join(cells))}"
            report.error(number, found, f"{len(header)}, as in the header")
        else:
            yield number, dict(zip(header, cells, strict=True))


def _yes_or_no(value: str, name: str, number: int, report: FileFaults) -> bool | None:
    if not value.strip():
        return None
    known = _YES_NO.get(value.strip().lower())
    if known is None:
        report.error(number, f"{name} is {shown(value)}", "true or false")
    return known
