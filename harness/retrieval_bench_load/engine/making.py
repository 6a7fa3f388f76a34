"""A retriever that levels of load are made of."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace

from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench_load.call_warnings import Answers
from retrieval_bench_load.engine.generator import Generator, Level, LevelCalls
from retrieval_bench_load.engine.levels import LevelResult, State, judged
from retrieval_bench_load.engine.stalls import LEAST_S, Stalls

SLOTS = 32
"""Calls that a process has under way at most, of a service. What runs in the process itself has as
many as there are cores, or one where several threads may not ask it."""

_MOST_SLOTS, _ROOM_S = 256, 1.0
"""To which slots grow as calls of a service need them: a process has no more threads; there is room
for what a rate makes in so many seconds, or in twice the time of a call."""


@dataclass(slots=True)
class Subject:
    """A retriever that levels are made of, one after the other, by a generator of its own.

    Attributes:
        experiment: the retriever, closed, and what it is asked.
        slots: calls under way at most, of each process; at a rate, those it begins with.
        grows: there are more where calls need them.
        longest_s: for which calls may be under way.
        alone_s: that one call takes.
        answers, stalls: of its levels.
    """

    experiment: Experiment
    generator: Generator
    slots: int
    reporter: Reporter
    grows: bool = False
    longest_s: float = _ROOM_S
    alone_s: float = 0.0
    answers: Answers = field(init=False)
    stalls: Stalls = field(default_factory=Stalls)

    def __post_init__(self) -> None:
        one = self.experiment
        can = one.candidates[0].capabilities
        self.answers = Answers(one.dataset, one.queries, can, one.k)

    @classmethod
    def ready(
        cls,
        experiment: Experiment,
        generator: Generator,
        reporter: Reporter | None,
        *,
        processes: int = 1,
        slots: int | None = None,
        longest_s: float = 0.0,
    ) -> Subject:
        """Prepared in so many processes.

        Args:
            slots: that were asked for; None = as many as fit the retriever.
            longest_s: for which calls may be under way.

        Raises:
            HarnessError: it cannot be prepared, or has fewer slots.
        """
        (candidate,) = experiment.candidates
        reporter = reporter or Silent()
        with reporter.phase(Phase(Step.INDEXING, candidate.name)):
            generator.prepare(processes)
        if others := generator.fingerprints - {experiment.dataset.fingerprint}:
            raise ConfigError(
                f"{experiment.dataset.name} has other content where the generator runs",
                where=f"fingerprint {others.pop()}, here {experiment.dataset.fingerprint}",
                accepted="the same dataset under the same path on every machine",
                fix="put it into the folder that all of them see",
            )
        own = SLOTS if generator.external else os.cpu_count() or 1
        grows = generator.external and slots is None
        slots = slots or (own if generator.threads else 1)
        if slots > 1 and not generator.threads:
            raise ConfigError(
                f"--slots {slots} of {candidate.name}, which several threads may not ask",
                accepted="1, or a retriever whose Capabilities(threads=True) says that they may",
                fix="leave --slots out; --processes gives each its own",
            )
        return cls(experiment, generator, slots, reporter, grows, max(_ROOM_S, longest_s))

    @property
    def name(self) -> str:
        """The name of the retriever."""
        return self.experiment.candidates[0].name

    def warnings(self) -> list[str]:
        """Warnings of all levels so far: those that ``bench`` has, and standstills."""
        health = self.generator.health(self.answers.took)
        known, _, texts = self.experiment.survey()
        told = self.answers.warnings(health, known, texts)
        return [*self.stalls.warnings(), *told]

    def make(self, level: Level) -> tuple[LevelCalls, LevelResult]:
        """The calls of a level, and what they show. Where several threads may not ask the
        retriever, each client has a process of its own."""
        if level.pace is not None:
            slots = level.slots or self.slots
            level = replace(level, slots=self._room(level, slots), begins_with=slots)
        elif not self.generator.threads:
            level = replace(level, slots=1, processes=level.slots)
        with self.reporter.phase(Phase(Step.SEARCHING, f"{self.name}, {words(level)}")):
            made = self.generator.run(level)
        self.answers.add(*made.answered())
        result = judged(made, in_process=not self.generator.external)
        if result.state is not State.NOT_MEASURED or made.late_s < LEAST_S / 2:
            self.stalls.add(made, result.name)
        return made, result

    def _room(self, level: Level, slots: int) -> int:
        """To how many slots of each process a level may come."""
        if not self.grows or level.pace is None:
            return slots
        rate = level.pace.busiest / level.processes
        most = math.ceil(rate * (self.longest_s + 2 * self.alone_s))
        return min(max(slots, most), max(slots, _MOST_SLOTS))


def words(level: Level) -> str:
    """A level, for people."""
    if level.pace is None:
        return counted(level.slots * level.processes, "client")
    return f"{level.pace.rate:,g} a second" if level.pace.rate else "recorded times"
