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
from secrets import token_hex
from typing import Any, ClassVar

import numpy as np

from retrieval_bench.core import secrets
from retrieval_bench.core.document import Documented
from retrieval_bench.core.errors import ConfigError, HarnessError, counted
from retrieval_bench.core.notices import Code, coded
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.fresh.launches import LaunchSpec
from retrieval_bench.experiment.preparation import prepare_told
from retrieval_bench.experiment.warnings import drawn
from retrieval_bench.load.capacity import Capacity, Evidence, Limit, Search
from retrieval_bench.load.generator import TIMEOUT_S, Generator, Level, LocalMember, Made
from retrieval_bench.load.levels import LevelResult, judged
from retrieval_bench.load.quality import LevelQuality, Scorer
from retrieval_bench.load.schedule import Pace
from retrieval_bench.measure.environment import environment
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.records import cannot_write, check_destination, new_folder, slug, to_json

ROOT = Path("results") / "loads"
DOCUMENT = "load.json"

SLOTS = 32
"""Calls that a process has under way at most, of a service. What runs in the process itself has as
many as there are cores, or one where several threads may not ask it."""

_MOST_SLOTS = 256

_FIRST = 0.5
"""Of what clients in turn get: where the search for a rate begins."""

_UNLOADED_S = 3.0
"""One call at a time is measured for so long, or as long as a level."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which levels are made.

    Attributes:
        rates: calls a second, a level each.
        clients: that call in turn, a level each.
        recorded: seconds at which calls were made elsewhere; a level.
        slots: None = as many as fit the retriever.
        processes: None = one, or one for each worker of a cluster.
        limit: look for the highest rate that keeps it, after the other levels.
        max_minutes: that this may take.
    """

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

    def levels(self) -> Iterator[Level]:
        """In their order; of clients that call in turn, ``slots`` is how many there are."""
        usual = Level(None, 1, self.seconds, self.warm_up_s, self.timeout_s)
        for number, clients in enumerate(self.clients):
            yield replace(usual, slots=clients, seed=self.seed + 100 * number)
        paces = [Pace(rate, self.arrivals, self.ramp_s) for rate in self.rates]
        if self.recorded:
            paces.append(Pace(recorded=self.recorded))
        for number, pace in enumerate(paces):
            seed = self.seed + 100 * (number + 50)
            yield replace(usual, pace=pace, seed=seed, processes=self.processes or 1)


@dataclass(frozen=True, slots=True)
class Loaded(Documented):
    """One level, and its answers.

    Attributes:
        result: what it shows.
        quality: of its answers; None where no call was answered.
    """

    KEYS = "*result quality"

    result: LevelResult
    quality: LevelQuality | None


@dataclass(frozen=True, slots=True)
class LoadResult(Documented):
    """What ``load`` found.

    Attributes:
        retriever: its name.
        dataset: its name.
        k: hits asked for.
        status: "complete" or "partial".
        external: the retriever is a service or a chain outside of the generator's processes.
        shared: several threads ask one instance, or each has its own.
        slots: calls under way at most, of each process.
        processes: of the generator.
        unloaded: one call at a time.
        levels: in the order made.
        capacity: the highest rate that keeps a limit; None where there is no limit.
        warnings: about the machine, and what ended it early.
        environment: as in a run's manifest.
        folder: of the record; None where it was not saved.
    """

    schema_version: ClassVar[int] = 1
    KEYS = (
        "retriever dataset k status external shared slots processes unloaded levels capacity "
        "warnings environment folder?"
    )

    retriever: str
    dataset: str
    k: int
    status: str
    external: bool
    shared: bool
    slots: int
    processes: int
    unloaded: Loaded
    levels: tuple[Loaded, ...]
    capacity: Capacity | None = None
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None


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
    reporter: Reporter | None = None,
) -> LoadResult:
    """Call a retriever from many clients, level after level, and save every stamp.

    Args:
        on: the scheduler of a Dask cluster, whose workers run the generator's processes; None =
            this machine.
        out: folder of the record; None = a new one under ``results/loads``.

    Raises:
        HarnessError: what was given cannot be used, or nothing was measured.
    """
    check_destination(out, ROOT, "load")
    _check(plan)
    spec = LaunchSpec(
        [retriever], dataset, split, k, metrics, overrides, Protocol(threads=threads), language
    ).message(0)
    experiment = prepare_told(spec)
    experiment.close()  # the processes of the generator have their own
    _refuse(experiment.candidates[0])
    reporter = reporter or Silent()
    created = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    name = experiment.candidates[0].name
    record = f"{created}-{slug(name)}-{slug(experiment.dataset.name)}-{token_hex(4)}"
    folder = (out if out is not None else ROOT / record).absolute()
    with _new_folder(folder, record) as new, _generator(spec, new, on) as (generator, usual):
        plan = replace(plan, processes=plan.processes or usual)
        with reporter.phase(Phase(Step.INDEXING, name)):
            generator.prepare(plan.processes or 1)
        result = _levels(experiment, generator, plan, new, reporter)
        text = to_json(secrets.redact({"load_id": record, **result.as_dict()}))
        (new / DOCUMENT).write_text(text + "\n", encoding="utf-8")
    return replace(result, folder=folder)


@contextmanager
def _new_folder(folder: Path, record: str) -> Iterator[Path]:
    try:
        with new_folder(folder, record) as new:
            yield new
    except OSError as problem:
        raise cannot_write(folder, problem, "load") from None


@contextmanager
def _generator(
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


def _refuse(candidate: Candidate) -> None:
    """Raise ConfigError where the figures under load would be those of something else."""
    why = None
    if candidate.capabilities.replays:
        why = "reads its answers from a saved run"
    elif candidate.rate_limit is not None:
        why = "may be called only so often (`rate_limit` of its config)"
    if why:
        raise ConfigError(
            f"load on {candidate.name!r}, which {why}",
            accepted="a retriever that searches, as often as it is asked",
            fix="load the system itself, without a limit",
        )


def _levels(
    experiment: Experiment, generator: Generator, plan: Plan, folder: Path, reporter: Reporter
) -> LoadResult:
    candidate = experiment.candidates[0]
    metric = experiment.metrics[0] if experiment.counted else None
    scorer = Scorer(experiment.queries, experiment.dataset, metric, experiment.k)
    in_process = not generator.external
    own = (os.cpu_count() or 1) if generator.threads else 1
    slots = plan.slots or (own if in_process else SLOTS)
    if in_process and not generator.threads and slots > 1:
        raise ConfigError(
            f"--slots {slots} of {candidate.name}, which several threads may not ask",
            accepted="1, or a retriever whose Capabilities(threads=True) says that they may",
            fix="leave --slots out; --processes gives each its own",
        )
    warnings = list(drawn(experiment.dataset))
    seconds = min(_UNLOADED_S, plan.seconds)
    first = Level(None, 1, seconds, plan.warm_up_s, plan.timeout_s, plan.seed)
    with reporter.phase(Phase(Step.SEARCHING, candidate.name)):
        made = generator.run(first)
    unloaded = Loaded(judged(made, in_process=in_process), scorer.unloaded(made))
    _keep(folder, 0, made)
    if not unloaded.result.answered:
        errors = ", ".join(f"{n:,} {kind}" for kind, n in unloaded.result.errors.items())
        raise HarnessError(
            f"no call of {candidate.name} was answered: {errors or 'none was made'}",
            accepted="a retriever that answers one call at a time",
            fix=f"look at it first: retrieval-bench doctor {candidate.name}",
        )
    done: list[Loaded] = []
    status, capacity = "complete", None

    def make(planned: Level) -> Made:
        level = _fitted(planned, slots, shared=generator.threads)
        with reporter.phase(Phase(Step.SEARCHING, f"{candidate.name}, {words(level)}")):
            made = generator.run(level)
        _keep(folder, len(done) + 1, made)
        done.append(Loaded(judged(made, in_process=in_process), scorer.scored(made)))
        return made

    try:
        for planned in plan.levels():
            make(planned)
        if plan.limit is not None:
            capacity = _searched(
                plan, plan.limit, slots, make, lambda: done[-1].result, external=not in_process
            )
    except KeyboardInterrupt:
        status = "partial"
    except HarnessError as problem:
        if not done:
            raise
        status = "partial"
        warnings += coded([f"it ended early: {problem.given}"], Code.OTHER)
    return LoadResult(
        candidate.name,
        experiment.dataset.name,
        experiment.k,
        status,
        generator.external,
        generator.threads,
        slots,
        plan.processes or 1,
        unloaded,
        tuple(done),
        capacity,
        tuple(warnings),
        environment(experiment.protocol.threads),
    )


def _searched(
    plan: Plan,
    limit: Limit,
    slots: int,
    make: Callable[[Level], Made],
    result: Callable[[], LevelResult],
    *,
    external: bool,
) -> Capacity:
    """The highest rate that keeps a limit; clients that call in turn give the first guess.

    Args:
        make: the calls of a level.
        result: what the level that was made last shows.
    """
    processes = plan.processes or 1
    usual = Level(None, slots, plan.seconds, plan.warm_up_s, plan.timeout_s)
    make(replace(usual, seed=plan.seed + 1, seconds=min(plan.seconds, _UNLOADED_S)))
    copies = 1 if external else processes
    first = _FIRST * copies * max(result().answered_rate, 1 / plan.seconds)
    ends = time.monotonic() + 60 * plan.max_minutes
    took = plan.ramp_s + plan.warm_up_s + plan.seconds

    def measure(rate: float, number: int) -> Evidence:
        pace = Pace(rate, plan.arrivals, plan.ramp_s)
        seed = plan.seed + 10_000 + 100 * number
        level = replace(usual, pace=pace, seed=seed, processes=processes)
        if external:  # as many as a system that keeps the limit has under way, and as many again
            most = math.ceil(2 * rate * limit.ms / 1e3 / processes)
            level = replace(level, slots=min(max(slots, most), _MOST_SLOTS))
        made = make(level)
        return Evidence.of(made, result(), limit)

    return Search(limit, measure, lambda: time.monotonic() + took < ends).run(first)


def _fitted(level: Level, slots: int, *, shared: bool) -> Level:
    """A level as the retriever allows: where several threads may not ask it, each client has a
    process of its own."""
    if level.pace is not None:
        return replace(level, slots=level.slots or slots)
    return level if shared else replace(level, slots=1, processes=level.slots)


def words(level: Level) -> str:
    """A level, for people."""
    if level.pace is None:
        return counted(level.slots * level.processes, "client")
    return f"{level.pace.rate:,g} a second" if level.pace.rate else "recorded times"


def _keep(folder: Path, number: int, made: Made) -> None:
    np.save(folder / f"calls-{number}.npy", made.calls.stacked())
