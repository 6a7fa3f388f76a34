"""Cold start: what the first answer of a fresh process costs, step by step.

Every process is new: it starts the interpreter, imports, builds the retriever, loads what can be
loaded before there are documents, loads or builds the index, and answers. Nothing is removed or
averaged away: the raw times of every process stay in the record.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, cast

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.calls.foreign import how_ended
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.retriever import require_k
from retrieval_bench.experiment.fresh.cold_document import ColdDataset, ColdDocument, Spread
from retrieval_bench.measure import child
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench.stats.resampling import SEED

INTERPRETER = "interpreter"
FIRST_QUERY = "first query"

STEPS = (
    INTERPRETER,
    "import",
    "build",
    "model load",
    "documents",
    "index load",
    "index build",
    FIRST_QUERY,
    "second query",
)
"""In the order in which they happen; a process has those that apply to its retriever."""

UNTIL_FIRST_ANSWER = "until first answer"

STEADY_SECONDS = 10.0
"""How long a process is searched for steady times."""


_LONGEST_S = 1e6
_GRACE_S = 5.0
"""What a process that hangs gets to show where, before it is killed."""

_WORKER = "retrieval_bench.experiment.workers.cold_worker"
_FIX = "a fresh process must be able to build the retriever: write a config for it"


@dataclass(frozen=True, slots=True)
class ColdProcess:
    """Record of one fresh process.

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

    @property
    def until_first_answer_ns(self) -> int:
        """All steps up to and with the first query."""
        upto = STEPS[: STEPS.index(FIRST_QUERY) + 1]
        return sum(self.steps_ns.get(step, 0) for step in upto)

    def without(self, steps: Collection[str]) -> ColdProcess:
        """The same, without the times of some steps."""
        kept = {step: ns for step, ns in self.steps_ns.items() if step not in steps}
        return replace(self, steps_ns=kept)

    @property
    def same_query_ms(self) -> float | None:
        """Median of later calls of the first query, None where it was not asked again."""
        return median(self.repeats_ns) / 1e6 if self.repeats_ns else None


@dataclass(frozen=True, slots=True)
class ColdStart(Documented):
    """Cold starts of one retriever.

    Attributes:
        retriever, k, threads: what was started: its name, hits asked for, threads.
        n_queries: that were asked.
        dataset: name, split, fingerprint and number of documents.
        processes: those that finished, in their order.
        planned: how many were asked for.
        saved: the process that built the index which the others loaded, None where each built it.
        interrupted: the user stopped it.
        problem: why there are fewer than planned, empty where there are not.
        without: steps that have no time, and why.
    """

    KEYS = "*document"

    retriever: str
    dataset: Mapping[str, Any]
    k: int
    threads: int
    n_queries: int
    planned: int
    processes: tuple[ColdProcess, ...]
    saved: ColdProcess | None = None
    interrupted: bool = False
    problem: str = ""
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """True if fewer processes finished than were asked for."""
        return len(self.processes) < self.planned

    @property
    def first(self) -> ColdProcess:
        """The first one, which may have found files that were not in memory yet."""
        return self.processes[0]

    @property
    def others(self) -> tuple[ColdProcess, ...]:
        """The processes in the medians: all but the first, or the first where it is alone."""
        return self.processes[1:] or self.processes

    def steps_ms(self) -> dict[str, list[float]]:
        """Milliseconds of every step, one for each process."""
        present = [step for step in STEPS if step in self.first.steps_ns]
        return {step: [p.steps_ns[step] / 1e6 for p in self.processes] for step in present}

    @property
    def documents_per_second(self) -> float | None:
        """The documents per second of building the index, without importing libraries; None where
        none is built."""
        builders = [self.saved] if self.saved else self.others
        step = "index build"
        seconds = [
            (p.steps_ns[step] - p.imports_ns.get(step, 0)) / 1e9
            for p in builders
            if step in p.steps_ns
        ]
        if not seconds or not median(seconds):
            return None
        return float(self.dataset["n_documents"] / median(seconds))

    @property
    def document(self) -> ColdDocument:
        """Everything, for JSON."""
        times = self.steps_ms()
        imports = dict.fromkeys(step for p in self.processes for step in p.imports_ns)
        memory = dict.fromkeys(when for p in self.processes for when in p.peak_rss_bytes)

        def over(figure: Callable[[ColdProcess], float | None]) -> Spread:
            return _spread([figure(process) for process in self.processes])

        return {
            "retriever": self.retriever,
            "dataset": cast("ColdDataset", {**self.dataset, "n_queries": self.n_queries}),
            "k": self.k,
            "threads": self.threads,
            "status": "partial" if self.partial else "complete",
            "problem": self.problem or None,
            "planned": self.planned,
            "processes": len(self.processes),
            "steps_ms": {
                step: {**_spread(times.get(step, [])), "reason": self.without.get(step)}
                for step in STEPS
                if step in times or step in self.without
            },
            "imports_ms": {
                step: _spread([p.imports_ns.get(step, 0) / 1e6 for p in self.processes])
                for step in imports
            },
            "until_first_answer_ms": over(lambda p: p.until_first_answer_ns / 1e6),
            "same_query_warm_ms": over(lambda p: p.same_query_ms),
            "steady": [p.steady for p in self.processes],
            "calls_until_steady": over(lambda p: p.calls if p.steady else None),
            "seconds_until_steady": over(lambda p: p.seconds if p.steady else None),
            "failed_calls": sum(p.failed for p in self.processes),
            "index": {
                "how": self.first.index,
                "build_ms": self.saved.steps_ns["index build"] / 1e6 if self.saved else None,
                "documents_per_second": self.documents_per_second,
                "disk_bytes": self.first.disk_bytes,
            },
            "peak_rss_bytes": {
                when: _spread([p.peak_rss_bytes.get(when) for p in self.processes])
                for when in memory
            },
            "health": self.facts(),
            "warnings": self.warnings(),
        }

    def facts(self) -> list[str]:
        """Facts from the retriever; those of the first process only are marked so."""
        last = self.processes[-1].facts
        own = [f"first process: {fact}" for fact in self.first.facts if fact not in last]
        return [*last, *own]

    def warnings(self) -> list[str]:
        """Return the warnings of the thread limits, and of a retriever that could not be closed;
        each once."""
        return list(dict.fromkeys(text for p in self.processes for text in p.warnings))


def _spread(values: Sequence[float | None]) -> Spread:
    known = [value for value in values[1:] or values if value is not None]
    return {
        "first": values[0] if values else None,
        "median": median(known) if known else None,
        "min": min(known, default=None),
        "max": max(known, default=None),
        "values": list(values),
    }


def cold_start(
    retriever: str | Path | Mapping[str, Any],
    dataset: str | Path = "science-mini",
    *,
    split: str = "test",
    language: str | None = None,
    self_hits: str | None = None,
    k: int = 10,
    overrides: Sequence[str] = (),
    processes: int = 5,
    threads: int = 1,
    timeout_s: float = 600.0,
    seed: int = SEED,
    progress: Callable[[int, int], None] | None = None,
) -> ColdStart:
    """Start ``processes`` fresh processes one after the other and time each of their steps.

    Where the retriever can save its index, one process more builds and saves it, and all that are
    counted load it. A process that fails, hangs or is interrupted ends the measurement; what was
    finished before comes back marked as partial.

    Args:
        retriever: a config's name, a YAML file, ``module:Class`` or an inline mapping; an object
            cannot be started elsewhere.
        dataset: a name or a folder.
        language, self_hits: of the dataset, as in :func:`.load_dataset`.
        timeout_s: seconds that one process may take in all.
        progress: told (processes finished, processes in all).

    Raises:
        HarnessError: what was given cannot be used, or the first process failed.
        KeyboardInterrupt: before one process had finished.
    """
    _require(processes, threads, timeout_s)
    require_k(k)
    prepare_environment(threads)  # processes inherit it
    spec: dict[str, Any] = {
        "retriever": child.retriever_to_send(retriever, _FIX),
        "overrides": list(overrides),
        "dataset": child.dataset_to_send(dataset, "write the dataset to a folder"),
        "split": split,
        "language": language,
        "self_hits": self_hits,
        "k": int(k),
        "threads": threads,
        "timeout_s": timeout_s,
        "steady_s": STEADY_SECONDS,
        "seed": seed,
        "load_from": None,
    }
    done: list[ColdProcess] = []
    saved: ColdProcess | None = None
    about: dict[str, Any] = {}
    interrupted, problem = False, ""
    with tempfile.TemporaryDirectory(prefix="cold-start-") as index:
        spec["save_to"] = index
        try:
            while len(done) < processes:
                place = f"cold start, process {len(done) + 1} of {processes}"
                about, process = _started(spec, place)
                spec["save_to"] = None
                if process.index == "saved":
                    saved, spec["load_from"] = process, index
                    continue
                if process.disk_bytes is None and saved is not None:
                    files = (path for path in Path(index).rglob("*") if path.is_file())
                    process = replace(process, disk_bytes=sum(f.stat().st_size for f in files))
                done.append(process)
                if progress is not None:
                    progress(len(done), processes)
        except (KeyboardInterrupt, HarnessError) as failure:
            if not done:
                raise
            interrupted = isinstance(failure, KeyboardInterrupt)
            problem = failure.render() if isinstance(failure, HarnessError) else "interrupted"
    without = {}
    if not all(INTERPRETER in process.steps_ns for process in done):
        without[INTERPRETER] = "this system's clock does not read the same in two processes"
    if "model load" not in done[0].steps_ns:
        without["model load"] = "it loads nothing before there are documents"
    if done[0].index == "external":
        without["index build"] = "external: it holds its corpus already"
    return ColdStart(
        **about,
        k=spec["k"],
        threads=threads,
        planned=processes,
        processes=tuple(process.without(without) for process in done),
        saved=saved,
        interrupted=interrupted,
        problem=problem,
        without=without,
    )


def _started(spec: Mapping[str, Any], place: str) -> tuple[dict[str, Any], ColdProcess]:
    """Start one process and wait for its end; whom and what it measured, and its record.

    Raises:
        HarnessError: it failed, hung or died.
    """
    with child.started(_WORKER, spec) as process:
        late = time.monotonic() + spec["timeout_s"] + _GRACE_S
        while (hung := process.running()) and time.monotonic() < late:
            process.pass_on()
        process.kill()
        process.pass_on()
        said = {name: value for message in process.messages() for name, value in message.items()}
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
            fix="see above where it was when time was up; correct the retriever, or allow more",
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
    late = [said["failed"]] if "failed" in said else []
    return replace(process, steps_ns=steps, warnings=[*process.warnings, *late])


def _require(processes: int, threads: int, timeout_s: float) -> None:
    for name, value in (("processes", processes), ("threads", threads)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(
                f"{name} = {value!r}", where="cold start", accepted="a whole number of at least 1"
            )
    if not 0 < timeout_s <= _LONGEST_S:
        raise ConfigError(
            f"timeout = {timeout_s!r}",
            where="cold start",
            accepted=f"seconds, up to {_LONGEST_S:,.0f}",
        )
