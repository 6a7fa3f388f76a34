"""A folder whose layout is not known: what its files seem to be, as lines to paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.data.files.lines import first_line, kind_of
from retrieval_bench.data.files.mistaken import mistaken_file
from retrieval_bench.data.files.rows import first_keys
from retrieval_bench.data.formats.beir import RECORDS
from retrieval_bench.data.recognition import (
    PARTS,
    as_yaml,
    first_named,
    like_judgements,
    pasted,
    with_shards,
)
from retrieval_bench.data.settings import CONFIG_NAME

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


def suggestion(folder: Path) -> str:
    """Advise what to do with a folder whose files are called as parts of a dataset are, or have the
    columns of questions and what answers them; empty where neither is so."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    for path in paths:
        if other := mistaken_file(path):
            return f"{path.name} is {other.what}; have {other.accepted}"
    names = {part: first_named(paths, pattern) for part, pattern in PARTS.items()}
    judged = next((name for name in like_judgements(folder) if not name.endswith("/")), "")
    if not (names["queries"] and judged) and (lines := _of_rows(folder, paths, names["documents"])):
        return f"add a {CONFIG_NAME}:{lines}"
    if not names["queries"]:
        unread = first_named(paths, r"\.parquet$") if find_spec("pyarrow") is None else ""
        see = f"{how_to_add('parquet')}, or pip install pyarrow, to see the columns of {unread}"
        return (
            f"{see}; or add a {CONFIG_NAME} that names format, files and splits" if unread else ""
        )
    named = {part: name for part, name in names.items() if name}
    known = {"documents": _DOCUMENT, "queries": _QUERY, "judgements": _JUDGEMENT}
    of_parts = {**named, "judgements": judged} if judged else named
    columns = {
        part: _columns(folder / name, known[part]) for part, name in of_parts.items() if name
    }
    kind = _format(folder, names["documents"] or names["queries"])
    asked = folder / names["queries"]
    bare = kind_of(asked) not in RECORDS and first_line(asked).strip()[:1] not in "{["
    if kind == "plain" and not columns["queries"] and bare:
        kind = "trec"  # whose topics have no header, and whose documents may be records
    if kind == "trec":
        columns = {"documents": columns.get("documents", {})}
    globbed = {part: with_shards(name, paths) for part, name in named.items()}
    lines = pasted(kind, globbed, "test", judged)
    if kind != "marco":
        lines += _pasted_columns(
            {
                part: column
                for part, column in columns.items()
                if any(k != v for k, v in column.items())
            }
        )
    return f"add a {CONFIG_NAME}, with the names of the columns if they differ:{lines}"


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
        given = {"documents": with_shards(documents, paths)} if documents else {}
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
            f"  {part}: {{{', '.join(f'{use}: {as_yaml(name)}' for use, name in names.items())}}}"
        )
    return "".join(f"\n      {line}" for line in lines)


def _format(folder: Path, name: str) -> str:
    path = folder / name
    if kind_of(path) in RECORDS:
        return "plain"
    cells = first_line(path).split("\t")
    headed = {cell.strip().lower() for cell in cells} & {"id", "_id", "text", "title"}
    if kind_of(path) == ".tsv" and headed:
        return "plain"
    return "marco" if len(cells) > 1 else "trec"
