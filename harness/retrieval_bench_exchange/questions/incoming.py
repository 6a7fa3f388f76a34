"""Rows of a question, its answer and what it is answered by, for the formats that have them.

A row names its sources by their text, by the ids of documents, or both. With a corpus, an id names
its document, and a text the documents that contain it (:mod:`.data.passages`): several are all
relevant, none is a fault unless ``columns: {rows: {unfound: drop}}`` makes it a warning. Without a
corpus the texts are the documents, each once; an id that stands beside a text is its id, else it is
made from the text. A judgement has grade 1.

Rows with one id are one query, and without ids rows that ask the same question; its sources and
answers are those of all of them. A row without a source judges nothing, and is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Document, Message, Query
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files.literals import ACCEPTED, Column, LiteralError, listed
from retrieval_bench.data.files.rows import in_cells, rows, yes_or_no
from retrieval_bench.data.formats.trec import document_stream
from retrieval_bench.data.passages import folded, holders
from retrieval_bench.data.settings import Columns, RowColumns
from retrieval_bench.data.source import (
    NULL,
    Files,
    Judgement,
    Located,
    Source,
    Stream,
    file_stream,
    held_stream,
    looked_up,
    part,
    rest,
    take_id,
)
from retrieval_bench_exchange.formats.squad import paragraph_id

_OBJECTS = re.compile(r"\s*\[\s*\{")
_GROUPS = (
    "rows with groups of documents of which one is enough, all of them relevant here: recall counts"
    " documents, not groups"
)
_ROLES = {"human": "user", "ai": "assistant"}
_TEXTS = "a text or a list of texts"
_ASKED = 'a text, or turns such as [{"role": "user", "content": "..."}]'

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usual:
    """Names that a format has for the parts of a row, of which the first that is there counts.

    Attributes:
        prepared: called with each record first; gives the one to read.
        source: called with each text of a source; gives the text itself.
    """

    question: Sequence[str]
    answer: Sequence[str]
    sources: Sequence[str]
    documents: Sequence[str] = ()
    id: Sequence[str] = ("id",)
    prepared: Callable[[Record], Record] = lambda record: record
    source: Callable[[str], str] = lambda text: text


@dataclass(frozen=True, slots=True)
class _Row:
    """One row; ``sources`` are pairs of an id and a text, of which one may be None."""

    place: Place
    query: Query
    answers: list[str]
    sources: list[tuple[str | None, str | None]]


@dataclass(slots=True)
class _Question:
    """The rows of one query."""

    first: _Row
    answers: dict[str, None] = field(default_factory=dict)
    sources: dict[tuple[str | None, str | None], Place] = field(default_factory=dict)


def open_questions(files: Files, columns: Columns, faults: Faults, usual: Usual) -> Source:
    """Questions and judgements are read and held, the documents are a stream."""
    rows_read = file_stream(
        part(files.judgements), partial(_placed, usual, columns.rows, files.documents is not None)
    )
    report = faults.of(rows_read.label)
    questions = _merged(rows_read.read(faults), report)
    corpus = document_stream(files.documents, columns.documents)
    texts = {text for question in questions for _, text in question.sources if text is not None}
    judgements = (
        _judged_passages(questions)
        if corpus is None
        else _judged_in(corpus, questions, report, drop=columns.rows.unfound == "drop")
    )
    if corpus is None and texts:
        corpus = Stream(rows_read.label, partial(_documents, rows_read), rows_read.paths)
    queries: list[tuple[Place, Query]] = []
    for question in questions:
        query = question.first.query
        metadata = (
            {**query.metadata, "answers": list(question.answers)} if question.answers else None
        )
        new = Query(query.id, query.text, query.messages, metadata or query.metadata)
        queries.append((question.first.place, new))
    label = rows_read.label
    return Source(corpus, held_stream(label, queries), held_stream(label, list(judgements)))


def _placed(
    usual: Usual, named: RowColumns, quoted: bool, path: Path, faults: Faults
) -> Located[_Row]:
    return ((row.place, row) for row in _rows(usual, named, path, faults, quoted=quoted))


def _judged_passages(questions: Sequence[_Question]) -> Iterator[tuple[Place, Judgement]]:
    for question in questions:
        ids = {_id_of(*source): place for source, place in question.sources.items()}
        for doc_id, place in ids.items():
            yield place, Judgement(question.first.query.id, doc_id, 1)


def _judged_in(
    corpus: Stream[Document], questions: Sequence[_Question], report: FileFaults, *, drop: bool
) -> Iterator[tuple[Place, Judgement]]:
    sought = {
        folded(text) for question in questions for id_, text in question.sources if not id_ and text
    }
    unread = Faults()
    in_documents = holders((document for _, document in corpus.read(unread)), sought)
    for question in questions:
        judged: dict[str, Place] = {}
        for (given, text), place in question.sources.items():
            ids = [given] if given is not None else in_documents[folded(text or "")]
            if not ids and drop:
                report.warn("sources that no document contains, dropped", place, shown(text))
            elif not ids and not unread.count:  # else the corpus is at fault, and says so
                report.error(
                    place,
                    f"no document contains the source {shown(text)}",
                    "a passage of a document; `columns: {rows: {unfound: drop}}` leaves it out",
                )
            if len(ids) > 1:
                kind = "sources that several documents contain, all of them relevant"
                report.warn(kind, place, f"{shown(text)} in {len(ids):,}")
            judged |= dict.fromkeys(ids, place)
        for doc_id, place in judged.items():
            yield place, Judgement(question.first.query.id, doc_id, 1)


def _documents(rows_read: Stream[_Row], faults: Faults) -> Located[Document]:
    """Each passage once, with the first of its texts in the alphabet."""
    report = faults.of(rows_read.label)
    texts: dict[str, str] = {}
    places: dict[str, Place] = {}
    for place, row in rows_read.read(faults):
        for given, text in row.sources:
            if text is None:
                continue
            key = _id_of(given, text)
            before = texts.setdefault(key, text)
            places.setdefault(key, place)
            if folded(before) != folded(text):
                fault = f"document {shown(key)} has another text than at {report.at(places[key])}"
                report.error(place, fault, "one text for an id")
            texts[key] = min(before, text)
    for key, text in texts.items():
        yield places[key], Document(key, text)


def _id_of(given: str | None, text: str | None) -> str:
    return paragraph_id(folded(text or "")) if given is None else given


def _merged(read: Located[_Row], report: FileFaults) -> list[_Question]:
    questions: dict[str, _Question] = {}
    for place, given in read:
        row = replace(given, place=place)
        question = questions.setdefault(row.query.id, _Question(row))
        first = question.first
        if folded(first.query.text) != folded(row.query.text):
            fault = f"id {shown(row.query.id)} again with another question"
            report.error(row.place, f"{fault}, first at {report.at(first.place)}", "one for an id")
        if not row.sources and row.query.answerable:
            kind = "rows without a source, which judge nothing"
            report.warn(kind, row.place, shown(row.query.text))
        question.answers |= dict.fromkeys(row.answers)
        for source in row.sources:
            question.sources.setdefault(source, row.place)
    return list(questions.values())


def _rows(
    usual: Usual, named: RowColumns, path: Path, faults: Faults, *, quoted: bool
) -> Iterator[_Row]:
    """Rows without fault; where sources are ``quoted`` from a corpus, it tells which are none."""
    report = faults.of(path)
    names: dict[str, Sequence[str]] = {
        key: getattr(usual, key) if getattr(named, key) is None else (getattr(named, key),)
        for key in ("id", "question", "answer", "sources", "documents")
    }
    needed = [name for key in named.model_fields_set & names.keys() for name in names[key]]
    used = frozenset(name for several in names.values() for name in several)
    columns = [name for name in needed if "." not in name]
    cells: dict[str, Column] = {}
    for place, raw in rows(path, columns, faults):
        record = usual.prepared(raw)
        try:
            fields = {key: _first(record, several) for key, several in names.items()}
        except LiteralError as problem:
            report.error(place, f"a cell holds {problem}", ACCEPTED)
            continue
        if named.separator and isinstance(ids := fields["documents"], str):
            parts = ids.split(named.separator.strip() or None)
            fields["documents"] = [part for each in parts if (part := each.strip())]
        missing = [key for key in ("question", "sources") if fields[key] is None]
        missing += [key for key in names if getattr(named, key) and fields[key] is None]
        if fields["documents"] is not None and named.sources is None:
            missing = [key for key in missing if key != "sources"]
        for key in dict.fromkeys(missing):
            has = ", ".join(shown(name) for name in list(raw)[:8]) or "nothing"
            accepted = f"{' or '.join(names[key])}; `columns: {{rows: {{{key}: NAME}}}}` names it"
            report.error(place, f"no {key}; found: {has}", accepted)
        if missing and in_cells(path):  # each row would say so
            return
        if not missing:
            metadata = _metadata(rest(record, used), path, place, report)
            row = _row(fields, metadata, usual, place, report, cells=cells)
            if row is not None:
                yield row
    for name, column in cells.items():
        for place, text, cause in column.lost() if name == "documents" or not quoted else ():
            report.error(place, f"{name} is {shown(text)}: {cause}", ACCEPTED)


def _first(record: Record, names: Sequence[str]) -> Any:
    """Return the value under the first of ``names`` that is there; None where none is."""
    values = (looked_up(record, name) for name in names)
    return next((value for value in values if value is not None), None)


def _row(
    found: Mapping[str, Any],
    metadata: Record,
    usual: Usual,
    place: Place,
    report: FileFaults,
    *,
    cells: dict[str, Column],
) -> _Row | None:
    asked = _asked(found["question"], place, report)
    answers = _texts("answer", found["answer"], place, report)
    texts = _texts("sources", found["sources"], place, report, cells)
    given = _ids(found["documents"], place, report, cells)
    if asked is None or answers is None or texts is None or given is None:
        return None
    text, messages = asked
    query_id = paragraph_id("\n".join(folded(m.content) for m in messages) or folded(text))
    if found["id"] not in (None, NULL):
        own = take_id({"id": found["id"]}, "id", place, report)
        if own is None:
            return None
        query_id = own
    texts = [item for item in map(usual.source, texts) if folded(item)]
    if given and texts and len(given) != len(texts):
        both = f"{len(given)} ids of documents and {len(texts)} sources"
        report.error(place, both, "as many of both")
        return None
    sources = list(zip_longest(given, texts))
    return _Row(place, Query(query_id, text, messages, metadata), answers, sources)


def _asked(value: Any, place: Place, report: FileFaults) -> tuple[str, tuple[Message, ...]] | None:
    """The text to search and all turns; None after a fault."""
    if isinstance(value, str):
        turns = _items("question", value, place, report) if _OBJECTS.match(value) else [value]
        if turns == [value]:
            return value, ()
        value = turns
    if value is None:
        return None
    messages = []
    for turn in value if isinstance(value, list) else ():
        role, content = (
            (turn.get("role", turn.get("type")), turn.get("content"))
            if isinstance(turn, Mapping)
            else (None, None)
        )
        if not isinstance(role, str) or not isinstance(content, str):
            report.error(place, f"question holds {shown(turn)}", _ASKED)
            return None
        messages.append(Message(_ROLES.get(role, role), content))
    asked = [message.content for message in messages if message.role == "user"]
    if not asked:
        report.error(place, f"question is {_shown(value)}", _ASKED)
        return None
    return asked[-1], tuple(messages)


def _texts(
    name: str, value: Any, place: Place, report: FileFaults, cells: dict[str, Column] | None = None
) -> list[str] | None:
    """The texts that a value holds; None after a fault."""
    if value is None or value is NULL:
        return []
    given = _items(name, value, place, report, cells)
    if given is None:
        return None
    texts = [item.get("page_content") if isinstance(item, Mapping) else item for item in given]
    held = [text for text in texts if isinstance(text, str)]
    if len(held) < len(texts):
        wrong = next(item for item, text in zip(given, texts, strict=True) if text not in held)
        report.error(place, f"{name} holds {shown(wrong)}", _TEXTS)
        return None
    return [text for text in held if text.strip()]


def _ids(
    value: Any, place: Place, report: FileFaults, cells: dict[str, Column]
) -> list[str] | None:
    if value is None or value is NULL or value == "":
        return []
    given = _items("documents", value, place, report, cells)
    if given is None:
        return None
    if any(isinstance(item, list) and len(item) > 1 for item in given):
        report.warn(_GROUPS, place)
    flat = [each for item in given for each in (item if isinstance(item, list) else [item])]
    ids = [take_id({"documents": item}, "documents", place, report) for item in flat]
    return None if None in ids else [doc_id for doc_id in ids if doc_id is not None]


def _items(
    name: str, value: Any, place: Place, report: FileFaults, cells: dict[str, Column] | None = None
) -> list[Any] | None:
    """The items of a list, also of one that is printed in a cell, else the value alone; None after
    a fault.

    Args:
        cells: by ``name`` the column that the value is added to, where it is one of lists.
    """
    try:
        items = value if isinstance(value, list) else listed(value)
    except LiteralError as problem:
        report.error(place, f"{name} is {shown(value)}: {problem}", ACCEPTED)
        return None
    if cells is not None:
        cells.setdefault(name, Column()).add(place, value, items)
    return [value] if items is None else items


def _metadata(record: Record, path: Path, place: Place, report: FileFaults) -> Record:
    flag = record.get("answerable")
    if in_cells(path) and isinstance(flag, str):
        record = {key: value for key, value in record.items() if key != "answerable"}
        known = yes_or_no(flag, "answerable", place, report)
        return record if known is None else {**record, "answerable": known}
    return record


def _shown(value: Any) -> str:
    return "null" if value is NULL else shown(value)
