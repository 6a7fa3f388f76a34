"""Measuring in fresh processes, one after the other: each launch measures all retrievers together.

Two processes differ even where the code does not, by about 1 %: by the layout of memory and the
seed of hashes. Only launches show that. They are also a shelter: a retriever that never returns
from native code, or takes its process down, costs its launch and not what others measured.

What a launch does is in :mod:`.launch_worker`. Its answer is a file. It says what it is busy with;
how far it is goes into a small shared file: a write to memory costs nothing beside a call. What
retrievers print goes to stderr.
"""

from __future__ import annotations

import pickle
import re
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.calls.foreign import TerminatedError, how_ended
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step, Task
from retrieval_bench.experiment.accounting import resummarize
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.run import Run
from retrieval_bench_launches import child
from retrieval_bench_launches.child import Child
from retrieval_bench_launches.launch_merge import Launch, Resummarize, hash_seed, merge

SILENCE_S = 30.0
"""Seconds without a sign of life, beyond what time-outs explain, until a launch is killed."""

EXIT_S = 5.0
"""Seconds that a launch has to end after its answer is there."""

_STACK_S = 0.5

ANSWER, BOARD = "answer", "board"
"""Files in the folder of the process: its runs, and how far it is."""

SIGNS = struct.Struct("=4q")
"""What is on the board: number of the phase, signs of life in it, calls done, calls planned."""

_WORKER = "retrieval_bench_launches.launch_worker"

_FIX = "name it, or measure in this process: --launches 0"


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """Arguments of :func:`.prepare`, as far as another process can be told.

    Attributes:
        retrievers: names of configs, YAML files, ``module:Class``, or inline mappings of plain
            values.
        dataset: a name or a folder.
        protocol: of the whole measurement; its ``launches`` says how many there are.

    Raises:
        ConfigError: an object, which only exists in this process.
    """

    retrievers: Sequence[Any]
    dataset: Any
    split: str = "test"
    k: int = 10
    metrics: Sequence[str] = ()
    overrides: Sequence[str] = ()
    protocol: Protocol = field(default_factory=Protocol)
    language: str | None = None
    self_hits: str | None = None

    def __post_init__(self) -> None:
        self.message(0)

    @property
    def launches(self) -> int:
        """The number of processes."""
        return max(1, self.protocol.launches)

    def message(self, number: int) -> dict[str, Any]:
        """Write the instructions of launch ``number``, from 0: its share of the calls, in an order
        of its own."""
        whole, n = self.protocol, self.launches
        most = None if whole.max_calls is None else max(1, whole.max_calls // n)
        share = replace(
            whole,
            launches=0,
            min_calls=-(-whole.min_calls // n),
            max_calls=most,
            max_s=None if whole.max_s is None else whole.max_s / n,
            max_cost=None if whole.max_cost is None else whole.max_cost / n,
            seed=whole.seed + number,
        )
        metrics = [self.metrics] if isinstance(self.metrics, str) else list(self.metrics)
        message = {
            "retrievers": [child.retriever_to_send(given, _FIX) for given in self.retrievers],
            "dataset": child.dataset_to_send(self.dataset, _FIX),
            "split": self.split,
            "language": self.language,
            "self_hits": self.self_hits,
            "k": self.k,
            "metrics": metrics,
            "overrides": list(self.overrides),
            "protocol": asdict(share),
        }
        child.check_plain(message, _FIX)
        return message

    def run(self, reporter: Reporter | None = None) -> list[Run]:
        """One run for each retriever, over all launches, see :func:`run_launches`."""
        return run_launches(self, reporter, resummarize=resummarize)


def run_launches(
    spec: LaunchSpec, reporter: Reporter | None = None, *, resummarize: Resummarize
) -> list[Run]:
    """Measure in processes of their own, and give one run for each retriever, over all launches.

    A launch that dies or hangs is lost; the others go on, and the runs tell it. Ctrl-C ends the
    launch that runs and gives what was measured, as partial runs; a second one kills it. Nothing
    is saved.

    Raises:
        ContractError: every launch was lost.
        HarnessError: what a launch found wrong, as it would be raised in this process.
        KeyboardInterrupt: interrupted before anything was measured.
    """
    if sys.platform == "win32":
        raise ConfigError(
            f"launches = {spec.launches} on Windows",
            accepted="Linux or macOS",
            fix="measure in one process: --launches 0",
        )
    launched: list[Launch] = []
    with _signals() as interrupts:
        for number in range(spec.launches):
            launched.append(_Watch(spec, number, reporter or Silent(), interrupts).run())
            if interrupts.n:
                break
        if any(launch.runs for launch in launched):
            return merge(launched, spec.protocol, resummarize, interrupted=bool(interrupts.n))
    if interrupts.n:
        raise KeyboardInterrupt
    raise ContractError(
        f"no launch of {spec.launches} ended with a result",
        where="; ".join(launch.lost for launch in launched),
        accepted="retrievers that neither end their process nor keep it from answering",
        fix="measure in this process to see more: --launches 0",
    )


class _Interrupts:
    """Count of how often the user pressed Ctrl-C."""

    n = 0

    def count(self, *_: Any) -> None:
        self.n += 1


@contextmanager
def _signals() -> Iterator[_Interrupts]:
    """Ctrl-C is counted; what would end this process at once lets it clean up first."""
    interrupts = _Interrupts()
    main = threading.current_thread() is threading.main_thread()
    handlers: dict[int, Callable[..., None]] = {}
    if main and callable(signal.getsignal(signal.SIGINT)):
        handlers[signal.SIGINT] = interrupts.count
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if main and number and signal.getsignal(number) is signal.SIG_DFL:
            handlers[number] = _end
    before = {number: signal.signal(number, put) for number, put in handlers.items()}
    try:
        yield interrupts
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _end(number: int, *_: Any) -> None:
    raise TerminatedError(128 + number)


class _Watch:
    """Starts one launch and stays with it until it is over."""

    def __init__(
        self, spec: LaunchSpec, number: int, reporter: Reporter, interrupts: _Interrupts
    ) -> None:
        self.number = number
        self.name = f"launch {number + 1} of {spec.launches}"
        self.several = spec.launches > 1
        self.message = spec.message(number)
        timeout = spec.protocol.timeout_s
        # A call of every retriever may run into its time-out before the next sign of life.
        self.patience = None if timeout is None else timeout * len(spec.retrievers) + SILENCE_S
        self.reporter = reporter
        self.interrupts = interrupts
        self.phase: Phase | None = None
        self.phase_number = self.done = self.total = 0
        self.task: Task = lambda done, total: None
        self.shown = ExitStack()
        self.problem: HarnessError | None = None

    def run(self) -> Launch:
        """Raises what the launch found wrong (:class:`HarnessError`)."""
        begin = time.monotonic()
        variables = {"PYTHONHASHSEED": str(hash_seed(self.number))}
        with self.shown, child.started(_WORKER, self.message, variables=variables) as process:
            lost = self._attend(process)
            launch = Launch(self.number, seconds=time.monotonic() - begin)
            if self.problem is not None:
                raise self.problem
            if (process.folder / ANSWER).exists():
                launch.runs, launch.lost = self._answer(process.folder / ANSWER)
            else:
                launch.lost = secrets.redact(lost)
        return launch

    def _attend(self, process: Child) -> str:
        """Wait for the end; why there is no answer, if there is none."""
        passed_on, killed = 0, ""
        last_sign, beats, answered_at = time.monotonic(), -1, None
        while process.running():
            state, now = self._look(process), time.monotonic()
            if state != beats or self.phase is None or self.phase.step is not Step.SEARCHING:
                beats, last_sign = state, now
            if self.interrupts.n > passed_on:
                passed_on = self.interrupts.n
                if passed_on > 1:
                    killed = f"{self.name} was killed: interrupted twice"
                else:
                    process.process.send_signal(signal.SIGINT)
            if self.patience is not None and now - last_sign > self.patience:
                killed = (
                    f"{self.name} was killed: no sign of life for {now - last_sign:.0f} s "
                    f"{self._busy()}{self._stack(process)}"
                )
            if answered_at is None and (self.problem or (process.folder / ANSWER).exists()):
                answered_at = now
            if killed or (answered_at is not None and now - answered_at > EXIT_S):
                break
        code = process.process.poll()
        process.kill()  # what it started does not outlive it
        self._look(process)
        if code is None:
            return killed
        if self.interrupts.n:
            return f"{self.name} was interrupted before it could hand over anything"
        return f"{self.name} died: {how_ended(code)} {self._busy()}{process.last_words()}"

    def _look(self, process: Child) -> int:
        """Pass on what retrievers print, show what the launch is busy with; the signs of life so
        far."""
        process.pass_on()
        for message in process.messages():
            if "error" in message:
                self.problem = child.rebuilt(message["error"], [self.name] if self.number else [])
            if "step" not in message:
                continue
            self.shown.close()
            self.phase = None
            self.done = self.total = 0
            if message["step"] is not None:
                self.phase = Phase(Step(message["step"]), message["about"])
                self.phase_number = message["number"]
                shown = replace(self.phase, within=self.name) if self.several else self.phase
                self.task = self.shown.enter_context(self.reporter.phase(shown))
        board = process.folder / BOARD
        content = board.read_bytes() if board.exists() else b""
        phase, beats, done, total = SIGNS.unpack(content.ljust(SIGNS.size, b"\0"))
        if self.phase and phase == self.phase_number and (done, total) != (self.done, self.total):
            self.done, self.total = done, total
            self.task(done, total)
        return int(beats)

    def _busy(self) -> str:
        if not self.phase:
            return "before or after searching" if self.phase_number else "while it started"
        position = f" (call {self.done + 1:,} of {self.total:,})" if self.total else ""
        return f"while {self.phase.text}{position}"

    def _stack(self, process: Child) -> str:
        """Where a launch that hangs is, in words; its handler needs no lock of Python's."""
        process.process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + _STACK_S
        shown = ""
        while time.monotonic() < end and process.running():
            shown += process.printed()
            if place := re.search(r"^  (File .+)\n", shown, re.MULTILINE):
                return f", in {place[1].strip()}"
        return ""

    def _answer(self, path: Path) -> tuple[list[Run], str]:
        try:
            return pickle.loads(path.read_bytes()), ""
        except Exception as problem:
            return [], f"{self.name} gave an answer that cannot be read: {problem!r}"
