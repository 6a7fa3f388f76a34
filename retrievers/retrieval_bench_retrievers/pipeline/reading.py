"""The steps of a pipeline that read what was found: a reranker orders it, a filter cuts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.errors import ContractError, counted
from retrieval_bench.core.ranking import hits_at, levels
from retrieval_bench.core.remembered import kept_list
from retrieval_bench.core.retriever import Answers
from retrieval_bench.core.types import EMPTY, Document, Ranking, StepTrace
from retrieval_bench_retrievers.functions.components import Call, component
from retrieval_bench_retrievers.pipeline.running import Passing, Running
from retrieval_bench_retrievers.pipeline.steps import FilterStep, RerankStep
from retrieval_bench_retrievers.rerank.named import reranker_of
from retrieval_bench_retrievers.rerank.reranking import RememberedReranker


class Reading(Running):
    """A step that reads the documents of the list.

    Attributes:
        documents: of the corpus by id, once it is indexed.
    """

    def __init__(self, step: RerankStep | FilterStep, name: str) -> None:
        super().__init__(name, step.price)
        self.documents: Mapping[str, Document] = EMPTY
        self._of = step.text

    def use_documents(self, documents: Mapping[str, Document]) -> None:
        """Take the documents of the corpus."""
        self.documents = documents

    def _read(self, passing: Passing) -> tuple[str, list[Document]]:
        """The text that documents are held against, and those of the list."""
        text = passing.query.text if self._of == "original" else passing.texts[0]
        try:
            return text, [self.documents[doc_id] for doc_id in passing.ranking.doc_ids]
        except KeyError as problem:
            raise ContractError(
                f"document {problem.args[0]!r} of the list is not in the corpus",
                accepted="documents of the dataset, whose texts the step reads",
                fix="check the ids that the retriever returns",
            ) from None


class Reranking(Reading):
    """Puts the list into the order that a reranker gives it, and cuts it at ``top``."""

    def __init__(self, step: RerankStep, name: str) -> None:
        super().__init__(step, name)
        self.step = step
        self.reranker = reranker_of(step.rerank, step.params)
        self._calls = self._short = self._dropped = self._repeated = 0

    def use_documents(self, documents: Mapping[str, Document]) -> None:
        """See :class:`Reading`; a reranker that encodes documents does it now."""
        super().use_documents(documents)
        self.reranker.index(documents.values())

    def run(self, passing: Passing) -> None:
        """See :class:`Running`."""
        if not passing.ranking.doc_ids:
            passing.steps[self.name] = StepTrace([])
            return
        text, documents = self._read(passing)
        scores = passing.ranking.scores
        reranked = self.reranker.rerank(text, documents, scores if scores is None else list(scores))
        self._calls += 1
        self._short += bool(reranked.dropped)
        self._dropped += reranked.dropped
        self._repeated += reranked.repeated
        places = list(reranked.positions)
        hits, order = hits_at(passing.ranking, places), levels(passing.ranking)[places]
        ranking = replace(hits, scores=reranked.scores, order=order)
        passing.steps[self.name] = StepTrace(hits.doc_ids, reranked.scores, order=order)
        passing.ranking = ranking.first(len(hits) if self.step.top is None else self.step.top)

    def remembered(self, memory: Answers) -> tuple[str, Any]:
        """See :class:`Running`."""
        return "rerank", RememberedReranker(self.reranker, memory, self.name)

    def over(self, memory: Answers, path: str) -> Reranking:
        """See :class:`Running`."""
        other = copy(self)
        other.reranker = RememberedReranker(self.reranker, memory, path)
        return other

    def prepare(self) -> None:
        """See :class:`Running`."""
        self.reranker.prepare()

    def describe(self) -> Mapping[str, Any]:
        """See :class:`Running`."""
        return {**self.reranker.describe(), "top": self.step.top}

    def facts(self) -> Sequence[str]:
        """See :class:`Running`."""
        if not self._dropped:
            return ()
        return [
            (
                f"{self.name} left out {counted(self._dropped, 'document')} in {self._short:,} of "
                f"{counted(self._calls, 'call')}"
            )
        ]

    def warnings(self) -> Sequence[str]:
        """See :class:`Running`."""
        if not self._repeated:
            return ()
        calls = counted(self._calls, "call")
        return [f"it repeated {self._repeated:,} documents in {calls}; the first place counts"]

    def close(self) -> None:
        """See :class:`Running`."""
        self.reranker.close()


class Filtering(Reading):
    """Leaves out the documents that a function (text, documents) -> flags does not keep."""

    def __init__(self, step: FilterStep, name: str) -> None:
        super().__init__(step, name)
        function, self._function, left = component(
            step.filter, ("text", "documents"), step.params, ()
        )
        self._call: Any = Call(function, left)
        self._calls = self._left_out = 0

    def run(self, passing: Passing) -> None:
        """See :class:`Running`."""
        before = passing.ranking
        kept: list[int] = []
        if before.doc_ids:
            text, documents = self._read(passing)
            flags = self._flags(self._call(text, documents), len(documents))
            kept = [at for at, keep in enumerate(flags) if keep]
        self._calls += 1
        self._left_out += len(before) - len(kept)
        passing.ranking = hits = hits_at(before, kept)
        passing.steps[self.name] = StepTrace(hits.doc_ids, hits.scores, order=hits.order)

    def _flags(self, raw: Any, n: int) -> list[bool]:
        if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Iterable):
            raise self._wrong(raw)
        flags = list(raw)
        wrong = next((at for at, flag in enumerate(flags) if not _is_flag(flag)), None)
        if wrong is not None:
            raise self._wrong(flags[wrong])
        if len(flags) != n:
            raise CallError(
                f"the filter {self._function} gave {len(flags):,} answers for {n:,} documents"
            )
        return [bool(flag) for flag in flags]

    def _wrong(self, raw: Any) -> ContractError:
        return ContractError(
            f"the filter {self._function} gave {type(raw).__name__}",
            accepted="true or false for each document, in their order",
            fix="return [keep(document) for document in documents]",
        )

    def over(self, memory: Answers, path: str) -> Filtering:
        """See :class:`Running`."""
        other, ask = copy(self), self._call

        def answer(text: str, documents: Sequence[Document]) -> Any:
            ids = tuple(document.id for document in documents)

            def kept(at: str, ranking: Ranking) -> Any:
                kept_ranking = kept_list(at, ranking)
                return (
                    None
                    if kept_ranking is None
                    else [doc_id in set(kept_ranking.doc_ids) for doc_id in ids]
                )

            return memory.answer(path, (text, ids), kept, lambda: ask(text, documents))

        other._call = answer
        return other

    def describe(self) -> Mapping[str, Any]:
        """See :class:`Running`."""
        return {"function": self._function}

    def facts(self) -> Sequence[str]:
        """See :class:`Running`."""
        return [
            (
                f"{self.name} left out {counted(self._left_out, 'document')} in "
                f"{counted(self._calls, 'call')}"
            )
        ]

    def close(self) -> None:
        """See :class:`Running`."""
        self._call.close()


def _is_flag(given: Any) -> bool:
    return isinstance(given, bool | np.bool_) or (isinstance(given, int) and given in (0, 1))
