"""A program that is started once and asked over its pipes, a line for a line.

No thread reads for it and no thread is woken while a call is timed: stdout is read by whoever asks,
and stderr goes to a file without a name. A program that died, was too slow or was interrupted in
the middle of a line is ended, so that what it still says is never taken for the next answer.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from retrieval_bench.core import secrets
from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.calls.foreign import how_ended
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.http.answer import shown
from retrieval_bench_retrievers.programs.watch import watched

LINES = 40
"""Last lines of stderr that are told."""

_LONGEST_LINE, _SHOWN_LINES, _SHOWN, _SHOWN_BYTES = 500, 5, 500, 4000
_TAIL_BYTES = 1 << 16
_MOST_BYTES = 1 << 24
"""Of stderr that are kept, about: a program may complain for days."""

_CHUNK = 1 << 16
_LOOK_S = 0.2
"""How often one looks, while waiting, whether it still runs: what it started may hold its pipes."""

_READY_LOOK_S = 0.02
_LEAVE_S = 1.0
"""Seconds that it has to end by itself when its stdin ends, and again when it is told to."""


class _LateError(TransientError):
    """A deadline has passed; what the program wrote so far is kept."""


class Child:
    """A program with its stdin, stdout and stderr; it leads a session of its own, so that Ctrl-C
    reaches it only through :meth:`close`.

    Args:
        command: the program and its arguments.
        name: of it, for messages.
        where: the config key, for messages.
        cwd: the folder that it runs in; None = this process's.
        env: variables that are added to those of this process.
        max_bytes: of a line; a longer one is cut off while it is read.

    Attributes:
        env: variables as given; the next start has them.
        starts: how often it was started.
        answered: whether it has written a line since it was started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str = "the program",
        where: str = "command",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        max_bytes: int = 16 << 20,
    ) -> None:
        self._command = list(command)
        self._name, self._where = name, where
        self._cwd, self.env = cwd, dict(env or {})
        self._max_bytes = max_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._said = b""
        self.starts = 0
        self.answered = False

    @property
    def pid(self) -> int | None:
        """Number of its process; None where it does not run."""
        return None if self._process is None else self._process.pid

    @property
    def files(self) -> list[str]:
        """The files that the command names, or the folder that it runs in where it names none: what
        its code is, as far as can be told."""
        folder = (self._cwd or Path.cwd()).resolve()
        named = [str(folder / word) for word in self._command if len(word) < _LONGEST_LINE]
        return [path for path in named if os.path.isfile(path)] or [str(folder)]  # noqa: PTH113

    def start(self) -> None:
        """Start it, unless it runs.

        Raises:
            ConfigError: there is no such program or folder, or it may not be run.
        """
        if self._process is not None:
            return
        if os.name == "nt":
            raise ConfigError("on Windows no program can be asked", where=self._where)
        complaints = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as it runs
        try:
            _append_only(complaints.fileno())
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                cwd=self._cwd,
                env=os.environ | self.env,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException as problem:
            complaints.close()
            if isinstance(problem, OSError | ValueError):
                raise self._not_started(problem) from None
            raise
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._complaints, self._owner = process, complaints, os.getpid()
        self._stdin, self._stdout = process.stdin, process.stdout
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._reading = select.poll()
        self._reading.register(self._out, select.POLLIN)
        self._both = select.poll()
        self._both.register(self._out, select.POLLIN)
        self._both.register(self._in, select.POLLOUT)
        self._buffer = bytearray()
        self._scanned = 0
        self._at_end = False
        self.starts += 1
        self.answered = False
        atexit.register(self.kill)
        watched.add(process.pid)

    def wait_ready(self, text: str, seconds: float) -> None:
        """Wait for a line that holds ``text``, on stdout or stderr; what stdout holds then, up to
        that line and behind it, is no answer.

        Raises:
            TransientError: it ended before, or did not write it in time.
        """
        sought, deadline = text.encode(), time.monotonic() + seconds
        seen = 0
        while True:
            with suppress(_LateError):
                if sought in self.next_line(min(deadline, time.monotonic() + _READY_LOOK_S)):
                    break
            said = self._stderr_from(seen)
            if sought in said:
                break
            seen = max(0, seen + len(said) - len(sought))
            if time.monotonic() >= deadline:
                self.kill()
                raise self._late(f"{self._name} did not write {text!r} within {seconds:g} s")
        while self._read():
            pass
        self._buffer.clear()
        self._scanned = 0

    def exchange(self, line: bytes, deadline: float | None = None) -> bytes:
        """The one line that it answers to ``line``, without its end. Whatever goes wrong, it is
        ended, and runs again after :meth:`start`.

        Args:
            line: ends with a line feed, which stands nowhere else in it.
            deadline: by :func:`time.monotonic`; None = never.

        Raises:
            TransientError: it has ended, or did not answer in time.
            CallError: its answer is too long, or not one line.
        """
        with self._whole():
            if self._buffer or (self._reading.poll(0) and self._read()):
                raise CallError(
                    f"{self._name} wrote a line that nobody asked for: {self._begin()}; it is to "
                    "answer one line for each that it reads"
                )
            self.send(line, deadline)
            answer = self.next_line(deadline)
            if self._buffer:
                raise CallError(
                    f"{self._name} answered more than one line: behind {_text(answer)} stands "
                    f"{self._begin()}"
                )
        return answer

    def send(
        self, line: bytes, deadline: float | None = None, *, idle_s: float | None = None
    ) -> None:
        """Write ``line``; what it says meanwhile is kept for :meth:`next_line`.

        Args:
            line: to write.
            deadline: by :func:`time.monotonic`; None = never.
            idle_s: in place of it, seconds in which it is to read something, again and again.

        Raises:
            TransientError: it has ended, or did not read in time.
        """
        with self._whole():
            self._trim()
            view, left = memoryview(line), len(line) + 1
            while True:
                if idle_s is not None and len(view) < left:
                    left, deadline = len(view), time.monotonic() + idle_s
                try:
                    view = view[os.write(self._in, view) :]
                except BlockingIOError:
                    pass
                except OSError:
                    raise self._dead() from None
                if not view:
                    return
                if not self._wait(self._both, deadline):
                    raise self._late(f"{self._name} did not read its input in time")
                self._read()
                self._check_length()
                if self._at_end:
                    raise self._dead()

    def next_line(self, deadline: float | None = None) -> bytes:
        """The next line that it writes, without its end. It goes on running after a time-out, with
        what it has written so far kept: a line that comes later is still its next one.

        Raises:
            TransientError: it has ended, or there is no whole line in time.
            CallError: a line is too long.
        """
        with self._whole(but=_LateError):
            while True:
                end = self._buffer.find(b"\n", self._scanned)
                if end >= 0:
                    line = bytes(self._buffer[:end])
                    del self._buffer[: end + 1]
                    self._scanned = 0
                    self.answered = True
                    return line.removesuffix(b"\r")
                self._scanned = len(self._buffer)
                self._check_length()
                if not self._wait(self._reading, deadline):
                    raise self._late(self._silence())
                if self._at_end or (not self._read() and self._ended()):
                    raise self._dead()

    def tail(self) -> list[str]:
        """The last lines of its stderr, at most :data:`LINES`, without secrets."""
        text = secrets.redact(self._stderr().decode("utf-8", "replace"))
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        return [line[:_LONGEST_LINE] for line in lines[-LINES:]]

    def kill(self) -> None:
        """End it at once, with everything in its group."""
        self._end(0.0)

    def close(self) -> None:
        """End its input, give it a moment to leave, and end what is left of its group."""
        self._end(_LEAVE_S)

    def ended_words(self) -> str:
        """The end of its stderr, for the end of a sentence; empty where there is none."""
        words = " / ".join(self.tail()[-_SHOWN_LINES:])
        words = words if len(words) <= _SHOWN else f"... {words[-_SHOWN:]}"
        return f"; its stderr ends: {words}" if words else ""

    @contextmanager
    def _whole(self, but: type[BaseException] = AssertionError) -> Iterator[None]:
        """Do all of it or end the program: a deadline or Ctrl-C may come anywhere inside."""
        if self._process is None:
            raise TransientError(f"{self._name} does not run", Kind.CONNECTION)
        try:
            yield
        except but:
            raise
        except BaseException:
            self.kill()
            raise

    def _wait(self, poll: select.poll, deadline: float | None) -> bool:
        """Wait until there is something to do, or it has ended; False at the deadline."""
        while True:
            left = _LOOK_S if deadline is None else min(_LOOK_S, deadline - time.monotonic())
            if poll.poll(max(0.0, left) * 1000):
                return True
            self._trim()
            if self._ended():
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False

    def _trim(self) -> None:
        if os.fstat(self._complaints.fileno()).st_size > _MOST_BYTES:
            self._complaints.truncate(0)

    def _read(self) -> int:
        """Read what stands in its stdout; the number of bytes."""
        try:
            chunk = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return 0
        self._at_end = not chunk
        self._buffer += chunk
        return len(chunk)

    def _check_length(self) -> None:
        if len(self._buffer) > self._max_bytes:
            raise CallError(
                f"{self._name} wrote more than {self._max_bytes:,} bytes without the end of a "
                f"line: {self._begin()}"
            )

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _stderr(self) -> bytes:
        """The end of its stderr, of its last process where it does not run."""
        if self._process is None:
            return self._said
        size = os.fstat(self._complaints.fileno()).st_size
        return os.pread(self._complaints.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES))

    def _stderr_from(self, start: int) -> bytes:
        """All that it wrote to stderr from byte ``start`` on."""
        number = self._complaints.fileno()
        return os.pread(number, max(0, os.fstat(number).st_size - start), start)

    def _end(self, seconds: float) -> None:
        process = self._process
        if process is None:
            return
        try:
            if self._owner != os.getpid():  # a fork of whoever started it
                return
            with suppress(OSError, ValueError):
                self._stdin.close()
            for number in (0, signal.SIGTERM) if seconds else ():
                _signal_group(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(seconds)
                    break
        finally:
            if self._owner == os.getpid():
                _signal_group(process.pid, signal.SIGKILL)
                process.wait()
                watched.drop(process.pid)
                atexit.unregister(self.kill)
            self._said = self._stderr()
            self._process = None
            for file in (self._stdin, self._stdout, self._complaints):
                file.close()

    def _not_started(self, problem: OSError | ValueError) -> ConfigError:
        name = getattr(problem, "filename", None) or self._command[0]
        says = getattr(problem, "strerror", None) or str(problem)
        return ConfigError(
            f"{self._name} cannot be started: {str(name)!r}: {says}",
            where=self._where,
            accepted="a program that is in PATH or at the place named, and its arguments",
            fix="correct the command, or install the program",
        )

    def _dead(self) -> TransientError:
        """Say how it ended, with its last words."""
        assert self._process is not None
        try:
            how = f"ended ({how_ended(self._process.wait(_LEAVE_S))})"
        except subprocess.TimeoutExpired:
            how = "closed its output"
        half = f" in the middle of a line: {self._begin()}" if self._buffer else ""
        return TransientError(f"{self._name} {how}{half}{self.ended_words()}", Kind.CONNECTION)

    def _late(self, what: str) -> _LateError:
        return _LateError(f"{what}{self.ended_words()}", Kind.TIMEOUT)

    def _silence(self) -> str:
        if self._buffer:
            return f"{self._name} wrote half a line and no end of it in time: {self._begin()}"
        hint = "" if self.answered else "; if it keeps its output in a buffer, flush each line"
        return f"{self._name} did not answer in time{hint}"

    def _begin(self) -> str:
        return _text(self._buffer)


def _text(line: bytes | bytearray) -> str:
    """The beginning of what it wrote, on one line, without secrets."""
    text = shown(secrets.redact(bytes(line[:_SHOWN_BYTES]).decode("utf-8", "replace")))
    return text or "an empty line"


def _append_only(descriptor: int) -> None:
    """Let what is written go to the end of a file, also after it was cut."""
    import fcntl

    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND)


def _signal_group(group: int, number: int) -> None:
    """Send a signal to all processes of a group that are left; 0 only asks whether there are."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
