"""A retrieval benchmarking harness: ranking quality and latency of any retriever, side by side.

Importing this loads nothing heavy; the names below are loaded when they are first used, and those
of packages beside the kernel are among them. Type checkers read ``__init__.pyi``.
"""

from typing import Any

from retrieval_bench.core.installed.version import VERSION

__version__ = VERSION

_NAMES = {
    "api.measuring": ("bench", "compare"),
    "core.retriever": ("Capabilities", "Retriever"),
    "core.types": ("Dataset", "Document", "Hit", "Query", "Ranking", "Usage"),
    "core.calls.usage": ("report_usage",),
    "data": ("load_dataset",),
}
_HOME = {name: f"retrieval_bench.{module}" for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    from retrieval_bench.capabilities import brought, capabilities

    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "__all__":
        added = [name for package in capabilities() for name in package.names if "." not in name]
        return sorted([*_HOME, *added])
    return brought(name)


def __dir__() -> list[str]:
    return sorted([*__getattr__("__all__"), "__version__"])
