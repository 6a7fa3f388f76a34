"""The LangChain side of both adapters; imports langchain-core, so it is imported where needed."""

from __future__ import annotations

import inspect
from collections.abc import Container, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document as LangChainDocument
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import EMPTY, Document, Query, Ranking

__all__ = [
    "AnswerReader",
    "HarnessRetriever",
    "Runnable",
    "advice",
    "ask_for",
    "described",
    "to_langchain",
]


def to_langchain(document: Document) -> LangChainDocument:
    """``document`` for LangChain: title and text as page content, and the id also in the metadata
    as ``doc_id``, where text splitters keep it. The document's own metadata wins over both."""
    added = {"doc_id": document.id, **({"title": document.title} if document.title else {})}
    return LangChainDocument(
        id=document.id, page_content=document.contents, metadata={**added, **document.metadata}
    )


def ask_for(runnable: Runnable[Any, Any], k: int) -> Runnable[Any, Any] | None:
    """``runnable`` over the same index but for ``k`` hits; None where that cannot be known.

    Only a plain similarity search whose one number is k is sure to be what the factory would build.
    """
    if type(runnable) is not VectorStoreRetriever or runnable.search_type != "similarity":
        return None
    if "k" not in runnable.search_kwargs or set(runnable.search_kwargs) - {"k", "filter"}:
        return None
    return runnable.model_copy(update={"search_kwargs": {**runnable.search_kwargs, "k": k}})


class HarnessRetriever(BaseRetriever):
    """A retriever of the harness as a LangChain retriever; made by
    :func:`retrieval_bench_retrievers.langchain.as_langchain`."""

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
        found = []
        for hit in ranking:
            known = self.documents.get(hit.doc_id)
            # EnsembleRetriever takes equal page content for one document: an id keeps them apart.
            document = to_langchain(known or Document(hit.doc_id, text=hit.doc_id))
            if ranking.scores is not None:
                document.metadata["score"] = hit.score
            found.append(document)
        return found


class AnswerReader:
    """Turns what LangChain returns into a ranking, by the ids of the documents, never their texts.

    Args:
        name: of the factory, for messages.
        id_key: the metadata key that holds the document id; None = ``Document.id``.
        score_key: the metadata key that holds the score; None = no scores.
        known_ids: ids that may come back; None where the corpus is not known.
    """

    def __init__(
        self,
        name: str,
        id_key: str | None,
        score_key: str | None,
        known_ids: Container[str] | None,
    ) -> None:
        self._name = name
        self._id_key = id_key
        self._score_key = score_key
        self._known_ids = known_ids
        self._id_place = "Document.id" if id_key is None else f"metadata key {id_key!r}"

    def read(self, found: Any, stages: Mapping[str, int] = EMPTY) -> Ranking:
        """All of ``found`` in its order, with ``stages``; an id may stand in it more than once.

        Raises:
            ContractError: no list of documents, a document without an id or with one that is not
                in the corpus, a score that is missing or rises.
        """
        if not isinstance(found, list | tuple):
            raise self._no_documents(found)
        ids: list[str] = []
        scores: list[float] | None = None if self._score_key is None else []
        known, key = self._known_ids, self._id_key
        for document in found:
            if not isinstance(document, LangChainDocument):
                raise self._no_documents(document, "a list with ")
            doc_id: Any = document.id if key is None else document.metadata.get(key)
            if type(doc_id) is not str or not doc_id:
                doc_id = self._as_text(doc_id, document)
            if known is not None and doc_id not in known:
                raise self._unknown(doc_id, document)
            ids.append(doc_id)
            if scores is not None:
                scores.append(self._score_of(document, scores))
        return Ranking(ids, scores, stages)

    def _as_text(self, doc_id: Any, document: LangChainDocument) -> str:
        if isinstance(doc_id, int) and not isinstance(doc_id, bool):
            return str(doc_id)
        raise ContractError(
            f"{self._name} returned a document without an id ({doc_id!r})",
            where=self._id_place,
            accepted=f"text or a whole number; metadata keys there: {_keys(document)}",
            fix="give the engine the ids (ids=[...] or Document(id=...)), or name the metadata "
            "key that holds the id: id_key",
        )

    def _unknown(self, doc_id: str, document: LangChainDocument) -> ContractError:
        return ContractError(
            f"{self._name} returned the id {doc_id!r}, which is not in the corpus"
            + (": an engine without ids makes new ones on every build" * _is_uuid(doc_id)),
            where=self._id_place,
            accepted="ids of the documents that the factory got; metadata keys there: "
            + _keys(document),
            fix="hand the ids on (ids=[d.id for d in documents]); a text splitter drops them, "
            "then use `id_key: doc_id`",
        )

    def _score_of(self, document: LangChainDocument, before: Sequence[float]) -> float:
        raw: Any = document.metadata.get(str(self._score_key))
        try:
            score = float(raw)
        except (TypeError, ValueError):
            raise ContractError(
                f"{self._name} returned a document with {raw!r} for a score",
                where=f"metadata key {self._score_key!r}",
                accepted=f"a number; metadata keys there: {_keys(document)}",
                fix="leave score_key out to rank by the order of the list",
            ) from None
        if before and score > before[-1]:
            raise ContractError(
                f"scores of {self._name} rise from {before[-1]:.6g} to {score:.6g} at rank "
                f"{len(before) + 1}",
                where=f"metadata key {self._score_key!r}",
                accepted="best first: scores never rise",
                fix="leave score_key out to rank by the order of the list; negate distances",
            )
        return score

    def _no_documents(self, found: Any, prefix: str = "") -> ContractError:
        if inspect.iscoroutine(found):
            found.close()
        return ContractError(
            f"{self._name} answered a query with {prefix}{described(found)}",
            accepted="a list of LangChain documents",
            fix=(
                "end the chain where its documents are, for example chain.pick('context')"
                if isinstance(found, Mapping)
                else "return the documents themselves"
            ),
        )


def described(value: Any) -> str:
    """The type of ``value`` for a message, with the keys of a mapping."""
    if isinstance(value, Mapping):
        return f"{type(value).__name__} (keys {', '.join(map(str, value)) or 'none'})"
    return "None" if value is None else type(value).__name__


def advice(value: Any) -> str:
    """What to do about a factory that returned ``value``, which is no Runnable."""
    if isinstance(value, VectorStore):
        return "return store.as_retriever(search_kwargs={'k': k})"
    if value is None:
        return "end the factory with `return`"
    return "wrap it: RunnableLambda(function)" if callable(value) else "return the retriever itself"


def _keys(document: LangChainDocument) -> str:
    return ", ".join(map(str, document.metadata)) or "none"


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
