"""The commands ``data index`` and ``data cache``: what is built once, and how much that is."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, show, working
from retrieval_bench.cli.options import LANGUAGE, RETRIEVER, bench_of, command, dataset


@command(f"{RETRIEVER}{dataset()}{LANGUAGE}")
def run_index(options: argparse.Namespace) -> int:
    """Build an index that every later run opens."""
    from retrieval_bench_scale.index_once import keep_index
    from retrieval_bench_scale.tables.kept import index_tables

    with working(options) as reporter:
        made = keep_index(
            options.retriever,
            options.dataset,
            split=options.split,
            language=options.language,
            overrides=options.set,
            reporter=reporter,
        )
    show(options, made, lambda: index_tables(made, bench_of(options)))
    return OK


_PRUNE = "--prune DAYS  remove what was not used for so many days; 0 = all"


@command(_PRUNE)
def run_cache(options: argparse.Namespace) -> int:
    """Show saved indexes and vectors: what there is, and what is no longer used."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_scale.folders import kept
    from retrieval_bench_scale.tables.kept import cache_tables

    if options.prune is not None and not options.prune >= 0:
        raise ConfigError(f"--prune {options.prune:g}", accepted="0 or more days")
    found = kept(options.prune)
    show(options, found, lambda: cache_tables(found))
    return OK
