"""The command ``list``."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.options import command


@command()
def run_list(options: argparse.Namespace) -> int:
    """Show what there is."""
    from retrieval_bench.reports.tables.share import catalog

    entries = catalog.entries()
    show(options, entries, lambda: catalog.catalog_tables(entries))
    return OK
