"""Cold start: what the first answer of a fresh process costs, step by step.

Every process is new: it starts the interpreter, imports, builds the retriever, loads what can be
loaded before there are documents, loads or builds the index, and answers. Nothing is removed or
averaged away: the raw times of every process stay in the record.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from retrieval_bench.core import errors
from retrieval_bench.core.errors import ConfigError, ContractError, DataError, HarnessError
from retrieval_bench.core.retriever import require_k
from retrieval_bench.experiment.cold_record import (
    INTERPRETER,
    STEADY_SECONDS,
    ColdProcess,
    ColdStart,
)
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench.stats.resampling import SEED

_LONGEST_S = 1e6
_GRACE_S = 5.0
"""What a process that hangs gets to show where, before it is killed."""


def cold_start(
    retriever: str | Path | Mapping[str, Any],
    dataset: str | Path = "science-mini",
    *,
    split: str = "test",
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
        timeout_s: seconds that one process may take in all.
        progress: told (processes finished, processes in all).

    Raises:
        HarnessError: what was given cannot be used, or the first process failed.
        KeyboardInterrupt: before one process had finished.
    """
    _require(processes, threads, timeout_s)
    require_k(k)
    prepare_environment(threads)  # processes inherit it
    given = _portable(retriever)
    if not isinstance(dataset, str | Path):
        raise ConfigError(
            f"a {type(dataset).__name__} as dataset of a cold start",
            accepted="the name or the folder of a dataset: fresh processes read it again",
            fix="write the dataset to a folder",
        )
    with tempfile.TemporaryDirectory(prefix="cold-start-") as folder:
        spec = {
            "path": sys.path,
            "retriever": given,
            "overrides": list(overrides),
            "dataset": str(dataset),
            "split": split,
            "k": int(k),
            "threads": threads,
            "timeout_s": timeout_s,
            "steady_s": STEADY_SECONDS,
            "seed": seed,
            "save_to": str(Path(folder) / "index"),
            "load_from": None,
        }
        return _Series(spec, Path(folder), processes, progress).run()


class _Series:
    """The processes of one measurement, one after the other."""

    def __init__(
        self,
        spec: dict[str, Any],
        folder: Path,
        planned: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.spec = spec
        self.folder = folder
        self.planned = planned
        self.progress = progress
        self.done: list[_Child] = []
        self.saved: ColdProcess | None = None
        self.saved_bytes: int | None = None

    def run(self) -> ColdStart:
        index = Path(self.spec["save_to"])
        index.mkdir()
        interrupted, problem = False, ""
        try:
            while len(self.done) < self.planned:
                child = _Child(self.spec, self.folder, len(self.done) + 1, self.planned)
                child.run()
                self.spec["save_to"] = None
                if child.answer["index"] == "saved":
                    self.saved, self.saved_bytes = child.process(), _size(index)
                    self.spec["load_from"] = str(index)
                    continue
                self.done.append(child)
                if self.progress is not None:
                    self.progress(len(self.done), self.planned)
        except KeyboardInterrupt:
            if not self.done:
                raise
            interrupted, problem = True, "interrupted"
        except HarnessError as failure:
            if not self.done:
                raise
            problem = failure.render()
        return self._record(interrupted, problem)

    def _record(self, interrupted: bool, problem: str) -> ColdStart:
        answer = self.done[0].answer
        clock_shared = all(child.clock_shared for child in self.done)
        without = {} if clock_shared else {INTERPRETER: _NO_SHARED_CLOCK}
        if not any(line.get("step") == "model load" for line in self.done[0].lines):
            without["model load"] = "it loads nothing before there are documents"
        if answer["index"] == "external":
            without["index build"] = "external: it holds its corpus already"
        return ColdStart(
            retriever=answer["retriever"],
            dataset=answer["dataset"],
            k=self.spec["k"],
            threads=self.spec["threads"],
            n_queries=answer["n_queries"],
            planned=self.planned,
            processes=tuple(child.process(clock_shared, self.saved_bytes) for child in self.done),
            saved=self.saved,
            interrupted=interrupted,
            problem=problem,
            without=without,
        )


_NO_SHARED_CLOCK = "this system's clock does not read the same in two processes"


class _Child:
    """One fresh process, and the lines that it has written so far."""

    def __init__(self, spec: Mapping[str, Any], folder: Path, number: int, planned: int) -> None:
        self.spec = spec
        self.folder = folder
        self.place = f"cold start, process {number} of {planned}"
        self.spawned_ns = 0
        self.ended_ns = 0
        self.lines: list[dict[str, Any]] = []

    def run(self) -> None:
        """Start it, wait for its end, read what it wrote.

        Raises:
            HarnessError: it failed, hung or died.
        """
        todo, written = self.folder / "spec.json", self.folder / "lines.json"
        todo.write_text(json.dumps(self.spec), encoding="utf-8")
        with todo.open("rb") as stdin, written.open("wb") as stdout:
            self.spawned_ns = time.perf_counter_ns()
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "retrieval_bench.experiment.cold_worker"],
                stdin=stdin,
                stdout=stdout,
                env={**os.environ, "PYTHONPATH": _with_this_package()},
                start_new_session=True,  # Ctrl-C is for this process, which then ends that one
            )
            hung = False
            try:
                process.wait(self.spec["timeout_s"] + _GRACE_S)
            except subprocess.TimeoutExpired:
                hung = True
            finally:
                if process.poll() is None:
                    _kill(process)
            self.ended_ns = time.perf_counter_ns()
        self.lines = list(_complete_lines(written))
        if self._said("done") is None:
            hung = hung or self.ended_ns - self.spawned_ns > self.spec["timeout_s"] * 1e9
            raise self._failure(process.returncode, hung)

    @property
    def answer(self) -> dict[str, Any]:
        """What it said at its end."""
        found: dict[str, Any] = self._said("done")
        return found

    @property
    def clock_shared(self) -> bool:
        """Whether its clock reads as this process's own."""
        started: int = self._said("started_ns")
        return self.spawned_ns <= started <= self.ended_ns

    def process(self, clock_shared: bool = True, saved_bytes: int | None = None) -> ColdProcess:
        """The record; without the interpreter's time where clocks are not shared."""
        answer = self.answer
        steps = {INTERPRETER: self._said("started_ns") - self.spawned_ns} if clock_shared else {}
        timed = [line for line in self.lines if "step" in line]
        named = ("calls", "steady", "seconds", "failed", "repeats_ns", "facts")
        warnings = [*answer.get("warnings", ())]
        if (late := self._said("error")) is not None:
            warnings.append(f"{late['step']} failed with {late['given']}")
        on_disk = answer["disk_bytes"]
        return ColdProcess(
            steps_ns=steps | {line["step"]: line["ns"] for line in timed},
            imports_ns={
                line["step"]: line["imports_ns"]
                for line in timed
                if line["imports_ns"] and line["step"] != "import"
            },
            index=answer["index"],
            peak_rss_bytes=answer["peak_rss_bytes"],
            disk_bytes=saved_bytes if on_disk is None else on_disk,
            warnings=warnings,
            **{name: answer[name] for name in named if name in answer},
        )

    def _said(self, key: str) -> Any:
        return next((line[key] for line in self.lines if key in line), None)

    def _failure(self, code: int, hung: bool) -> HarnessError:
        told = self._said("error")
        step = next((n for line in reversed(self.lines) if (n := line.get("begins"))), INTERPRETER)
        where = f"{self.place}, step {step!r}"
        if told is not None:
            return _error(told, where)
        if hung:
            return ContractError(
                f"the process did not finish within {self.spec['timeout_s']:g} s and was ended",
                where=where,
                fix="see above where it was when time was up; correct the retriever, or allow more",
            )
        return ContractError(
            f"the process died without a word: {_ending(code)}",
            where=where,
            fix="see what it wrote above; too little memory and faults in native code end so",
        )


def _error(told: Mapping[str, Any], where: str) -> HarnessError:
    """The error of another process, of the class that it has there."""
    if not told["harness"]:
        failure: HarnessError = ContractError(
            "; ".join([f"{told['step']} failed with {told['given']}", *told["notes"]]),
            where=", ".join(filter(None, [where, told["where"]])),
            fix="correct the retriever or its parameters; --debug shows the traceback",
        )
    else:
        kind = getattr(errors, told["kind"], HarnessError)
        parts = {name: told[name] for name in ("accepted", "fix")}
        if kind is DataError:
            parts["faults"] = told["faults"]
        place = "; ".join(filter(None, [*told["notes"], told["where"], where]))
        failure = kind(told["given"], where=place, **parts)
    failure.add_note(told["traceback"])
    return failure


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With everything that it has started itself, where the system knows groups."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _complete_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of the worker, without what startup files of Python may have printed before."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValueError):
            content = json.loads(line)
            if isinstance(content, dict):
                yield content


def _with_this_package() -> str:
    """Where the new interpreter finds this package; the worker then takes over our whole path."""
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), here]))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _portable(retriever: Any) -> str | dict[str, Any]:
    if isinstance(retriever, str | Path):
        return str(retriever)
    if isinstance(retriever, Mapping) and _is_plain(retriever):
        return {**retriever}
    what = "an inline config with objects in it" if isinstance(retriever, Mapping) else "an object"
    raise ConfigError(
        f"{what} ({type(retriever).__name__}) for a cold start",
        accepted="the name of a config, a YAML file, module:Class, or an inline mapping of texts, "
        "numbers, lists and mappings",
        fix="a fresh process must be able to build the retriever: write a config for it",
    )


def _is_plain(value: Any) -> bool:
    """Whether JSON gives it back as it is."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, str | int | float)


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
