"""Exported datasets of LangSmith: JSON lines, a JSON list or CSV.

An example is ``{"id", "inputs": {...}, "outputs": {...}, "metadata": {...}}`` (langsmith 0.15.0,
``schemas.ExampleBase``). What is in ``inputs`` and ``outputs`` is the user's own: the question is
``inputs.question`` (or ``input``, ``query``, ``messages``), the answer ``outputs.answer`` (or
``output``), the sources are ``outputs.contexts`` (or ``documents``), unless ``columns: {rows:
...}`` names others. A dotted name leads into objects, also where a cell of a table holds one as
JSON. :mod:`.formats.questions` says what becomes of a row.
"""

from __future__ import annotations

from functools import partial

from retrieval_bench.data.formats.questions import Usual, open_questions
from retrieval_bench.data.source import DataFormat

USUAL = Usual(
    ("inputs.question", "inputs.input", "inputs.query", "inputs.messages"),
    ("outputs.answer", "outputs.output"),
    ("outputs.contexts", "outputs.documents"),
)

FORMAT = DataFormat(
    "LangSmith: an exported dataset that dataset.yaml names",
    ("judgements",),
    partial(open_questions, usual=USUAL),
    columns=("documents", "rows"),
)
