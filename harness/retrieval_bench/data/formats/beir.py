"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, each also packed, and
what :mod:`.formats.hub` knows beside: JSON lines, CSV and parquet, in one file or several.

A document is ``{"_id", "title", "text", "metadata"}``, a query ``{"_id", "text", "metadata"}``;
title and metadata may be missing, and any other key becomes metadata. Title and text stay apart.
The queries of all splits share a file: the judgements say which of them belong to a split. Without
a folder ``qrels`` nothing is judged yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from retrieval_bench.core.types import Dataset
from retrieval_bench.data import parts as records
from retrieval_bench.data import qrels
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.files.lines import kind_of
from retrieval_bench.data.files.rows import first_keys
from retrieval_bench.data.files.shards import Location, paths_of
from retrieval_bench.data.formats import hub
from retrieval_bench.data.formats.outgoing import document_lines, judgements, lost, query_lines
from retrieval_bench.data.settings import (
    Columns,
    DocumentColumns,
    JudgementColumns,
    QueryColumns,
)
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Judgement,
    Outgoing,
    Source,
    Stream,
    part,
)


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """The three streams; nothing is read yet."""
    queries = part(files.queries)
    documents = None
    if files.documents:
        named = columns.documents.model_dump(exclude_unset=True)
        keys = DocumentColumns(**{"id": _id_key(files.documents), **named})
        documents = records.documents(files.documents, keys)
    return Source(
        documents,
        records.queries(queries, QueryColumns(id=_id_key(queries))),
        _judgements(files.judgements) if files.judgements else None,
    )


def _id_key(location: Location) -> str:
    """``_id``; in parquet, which hubs make of many things, ``id`` where that is all there is."""
    first = paths_of(location)[0]
    keys = first_keys(first) if kind_of(first) == ".parquet" else ()
    return "id" if "id" in keys and "_id" not in keys else "_id"


def _judgements(location: Location) -> Stream[Judgement]:
    """Return the judgements of records, or of a file of TREC's or BEIR's."""
    if kind_of(paths_of(location)[0]) in hub.RECORDS:
        query, document, grade = qrels.BEIR_HEADER
        columns = JudgementColumns(query=query, document=document, grade=grade)
        return records.judgements(location, columns)
    return qrels.judgements(location)


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """All of a dataset, metadata included."""
    table = ["\t".join(map(str, judgement)) for judgement in judgements(dataset)]
    split = f"qrels/{dataset.split}.tsv"
    files: dict[str, Iterable[str]] = {"queries.jsonl": query_lines(dataset, "_id")}
    if table:
        files[split] = ["\t".join(qrels.BEIR_HEADER), *table]
    if dataset.documents is not None:
        files["corpus.jsonl"] = document_lines(dataset, "_id")
    gone = lost(dataset, documents=True, metadata=True, unjudged=True, filters=True)
    return Outgoing(files, {"splits": {dataset.split: split}} if table else {}, gone)


FORMAT = DataFormat(
    "BEIR: queries.jsonl, qrels/SPLIT.tsv and, unless the retriever holds it, corpus.jsonl",
    ("queries",),
    open_source,
    hub.find,
    columns=("documents",),
    write=write,
    sharded=("documents", "queries", "judgements"),
    unjudged=True,
)
