"""Adapter that an object goes through that is no retriever of ours."""

from __future__ import annotations

from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.config import path_of
from retrieval_bench.core.foreign_kinds import target_of
from retrieval_bench.experiment.candidate import Candidate


def adapted(given: Any) -> Candidate | None:
    """``given`` in the adapter of the library that it comes from, a function in that of functions;
    None for what is neither.

    Raises:
        ConfigError: it comes from a library, and is none of its retrievers; says how to get one.
    """
    target = target_of(given)
    if target is not None:
        parameter = "pipeline" if target == "pyterrier" else "factory"
        made = plugins.resolve("retriever", target)(**{parameter: given})
        return Candidate(type(given).__name__, made, {"target": path_of(type(given))})
    if callable(given):
        made = plugins.resolve("retriever", "callable")(function=given)
        name = getattr(given, "__name__", type(given).__name__)
        return Candidate(name, made, {"target": "callable"})
    return None
