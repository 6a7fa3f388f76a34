"""The command ``data encode``: vectors of a corpus from several processes or machines."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from retrieval_bench.cli.console import OK, show, working
from retrieval_bench.cli.options import add_dataset, add_format, add_language, add_retriever


def add_encode(commands: Any, name: str, **texts: str) -> None:
    """Blocks of vectors in files, and what every later run opens."""
    encode = commands.add_parser(name, **texts)
    add_retriever(encode)
    add_dataset(encode)
    add_language(encode)
    encode.add_argument(
        "--on",
        default="local:2",
        metavar="WHERE",
        help="local:N for N processes of this machine, or the scheduler of a Dask cluster, "
        "tcp://HOST:PORT (default: local:2)",
    )
    encode.add_argument(
        "--shard", metavar="I/N", help="make only this part, such as 3/16, and merge nothing"
    )
    encode.add_argument(
        "--merge",
        action="store_true",
        help="make nothing: put what all shards made where runs find it",
    )
    encode.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="of the blocks, which all workers see (default: one in the cache)",
    )
    encode.add_argument(
        "--exact",
        type=int,
        metavar="K",
        help="also write the K documents that are exactly nearest to each query",
    )
    add_format(encode)
    encode.set_defaults(run=_encode)


def _encode(options: argparse.Namespace) -> int:
    from retrieval_bench.reports.tables.share.encode import encode_tables
    from retrieval_bench.shards.encode import encode_corpus

    with working(options) as reporter:
        made = encode_corpus(
            options.retriever,
            options.dataset,
            split=options.split,
            language=options.language,
            overrides=options.set,
            shard=options.shard,
            merge=options.merge,
            on=options.on,
            out=options.out,
            exact=options.exact,
            reporter=reporter,
        )
    show(options, made, lambda: encode_tables(made))
    return OK
