"""The command ``load``: the documents of a dataset into a store that a retriever searches."""

from __future__ import annotations

import argparse
from typing import Any

from retrieval_bench.cli.console import OK, show, working
from retrieval_bench.cli.options import add_format, add_language, add_named


def add_load(commands: Any, name: str, **texts: str) -> None:
    """A table of a production server, filled in batches."""
    load = commands.add_parser(name, **texts)
    add_named(load, "dataset", "NAME_OR_PATH", "name or folder of a dataset")
    load.add_argument(
        "--into",
        required=True,
        metavar="ADDRESS",
        help="of the store, such as postgresql://me@host/db; '${DSN}' keeps a password out of the "
        "history of the shell",
    )
    load.add_argument(
        "--table", default="documents", help="made here, or gone on with (default: documents)"
    )
    load.add_argument("--encoder", metavar="MODEL", help="adds vectors of this model")
    load.add_argument("--index", choices=("exact", "hnsw"), default="exact", help="of the vectors")
    load.add_argument("--split", default="test", help="split of the judgements (default: test)")
    add_language(load)
    add_format(load)
    load.set_defaults(run=_load)


def _load(options: argparse.Namespace) -> int:
    from retrieval_bench.core.progress import Phase, Step
    from retrieval_bench.data import load_dataset
    from retrieval_bench.data.stores import LoadedDataset, load_documents
    from retrieval_bench.reports.tables.share.load import load_tables

    with working(options) as reporter:
        data = load_dataset(options.dataset, options.split, language=options.language)
        with reporter.phase(Phase(Step.LOADING, data.name)) as task:
            loaded = load_documents(
                data,
                options.into,
                table=options.table,
                encoder=options.encoder,
                index=options.index,
                progress=task,
            )
    show(options, LoadedDataset(data.name, loaded), lambda: load_tables(loaded, data.name))
    return OK
