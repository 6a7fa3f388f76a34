"""The command ``list``."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.options import command


@command("target TARGET ?  one of them, with its parameters; without one, all are listed")
def run_list(options: argparse.Namespace) -> int:
    """Show what there is."""
    from retrieval_bench.reports.tables.share import catalog
    from retrieval_bench.reports.tables.share.parameters import details, details_tables

    if options.target is not None:
        target = details(options.target)
        show(options, target, lambda: details_tables(target))
        return OK

    entries = catalog.entries()
    show(options, entries, lambda: catalog.catalog_tables(entries))
    return OK
