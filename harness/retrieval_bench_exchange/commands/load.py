"""The command ``load``: the documents of a dataset into a store that a retriever searches."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, show, working
from retrieval_bench.cli.options import LANGUAGE, SPLIT, command, values

_LOAD = f"""
dataset, --dataset NAME_OR_PATH [needed]  name or folder of a dataset
--into ADDRESS [required]  of the store, such as postgresql://me@host/db; '${{DSN}}' keeps a
    password out of the history of the shell
--table TABLE [documents]  made here, or gone on with (default: documents)
--encoder MODEL  adds vectors of this model
--index {{exact,hnsw}} [exact]  of the vectors
{SPLIT}
{LANGUAGE}
"""


@command(_LOAD)
def run_load(options: argparse.Namespace) -> int:
    """Fill a table of a production server in batches."""
    from retrieval_bench.core.errors import MissingDependencyError
    from retrieval_bench.core.installed.installation import typed
    from retrieval_bench.core.progress import Phase, Step
    from retrieval_bench.core.secrets import expand
    from retrieval_bench.data import load_dataset
    from retrieval_bench.data.stores import searched_by
    from retrieval_bench.experiment.layers import completed, of_store
    from retrieval_bench_exchange.stores import LoadedDataset, load_documents
    from retrieval_bench_exchange.tables.stores import load_tables

    with working(options) as reporter:
        data = load_dataset(options.dataset, options.split, language=options.language)
        with reporter.phase(Phase(Step.LOADING, data.name)) as task:
            try:
                loaded = load_documents(
                    data, options.into, **values(options, "table encoder index"), progress=task
                )
            except MissingDependencyError as problem:
                store = searched_by(str(expand(options.into, "--into")))
                raise completed(problem, [of_store(store, options.encoder)]) from None
    retriever, params = loaded.searched(options.into)
    opening = typed("bench", retriever, **values(options, "dataset split language"), set=params)
    show(options, LoadedDataset(data.name, loaded), lambda: load_tables(loaded, data, opening))
    return OK
