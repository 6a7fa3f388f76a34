"""The generator: processes that make the calls, told level after level what to do."""

from __future__ import annotations

import json
import math
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.notices import from_document
from retrieval_bench.stats.percentiles import quantiles
from retrieval_bench_launches import child
from retrieval_bench_load.engine.clients import NANOSECONDS
from retrieval_bench_load.engine.schedule import Pace
from retrieval_bench_load.engine.stamps import ANSWERED, NEVER, Calls, read_calls

WORKER = "retrieval_bench_load.engine.calling"
"""What runs in each process."""

_GRACE_S = 15.0
"""Beyond the time-out of the last calls, until a process that says nothing is given up."""

_LEAD_S = 0.2
"""From telling all processes until the first call is due."""

CLOSING_S = 5.0

_HEALTH_S = 60.0
"""Until what a process says of its retriever is given up."""

TIMEOUT_S = 10.0

SILENT = "gave no sign of life"


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
        begins_with: slots of a rate, of which there are more as calls need them; 0 = all.
        once: numbers of queries: the warm-up asks the first, again and again, and the window each
            of the others once, and ends where none is left; empty = all are asked, again and again.
    """

    pace: Pace | None
    slots: int
    seconds: float = 10.0
    warm_up_s: float = 2.0
    timeout_s: float = TIMEOUT_S
    seed: int = 0
    processes: int = 1
    watched: bool = False
    begins_with: int = 0
    once: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Process:
    """What only a process of the generator knows of a level.

    Attributes:
        still: slots that had not got an answer when the time was up.
        integral: of calls under way, over the window, call-nanoseconds.
        most: calls under way at once.
        cpu_s: processor time of the whole process.
        took_s: from the start to the end.
        waited_s: for a core, of all threads together, while a call of theirs to a service was
            under way.
        peak_rss_bytes: of memory so far.
        memory: where it is watched, see :func:`.soak.watch`.
    """

    still: int
    integral: int
    most: int
    cpu_s: float
    took_s: float
    peak_rss_bytes: int
    waited_s: float = 0.0
    memory: Sequence[Sequence[float | None]] = ()


@dataclass(frozen=True, slots=True)
class LevelCalls:
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

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which calls are due in the window: those that count."""
        return (self.calls.due >= self.begin) & (self.calls.due < self.end)

    def answered(self) -> tuple[Any, Any, Iterable[tuple[int, Sequence[str]]]]:
        """Of the answered calls the query, and what each took besides waits; and the answers."""
        counted = self.inside if self.level.once else True  # the warm-up repeats its own query
        calls = self.calls[(self.calls.status == ANSWERED) & counted]
        return calls.query, calls.done - calls.sent - calls.waited, self.answers.values()

    @property
    def late_s(self) -> float:
        """The seconds within which 99 % of due calls were made; infinite where none was due."""
        calls = self.calls[self.calls.sent != NEVER]
        if self.level.pace is None or not len(calls):
            return math.inf
        return float(quantiles(calls.sent - calls.due, 0.99)) / NANOSECONDS

    @property
    def seconds(self) -> float:
        """The length of the window."""
        return (self.end - self.begin) / NANOSECONDS


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

    def health(self, took_ns: Sequence[int]) -> list[str]:
        """Ask the first process what there is to say of calls that took so long; nothing where no
        process is left."""
        for member in self._members:
            if member.alive():
                member.say({"health": took_ns})
                facts = member.wait("health", time.monotonic() + _HEALTH_S)
                return [] if isinstance(facts, str) else from_document(facts["warnings"])
        return []

    def run(self, level: Level) -> LevelCalls:
        """Make the calls of ``level``.

        Raises:
            HarnessError: what a process found wrong, such as a full disk.
        """
        try:
            return self._run(level)
        except BaseException:  # they are in the middle of it, and would answer by it
            for member in self._members:
                member.close()
            raise

    def _run(self, level: Level) -> LevelCalls:
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
                        "once": level.once[number :: level.processes],
                        "begins_with": level.begins_with or level.slots,
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
            used_up = [_used_up(calls, level, begin, at) for at in range(level.processes)]
            end = int(min(end, *used_up))
            answers = {
                (at, number): (query, tuple(ids))
                for at in range(level.processes)
                for number, query, ids in _lines(Path(folder) / f"answers-{at}.jsonl")
            }
        return LevelCalls(level, calls, begin, end, processes, lost, answers)


def _used_up(calls: Calls, level: Level, begin: int, process: int) -> float:
    """The moment from which on a process has no query left to ask; infinite where it has."""
    due = calls.due[(calls.due >= begin) & (calls.worker // level.slots == process)]
    left = len(level.once[process :: level.processes]) - 1 - len(due)
    return int(due[-1]) + 1 if level.once and len(due) and left <= 0 else math.inf


def _lines(path: Path) -> Iterator[list[Any]]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # a process that was killed may have cut off the last one
                yield json.loads(line)


class Member(ABC):
    """One process, seen from here."""

    @abstractmethod
    def alive(self) -> bool:
        """Whether it can be told more."""

    @abstractmethod
    def say(self, message: Mapping[str, Any]) -> None:
        """Tell it something, unless it has ended, which :meth:`wait` tells."""

    @abstractmethod
    def hear(self, until: float | None) -> dict[str, Any] | str:
        """What it says next, or, in words, how it was lost.

        Args:
            until: by :func:`time.monotonic`; None = for ever.
        """

    @abstractmethod
    def close(self) -> None:
        """Let it close its retriever, then kill it, and all that it started."""

    def wait(self, what: str, until: float | None) -> dict[str, Any] | str:
        """What it says under this name; or, in words, how it was lost.

        Args:
            until: as for :meth:`hear`.

        Raises:
            HarnessError: what it found wrong.
        """
        message = self.hear(until)
        if isinstance(message, str):
            return message
        if "error" in message:
            raise child.rebuilt(message["error"])
        facts: dict[str, Any] = message[what]
        return facts


class LocalMember(Member):
    """One on this machine."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._stack = ExitStack()
        self._child = self._stack.enter_context(child.started(WORKER, spec, more=True))

    def alive(self) -> bool:
        return self._child.process.poll() is None

    def say(self, message: Mapping[str, Any]) -> None:
        self._child.tell(message)

    def hear(self, until: float | None) -> dict[str, Any] | str:
        message = self._child.next(until)
        if message is not None:
            return message
        return SILENT if self.alive() else self._child.ended()

    def close(self) -> None:
        with self._stack:
            self._child.end(CLOSING_S)
