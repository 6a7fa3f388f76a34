"""SQuAD's layout with answers as spans: a paragraph is a document, and truth the characters of the
first answer, which is that of the person who asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from retrieval_bench.core.types import Query
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import DataFormat, Files, Source, held_stream, whole
from retrieval_bench_chunks.spans import KEY
from retrieval_bench_exchange.formats import squad

_ACCEPTED = "{text, answer_start}"


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:
    """The paragraphs and questions of :mod:`retrieval_bench_exchange.formats.squad`."""
    source = squad.open_source(files, columns, faults)
    path = whole(files.judgements)
    queries = list(_queries(source, faults.of(path)))
    return replace(source, queries=held_stream(str(path), queries), judgements=None)


def _queries(source: Source, report: FileFaults) -> Iterator[tuple[Place, Query]]:
    for place, query in source.queries.read(Faults()):
        spans: list[dict[str, Any]] = []
        if query.answerable:
            match query.metadata.get("answers"):
                case [{"text": str(text), "answer_start": int(start)}, *_]:
                    document = query.metadata["document"]
                    end = start + len(text)
                    spans = [{"document": document, "start": start, "end": end, "quote": text}]
                case answers:
                    report.error(place, f"answers is {shown(answers)}", _ACCEPTED)
        yield place, replace(query, metadata={**query.metadata, KEY: spans})


FORMAT = DataFormat(
    "SQuAD's layout with answers as spans, where dataset.yaml says format: squad_spans",
    ("judgements",),
    open_source,
    read_only="`data export --to spans` writes them",
)
