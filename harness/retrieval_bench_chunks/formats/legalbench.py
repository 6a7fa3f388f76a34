"""The layout of LegalBench-RAG: ``corpus/**/*.txt``, and a split for each ``benchmarks/NAME.json``,
``{"tests": [{"query", "snippets": [{"file_path", "span": [start, end], "answer"}]}]}``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Query
from retrieval_bench.data.faults import Faults, Place, shown
from retrieval_bench.data.files.lines import json_file
from retrieval_bench.data.settings import Columns, SplitFiles
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Source,
    held_stream,
    objects,
    part,
    take_text,
    whole,
)
from retrieval_bench_chunks.formats.texts import text_documents
from retrieval_bench_chunks.spans import KEY

_ACCEPTED = "{file_path, span: [start, end], answer}"


def find(folder: Path) -> Found | None:
    """The files of the layout; None without them."""
    benchmarks = sorted((folder / "benchmarks").glob("*.json"))
    if not benchmarks or not (folder / "corpus").is_dir():
        return None
    splits = {file.stem: SplitFiles(queries=f"benchmarks/{file.name}") for file in benchmarks}
    return Found("corpus/**/*.txt", None, splits)


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """Questions are read and held, documents are a stream; their ids are paths in ``corpus``."""
    path = whole(files.queries)
    corpus = path.parent.parent / "corpus"
    documents = text_documents(
        part(files.documents), lambda file: file.relative_to(corpus).as_posix()
    )
    return Source(documents, held_stream(str(path), list(_queries(path, faults))), None)


def _queries(path: Path, faults: Faults) -> Iterator[tuple[Place, Query]]:
    report, held = faults.of(path), json_file(path, faults)
    tests = held.get("tests") if isinstance(held, dict) else held
    for number, (place, test) in enumerate(objects(tests, "tests", report), start=1):
        text = take_text(test, "query", place, report)
        snippets = list(objects(test.get("snippets"), f"{place}.snippets", report))
        spans: list[dict[str, Any]] = []
        for at, snippet in snippets:
            match snippet:
                case {"file_path": str(name), "span": [int(start), int(end)]}:
                    quote = snippet.get("answer")
                    spans.append({"document": name, "start": start, "end": end, "quote": quote})
                case _:
                    report.error(at, shown(snippet), _ACCEPTED)
        if text is not None:
            metadata = {KEY: spans, "tags": test.get("tags", ())}
            yield place, Query(f"{path.stem}-{number}", text, metadata=metadata)


FORMAT = DataFormat(
    "LegalBench-RAG: corpus/**/*.txt and benchmarks/SPLIT.json",
    ("documents", "queries"),
    open_source,
    find,
    read_only="its spans can be written as those of `data export --to spans`",
    sharded=("documents",),
)
