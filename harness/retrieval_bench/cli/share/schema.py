"""The command ``data schema``."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, put, show
from retrieval_bench.cli.options import command

_SCHEMA = "document NAME ?  of the document; without one, all are listed"


@command(_SCHEMA)
def run_schema(options: argparse.Namespace) -> int:
    """Print the JSON Schema of a document that ``--format json`` prints."""
    import json

    from retrieval_bench.cli.documents import listing, schema_of
    from retrieval_bench.reports.tables.share.catalog import schema_tables

    if options.document is not None:
        put(json.dumps(schema_of(options.document), ensure_ascii=False, indent=1) + "\n")
        return OK
    known = listing()
    show(options, known, lambda: schema_tables(known.documents))
    return OK
