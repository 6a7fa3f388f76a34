"""PyTerrier in both directions: any transformer that retrieves can be measured, and any retriever
of the harness stands in a pipeline.

The contract is that of pyterrier 1.1 (``Transformer.transform``): a frame with the columns ``qid``
and ``query`` becomes one with ``docno`` and ``score`` or ``rank`` for each hit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_retrievers.functions.user_code import check_call, declared_index, name_of
from retrieval_bench_retrievers.libraries.library import needed

if TYPE_CHECKING:
    import pyterrier

_VERSIONS = "pyterrier 1.1 or later"
_RETURNS = "a frame with the columns docno and score, or docno and rank, one row for each hit"


class PyTerrierRetriever(Retriever):
    """Calls ``transform`` with a frame of one query; the pipeline holds its own index.

    Hits are ranked by ``score``, without such a column by ``rank``, equal ones by id; those beyond
    ``k`` are cut off. What the pipeline raises is passed through.

    Args:
        pipeline: ``module:object`` or ``file.py:object``, or the object itself: what has a method
            ``transform``, or a function or class that makes one.
        external: ``{index, version, count}`` declares the fingerprint of what it searches.
        **params: what a function or class is called with.

    Raises:
        PluginError: ``pipeline`` does not resolve.
        ConfigError: there is no ``transform``, or the function does not take these parameters.
        MissingDependencyError: without pandas.
    """

    def __init__(
        self, pipeline: Any, external: bool | Mapping[str, Any] = True, **params: Any
    ) -> None:
        self._declared = declared_index(external)
        self._name = pipeline if isinstance(pipeline, str) else name_of(pipeline)
        named = plugins.load(pipeline) if isinstance(pipeline, str) else pipeline
        if inspect.isroutine(named) or inspect.isclass(named):
            check_call(named, self._name, (), params, {"pipeline", "external"})
            named = named(**params)
        elif params:
            raise ConfigError(
                f"{self._name} is {type(named).__name__}, which takes no parameters here: "
                + ", ".join(sorted(params)),
                fix="remove them, or name a function that takes them",
            )
        self._transform = _transform_of(named, self._name)
        self._type = type(named).__name__
        with needed("pandas", "pandas", "pandas", "target pyterrier", _VERSIONS):
            from pandas import DataFrame
        self._frame: Any = DataFrame

    @property
    def capabilities(self) -> Capabilities:
        """External: the harness does not index anything for a pipeline."""
        return Capabilities(external=True)

    def search(self, query: Query, k: int) -> Ranking:
        """Return at most ``k`` hits of the frame that the pipeline gives for this query.

        Stages: ``pyterrier``, the time inside of ``transform``; ``wrapper``, what the adapter adds.

        Raises:
            ContractError: ``k`` below 1, or the pipeline gave something else.
        """
        start = perf_counter_ns()
        require_k(k)
        asked = self._frame({"qid": [query.id], "query": [query.text]})
        begin = perf_counter_ns()
        frame = self._transform(asked)
        inside = perf_counter_ns() - begin
        ids, scores = self._hits(frame, query)
        order = sorted(range(len(ids)), key=lambda at: (-scores[at], ids[at]))[:k]
        ranked = [ids[at] for at in order]
        stages = {"pyterrier": inside}
        has_scores = not len(ids) or "score" in frame.columns
        ranking = Ranking(ranked, scores[order] if has_scores else None, stages)
        stages["wrapper"] = perf_counter_ns() - start - inside
        return ranking

    def describe(self) -> Mapping[str, Any]:
        """The pipeline's name and type, PyTerrier's version, and what was declared."""
        try:
            installed = version("pyterrier")
        except PackageNotFoundError:
            installed = None
        facts = {"pipeline": self._name, "returned": self._type, "pyterrier": installed}
        return {**facts, "external": self._declared}

    def _hits(self, frame: Any, query: Query) -> tuple[list[str], Any]:
        """Ids as they come, and a number for each of which the highest is the best."""
        if not isinstance(frame, self._frame):
            raise self._wrong(type(frame).__name__, "return the frame of the last step")
        if not len(frame):
            return [], np.empty(0)
        columns = list(frame.columns)
        by = next((name for name in ("score", "rank") if name in columns), None)
        if "docno" not in columns or by is None:
            what = f"a frame with the columns {', '.join(map(str, columns))}"
            raise self._wrong(what, "end the pipeline with a step that ranks documents")
        if "qid" in columns and (other := set(frame["qid"]) - {query.id}):
            what = f"hits of the query {next(iter(other))!r} for {query.id!r}"
            raise self._wrong(what, "keep qid as it is")
        ids = frame["docno"].tolist()
        wrong = [doc_id for doc_id in ids if not isinstance(doc_id, str)]
        if wrong:
            fix = 'convert them: frame["docno"].astype(str)'
            raise self._wrong(f"the docno {wrong[0]!r}", fix)
        try:
            numbers = frame[by].to_numpy(dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise self._wrong(f"a column {by} of other than numbers: {problem}", "") from None
        return ids, -numbers if by == "rank" else numbers

    def _wrong(self, what: str, fix: str) -> ContractError:
        return ContractError(
            f"the pipeline {self._name} returned {what}", accepted=_RETURNS, fix=fix
        )


def as_pyterrier(
    retriever: Retriever, k: int = 1000, documents: Iterable[Document] | None = None
) -> pyterrier.Transformer:
    """A PyTerrier transformer over ``retriever``, for ``pt.Experiment`` and the operators.

    Args:
        retriever: ready to search: indexed, or external.
        k: hits per query.
        documents: where the columns ``title`` and ``text`` come from, for a step that reads them,
            such as a re-ranker. Without them there are none.

    Returns:
        A ``pyterrier.Transformer`` from frames of queries to frames of hits: the columns of the
        query, ``docno``, ``score`` and ``rank`` from 0. Of a retriever without scores the score is
        the negative rank. Frames that hold documents already are refused.

    Raises:
        MissingDependencyError: PyTerrier is not installed.
    """
    require_k(k)
    with needed("PyTerrier", "pyterrier", "python-terrier", "as_pyterrier", _VERSIONS):
        import_module("pyterrier")  # before pandas, which comes with it
        from retrieval_bench_retrievers.libraries.pyterrier_bridge import HarnessTransformer

    by_id = None if documents is None else {document.id: document for document in documents}
    return HarnessTransformer(retriever, k, by_id)


def _transform_of(made: Any, name: str) -> Callable[[Any], Any]:
    transform = getattr(made, "transform", None)
    if not callable(transform):
        raise ConfigError(
            f"{name} is {type(made).__name__}, which has no method transform",
            accepted="a PyTerrier transformer or pipeline, or a function that makes one",
            fix="for a function of a text and k use `target: callable`",
        )
    function: Callable[[Any], Any] = transform
    return function
