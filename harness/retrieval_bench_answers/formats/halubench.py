"""HaluBench as its authors publish it: one row for each answer to a question about a passage.

JSON lines (``.jsonl``, ``.ndjson``, ``.json``, also packed) or parquet, with ``id``, ``passage``,
``question``, ``answer``, ``label`` (PASS or FAIL) and ``source_ds``; one file for each split. Rows
share passages and questions, a data set for retrieval must not:

* a passage is one document, whose id is made from its text; texts that differ only in their Unicode
  form (NFC) or in blanks at their ends are one passage;
* a question is one query for each source, however many rows ask it; the passages of all of these
  rows are relevant, grade 1, since nothing in the question tells them apart. Its id is the first in
  the alphabet of those of its rows; ``metadata.source`` and the tag are its source, and
  ``metadata.answers`` holds id, answer and label of each row.

A row without a passage keeps its question, which then may have no judgement. The set is licensed
CC BY-NC 2.0 and does not come with this project.

There is no way out: a row says of an answer whether it is faithful to a passage, and a dataset for
retrieval has no such judgements. A relevant document is none, and PASS would be a label that nobody
gave.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Document, Query
from retrieval_bench.data.faults import Faults, FileFaults, Place, shown
from retrieval_bench.data.files.lines import first_line, parse_json
from retrieval_bench.data.files.packed import unpacked_name
from retrieval_bench.data.files.rows import rows
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Judgement,
    Located,
    Source,
    file_stream,
    held_stream,
    take_id,
    take_text,
    whole,
)
from retrieval_bench_exchange.formats.squad import paragraph_id

COLUMNS = ("id", "passage", "question", "answer", "label", "source_ds")
LABELS = ("PASS", "FAIL")

_PARQUET = b"PAR1"
_FOOTER = 1 << 16
_ENDINGS = (".jsonl", ".ndjson", ".json", ".parquet")
_SHARD = re.compile(r"-00000-of-00001$")


@dataclass(slots=True)
class _Question:
    """The rows that ask one question of one source."""

    text: str
    source: str
    place: Place
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    judged: dict[str, Place] = field(default_factory=dict)


def find(folder: Path) -> Found | None:
    """Every file with the columns of HaluBench is a split, here or in ``data/``; None without
    any."""
    splits: dict[str, str | None] = {}
    inner = folder / "data"
    for path in sorted([*folder.iterdir(), *(inner.iterdir() if inner.is_dir() else ())]):
        name = unpacked_name(path.name)
        ending = next((end for end in _ENDINGS if name.endswith(end)), None)
        if ending is not None and path.is_file() and _has_columns(path):
            split = _SHARD.sub("", name.removesuffix(ending))
            splits.setdefault(split, str(path.relative_to(folder)))
    return Found(splits=splits) if splits else None


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """Questions and judgements are read and held, the passages are a stream.

    Raises:
        MissingDependencyError: a parquet file without the package pyarrow.
    """
    path = whole(files.judgements)
    questions = _questions(path, faults)
    queries: list[tuple[Place, Query]] = []
    judgements: list[tuple[Place, Judgement]] = []
    for question in questions:
        query_id = min(question.answers)
        metadata = {
            "source": question.source,
            "tags": [question.source],
            "answers": [question.answers[row_id] for row_id in sorted(question.answers)],
        }
        queries.append((question.place, Query(query_id, question.text, metadata=metadata)))
        judgements += (
            (place, Judgement(query_id, document, 1)) for document, place in question.judged.items()
        )
    return Source(
        file_stream(path, _documents),
        held_stream(str(path), queries),
        held_stream(str(path), judgements),
    )


def passage_id(passage: str) -> str:
    """The document id of a passage: 16 hexadecimal digits of the hash of its content."""
    return paragraph_id(_content(passage))


def _content(passage: str) -> str:
    return unicodedata.normalize("NFC", passage.strip())


def _documents(path: Path, faults: Faults) -> Located[Document]:
    """Each passage once; of texts with one content, the first in the alphabet."""
    texts: dict[str, str] = {}
    places: dict[str, Place] = {}
    for place, row in rows(path, COLUMNS, faults):
        passage = row.get("passage")
        if isinstance(passage, str) and passage.strip():
            key = passage_id(passage)
            texts[key] = min(texts.get(key, passage), passage)
            places.setdefault(key, place)
    for key, text in texts.items():
        yield places[key], Document(key, text)


def _questions(path: Path, faults: Faults) -> list[_Question]:
    report = faults.of(path)
    questions: dict[tuple[str, str], _Question] = {}
    seen: dict[str, tuple[Place, tuple[str, str]]] = {}
    passages: set[str] = set()
    n_rows = n_again = 0
    for place, row in rows(path, COLUMNS, faults):
        row_id = take_id(row, "id", place, report)
        text = take_text(row, "question", place, report)
        source = take_text(row, "source_ds", place, report)
        missing = [name for name in ("passage", "answer", "label") if name not in row]
        for name in missing:
            report.error(place, f"no {name!r}", ", ".join(COLUMNS))
        if row_id is None or text is None or source is None or missing:
            continue
        n_rows += 1
        key = (source, text)
        if row_id in seen:
            first, asked = seen[row_id]
            if asked != key:
                fault = f"id {shown(row_id)} again with another question, first at {first}"
                report.error(place, fault, "one id for each row")
                continue
            report.warn("ids given again with the same question", place, shown(row_id))
        seen.setdefault(row_id, (place, key))
        question = questions.setdefault(key, _Question(text, source, place))
        answer = {"id": row_id, "answer": row["answer"], "label": row["label"]}
        question.answers.setdefault(row_id, answer)
        document = _judged(row, row_id, place, report)
        if document is not None:
            passages.add(document)
            n_again += document in question.judged
            question.judged.setdefault(document, place)
        if row["label"] not in LABELS:
            report.warn("labels other than PASS and FAIL", place, shown(row["label"]))
    _note_merged(faults, n_rows, n_again, len(passages), list(questions.values()))
    return list(questions.values())


def _judged(row: dict[str, Any], row_id: str, place: Place, report: FileFaults) -> str | None:
    """The document that a row judges relevant, None where it has no passage."""
    passage = row["passage"]
    if passage is not None and not isinstance(passage, str):
        report.error(place, f"passage is {shown(passage)}", "text, or null")
        return None
    if passage is None or not passage.strip():
        report.warn("rows without a passage, which judge nothing", place, shown(row_id))
        return None
    return passage_id(passage)


def _note_merged(
    faults: Faults, rows: int, again: int, passages: int, questions: list[_Question]
) -> None:
    if rows == len(questions) == passages:
        return
    several = sum(len(question.judged) > 1 for question in questions)
    faults.note(
        f"{rows:,} rows give {passages:,} passages and {len(questions):,} questions; rows that "
        f"repeat a pair of both: {again:,}; questions asked of more than one passage, all of them "
        f"relevant: {several:,}"
    )


def _has_columns(path: Path) -> bool:
    """Return whether the first line, or the footer of a parquet file, names what no other layout
    has."""
    if path.name.endswith(".parquet"):
        try:
            with path.open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - _FOOTER))
                footer = file.read()
        except OSError:
            return False
        return footer.endswith(_PARQUET) and b"passage" in footer and b"question" in footer
    try:
        record = parse_json(first_line(path))
    except ValueError:
        return False
    return isinstance(record, dict) and {"passage", "question"} <= record.keys()


FORMAT = DataFormat(
    "HaluBench: JSON lines or parquet with passages and questions, each a split of its name",
    ("judgements",),
    open_source,
    find,
    read_only="its labels say whether an answer is faithful to a passage, which judgements of "
    "relevance do not tell",
)
