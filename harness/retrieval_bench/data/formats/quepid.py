"""Judgements of Quepid, whose queries come with them; the documents come from elsewhere.

Each CSV with ``query``, ``docid`` and ratings is a split of its name (:mod:`.data.ratings` says how
it is read). A query has its text as its id. Documents are the ``corpus.jsonl`` beside it, or what
``files: {documents: ...}`` names.
"""

from __future__ import annotations

from pathlib import Path

from retrieval_bench.core.types import Query
from retrieval_bench.data import ratings
from retrieval_bench.data.config import Columns
from retrieval_bench.data.faults import Faults, Place
from retrieval_bench.data.files import existing
from retrieval_bench.data.formats.trec import document_stream
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Judgement,
    Source,
    found_splits,
    held_stream,
    part,
)


def find(folder: Path) -> Found | None:
    """Every CSV with the header of Quepid is a split; None without any."""
    splits = found_splits(folder, ratings.is_quepid)
    return Found(documents=existing(folder, "corpus.jsonl"), splits=splits) if splits else None


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:
    """Queries and judgements are read and held, the documents are a stream."""
    path = part(files.judgements)
    queries: dict[str, tuple[Place, Query]] = {}
    judgements: list[tuple[Place, Judgement]] = []
    for row in ratings.quepid(path, columns.judgements, faults):
        queries.setdefault(row.query, (row.place, Query(row.query, row.query)))
        if row.judgement is not None:
            judgements.append((row.place, row.judgement))
    return Source(
        document_stream(files.documents, columns.documents) if files.documents else None,
        held_stream(str(path), list(queries.values())),
        held_stream(str(path), judgements),
    )


FORMAT = DataFormat(
    "Quepid: CSV files with query, docid and ratings, each a split of its name",
    ("judgements",),
    open_source,
    find,
    columns=("documents", "judgements"),
)
