"""A pipeline without each of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from retrieval_bench.core.retriever import Part, PartKind, Retriever
from retrieval_bench_retrievers.pipeline.finding import MORE_TEXTS, Retrieving, Rewriting
from retrieval_bench_retrievers.pipeline.reading import Filtering, Reading, Reranking
from retrieval_bench_retrievers.pipeline.running import Running


class Pipeline(Protocol):
    """Pipeline as its parts are made from it."""

    @property
    def steps(self) -> Sequence[Running]:
        """The steps that are on."""

    @property
    def retrieving(self) -> Retrieving:
        """The step that retrieves."""

    def depth(self, k: int) -> int:
        """Hits that the retriever is asked for."""

    def with_steps(self, steps: Sequence[Running]) -> Retriever:
        """The same with other ``steps``."""


def pipeline_parts(pipeline: Pipeline, k: int) -> list[Part]:
    """See :meth:`.Pipeline.parts`."""
    # Without a step the depth must stay what it is with it.
    retrieving, depth = pipeline.retrieving, pipeline.depth(k)
    fixed = retrieving.with_retriever(retrieving.retriever, depth)
    steps: list[Running] = [fixed if step is retrieving else step for step in pipeline.steps]
    found, gets = [], _retrieved(steps)
    for at, step in enumerate(steps):
        kind = _kind(step)
        if kind is not None:
            more = [f"{MORE_TEXTS}{step.name}"] if kind == "rewriting" else []
            # What it cuts off, a later step would read without it: nobody timed that.
            later = any(isinstance(step, Reading) for step in steps[at + 1 :])
            found.append(
                Part(
                    step.name,
                    kind,
                    pipeline.with_steps([*steps[:at], *steps[at + 1 :]]),
                    stages=(f"step:{step.name}", *more),
                    timed=not (isinstance(step, Reading) and later),
                    gets=gets if isinstance(step, Reading) else "",
                    gives=step.name if isinstance(step, Reading) else "",
                )
            )
        if isinstance(step, Reading):
            gets = step.name
    if depth > k:
        found.append(_depth(pipeline, steps, k))
    return [*found, *_inside(pipeline, steps, depth)]


def _kind(step: Running) -> PartKind | None:
    if isinstance(step, Rewriting):
        return "rewriting"
    if isinstance(step, Reranking):
        return "reranker"
    return "filter" if isinstance(step, Filtering) else None


def _retrieved(steps: Sequence[Running]) -> str:
    """The name of the list that the first step that reads documents gets; of several texts it has
    another name, which only a ranking tells."""
    return next(step.name for step in steps if isinstance(step, Retrieving))


def _depth(pipeline: Pipeline, steps: Sequence[Running], k: int) -> Part:
    """Rerankers take time for each document; what the retriever would save is not known."""
    depth = pipeline.depth(k)
    flat = [
        step.with_retriever(step.retriever, k) if isinstance(step, Retrieving) else step
        for step in steps
    ]
    reranks = tuple(f"step:{step.name}" for step in steps if isinstance(step, Reranking))
    reading = next((step.name for step in steps if isinstance(step, Reading)), "")
    return Part(
        f"{reading} depth {depth}".strip(),
        "depth",
        pipeline.with_steps(flat),
        f"depth {k}",
        stages=reranks[:1],
        share=1 - k / depth,
        timed=len(reranks) == 1,
        gets=_retrieved(steps),
    )


def _inside(pipeline: Pipeline, steps: Sequence[Running], depth: int) -> list[Part]:
    stages = []
    at = next(at for at, step in enumerate(steps) if isinstance(step, Retrieving))
    retrieving = pipeline.retrieving
    for part in retrieving.retriever.parts(depth):
        inner = retrieving.with_retriever(part.without, depth)
        whole = pipeline.with_steps([*steps[:at], inner, *steps[at + 1 :]])
        own = ("step:", MORE_TEXTS)
        names = [stage for stage in (*part.stages, *part.beside) if stage.startswith(own)]
        renamed = {name: f"{retrieving.name}.{name}" for name in names}
        stages.append(part.inside(retrieving.name, whole, renamed))
    return stages
