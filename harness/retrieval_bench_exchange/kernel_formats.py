"""Ways out in the formats of the kernel, which itself reads them only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.faults import Faults, shown
from retrieval_bench.data.qrels import BEIR_HEADER
from retrieval_bench.data.source import Outgoing
from retrieval_bench_exchange.outgoing import (
    by_documents,
    document_lines,
    json_line,
    judgements,
    lost,
    query_lines,
)

_WORD = "ids without blanks; beir holds them"


def beir(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """All of a dataset, metadata included."""
    table = ["\t".join(map(str, judgement)) for judgement in judgements(dataset)]
    split = f"qrels/{dataset.split}.tsv"
    files: dict[str, Iterable[str]] = {"queries.jsonl": query_lines(dataset, "_id")}
    if table:
        files[split] = ["\t".join(BEIR_HEADER), *table]
    if dataset.documents is not None:
        files["corpus.jsonl"] = document_lines(dataset, "_id")
    gone = lost(dataset, documents=True, metadata=True, unjudged=True, filters=True)
    return Outgoing(files, {"splits": {dataset.split: split}} if table else {}, gone)


def plain(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
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


def trec(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """Topics and judgements with blanks between, which every TREC tool splits alike, so that no id
    may hold one; documents as JSON lines."""
    by_documents(dataset, faults)
    report = faults.of("queries")
    for query in dataset.queries:
        place = f"query {shown(query.id)}"
        if any(map(str.isspace, query.id)) or query.id.startswith(("<", "{", "[", "#")):
            report.error(place, "its id holds a blank or begins with <, {, [ or #", _WORD)
        if re.search(r"[\t\r\n]", query.text.strip()):
            report.error(
                place, f"text {shown(query.text)}", "one line without tabs; beir holds more"
            )
    for document in sorted({judgement.doc_id for judgement in judgements(dataset)}):
        if any(map(str.isspace, document)):
            place = f"document {shown(document)}"
            faults.of("judgements").error(place, "its id holds a blank", _WORD)
    files: dict[str, Iterable[str]] = {
        "topics.tsv": [f"{query.id}\t{query.text.strip()}" for query in dataset.queries],
        f"qrels.{dataset.split}.txt": [
            f"{query} 0 {document} {grade}" for query, document, grade in judgements(dataset)
        ],
    }
    names = {"queries": "topics.tsv"}
    if dataset.documents is not None:
        files["documents.jsonl"] = document_lines(dataset, "id")
        names["documents"] = "documents.jsonl"
    described = {"files": names, "splits": {dataset.split: f"qrels.{dataset.split}.txt"}}
    gone = lost(dataset, documents=True, unjudged=True)
    if outer := sum(query.text != query.text.strip() for query in dataset.queries):
        gone.append(f"white space at the ends of {counted(outer, 'query')}")
    return Outgoing(files, described, gone)


WRITERS = MappingProxyType({"beir": beir, "trec": trec, "plain": plain})
"""By the name of the format."""
