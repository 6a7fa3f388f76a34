"""One side's process, seen from outside: started, told what to do, and never waited for in vain."""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import tempfile
import time
from array import array
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.foreign import how_ended
from retrieval_bench.duets import worker
from retrieval_bench.duets.sides import Side
from retrieval_bench.measure import child

START_S = 1800.0
"""Longest time in seconds until a side has built its index."""

_TURN_S = 0.1
"""What all but one call of a turn may take together: only short calls share one."""

_BESIDES = 0.05
"""Share of the processor's time that other threads may take of a search that uses one."""

_LAST_S = 60.0
_LOOK_S = 1.0
_SLACK_NS = 20_000_000
_END_S = 2.0
_NUMBER = struct.Struct("=q")


class LostError(Exception):
    """A side's process died, hung, or said something impossible; the text says which and why."""

    def __init__(self, text: str, process: object) -> None:
        super().__init__(text)
        self.process = process


class BrokenSideError(Exception):
    """A side cannot be built: it would fail in the next process, too."""


class SideProcess:
    """A process that holds the retriever of one side.

    Args:
        spec: what is measured, the same for both sides.
        hash_seed: PYTHONHASHSEED, the same for both sides.
        call_s: longest time of one call in seconds.

    Raises:
        BrokenSideError: no process can be started.
    """

    def __init__(
        self, side: Side, spec: Mapping[str, Any], *, hash_seed: int, call_s: float
    ) -> None:
        self.side = side
        self.call_s = call_s
        self.facts: dict[str, Any] = {}
        self._buffer = b""
        place = side.place
        with ExitStack() as opened:
            try:
                self._words = opened.enter_context(tempfile.TemporaryFile())
                self._answers, theirs = os.pipe()
                opened.callback(os.close, self._answers)
                with os.fdopen(theirs, "wb"):
                    self._process = subprocess.Popen(
                        [
                            str(place.python),
                            "-P",
                            str(Path(worker.__file__).resolve()),
                            str(theirs),
                        ],
                        stdin=subprocess.PIPE,
                        stdout=self._words,  # what a retriever prints is no answer
                        stderr=self._words,
                        pass_fds=(theirs,),
                        cwd=place.folder,
                        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
                        start_new_session=True,  # Ctrl-C is for whoever watches
                        bufsize=0,
                    )
            except OSError as problem:
                raise BrokenSideError(f"cannot start {place.python}: {problem.strerror}") from None
            if self._process.stdin is None:
                raise AssertionError("it was asked for")
            opened.enter_context(self._process.stdin)
            opened.callback(child.kill, self._process)
            self._told = self._process.stdin.fileno()
            retriever = side.retriever if isinstance(side.retriever, str) else dict(side.retriever)
            message = dict(spec) | {
                "retriever": retriever,
                "overrides": list(side.overrides),
                "sys_path": list(place.sys_path),
            }
            with suppress(OSError):  # whoever waits for it will hear that it ended
                self._write(json.dumps(message).encode() + b"\n")
            self._opened = opened.pop_all()

    def ready(self) -> dict[str, Any]:
        """Wait until the index is built; what the process says of itself.

        Raises:
            BrokenSideError: it cannot be built.
            LostError: the process ended or took too long.
        """
        end = time.monotonic() + START_S
        while "queries" not in self.facts:
            self.facts |= self._line(end)
            secrets.remember(self.facts["filled"])
            if "error" in self.facts:
                raise BrokenSideError(secrets.redact(self.facts["error"])) from RuntimeError(
                    secrets.redact(self.facts["traceback"])
                )
        return self.facts

    def times(self, queries: Sequence[int]) -> array[int]:
        """Nanoseconds of a call of each query, in this order; ``worker.FAILED`` where it raised.

        Raises:
            LostError: no answer in time, or times that cannot be.
        """
        start = time.monotonic_ns()
        self._send(_NUMBER.pack(len(queries)) + array("q", queries).tobytes())
        answer = self._numbers(len(queries))
        took = time.monotonic_ns() - start
        inside = sum(value for value in answer if value > 0)
        if 0 in answer:
            raise self._lost("its clock stood still: a call took no time", kill=True)
        if min(answer) < worker.FAILED or inside > took + _SLACK_NS:
            raise self._lost(
                f"its clock jumped: {inside / 1e9:.3f} s within {took / 1e9:.3f} s", kill=True
            )
        return answer

    def rest(self) -> None:
        """Let it collect its garbage now."""
        self._send(_NUMBER.pack(worker.REST))
        self._numbers(1)

    def one_threaded(self) -> bool:
        """Whether its searches so far were the work of one thread.

        Raises:
            LostError: it ended.
        """
        self._send(_NUMBER.pack(worker.CPU))
        own, others = self._numbers(2)
        return others <= _BESIDES * (own + others)

    def keep_to(self, core: int | None) -> bool:
        """Search on this core only, None: on any; whether the system lets it. Threads that it has
        already go where they like.

        Raises:
            LostError: it ended.
        """
        self._send(_NUMBER.pack(worker.CORE) + _NUMBER.pack(worker.ANY if core is None else core))
        return self._numbers(1)[0] != worker.FAILED

    def digests(self, queries: Sequence[int]) -> list[int]:
        """One number for each query, equal where the ranking is.

        Raises:
            LostError: a search took too long, or ended the process.
        """
        found: list[int] = []
        for query in queries:
            self._send(_NUMBER.pack(worker.DIGEST) + _NUMBER.pack(query))
            found += self._numbers(1)
        return found

    def last(self) -> dict[str, Any]:
        """What the process says of itself after its searches: ``files``, ``environment`` and
        ``complaints`` about threads; it can be asked nothing more.

        Raises:
            LostError: it ended without.
        """
        self._send(_NUMBER.pack(worker.LAST))
        self.facts |= self._line(time.monotonic() + _LAST_S)
        return self.facts

    def close(self) -> None:
        """End it, and whatever it started."""
        with self._opened, suppress(OSError, subprocess.TimeoutExpired):
            os.write(self._told, _NUMBER.pack(worker.END))
            self._process.wait(_END_S)

    def _send(self, content: bytes) -> None:
        try:
            self._write(content)
        except OSError:
            raise self._lost("it ended") from None

    def _write(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            view = view[os.write(self._told, view) :]

    def _line(self, end: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            self._buffer += self._read(1 << 16, end)
        line, self._buffer = self._buffer.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def _numbers(self, n: int) -> array[int]:
        end = time.monotonic() + self.call_s + (_TURN_S if n > 1 else 0)
        while len(self._buffer) < 8 * n:
            self._buffer += self._read(8 * n - len(self._buffer), end)
        found = array("q", self._buffer[: 8 * n])
        self._buffer = self._buffer[8 * n :]
        return found

    def _read(self, size: int, end: float) -> bytes:
        """What is there of ``size`` bytes, once anything is.

        What it has started may hold the pipe open when it is gone: so it is looked after itself.
        """
        while not self._readable(min(_LOOK_S, end - time.monotonic())):
            if self._process.poll() is not None and not self._readable(0.0):
                raise self._lost("it ended")
            if time.monotonic() >= end:
                raise self._lost("it gave no answer in time", kill=True)
        chunk = os.read(self._answers, size)
        if not chunk:
            raise self._lost("it ended")
        return chunk

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._answers], [], [], max(0.0, seconds))[0])

    def _lost(self, what: str, *, kill: bool = False) -> LostError:
        if kill:
            child.kill(self._process)
        else:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        code = self._process.poll()
        how = f" ({how_ended(code)})" if code and not kill else ""
        return LostError(f"{self.side.name}: {what}{how}{self._last_words()}", self)

    def _last_words(self) -> str:
        try:
            size = self._words.seek(0, os.SEEK_END)
            self._words.seek(max(0, size - 4096))
            return child.last_words(self._words.read().decode("utf-8", "replace"))
        except (OSError, ValueError):
            return ""
