"""The commands ``data index`` and ``data cache``: what is built once, and how much that is."""

from __future__ import annotations

import argparse
from typing import Any

from retrieval_bench.cli.console import OK, show, working
from retrieval_bench.cli.options import add_dataset, add_format, add_language, add_retriever


def add_index(commands: Any, name: str, **texts: str) -> None:
    """An index that every later run opens in place of building it."""
    index = commands.add_parser(name, **texts)
    add_retriever(index)
    add_dataset(index)
    add_language(index)
    add_format(index)
    index.set_defaults(run=_index)


def add_cache(commands: Any, name: str, **texts: str) -> None:
    """Saved indexes and vectors: what there is, and what is no longer used."""
    cache = commands.add_parser(name, **texts)
    cache.add_argument(
        "--prune",
        type=float,
        metavar="DAYS",
        help="remove what was not used for so many days; 0 = all",
    )
    add_format(cache)
    cache.set_defaults(run=_cache)


def _index(options: argparse.Namespace) -> int:
    from retrieval_bench.experiment.index_once import keep_index
    from retrieval_bench.reports.tables.share.kept import index_tables

    with working(options) as reporter:
        made = keep_index(
            options.retriever,
            options.dataset,
            split=options.split,
            language=options.language,
            overrides=options.set,
            reporter=reporter,
        )
    show(options, made, lambda: index_tables(made))
    return OK


def _cache(options: argparse.Namespace) -> int:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.data.saved.folders import kept
    from retrieval_bench.reports.tables.share.kept import cache_tables

    if options.prune is not None and not options.prune >= 0:
        raise ConfigError(f"--prune {options.prune:g}", accepted="0 or more days")
    found = kept(options.prune)
    show(options, found, lambda: cache_tables(found))
    return OK
