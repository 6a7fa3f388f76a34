"""The LangChain side of both adapters; imports langchain-core, so it is imported where needed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document as LangChainDocument
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnableSequence
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from retrieval_bench.core.errors import ContractError, distinct_names
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query, StepTrace
from retrieval_bench_retrievers.libraries.kept_chain import Inside
from retrieval_bench_retrievers.libraries.langchain_trace import Trace
from retrieval_bench_retrievers.libraries.library import (
    Call,
    Engine,
    Library,
    cannot_filter,
    metadata_for,
)


def to_langchain(document: Document) -> LangChainDocument:
    """``document`` for LangChain: title and text as page content."""
    return LangChainDocument(
        id=document.id, page_content=document.contents, metadata=metadata_for(document)
    )


class HarnessRetriever(BaseRetriever):
    """A retriever of the harness as a LangChain retriever; made by
    :func:`retrieval_bench_retrievers.libraries.langchain.as_langchain`."""

    retriever: Retriever
    k: int
    documents: Mapping[str, Document] = {}

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[LangChainDocument]:
        del run_manager
        ranking = checked_ranking(
            self.retriever.search(Query(id=query, text=query), self.k),
            self.k,
            has_scores=self.retriever.capabilities.has_scores,
        )
        relevant_documents = []
        for hit in ranking:
            known = self.documents.get(hit.doc_id)
            # EnsembleRetriever takes equal page content for one document: an id keeps them apart.
            document = to_langchain(known or Document(hit.doc_id, text=hit.doc_id))
            if ranking.scores is not None:
                document.metadata["score"] = hit.score
            relevant_documents.append(document)
        return relevant_documents


class LangChain(Library):
    """See :class:`retrieval_bench_retrievers.libraries.langchain.LangChainRetriever`.

    Args:
        name: of the factory, for messages.
        id_key: the metadata key that holds the document id; None = ``Document.id``.
        score_key: the metadata key that holds the score; None = no scores.
    """

    hit_type = LangChainDocument
    text_name = "page_content"
    accepted = "a list of LangChain documents"
    own_place = "Document.id"
    no_id_advice = (
        "give the engine the ids (ids=[...] or Document(id=...)), or name the metadata "
        "key that holds the id: id_key"
    )
    unknown_id_advice = (
        "hand the ids on (ids=[d.id for d in documents]); a text splitter drops them, "
        "then use `id_key: doc_id`"
    )

    def __init__(self, name: str, id_key: str | None, score_key: str | None) -> None:
        super().__init__(name, id_key)
        self._score_key = score_key

    def document(self, document: Document) -> LangChainDocument:
        """See :func:`to_langchain`."""
        return to_langchain(document)

    def is_engine(self, made: Any) -> bool:
        """Any Runnable; what it returns is seen at the first search."""
        return isinstance(made, Runnable)

    def advice(self, made: Any) -> str:
        """Names what a Runnable is made of it with."""
        if isinstance(made, VectorStore):
            return "return store.as_retriever(search_kwargs={'k': k})"
        if made is None:
            return "end the factory with `return`"
        return (
            "wrap it: RunnableLambda(function)" if callable(made) else "return the retriever itself"
        )

    def engine(self, made: Any, *, filtered: bool) -> Engine:
        """A retriever takes the filter by keyword; so does the function of a RunnableLambda. Any
        other Runnable hands keywords to who knows which of its parts, if any."""
        if filtered and not _takes_filter(made):
            raise cannot_filter(
                self.name,
                f"a {type(made).__name__}",
                "a retriever of a vector store, a retriever whose _get_relevant_documents takes "
                "other keywords, or RunnableLambda(function(text, filter=None))",
                "wrap the chain in a RunnableLambda that puts the filter where it belongs",
            )
        kind = ChainEngine if isinstance(made, RunnableSequence) else LangChainEngine
        return kind(made, _keyword(made) if filtered else "filter")

    def id_of(self, hit: Any) -> Any:
        """``Document.id``, or the metadata under ``id_key``."""
        return hit.id if self.id_key is None else hit.metadata.get(self.id_key)

    def scores(self, hits: Sequence[Any]) -> list[float] | None:
        """The numbers under ``score_key``, which never rise."""
        if self._score_key is None:
            return None
        scores: list[float] = []
        for hit in hits:
            scores.append(self._score_of(hit, scores))
        return scores

    def answer_advice(self, answer: Any) -> str:
        """A chain that goes on to an answer is cut where its documents are."""
        if isinstance(answer, Mapping):
            return "end the chain where its documents are, for example chain.pick('context')"
        return super().answer_advice(answer)

    def _score_of(self, hit: LangChainDocument, before: Sequence[float]) -> float:
        raw: Any = hit.metadata.get(str(self._score_key))
        try:
            score = float(raw)
        except (TypeError, ValueError):
            raise ContractError(
                f"{self.name} returned a document with {raw!r} for a score",
                where=f"metadata key {self._score_key!r}",
                accepted=f"a number; metadata keys there: {self.keys(hit)}",
                fix="leave score_key out to rank by the order of the list",
            ) from None
        if before and score > before[-1]:
            raise ContractError(
                f"scores of {self.name} rise from {before[-1]:.6g} to {score:.6g} at rank "
                f"{len(before) + 1}",
                where=f"metadata key {self._score_key!r}",
                accepted="best first: scores never rise",
                fix="leave score_key out to rank by the order of the list; negate distances",
            )
        return score


class LangChainEngine(Engine):
    """A Runnable from text to documents.

    Args:
        made: the Runnable.
        keyword: how ``invoke`` gets a filter.
    """

    methods = ("invoke", "ainvoke")

    def __init__(self, made: Any, keyword: str) -> None:
        super().__init__(made)
        self._keyword = keyword

    def call(self, asked: Any, k: int, filters: Any) -> Call:
        """The text, and a filter by its keyword."""
        return Call(self.made, (asked,), {} if filters is None else {self._keyword: filters})

    def only_async(self, problem: Exception) -> bool:
        """A RunnableLambda over an async function raises a TypeError that names ainvoke."""
        named = isinstance(problem, TypeError) and "ainvoke" in str(problem)
        return named or isinstance(problem, NotImplementedError)

    def deeper(self, k: int) -> Engine | None:
        """Only a plain similarity search whose one number is k is sure to be what the factory would
        build."""
        made = self.made
        if type(made) is not VectorStoreRetriever or made.search_type != "similarity":
            return None
        if "k" not in made.search_kwargs or set(made.search_kwargs) - {"k", "filter"}:
            return None
        kwargs = {**made.search_kwargs, "k": k}
        return LangChainEngine(made.model_copy(update={"search_kwargs": kwargs}), self._keyword)


class ChainEngine(LangChainEngine):
    """A sequence of Runnables, whose steps are told by callbacks."""

    def __init__(self, made: Any, keyword: str) -> None:
        super().__init__(made, keyword)
        self._trace = Trace()

    def call(self, asked: Any, k: int, filters: Any) -> Call:
        """The text, with whoever listens to the steps."""
        self._trace = Trace()
        return Call(self.made, (asked, {"callbacks": [self._trace]}))

    def inside(self, library: Library) -> Inside:
        """Steps by run name, told apart."""
        inside = Inside()
        steps = [step for step in self._trace.steps if step.end]
        names = distinct_names([re.sub(r"[/\[\]:]", "_", step.name) for step in steps])
        for name, step in zip(names, steps, strict=True):
            inside.unnamed += step.name.startswith("Runnable")
            inside.stages[f"step:{name}"] = step.end - step.begin
            made = _made(step.gave, library)
            if made is not None:
                inside.steps[name] = made
            if step.usage is not None:
                inside.usage[f"step:{name}"] = step.usage
        return inside


def _made(gave: Any, library: Library) -> StepTrace | None:
    """The documents or the text that a step gave; None where it is something else."""
    if isinstance(gave, str):
        return StepTrace(texts=[gave])
    if isinstance(gave, list) and gave and isinstance(gave[0], LangChainDocument):
        try:
            return StepTrace(list(dict.fromkeys(library.read(gave).doc_ids)))
        except ContractError:  # told of what the chain gives in the end
            return None
    text = getattr(gave, "content", None)
    return StepTrace(texts=[text]) if isinstance(text, str) else None


def _keyword(made: Any) -> str:
    """Name the filter of a vector store's search, for retrievers over one; else "filter". Stores
    that only declare ``**kwargs`` hand that on."""
    if isinstance(made, VectorStoreRetriever):
        declared = inspect.signature(made.vectorstore.similarity_search).parameters
        return next((name for name in ("filter", "expr", "filters") if name in declared), "filter")
    return "filter"


def _takes_filter(made: Runnable[Any, Any]) -> bool:
    """Return whether a keyword ``filter`` of ``invoke`` reaches what ``made`` searches with."""
    parameters: Mapping[str, inspect.Parameter]
    if isinstance(made, BaseRetriever):
        parameters = inspect.signature(made._get_relevant_documents).parameters
    elif isinstance(made, RunnableLambda):
        function = getattr(made, "func", None) or getattr(made, "afunc", None)
        parameters = inspect.signature(function).parameters if function else {}
    else:
        return False
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return open_ended or "filter" in parameters
