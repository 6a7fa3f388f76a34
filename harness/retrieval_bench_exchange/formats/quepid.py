"""Judgements of Quepid, whose queries come with them; the documents come from elsewhere.

Each CSV with ``query``, ``docid`` and ratings is a split of its name (:mod:`.data.ratings` says how
it is read). A query has its text as its id. Documents are the ``corpus.jsonl`` beside it, or what
``files: {documents: ...}`` names.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.data import ratings
from retrieval_bench.data.faults import Faults, Place, shown
from retrieval_bench.data.formats.trec import document_stream
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Judgement,
    Outgoing,
    Source,
    found_splits,
    held_stream,
    take_id,
    whole,
)
from retrieval_bench_exchange.outgoing import judged, lost, only_rated

_LONGEST = 500
"""Characters of a query or an id that Quepid holds (app/models/query_doc_pair.rb)."""


def find(folder: Path) -> Found | None:
    """Every CSV with the header of Quepid is a split; None without any."""
    return found_splits(folder, ratings.is_quepid, "corpus.jsonl")


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:
    """Queries and judgements are read and held, the documents are a stream."""
    path = whole(files.judgements)
    queries: dict[str, tuple[Place, Query]] = {}
    judgements: list[tuple[Place, Judgement]] = []
    for row in ratings.quepid(path, columns.judgements, faults):
        queries.setdefault(row.query, (row.place, Query(row.query, row.query)))
        if row.judgement is not None:
            judgements.append((row.place, row.judgement))
    return Source(
        document_stream(files.documents, columns.documents),
        held_stream(str(path), list(queries.values())),
        held_stream(str(path), judgements),
    )


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """The rated queries of a split, as a case exports them."""
    report = faults.of("queries")
    only_rated(dataset, faults, "Quepid")
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow([ratings.QUERY, ratings.DOCUMENT, ratings.RATING])
    first: dict[str, str] = {}
    for query in judged(dataset):
        place = f"query {shown(query.id)}"
        if first.setdefault(query.text, query.id) != query.id:
            fault = f"text {shown(query.text)} is also that of {shown(first[query.text])}"
            report.error(place, fault, "one query for a text, which is what Quepid knows it by")
        take_id({"text": query.text}, "text", place, report)
        for name, text in [
            ("text", query.text),
            *(("id", doc_id) for doc_id in dataset.qrels[query.id]),
        ]:
            if len(text) > _LONGEST:
                fault = f"{name} {shown(text)} has {len(text):,} characters"
                report.error(place, fault, f"at most {_LONGEST}")
        for document, grade in dataset.qrels[query.id].items():
            rows.writerow([ratings.guarded(query.text), ratings.guarded(document), grade])
    gone = lost(dataset)
    if any(query.id != query.text for query in judged(dataset)):
        gone.insert(0, "the ids of queries")
    name = f"{dataset.split}.csv"
    described = {"splits": {dataset.split: name}}
    return Outgoing({name: table.getvalue().split("\n")[:-1]}, described, gone)


FORMAT = DataFormat(
    "Quepid: CSV files with query, docid and ratings, each a split of its name",
    ("judgements",),
    open_source,
    find,
    sharded=("documents",),
    columns=("documents", "judgements"),
    write=write,
)
