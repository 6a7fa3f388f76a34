"""TREC collections: topics, judgements and documents in the formats of the tracks.

Topics are lines ``id<TAB>text`` or TREC text (``<top> <num> <title> <desc> <narr> </top>``, closing
tags or not); of the latter the title is the query unless ``columns: {queries: {text: desc}}`` says
otherwise, and the other fields are metadata. Judgements are a file of :mod:`.data.qrels`.
Documents are JSON lines or TREC text (``<DOC> <DOCNO>...</DOCNO> <TEXT>...</TEXT> </DOC>``), where
the text is what stands in ``<TEXT>``, or without one everything but number and title. Tags within a
text are dropped, entities such as ``&amp;`` resolved. JSON lines have the keys of ``columns``,
else the usual ones (id, _id, docid or docno; text, contents or body).

There are no usual file names: ``dataset.yaml`` names the files and the splits.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from retrieval_bench.core.types import Document, Query
from retrieval_bench.data import parts as records
from retrieval_bench.data import qrels
from retrieval_bench.data.faults import Faults, FileFaults, shown
from retrieval_bench.data.files.lines import first_line, lines, parse_json
from retrieval_bench.data.files.shards import Location, paths_of
from retrieval_bench.data.settings import Columns, DocumentColumns
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Located,
    Source,
    Stream,
    file_stream,
    part,
    take_id,
)

_ID_KEYS = ("id", "_id", "docid", "docno")
_TEXT_KEYS = ("text", "contents", "body")
_FIELD = re.compile(r"<\s*(num|title|desc|narr)\s*>", re.IGNORECASE)
_LABEL = re.compile(r"\A\s*(Number|Topic|Description|Narrative)\s*:\s*", re.IGNORECASE)
_DOCNO = re.compile(r"<DOCNO>(.*?)</DOCNO>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<(TITLE|HEADLINE|HEAD|TTL|TI)>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_TEXT = re.compile(r"<TEXT>(.*?)</TEXT>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """The three streams; of topics and documents only the first line is looked at."""
    topics = part(files.queries)
    named = "text" in columns.queries.model_fields_set
    field = columns.queries.text.lower() if named else "title"
    is_text = first_line(paths_of(topics)[0]).lstrip().startswith("<")
    return Source(
        document_stream(files.documents, columns.documents),
        file_stream(topics, partial(_topics, field) if is_text else tab_topics),
        qrels.judgements(files.judgements) if files.judgements else None,
    )


def document_stream(location: Location | None, columns: DocumentColumns) -> Stream[Document] | None:
    """Documents of JSON lines, a table or TREC text; JSON has the usual keys unless named. None of
    no file."""
    if location is None:
        return None
    start = first_line(paths_of(location)[0])
    if start.lstrip().startswith("<"):
        return file_stream(location, partial(_documents, columns.title is not None))
    if not columns.model_fields_set - {"title"}:
        columns = _usual_columns(start, columns)
    return records.documents(location, columns)


def _usual_columns(start: str, named: DocumentColumns) -> DocumentColumns:
    """The keys of JSON documents, judged by the first: those of the usual ones that it has."""
    try:
        keys = parse_json(start)
    except ValueError:
        keys = None
    if not isinstance(keys, dict):
        return named
    return DocumentColumns(
        **named.model_dump(exclude_unset=True),
        id=next((key for key in _ID_KEYS if key in keys), "id"),
        text=next((key for key in _TEXT_KEYS if key in keys), "text"),
    )


def tab_topics(path: Path, faults: Faults) -> Located[Query]:
    """Queries of lines ``id<TAB>text``."""
    report = faults.of(path)
    for number, text in lines(path, faults):
        if not text.strip():
            continue
        topic_id, tab, topic = text.partition("\t")
        if not tab or "\t" in topic:
            fault = f"{'no tab' if not tab else 'more than one tab'} in {shown(text)}"
            report.error(number, fault, "id<TAB>text, or TREC text that begins with <top>")
            continue
        query_id = take_id({"id": topic_id.strip()}, "id", number, report)
        if query_id is not None:
            yield number, Query(query_id, topic.strip())


def _topics(field: str, path: Path, faults: Faults) -> Located[Query]:
    report = faults.of(path)
    for number, block in _blocks(path, "top", faults):
        fields = _topic_fields(block, number, report)
        if fields is None:
            continue
        query_id = take_id(fields, "num", number, report)
        if field not in fields:
            tags = ", ".join(f"<{name}>" for name in fields) or "no field"
            report.error(number, f"no <{field}> in this topic; found: {tags}")
        elif query_id is not None:
            used = ("num", field)
            metadata = {name: text for name, text in fields.items() if name not in used}
            yield number, Query(query_id, fields[field], metadata=metadata)


def _topic_fields(block: str, number: int, report: FileFaults) -> dict[str, str] | None:
    before, *pieces = _FIELD.split(block)
    fields: dict[str, str] = {}
    for name, raw in zip(pieces[::2], pieces[1::2], strict=True):
        if name.lower() in fields:
            report.error(number, f"two <{name.lower()}> in one topic", "each field once")
            return None
        fields[name.lower()] = " ".join(_bare(_LABEL.sub("", raw)).split())
    if before.strip():
        report.error(number, f"{shown(before.strip())} before the first field", "<num> first")
        return None
    return fields


def _documents(titled: bool, path: Path, faults: Faults) -> Located[Document]:
    report = faults.of(path)
    for number, block in _blocks(path, "DOC", faults):
        names = _DOCNO.findall(block)
        if len(names) != 1:
            fault = f"{len(names)} <DOCNO> in this document"
            report.error(number, fault, "<DOCNO>id</DOCNO>, once")
            continue
        doc_id = take_id({"DOCNO": names[0].strip()}, "DOCNO", number, report)
        if doc_id is None:
            continue
        title = _TITLE.search(block)
        body = _TITLE.sub(" ", block, count=1)  # where a title lies within the text, too
        texts = _TEXT.findall(body) or [_DOCNO.sub(" ", body)]
        name = _bare(title[2]) if title and titled else ""
        yield number, Document(doc_id, _bare("\n".join(texts)), name)


def _bare(text: str) -> str:
    """Text without tags, with entities such as ``&amp;`` resolved."""
    return html.unescape(_TAG.sub(" ", text)).strip()


def _blocks(path: Path, tag: str, faults: Faults) -> Iterator[tuple[int, str]]:
    """Line number and inner text of each ``<tag>...</tag>``, one at a time in memory."""
    report = faults.of(path)
    mark = re.compile(rf"<(/?){tag}>", re.IGNORECASE)
    inside: list[str] | None = None
    start = 0
    for number, line in lines(path, faults):
        position = 0
        for match in [*mark.finditer(line), None]:
            piece = line[position : match.start() if match else len(line)]
            if inside is not None:
                inside.append(piece)
            elif piece.strip():
                report.error(number, f"{shown(piece)} outside of <{tag}>", f"<{tag}>...</{tag}>")
            if match is None:
                continue
            position = match.end()
            if not match[1]:
                if inside is not None:
                    report.error(number, f"<{tag}> within the <{tag}> of line {start}")
                inside, start = [], number
            elif inside is None:
                report.error(number, f"</{tag}> without <{tag}>")
            else:
                yield start, "".join(inside)
                inside = None
        if inside is not None:
            inside.append("\n")
    if inside is not None:
        report.error(start, f"<{tag}> without </{tag}>")


FORMAT = DataFormat(
    "trec: topics, qrels and documents that dataset.yaml names",
    ("queries",),
    open_source,
    columns=("documents", "queries"),
    sharded=("documents", "queries", "judgements"),
)
