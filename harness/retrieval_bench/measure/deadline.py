"""A time-out around one call, without a thread hand-over inside the measurement.

On POSIX and in the main thread a timer signal interrupts the call, whether it computes in Python
or waits for a socket or a lock. Elsewhere, and while native code does not return, a call cannot be
interrupted: it is counted as timed out when it comes back.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class QueryTimeoutError(BaseException):
    """The call ran past its time-out. No ``Exception``, so that a retriever that swallows all of
    those does not swallow this one."""


_LONGEST = 1e8
"""Seconds from which on a time-out is none: three years, and what timers can take."""


class Deadline:
    """Arms and disarms the timer of one call; see :func:`deadline`."""

    def __init__(self, seconds: float | None, *, interrupts: bool) -> None:
        self.seconds = seconds
        self.interrupts = interrupts and seconds is not None
        self._armed = False

    def arm(self) -> None:
        """Start the timer."""
        if self.interrupts and self.seconds is not None:
            self._armed = True
            signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def disarm(self) -> None:
        """Stop the timer; after this no interruption can come any more."""
        if self.interrupts:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    @property
    def complaint(self) -> str:
        """The complaint of a failed call."""
        return f"timed out after {self.seconds:g} s"

    def exceeded(self, elapsed_ns: int) -> bool:
        """Return whether a call that came back had taken too long."""
        return self.seconds is not None and elapsed_ns > self.seconds * 1e9

    def _on_alarm(self, _signal: int, _frame: FrameType | None) -> None:
        if self._armed:
            raise QueryTimeoutError


@contextmanager
def deadline(seconds: float | None) -> Iterator[Deadline]:
    """A :class:`Deadline` that interrupts where this thread and platform can."""
    if seconds is not None and seconds > _LONGEST:
        seconds = None
    able = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    timer = Deadline(seconds, interrupts=able)
    if not timer.interrupts:
        yield timer
        return
    previous = signal.signal(signal.SIGALRM, timer._on_alarm)
    try:
        yield timer
    finally:
        timer.disarm()
        signal.signal(signal.SIGALRM, previous)
