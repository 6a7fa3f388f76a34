"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, each also packed.

A document is ``{"_id", "title", "text", "metadata"}``, a query ``{"_id", "text", "metadata"}``;
title and metadata may be missing, and any other key becomes metadata. Title and text stay apart.
The queries of all splits share a file: the judgements say which of them belong to a split. Without
a folder ``qrels`` nothing is judged yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Dataset
from retrieval_bench.data import qrels, records
from retrieval_bench.data.config import Columns, DocumentColumns, QueryColumns
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.files import existing
from retrieval_bench.data.formats.outgoing import (
    document_lines,
    json_line,
    lost,
    with_filter,
    with_metadata,
)
from retrieval_bench.data.packed import unpacked_name
from retrieval_bench.data.source import DataFormat, Files, Found, Outgoing, Source, part


def find(folder: Path) -> Found | None:
    """The files of a BEIR folder, None when it is none."""
    queries = existing(folder, "queries.jsonl")
    splits: dict[str, str | None] = {}
    for path in sorted((folder / "qrels").glob("*.tsv*")):
        name = unpacked_name(path.name)
        if name.endswith(".tsv") and path.is_file():
            splits.setdefault(name.removesuffix(".tsv"), f"qrels/{path.name}")
    if queries is None and not splits:
        return None
    return Found(existing(folder, "corpus.jsonl"), queries or "queries.jsonl", splits)


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """The three streams; nothing is read yet."""
    usual = {"id": "_id", **columns.documents.model_dump(exclude_unset=True)}
    keys = DocumentColumns(**usual)
    return Source(
        records.documents(files.documents, keys) if files.documents else None,
        records.queries(part(files.queries), QueryColumns(id="_id")),
        qrels.judgements(files.judgements) if files.judgements else None,
    )


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """All of a dataset, metadata included."""
    table = [
        f"{query}\t{document}\t{grade}"
        for query, grades in dataset.qrels.items()
        for document, grade in grades.items()
    ]
    split = f"qrels/{dataset.split}.tsv"
    files: dict[str, Iterable[str]] = {
        "queries.jsonl": [
            json_line(
                with_metadata(
                    {"_id": query.id, "text": query.text, **with_filter(query)}, query.metadata
                ),
                f"query {query.id}",
            )
            for query in dataset.queries
        ],
    }
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
    find,
    columns=("documents",),
    write=write,
    unjudged=True,
)
