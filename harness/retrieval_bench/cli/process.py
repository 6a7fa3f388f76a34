"""Runs a command in a child process, and owns the exit code.

A command runs code that is not ours, which may end its process with any code, or take it down. The
parent runs none of it. It gives the exit code of a command only when the child hands it over as its
last act, after the result is on screen and on disk; a child that ends without that has failed.

The child is forked before anything heavy is loaded, and shares terminal and process group with its
parent. Where there is no fork (Windows) the command runs in this process.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import FrameType

from retrieval_bench.cli.console import INTERRUPTED, NOT_MEASURED, say
from retrieval_bench.core.calls.foreign import end_if_forked, how_ended
from retrieval_bench.measure.parent import end_with

EXIT_S = 10.0
"""Seconds that the child has to end once its work is done; then it is killed."""

_ECHO_S = 0.1
"""A Ctrl-C at the terminal reaches the child, too. One that it has not had after this long was sent
to the parent alone, and is passed on."""

_PATIENCE, _RUSH_S = 3, 2.0
"""This many Ctrl-C within so many seconds kill the child, which answered none of them."""

_DONE = b"done:"
"""What the child writes before its exit code."""

_HIGH = 100
"""From here on are the numbers of our pipes."""

_PASSED_ON = tuple(
    number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))
)


def guarded(run: Callable[[], int]) -> int:
    """Call ``run``, which runs a command and gives its exit code, in a child process."""
    if not hasattr(os, "fork"):
        return run()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.flush()
    try:
        _open_standard_streams()
        done, heard = _pipe(), _pipe()
        parent, child = os.getpid(), os.fork()
    except OSError as problem:  # no more processes or files are allowed
        say(
            f"retrieval-bench: error: no process can be started: {problem.strerror}\n"
            "  accepted: a process of its own for each command\n"
            "  do: raise the limits on processes and open files (ulimit -u, ulimit -n)"
        )
        return NOT_MEASURED
    if child == 0:
        os.close(done[0])
        os.close(heard[0])
        if not end_with(parent):
            os._exit(NOT_MEASURED)
        return _work(run, done[1], heard[1])
    os.close(done[1])
    os.close(heard[1])
    return _Watch(child, done[0], heard[0]).until_the_end()


def _work(run: Callable[[], int], done: int, heard: int) -> int:
    """Run the command in the child, and hand its exit code over."""
    from retrieval_bench.core.secrets import redact_tracebacks

    own = os.getpid()
    redact_tracebacks()
    os.set_blocking(heard, False)
    signal.set_wakeup_fd(heard, warn_on_full_buffer=False)
    code = run()
    end_if_forked(own)
    with suppress(OSError):  # closed by a retriever: then nobody can know that it is done
        os.write(done, _DONE + bytes([code]))
    return code


def _open_standard_streams() -> None:
    """Give what the caller closed a number of its own, so that nothing else of ours gets it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, out of the way of whoever closes or writes to low numbers."""
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    ends = []
    for end in os.pipe():
        try:
            ends.append(fcntl(end, F_DUPFD_CLOEXEC, _HIGH))
        except OSError:  # fewer are allowed
            ends.append(end)
        else:
            os.close(end)
    return ends[0], ends[1]


class _Watch:
    """Stays with the child until it has ended, and passes on what only the parent was told.

    Args:
        done: the child writes its exit code there when its work is done.
        heard: the child's interpreter writes the number of every signal there that it gets.
    """

    def __init__(self, child: int, done: int, heard: int) -> None:
        self.child = child
        self.done, self.heard = done, heard
        self.code: int | None = None
        self.status: int | None = None
        self.ended_by: int | None = None
        self.interrupts: list[float] = []
        self.written = b""
        self.last_echo = -_ECHO_S
        self.unheard_since: float | None = None
        self.kill_at: float | None = None

    def until_the_end(self) -> int:
        """Wait; gives the exit code of the command."""
        with ExitStack() as stack:
            told = self._listen(stack)
            selector = stack.enter_context(selectors.DefaultSelector())
            for source, answer in (
                (self.done, self._on_done),
                (self.heard, self._on_heard),
                (told, self._on_told),
            ):
                os.set_blocking(source, False)
                selector.register(source, selectors.EVENT_READ, answer)
            self._look()
            while self.status is None:
                for key, _ in selector.select(self._next_deadline()):
                    content = os.read(key.fd, 1 << 12)
                    if content:
                        key.data(content)
                    else:
                        selector.unregister(key.fd)
                self._act()
                self._look()
            with suppress(BlockingIOError):
                self._on_done(os.read(self.done, 1 << 12))
        return self._verdict(self.status)

    def _listen(self, stack: ExitStack) -> int:
        """A pipe on which the interpreter says which signals came; handlers that do nothing."""
        told, tell = os.pipe()
        stack.callback(os.close, told)
        stack.callback(os.close, tell)
        os.set_blocking(tell, False)
        wanted = [signal.SIGCHLD, *_PASSED_ON]
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            wanted.append(signal.SIGINT)
        for number in wanted:
            before = signal.signal(number, _nothing)
            if before is not None:  # set by Python, which can set it back
                stack.callback(signal.signal, number, before)
        old = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        stack.callback(signal.set_wakeup_fd, old)
        return told

    def _on_done(self, content: bytes) -> None:
        self.written += content
        if self.code is None and self.written.startswith(_DONE) and len(self.written) > len(_DONE):
            self.code = self.written[len(_DONE)]
            self.kill_at = time.monotonic() + EXIT_S

    def _on_heard(self, content: bytes) -> None:
        if signal.SIGINT in content:
            self.last_echo = time.monotonic()
            self.unheard_since = None

    def _on_told(self, content: bytes) -> None:
        now = time.monotonic()
        for number in content:
            if number in _PASSED_ON:
                self.ended_by = number
                self._send(number)
            elif number == signal.SIGINT:
                self.interrupts.append(now)
                if now - self.last_echo > _ECHO_S:
                    self.unheard_since = now
        if len(self.interrupts) >= _PATIENCE and now - self.interrupts[-_PATIENCE] <= _RUSH_S:
            self.kill_at = now

    def _next_deadline(self) -> float | None:
        times = [] if self.kill_at is None else [self.kill_at]
        if self.unheard_since is not None:
            times.append(self.unheard_since + _ECHO_S)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _act(self) -> None:
        now = time.monotonic()
        if self.unheard_since is not None and now >= self.unheard_since + _ECHO_S:
            self.unheard_since = None
            self._send(signal.SIGINT)
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = None
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.status is None:
            os.kill(self.child, number)

    def _look(self) -> None:
        pid, status = os.waitpid(self.child, os.WNOHANG)
        if pid:
            self.status = os.waitstatus_to_exitcode(status)

    def _verdict(self, status: int) -> int:
        if self.code is not None:
            if status == -signal.SIGKILL:
                say(
                    "retrieval-bench: the work was done, but its process did not end within "
                    f"{EXIT_S:g} s, and was killed"
                )
            return self.code
        if self.ended_by is not None and status == -self.ended_by:
            signal.signal(self.ended_by, signal.SIG_DFL)
            os.kill(os.getpid(), self.ended_by)
        if self.interrupts:
            say("retrieval-bench: interrupted before it was done")
            return INTERRUPTED
        say(
            "retrieval-bench: error: the process of this command ended before its work was done: "
            f"{how_ended(status)}\n"
            "  where: most likely in code that it loaded: a retriever, a reader, or their "
            "libraries\n"
            "  accepted: code that raises an error where it cannot go on\n"
            "  do: look at the last lines above; `bench --launches 1` tells the query at which it "
            "happens"
        )
        return NOT_MEASURED


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """A handler has to be there for the interpreter to say that a signal came."""
