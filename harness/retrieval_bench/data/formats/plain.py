"""Plain files with named columns: JSON lines, CSV or TSV, each part in a file of its own.

There are no usual file names: ``dataset.yaml`` names the files, the splits and the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from retrieval_bench.core.types import Dataset
from retrieval_bench.data import parts as records
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.formats.outgoing import (
    document_lines,
    json_line,
    judgements,
    lost,
    query_lines,
)
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import DataFormat, Files, Outgoing, Source, part


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """The three streams; nothing is read yet."""
    return Source(
        records.documents(files.documents, columns.documents) if files.documents else None,
        records.queries(part(files.queries), columns.queries),
        records.judgements(files.judgements, columns.judgements) if files.judgements else None,
    )


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """All of a dataset as JSON lines, metadata included."""
    files: dict[str, Iterable[str]] = {"queries.jsonl": query_lines(dataset, "id")}
    described: dict[str, Any] = {"files": {"queries": "queries.jsonl"}}
    if dataset.qrels:
        name = f"judgements.{dataset.split}.jsonl"
        files[name] = [
            json_line(judgement._asdict(), f"query {judgement.query_id}")
            for judgement in judgements(dataset)
        ]
        described["splits"] = {dataset.split: name}
    if dataset.documents is not None:
        files["documents.jsonl"] = document_lines(dataset, "id")
        described["files"]["documents"] = "documents.jsonl"
    gone = lost(dataset, documents=True, metadata=True, unjudged=True, filters=True)
    return Outgoing(files, described, gone)


FORMAT = DataFormat(
    "plain: JSONL, CSV or TSV files that dataset.yaml names",
    ("queries",),
    open_source,
    columns=("documents", "queries", "judgements"),
    write=write,
    sharded=("documents", "queries", "judgements"),
    unjudged=True,
)
