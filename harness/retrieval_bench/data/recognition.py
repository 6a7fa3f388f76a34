"""A folder whose layout is not known: what its files seem to be, as lines to paste."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.data.files.lines import first_line, kind_of
from retrieval_bench.data.files.mistaken import mistaken_file
from retrieval_bench.data.files.rows import first_keys
from retrieval_bench.data.formats.beir import RECORDS
from retrieval_bench.data.settings import CONFIG_NAME

_PARTS: Mapping[str, str] = {
    "documents": "corpus|collection|document|passages|docs",
    "queries": "quer|question|topic",
}
_ID = ("id", "_id")
_DOCUMENT: Mapping[str, Sequence[str]] = {
    "id": (*_ID, "doc_id", "docid", "docno", "document_id", "passage_id", "pid"),
    "text": ("text", "contents", "content", "body", "passage"),
    "title": ("title",),
}
_QUERY: Mapping[str, Sequence[str]] = {
    "id": (*_ID, "query_id", "qid", "question_id"),
    "text": ("text", "query", "question"),
}
_JUDGEMENT: Mapping[str, Sequence[str]] = {
    "query": ("query_id", "qid", "query-id", "question_id"),
    "document": ("doc_id", "docid", "docno", "corpus-id", "corpus_id", "document_id", "pid"),
    "grade": ("grade", "relevance", "score", "label", "rel"),
}
_ROW: Mapping[str, Sequence[str]] = {
    "id": (*_ID, "qid", "query_id", "question_id"),
    "question": ("question", "query", "user_input"),
    "answer": ("answer", "answers", "generation_gt", "reference", "ground_truth"),
    "sources": ("quote", "quotes", "reference_contexts", "context"),
    "documents": ("doc_id", "retrieval_gt", "doc_ids", "answer_pids", "relevant_docs"),
}
"""What a column is for -> the names that it has in tools of the field, first those of ours."""
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


def suggestion(folder: Path) -> str:
    """Advise what to do with a folder whose files are called as parts of a dataset are, or have the
    columns of questions and what answers them; empty where neither is so."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    for path in paths:
        if other := mistaken_file(path):
            return f"{path.name} is {other.what}; have {other.accepted}"
    names = {part: _first_named(paths, pattern) for part, pattern in _PARTS.items()}
    judged = next((name for name in like_judgements(folder) if not name.endswith("/")), "")
    if not (names["queries"] and judged) and (lines := _of_rows(folder, paths, names["documents"])):
        return f"add a {CONFIG_NAME}:{lines}"
    if not names["queries"]:
        unread = _first_named(paths, r"\.parquet$") if find_spec("pyarrow") is None else ""
        see = f"{how_to_add('parquet')}, or pip install pyarrow, to see the columns of {unread}"
        return (
            f"{see}; or add a {CONFIG_NAME} that names format, files and splits" if unread else ""
        )
    named = {part: name for part, name in names.items() if name}
    kind = _format(folder, names["documents"] or names["queries"])
    globbed = {part: _with_shards(name, paths) for part, name in named.items()}
    lines = pasted(kind, globbed, "test", judged)
    known = {"documents": _DOCUMENT, "queries": _QUERY, "judgements": _JUDGEMENT}
    of_parts = {**named, "judgements": judged} if judged else named
    columns = {
        part: _columns(folder / name, known[part]) for part, name in of_parts.items() if name
    }
    if kind == "plain":
        lines += _pasted_columns(
            {
                part: column
                for part, column in columns.items()
                if any(k != v for k, v in column.items())
            }
        )
    return f"add a {CONFIG_NAME}, with the names of the columns if they differ:{lines}"


def unread_documents(folder: Path, format_name: str) -> str:
    """Warn of files that are called as documents are, in a folder that is read without any; empty
    where there are none."""
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() or kind_of(path) in (".tsv", *RECORDS, ".xml", ".trec")
    )
    if not (name := _first_named(paths, _PARTS["documents"])):
        return ""
    name = _with_shards(name, paths)
    *_, line = pasted(format_name, {"documents": name}, "", "").splitlines()
    return f"{name} is not read: if it holds the documents, add `{line.strip()}` to {CONFIG_NAME}"


def _with_shards(name: str, paths: list[Path]) -> str:
    """The pattern of all files that are called as ``name`` but for a number; ``name`` if alone."""
    for number in reversed(list(re.finditer(r"\d+", name))):
        start, end = name[: number.start()], name[number.end() :]
        shard = re.compile(f"{re.escape(start)}\\d+{re.escape(end)}")
        if sum(shard.fullmatch(path.name) is not None for path in paths) > 1:
            return f"{start}*{end}"
    return name


def _of_rows(folder: Path, paths: list[Path], documents: str) -> str:
    """The lines for the first file of questions with what answers them; empty without one."""
    for path in paths:
        if path.name == documents:
            continue
        rows = _columns(path, _ROW)
        if "question" not in rows or not (rows.keys() & {"sources", "documents"}):
            continue
        corpus = _columns(folder / documents, _DOCUMENT) if documents else {}
        if "documents" in rows and not {"id", "text"} <= corpus.keys():
            continue  # nobody could say what its ids are of
        given = {"documents": _with_shards(documents, paths)} if documents else {}
        lines = pasted("quotes", given, "test", path.name)
        own = {
            part: columns_ for part, columns_ in (("documents", corpus), ("rows", rows)) if columns_
        }
        return lines + _pasted_columns(own)
    return ""


def _columns(path: Path, known: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Find the columns of a file: use -> its name in the file, of those that are there."""
    if kind_of(path) not in (".tsv", *RECORDS):
        return {}
    try:
        keys = first_keys(path)
    except MissingDependencyError:
        return {}
    columns = {
        use: next((name for name in names if name in keys), "") for use, names in known.items()
    }
    return {use: name for use, name in columns.items() if name}


def _pasted_columns(columns: Mapping[str, Mapping[str, str]]) -> str:
    if not columns:
        return ""
    lines = ["columns:"]
    for part, names in columns.items():
        lines.append(
            f"  {part}: {{{', '.join(f'{use}: {_yaml(name)}' for use, name in names.items())}}}"
        )
    return "".join(f"\n      {line}" for line in lines)


def pasted(kind: str, files: Mapping[str, str], split: str, judgements: str) -> str:
    """Lines of a ``dataset.yaml`` below a message."""
    lines = [f"format: {kind}"]
    if files:
        lines.append(
            f"files: {{{', '.join(f'{part}: {_yaml(name)}' for part, name in files.items())}}}"
        )
    if judgements:
        lines.append(f"splits: {{{split}: {_yaml(judgements)}}}")
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


def _yaml(name: str) -> str:
    """``name`` as a value of YAML, in quotes where it would be read as something else."""
    return (
        name if re.fullmatch(r"[^\W\d][\w./@ -]*", name) else json.dumps(name, ensure_ascii=False)
    )
