"""What the files of a folder are called as, and lines of a ``dataset.yaml`` to paste."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from retrieval_bench.data.files.lines import kind_of
from retrieval_bench.data.formats.beir import RECORDS
from retrieval_bench.data.settings import CONFIG_NAME

PARTS: Mapping[str, str] = {
    "documents": "corpus|collection|document|passages|docs",
    "queries": "quer|question|topic",
}
"""How the files of a part are called."""
_JUDGEMENTS = "qrel|judge?ment|relevance"


def like_judgements(folder: Path) -> list[str]:
    """Paths in ``folder`` of what is called as if it held judgements: files, and what lies in
    folders of such a name; a folder that holds nothing ends in a slash."""
    like_judgements: list[str] = []
    for entry in sorted(folder.iterdir()):
        if not re.search(_JUDGEMENTS, entry.name, re.IGNORECASE):
            continue
        inner = sorted(entry.iterdir()) if entry.is_dir() else []
        like_judgements += [f"{entry.name}/{path.name}" for path in inner if path.is_file()] or [
            entry.name + "/" * entry.is_dir()
        ]
    return like_judgements


def unread_documents(folder: Path, format_name: str) -> str:
    """Warn of files that are called as documents are, in a folder that is read without any; empty
    where there are none."""
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() or kind_of(path) in (".tsv", *RECORDS, ".xml", ".trec")
    )
    if not (name := first_named(paths, PARTS["documents"])):
        return ""
    name = with_shards(name, paths)
    *_, line = pasted(format_name, {"documents": name}, "", "").splitlines()
    return f"{name} is not read: if it holds the documents, add `{line.strip()}` to {CONFIG_NAME}"


def with_shards(name: str, paths: list[Path]) -> str:
    """The pattern of all files that are called as ``name`` but for a number; ``name`` if alone."""
    for number in reversed(list(re.finditer(r"\d+", name))):
        start, end = name[: number.start()], name[number.end() :]
        shard = re.compile(f"{re.escape(start)}\\d+{re.escape(end)}")
        if sum(shard.fullmatch(path.name) is not None for path in paths) > 1:
            return f"{start}*{end}"
    return name


def pasted(kind: str, files: Mapping[str, str], split: str, judgements: str) -> str:
    """Lines of a ``dataset.yaml`` below a message."""
    lines = [f"format: {kind}"]
    if files:
        lines.append(
            f"files: {{{', '.join(f'{part}: {as_yaml(name)}' for part, name in files.items())}}}"
        )
    if judgements:
        lines.append(f"splits: {{{split}: {as_yaml(judgements)}}}")
    return "".join(f"\n      {line}" for line in lines)


def first_named(paths: list[Path], pattern: str) -> str:
    """The name of the first file that is called like this; empty without one."""
    return next((path.name for path in paths if re.search(pattern, path.name, re.IGNORECASE)), "")


def as_yaml(name: str) -> str:
    """``name`` as a value of YAML, in quotes where it would be read as something else."""
    return (
        name if re.fullmatch(r"[^\W\d][\w./@ -]*", name) else json.dumps(name, ensure_ascii=False)
    )
