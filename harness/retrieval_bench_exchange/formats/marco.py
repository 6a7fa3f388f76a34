"""MS MARCO and LoTTE: tables without a header, separated by tabs.

Queries are ``id<TAB>text``; documents ``id<TAB>text``, or ``id<TAB>url<TAB>title<TAB>text`` as
MS MARCO has whole documents. Judgements are a file of :mod:`.data.qrels`, or LoTTE's
``qas.search.jsonl`` with ``qid`` and ``answer_pids``, each of grade 1.

There are no usual file names: ``dataset.yaml`` names the files and the splits. There is no way out:
such a table holds neither line breaks nor tabs.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from retrieval_bench.core.types import Document
from retrieval_bench.data import qrels
from retrieval_bench.data.faults import Faults, shown
from retrieval_bench.data.files.lines import first_line, json_lines, lines
from retrieval_bench.data.files.shards import Location, paths_of
from retrieval_bench.data.formats.trec import tab_topics
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Judgement,
    Located,
    Source,
    Stream,
    file_stream,
    part,
    take_id,
)

_PASSAGE, _DOCUMENT = 2, 4
_ACCEPTED = "id<TAB>text, or id<TAB>url<TAB>title<TAB>text, the same in every line"
_HEADERS = frozenset(
    ("id", "_id", "pid", "qid", "did", "docid", "doc_id", "query_id", "query-id", "passage_id")
)


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:
    """The three streams; only first lines are looked at."""
    queries = part(files.queries)
    for location in (files.documents, queries):
        for path in () if location is None else paths_of(location):
            _refuse_header(path, faults)
    titled = columns.documents.title is not None
    if columns.documents.model_fields_set - {"title"} or (
        "title" in columns.documents.model_fields_set and titled
    ):
        faults.of("columns.documents").error(
            None,
            "tables without a header have no names",
            "`title: null`, for texts without their titles",
        )
    return Source(
        file_stream(files.documents, partial(_documents, titled)) if files.documents else None,
        file_stream(queries, tab_topics),
        _judgements(files.judgements) if files.judgements else None,
    )


def _refuse_header(path: Path, faults: Faults) -> None:
    """Report a line that names columns, before it becomes a document or a query."""
    start = first_line(path)
    if start.split("\t")[0].strip().lower() in _HEADERS:
        faults.of(path).error(
            1,
            f"{shown(start)} is a header",
            "no header; `format: plain` reads tables that have one",
        )


def _documents(titled: bool, path: Path, faults: Faults) -> Located[Document]:
    report = faults.of(path)
    n_columns = 0
    for number, text in lines(path, faults):
        if not text.strip():
            continue
        cells = text.split("\t")
        n_columns = n_columns or len(cells)
        if len(cells) != n_columns or n_columns not in (_PASSAGE, _DOCUMENT):
            plural = "" if len(cells) == 1 else "s"
            report.error(number, f"{len(cells)} column{plural} in {shown(text)}", _ACCEPTED)
            continue
        doc_id = take_id({"id": cells[0].strip()}, "id", number, report)
        if doc_id is None:
            continue
        if n_columns == _PASSAGE:
            yield number, Document(doc_id, cells[1])
        else:
            _, url, title, body = cells
            yield number, Document(doc_id, body, title if titled else "", {"url": url})


def _judgements(location: Location) -> Stream[Judgement]:
    """Return the judgements of a file of LoTTE, whose lines are objects, or of one of TREC's or
    BEIR's."""
    if first_line(paths_of(location)[0]).lstrip().startswith("{"):
        return file_stream(location, _answers)
    return qrels.judgements(location)


def _answers(path: Path, faults: Faults) -> Located[Judgement]:
    report = faults.of(path)
    for number, record in json_lines(path, faults):
        query_id = take_id(record, "qid", number, report)
        answers = record.get("answer_pids")
        if not isinstance(answers, list):
            report.error(number, f"answer_pids is {shown(answers)}", "a list of document ids")
            continue
        for given in answers:
            doc_id = take_id({"answer_pids": given}, "answer_pids", number, report)
            if query_id is not None and doc_id is not None:
                yield number, Judgement(query_id, doc_id, 1)


FORMAT = DataFormat(
    "marco: tables of MS MARCO or LoTTE without a header, that dataset.yaml names",
    ("queries",),
    open_source,
    columns=("documents",),
    sharded=("documents", "queries", "judgements"),
    read_only="its tables hold neither line breaks nor tabs, and no title without a URL; trec and "
    "beir hold all of them",
)
