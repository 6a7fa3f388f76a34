"""Test sets and evaluation datasets of Ragas: JSON lines, a JSON list, CSV or parquet.

The columns are those of ragas 0.4.3 (``dataset_schema.SingleTurnSample``): ``user_input`` is the
query (of a conversation the last turn of the user), ``reference`` the answer;
``reference_contexts`` and ``reference_context_ids`` are its sources (:mod:`.incoming` says
what becomes of them). ``retrieved_contexts`` and ``response``, which a system gave, become
metadata as all others do. The head ``<1-hop>`` of a source is taken off. CSV holds lists as Python
prints them.

Names of versions before 0.2 are read, too: ``question``, and ``ground_truth`` or
``ground_truths``. Their ``contexts`` are sources in a generated test set, which has
``evolution_type``; elsewhere they are what a system retrieved, and sources only where
``columns: {rows: {sources: contexts}}`` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.faults import Faults, shown
from retrieval_bench.data.files.lines import kind_of
from retrieval_bench.data.files.literals import looks_listed
from retrieval_bench.data.files.rows import first_keys
from retrieval_bench.data.formats.outgoing import json_line
from retrieval_bench.data.formats.questions.incoming import Usual, open_questions
from retrieval_bench.data.formats.questions.written import (
    Answered,
    answered,
    lost_contexts,
    outgoing,
)
from retrieval_bench.data.source import DataFormat, Found, Outgoing, found_splits

_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv")
_SOURCES = ("reference_contexts", "reference_context_ids")
_HOP = re.compile(r"\A<[0-9]+-hop>\s*")


def find(folder: Path) -> Found | None:
    """Every file with ``user_input`` and reference contexts is a split of its name."""
    splits = found_splits(folder, _is_ragas)
    return Found(splits=splits) if splits else None


def _is_ragas(path: Path) -> bool:
    keys = first_keys(path) if kind_of(path) in _ENDINGS else ()
    return "user_input" in keys and any(name in keys for name in _SOURCES)


def _prepared(record: dict[str, Any]) -> dict[str, Any]:
    """Contexts of an old test set by the name of today."""
    if "evolution_type" not in record or "contexts" not in record:
        return record
    return {**record, "reference_contexts": record["contexts"]}


USUAL = Usual(
    ("user_input", "question"),
    ("reference", "ground_truth", "ground_truths"),
    ("reference_contexts",),
    ("reference_context_ids",),
    prepared=_prepared,
    source=lambda text: _HOP.sub("", text),
)


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:  # noqa: ARG001
    """A row for each query with a relevant document; the first of its answers is the reference. Its
    ``id`` is passed over by Ragas."""
    questions = answered(dataset, USUAL, faults, unanswerable=False)
    for question in questions:
        if question.answers and looks_listed(question.answers[0]):
            fault = f"answer {shown(question.answers[0])} would be read as a list"
            place = f"query {shown(question.query.id)}"
            faults.of("queries").error(place, fault, "a text that is no list; beir holds it")
    gone = []
    if several := sum(len(question.answers) > 1 for question in questions):
        gone.append(f"all answers but the first of {counted(several, 'query')}")
    return outgoing(dataset, questions, _row, gone=[*gone, *lost_contexts(questions)])


def _row(answered: Answered) -> Iterator[str]:
    row: dict[str, Any] = {"id": answered.query.id, "user_input": answered.query.text}
    if answered.answers:
        row["reference"] = answered.answers[0]
    if all(answered.texts):
        row["reference_contexts"] = list(answered.texts)
    row["reference_context_ids"] = list(answered.documents)
    yield json_line(row, f"query {answered.query.id}")


FORMAT = DataFormat(
    "Ragas: files with user_input and reference_contexts, each a split of its name",
    ("judgements",),
    partial(open_questions, usual=USUAL),
    find,
    columns=("documents", "rows"),
    sharded=("documents", "judgements"),
    write=write,
)
