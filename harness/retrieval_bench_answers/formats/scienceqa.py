"""The files of the Korean scientific-knowledge QA competition.

``documents.jsonl``: ``{"docid", "src", "content"}``. ``eval.jsonl``: ``{"eval_id", "msg"}``, where
``msg`` is a conversation of ``{"role", "content"}``; the query is its last user turn, and all turns
are kept. The ground truth is a JSON object ``{eval_id: [docid, ...]}``, or JSON lines of such
objects or of ``{"eval_id": ..., "docids": [...]}``; an empty list says that no search is needed
(``answerable: false``). Without a ground truth the queries can be run and not evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Dataset, Message, Query
from retrieval_bench.data import parts as records
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files.lines import existing, json_lines, kind_of
from retrieval_bench.data.qrels import TRUTH_KEYS, UNASKED, by_query
from retrieval_bench.data.settings import Columns, DocumentColumns
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Judgement,
    Located,
    Outgoing,
    Source,
    file_stream,
    held_stream,
    rest,
    take_id,
    whole,
)
from retrieval_bench_exchange.outgoing import (
    json_line,
    lost,
    lost_grades,
    relevant,
    turns,
    with_metadata,
)

_TRUTH_NAMES = ("ground_truth.json", "ground_truth.jsonl", "gt.json", "gt.jsonl")
_TURN = ("role", "content")
_USED = frozenset(("eval_id", "msg"))


def find(folder: Path) -> Found | None:
    """The files of the competition, None when there are none."""
    queries = existing(folder, "eval.jsonl")
    if queries is None:
        return None
    return Found(
        existing(folder, "documents.jsonl"), queries, {"test": existing(folder, *_TRUTH_NAMES)}
    )


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """The three streams; the ground truth is read, because it flags queries, too."""
    truth = None if files.judgements is None else whole(files.judgements)
    listed = None if truth is None else list(_truth(truth, faults))
    empty = {eval_id: place for place, eval_id, doc_ids in listed or () if not doc_ids}
    judged: list[tuple[Place, Judgement]] = [
        (place, Judgement(eval_id, doc_id, 1))
        for place, eval_id, doc_ids in listed or ()
        for doc_id in doc_ids
    ]
    document_columns = DocumentColumns(id="docid", text="content")
    return Source(
        records.documents(files.documents, document_columns) if files.documents else None,
        file_stream(whole(files.queries), partial(_queries, truth, empty)),
        None if truth is None else held_stream(str(truth), judged),
    )


def _queries(
    truth: Path | None, empty: Mapping[str, Place], path: Path, faults: Faults
) -> Located[Query]:
    report = faults.of(path)
    unseen = dict(empty)
    for number, record in json_lines(path, faults):
        query_id = take_id(record, "eval_id", number, report)
        messages = _messages(record.get("msg"), number, report)
        asked = [message.content for message in messages if message.role == "user"]
        if messages and not asked:
            report.error(number, "msg has no turn of the user", '{"role": "user", ...} in it')
        if query_id is None or not asked:
            continue
        metadata = rest(record, _USED)
        unseen.pop(query_id, None)
        if query_id in empty:
            metadata["answerable"] = False
        yield number, Query(query_id, asked[-1], tuple(messages), metadata)
    # Those with documents are compared with the queries like all judgements; these have none.
    for eval_id, place in unseen.items():
        faults.of(str(truth)).warn(UNASKED, place, shown(eval_id))


def _messages(value: Any, number: int, report: FileFaults) -> list[Message]:
    """The turns, none after a fault."""
    accepted = '[{"role": "user", "content": "..."}, ...]'
    if not isinstance(value, list) or not value:
        report.error(number, f"msg is {shown(value)}", accepted)
        return []
    messages = []
    for turn in value:
        role, content = map(turn.get, _TURN) if isinstance(turn, dict) else (None, None)
        if not isinstance(role, str) or not isinstance(content, str):
            report.error(number, f"msg holds {shown(turn)}", accepted)
            return []
        messages.append(Message(role, content))
    return messages


def _truth(path: Path, faults: Faults) -> Iterator[tuple[Place, str, list[str]]]:
    """Places, evaluation ids and their documents, each evaluation id once."""
    report = faults.of(path)
    one_object = kind_of(path) == ".json"
    for place, eval_id, given_docs in by_query(
        path, faults, one_object=one_object, list_keys=TRUTH_KEYS, name="eval_id"
    ):
        if not isinstance(given_docs, list):
            report.error(place, f"{shown(given_docs)}", "a list of docids, empty for no search")
            continue
        doc_ids = [take_id({"docid": doc}, "docid", place, report) for doc in given_docs]
        if None not in doc_ids:
            yield place, eval_id, [doc_id for doc_id in doc_ids if doc_id is not None]


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """All of a dataset but grades and filters; ``src`` is that of a document's metadata."""
    judged = relevant(dataset, faults)
    files: dict[str, Iterable[str]] = {
        "eval.jsonl": [
            json_line(
                with_metadata({"eval_id": query.id, "msg": turns(query)}, query.metadata),
                f"query {query.id}",
            )
            for query in dataset.queries
        ]
    }
    if dataset.documents is not None:
        files["documents.jsonl"] = _document_lines(dataset)
    split: str | dict[str, str] = {}
    if judged:
        split = "ground_truth.json"
        unanswerable = [query.id for query in dataset.queries if not query.answerable]
        truth = {**judged, **{query_id: [] for query_id in unanswerable}}
        text = json.dumps(truth, ensure_ascii=False, indent=1)
        files[split] = text.split("\n")
    gone = lost(dataset, documents=True, metadata=True, unjudged=True, conversations=True)
    return Outgoing(files, {"splits": {dataset.split: split}}, [*gone, *lost_grades(dataset)])


def _document_lines(dataset: Dataset) -> Iterator[str]:
    for document in dataset.documents or ():
        others = dict(document.metadata)
        source = {"src": others.pop("src")} if "src" in others else {}
        title = {"title": document.title} if document.title else {}
        record = {"docid": document.id, **source, **title, "content": document.text}
        yield json_line(with_metadata(record, others), f"document {document.id}")


FORMAT = DataFormat(
    "scienceqa: eval.jsonl, documents.jsonl and ground_truth.json (or .jsonl)",
    ("queries",),
    open_source,
    find,
    write=write,
    unjudged=True,
)
