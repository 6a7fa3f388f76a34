"""A folder whose layout is not known: what its files seem to be, as lines to paste."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from retrieval_bench.data.files.lines import first_line, kind_of
from retrieval_bench.data.files.mistaken import mistaken_file
from retrieval_bench.data.formats.hub import RECORDS
from retrieval_bench.data.settings import CONFIG_NAME

_PARTS: Mapping[str, str] = {
    "documents": "corpus|collection|document|passages|docs",
    "queries": "quer|question|topic",
}
_JUDGEMENTS = "qrel|judge?ment|relevance"


def like_judgements(folder: Path) -> list[str]:
    """Paths in ``folder`` of what is called as if it held judgements: files, and what lies in
    folders of such a name; a folder that holds nothing ends in a slash."""
    found: list[str] = []
    for entry in sorted(folder.iterdir()):
        if not re.search(_JUDGEMENTS, entry.name, re.IGNORECASE):
            continue
        inner = sorted(entry.iterdir()) if entry.is_dir() else []
        found += [f"{entry.name}/{path.name}" for path in inner if path.is_file()] or [
            entry.name + "/" * entry.is_dir()
        ]
    return found


def suggestion(folder: Path) -> str:
    """What to do with a folder whose files are called as parts of a dataset are; empty where they
    are not."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    for path in paths:
        if other := mistaken_file(path):
            return f"{path.name} is {other.what}; have {other.accepted}"
    names = {part: _first_named(paths, pattern) for part, pattern in _PARTS.items()}
    judged = next((name for name in like_judgements(folder) if not name.endswith("/")), "")
    if not names["queries"]:
        return ""
    named = {part: name for part, name in names.items() if name}
    kind = _format(folder, names["documents"] or names["queries"])
    lines = pasted(kind, named, "test", judged)
    return f"add a {CONFIG_NAME}, with the names of the columns if they differ:{lines}"


def pasted(kind: str, files: Mapping[str, str], split: str, judgements: str) -> str:
    """Lines of a ``dataset.yaml`` below a message."""
    lines = [f"format: {kind}"]
    if files:
        lines.append(f"files: {{{', '.join(f'{part}: {name}' for part, name in files.items())}}}")
    if judgements:
        lines.append(f"splits: {{{split}: {judgements}}}")
    return "".join(f"\n      {line}" for line in lines)


def _first_named(paths: list[Path], pattern: str) -> str:
    return next((path.name for path in paths if re.search(pattern, path.name, re.IGNORECASE)), "")


def _format(folder: Path, name: str) -> str:
    path = folder / name
    if kind_of(path) in RECORDS:
        return "plain"
    cells = first_line(path).split("\t")
    headed = {cell.strip().lower() for cell in cells} & {"id", "_id", "text", "title"}
    if kind_of(path) == ".tsv" and headed:
        return "plain"
    return "marco" if len(cells) > 1 else "trec"
