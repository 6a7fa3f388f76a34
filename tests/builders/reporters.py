"""A reporter that remembers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from retrieval_bench.core.progress import Phase, Step, Task


class Remembering:
    """Keeps the phases it is told of, how far each came, and how many there are of a step.

    Attributes:
        events: the text of a phase when it begins, "end" when it is over.
    """

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.events: list[str] = []
        self.progress: list[tuple[int, int]] = []

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[Task]:
        self.phases.append(phase)
        self.events.append(phase.text)
        yield lambda done, total: self.progress.append((done, total))
        self.events.append("end")

    def count(self, step: Step) -> int:
        return sum(phase.step is step for phase in self.phases)
