"""Test sets and evaluation datasets of Ragas: JSON lines, a JSON list, CSV or parquet.

The columns are those of ragas 0.4.3 (``dataset_schema.SingleTurnSample``): ``user_input`` is the
query (of a conversation the last turn of the user), ``reference`` the answer;
``reference_contexts`` and ``reference_context_ids`` are its sources (:mod:`.formats.questions` says
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
from functools import partial
from pathlib import Path
from typing import Any

from retrieval_bench.data.files import kind_of
from retrieval_bench.data.formats.questions import Usual, open_questions
from retrieval_bench.data.rows import first_keys
from retrieval_bench.data.source import DataFormat, Found, found_splits

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

FORMAT = DataFormat(
    "Ragas: files with user_input and reference_contexts, each a split of its name",
    ("judgements",),
    partial(open_questions, usual=USUAL),
    find,
    columns=("documents", "rows"),
)
