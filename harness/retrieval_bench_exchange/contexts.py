"""Runs in the files of Ragas: the contexts that a system retrieved for each question."""

from __future__ import annotations

from pathlib import Path

from retrieval_bench.core.types import Ranking
from retrieval_bench.data.faults import Faults, reporting
from retrieval_bench.data.files.lines import head, kind_of
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import Files
from retrieval_bench_exchange.questions.incoming import Usual, open_questions
from retrieval_bench_exchange.questions.question_tables import RAGAS

_RETRIEVED = Usual(
    RAGAS.question,
    (),
    ("retrieved_contexts", "contexts"),
    ("retrieved_context_ids",),
    source=RAGAS.source,
)
_SNIFFED = 1 << 16


def contexts_of(path: Path) -> tuple[dict[str, Ranking], dict[str, str]] | None:
    """The contexts of each question in their order, and the texts of those without an id of a
    document, by the ids that are made of them; None where the file is no such one.

    Raises:
        DataError: all that is wrong with the file.
    """
    return _read(path) if _holds_contexts(path) else None


def _holds_contexts(path: Path) -> bool:
    """Return whether a file is one of Ragas, with what a system retrieved for each question."""
    start = head(path, _SNIFFED)
    if kind_of(path) == ".parquet":
        return b"PAR1" in start[:4] and _named(path.read_bytes()[-_SNIFFED:])
    return _named(start)


def _named(content: bytes) -> bool:
    asked = any(f'{name}"'.encode() in content or name.encode() + b"," in content
                for name in RAGAS.question)  # fmt: skip
    return asked and (b"retrieved_context" in content or b'"contexts"' in content)


def _read(path: Path) -> tuple[dict[str, Ranking], dict[str, str]]:
    with reporting("the run", path) as faults:  # its warnings are about judgements
        source = open_questions(Files(None, None, path), Columns(), faults, _RETRIEVED)
    rankings: dict[str, list[str]] = {query.id: [] for _, query in source.queries.read(faults)}
    for _, (query_id, doc_id, _) in source.judgements.read(faults) if source.judgements else ():
        rankings[query_id].append(doc_id)
    documents = source.documents.read(Faults()) if source.documents else ()
    texts = {document.id: document.text for _, document in documents}
    return {query_id: Ranking(doc_ids) for query_id, doc_ids in rankings.items()}, texts
