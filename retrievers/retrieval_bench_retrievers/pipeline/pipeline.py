"""Rewrite, retrieve, rerank: steps one after the other as one retriever.

Each step has its own time (stage ``step:NAME``; the end of one is the beginning of the next) and
keeps what it made in ``Ranking.steps``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from time import perf_counter_ns
from typing import Any, ClassVar

from retrieval_bench.core.calls.usage import collected, report
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.notices import with_text
from retrieval_bench.core.retriever import (
    Answers,
    Capabilities,
    Part,
    PartKind,
    Retriever,
    require_index,
    require_k,
)
from retrieval_bench.core.types import Document, Documents, Query, Ranking
from retrieval_bench_retrievers.hybrid.legs import raise_together, told_from
from retrieval_bench_retrievers.pipeline.finding import MORE_TEXTS, Retrieving, Rewriting
from retrieval_bench_retrievers.pipeline.reading import Filtering, Reading, Reranking
from retrieval_bench_retrievers.pipeline.running import Passing, Running, close_steps
from retrieval_bench_retrievers.pipeline.steps import (
    STEPS,
    AnyStep,
    RerankStep,
    RetrieveStep,
    RewriteStep,
    steps_of,
)

DEPTH = 100
"""Hits that a retriever is asked for whose list a step reads, where nothing is said."""

_DEPTHS = (20, 50, 100, 200)
_TOPS = (5, 10, 20, 50)
"""Worth trying."""


class Pipeline(Retriever):
    """Steps one after the other: queries are rewritten, documents retrieved, then reranked.

    Args:
        steps: the retriever is asked for ``depth`` hits, or k if that is more; without it for k,
            or for 100 where a step reads the documents. Written as

    Raises:
        HarnessError: everything that is wrong with the steps, in one message.
    """

    accepts: ClassVar[Mapping[str, str]] = {"steps": STEPS}

    def __init__(self, *, steps: Sequence[Mapping[str, Any]]) -> None:
        self._given, names = steps_of(steps)
        self._steps: list[Running] = []
        self._borrowed = False
        problems: list[HarnessError] = []
        try:
            for step, name in zip(self._given, names, strict=True):
                if getattr(step, "on", True):
                    try:
                        with told_from("step", name, "pipeline"):
                            self._steps.append(_running(step, name))
                    except HarnessError as problem:
                        problems.append(problem)
            raise_together(problems)
        except BaseException:
            self.close()
            raise
        self._documents: dict[str, Document] | None = None
        self._indexed = False

    @property
    def steps(self) -> Sequence[Running]:
        """The steps that are on."""
        return self._steps

    @property
    def retrieving(self) -> Retrieving:
        """The step that retrieves."""
        return next(step for step in self._steps if isinstance(step, Retrieving))

    @property
    def retriever(self) -> Retriever:
        """The retriever of the step that retrieves."""
        return self.retrieving.retriever

    @property
    def reads_documents(self) -> bool:
        """True if a step reads the texts of documents."""
        return any(isinstance(step, Reading) for step in self._steps)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the retriever; external only where no step reads documents, with
        scores only where the last step has some."""
        own = self.retriever.capabilities
        scored = own.has_scores or any(isinstance(step, Rewriting) for step in self._steps)
        for step in self._steps:
            if isinstance(step, Reranking):
                scored = step.reranker.has_scores
        external = own.external and not self.reads_documents
        tolerance = max(own.score_tolerance, 1e-5 if self.reads_documents else 0.0)
        return replace(own, external=external, has_scores=scored, score_tolerance=tolerance)

    def use_language(self, language: str | None) -> None:
        """Passed on."""
        self.retriever.use_language(language)

    def use_filters(self, fields: Sequence[str]) -> None:
        """Passed on."""
        self.retriever.use_filters(fields)

    def use_corpus(self, documents: Documents | None, unit_of: Mapping[str, str]) -> None:
        """Passed on without units: later steps read documents."""
        self.retriever.use_corpus(documents, {})

    def use_k(self, k: int) -> None:
        """The retriever is told what it will be asked for."""
        self.retriever.use_k(self.depth(k))

    def server_pid(self) -> int | None:
        """Return the process id of the retriever's server."""
        return self.retriever.server_pid()

    def prepare(self) -> None:
        """Load the models of all steps."""
        for step in self._steps:
            with told_from("step", step.name, "pipeline"):
                step.prepare()

    def index(self, documents: Iterable[Document]) -> None:
        """Let the retriever index ``documents``, unless it is external; keep them where a step
        reads them."""
        self._indexed = False
        if iter(documents) is documents:
            documents = list(documents)
        self.prepare()
        with told_from("step", self.retrieving.name, "pipeline"):
            if not self.retriever.capabilities.external:
                self.retriever.progress = self.progress
                self.retriever.index(documents)
        if self.reads_documents:
            self._documents = {document.id: document for document in documents}
            for step in self._steps:
                if isinstance(step, Reading):
                    step.use_documents(self._documents)
        self._indexed = True

    def depth(self, k: int) -> int:
        """Hits that the retriever is asked for."""
        own = self.retrieving.depth
        return max(k, own if own is not None else DEPTH if self.reads_documents else k)

    def search(self, query: Query, k: int) -> Ranking:
        """The first ``k`` of what the last step leaves.

        Raises:
            ContractError: a step broke its contract; as any exception of a step, it carries a note
                with the name of the step.
            CallError: a reranker gave no numbers, or documents that it did not get.
        """
        begin = perf_counter_ns()
        require_k(k)
        require_index(self._indexed or self.capabilities.external, self)
        passing = Passing(query, self.depth(k), [query.text])
        stages: dict[str, int] = {}
        try:
            for step in self._steps:
                stage = f"step:{step.name}"
                with told_from("step", step.name, "pipeline"), collected() as reported:
                    try:
                        step.run(passing)
                    finally:
                        used_up = reported()
                        step.reported |= used_up is not None
                        passing.used(stage, used_up, step.price)
                end = perf_counter_ns()
                stages[stage] = end - begin
                begin = end
        except BaseException:
            for used in passing.usage.values():  # a call that fails is paid for, too
                report(used)
            raise
        stages |= passing.stages
        found, steps = passing.ranking.first(k), passing.steps
        return replace(found, stages=stages, steps=steps, usage=passing.usage)

    def describe(self) -> Mapping[str, Any]:
        """Describe each step, by name, and the depth."""
        own = {step.name: step.describe() for step in self._steps}
        depth = self.retrieving.depth or (DEPTH if self.reads_documents else None)
        facts = {"steps": own, "depth": depth}
        inner = own[self.retrieving.name].get("parallel")
        return facts if inner is None else {**facts, "parallel": inner}

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """List the retriever's own facts, and how often steps gave less than they got."""
        counts = [fact for step in self._steps for fact in step.facts()]
        return [*self.retriever.health_facts(queries), *counts]

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """The warnings of the retriever, and of steps that did not do their work."""
        own = [
            with_text(warning, f"{step.name}: {warning}")
            for step in self._steps
            for warning in [*step.warnings(), *_unpriced(step)]
        ]
        return [*self.retriever.health(queries), *own]

    def search_space(self) -> Mapping[str, Sequence[Any]]:
        """The depth, ``top``, and which steps are on."""
        space: dict[str, Sequence[Any]] = {}
        for at, step in enumerate(self._given):
            if isinstance(step, RetrieveStep):
                own = step.depth or (DEPTH if self.reads_documents else None)
                if own is not None and not self.capabilities.replays:
                    space[f"steps.{at}.depth"] = [own, *(d for d in _DEPTHS if d != own)]
                continue
            space[f"steps.{at}.on"] = [step.on, not step.on]
            if isinstance(step, RerankStep) and step.top is not None:
                space[f"steps.{at}.top"] = [step.top, *(t for t in _TOPS if t != step.top)]
        return space

    def shared(self, memory: Answers) -> Mapping[str, Any]:
        """Return the object that each step that is on asks, with its answers from ``memory``."""
        on = [at for at, step in enumerate(self._given) if getattr(step, "on", True)]
        shared = {}
        for at, step in zip(on, self._steps, strict=True):
            kind, stands_for = step.remembered(memory)
            if kind:
                shared[f"steps.{at}.{kind}"] = stands_for
        return shared

    def parts(self, k: int) -> Sequence[Part]:
        """Each step that can be left out, the depth, and the parts of the retriever."""
        # Without a step the depth must stay what it is with it.
        depth = self.depth(k)
        fixed = self.retrieving.with_retriever(self.retriever, depth)
        steps: list[Running] = [fixed if step is self.retrieving else step for step in self._steps]
        parts, gets = [], self.retrieving.name  # of several texts it has another name
        for at, step in enumerate(steps):
            kind = _kind(step)
            if kind is not None:
                more = [f"{MORE_TEXTS}{step.name}"] if kind == "rewriting" else []
                # What it cuts off, a later step would read without it: nobody timed that.
                later = any(isinstance(step, Reading) for step in steps[at + 1 :])
                parts.append(
                    Part(
                        step.name,
                        kind,
                        self.with_steps([*steps[:at], *steps[at + 1 :]]),
                        stages=(f"step:{step.name}", *more),
                        timed=not (isinstance(step, Reading) and later),
                        gets=gets if isinstance(step, Reading) else "",
                        gives=step.name if isinstance(step, Reading) else "",
                    )
                )
            if isinstance(step, Reading):
                gets = step.name
        if depth > k:
            parts.append(self._shallow(steps, k))
        return [*parts, *self._inside(steps, depth)]

    def _shallow(self, steps: Sequence[Running], k: int) -> Part:
        """Rerankers take time for each document; what the retriever would save is not known."""
        depth = self.depth(k)
        flat = [
            step.with_retriever(step.retriever, k) if isinstance(step, Retrieving) else step
            for step in steps
        ]
        reranks = tuple(f"step:{step.name}" for step in steps if isinstance(step, Reranking))
        reading = next((step.name for step in steps if isinstance(step, Reading)), "")
        return Part(
            f"{reading} depth {depth}".strip(),
            "depth",
            self.with_steps(flat),
            f"depth {k}",
            stages=reranks[:1],
            share=1 - k / depth,
            timed=len(reranks) == 1,
            gets=self.retrieving.name,
        )

    def _inside(self, steps: Sequence[Running], depth: int) -> list[Part]:
        """The parts of the retriever, each left out of the whole."""
        parts = []
        at = next(at for at, step in enumerate(steps) if isinstance(step, Retrieving))
        retrieving = self.retrieving
        for part in self.retriever.parts(depth):
            inner = retrieving.with_retriever(part.without, depth)
            whole = self.with_steps([*steps[:at], inner, *steps[at + 1 :]])
            own = ("step:", MORE_TEXTS)
            names = [stage for stage in (*part.stages, *part.beside) if stage.startswith(own)]
            renamed = {name: f"{retrieving.name}.{name}" for name in names}
            parts.append(part.inside(retrieving.name, whole, renamed))
        return parts

    def over(self, memory: Answers, path: str = "") -> Pipeline:
        """The same with every step over ``memory``."""
        before = f"{path}/" if path else ""
        return self.with_steps([step.over(memory, f"{before}{step.name}") for step in self._steps])

    def with_steps(self, steps: Sequence[Running]) -> Pipeline:
        """The same with other ``steps``, which are not closed with it."""
        other = copy(self)
        other._steps = list(steps)
        other._borrowed = True
        return other

    def disk_bytes(self) -> int | None:
        """Return the bytes of the retriever on disk."""
        return self.retriever.disk_bytes()

    def close(self) -> None:
        """Close every step."""
        if not self._borrowed:
            self._borrowed = True
            close_steps(self._steps)


def _kind(step: Running) -> PartKind | None:
    if isinstance(step, Rewriting):
        return "rewriting"
    if isinstance(step, Reranking):
        return "reranker"
    return "filter" if isinstance(step, Filtering) else None


def _unpriced(step: Running) -> list[str]:
    if step.price is None or step.reported:
        return []
    return ["it has a price and said nothing of what it used up: call report_usage, or return it"]


def _running(step: AnyStep, name: str) -> Running:
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
