"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, each also packed; and
as a hub hands them out: JSON lines, CSV and parquet, in one file or several.

Documents and queries are those files, or the folders ``corpus/`` and ``queries/``; judgements are
files in ``qrels/``, a ``qrels.tsv`` beside the corpus, or the folders ``data/`` or ``default/`` of
a hub. ``test-00000-of-00002.parquet`` is one of the files of ``test``.

A document is ``{"_id", "title", "text", "metadata"}``, a query ``{"_id", "text", "metadata"}``;
title and metadata may be missing, and any other key becomes metadata. Title and text stay apart.
The queries of all splits share a file: the judgements say which of them belong to a split. Without
a folder ``qrels`` nothing is judged yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from retrieval_bench.data import parts as records
from retrieval_bench.data import qrels
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.files.lines import existing, first_line, kind_of
from retrieval_bench.data.files.packed import unpacked_name
from retrieval_bench.data.files.rows import first_keys
from retrieval_bench.data.files.shards import SHARD, Location, paths_of
from retrieval_bench.data.qrels import BEIR_HEADER
from retrieval_bench.data.settings import (
    Columns,
    DocumentColumns,
    JudgementColumns,
    Names,
    QueryColumns,
    SplitFiles,
)
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Judgement,
    Source,
    Stream,
    part,
)

RECORDS = (".jsonl", ".ndjson", ".json", ".csv", ".parquet")
"""Endings of judgements that are records, whose columns have the names of BEIR's header."""

_JUDGED = (".tsv", *RECORDS)
_LINES = (".jsonl", ".ndjson", ".parquet")
_QRELS = re.compile(r"\s*\S.*\s\S+\s+[-+]?\d+(\.0*)?\s*|" + "\t".join(BEIR_HEADER) + r"(\t.*)?")
_ONE_SPLIT = "test"


def find(folder: Path) -> Found | None:
    """The files of a BEIR folder, None when it is none."""
    documents, queries = (_texts(folder, name) for name in ("corpus", "queries"))
    splits = _judged(folder)
    if not queries and not (splits and (folder / "qrels").is_dir()):
        return None
    return Found(
        _shared(documents),
        _shared(queries) or "queries.jsonl",
        {
            split: SplitFiles(**_own(split, documents=documents, queries=queries), judgements=names)
            for split, names in splits.items()
        },
    )


def _texts(folder: Path, name: str) -> Mapping[str, tuple[str, ...]]:
    """Files of documents or queries by the split that their names say, all of it under ""."""
    single = existing(folder, f"{name}.jsonl")
    return {"": (single,)} if single else _grouped(folder, name, _LINES)


def _judged(folder: Path) -> Mapping[str, tuple[str, ...]]:
    if within := _grouped(folder, "qrels", _JUDGED):
        return within
    beside = existing(folder, *(f"qrels{ending}" for ending in _JUDGED))
    if beside:
        return {_ONE_SPLIT: (beside,)}
    for name in ("data", "default"):
        groups = _grouped(folder, name, RECORDS)
        firsts = (first_keys(folder / names[0]) for names in groups.values())
        if groups and all(map(set(BEIR_HEADER).issubset, firsts)):
            return groups
    return {}


def _grouped(folder: Path, name: str, endings: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Files in a folder within ``folder``, those of one split together."""
    inner = folder / name
    groups: dict[str, tuple[str, ...]] = {}
    files = [path for path in sorted(inner.iterdir()) if path.is_file()] if inner.is_dir() else []
    for ending in endings:  # what is there twice, in two forms, is read in the first
        taken = frozenset(groups)
        for path in files:
            stem = Path(unpacked_name(path.name)).stem
            split = SHARD.sub("", stem)
            again = split in taken or (split == stem and split in groups)
            if kind_of(path) == ending and not again:
                groups[split] = (*groups.get(split, ()), f"{name}/{path.name}")
    return groups


def _shared(groups: Mapping[str, tuple[str, ...]]) -> Names:
    """The files of all splits, where there are not some for each."""
    return next(iter(groups.values())) if len(groups) == 1 else None


def _own(split: str, **parts: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Documents and queries that only ``split`` has."""
    return {
        part: groups[split] for part, groups in parts.items() if len(groups) > 1 and split in groups
    }


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """The three streams; nothing is read yet."""
    queries, documents = part(files.queries), None
    if files.documents:
        named = columns.documents.model_dump(exclude_unset=True)
        keys = DocumentColumns(**{"id": _id_key(files.documents), **named})
        documents = records.documents(files.documents, keys)
    return Source(
        documents,
        records.queries(queries, QueryColumns(id=_id_key(queries))),
        judgement_stream(files.judgements, None) if files.judgements else None,
    )


def _id_key(location: Location) -> str:
    """``_id``; in parquet, which hubs make of many things, ``id`` where that is all there is."""
    first = paths_of(location)[0]
    keys = first_keys(first) if kind_of(first) == ".parquet" else ()
    return "id" if "id" in keys and "_id" not in keys else "_id"


def judgement_stream(location: Location, columns: JudgementColumns | None) -> Stream[Judgement]:
    """The judgements of records, or of a file of TREC's or BEIR's: where ``columns`` is None, which
    means BEIR's own, known by its ending, else by its first line, unless columns are named."""
    paths = paths_of(location)
    as_records = kind_of(paths[0]) in RECORDS or bool(columns and columns.model_fields_set)
    if columns is None:
        query, document, grade = BEIR_HEADER
        columns = JudgementColumns(query=query, document=document, grade=grade)
    elif not as_records:
        firsts = (first_line(path, comment=qrels.COMMENT) for path in paths)
        as_records = not _QRELS.fullmatch(next(filter(None, firsts), ""))
    return records.judgements(location, columns) if as_records else qrels.judgements(location)


FORMAT = DataFormat(
    "BEIR: queries.jsonl, qrels/SPLIT.tsv and, unless the retriever holds it, corpus.jsonl",
    ("queries",),
    open_source,
    find,
    columns=("documents",),
    sharded=("documents", "queries", "judgements"),
    unjudged=True,
)
