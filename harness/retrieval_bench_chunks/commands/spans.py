"""``explain --spans``: what becomes of each span when the chunker changes, and at what price."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.options import Added, refuse


def run_spans(options: argparse.Namespace) -> int:
    """Show fates of spans in saved runs."""
    from retrieval_bench.runs.dataset import dataset_of
    from retrieval_bench.runs.find import find_runs
    from retrieval_bench.runs.records import read_run
    from retrieval_bench_chunks.fates import fates_of
    from retrieval_bench_chunks.tables.fates import fates_tables

    refuse(
        options,
        "by metric query group sort texts",
        "with --spans",
        accepted="--dataset, --queries and --token-price",
        fix="leave it out",
    )
    runs = [read_run(folder) for name in options.runs for folder in find_runs(name)]
    fates = fates_of(runs, dataset_of(runs, options.dataset), options.token_price)
    shown = {"all": len(fates.spans)}.get(str(options.queries), options.queries)
    show(options, fates, lambda: fates_tables(fates, int(shown)))
    return OK


EXPLAIN = Added(
    """
--spans  with truth by spans: what becomes of each span in these runs, and what it costs in tokens
""",
    "spans",
    run_spans,
)
