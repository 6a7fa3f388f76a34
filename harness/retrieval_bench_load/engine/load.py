"""``load`` from words to the record on disk."""

from __future__ import annotations

import math
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
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.core.notices import Code, coded
from retrieval_bench.core.progress import Reporter
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.preparation import prepare_told
from retrieval_bench.experiment.warnings import refuse_unknown
from retrieval_bench.measure.environment import environment
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.find import LOADS
from retrieval_bench.runs.records import LOAD, check_destination, new_record, record_id, to_json
from retrieval_bench_launches.launches import LaunchSpec
from retrieval_bench_load.engine.bracket import Capacity, Search
from retrieval_bench_load.engine.capacity import Evidence, Limit, Shown, shown
from retrieval_bench_load.engine.generator import (
    TIMEOUT_S,
    Generator,
    Level,
    LevelCalls,
    LocalMember,
)
from retrieval_bench_load.engine.levels import LevelResult
from retrieval_bench_load.engine.making import Subject
from retrieval_bench_load.engine.quality import LevelQuality, Scorer
from retrieval_bench_load.engine.schedule import Pace, expected, length_s
from retrieval_bench_load.engine.soak import Course, course_of

ROOT = LOADS.root

_FIRST = 0.5
"""Of what clients in turn get: where the search for a rate begins."""

_FEWEST = 2
"""Queries of a level that asks none twice: its warm-up asks the first."""

_UNLOADED_S = 3.0
"""One call at a time is measured for so long, or as long as a level."""


@dataclass(frozen=True, slots=True)
class Plan(Documented):
    """Which levels are made.

    Attributes:
        rates: calls a second, a level each.
        clients: that call in turn, a level each.
        recorded: seconds at which calls were made elsewhere; a level of their own length.
        cut_s: of recorded times only so many seconds are made; None = all.
        slots: None = as many as fit the retriever.
        processes: None = one, or one for each worker of a cluster.
        limit: look for the highest rate that keeps it, after the other levels.
        max_minutes: that this may take.
        soak: memory and latency are told over time.
        once: no query is asked twice.
    """

    KEYS = (
        "rates clients replayed cut_s arrivals ramp_s seconds warm_up_s timeout_s slots processes "
        "seed limit max_minutes soak once"
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
    cut_s: float | None = None
    once: bool = False

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
        usual = replace(usual, slots=0, processes=self.processes or 1)
        for number, pace in enumerate(paces):
            yield replace(usual, pace=pace, seed=self.seed + 100 * (number + 50))
        if self.recorded:
            seconds = min(length_s(self.recorded), self.cut_s or math.inf)
            seed = self.seed + 100 * (len(paces) + 50)
            pace = Pace(recorded=self.recorded)
            yield replace(usual, pace=pace, seed=seed, seconds=seconds, warm_up_s=0.0)

    def shares(self, n_queries: int) -> Sequence[Sequence[int]]:
        """The numbers of the queries that each level asks, that of one call at a time first; none
        where all are asked, again and again.

        Raises:
            ConfigError: there are too few, or nobody knows how many levels there will be.
        """
        if not self.once:
            return []
        n_levels = 1 + len(list(self.levels()))
        callers = max([self.processes or 1, *self.clients])
        if self.limit is not None or n_queries < _FEWEST * n_levels * callers:
            given = "--slo" if self.limit else f"{n_queries:,} queries in {n_levels} levels"
            raise ConfigError(
                f"--queries once with {given}",
                accepted=f"--rate, --clients or --replay, and {_FEWEST} queries or more for each "
                "client or process of a level",
                fix="give fewer levels, or a dataset with more queries; or leave it out",
            )
        order = np.random.default_rng(self.seed).permutation(n_queries)
        return [of.tolist() for of in np.array_split(order, n_levels)]

    def cut(self) -> Sequence[str]:
        """Warn of recorded times that are not made."""
        made = sum(at < self.cut_s for at in self.recorded) if self.cut_s else self.replayed
        if made == self.replayed:
            return []
        text = f"--duration {self.cut_s:g} cuts the recorded times: {made:,} of {self.replayed:,} "
        return coded([f"{text}calls are made."], Code.OTHER)


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
        warnings: those that ``bench`` has of calls and answers, and what ended it early.
        repeated: share of the calls whose query had been asked before.
        interrupted: by the user: that is why it is partial.
        environment: as in a run's manifest.
        folder: of the record; None where it was not saved.
        language: that was given for the dataset; None = its own.
        on: the cluster that ran the generator; None = this machine.
    """

    schema_version: ClassVar[int] = 1
    KEYS = (
        "retriever dataset fingerprint split k plan status external shared slots "
        "processes language on repeated unloaded levels capacity warnings environment "
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
    repeated: float = 0.0
    interrupted: bool = False

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
    plan.shares(len(experiment.queries))  # refused now, and not behind what is made before
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
        subject = Subject.ready(
            experiment,
            generator,
            reporter,
            processes=plan.processes or 1,
            slots=plan.slots,
            longest_s=plan.limit.ms / 1e3 if plan.limit else 0.0,
        )
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
    from retrieval_bench_load.engine.remote import place
    from retrieval_bench_scale.cluster import connected

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
    warnings, shares = list(plan.cut()), plan.shares(len(experiment.queries))
    done: list[Loaded] = []

    def make(level: Level) -> tuple[LevelCalls, LevelResult]:
        if shares:
            level = replace(level, once=shares[len(done)])
        made, result = subject.make(level)
        quality, means = scorer.scored(made)
        np.save(folder / f"calls-{len(done)}.npy", made.calls.stacked())
        np.save(folder / f"quality-{len(done)}.npy", means)
        done.append(Loaded(result, quality, course_of(made) if level.watched else None))
        return made, result

    first = Level(None, 1, seconds=min(_UNLOADED_S, plan.seconds), seed=plan.seed)
    made, alone = make(replace(first, warm_up_s=plan.warm_up_s, timeout_s=plan.timeout_s))
    if not alone.answered:
        errors = ", ".join(f"{n:,} {kind}" for kind, n in alone.errors.items())
        raise HarnessError(
            f"no call of {subject.name} was answered: {errors or 'none was made'}",
            accepted="a retriever that answers one call at a time",
            fix=f"look at it first: retrieval-bench doctor {subject.name}",
        )
    told = subject.answers.warnings((), experiment.survey()[0])
    refuse_unknown({subject.name: told}, experiment.dataset.name)
    took = made.answered()[1]
    subject.alone_s = float(np.median(took)) / 1e9 if len(took) else 0.0
    status, search, capacity = "complete", None, _out_of_reach(plan.limit, made, alone)
    interrupted = False
    try:
        for planned in plan.levels():
            make(planned)
        if plan.limit is not None and capacity is None:
            for search in _searched(subject, plan, plan.limit, make):  # noqa: B007
                pass
    except KeyboardInterrupt:
        status, interrupted = "partial", True
    except HarnessError as problem:
        if not done[1:]:
            raise
        status = "partial"
        warnings += coded([f"it ended early: {problem.line}"], Code.OTHER)
    whole = status == "complete"
    result = LoadResult(
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
        capacity if search is None else search.found(whole=whole),
        (*warnings, *subject.warnings()),
        environment(experiment.protocol.threads),
    )
    return replace(result, repeated=subject.answers.repeated, interrupted=interrupted)


def _out_of_reach(limit: Limit | None, made: LevelCalls, alone: LevelResult) -> Capacity | None:
    """The end of a search before it begins: one call at a time breaks the limit."""
    if limit is None or shown([Evidence.of(made, alone, limit)], limit) is not Shown.BREAKS:
        return None
    return Capacity(limit, None, None, 0, rough=False, reason="one call at a time breaks it")


def _searched(
    subject: Subject,
    plan: Plan,
    limit: Limit,
    make: Callable[[Level], tuple[LevelCalls, LevelResult]],
) -> Iterator[Search]:
    """Run the search for the highest rate that keeps a limit, and give each state of it; its first
    rate is what clients that call in turn show."""
    processes, external = plan.processes or 1, subject.generator.external
    ends = time.monotonic() + 60 * plan.max_minutes
    usual = Level(None, subject.slots, plan.seconds, plan.warm_up_s, plan.timeout_s)
    _, turns = make(replace(usual, seed=plan.seed + 1, seconds=min(plan.seconds, _UNLOADED_S)))
    copies = 1 if external else processes
    first = _FIRST * copies * max(turns.rate_without_waits, 1 / plan.seconds)
    search = Search(limit, first, plan.ramp_s + plan.warm_up_s + plan.seconds)
    yield search
    while (rate := search.next(ends - time.monotonic())) is not None:
        pace = Pace(rate, plan.arrivals, plan.ramp_s)
        seed = plan.seed + 10_000 + 100 * (search.levels + 1)
        level = replace(usual, pace=pace, slots=0, seed=seed, processes=processes)
        search.add(rate, Evidence.of(*make(level), limit))
