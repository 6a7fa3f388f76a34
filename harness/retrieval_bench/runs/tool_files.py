"""Runs in the files of evaluation tools: predictions of mteb, retrieved contexts of Ragas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Documents, Ranking
from retrieval_bench.data.faults import Faults, Place, reporting, shown
from retrieval_bench.data.files.lines import head, json_file, kind_of
from retrieval_bench.data.formats.questions.incoming import Usual, open_questions
from retrieval_bench.data.formats.questions.question_tables import RAGAS
from retrieval_bench.data.passages import folded, holders
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import Files

MTEB_MARK = "mteb_model_meta"
"""The key that the predictions of mteb 2 begin with."""

_RETRIEVED = Usual(
    RAGAS.question,
    (),
    ("retrieved_contexts", "contexts"),
    ("retrieved_context_ids",),
    source=RAGAS.source,
)
_SNIFFED = 1 << 16
_MTEB = '{"mteb_model_meta": ..., SUBSET: {SPLIT: {query: {document: score}}}} with one split'


def mteb_queries(path: Path, faults: Faults) -> Iterator[tuple[Place, str, Any]]:
    """Places, query ids and what predictions of mteb have for them."""
    report = faults.of(path)
    whole = json_file(path, faults)
    subsets = {name: of for name, of in (whole or {}).items() if name != MTEB_MARK}
    splits = {
        f"{subset}/{split}": queries
        for subset, of in subsets.items()
        for split, queries in (of.items() if isinstance(of, dict) else [("", of)])
    }
    if len(splits) != 1 or not all(isinstance(split, dict) for split in splits.values()):
        if not report.count:
            fault = f"predictions of {', '.join(splits) or 'nothing'}"
            report.error(None, fault, _MTEB)
        return
    for name, queries in splits.items():
        for query_id, value in queries.items():
            yield f"{name}, query {shown(query_id)}", query_id, value


def holds_contexts(path: Path) -> bool:
    """Return whether a file is one of Ragas, with what a system retrieved for each question."""
    start = head(path, _SNIFFED)
    if kind_of(path) == ".parquet":
        return b"PAR1" in start[:4] and _named(path.read_bytes()[-_SNIFFED:])
    return _named(start)


def _named(content: bytes) -> bool:
    asked = any(f'{name}"'.encode() in content or name.encode() + b"," in content
                for name in RAGAS.question)  # fmt: skip
    return asked and (b"retrieved_context" in content or b'"contexts"' in content)


def context_rankings(path: Path) -> tuple[dict[str, Ranking], dict[str, str]]:
    """The contexts of each question in their order, and the texts of those without an id of a
    document, by the ids that are made of them.

    Raises:
        DataError: all that is wrong with the file.
    """
    with reporting("the run", path) as faults:  # its warnings are about judgements
        source = open_questions(Files(None, None, path), Columns(), faults, _RETRIEVED)
    rankings: dict[str, list[str]] = {query.id: [] for _, query in source.queries.read(faults)}
    for _, (query_id, doc_id, _) in source.judgements.read(faults) if source.judgements else ():
        rankings[query_id].append(doc_id)
    documents = source.documents.read(Faults()) if source.documents else ()
    texts = {document.id: document.text for _, document in documents}
    return {query_id: Ranking(doc_ids) for query_id, doc_ids in rankings.items()}, texts


def in_documents(
    rankings: Mapping[str, Ranking], texts: Mapping[str, str], documents: Documents
) -> tuple[dict[str, Ranking], int]:
    """Rankings in which each text stands for the document that contains it, the first of several,
    and the number of texts that none contains; of a document that comes again the first place
    counts."""
    known = {document.id for document in documents} & texts.keys()
    sought = {folded(text) for doc_id, text in texts.items() if doc_id not in known}
    containing = holders(documents, sought)
    ids = {
        doc_id: next(iter(containing[folded(text)]), "")
        for doc_id, text in texts.items()
        if doc_id not in known
    }
    mapped = {
        query_id: Ranking(
            list(dict.fromkeys(ids.get(doc_id) or doc_id for doc_id in ranking.doc_ids))
        )
        for query_id, ranking in rankings.items()
    }
    return mapped, sum(not doc_id for doc_id in ids.values())
