"""A search program that finds documents by the words they share with a query, on its own pipes:
``python word_program.py`` is handed its documents, ``--holds`` has those of the conformance suite.
``put`` and ``drop`` write to it. It applies filters by the harness's own reading of them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def command(*words: str) -> list[str]:
    """How it is started."""
    return [sys.executable, "-P", str(Path(__file__)), *words]


def main() -> None:
    """Answer each line of stdin."""
    sys.path[:0] = [str(ROOT), str(ROOT / "harness")]
    from retrieval_bench.core.filters import parse_filter

    documents: dict[str, tuple[frozenset[str], dict[str, Any]]] = {}

    def add(row: dict[str, Any]) -> None:
        held = _words(f"{row['title']} {row['text']}")
        documents[row["id"]] = held, row.get("metadata", {})

    if "--holds" in sys.argv:
        from retrieval_bench.testing import sample_documents

        for one in sample_documents():
            add({"id": one.id, "title": one.title, "text": one.text, "metadata": one.metadata})
    for line in sys.stdin:
        row = json.loads(line)
        if "documents" in row:
            _say({"documents": len(documents)})
        elif "put" in row:
            add({"id": row["put"], "title": "", "text": row["text"]})
            _say({})
        elif "drop" in row:
            _say({} if documents.pop(row["drop"], None) else {"missing": row["drop"]})
        elif "k" not in row:
            add(row)
        else:
            asked, only = _words(row["text"]), row.get("filter")
            fits = parse_filter(only).matches if only is not None else None
            found: list[dict[str, Any]] = [
                {"id": one, "score": len(asked & held)}
                for one, (held, metadata) in documents.items()
                if asked & held and (fits is None or fits(metadata))
            ]
            found.sort(key=lambda hit: (-len(asked & documents[hit["id"]][0]), hit["id"]))
            _say({"id": row["id"], "hits": found[: row["k"]]})


def _say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


if __name__ == "__main__":
    main()
