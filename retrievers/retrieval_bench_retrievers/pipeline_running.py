"""The steps of a pipeline at work: each takes what the one before it made, and leaves its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from time import perf_counter_ns
from typing import Any

import numpy as np

from retrieval_bench.core.errors import ContractError, counted
from retrieval_bench.core.failures import CallError
from retrieval_bench.core.ranking import checked_ranking, top_k
from retrieval_bench.core.remembered import kept_list, numbered, question_of
from retrieval_bench.core.retriever import Answers, Retriever
from retrieval_bench.core.types import EMPTY, Document, Query, Ranking, StepTrace, Usage
from retrieval_bench.core.usage import Price
from retrieval_bench_retrievers.components import Call, component
from retrieval_bench_retrievers.fusion import Pool
from retrieval_bench_retrievers.legs import built_alone, steps_inside
from retrieval_bench_retrievers.pipeline_steps import (
    AnyStep,
    FilterStep,
    RerankStep,
    RetrieveStep,
    RewriteStep,
    fusion_of,
)
from retrieval_bench_retrievers.reranking import Reranked, Reranker, by_list, by_score, reranker_of
from retrieval_bench_retrievers.rewriting import Rewriter, Rewritten, rewriter_of

MORE_TEXTS = "more texts of "
"""Begins the stage of what several texts take beyond the first; the step follows that made them."""


@dataclass(slots=True)
class Passing:
    """What goes from step to step.

    Attributes:
        query: as it was asked.
        depth: hits that the retriever is asked for.
        texts: what to search for.
        several: name of the step that made several texts of one; empty = none did.
        fusion: how lists of several texts become one.
        ranking: of the last step that made one.
        steps: what each step made.
        stages: nanoseconds inside of steps.
        usage: what was used up, by stage.
    """

    query: Query
    depth: int
    texts: Sequence[str]
    several: str = ""
    fusion: Mapping[str, Any] | None = None
    ranking: Ranking = field(default_factory=lambda: Ranking(()))
    steps: dict[str, StepTrace] = field(default_factory=dict)
    stages: dict[str, int] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)

    def used(self, stage: str, usage: Usage | None, price: Price | None = None) -> None:
        """Add what a stage used up."""
        if usage is None:
            return
        priced = usage if price is None else price.of(usage)
        before = self.usage.get(stage)
        self.usage[stage] = priced if before is None else before + priced


class Running(ABC):
    """One step.

    Attributes:
        name: in stages and lists.
        reported: whether it ever said what it used up.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.reported = False

    @property
    def price(self) -> Price | None:
        """Of what it uses up."""
        return None

    @abstractmethod
    def run(self, passing: Passing) -> None:
        """Do the step's work on ``passing``."""

    @abstractmethod
    def over(self, memory: Answers, path: str) -> Running:
        """The same with answers from ``memory``."""

    def remembered(self, memory: Answers) -> tuple[str, Any]:
        """The key of the step that names what it asks, and an object in its place that has its
        answers from ``memory``; no key where there is none."""
        return "", None

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """Facts for the manifest."""

    def prepare(self) -> None:
        """Load a model."""
        return

    def facts(self) -> Sequence[str]:
        """What happened that is no reason to worry."""
        return ()

    def warnings(self) -> Sequence[str]:
        """What happened that is one."""
        return ()

    def close(self) -> None:
        """Let go of models and connections."""
        return


class Rewriting(Running):
    """Makes other texts of those of the query; where the rewriter gives nothing, the text stays."""

    def __init__(self, step: RewriteStep, name: str) -> None:
        super().__init__(name)
        self.step = step
        self._rewriter = rewriter_of(step.rewrite, step.params, pass_query=step.pass_query)
        self._calls = self._nothing = 0

    @property
    def price(self) -> Price | None:
        """See :class:`Running`."""
        return self.step.price

    def run(self, passing: Passing) -> None:
        """See :class:`Running`."""
        texts: list[str] = []
        for at, text in enumerate(passing.texts, start=1):
            found = self._rewriter.rewrite(replace(passing.query, text=text))
            self._calls += 1
            self._nothing += not found.texts
            own = [text] if self.step.keep or not found.texts else []
            own = list(dict.fromkeys([*own, *found.texts]))
            # One entry for each text that it was asked for, as each has its own answer.
            passing.steps[numbered(self.name, at)] = StepTrace(texts=own)
            texts += own
        before = len(passing.texts)
        passing.texts = list(dict.fromkeys(texts))
        if len(passing.texts) > before:
            passing.several = self.name
        passing.fusion = self.step.fusion

    def remembered(self, memory: Answers) -> tuple[str, Any]:
        """See :class:`Running`."""
        return "rewrite", _RememberedRewriter(self._rewriter, memory, self.name)

    def over(self, memory: Answers, path: str) -> Rewriting:
        """See :class:`Running`."""
        other = copy(self)
        other._rewriter = _RememberedRewriter(self._rewriter, memory, path)
        return other

    def describe(self) -> Mapping[str, Any]:
        """See :class:`Running`."""
        return self._rewriter.describe()

    def warnings(self) -> Sequence[str]:
        """See :class:`Running`."""
        if not self._nothing:
            return ()
        of = f"{self._nothing:,} of {counted(self._calls, 'call')}"
        return [f"it gave nothing in {of}; the text was searched for as it is"]

    def close(self) -> None:
        """See :class:`Running`."""
        self._rewriter.close()


class Retrieving(Running):
    """Asks the retriever for each text, and fuses the lists where there are several.

    Attributes:
        depth: hits that it is asked for, at least; None = as many as are needed.
    """

    def __init__(self, step: RetrieveStep, name: str) -> None:
        super().__init__(name)
        self.depth = step.depth
        made = built_alone(step.retrieve)
        self.retriever = made.retriever
        self._facts = made.facts

    @property
    def fused(self) -> str:
        """The name of the list that several texts come to."""
        return f"{self.name} (fused)"

    def run(self, passing: Passing) -> None:
        """See :class:`Running`."""
        lists: list[Ranking] = []
        first = 0
        for at, text in enumerate(passing.texts, start=1):
            asked = passing.query
            if text != asked.text:
                asked = replace(asked, text=text)
            raw = self.retriever.search(asked, passing.depth)
            has_scores = self.retriever.capabilities.has_scores
            found = checked_ranking(raw, passing.depth, has_scores=has_scores)
            lists.append(found)
            self._keep(passing, found, at)
            if at == 1:
                first = perf_counter_ns()
        passing.ranking = lists[0]
        if len(lists) > 1:
            passing.ranking = self._fuse(passing, lists)
            passing.stages[MORE_TEXTS + passing.several] = perf_counter_ns() - first

    def _keep(self, passing: Passing, found: Ranking, at: int) -> None:
        passing.steps[numbered(self.name, at)] = StepTrace(found.doc_ids, found.scores)
        for path, made in steps_inside([self.name], [found]).items():
            passing.steps[numbered(path, at)] = made
        for stage, nanoseconds in found.stages.items():
            own = self._stage(stage)
            passing.stages[own] = passing.stages.get(own, 0) + nanoseconds
        for stage, usage in found.usage.items():  # by the stage whose time it goes with
            passing.used(f"step:{self.name}" if stage == "call" else self._stage(stage), usage)

    def _stage(self, stage: str) -> str:
        """What a stage of the retriever is called here."""
        return f"{self.name}.{stage}" if stage.startswith(("step:", MORE_TEXTS)) else stage

    def _fuse(self, passing: Passing, lists: Sequence[Ranking]) -> Ranking:
        pool = Pool.of(lists)
        scores = fusion_of(passing.fusion, len(lists)).fuse(pool)
        order = top_k(scores, passing.depth)
        fused = Ranking([pool.doc_ids[at] for at in order.tolist()], scores[order])
        passing.steps[self.fused] = StepTrace(fused.doc_ids, fused.scores)
        return fused

    def with_retriever(self, retriever: Retriever, depth: int | None) -> Retrieving:
        """The same step with another retriever and depth."""
        other = copy(self)
        other.retriever, other.depth = retriever, depth
        return other

    def remembered(self, memory: Answers) -> tuple[str, Any]:
        """See :class:`Running`."""
        return "retrieve", memory.leaf(self.name, self.retriever)

    def over(self, memory: Answers, path: str) -> Retrieving:
        """See :class:`Running`."""
        return self.with_retriever(self.retriever.over(memory, path), self.depth)

    def prepare(self) -> None:
        """See :class:`Running`."""
        self.retriever.prepare()

    def describe(self) -> Mapping[str, Any]:
        """See :class:`Running`."""
        return {**self._facts, **self.retriever.describe()}

    def close(self) -> None:
        """See :class:`Running`."""
        self.retriever.close()


class Reading(Running):
    """A step that reads the documents of the list.

    Attributes:
        documents: of the corpus by id, once it is indexed.
    """

    def __init__(self, step: RerankStep | FilterStep, name: str) -> None:
        super().__init__(name)
        self.documents: Mapping[str, Document] = EMPTY
        self._of = step.text

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

    @property
    def price(self) -> Price | None:
        """See :class:`Running`."""
        return self.step.price

    def run(self, passing: Passing) -> None:
        """See :class:`Running`."""
        if not passing.ranking.doc_ids:
            passing.steps[self.name] = StepTrace([])
            return
        text, documents = self._read(passing)
        scores = passing.ranking.scores
        found = self.reranker.rerank(text, documents, scores if scores is None else list(scores))
        self._calls += 1
        self._short += bool(found.dropped)
        self._dropped += found.dropped
        self._repeated += found.repeated
        ids = [documents[at].id for at in found.positions]
        passing.steps[self.name] = StepTrace(ids, found.scores)
        top = self.step.top
        kept = None if found.scores is None else found.scores[:top]
        passing.ranking = Ranking(ids[:top], kept)

    def remembered(self, memory: Answers) -> tuple[str, Any]:
        """See :class:`Running`."""
        return "rerank", _RememberedReranker(self.reranker, memory, self.name)

    def over(self, memory: Answers, path: str) -> Reranking:
        """See :class:`Running`."""
        other = copy(self)
        other.reranker = _RememberedReranker(self.reranker, memory, path)
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
        self.step = step
        found, self._function, left = component(step.filter, ("text", "documents"), step.params, ())
        self._call: Any = Call(found, left)
        self._calls = self._left_out = 0

    @property
    def price(self) -> Price | None:
        """See :class:`Running`."""
        return self.step.price

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
        scores = None if before.scores is None else np.asarray(before.scores)[kept]
        passing.ranking = Ranking([before.doc_ids[at] for at in kept], scores)
        passing.steps[self.name] = StepTrace(passing.ranking.doc_ids, scores)

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
                found = kept_list(at, ranking)
                return None if found is None else [one in set(found.doc_ids) for one in ids]

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


def running(step: AnyStep, name: str) -> Running:
    """``step`` with what it names built.

    Raises:
        HarnessError: that cannot be had.
    """
    if isinstance(step, RewriteStep):
        return Rewriting(step, name)
    if isinstance(step, RetrieveStep):
        return Retrieving(step, name)
    if isinstance(step, RerankStep):
        return Reranking(step, name)
    return Filtering(step, name)


def close_steps(steps: Sequence[Running]) -> None:
    """Close each, also when closing one of them raises."""
    with ExitStack() as stack:
        for step in steps:
            stack.callback(step.close)


class _RememberedRewriter(Rewriter):
    def __init__(self, inner: Rewriter, memory: Answers, path: str) -> None:
        self._inner = inner
        self._memory = memory
        self._path = path

    def rewrite(self, query: Query) -> Rewritten:
        def kept(at: str, ranking: Ranking) -> Rewritten | None:
            step = ranking.steps.get(at)
            return None if step is None else Rewritten(step.texts)

        found: Rewritten = self._memory.answer(
            self._path, question_of(query), kept, lambda: self._inner.rewrite(query)
        )
        return found


class _RememberedReranker(Reranker):
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
        if self.pointwise:
            return by_score(self._scored(text, documents), documents, self._path)
        ids = tuple(document.id for document in documents)

        def kept(at: str, ranking: Ranking) -> Reranked | None:
            found = kept_list(at, ranking)
            if found is None or not set(found.doc_ids) <= set(ids):
                return None
            own = None if found.scores is None else np.asarray(found.scores)
            return replace(by_list(found.doc_ids, documents, self._path), scores=own)

        found: Reranked = self._memory.answer(
            self._path,
            (text, ids),
            kept,
            lambda: self._inner.rerank(text, documents, scores),
        )
        return found

    def _scored(self, text: str, documents: Sequence[Document]) -> list[float]:
        """The number of each, of which those are asked for that are not known."""
        known = self._scores.setdefault(text, {})
        if any(document.id not in known for document in documents):
            found: Ranking | None = self._memory.kept(self._path, kept_list)
            if found is not None and found.scores is not None:
                known |= dict(zip(found.doc_ids, map(float, found.scores), strict=True))
        missing = [document for document in documents if document.id not in known]
        if missing:
            made: Reranked = self._memory.anew(
                self._path, lambda: self._inner.rerank(text, missing, None)
            )
            if made.scores is not None:
                for at, score in zip(made.positions, made.scores.tolist(), strict=True):
                    known[missing[at].id] = score
        return [known[document.id] for document in documents]
