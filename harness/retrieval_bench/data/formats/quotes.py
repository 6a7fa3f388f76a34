"""A table of questions, their answers and the passage that each is answered by.

CSV, TSV, JSON lines, a JSON list or parquet, with the columns ``question``, ``answer`` and
``quote`` (:mod:`.formats.questions` says what becomes of them); also ``id``, and ``doc_id`` for the
id of the document. All others become metadata of the query. A file is a split that
``dataset.yaml`` names, beside ``files: {documents: CORPUS}`` where there is a corpus.
"""

from __future__ import annotations

from functools import partial

from retrieval_bench.data.formats.questions import Usual, open_questions
from retrieval_bench.data.source import DataFormat

USUAL = Usual(("question",), ("answer",), ("quote",), ("doc_id",))

FORMAT = DataFormat(
    "quotes: a table of questions, answers and quoted sources that dataset.yaml names",
    ("judgements",),
    partial(open_questions, usual=USUAL),
    columns=("documents", "rows"),
)
