"""Files, whatever folder they are in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def save(path: Path, content: str | bytes) -> Path:
    """Write ``content`` to ``path``, whose folder need not be there, and return ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def save_all(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write ``files`` by their paths below ``folder``, and return ``folder``."""
    for name, content in files.items():
        save(folder / name, content)
    return folder


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Each of ``rows`` as a line of JSON."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


Texts = Mapping[str, str] | Iterable[Mapping[str, Any]]
"""Texts by their ids, or whole rows."""


def beir(
    folder: Path,
    documents: Texts,
    queries: Texts,
    judged: Iterable[tuple[str, str, int]],
    config: str = "",
) -> Path:
    """Write a dataset in the layout of BEIR; ``judged`` are query, document and grade."""
    rows = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in judged)
    files = {
        "corpus.jsonl": json_lines(_rows(documents)),
        "queries.jsonl": json_lines(_rows(queries)),
        "qrels/test.tsv": f"query-id\tcorpus-id\tscore\n{rows}",
    }
    return save_all(folder, files | ({"dataset.yaml": config} if config else {}))


def _rows(texts: Texts) -> Iterable[Mapping[str, Any]]:
    if isinstance(texts, Mapping):
        return [{"_id": one, "text": text} for one, text in texts.items()]
    return texts
