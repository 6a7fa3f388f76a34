"""Calls that have no time limit, such as building a retriever: who waits for one hears of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Tell = Callable[[str], object]

_FIRST_S, _THEN_S = 10.0, 60.0

_told: ContextVar[Tell | None] = ContextVar("waits are told to", default=None)


@contextmanager
def waits_told(tell: Tell | None) -> Iterator[None]:
    """Inside, ``tell`` hears of calls that are waited for; otherwise nobody does."""
    outer = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(outer)


@contextmanager
def waited_for(what: str) -> Iterator[None]:
    """A call without a time limit is made inside, and nothing is timed: after ten seconds, and then
    each minute, it is told that ``what`` has not come to an end."""
    tell, ended = _told.get(), threading.Event()
    if tell is None:
        yield
        return

    def wait(tell: Tell) -> None:
        passed, pause = 0.0, _FIRST_S
        while not ended.wait(pause):
            passed, pause = passed + pause, _THEN_S
            tell(f"retrieval-bench: {what} takes {passed:.0f} s so far (Ctrl-C ends it) ...")

    waiter = threading.Thread(target=wait, args=(tell,), daemon=True)
    try:
        waiter.start()
    except RuntimeError:  # no more threads are allowed
        yield
        return
    try:
        yield
    finally:
        ended.set()
        waiter.join()
