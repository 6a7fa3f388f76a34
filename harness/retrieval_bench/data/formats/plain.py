"""Plain files with named columns: JSON lines, CSV or TSV, each part in a file of its own;
judgements may be TREC's or BEIR's.

There are no usual file names: ``dataset.yaml`` names the files, the splits and the columns.
"""

from __future__ import annotations

from retrieval_bench.data import parts as records
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.formats.beir import judgement_stream
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import DataFormat, Files, Source, part


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:  # noqa: ARG001
    """The three streams; no more is read yet than the first line of the judgements."""
    return Source(
        records.documents(files.documents, columns.documents) if files.documents else None,
        records.queries(part(files.queries), columns.queries),
        judgement_stream(files.judgements, columns.judgements) if files.judgements else None,
    )


FORMAT = DataFormat(
    "plain: JSONL, CSV or TSV files that dataset.yaml names",
    ("queries",),
    open_source,
    columns=("documents", "queries", "judgements"),
    sharded=("documents", "queries", "judgements"),
    unjudged=True,
)
