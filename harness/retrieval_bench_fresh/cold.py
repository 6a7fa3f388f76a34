"""Cold start: what the first answer of a fresh process costs, step by step.

Every process is new: it starts the interpreter, imports, builds the retriever, loads what can be
loaded before there are documents, loads or builds the index, and answers. Nothing is removed or
averaged away: the raw times of every process stay in the record.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal, Self

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.calls.foreign import how_ended
from retrieval_bench.core.errors import ContractError, HarnessError
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench.stats.resampling import SEED
from retrieval_bench_launches import child
from retrieval_bench_launches.launches import LaunchSpec

INTERPRETER = "interpreter"
INDEX_BUILD = "index build"
FIRST_QUERY = "first query"

UNTIL_FIRST = (
    INTERPRETER,
    "import",
    "build",
    "model load",
    "documents",
    "index load",
    INDEX_BUILD,
    FIRST_QUERY,
)
STEPS = (*UNTIL_FIRST, "second query")
"""In the order in which they happen; a process has those that apply to its retriever."""

UNTIL_FIRST_ANSWER = "until first answer"

STEADY_SECONDS = 10.0
"""How long a process is searched for steady times."""

TIMEOUT_S = 600.0
"""What one process may take in all."""

_GRACE_S = 5.0
"""What a process that hangs gets to show where, before it is killed."""

_WORKER = "retrieval_bench_fresh.cold_worker"


@dataclass(frozen=True, slots=True)
class Spread(Documented):
    """A figure of several processes.

    Attributes:
        first: of the first process, which may have found files that were not in memory yet.
        median, min, max: of the other processes; where it is alone, of it.
        values: of all, in their order.
    """

    first: float | None
    median: float | None
    min: float | None
    max: float | None
    values: Sequence[float | None]

    @classmethod
    def of(cls, values: Sequence[float | None], *more: str | None) -> Self:
        """Over ``values``, one for each process; ``more`` are further fields."""
        known = [value for value in values[1:] or values if value is not None]
        middle = median(known) if known else None
        ends = min(known, default=None), max(known, default=None)
        return cls(values[0] if values else None, middle, *ends, values, *more)


@dataclass(frozen=True, slots=True)
class StepSpread(Spread):
    """Milliseconds of a step.

    Attributes:
        reason: why it has no time; null where it has.
    """

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ColdDataset:
    """A dataset with its queries."""

    name: str
    split: str
    fingerprint: str
    n_documents: int
    n_queries: int


@dataclass(frozen=True, slots=True)
class ColdIndex:
    """Origin of the index.

    Attributes:
        how: each process built it, or they loaded it.
        build_ms: of the process that built the index which the others loaded.
        documents_per_second: of building it, without importing libraries.
        disk_bytes: of its files.
    """

    how: str
    build_ms: float | None
    documents_per_second: float | None
    disk_bytes: int | None


@dataclass(frozen=True, slots=True)
class ColdProcess:
    """One fresh process.

    Attributes:
        disk_bytes: of the files of the index; None where it is not told.
        facts, warnings: what the retriever said of itself, and what went wrong.
        steps_ns: nanoseconds of each of :data:`STEPS` that it went through.
        imports_ns: how much of a step, other than ``import``, went into importing libraries that
            were first needed there.
        index: ``built``, ``loaded``, ``saved`` (built, for others to load) or ``external``.
        peak_rss_bytes: highest resident memory so far, ``after import`` and so on.
        calls: searches, the first one included, until steady or until time was up.
        steady: whether it became steady.
        seconds: from the start of the first query to the end of those calls.
        failed: further searches that failed.
        repeats_ns: later calls of the query that was the first.
    """

    steps_ns: Mapping[str, int]
    imports_ns: Mapping[str, int]
    index: str
    peak_rss_bytes: Mapping[str, int | None]
    disk_bytes: int | None = None
    calls: int = 0
    steady: bool = False
    seconds: float = 0.0
    failed: int = 0
    repeats_ns: Sequence[int] = ()
    facts: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ColdStart(Documented):
    """Cold starts of one retriever.

    Attributes:
        retriever, dataset, k, threads: what was started, for what.
        planned: how many were asked for.
        finished: how many finished.
        processes: those that did, in their order.
        saved: the process that built the index which the others loaded, None where each built it.
        interrupted: the user stopped it.
        problem: why there are fewer processes than planned; null where there are not.
    """

    KEYS = (
        "retriever dataset k threads status problem planned processes=finished steps_ms imports_ms "
        "until_first_answer_ms same_query_warm_ms steady calls_until_steady seconds_until_steady "
        "failed_calls index peak_rss_bytes health warnings"
    )

    retriever: str
    dataset: ColdDataset
    k: int
    threads: int
    planned: int
    processes: tuple[ColdProcess, ...]
    saved: ColdProcess | None = None
    interrupted: bool = False
    problem: str | None = None

    @property
    def finished(self) -> int:
        """How many processes finished."""
        return len(self.processes)

    @property
    def status(self) -> Literal["complete", "partial"]:
        """Whether all finished that were asked for."""
        return "partial" if self.finished < self.planned else "complete"

    @property
    def without(self) -> dict[str, str]:
        """Steps that have no time, and why."""
        first, reasons = self.processes[0], {}
        if not all(INTERPRETER in process.steps_ns for process in self.processes):
            reasons[INTERPRETER] = "this system's clock does not read the same in two processes"
        if "model load" not in first.steps_ns:
            reasons["model load"] = "it loads nothing before there are documents"
        if first.index == "external":
            reasons[INDEX_BUILD] = "external: it holds its corpus already"
        return reasons

    @property
    def steps_ms(self) -> dict[str, StepSpread]:
        """Milliseconds of each step of a start."""
        without = self.without
        spreads = {step: StepSpread.of([], reason) for step, reason in without.items()}
        for step in self.processes[0].steps_ns.keys() - without:
            spreads[step] = StepSpread.of([p.steps_ns[step] / 1e6 for p in self.processes])
        return {step: spreads[step] for step in STEPS if step in spreads}

    @property
    def imports_ms(self) -> dict[str, Spread]:
        """Milliseconds of each step spent importing libraries."""
        names = dict.fromkeys(step for process in self.processes for step in process.imports_ns)
        return {
            step: Spread.of([p.imports_ns.get(step, 0) / 1e6 for p in self.processes])
            for step in names
        }

    @property
    def until_first_answer_ms(self) -> Spread:
        """Time from the start of a process to its first answer."""
        steps = [step for step in UNTIL_FIRST if step not in self.without]
        return self._over(lambda p: sum(p.steps_ns.get(step, 0) for step in steps) / 1e6)

    @property
    def same_query_warm_ms(self) -> Spread:
        """The first query, asked again later."""
        return self._over(lambda p: median(p.repeats_ns) / 1e6 if p.repeats_ns else None)

    @property
    def steady(self) -> list[bool]:
        """Whether times stopped falling, process by process."""
        return [process.steady for process in self.processes]

    @property
    def calls_until_steady(self) -> Spread:
        """Calls until times stopped falling."""
        return self._over(lambda p: p.calls if p.steady else None)

    @property
    def seconds_until_steady(self) -> Spread:
        """Seconds until times stopped falling."""
        return self._over(lambda p: p.seconds if p.steady else None)

    @property
    def failed_calls(self) -> int:
        """Searches that failed, of all processes."""
        return sum(process.failed for process in self.processes)

    @property
    def index(self) -> ColdIndex:
        """How the index came to be."""
        first = self.processes[0]
        built_ms = self.saved.steps_ns[INDEX_BUILD] / 1e6 if self.saved else None
        return ColdIndex(first.index, built_ms, self._documents_per_second, first.disk_bytes)

    @property
    def _documents_per_second(self) -> float | None:
        builders = [self.saved] if self.saved else self.processes[1:] or self.processes
        seconds = [
            (p.steps_ns[INDEX_BUILD] - p.imports_ns.get(INDEX_BUILD, 0)) / 1e9
            for p in builders
            if INDEX_BUILD in p.steps_ns
        ]
        if not seconds or not median(seconds):
            return None
        return self.dataset.n_documents / median(seconds)

    @property
    def peak_rss_bytes(self) -> dict[str, Spread]:
        """Memory by the moment at which it was looked at."""
        names = dict.fromkeys(when for p in self.processes for when in p.peak_rss_bytes)
        return {
            when: Spread.of([p.peak_rss_bytes.get(when) for p in self.processes]) for when in names
        }

    @property
    def health(self) -> list[str]:
        """Facts that the retriever said of itself; those of the first process only are marked
        so."""
        last = self.processes[-1].facts
        own = [f"first process: {fact}" for fact in self.processes[0].facts if fact not in last]
        return [*last, *own]

    @property
    def warnings(self) -> list[str]:
        """Warnings of thread limits, and of a retriever that could not be closed; each once."""
        return list(dict.fromkeys(text for p in self.processes for text in p.warnings))

    def _over(self, figure: Callable[[ColdProcess], float | None]) -> Spread:
        return Spread.of([figure(process) for process in self.processes])


def cold_start(
    told: LaunchSpec, processes: int, progress: Callable[[int, int], None] = lambda _, __: None
) -> ColdStart:
    """Start ``processes`` fresh processes one after the other and time each of their steps.

    Where the retriever can save its index, one process more builds and saves it, and all that are
    counted load it. A process that fails, hangs or is interrupted ends the measurement; what was
    finished before comes back marked as partial.

    Args:
        told: what is started, which can be measured: the first of its retrievers.
        progress: told (processes finished, processes in all).

    Raises:
        HarnessError: the first process failed.
        KeyboardInterrupt: before one process had finished.
    """
    threads = told.protocol.threads
    prepare_environment(threads)  # processes inherit it
    spec = told.message(0) | {
        "threads": threads,
        "timeout_s": TIMEOUT_S,
        "steady_s": STEADY_SECONDS,
        "seed": SEED,
        "save_to": None,
        "load_from": None,
    }
    done: list[ColdProcess] = []
    saved: ColdProcess | None = None
    about: dict[str, Any] = {}
    interrupted, problem = False, None
    with tempfile.TemporaryDirectory(prefix="cold-start-") as index:
        spec["save_to"] = index
        try:
            while len(done) < processes:
                place = f"cold start, process {len(done) + 1} of {processes}"
                about, process = _started(spec, place)
                spec["save_to"] = None
                if process.index == "saved":
                    saved, spec["load_from"] = process, index
                else:
                    done.append(process)
                    progress(len(done), processes)
        except (KeyboardInterrupt, HarnessError) as failure:
            if not done:
                raise
            interrupted = isinstance(failure, KeyboardInterrupt)
            problem = failure.render() if isinstance(failure, HarnessError) else "interrupted"
    return ColdStart(
        **about | {"dataset": ColdDataset(**about["dataset"])},
        k=told.k,
        threads=threads,
        planned=processes,
        processes=tuple(done),
        saved=saved,
        interrupted=interrupted,
        problem=problem,
    )


def _started(spec: Mapping[str, Any], place: str) -> tuple[dict[str, Any], ColdProcess]:
    """Start one process and wait for its end; whom and what it measured, and its record.

    Raises:
        HarnessError: it failed, hung or died.
    """
    said: dict[str, Any] = {}
    with child.started(_WORKER, spec) as process:
        late = time.monotonic() + spec["timeout_s"] + _GRACE_S
        while (message := process.next(late)) is not None:
            said |= message
            process.pass_on()
        hung = process.running()
        process.kill()
        process.pass_on()
        ended_ns = time.perf_counter_ns()
    if "done" in said:
        return said["about"], _record(said, process.spawned_ns, ended_ns)
    where = f"{place}, step {said.get('begins', INTERPRETER)!r}"
    if "error" in said:
        raise child.rebuilt(said["error"], [where])
    if hung or ended_ns - process.spawned_ns > spec["timeout_s"] * 1e9:
        raise ContractError(
            f"the process did not finish within {spec['timeout_s']:g} s and was ended",
            where=where,
            fix="see above where it was when time was up; correct the retriever",
        )
    raise ContractError(
        f"the process died without a word: {how_ended(process.process.returncode)}",
        where=where,
        fix="see what it wrote above; too little memory and faults in native code end so",
    )


def _record(said: Mapping[str, Any], spawned_ns: int, ended_ns: int) -> ColdProcess:
    """Read what a process said, with the time of its interpreter where its clock reads as this
    one."""
    process = ColdProcess(**said["done"])
    steps = dict(process.steps_ns)
    if spawned_ns <= said["started_ns"] <= ended_ns:
        steps = {INTERPRETER: said["started_ns"] - spawned_ns} | steps
    late = [said["error"]["parts"][0]] if "error" in said else []
    return replace(process, steps_ns=steps, warnings=[*process.warnings, *late])
