"""The steps of a pipeline that find documents: rewriting says what to ask, retrieving asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from time import perf_counter_ns
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.ranking import checked_ranking, top_k
from retrieval_bench.core.remembered import numbered
from retrieval_bench.core.retriever import Answers, Retriever
from retrieval_bench.core.types import Ranking, StepTrace
from retrieval_bench_retrievers.hybrid.fusion import Pool, with_texts
from retrieval_bench_retrievers.hybrid.legs import built_alone, steps_inside
from retrieval_bench_retrievers.pipeline.rewriting import RememberedRewriter, rewriter_of
from retrieval_bench_retrievers.pipeline.running import Passing, Running
from retrieval_bench_retrievers.pipeline.steps import RetrieveStep, RewriteStep, fusion_of

MORE_TEXTS = "more texts of "
"""Begins the stage of what several texts take beyond the first; the step follows that made them."""


class Rewriting(Running):
    """Makes other texts of those of the query; where the rewriter gives nothing, the text stays."""

    def __init__(self, step: RewriteStep, name: str) -> None:
        super().__init__(name, step.price)
        self.step = step
        self._rewriter = rewriter_of(step.rewrite, step.params, pass_query=step.pass_query)
        self._calls = self._nothing = 0

    def run(self, passing: Passing) -> None:
        """See :class:`Running`."""
        texts: list[str] = []
        for at, text in enumerate(passing.texts, start=1):
            rewritten = self._rewriter.rewrite(replace(passing.query, text=text))
            self._calls += 1
            self._nothing += not rewritten
            own = [text] if self.step.keep or not rewritten else []
            own = list(dict.fromkeys([*own, *rewritten]))
            # One entry for each text that it was asked for, as each has its own answer.
            passing.steps[numbered(self.name, at)] = StepTrace(texts=own)
            texts += own
        before = len(passing.texts)
        passing.texts = list(dict.fromkeys(texts))
        if len(passing.texts) > before:
            passing.several = self.name
        if len(passing.texts) > before or self.step.fusion is not None:
            passing.fusion = self.step.fusion

    def remembered(self, memory: Answers) -> tuple[str, Any]:
        """See :class:`Running`."""
        return "rewrite", RememberedRewriter(self._rewriter, memory, self.name)

    def over(self, memory: Answers, path: str) -> Rewriting:
        """See :class:`Running`."""
        other = copy(self)
        other._rewriter = RememberedRewriter(self._rewriter, memory, path)
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
            ranking = checked_ranking(raw, passing.depth, has_scores=has_scores)
            lists.append(ranking)
            self._keep(passing, ranking, at)
            if at == 1:
                first = perf_counter_ns()
        passing.ranking = lists[0]
        if len(lists) > 1:
            passing.ranking = self._fuse(passing, lists)
            passing.stages[MORE_TEXTS + passing.several] = perf_counter_ns() - first

    def _keep(self, passing: Passing, ranking: Ranking, at: int) -> None:
        passing.steps[numbered(self.name, at)] = StepTrace(ranking.doc_ids, ranking.scores)
        for path, made in steps_inside([self.name], [ranking]).items():
            passing.steps[numbered(path, at)] = made
        for stage, nanoseconds in ranking.stages.items():
            own = self._stage(stage)
            passing.stages[own] = passing.stages.get(own, 0) + nanoseconds
        for stage, usage in ranking.usage.items():  # by the stage whose time it goes with
            passing.used(f"step:{self.name}" if stage == "call" else self._stage(stage), usage)

    def _stage(self, stage: str) -> str:
        """Name a stage of the retriever as it is called here."""
        return f"{self.name}.{stage}" if stage.startswith(("step:", MORE_TEXTS)) else stage

    def _fuse(self, passing: Passing, lists: Sequence[Ranking]) -> Ranking:
        pool = Pool.of(lists)
        scores = fusion_of(passing.fusion, len(lists)).fuse(pool)
        order = top_k(scores, passing.depth)
        came = Ranking([pool.doc_ids[at] for at in order.tolist()], scores[order])
        fused = with_texts(came, lists)
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
