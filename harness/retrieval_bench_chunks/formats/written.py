"""Spans as they are written here: ``documents.jsonl``, and ``spans.jsonl`` or ``spans.csv``.

A line of ``spans.jsonl`` is a question, ``{id, text, spans: [{document, start, end, quote, before,
after, hash}]}``. A row of a table is a span: ``id, text, document, start, end, quote``; rows of one
id are one question. A span has a range, or a quote, or both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Dataset, Query, by_rule
from retrieval_bench.data import parts
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files.lines import existing, kind_of
from retrieval_bench.data.files.rows import in_cells, rows
from retrieval_bench.data.files.shards import paths_of
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Outgoing,
    Source,
    held_stream,
    part,
    rest,
    take_id,
    take_text,
    whole,
)
from retrieval_bench_chunks.formats.texts import text_documents
from retrieval_bench_chunks.spans import KEY, Spans, span_of
from retrieval_bench_exchange.outgoing import document_lines, json_line, lost

_SPAN = ("document", "start", "end", "quote", "before", "after", "hash")
_TEXTS = (".md", ".txt")


def find(folder: Path) -> Found | None:
    """The files of the layout; None without them."""
    spans = existing(folder, "spans.jsonl", "spans.csv")
    documents = existing(folder, "documents.jsonl", "documents.csv")
    return None if spans is None else Found(documents, spans)


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:
    """Questions are read and held, documents are a stream: of records, or of text files, whose ids
    are their names."""
    location, path = part(files.documents), whole(files.queries)
    if kind_of(paths_of(location)[0]) in _TEXTS:
        documents = text_documents(location, lambda file: file.name)
    else:
        documents = parts.documents(location, columns.documents)
    return Source(documents, held_stream(str(path), _queries(path, columns, faults)), None)


def _queries(path: Path, columns: Columns, faults: Faults) -> list[tuple[Place, Query]]:
    names, report, cells = columns.queries, faults.of(path), in_cells(path)
    used = frozenset((names.id, names.text))
    held: dict[str, tuple[Place, Query]] = {}
    for place, record in rows(path, [names.id, names.text], faults):
        query_id = take_id(record, names.id, place, report)
        text = take_text(record, names.text, place, report)
        if query_id is None or text is None:
            continue
        metadata = rest(record, used)
        if KEY not in metadata and metadata.get("document"):
            flat = {key: metadata.pop(key, None) for key in _SPAN}
            metadata[KEY] = [_span(flat, place, report) if cells else flat]
        spans = metadata.setdefault(KEY, [])
        if not isinstance(spans, list):
            report.error(place, f"{KEY} is {shown(spans)}", "a list of spans")
        elif query_id not in held:
            held[query_id] = place, Query(query_id, text, metadata=metadata)
        elif held[query_id][1].text != text:
            fault = f"query {shown(query_id)} with another text than in {held[query_id][0]}"
            report.error(place, fault, "one text for all spans of a query")
        else:
            held[query_id][1].metadata[KEY].extend(spans)
    return list(held.values())


def _span(cells: Mapping[str, Any], place: Place, report: FileFaults) -> dict[str, Any]:
    """A span of a table, whose cells are texts."""
    span = {key: value for key, value in cells.items() if value not in (None, "")}
    for key in ("start", "end"):
        if key in span:
            if not str(span[key]).strip().isdecimal():
                report.error(place, f"{key} is {shown(span[key])}", "a number of characters")
                span[key] = None
            else:
                span[key] = int(span[key])
    return span


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """All of a dataset of spans, each with its quote and what stands around it."""
    if not by_rule(dataset.qrels) or dataset.documents is None:
        faults.of("spans").error(None, "a dataset without spans", "one whose truth is by spans")
        return Outgoing({}, {})
    files = {
        "documents.jsonl": document_lines(dataset, "id"),
        "spans.jsonl": (json_line(line, f"query {line['id']}") for line in _lines(dataset)),
    }
    return Outgoing(files, {}, lost(dataset, documents=True, metadata=True, unjudged=True))


def _lines(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for query in dataset.queries:
        of: Any = dataset.qrels.get(query.id)
        spans = []
        if isinstance(of, Spans):
            spans = [span_of(d, of.corpus.texts[d], start, end) for d, start, end in of.truth]
        yield {"id": query.id, "text": query.text, **query.metadata, KEY: spans}


FORMAT = DataFormat(
    "spans: documents.jsonl (also .csv), and spans.jsonl or spans.csv with the characters of "
    "documents that answer each question",
    ("documents", "queries"),
    open_source,
    find,
    columns=("documents", "queries"),
    write=write,
    sharded=("documents",),
)
