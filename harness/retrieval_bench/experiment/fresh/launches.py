"""Measuring in fresh processes, one after the other: each launch measures all retrievers together.

Two processes differ even where the code does not, by about 1 %: by the layout of memory and the
seed of hashes. Only launches show that. They are also a shelter: a retriever that never returns
from native code, or takes its process down, costs its launch and not what others measured.

What a launch does is in :mod:`.launch_worker`. Its answer is a file. What it is busy with goes out
as lines on the pipe that stdout was at the start, how far it is into a small shared file: a write
to memory costs nothing beside a call. What retrievers print goes to stderr.
"""

from __future__ import annotations

import codecs
import json
import mmap
import os
import pickle
import selectors
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.foreign import TerminatedError, how_ended
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step, Task
from retrieval_bench.experiment.fresh.launch_merge import Launch, Resummarize, hash_seed, merge
from retrieval_bench.measure import child
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.run import Run

SILENCE_S = 30.0
"""Seconds without a sign of life, beyond what time-outs explain, until a launch is killed."""

EXIT_S = 5.0
"""Seconds that a launch has to end after its answer is there."""

_TICK_S = 0.1
_STACK_S = 0.5
_LAST_CHUNKS = 16
_LONGEST = 500

BOARD = struct.Struct("=4q")
"""The shared file: number of the phase, signs of life in it, calls done, calls planned."""

_WORKER = "retrieval_bench.experiment.workers.launch_worker"

_FIX = "name it, or measure in this process: --launches 0"


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """What :func:`.prepare` takes, as far as another process can be told.

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
        """How many processes."""
        return max(1, self.protocol.launches)

    def message(self, number: int) -> dict[str, Any]:
        """What launch ``number``, from 0, is told to measure: its share of the calls, in an order
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
    with _signals() as interrupts, tempfile.TemporaryDirectory(prefix="retrieval-bench-") as folder:
        for number in range(spec.launches):
            watch = _Watch(spec, number, Path(folder), reporter or Silent(), interrupts)
            launched.append(watch.run())
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
    """How often the user pressed Ctrl-C."""

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
        self,
        spec: LaunchSpec,
        number: int,
        folder: Path,
        reporter: Reporter,
        interrupts: _Interrupts,
    ) -> None:
        self.number = number
        self.name = f"launch {number + 1} of {spec.launches}"
        self.several = spec.launches > 1
        self.answer = folder / f"answer-{number}"
        self.board = folder / f"board-{number}"
        self.message = spec.message(number) | {
            "answer": str(self.answer),
            "board": str(self.board),
        }
        timeout = spec.protocol.timeout_s
        # A call of every retriever may run into its time-out before the next sign of life.
        self.patience = None if timeout is None else timeout * len(spec.retrievers) + SILENCE_S
        self.reporter = reporter
        self.interrupts = interrupts
        self.phase: Phase | None = None
        self.phase_number = self.done = self.total = 0
        self.task: Task = lambda done, total: None
        self.shown = ExitStack()
        self.lines: deque[str] = deque(maxlen=200)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.unfinished_line = ""
        self.messages = b""

    def run(self) -> Launch:
        """Raises what the launch found wrong (:class:`HarnessError`)."""
        begin = time.monotonic()
        self.board.write_bytes(bytes(BOARD.size))
        with (
            self.board.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as board,
            self.shown,
            child.started(
                _WORKER,
                self.message,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                variables={"PYTHONHASHSEED": str(hash_seed(self.number))},
            ) as process,
        ):
            lost = self._attend(process, board)
        launch = Launch(self.number, seconds=time.monotonic() - begin)
        if self.answer.exists():
            launch.runs, launch.lost = self._read()
        else:
            launch.lost = secrets.redact(lost)
        return launch

    def _attend(self, process: subprocess.Popen[bytes], board: mmap.mmap) -> str:
        """Wait for the end; why there is no answer, if there is none."""
        passed_on, killed = 0, ""
        last_sign, beats, answered_at = time.monotonic(), -1, None
        with selectors.DefaultSelector() as selector:
            for pipe in filter(None, (process.stdout, process.stderr)):
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, pipe is process.stderr)
            while process.poll() is None:
                self._read_pipes(process, selector, _TICK_S)
                now = time.monotonic()
                state = self._look(board)
                if state != beats or self.phase is None or self.phase.step is not Step.SEARCHING:
                    beats, last_sign = state, now
                if self.interrupts.n > passed_on:
                    passed_on = self.interrupts.n
                    if passed_on > 1:
                        killed = f"{self.name} was killed: interrupted twice"
                    else:
                        process.send_signal(signal.SIGINT)
                if self.patience is not None and now - last_sign > self.patience:
                    killed = (
                        f"{self.name} was killed: no sign of life for {now - last_sign:.0f} s "
                        f"{self._busy()}{self._stack(process, selector)}"
                    )
                if answered_at is None and self.answer.exists():
                    answered_at = now
                if killed or (answered_at is not None and now - answered_at > EXIT_S):
                    break
            code = process.poll()
            child.kill(process)  # what it started does not outlive it
            for _ in range(_LAST_CHUNKS):
                self._read_pipes(process, selector, 0)
        if code is None:
            return killed
        if self.interrupts.n:
            return f"{self.name} was interrupted before it could hand over anything"
        words = child.last_words("\n".join([*self.lines, self.unfinished_line]))
        return f"{self.name} died: {how_ended(code)} {self._busy()}{words}"

    def _read_pipes(
        self,
        process: subprocess.Popen[bytes],
        selector: selectors.BaseSelector,
        seconds: float,
        *,
        forward: bool = True,
    ) -> None:
        """Wait for something to read, or for the end, at most ``seconds``."""
        if not selector.get_map():
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            return
        for key, _ in selector.select(seconds):
            chunk = os.read(key.fd, 1 << 16)
            if not chunk:
                selector.unregister(key.fileobj)
            elif key.data:
                self._hear(self.decoder.decode(chunk), forward=forward)
            else:
                self._told(chunk)

    def _hear(self, text: str, *, forward: bool) -> None:
        """What the launch and its retrievers print: passed on, and its end is kept."""
        if forward and sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
        *whole, rest = (self.unfinished_line + text).split("\n")
        self.lines.extend(line for line in whole if line.strip())
        self.unfinished_line = rest[-_LONGEST:]

    def _told(self, chunk: bytes) -> None:
        *whole, self.messages = (self.messages + chunk).split(b"\n")
        for line in whole:
            with suppress(ValueError, TypeError, KeyError):  # printed before stdout was put aside
                message = json.loads(line)
                self.shown.close()
                self.phase = None
                self.done = self.total = 0
                if message["step"] is not None:
                    self.phase = Phase(Step(message["step"]), message["about"])
                    self.phase_number = message["number"]
                    shown = replace(self.phase, within=self.name) if self.several else self.phase
                    self.task = self.shown.enter_context(self.reporter.phase(shown))

    def _look(self, board: mmap.mmap) -> int:
        """The signs of life so far; progress is shown on the way."""
        phase, beats, done, total = BOARD.unpack_from(board, 0)
        if self.phase and phase == self.phase_number and (done, total) != (self.done, self.total):
            self.done, self.total = done, total
            self.task(done, total)
        return int(beats)

    def _busy(self) -> str:
        if not self.phase:
            return "before or after searching" if self.phase_number else "while it started"
        position = f" (call {self.done + 1:,} of {self.total:,})" if self.total else ""
        return f"while {self.phase.text}{position}"

    def _stack(self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> str:
        """Where a launch that hangs is, in words; its handler needs no lock of Python's."""
        self.lines.clear()
        process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + _STACK_S
        place = None
        while place is None and time.monotonic() < end and process.poll() is None:
            self._read_pipes(process, selector, _TICK_S, forward=False)
            place = next((line for line in self.lines if line.startswith("  File ")), None)
        return f", in {place.strip()}" if place else ""

    def _read(self) -> tuple[list[Run], str]:
        try:
            answer = pickle.loads(self.answer.read_bytes())
        except Exception as problem:
            return [], f"{self.name} gave an answer that cannot be read: {problem!r}"
        if "error" in answer:
            raise child.rebuilt(answer["error"], [self.name] if self.number else [])
        return answer["runs"], ""
