"""dense: the second run over a corpus beside the first, each in a process that starts from nothing.

A run is ``python -m tests.benchmarks.dense DATASET DOCUMENTS LOADED``, with the folder of the
embedding cache in its environment.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from tests.benchmarks import children
from tests.benchmarks.report import Group, Options, Row

_SUBSET = 300
_ALL = 0


def measure(options: Options) -> Group:
    """Rows for the second run; the target holds for all of scifact."""
    title = "dense: the second run"
    if not all(map(importlib.util.find_spec, ("sentence_transformers", "faiss"))):
        return Group(title, [], ["not measured: the extra `dense` is not installed"])
    dataset, n, name = _data(options)
    full = n == _ALL and dataset != "science-mini"
    with tempfile.TemporaryDirectory() as folder:
        first = _run(dataset, n, folder)
        second = _run(dataset, n, folder)
        warm = None if options.quick else _run(dataset, n, folder, loaded=True)
    at_most = 1 / 20 if full else None
    rows = [
        Row("texts encoded", second["encoded"], "count", at_most=0, absolute=True),
        Row("index ready", second["seconds"], "s", first["seconds"], "first", at_most=at_most),
    ]
    if warm is not None:
        rows.append(Row("index ready, libraries loaded before", warm["seconds"], "s"))
    return Group(
        f"{title} on {name}, {first['documents']:,} documents",
        rows,
        [
            (
                "fresh processes, an empty cache folder for the first; index ready: building the "
                "retriever and index(), with the import of torch and the loading of the model"
            ),
            (
                f"first run: {first['encoded']:,} texts encoded; second: {second['from_cache']:,} "
                "vectors from the cache"
            ),
            *(
                []
                if full
                else ["the target of 20 times is for all of scifact: BENCH_DATA, and --full"]
            ),
        ],
    )


def _data(options: Options) -> tuple[str, int, str]:
    """Dataset, how many of its documents (0 = all), and what to call that."""
    given = os.environ.get("BENCH_DATA")
    scifact = Path(given).absolute() / "beir" / "scifact" if given else None
    if scifact is None or not scifact.is_dir():
        return "science-mini", 40 if options.quick else _ALL, "science-mini"
    if options.full:
        return str(scifact), _ALL, "scifact"
    return str(scifact), 40 if options.quick else _SUBSET, "the first of scifact"


def _run(dataset: str, n: int, cache: str, *, loaded: bool = False) -> dict[str, Any]:
    environment = {"RETRIEVAL_BENCH_CACHE": cache}
    return children.answer("dense", dataset, str(n), str(int(loaded)), environment=environment)


def _child(dataset: str, n: int, loaded: bool) -> dict[str, Any]:
    """One run, measured."""
    from retrieval_bench.core.config import load_retriever_config
    from retrieval_bench.data import load_dataset

    documents = list(islice(load_dataset(dataset, "test").documents or (), n or None))
    if loaded:
        import faiss  # noqa: F401
        import sentence_transformers  # noqa: F401
    start = time.perf_counter()
    retriever = load_retriever_config("dense").build()
    retriever.index(documents)
    seconds = time.perf_counter() - start
    facts = retriever.describe()
    return {
        "seconds": seconds,
        "documents": len(documents),
        "encoded": facts["encoded"],
        "from_cache": facts["from_cache"],
    }


if __name__ == "__main__":
    print(json.dumps(_child(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1")))
