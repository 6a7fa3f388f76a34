"""A retrieval benchmarking harness: ranking quality and latency of any retriever, side by side.

Importing this loads nothing heavy; the names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import bench, compare, evaluate, load_dataset, tune
    from harness.retriever import Capabilities, Retriever
    from harness.types import Dataset, Document, Hit, Query, Ranking

__version__ = "0.1.0"

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
    **dict.fromkeys(("bench", "compare", "evaluate", "load_dataset", "tune"), "harness.api"),
    **dict.fromkeys(("Capabilities", "Retriever"), "harness.retriever"),
    **dict.fromkeys(("Dataset", "Document", "Hit", "Query", "Ranking"), "harness.types"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
