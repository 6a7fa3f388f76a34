"""The layout of Chroma's evaluation of chunkers: ``corpora/NAME.md``, and ``questions.csv`` whose
``references`` are a JSON list of ``{content, start_index, end_index}``.

The split ``test`` is all corpora together; each corpus is a split of its own, by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from retrieval_bench.core.types import Query
from retrieval_bench.data.faults import Faults, Place, shown
from retrieval_bench.data.files.lines import existing
from retrieval_bench.data.files.rows import first_keys, table_rows
from retrieval_bench.data.files.shards import paths_of
from retrieval_bench.data.settings import Columns, SplitFiles
from retrieval_bench.data.source import DataFormat, Files, Found, Source, held_stream, part, whole
from retrieval_bench_chunks.formats.texts import text_documents
from retrieval_bench_chunks.spans import KEY

_COLUMNS = ["question", "references", "corpus_id"]
_ACCEPTED = "a JSON list of {content, start_index, end_index}"


def find(folder: Path) -> Found | None:
    """The files of the layout; None without them."""
    questions = existing(folder, "questions.csv", "questions_df.csv")
    corpora = sorted((folder / "corpora").glob("*.md"))
    if questions is None or not corpora or not set(_COLUMNS) <= set(first_keys(folder / questions)):
        return None
    splits: dict[str, SplitFiles | str] = {"test": SplitFiles(documents="corpora/*.md")}
    splits |= {path.stem: SplitFiles(documents=f"corpora/{path.name}") for path in corpora}
    return Found(None, questions, splits)


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """Questions are read and held, documents are a stream."""
    documents, path = part(files.documents), whole(files.queries)
    corpora = {file.stem for file in paths_of(documents)}
    queries = list(_queries(path, corpora, faults))
    return Source(
        text_documents(documents, lambda file: file.stem), held_stream(str(path), queries), None
    )


def _queries(path: Path, corpora: set[str], faults: Faults) -> Iterator[tuple[Place, Query]]:
    report = faults.of(path)
    for number, (place, row) in enumerate(table_rows(path, _COLUMNS, faults), start=1):
        corpus = row["corpus_id"]
        if corpus not in corpora:
            continue
        try:
            spans = [
                {
                    "document": corpus,
                    "start": reference["start_index"],
                    "end": reference["end_index"],
                    "quote": reference["content"],
                }
                for reference in json.loads(row["references"])
            ]
        except (ValueError, KeyError, TypeError):
            report.error(place, f"references is {shown(row['references'])}", _ACCEPTED)
            continue
        metadata = {KEY: spans, "tags": [corpus]}
        yield place, Query(f"{corpus}-{number}", row["question"], metadata=metadata)


FORMAT = DataFormat(
    "Chroma's chunking evaluation: corpora/NAME.md and questions.csv",
    ("documents", "queries"),
    open_source,
    find,
    read_only="its numbers of characters are in `spans`, too: data export --to spans",
    sharded=("documents",),
)
