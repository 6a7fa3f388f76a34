"""Cold start: what the first answer of a fresh process costs, step by step.

Every process is new: it starts the interpreter, imports, builds the retriever, loads what can be
loaded before there are documents, loads or builds the index, and answers. Nothing is removed or
averaged away: the raw times of every process stay in the record.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, cast

from retrieval_bench.core.document import Documented
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.foreign import how_ended
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

_FIX = "a fresh process must be able to build the retriever: write a config for it"
_NO_SHARED_CLOCK = "this system's clock does not read the same in two processes"


@dataclass(frozen=True, slots=True)
class ColdProcess:
    """What one fresh process did.

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

    @property
    def same_query_ns(self) -> float | None:
        """Median of later calls of the first query, None where it was not asked again."""
        return median(self.repeats_ns) if self.repeats_ns else None


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
        """Whether fewer processes finished than were asked for."""
        return len(self.processes) < self.planned

    @property
    def first(self) -> ColdProcess:
        """The first one, which may have found files that were not in memory yet."""
        return self.processes[0]

    @property
    def others(self) -> tuple[ColdProcess, ...]:
        """Those that medians are over: all but the first, or the first where it is alone."""
        return self.processes[1:] or self.processes

    def steps_ms(self) -> dict[str, list[float]]:
        """Milliseconds of every step, one for each process."""
        present = [step for step in STEPS if step in self.first.steps_ns]
        return {step: [p.steps_ns[step] / 1e6 for p in self.processes] for step in present}

    @property
    def documents_per_second(self) -> float | None:
        """Of building the index, without importing libraries; None where none is built."""
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

        def same_query_ms(process: ColdProcess) -> float | None:
            return None if process.same_query_ns is None else process.same_query_ns / 1e6

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
            "same_query_warm_ms": over(same_query_ms),
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
        """What the retriever said of itself; what held for the first process only is told so."""
        last = self.processes[-1].facts
        own = [f"first process: {fact}" for fact in self.first.facts if fact not in last]
        return [*last, *own]

    def warnings(self) -> list[str]:
        """Of the thread limits, and of a retriever that could not be closed; each once."""
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
    done: list[_Child] = []
    saved, saved_bytes = None, None
    interrupted, problem = False, ""
    with tempfile.TemporaryDirectory(prefix="cold-start-") as folder:
        index = Path(folder) / "index"
        index.mkdir()
        spec["save_to"] = str(index)
        try:
            while len(done) < processes:
                place = f"cold start, process {len(done) + 1} of {processes}"
                one = _Child(spec, Path(folder) / "lines.json", place)
                one.run()
                spec["save_to"] = None
                if one.said("done")["index"] == "saved":
                    saved, spec["load_from"] = one.process(), str(index)
                    saved_bytes = sum(p.stat().st_size for p in index.rglob("*") if p.is_file())
                    continue
                done.append(one)
                if progress is not None:
                    progress(len(done), processes)
        except (KeyboardInterrupt, HarnessError) as failure:
            if not done:
                raise
            interrupted = isinstance(failure, KeyboardInterrupt)
            problem = failure.render() if isinstance(failure, HarnessError) else "interrupted"
    clock_shared = all(one.clock_shared for one in done)
    without = {} if clock_shared else {INTERPRETER: _NO_SHARED_CLOCK}
    if not any(line.get("step") == "model load" for line in done[0].lines):
        without["model load"] = "it loads nothing before there are documents"
    if done[0].said("done")["index"] == "external":
        without["index build"] = "external: it holds its corpus already"
    return ColdStart(
        **done[0].said("about"),
        k=spec["k"],
        threads=threads,
        planned=processes,
        processes=tuple(one.process(clock_shared, saved_bytes) for one in done),
        saved=saved,
        interrupted=interrupted,
        problem=problem,
        without=without,
    )


class _Child:
    """One fresh process, and the lines that it has written so far."""

    def __init__(self, spec: Mapping[str, Any], written: Path, place: str) -> None:
        self.spec = spec
        self.written = written
        self.place = place
        self.spawned_ns = 0
        self.ended_ns = 0
        self.lines: list[dict[str, Any]] = []

    def run(self) -> None:
        """Start it, wait for its end, read what it wrote.

        Raises:
            HarnessError: it failed, hung or died.
        """
        hung = False
        with self.written.open("wb") as stdout:
            self.spawned_ns = time.perf_counter_ns()
            with child.started(
                "retrieval_bench.experiment.workers.cold_worker", self.spec, stdout=stdout
            ) as process:
                try:
                    process.wait(self.spec["timeout_s"] + _GRACE_S)
                except subprocess.TimeoutExpired:
                    hung = True
            self.ended_ns = time.perf_counter_ns()
        for text in self.written.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):  # startup files of Python may have printed something
                line = json.loads(text)
                if isinstance(line, dict):
                    self.lines.append(line)
        if self.said("done") is None:
            hung = hung or self.ended_ns - self.spawned_ns > self.spec["timeout_s"] * 1e9
            raise self._failure(process.returncode, hung)

    @property
    def clock_shared(self) -> bool:
        """Whether its clock reads as this process's own."""
        started: int = self.said("started_ns")
        return self.spawned_ns <= started <= self.ended_ns

    def process(self, clock_shared: bool = True, saved_bytes: int | None = None) -> ColdProcess:
        """The record; without the interpreter's time where clocks are not shared.

        Args:
            saved_bytes: size of the index on disk, where the retriever does not say.
        """
        steps = {INTERPRETER: self.said("started_ns") - self.spawned_ns} if clock_shared else {}
        timed = [line for line in self.lines if "step" in line]
        process = ColdProcess(
            steps_ns=steps | {line["step"]: line["ns"] for line in timed},
            imports_ns={
                line["step"]: line["imports_ns"]
                for line in timed
                if line["imports_ns"] and line["step"] != "import"
            },
            **self.said("done"),
        )
        late = self.said("failed")
        return replace(
            process,
            disk_bytes=saved_bytes if process.disk_bytes is None else process.disk_bytes,
            warnings=[*process.warnings, *([late] if late else [])],
        )

    def said(self, key: str) -> Any:
        """What it wrote first under ``key``, None if nothing."""
        return next((line[key] for line in self.lines if key in line), None)

    def _failure(self, code: int, hung: bool) -> HarnessError:
        step = next((n for line in reversed(self.lines) if (n := line.get("begins"))), INTERPRETER)
        where = f"{self.place}, step {step!r}"
        error = self.said("error")
        if error is not None:
            return child.rebuilt(error, [where])
        if hung:
            return ContractError(
                f"the process did not finish within {self.spec['timeout_s']:g} s and was ended",
                where=where,
                fix="see above where it was when time was up; correct the retriever, or allow more",
            )
        return ContractError(
            f"the process died without a word: {how_ended(code)}",
            where=where,
            fix="see what it wrote above; too little memory and faults in native code end so",
        )


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
