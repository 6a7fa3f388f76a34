"""The command ``data schema``."""

from __future__ import annotations

import argparse
from typing import Any

from retrieval_bench.cli.console import OK, put, show
from retrieval_bench.cli.options import add_format


def add_schema(commands: Any, name: str, **texts: str) -> None:
    """Print the JSON Schema of a document that ``--format json`` prints."""
    schema = commands.add_parser(name, **texts)
    schema.add_argument(
        "document", nargs="?", metavar="NAME", help="of the document; without one, all are listed"
    )
    add_format(schema)
    schema.set_defaults(run=_schema)


def _schema(options: argparse.Namespace) -> int:
    import json

    from retrieval_bench.cli.documents import listing, schema_of
    from retrieval_bench.reports.tables.share.schema import schema_tables

    if options.document is not None:
        put(json.dumps(schema_of(options.document), ensure_ascii=False, indent=1) + "\n")
        return OK
    known = listing()
    show(options, known, lambda: schema_tables(known.documents))
    return OK
