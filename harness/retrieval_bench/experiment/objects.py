"""Adapter that an object goes through that is no retriever of ours."""

from __future__ import annotations

import inspect
from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.config import path_of
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.foreign_kinds import target_of
from retrieval_bench.experiment.candidate import Candidate


def adapted(given: Any) -> Candidate | None:
    """``given`` in the adapter of the library that it comes from, a function in that of functions;
    None for what is neither.

    Raises:
        ConfigError: it comes from a library, and is none of its retrievers; says how to get one. Or
            it is a class.
    """
    if inspect.isclass(given):
        raise ConfigError(
            f"{given.__name__}, a class",
            accepted="a retriever, or an object or a function that one is made of",
            fix=f"hand over an object of it, {given.__name__}(...), or its place as a text, "
            "'module:Class'",
        )
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
