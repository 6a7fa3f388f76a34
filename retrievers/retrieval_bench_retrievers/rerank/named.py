"""The way from the name of a reranker, or an object, to a reranker."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.functions.components import component
from retrieval_bench_retrievers.rerank.reranking import FunctionReranker, Reranker

_ROOM = "retrieval_bench_retrievers.rerank"
_NAMED = {
    "minilm-l12": f"{_ROOM}.minilm:MiniLMReranker",
    "maxsim": f"{_ROOM}.maxsim:MaxSimReranker",
}
"""Short names, and what they stand for."""
RERANKERS = (
    f"Rerankers by name: {', '.join(_NAMED)}, and the name or folder of a cross-encoder of "
    "sentence-transformers, such as cross-encoder/ms-marco-MiniLM-L6-v2"
)
METHODS = ("compress_documents", "postprocess_nodes")
"""What a document compressor of LangChain and a postprocessor of LlamaIndex have."""


def reranker_of(given: Any, params: Mapping[str, Any]) -> Reranker:
    """The reranker that ``given`` names: ``minilm-l12``, whose weights a package brings;
    ``maxsim``, late interaction with the multi-vector model of the parameter ``model``; the name or
    folder of a cross-encoder of sentence-transformers; ``module:name`` or ``file.py:name`` of a
    function (text, documents) -> scores, of an object of LangChain or LlamaIndex, or of what makes
    one; or such an object.

    Raises:
        HarnessError: there is none.
    """
    if given is None or isinstance(given, bool | int | float | Mapping | list):
        raise ConfigError(
            f"{given!r:.60} is no name and no function",
            accepted=f"module:function or file.py:function of (text, documents). {RERANKERS}",
            fix="write for example {rerank: minilm-l12, top: 10}",
        )
    if isinstance(given, str) and given.casefold() in _NAMED:
        module, _, name = _NAMED[given.casefold()].partition(":")
        made: Reranker = getattr(import_module(module), name)(**params)
        return made
    if isinstance(given, str) and (":" not in given or _is_drive(given)):
        from retrieval_bench_retrievers.rerank.cross_encoder import CrossEncoderReranker

        return CrossEncoderReranker(given, **params)
    if isinstance(given, Reranker):
        return given
    function, name, left = component(given, ("text", "documents"), params, METHODS)
    if hasattr(function, "compress_documents"):
        from retrieval_bench_retrievers.rerank.langchain_rerank import Compressor

        return Compressor(function, name)
    if hasattr(function, "postprocess_nodes"):
        from retrieval_bench_retrievers.rerank.llamaindex_rerank import Postprocessor

        return Postprocessor(function, name)
    return FunctionReranker(function, name, left)


def _is_drive(name: str) -> bool:
    """Return whether the colon is that of a drive of Windows."""
    return name[1:3] in (":\\", ":/")
