"""What makes writes: in turn with all other calls, or beside them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Thread
from typing import Any


class InTurn(Executor):
    """Makes a call at once, before anything else."""

    def submit(self, call: Callable[..., Any], /, *of: Any, **how: Any) -> Future[Any]:
        """Call it, and give what came of it."""
        done: Future[Any] = Future()
        _settle(done, call, of, how)
        return done


class Beside(Executor):
    """Makes calls in ``workers`` threads. A call that never returns keeps one of them, and neither
    this nor the end of the program waits for it."""

    def __init__(self, workers: int) -> None:
        self._calls = SimpleQueue[Callable[[], None] | None]()
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, call: Callable[..., Any], /, *of: Any, **how: Any) -> Future[Any]:
        """Call it as soon as a thread is free."""
        done: Future[Any] = Future()
        self._calls.put(lambda: _settle(done, call, of, how))
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads go when they have made their calls."""
        for _ in self._threads:
            self._calls.put(None)

    def _work(self) -> None:
        while (make := self._calls.get()) is not None:
            make()


def _settle(done: Future[Any], call: Callable[..., Any], of: Any, how: Any) -> None:
    if done.set_running_or_notify_cancel():
        try:
            done.set_result(call(*of, **how))
        except Exception as problem:
            done.set_exception(problem)
