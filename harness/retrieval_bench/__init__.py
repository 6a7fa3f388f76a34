"""A retrieval benchmarking harness: ranking quality and latency of any retriever, side by side.

Importing this loads nothing heavy; the names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING, Any

from retrieval_bench.core.version import VERSION

if TYPE_CHECKING:
    from retrieval_bench.api import bench, compare, evaluate, load_dataset, tune
    from retrieval_bench.core.retriever import Capabilities, Retriever
    from retrieval_bench.core.types import Dataset, Document, Hit, Query, Ranking

__version__ = VERSION

__all__ = [
    "Capabilities",
    "Dataset",
    "Document",
    "Hit",
    "Query",
    "Ranking",
    "Retriever",
    "bench",
    "compare",
    "evaluate",
    "load_dataset",
    "tune",
]

_HOME = {
    **dict.fromkeys(
        ("bench", "compare", "evaluate", "load_dataset", "tune"), "retrieval_bench.api"
    ),
    **dict.fromkeys(("Capabilities", "Retriever"), "retrieval_bench.core.retriever"),
    **dict.fromkeys(
        ("Dataset", "Document", "Hit", "Query", "Ranking"), "retrieval_bench.core.types"
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'retrieval_bench' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
