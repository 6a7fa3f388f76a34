"""Reranking: the documents of a list in a new order, by a model, a function or a library's object.

What a reranker gives is checked here, whoever made it: one finite number for each document, or some
of the documents that it got, best first. What is neither makes the query fail and is counted; a
document that it leaves out is gone, as it would be in use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.remembered import kept_list
from retrieval_bench.core.retriever import Answers
from retrieval_bench.core.types import Document, Ranking
from retrieval_bench_retrievers.functions.components import FunctionStep


@dataclass(frozen=True, slots=True)
class Reranked:
    """Order that a reranker made of a list.

    Attributes:
        positions: of documents in the list that it got, best first, each at most once.
        scores: one for each of ``positions``, never rising; None where it gives none.
        dropped: documents that it left out.
        repeated: times that it gave one again, which do not count.
    """

    positions: Sequence[int]
    scores: NDArray[np.float64] | None
    dropped: int = 0
    repeated: int = 0


class Reranker(ABC):
    """Puts documents into a new order; what it uses up it reports (:func:`.report_usage`).

    Attributes:
        has_scores: it gives a number for each document.
        pointwise: the number of a document does not depend on the others.
    """

    has_scores: bool = True
    pointwise: bool = False

    def prepare(self) -> None:
        """Load a model, unless it is loaded."""
        return

    def index(self, documents: Iterable[Document]) -> None:
        """Told before any call: all documents that may come."""
        del documents

    @abstractmethod
    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """``documents``, one or more, in the order of how well they answer ``text``; what foreign
        code raises is passed through.

        Args:
            scores: that they have so far, one each, if they have any.

        Raises:
            CallError: it gave numbers that are none, too few of them, or documents that it did not
                get.
            ContractError: it gave something else.
        """

    def describe(self) -> Mapping[str, Any]:
        """Facts for the manifest."""
        return {}

    def close(self) -> None:
        """Let go of models and connections."""
        return


class ListReranker(Reranker):
    """An object of a library that gives documents in their new order, without numbers: what it
    leaves out is gone.

    Args:
        made: the object.
        name: of it, for messages.
    """

    has_scores = False

    def __init__(self, made: Any, name: str) -> None:
        self._made = made
        self._name = name

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """See :meth:`Reranker.rerank`."""
        return by_list(self._ids(text, documents, scores), documents, self._name)

    def describe(self) -> Mapping[str, Any]:
        """Its name and type."""
        return {"object": self._name, "type": type(self._made).__name__}

    @abstractmethod
    def _ids(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> list[str]:
        """Ids of what the object gives."""


class FunctionReranker(FunctionStep, Reranker):
    """``function(text, documents, **params)`` gives one number for each document, higher = better;
    it gets the text and a list of :class:`.Document`."""

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """See :meth:`Reranker.rerank`."""
        return by_score(self._call(text, list(documents)), documents, self._name)


class RememberedReranker(Reranker):
    """Gives what ``inner`` gave before, or what a measured ranking kept of it; of one that is
    pointwise, each document's number by itself.

    Args:
        path: of the step that ``inner`` stands in, as kept lists are named.
    """

    def __init__(self, inner: Reranker, memory: Answers, path: str) -> None:
        self._inner = inner
        self._memory = memory
        self._path = path
        self._scores: dict[str, dict[str, float]] = {}
        self.has_scores = inner.has_scores
        self.pointwise = inner.pointwise

    def rerank(
        self, text: str, documents: Sequence[Document], scores: Sequence[float] | None
    ) -> Reranked:
        """See :meth:`Reranker.rerank`."""
        if self.pointwise:
            return by_score(self._scored(text, documents), documents, self._path)
        ids = tuple(document.id for document in documents)

        def kept(at: str, ranking: Ranking) -> Reranked | None:
            kept_ranking = kept_list(at, ranking)
            if kept_ranking is None or not set(kept_ranking.doc_ids) <= set(ids):
                return None
            own = None if kept_ranking.scores is None else np.asarray(kept_ranking.scores)
            return replace(by_list(kept_ranking.doc_ids, documents, self._path), scores=own)

        reranked: Reranked = self._memory.answer(
            self._path, (text, ids), kept, lambda: self._inner.rerank(text, documents, scores)
        )
        return reranked

    def _scored(self, text: str, documents: Sequence[Document]) -> list[float]:
        """The number of each, of which those are asked for that are not known."""
        known = self._scores.setdefault(text, {})
        if any(document.id not in known for document in documents):
            ranking: Ranking | None = self._memory.kept(self._path, kept_list)
            if ranking is not None and ranking.scores is not None:
                known |= dict(zip(ranking.doc_ids, map(float, ranking.scores), strict=True))
        missing = [document for document in documents if document.id not in known]
        if missing:
            made: Reranked = self._memory.anew(
                self._path, lambda: self._inner.rerank(text, missing, None)
            )
            if made.scores is not None:
                for at, score in zip(made.positions, made.scores.tolist(), strict=True):
                    known[missing[at].id] = score
        return [known[document.id] for document in documents]


def by_score(raw: Any, documents: Sequence[Document], name: str) -> Reranked:
    """All ``documents``, those of the highest numbers in ``raw`` first, ties as they stood.

    Raises:
        CallError: not one finite number for each.
        ContractError: no numbers.
    """
    try:
        if isinstance(raw, str | bytes | Mapping):
            raise TypeError
        if hasattr(raw, "detach"):  # numpy reads no tensor that learns, is elsewhere, or bfloat16
            raw = raw.detach().cpu().double()
        scores = np.asarray(raw if hasattr(raw, "__array__") else list(raw), dtype=np.float64)
    except (TypeError, ValueError):
        raise ContractError(
            f"the reranker {name} gave {_shown(raw)}",
            accepted="one number for each document, in their order",
            fix="return [score for document in documents]",
        ) from None
    if scores.shape == (len(documents), 1):  # logits of a model with one label
        scores = scores[:, 0]
    if scores.shape != (len(documents),):
        shape = f" of the shape {scores.shape}" if scores.ndim != 1 else ""
        raise CallError(
            f"the reranker {name} gave {scores.size:,} scores{shape} for {len(documents):,} "
            "documents"
        )
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        first = documents[int(wrong[0])].id
        raise CallError(
            f"the reranker {name} gave the score {scores[wrong[0]]} to document {first!r}"
            + (f" and {len(wrong) - 1:,} more that are no numbers" if len(wrong) > 1 else "")
        )
    order = np.argsort(-scores, kind="stable")
    return Reranked(order.tolist(), scores[order])


def by_list(ids: Sequence[Any], documents: Sequence[Document], name: str) -> Reranked:
    """Order those of ``documents`` whose ids are in ``ids``, as in that list.

    Raises:
        CallError: an id that is none of theirs.
    """
    place = {document.id: at for at, document in enumerate(documents)}
    invented = [doc_id for doc_id in ids if doc_id not in place]
    if invented:
        raise CallError(
            f"the reranker {name} gave document {invented[0]!r}, which it did not get"
            + (f", and {len(invented) - 1:,} more" if len(invented) > 1 else "")
        )
    kept = list(dict.fromkeys(place[doc_id] for doc_id in ids))
    return Reranked(kept, None, len(documents) - len(kept), len(ids) - len(kept))


def _shown(raw: Any) -> str:
    if isinstance(raw, list | tuple) and raw:
        return f"a list with {type(raw[0]).__name__}"
    return "None" if raw is None else type(raw).__name__
