"""``python -m tests.benchmarks.sweep [N] [FOLDER]``: a sweep of HNSW and of IVF on N made-up
vectors in clusters (100,000), as asked and under filters. A study, no test: it takes minutes."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from retrieval_bench.approximate.sweep import sweep
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.reports.pictures.sweep import keep_sweep
from retrieval_bench.reports.render import terminal
from retrieval_bench.reports.tables.measure.sweep import sweep_tables
from tests.builders.clustered import clustered, dataset_of, without_model

QUERIES, DIMENSION = 500, 64
FILTERS = ("100", "50", "10", "1", "tenants")
INDEXES = (
    ({"type": "hnsw", "m": 16, "ef_construction": 100}, "ef_search", (10, 16, 32, 64, 128, 256)),
    ({"type": "ivf"}, "nprobe", (1, 2, 4, 8, 16, 32, 64)),
)


def main(n: int, folder: Path) -> None:
    """Print all tables, and keep the records with their pictures."""
    data = dataset_of(*clustered(n, QUERIES, dimension=DIMENSION))
    for index, parameter, values in INDEXES:
        begin = time.perf_counter()
        config = {"name": index["type"], "target": "dense"}
        found = sweep(
            config | {"params": {"index": index, "cache": False}},
            data,
            parameter,
            values,
            filters=FILTERS,
            protocol=Protocol(min_calls=2 * QUERIES, warm_up_s=2.0),
            out=folder / str(index["type"]),
        )
        keep_sweep(found)
        drawn = io.StringIO()
        terminal.to_console(sweep_tables(found, full=True), Console(file=drawn, width=140))
        sys.stdout.write(f"{drawn.getvalue()}\n{time.perf_counter() - begin:.0f} s in all\n\n")


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with pytest.MonkeyPatch.context() as patch:
        without_model(patch, DIMENSION)
        main(size, Path(sys.argv[2] if len(sys.argv) > 2 else "results/sweep-study"))
