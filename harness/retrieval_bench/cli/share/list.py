"""The command ``list``."""

from __future__ import annotations

import argparse
from typing import Any

from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.options import add_format


def add_list(commands: Any, name: str, **texts: str) -> None:
    """Show what there is."""
    listing = commands.add_parser(name, **texts)
    add_format(listing)
    listing.set_defaults(run=_list)


def _list(options: argparse.Namespace) -> int:
    from retrieval_bench.reports.tables.share import catalog

    entries = catalog.entries()
    show(options, entries, lambda: catalog.catalog_tables(entries))
    return OK
