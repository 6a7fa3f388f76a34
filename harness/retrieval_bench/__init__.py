"""A retrieval benchmarking harness: ranking quality and latency of any retriever, side by side.

Importing this loads nothing heavy; the names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING, Any

from retrieval_bench.core.installed.version import VERSION

if TYPE_CHECKING:
    from retrieval_bench.api.measuring import baseline, bench, compare, duet, regress, tune
    from retrieval_bench.api.reading import audit, diff, evaluate, history, report
    from retrieval_bench.core.calls.usage import report_usage
    from retrieval_bench.core.retriever import Capabilities, Retriever
    from retrieval_bench.core.types import Dataset, Document, Hit, Query, Ranking, Usage
    from retrieval_bench.data import export_dataset, load_dataset

__version__ = VERSION

__all__ = [
    "Capabilities",
    "Dataset",
    "Document",
    "Hit",
    "Query",
    "Ranking",
    "Retriever",
    "Usage",
    "audit",
    "baseline",
    "bench",
    "compare",
    "diff",
    "duet",
    "evaluate",
    "export_dataset",
    "history",
    "load_dataset",
    "reader",
    "regress",
    "report",
    "report_usage",
    "tune",
]

_NAMES = {
    "api.measuring": ("baseline", "bench", "compare", "duet", "regress", "tune"),
    "api.reading": ("audit", "diff", "evaluate", "history", "report"),
    "core.retriever": ("Capabilities", "Retriever"),
    "core.types": ("Dataset", "Document", "Hit", "Query", "Ranking", "Usage"),
    "core.calls.usage": ("report_usage",),
    "data": ("export_dataset", "load_dataset"),
}
_HOME = {name: f"retrieval_bench.{module}" for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in __all__:
        from retrieval_bench.capabilities import capabilities, named

        for added in capabilities():
            if name in added.names:
                return named(added.names[name])
        raise ImportError(
            f"retrieval_bench.{name} is in a package beside this one that is not here: "
            "install retrieval-bench whole"
        )
    raise AttributeError(f"module 'retrieval_bench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
