"""State that goes from step to step of a pipeline, and what a step at work is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from retrieval_bench.core.calls.usage import Price
from retrieval_bench.core.retriever import Answers
from retrieval_bench.core.types import Query, Ranking, StepTrace, Usage


@dataclass(slots=True)
class Passing:
    """State that goes from step to step.

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
        price: of its usage.
        reported: whether it ever said what it used up.
    """

    def __init__(self, name: str, price: Price | None = None) -> None:
        self.name = name
        self.price = price
        self.reported = False

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
        """Facts that are no reason to worry."""
        return ()

    def warnings(self) -> Sequence[str]:
        """Warnings of what happened."""
        return ()

    def close(self) -> None:
        """Let go of models and connections."""
        return


def close_steps(steps: Sequence[Running]) -> None:
    """Close each, also when closing one of them raises."""
    with ExitStack() as stack:
        for step in steps:
            stack.callback(step.close)
