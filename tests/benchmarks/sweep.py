"""``python -m tests.benchmarks.sweep [N] [FOLDER] [NAME...]``: sweeps of our HNSW and IVF and of
engines on N made-up vectors in clusters (100,000), as asked and under filters. A study, no test:
each takes some minutes. ``... sweep N exact``: an exhaustive search as every value and as the row
that these are held against: the ratios have to be 1.0 (F5)."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.reports.render import terminal
from retrieval_bench_retrievers.dense.dense import Dense
from retrieval_bench_scale.approximate.sweep import sweep
from retrieval_bench_scale.pictures.sweep import keep_sweep
from retrieval_bench_scale.tables.sweep import sweep_tables
from tests.builders.clustered import clustered, dataset_of, without_model

QUERIES, DIMENSION = 500, 64
FEWER = {"seekdb": 100}
"""Queries of an engine whose filtered searches take so long that all would take an hour."""
FILTERS = ("100", "50", "10", "1", "tenants")
GRAPH = {"m": 16, "ef_construction": 100}
EF = (16, 32, 64, 128, 256)
OWN = {"cache": False}
SWEPT: Mapping[str, tuple[Mapping[str, Any], str, Sequence[float]]] = {
    "hnsw": (
        {"target": "dense", "params": {"index": {"type": "hnsw", **GRAPH}, **OWN}},
        "ef_search",
        EF,
    ),
    "ivf": (
        {"target": "dense", "params": {"index": "ivf", **OWN}},
        "nprobe",
        (1, 2, 4, 8, 16, 32, 64),
    ),
    **{
        name: ({"target": name, "params": {"load": {**GRAPH, **OWN}}}, "ef", EF)
        for name in ("qdrant", "postgres", "lancedb", "seekdb")
    },
}


def exact_against_exact(n: int) -> None:
    """Print how many times as long the exhaustive row takes as each value that is one, too."""
    documents, queries = clustered(n, QUERIES, dimension=DIMENSION)
    config = {"name": "flat", "target": f"{__name__}:Flat"}
    for rounds in (1, 3):
        protocol = Protocol(rounds=rounds, warm_up_s=0.5)
        data = dataset_of(documents, queries)
        found = sweep(config, data, "ef", EF, protocol=protocol, save=False)
        (level,) = found.levels
        ratios = [(level.exact_ms or 0.0) / (value.ms or 1.0) for value in level.values]
        told = " ".join(f"{ratio:.3f}" for ratio in ratios)
        sys.stdout.write(f"{n:,} vectors, {rounds} rounds, exact {level.exact_ms:.3f} ms: {told}\n")


class Flat(Dense):
    """An exhaustive search whatever value is asked for."""

    def searching(self, changed: Mapping[str, Any]) -> Dense | None:
        return self


def main(n: int, folder: Path, names: Sequence[str]) -> None:
    """Print all tables, and keep the records with their pictures."""
    documents, queries = clustered(n, QUERIES, dimension=DIMENSION)
    for name in names:
        data = dataset_of(documents, queries[: FEWER.get(name, QUERIES)])
        config, parameter, values = SWEPT[name]
        begin = time.perf_counter()
        found = sweep(
            {"name": name, **config},
            data,
            parameter,
            values,
            filters=FILTERS,
            protocol=Protocol(rounds=1, warm_up_s=0.5),
            out=folder / name,
        )
        keep_sweep(found)
        drawn = io.StringIO()
        terminal.to_console(sweep_tables(found, full=True), Console(file=drawn, width=140))
        sys.stdout.write(f"{drawn.getvalue()}\n{time.perf_counter() - begin:.0f} s in all\n\n")


if __name__ == "__main__":
    size, to = [*sys.argv[1:3], *("100000", "results/sweep-study")[len(sys.argv[1:3]) :]]
    with pytest.MonkeyPatch.context() as patch:
        without_model(patch, DIMENSION)
        if to == "exact":
            exact_against_exact(int(size))
        else:
            main(int(size), Path(to), sys.argv[3:] or [*SWEPT])
