"""``load`` from words to the record on disk."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from retrieval_bench.core import secrets
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, HarnessError, counted
from retrieval_bench.core.notices import Code, coded
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.fresh.launches import LaunchSpec
from retrieval_bench.experiment.preparation import prepare_told
from retrieval_bench.experiment.warnings import drawn
from retrieval_bench.load.capacity import Capacity, Evidence, Limit, Search
from retrieval_bench.load.generator import TIMEOUT_S, Generator, Level, LocalMember, Made
from retrieval_bench.load.levels import LevelResult, judged
from retrieval_bench.load.quality import LevelQuality, Scorer
from retrieval_bench.load.schedule import Pace, expected
from retrieval_bench.load.soak import Course, course_of
from retrieval_bench.measure.environment import environment
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.find import LOADS
from retrieval_bench.runs.records import (
    LOAD,
    check_destination,
    new_record,
    record_id,
    to_json,
)

ROOT = LOADS.root

SLOTS = 32
"""Calls that a process has under way at most, of a service. What runs in the process itself has as
many as there are cores, or one where several threads may not ask it."""

_MOST_SLOTS = 256

_FIRST = 0.5
"""Of what clients in turn get: where the search for a rate begins."""

_UNLOADED_S = 3.0
"""One call at a time is measured for so long, or as long as a level."""


@dataclass(frozen=True, slots=True)
class Plan(Documented):
    """Which levels are made.

    Attributes:
        rates: calls a second, a level each.
        clients: that call in turn, a level each.
        recorded: seconds at which calls were made elsewhere; a level.
        slots: None = as many as fit the retriever.
        processes: None = one, or one for each worker of a cluster.
        limit: look for the highest rate that keeps it, after the other levels.
        max_minutes: that this may take.
        soak: memory and latency are told over time.
    """

    KEYS = (
        "rates clients replayed arrivals ramp_s seconds warm_up_s timeout_s slots processes seed "
        "limit max_minutes soak"
    )

    rates: Sequence[float] = ()
    clients: Sequence[int] = ()
    recorded: tuple[float, ...] = ()
    arrivals: str = "poisson"
    ramp_s: float = 0.0
    seconds: float = 10.0
    warm_up_s: float = 2.0
    timeout_s: float = TIMEOUT_S
    slots: int | None = None
    processes: int | None = None
    seed: int = 20_240_229
    limit: Limit | None = None
    max_minutes: float = 10.0
    soak: bool = False

    @property
    def replayed(self) -> int:
        """Number of recorded times."""
        return len(self.recorded)

    def levels(self) -> Iterator[Level]:
        """In their order; of clients that call in turn, ``slots`` is how many there are, else 0: as
        many as the retriever has."""
        usual = Level(None, 1, self.seconds, self.warm_up_s, self.timeout_s, watched=self.soak)
        for number, clients in enumerate(self.clients):
            yield replace(usual, slots=clients, seed=self.seed + 100 * number)
        paces = [Pace(rate, self.arrivals, self.ramp_s) for rate in self.rates]
        if self.recorded:
            paces.append(Pace(recorded=self.recorded))
        for number, pace in enumerate(paces):
            seed = self.seed + 100 * (number + 50)
            yield replace(usual, pace=pace, slots=0, seed=seed, processes=self.processes or 1)


@dataclass(frozen=True, slots=True)
class Loaded(Documented):
    """One level, and its answers.

    Attributes:
        result: what it shows.
        quality: of its answers; None where no call was answered.
        course: over time, of a soak.
    """

    KEYS = "*result quality course?"

    result: LevelResult
    quality: LevelQuality | None
    course: Course | None = None


@dataclass(frozen=True, slots=True)
class LoadResult(Documented):
    """What ``load`` found.

    Attributes:
        retriever: its name.
        dataset: its name.
        fingerprint, split: of the dataset.
        k: hits asked for.
        plan: what was to be made.
        status: "complete" or "partial".
        external: the retriever is a service or a chain outside of the generator's processes.
        shared: several threads ask one instance, or each has its own.
        slots: calls under way at most, of each process.
        unloaded: one call at a time.
        levels: in the order made.
        capacity: the highest rate that keeps a limit; None where there is no limit.
        warnings: about the machine, and what ended it early.
        environment: as in a run's manifest.
        folder: of the record; None where it was not saved.
        language: that was given for the dataset; None = its own.
        on: the cluster that ran the generator; None = this machine.
    """

    schema_version: ClassVar[int] = 1
    KEYS = (
        "retriever dataset fingerprint split k plan status external shared slots "
        "processes language on unloaded levels capacity warnings environment "
        "folder?"
    )

    retriever: str
    dataset: str
    fingerprint: str
    split: str
    k: int
    plan: Plan
    status: str
    external: bool
    shared: bool
    slots: int
    unloaded: Loaded
    levels: tuple[Loaded, ...]
    capacity: Capacity | None = None
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    language: str | None = None
    on: str | None = None

    @property
    def processes(self) -> int:
        """Of the generator."""
        return self.plan.processes or 1

    @property
    def threads(self) -> int:
        """Of numerical libraries while searching."""
        return int(self.environment.get("threads", 1))

    @property
    def metric(self) -> str | None:
        """That of the answers; None where nothing is judged."""
        return self.unloaded.quality.metric if self.unloaded.quality else None


@dataclass(slots=True)
class Subject:
    """A retriever that levels are made of, one after the other, by a generator of its own.

    Attributes:
        experiment: the retriever, closed, and what it is asked.
        slots: calls under way at most, of each process.
    """

    experiment: Experiment
    generator: Generator
    slots: int
    reporter: Reporter

    @classmethod
    def ready(
        cls,
        experiment: Experiment,
        generator: Generator,
        plan: Plan,
        reporter: Reporter | None,
    ) -> Subject:
        """Prepared in as many processes as the plan has.

        Raises:
            HarnessError: it cannot be prepared, or has fewer slots than the plan.
        """
        (candidate,) = experiment.candidates
        reporter = reporter or Silent()
        with reporter.phase(Phase(Step.INDEXING, candidate.name)):
            generator.prepare(plan.processes or 1)
        if others := generator.fingerprints - {experiment.dataset.fingerprint}:
            raise ConfigError(
                f"{experiment.dataset.name} has other content where the generator runs",
                where=f"fingerprint {others.pop()}, here {experiment.dataset.fingerprint}",
                accepted="the same dataset under the same path on every machine",
                fix="put it into the folder that all of them see",
            )
        own = SLOTS if generator.external else os.cpu_count() or 1
        slots = plan.slots or (own if generator.threads else 1)
        if slots > 1 and not generator.threads:
            raise ConfigError(
                f"--slots {slots} of {candidate.name}, which several threads may not ask",
                accepted="1, or a retriever whose Capabilities(threads=True) says that they may",
                fix="leave --slots out; --processes gives each its own",
            )
        return cls(experiment, generator, slots, reporter)

    @property
    def name(self) -> str:
        """Of the retriever."""
        return self.experiment.candidates[0].name

    def make(self, level: Level) -> tuple[Made, LevelResult]:
        """The calls of a level, and what they show. Where several threads may not ask the
        retriever, each client has a process of its own."""
        if level.pace is not None:
            level = replace(level, slots=level.slots or self.slots)
        elif not self.generator.threads:
            level = replace(level, slots=1, processes=level.slots)
        with self.reporter.phase(Phase(Step.SEARCHING, f"{self.name}, {words(level)}")):
            made = self.generator.run(level)
        return made, judged(made, in_process=not self.generator.external)


def load(
    retriever: str | Path | Mapping[str, Any],
    dataset: str | Path,
    plan: Plan,
    *,
    split: str = "test",
    language: str | None = None,
    k: int = 10,
    metrics: Sequence[str] = (),
    overrides: Sequence[str] = (),
    threads: int = 1,
    on: str | None = None,
    out: Path | None = None,
    require: Callable[[Experiment], None] = lambda _: None,
    reporter: Reporter | None = None,
) -> LoadResult:
    """Call a retriever from many clients, level after level, and save every stamp.

    Args:
        on: the scheduler of a Dask cluster, whose workers run the generator's processes; None =
            this machine.
        out: folder of the record; None = a new one under ``results/loads``.
        require: refuses, before a call is made, what is not as it has to be.

    Raises:
        HarnessError: what was given cannot be used, or nothing was measured.
    """
    check_destination(out, ROOT, "load")
    _check(plan)
    spec = LaunchSpec(
        [retriever], dataset, split, k, metrics, overrides, Protocol(threads=threads), language
    ).message(0)
    experiment = checked(spec)
    require(experiment)
    called = (experiment.candidates[0].name, experiment.dataset.name)
    record = record_id(datetime.now(UTC), *called)
    folder = (out if out is not None else ROOT / record).absolute()
    with (
        new_record(folder, record, "load") as new,
        generator_of(spec, new, on) as (generator, usual),
    ):
        plan = replace(plan, processes=plan.processes or usual)
        for level in plan.levels():  # now, and not behind those that can be made
            if level.pace is not None:
                expected(level.pace, level.warm_up_s + level.seconds, level.processes)
        subject = Subject.ready(experiment, generator, plan, reporter)
        result = replace(_levels(subject, plan, new), language=language, on=on)
        head = {"schema_version": result.schema_version, "load_id": record}
        text = to_json(secrets.redact({**head, **result.as_dict()}))
        (new / LOAD).write_text(text + "\n", encoding="utf-8")
    return replace(result, folder=folder)


@contextmanager
def generator_of(
    spec: Mapping[str, Any], folder: Path, on: str | None
) -> Iterator[tuple[Generator, int]]:
    """The generator, and how many processes it has where nobody says it."""
    if on is None:
        with Generator(lambda _: LocalMember(spec), folder) as generator:
            yield generator, 1
        return
    from retrieval_bench.load.remote import place
    from retrieval_bench.measure.cluster import connected

    with connected(on, folder) as cluster, Generator(place(cluster, spec), folder) as generator:
        yield generator, len(cluster.workers)


_ABOVE_0, _FROM_0, _FROM_1 = "a number above 0", "0 or more", "1 or more"
_HOLDS: Mapping[str, Callable[[float], bool]] = {
    _ABOVE_0: lambda n: 0 < n < math.inf,
    _FROM_0: lambda n: 0 <= n < math.inf,
    _FROM_1: lambda n: n >= 1,
}


def _check(plan: Plan) -> None:
    """Raise ConfigError for numbers that make no sense."""
    given: list[tuple[str, float, str]] = [
        *(("--rate", rate, _ABOVE_0) for rate in plan.rates),
        *(("--clients", n, _FROM_1) for n in plan.clients),
        ("--duration", plan.seconds, _ABOVE_0),
        ("--warm-up", plan.warm_up_s, _FROM_0),
        ("--ramp", plan.ramp_s, _FROM_0),
        ("--timeout", plan.timeout_s, _ABOVE_0),
        ("--slots", plan.slots if plan.slots is not None else 1, _FROM_1),
        ("--processes", plan.processes if plan.processes is not None else 1, _FROM_1),
        ("--seed", plan.seed, _FROM_0),
        ("--max-minutes", plan.max_minutes, _ABOVE_0),
    ]
    wrong = [one for one in given if not _HOLDS[one[2]](one[1])]
    if plan.limit is not None and plan.limit.ms >= 1e3 * plan.timeout_s:
        wrong.append(("--timeout", plan.timeout_s, f"more than the limit, {plan.limit}"))
    for option, value, accepted in wrong[:1]:
        raise ConfigError(f"{option} {value:g}", accepted=accepted, fix=f"correct {option}")


def checked(spec: Mapping[str, Any]) -> Experiment:
    """What is loaded, built, checked and closed: the processes of the generator have their own.

    Raises:
        HarnessError: it cannot be prepared, or the figures would be those of something else.
    """
    experiment = prepare_told(spec)
    experiment.close()
    (candidate,), why = experiment.candidates, None
    if candidate.capabilities.replays:
        why = "reads its answers from a saved run"
    elif candidate.rate_limit is not None:
        why = "may be called only so often (`rate_limit` of its config)"
    elif candidate.price is not None:
        why = "costs money with each call (`price` of its config), of which a level makes thousands"
    if why:
        raise ConfigError(
            f"load on {candidate.name!r}, which {why}",
            accepted="a retriever that searches, as often as it is asked, at no cost",
            fix="load the system itself, without a limit; or take `price` out where it is meant",
        )
    return experiment


def _levels(subject: Subject, plan: Plan, folder: Path) -> LoadResult:
    experiment, slots, external = subject.experiment, subject.slots, subject.generator.external
    metric = experiment.metrics[0] if experiment.counted else None
    scorer = Scorer(experiment.queries, experiment.dataset, metric, experiment.k)
    warnings = list(drawn(experiment.dataset))
    done: list[Loaded] = []

    def make(level: Level) -> tuple[Made, LevelResult]:
        made, result = subject.make(level)
        quality, means = scorer.scored(made)
        np.save(folder / f"calls-{len(done)}.npy", made.calls.stacked())
        np.save(folder / f"quality-{len(done)}.npy", means)
        done.append(Loaded(result, quality, course_of(made) if level.watched else None))
        return made, result

    first = Level(None, 1, seconds=min(_UNLOADED_S, plan.seconds), seed=plan.seed)
    _, alone = make(replace(first, warm_up_s=plan.warm_up_s, timeout_s=plan.timeout_s))
    if not alone.answered:
        errors = ", ".join(f"{n:,} {kind}" for kind, n in alone.errors.items())
        raise HarnessError(
            f"no call of {subject.name} was answered: {errors or 'none was made'}",
            accepted="a retriever that answers one call at a time",
            fix=f"look at it first: retrieval-bench doctor {subject.name}",
        )
    status, search = "complete", None
    try:
        for planned in plan.levels():
            make(planned)
        if plan.limit is not None:
            first_rate, search = _search(plan, plan.limit, slots, make, external=external)
            search.run(first_rate)
    except KeyboardInterrupt:
        status = "partial"
    except HarnessError as problem:
        if not done[1:]:
            raise
        status = "partial"
        warnings += coded([f"it ended early: {problem.given}"], Code.OTHER)
    whole = status == "complete"
    return LoadResult(
        subject.name,
        experiment.dataset.name,
        experiment.dataset.fingerprint,
        experiment.dataset.split,
        experiment.k,
        plan,
        status,
        external,
        subject.generator.threads,
        slots,
        done[0],
        tuple(done[1:]),
        None if search is None else search.found(whole=whole),
        tuple(warnings),
        environment(experiment.protocol.threads),
    )


def _search(
    plan: Plan,
    limit: Limit,
    slots: int,
    make: Callable[[Level], tuple[Made, LevelResult]],
    *,
    external: bool,
) -> tuple[float, Search]:
    """The search for the highest rate that keeps a limit, not yet begun, and its first rate, which
    clients that call in turn give."""
    processes = plan.processes or 1
    usual = Level(None, slots, plan.seconds, plan.warm_up_s, plan.timeout_s)
    _, turns = make(replace(usual, seed=plan.seed + 1, seconds=min(plan.seconds, _UNLOADED_S)))
    copies = 1 if external else processes
    first = _FIRST * copies * max(turns.rate_without_waits, 1 / plan.seconds)
    ends = time.monotonic() + 60 * plan.max_minutes
    took = plan.ramp_s + plan.warm_up_s + plan.seconds

    def measure(rate: float, number: int) -> Evidence:
        pace = Pace(rate, plan.arrivals, plan.ramp_s)
        seed = plan.seed + 10_000 + 100 * number
        level = replace(usual, pace=pace, seed=seed, processes=processes)
        if external:  # as many as a system that keeps the limit has under way, and as many again
            most = math.ceil(2 * rate * limit.ms / 1e3 / processes)
            level = replace(level, slots=min(max(slots, most), _MOST_SLOTS))
        return Evidence.of(*make(level), limit)

    return first, Search(limit, measure, lambda: time.monotonic() + took < ends)


def words(level: Level) -> str:
    """A level, for people."""
    if level.pace is None:
        return counted(level.slots * level.processes, "client")
    return f"{level.pace.rate:,g} a second" if level.pace.rate else "recorded times"
