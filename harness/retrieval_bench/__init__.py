"""A retrieval benchmarking harness: ranking quality and latency of any retriever, side by side.

Importing this loads nothing heavy; the names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING, Any

from retrieval_bench.core.version import VERSION

if TYPE_CHECKING:
    from retrieval_bench.api import (
        baseline,
        bench,
        compare,
        duet,
        evaluate,
        load_dataset,
        regress,
        tune,
    )
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
    "baseline",
    "bench",
    "compare",
    "duet",
    "evaluate",
    "load_dataset",
    "regress",
    "tune",
]

_HOME = {
    **dict.fromkeys(("Capabilities", "Retriever"), "retrieval_bench.core.retriever"),
    **dict.fromkeys(
        ("Dataset", "Document", "Hit", "Query", "Ranking"), "retrieval_bench.core.types"
    ),
}
"""Where a name is, unless it is in ``retrieval_bench.api``."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'retrieval_bench' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME.get(name, "retrieval_bench.api")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
