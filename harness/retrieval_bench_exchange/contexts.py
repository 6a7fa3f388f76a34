"""Runs in the files of Ragas: the contexts that a system retrieved for each question."""

from __future__ import annotations

from pathlib import Path

from retrieval_bench.core.types import Ranking
from retrieval_bench.data.faults import Faults, reporting
from retrieval_bench.data.files.lines import head, kind_of
from retrieval_bench.data.files.rows import first_keys
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import Files
from retrieval_bench_exchange.questions.incoming import Usual, open_questions
from retrieval_bench_exchange.questions.question_tables import RAGAS

_TEXTS, _IDS = ("retrieved_contexts", "contexts"), ("retrieved_context_ids",)
_SNIFFED = 1 << 16
_RETRIEVED = Usual(RAGAS.question, (), _TEXTS, _IDS, source=RAGAS.source)


def contexts_of(path: Path) -> tuple[dict[str, Ranking], dict[str, str]] | None:
    """The contexts of each question in their order, and the texts of those without an id of a
    document, by the ids that are made of them; None where the file is no such one.

    Raises:
        DataError: all that is wrong with the file.
    """
    if not _holds_contexts(path):
        return None
    with reporting("the run", path) as faults:  # its warnings are about judgements
        source = open_questions(Files(None, None, path), Columns(), faults, _RETRIEVED)
    rankings: dict[str, list[str]] = {query.id: [] for _, query in source.queries.read(faults)}
    for _, (query_id, doc_id, _) in source.judgements.read(faults) if source.judgements else ():
        rankings[query_id].append(doc_id)
    documents = source.documents.read(Faults()) if source.documents else ()
    texts = {document.id: document.text for _, document in documents}
    return {query_id: Ranking(doc_ids) for query_id, doc_ids in rankings.items()}, texts


def _holds_contexts(path: Path) -> bool:
    """Return whether a file is one of Ragas, with what a system retrieved for each question."""
    names = (*_TEXTS, *_IDS)
    if kind_of(path) != ".parquet" and not any(n.encode() in head(path, _SNIFFED) for n in names):
        return False  # a large file of something else is not read
    keys = set(first_keys(path))
    return not keys.isdisjoint(RAGAS.question) and not keys.isdisjoint(names)
