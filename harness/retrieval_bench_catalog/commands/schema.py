"""The command ``data schema``."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, put, show
from retrieval_bench.cli.options import command

_SCHEMA = "document NAME ?  of a document, or of a file that you write; without one, all are listed"


@command(_SCHEMA)
def run_schema(options: argparse.Namespace) -> int:
    """Print the JSON Schema of a document that ``--format json`` prints."""
    import json

    from retrieval_bench_catalog.documents import listing, schema_of
    from retrieval_bench_catalog.tables.catalog import schema_tables

    if options.document is not None:
        schema = schema_of(options.document)
        if not options.full and schema.pop("$defs", None):
            schema["$comment"] = "its $defs, the records it holds: --full"
        put(json.dumps(schema, ensure_ascii=False, indent=1) + "\n")
        return OK
    known = listing()
    show(options, known, lambda: schema_tables(known.documents, known.files))
    return OK
