"""A Dask cluster of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from retrieval_bench_scale.cluster import dask


@contextmanager
def local_cluster(workers: int = 2) -> Iterator[Any]:
    """``workers`` processes of one thread each.

    The library limits the threads of its workers by variables of this process, which would still be
    set for whatever comes after it.
    """
    before = dict(os.environ)
    try:
        with dask().LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as made:
            yield made
    finally:
        os.environ.clear()
        os.environ.update(before)
