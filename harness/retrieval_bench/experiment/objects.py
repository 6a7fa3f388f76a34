"""Adapter that an object goes through that is no retriever of ours.

An object is known by the modules that its class and the classes above it come from, so that no
library is imported that the object does not come from itself.
"""

from __future__ import annotations

from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.config import path_of
from retrieval_bench.experiment.candidate import Candidate

_LIBRARIES = {
    "langchain_core": ("langchain", "factory"),
    "llama_index": ("llamaindex", "factory"),
    "haystack": ("haystack", "factory"),
    "pyterrier": ("pyterrier", "pipeline"),
}
"""Package that classes come from -> target, and the parameter that takes the object."""


def adapted(given: Any) -> Candidate | None:
    """``given`` in the adapter of the library that it comes from, a function in that of functions;
    None for what is neither.

    Raises:
        ConfigError: it comes from a library, and is none of its retrievers; says how to get one.
    """
    library = _library_of(given)
    if library is not None:
        target, parameter = _LIBRARIES[library]
        made = plugins.resolve("retriever", target)(**{parameter: given})
        return Candidate(type(given).__name__, made, {"target": path_of(type(given))})
    if callable(given):
        made = plugins.resolve("retriever", "callable")(function=given)
        name = getattr(given, "__name__", type(given).__name__)
        return Candidate(name, made, {"target": "callable"})
    return None


def _library_of(given: Any) -> str | None:
    """The first of our libraries among the classes of ``given``; Haystack marks those of its
    components by their metaclass."""
    kind = type(given)
    if issubclass(kind, type):  # a class is no retriever yet
        return None
    packages = (item.__module__.partition(".")[0] for item in (*kind.__mro__, *type(kind).__mro__))
    return next((package for package in packages if package in _LIBRARIES), None)
