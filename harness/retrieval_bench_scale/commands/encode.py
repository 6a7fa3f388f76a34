"""The command ``data encode``: vectors of a corpus from several processes or machines."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, show, working
from retrieval_bench.cli.options import LANGUAGE, RETRIEVER, bench_of, command, dataset, values

_ENCODE = f"""
{RETRIEVER}
{dataset()}
{LANGUAGE}
--on WHERE [local:2]  local:N for N processes of this machine, or the scheduler of a Dask cluster,
    tcp://HOST:PORT (default: local:2)
--shard I/N  make only this part, such as 3/16, and merge nothing
--merge  only merge the finished shards into the cache
--out FOLDER  of the blocks, which all workers see (default: one in the cache)
--exact K  also write the K documents that are exactly nearest to each query
"""


@command(_ENCODE)
def run_encode(options: argparse.Namespace) -> int:
    """Write vectors in blocks of files, and what every later run opens."""
    from retrieval_bench_scale.shards.encode import encode_corpus
    from retrieval_bench_scale.tables.encode import encode_tables

    with working(options) as reporter:
        made = encode_corpus(
            options.retriever,
            options.dataset,
            **values(options, "split language shard merge on out exact"),
            overrides=options.set,
            reporter=reporter,
        )
    show(options, made, lambda: encode_tables(made, bench_of(options)))
    return OK
