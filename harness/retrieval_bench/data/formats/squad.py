"""SQuAD layout, versions 1 and 2: paragraphs become documents, questions become queries.

``{"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers",
"is_impossible"}]}]}]}``, one file for each split. A paragraph that stands in the file more than
once is one document; its id is made from its text, so that it is the same in every file and in any
order (its title is the first in the alphabet of those it has). Its questions are judged relevant,
grade 1, unless ``is_impossible`` is true. Answers and everything else that a question has become
metadata, with the title of the article and the id of the paragraph under ``document``.

The format is one JSON value: a walk over the documents parses the file and keeps nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Document, Query
from retrieval_bench.data.config import Columns
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files import head, json_file
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Judgement,
    Located,
    Source,
    file_stream,
    held_stream,
    objects,
    part,
    rest,
    take_id,
    take_text,
    take_title,
)

_SNIFFED = 1 << 16
_USED = frozenset(("id", "question"))


def find(folder: Path) -> Found | None:
    """Every JSON file that has paragraphs near its beginning is a split; None without any."""
    splits: dict[str, str | None] = {}
    for path in sorted(folder.iterdir()):
        name = path.name.removesuffix(".gz")
        is_json = name.endswith(".json") and path.is_file()
        if is_json and b'"paragraphs"' in head(path, _SNIFFED):
            splits.setdefault(name.removesuffix(".json"), path.name)
    return Found(splits=splits) if splits else None


def paragraph_id(context: str) -> str:
    """The document id of a paragraph: 16 hexadecimal digits of the hash of its text."""
    return blake2b(context.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """Questions and judgements are read and held, the documents are a stream."""
    path = part(files.judgements)
    report = faults.of(path)
    queries: list[tuple[Place, Query]] = []
    judgements: list[tuple[Place, Judgement]] = []
    for place, title, context, qas in paragraphs(path, faults):
        document = paragraph_id(context)
        for at, record in objects(qas, f"{place}.qas", report):
            query = _query(record, {"title": title, "document": document}, at, report)
            if query is not None:
                queries.append((at, query))
                if query.answerable:
                    judgements.append((at, Judgement(query.id, document, 1)))
    return Source(
        file_stream(path, _documents),
        held_stream(str(path), queries),
        held_stream(str(path), judgements),
    )


def _documents(path: Path, faults: Faults) -> Located[Document]:
    titles: dict[str, str] = {}
    texts = [(place, title, context) for place, title, context, _ in paragraphs(path, faults)]
    for _, title, context in texts:
        titles[context] = min(titles.get(context, title), title)
    for place, _, context in texts:
        title_once = titles.pop(context, None)
        if title_once is not None:
            yield place, Document(paragraph_id(context), context, title_once)


def _query(
    record: dict[str, Any], paragraph: dict[str, Any], place: Place, report: FileFaults
) -> Query | None:
    query_id = take_id(record, "id", place, report)
    text = take_text(record, "question", place, report)
    if query_id is None or text is None:
        return None
    return Query(query_id, text, metadata={**paragraph, **rest(record, _USED)})


def paragraphs(path: Path, faults: Faults) -> Iterator[tuple[str, str, str, Any]]:
    """Place, title, text and raw questions of each paragraph, in the order of the file."""
    report = faults.of(path)
    whole = json_file(path, faults)
    if not isinstance(whole, dict) or "data" not in whole:
        if not report.count:
            report.error(None, f"{shown(whole)}", 'the SQuAD layout: {"data": [...]}')
        return
    for at_article, article in objects(whole["data"], "data", report):
        title = take_title(article, "title", at_article, report)
        inner = objects(article.get("paragraphs"), f"{at_article}.paragraphs", report)
        for place, paragraph in inner:
            context = take_text(paragraph, "context", place, report)
            if context is not None:
                yield place, title or "", context, paragraph.get("qas")


FORMAT = DataFormat(
    "SQuAD: JSON files with paragraphs and their questions, each a split of its name",
    ("judgements",),
    open_source,
    find,
)
