"""How far a run is: which step it is at, told to whoever shows it.

What a program goes by is the :class:`Step`; its words stand in :data:`TEXTS` and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from retrieval_bench.core.figures import visible

Task = Callable[[int, int], None]
"""Told (done, total) of a phase that takes long."""


class Step(StrEnum):
    """Step that a run is busy with."""

    INDEXING = "indexing"
    LOADING = "loading"
    ENCODING = "encoding"
    SEARCHING = "searching"
    LEAVING_OUT = "leaving out"
    READING = "reading"
    ASKING_LEGS = "asking legs"
    TRYING_SETTINGS = "trying settings"
    STARTING_COLD = "starting cold"
    DUET_LAUNCH = "duet launch"
    CONFIRMING_LAUNCH = "confirming launch"
    CHECKING_OUT = "checking out"
    MAKING_ENVIRONMENT = "making environment"
    WAITING = "waiting"
    WRITING = "writing"


TEXTS: Mapping[Step, str] = {
    Step.INDEXING: "indexing {}",
    Step.LOADING: "loading {}",
    Step.ENCODING: "encoding documents with {}",
    Step.SEARCHING: "searching with {}",
    Step.LEAVING_OUT: "leaving out the parts of {}, one by one",
    Step.READING: "reading with {}",
    Step.ASKING_LEGS: "asking the legs",
    Step.TRYING_SETTINGS: "trying {}",
    Step.STARTING_COLD: "starting from cold",
    Step.DUET_LAUNCH: "launch {}: side by side",
    Step.CONFIRMING_LAUNCH: "launch {}: does the slow-down show again?",
    Step.CHECKING_OUT: "checking out {}",
    Step.MAKING_ENVIRONMENT: "making the environment of {}: once, may take minutes",
    Step.WRITING: "writing to {} and asking for it",
    Step.WAITING: "another process makes {}: waiting for it",
}
"""The words for each step; the braces stand for what it is about."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of a run, for as long as it takes.

    Attributes:
        about: the retriever, revision or number that it is about.
        within: the launch that it happens in, in words; empty where there is one process.
    """

    step: Step
    about: str = ""
    within: str = ""

    @property
    def text(self) -> str:
        """For people."""
        text = TEXTS[self.step].format(visible(self.about))
        return f"{self.within}: {text}" if self.within else text


def forward(task: Task) -> Task:
    """``task``, told of no smaller share than before: a total that grows takes nothing back."""
    share = 0.0

    def told(done: int, total: int) -> None:
        nonlocal share
        share = max(share, min(done / total, 1.0) if total else 0.0)
        task(max(done, math.ceil(share * total - 1e-9)), total)

    return told


class Reporter(Protocol):
    """Shows how far a run is; the command line has one, tests and notebooks need none."""

    def phase(self, phase: Phase) -> AbstractContextManager[Task]:
        """A context for as long as ``phase`` takes; it gives the task to tell of progress."""


class Silent:
    """A :class:`Reporter` that shows nothing."""

    def phase(self, phase: Phase) -> AbstractContextManager[Task]:
        """Nothing is shown."""
        return nullcontext(lambda done, total: None)
