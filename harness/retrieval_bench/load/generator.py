"""The generator: processes that make the calls, told level after level what to do."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import ContractError
from retrieval_bench.load.clients import NANOSECONDS
from retrieval_bench.load.schedule import Pace
from retrieval_bench.load.stamps import Calls, read_calls
from retrieval_bench.measure import child

WORKER = "retrieval_bench.load.calling"
"""What runs in each process."""

_GRACE_S = 15.0
"""Beyond the time-out of the last calls, until a process that says nothing is given up."""

_LEAD_S = 0.2
"""From telling all processes until the first call is due."""

CLOSING_S = 5.0

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Level:
    """One level of load.

    Attributes:
        pace: when calls are due; None = clients that call in turn.
        slots: calls that each process has under way at most; of clients, how many it has.
        seconds: of the window whose calls count.
        warm_up_s: before it, with the same load.
        timeout_s: how long after the window its calls may still be answered.
        processes: that share the load.
        watched: memory is read each second.
    """

    pace: Pace | None
    slots: int
    seconds: float = 10.0
    warm_up_s: float = 2.0
    timeout_s: float = TIMEOUT_S
    seed: int = 0
    processes: int = 1
    watched: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """What only a process of the generator knows of a level.

    Attributes:
        still: slots that had not got an answer when the time was up.
        integral: of calls under way, over the window, call-nanoseconds.
        most: calls under way at once.
        cpu_s: processor time of the whole process.
        took_s: from the start to the end.
        peak_rss_bytes: of memory so far.
        memory: where it is watched, see :func:`.soak.watch`.
    """

    still: int
    integral: int
    most: int
    cpu_s: float
    took_s: float
    peak_rss_bytes: int
    memory: Sequence[Sequence[float | None]] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """The calls of a level as they were made.

    Attributes:
        begin, end: of the window, nanoseconds after the level's start, as all stamps.
        processes: None for one that was lost; its calls are there as far as it came.
        lost: why, in words, one for each that was lost.
        answers: distinct answers by process and number: the query and its hits.
    """

    level: Level
    calls: Calls
    begin: int
    end: int
    processes: Sequence[Process | None]
    lost: Sequence[str] = ()
    answers: Mapping[tuple[int, int], tuple[int, tuple[str, ...]]] = field(default_factory=dict)


class Generator:
    """Processes that stay for several levels; one that is lost is replaced before the next level.

    Args:
        start: starts one, which is told what to prepare, see :mod:`.calling`; its argument are the
            processes that are there.
        folder: where they write their stamps.
    """

    def __init__(self, start: Callable[[Sequence[Member]], Member], folder: Path) -> None:
        self.folder = folder
        self.external = self.threads = False
        self.fingerprints: set[str] = set()
        self._start = start
        self._members: list[Member] = []

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.close()

    def prepare(self, n: int) -> None:
        """Have ``n`` processes that are ready.

        Raises:
            HarnessError: what one of them found wrong.
            ContractError: one ended before it was ready.
        """
        self._members = [one for one in self._members if one.alive()]
        new = []
        while len(self._members) < n:
            new.append(self._start(self._members))
            self._members.append(new[-1])
        for member in new:
            facts = member.wait("ready", None)
            if isinstance(facts, str):
                raise ContractError(
                    f"a process of the generator {facts}",
                    accepted="a retriever that does not end its process",
                    fix="measure one call at a time to see more: retrieval-bench bench",
                )
            self.external, self.threads = facts["external"], facts["threads"]
            self.fingerprints.add(facts["fingerprint"])

    def run(self, level: Level) -> Made:
        """Make the calls of ``level``.

        Raises:
            HarnessError: what a process found wrong, such as a full disk.
        """
        self.prepare(level.processes)
        members = self._members[: level.processes]
        pace = level.pace
        before_s = level.warm_up_s + (pace.ramp_s if pace is not None else 0.0)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="level-") as folder:
            for number, member in enumerate(members):
                member.say(
                    {
                        "folder": folder,
                        "process": number,
                        "processes": level.processes,
                        "slots": level.slots,
                        "seconds": [before_s, level.seconds],
                        "pace": None if pace is None else asdict(pace),
                        "timeout": level.timeout_s,
                        "seed": level.seed,
                        "watched": level.watched,
                    }
                )
            # Connections and files are made first: they would take of the time of the calls.
            armed = [member.wait("armed", None) for member in members]
            lost = [facts for facts in armed if isinstance(facts, str)]
            # Of each machine's clock that stamps are taken from, the time of day when it was 0.
            zeros = [0 if isinstance(facts, str) else int(facts["zero"]) for facts in armed]
            start = time.time_ns() + int(_LEAD_S * NANOSECONDS)
            begin, end = (int(s * NANOSECONDS) for s in (before_s, before_s + level.seconds))
            for member, zero in zip(members, zeros, strict=True):
                member.say({"start": start - zero})
            limit = before_s + level.seconds + level.timeout_s + _GRACE_S
            until = time.monotonic() + limit
            processes: list[Process | None] = []
            for member in members:
                facts = member.wait("finished", until)
                if isinstance(facts, str):
                    lost += [] if facts in lost else [facts]
                    processes.append(None)
                    member.close()
                    continue
                processes.append(Process(**facts))
                if facts["still"]:
                    member.close()  # a thread can't be stopped: it would call on in the next level
            paths = [Path(folder) / f"calls-{at}.bin" for at in range(level.processes)]
            calls = read_calls(paths, level.slots, [zero - start for zero in zeros])
            answers = {
                (at, number): (query, tuple(ids))
                for at in range(level.processes)
                for number, query, ids in _lines(Path(folder) / f"answers-{at}.jsonl")
            }
        return Made(level, calls, begin, end, processes, lost, answers)


def _lines(path: Path) -> Iterator[list[Any]]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.endswith("]"):  # a process that was killed may have cut off the last one
                yield json.loads(line)


class Member(ABC):
    """One process, seen from here."""

    def __init__(self) -> None:
        self.told: SimpleQueue[dict[str, Any] | str] = SimpleQueue()
        """What it says; a text, in the end: how it ended, in words."""

    @abstractmethod
    def alive(self) -> bool:
        """Whether it can be told more."""

    @abstractmethod
    def say(self, message: Mapping[str, Any]) -> None:
        """Tell it something, unless it has ended, which :meth:`wait` tells."""

    @abstractmethod
    def close(self) -> None:
        """Let it close its retriever, then kill it, and all that it started."""

    def wait(self, what: str, until: float | None) -> dict[str, Any] | str:
        """What it tells under this name; or, in words, how it was lost.

        Args:
            until: by :func:`time.monotonic`; None = for ever.

        Raises:
            HarnessError: what it found wrong.
        """
        try:
            left = None if until is None else max(0.0, until - time.monotonic())
            message = self.told.get(timeout=left)
        except Empty:
            return "gave no sign of life"
        if isinstance(message, str):
            self.told.put(message)  # whoever asks again hears the same
            return message
        if "error" in message:
            raise child.rebuilt(message["error"])
        facts: dict[str, Any] = message[what]
        return facts


class LocalMember(Member):
    """One on this machine."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._words = LastWords()
        self.process = self._stack.enter_context(
            child.started(WORKER, spec, stdout=subprocess.PIPE, stderr=subprocess.PIPE, more=True)
        )
        self._words.hear(self.process.stderr)
        threading.Thread(target=self._listen, daemon=True).start()

    def alive(self) -> bool:
        return self.process.poll() is None

    def say(self, message: Mapping[str, Any]) -> None:
        say(self.process.stdin, message)

    def close(self) -> None:
        with suppress(OSError, subprocess.TimeoutExpired):
            if self.process.stdin is not None:
                self.process.stdin.close()
            self.process.wait(CLOSING_S)
        self._stack.close()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            self.told.put(json.loads(line))
        self.told.put(self._words.of(self.process))


def say(stdin: IO[bytes] | None, message: Mapping[str, Any]) -> None:
    """Write a line, unless the process has ended."""
    if stdin is not None:
        with suppress(BrokenPipeError, ValueError):
            stdin.write((json.dumps(message) + "\n").encode())
            stdin.flush()


class LastWords:
    """The end of what a process writes to its stderr, which is read so that it can go on."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def hear(self, stderr: IO[bytes] | None) -> None:
        """Read ``stderr`` in a thread, to its end."""
        threading.Thread(target=self._hear, args=(stderr,), daemon=True).start()

    def of(self, process: subprocess.Popen[bytes]) -> str:
        """How ``process``, which says nothing more, has ended."""
        return f"ended with code {process.wait()}{child.last_words(''.join(self._lines))}"

    def _hear(self, stderr: IO[bytes] | None) -> None:
        for line in stderr or ():
            self._lines.append(secrets.redact(line.decode("utf-8", "replace")))
            del self._lines[:-200]
