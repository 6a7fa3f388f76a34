"""The command ``list``."""

from __future__ import annotations

import argparse
from functools import partial

from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.options import command

_LIST = """
target NAME ?  retrievers, targets, datasets, readers, metrics or conventions; or the name of a
    retriever or target, with its parameters (default: names of all)
"""


@command(_LIST)
def run_list(options: argparse.Namespace) -> int:
    """Show what there is."""
    from retrieval_bench_catalog.tables import catalog
    from retrieval_bench_catalog.tables.parameters import details, details_tables

    if options.target is not None and options.target not in catalog.KINDS:
        target = details(options.target)
        show(options, target, lambda: details_tables(target))
        return OK

    entries = catalog.entries()
    if options.target is None:
        brief = partial(catalog.catalog_brief, entries)
        show(options, entries, partial(catalog.catalog_tables, entries), brief)
    else:
        kind = entries.of(options.target)
        show(options, kind, partial(catalog.catalog_tables, kind))
    return OK
