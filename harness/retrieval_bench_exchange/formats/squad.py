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

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files.lines import head, json_file
from retrieval_bench.data.files.packed import unpacked_name
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Judgement,
    Located,
    Outgoing,
    Source,
    file_stream,
    found_splits,
    held_stream,
    objects,
    rest,
    take_id,
    take_text,
    take_title,
    whole,
)
from retrieval_bench_exchange.outgoing import json_line, lost, lost_grades, relevant, with_metadata

_SNIFFED = 1 << 16
_USED = frozenset(("id", "question"))
_HELD = ("answers", "answerable", "is_impossible")


def find(folder: Path) -> Found | None:
    """Every JSON file that has paragraphs near its beginning is a split; None without any."""
    return found_splits(folder, _has_paragraphs)


def _has_paragraphs(path: Path) -> bool:
    is_json = unpacked_name(path.name).endswith(".json")
    return is_json and b'"paragraphs"' in head(path, _SNIFFED)


def paragraph_id(context: str) -> str:
    """The document id of a paragraph: 16 hexadecimal digits of the hash of its text."""
    return blake2b(context.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """Questions and judgements are read and held, the documents are a stream."""
    path = whole(files.judgements)
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


@dataclass(slots=True)
class _Corpus:
    """Record of one walk over the documents.

    Attributes:
        texts: of the documents that questions may be about.
        first: id of the first document; empty without any.
        renamed: whether a document has an id that is not made from its text.
        again: documents whose text an earlier one has.
        keys: of their metadata.
    """

    texts: dict[str, str] = field(default_factory=dict)
    first: str = ""
    renamed: bool = False
    again: int = 0
    keys: set[str] = field(default_factory=set)


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """The documents in their order, of which those that follow one another with one title are an
    article. A question without an answer stands with the paragraph that its metadata name, else
    with one that is judged not relevant, else with the first."""
    judged = relevant(dataset, faults)
    _check(dataset, judged, faults)
    about = {query.id: _candidates(query, dataset) for query in dataset.queries}
    corpus = _walked(dataset, {document for of in about.values() for document in of})
    placed: defaultdict[str, list[Query]] = defaultdict(list)
    for query in dataset.queries:
        if query.id in judged or not query.answerable:
            known = (doc_id for doc_id in about[query.id] if doc_id in corpus.texts)
            placed[next(known, corpus.first)].append(query)
    for query_id, (document, *_) in judged.items():
        if document not in corpus.texts and dataset.documents is not None:
            fault = f"relevant document {shown(document)} is not in the corpus"
            _fault(faults, query_id, fault, "a document with a text")
    name = f"{dataset.split}.json"
    lines = _lines(dataset.documents or (), placed)
    described = {"splits": {dataset.split: name}}
    return Outgoing({name: lines}, described, [*_lost(dataset, corpus, placed)])


def _check(dataset: Dataset, judged: Mapping[str, Sequence[str]], faults: Faults) -> None:
    if dataset.documents is None:
        faults.of("documents").error(None, "no corpus", "texts, which are its paragraphs")
    if dataset.unit_key is not None:
        fault = f"judgements are on units, by {dataset.unit_key!r}"
        faults.of("documents").error(None, fault, "judgements on documents; beir holds units")
    for query_id, documents in judged.items():
        if len(documents) > 1:
            fault = f"it has {len(documents):,} relevant documents"
            _fault(faults, query_id, fault, "one paragraph for a question; beir holds more")


def _fault(faults: Faults, query_id: str, fault: str, accepted: str) -> None:
    faults.of("judgements").error(f"query {shown(query_id)}", fault, accepted)


def _candidates(query: Query, dataset: Dataset) -> list[str]:
    """Documents that a question may be about, the best first."""
    grades = dataset.qrels.get(query.id, {})
    named = query.metadata.get("document")
    best = [document for document, grade in grades.items() if grade >= 1]
    return [*best, *([named] if isinstance(named, str) else ()), *grades]


def _walked(dataset: Dataset, wanted: Collection[str]) -> _Corpus:
    corpus = _Corpus()
    seen: set[str] = set()
    for document in dataset.documents or ():
        key = paragraph_id(document.text)
        corpus.first = corpus.first or document.id
        corpus.renamed |= key != document.id
        corpus.again += key in seen
        corpus.keys |= document.metadata.keys()
        seen.add(key)
        if document.id in wanted or document.id == corpus.first:
            corpus.texts[document.id] = document.text
    return corpus


def _lost(
    dataset: Dataset, corpus: _Corpus, placed: Mapping[str, Sequence[Query]]
) -> Iterator[str]:
    """List the losses, a phrase each."""
    if corpus.renamed:
        yield "the ids of documents"
    if corpus.again:
        yield f"{counted(corpus.again, 'document')} with the text of another one"
    if corpus.keys:
        yield f"metadata of documents ({', '.join(sorted(corpus.keys)[:5])})"
    queries = [query for of in placed.values() for query in of]
    yield from lost(dataset, documents=True, metadata=True, only=queries)
    yield from lost_grades(dataset)
    answers = [
        _span(answer, corpus.texts.get(document, ""))
        for document, of in placed.items()
        for query in of
        for answer in _answers(query)
    ]
    if without := answers.count(None):
        yield f"{counted(without, 'answer')} that the paragraph does not contain"


def _lines(documents: Iterable[Document], placed: Mapping[str, Sequence[Query]]) -> Iterator[str]:
    """One JSON value, a paragraph a line, made while the corpus is walked."""
    yield '{"version": "v2.0", "data": ['
    between = ""
    for title, article in groupby(documents, key=lambda document: document.title):
        yield f'{between}{{"title": {json.dumps(title, ensure_ascii=False)}, "paragraphs": ['
        within = ""
        for document in article:
            qas = [_asked(query, document) for query in placed.get(document.id, ())]
            paragraph = {"context": document.text, "qas": qas}
            yield within + json_line(paragraph, f"paragraph {document.id}")
            within = ", "
        yield "]}"
        between = ", "
    yield "]}"


def _asked(query: Query, document: Document) -> dict[str, Any]:
    """A question of a paragraph."""
    spans = (_span(answer, document.text) for answer in _answers(query))
    asked = {
        "id": query.id,
        "question": query.text,
        "answers": [span for span in spans if span is not None],
        "is_impossible": not query.answerable,
    }
    others = {key: value for key, value in query.metadata.items() if key not in _HELD}
    if others.get("title") == document.title:
        del others["title"]
    if others.get("document") in (document.id, paragraph_id(document.text)):
        del others["document"]
    return with_metadata(asked, others)


def _answers(query: Query) -> list[Any]:
    given = query.metadata.get("answers", [])
    return given if isinstance(given, list) else [given]


def _span(answer: Any, text: str) -> dict[str, Any] | None:
    """An answer with the place where it stands in a text: the given one, else the first; None
    where it does not stand there."""
    given = answer if isinstance(answer, Mapping) else {"text": answer}
    words, start = given.get("text"), given.get("answer_start")
    if not isinstance(words, str) or not words:
        return None
    if not isinstance(start, int) or start < 0 or not text.startswith(words, start):
        start = text.find(words)
    return None if start < 0 else {**given, "text": words, "answer_start": start}


FORMAT = DataFormat(
    "SQuAD: JSON files with paragraphs and their questions, each a split of its name",
    ("judgements",),
    open_source,
    find,
    write=write,
)
