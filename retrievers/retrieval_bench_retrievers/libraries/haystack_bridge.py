"""The Haystack side of the adapter; imports haystack, so it is imported where needed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from haystack import Document as HaystackDocument
from haystack.core.pipeline.base import PipelineBase

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.libraries.library import (
    Call,
    Engine,
    OwnScores,
    cannot_filter,
    metadata_for,
)

_TEXTS = ("query", "text")
"""Names of inputs that take the text of a query."""

_METHODS = ("run", "run_async")


class Haystack(OwnScores):
    """See :class:`retrieval_bench_retrievers.libraries.haystack.HaystackRetriever`.

    Args:
        name: of the factory, for messages.
        id_key: the key of ``meta`` that holds the document id; None = ``Document.id``.
        scores: whether scores are wanted.
        output: of a pipeline, the component whose documents are the answer; None = the only one.
    """

    hit_type = HaystackDocument
    text_name = "content"
    accepted = "an output `documents`, a list of Haystack documents"
    own_place = "Document.id"
    no_id_advice = "name the key of meta that holds the id: id_key"
    unknown_id_advice = (
        "keep the ids of the documents that the factory gets; a splitter makes new ones, then use "
        "`id_key: doc_id`"
    )

    def __init__(self, name: str, id_key: str | None, scores: bool, output: str | None) -> None:
        super().__init__(name, id_key, scores=scores)
        self._output = output

    def document(self, document: Document) -> Any:
        """A Haystack document."""
        meta = metadata_for(document)
        return HaystackDocument(id=document.id, content=document.contents, meta=meta)

    def is_engine(self, made: Any) -> bool:
        """A pipeline, or a component whose ``run`` takes a query."""
        if isinstance(made, PipelineBase):
            return True
        return not inspect.isclass(made) and "query" in _parameters(made)

    def advice(self, made: Any) -> str:
        """Names what lacks to a query and documents."""
        if "query_embedding" in _parameters(made):
            return "put it in a Pipeline, behind the text embedder that makes its query_embedding"
        if hasattr(made, "filter_documents"):
            return "return a retriever over the store, such as InMemoryBM25Retriever(store)"
        return "end the factory with `return`" if made is None else "return the component itself"

    def engine(self, made: Any, *, filtered: bool) -> Engine:
        """Checks that a query finds its way in, a filter too where there will be one."""
        if isinstance(made, PipelineBase):
            pipeline = PipelineEngine(made, self.name, self._output)
            takes_filters = pipeline.takes("filters")
            engine: Engine = pipeline
        else:
            takes_filters = "filters" in _parameters(made)
            engine = ComponentEngine(made)
        if filtered and not takes_filters:
            raise cannot_filter(
                self.name,
                f"a {type(made).__name__}",
                "an input `filters`, as retrievers of Haystack have",
                "leave `filter` out, or add such a retriever",
            )
        return engine

    def hits(self, found: Any) -> Any:
        """The documents of a component, of the named part of a pipeline, or of its only one."""
        if not isinstance(found, Mapping):
            return found
        if "documents" in found:
            return found["documents"]
        parts = {
            name: value["documents"]
            for name, value in found.items()
            if isinstance(value, Mapping) and "documents" in value
        }
        if self._output is not None:
            return parts.get(self._output, found)
        if len(parts) > 1:
            raise ContractError(
                f"the pipeline of {self.name} has several outputs with documents: "
                + ", ".join(sorted(parts)),
                accepted="one, or the parameter `output`",
                fix=f"name the one to measure, such as output: {min(parts)}",
            )
        return next(iter(parts.values()), found)

    def id_of(self, hit: Any) -> Any:
        """``Document.id``, or ``meta`` under ``id_key``."""
        return hit.id if self.id_key is None else hit.meta.get(self.id_key)

    def metadata(self, hit: Any) -> Mapping[str, Any]:
        """``meta``."""
        metadata: Mapping[str, Any] = hit.meta
        return metadata

    def answer_advice(self, answer: Any) -> str:
        """A pipeline that goes on to an answer tells the documents of a part on request."""
        return "name the component whose documents are the answer: `output`"


class ComponentEngine(Engine):
    """One component."""

    methods = _METHODS

    def __init__(self, made: Any) -> None:
        super().__init__(made)
        self.takes_k = "top_k" in _parameters(made)
        if hasattr(made, "warm_up"):  # a pipeline does that for its parts
            made.warm_up()

    def call(self, asked: Any, k: int, filters: Any) -> Call:
        """The inputs by name."""
        inputs = {"query": asked}
        if self.takes_k:
            inputs["top_k"] = k
        if filters is not None:
            inputs["filters"] = filters
        return Call(self.made, (), inputs)


class PipelineEngine(Engine):
    """A pipeline whose open inputs are a text, and perhaps filters.

    Raises:
        ContractError: it takes no text, or needs something else.
    """

    methods = _METHODS

    def __init__(self, made: Any, name: str, output: str | None) -> None:
        super().__init__(made)
        self._kept = None if output is None else {output}
        self._open: list[tuple[str, str]] = []
        needs: list[str] = []
        for component, key, mandatory in _inputs_of(made):
            self._open.append((component, key))
            if mandatory and key not in _TEXTS:
                needs.append(f"{component}.{key}")
        parts = [component for component, _ in self._open]
        if output is not None and output not in made.graph.nodes:
            given = f"{name} gave a pipeline without a component {output!r}"
        elif not any(self.takes(key) for key in _TEXTS):
            given = f"{name} gave a pipeline that takes no text (parts: {', '.join(parts)})"
        elif needs:
            given = f"{name} gave a pipeline that also needs {', '.join(needs)}"
        else:
            return
        raise ContractError(
            given,
            accepted="a pipeline that needs nothing but texts, in inputs named query or text, and "
            "whose `output` is one of its components",
            fix="connect the other inputs, or give them defaults",
        )

    def takes(self, key: str) -> bool:
        """Return whether an open input has this name."""
        return any(name == key for _, name in self._open)

    def call(self, asked: Any, k: int, filters: Any) -> Call:
        """The open inputs of each component."""
        data: dict[str, dict[str, Any]] = {}
        for component, key in self._open:
            if key in _TEXTS:
                data.setdefault(component, {})[key] = asked
            elif key == "filters" and filters is not None:
                data.setdefault(component, {})[key] = filters
        return Call(self.made, (data,), {"include_outputs_from": self._kept})


def _parameters(made: Any) -> Mapping[str, Any]:
    run = getattr(made, "run", None)
    return inspect.signature(run).parameters if callable(run) else {}


def _inputs_of(pipeline: Any) -> Iterator[tuple[str, str, bool]]:
    """Component, name and whether it must be given, of each open input."""
    for component, inputs in pipeline.inputs().items():
        for key, socket in inputs.items():
            yield component, key, bool(socket["is_mandatory"])
