"""Suggested lines that would read the hits of an answer, where nothing says how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLACES = ["uri", "url", "path", "file", "source"]
_IDS = ["id", "_id", "doc_id", "docid", "document_id", *_PLACES, "key"]
_SCORES = ["score", "_score", "similarity", "relevance", "rank_score"]
_TEXTS = ["text", "content", "snippet", "body", "chunk", "passage", "description"]
_SOURCES = ["source", "file", "path", "url", "uri"]
_NAMES = {"id": _IDS, "score": _SCORES, "text": _TEXTS, "source": _SOURCES}


def suggested_hits(answer: Any) -> str | None:
    """Lines to try for an answer with a list of hits, each with something like an id; None where
    there is no such list."""
    for place, hits in _lists(answer, ""):
        named = {param: _first(names, hits[0]) for param, names in _NAMES.items()}
        if named["id"] is not None:
            said = ", ".join(f"{param}: {key}" for param, key in named.items() if key is not None)
            return f"for example hits: {place}, {said}"
    return None


def _lists(node: Any, place: str, depth: int = 0) -> Iterator[tuple[str, Sequence[Any]]]:
    """Lists of mappings, and the expression of each."""
    if isinstance(node, list) and node and all(isinstance(item, Mapping) for item in node):
        yield place or "'@'", node
    elif isinstance(node, Mapping) and depth < 4:
        for key, value in node.items():
            yield from _lists(value, f"{place}.{key}" if place else str(key), depth + 1)


def _first(names: Sequence[str], hit: Mapping[str, Any]) -> str | None:
    return next((name for name in names if isinstance(hit.get(name), str | int | float)), None)
