"""One event loop for all calls of an async-only engine, for callers that are not async.

``asyncio.run`` per call would make a loop each time, and connections that an engine keeps open
belong to the loop they were opened in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Result = TypeVar("Result")

_GRACE_SECONDS = 1.0
"""How long an interrupted call may take to clean up after itself."""


class EventLoop:
    """Runs coroutines one at a time to their end, always on the same loop.

    The loop is made at the first call. It runs in the calling thread; where a loop runs there
    already (a notebook), in a private thread. Not for several threads at once.

    An exception that a signal handler raises meanwhile (a time-out, Ctrl-C) cancels the running
    coroutine, waits a moment for its clean-up, and goes on to the caller.
    """

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._worker: _Worker | None = None
        self._task: asyncio.Task[Any] | None = None
        self._interrupt: BaseException | None = None

    def run(self, call: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run the coroutine that ``call`` makes, and return or raise as it does."""
        loop = self._loop()
        if not _loop_runs_here():
            return self._run_here(loop, call)
        if self._worker is None:
            self._worker = _Worker()
        done: Future[Result] = Future()
        try:
            run = copy_context().run  # as where the loop runs in the calling thread
            self._worker.do(lambda: run(self._run_here, loop, call), done)
            return done.result()
        except BaseException:
            self._cancel_in_worker(loop, done)
            raise

    def close(self) -> None:
        """Cancel what is left on the loop and close it; a later :meth:`run` makes a new one."""
        runner, self._runner = self._runner, None
        worker, self._worker = self._worker, None
        if runner is not None:
            if _loop_runs_here():
                worker = worker or _Worker()
                closed: Future[None] = Future()
                worker.do(runner.close, closed)
                closed.result()
            else:
                runner.close()
        if worker is not None:
            worker.end()

    def _loop(self) -> asyncio.AbstractEventLoop:
        if self._runner is None:
            # With a factory of its own, the runner leaves the thread's current loop as it is.
            runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
            runner.get_loop().set_exception_handler(self._on_error)
            self._runner = runner
        return self._runner.get_loop()

    def _run_here(
        self, loop: asyncio.AbstractEventLoop, call: Callable[[], Coroutine[Any, Any, Result]]
    ) -> Result:
        self._interrupt = None
        task: asyncio.Task[Result] = loop.create_task(call())
        self._task = task
        try:
            result = loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait({task}, timeout=_GRACE_SECONDS))
                if task.done() and not task.cancelled():
                    task.exception()  # seen here, or asyncio logs that nobody saw it
            if self._interrupt is not None:
                raise self._interrupt from None
            raise
        finally:
            self._task = None
        if self._interrupt is not None:
            raise self._interrupt
        return result

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """asyncio keeps what is raised between two steps of a task to itself; the exception of a
        signal handler that happens to hit there must not be lost."""
        problem = context.get("exception")
        if "handle" in context and problem is not None and not isinstance(problem, Exception):
            self._interrupt = problem
            loop.stop()
        else:
            loop.default_exception_handler(context)

    def _cancel_in_worker(self, loop: asyncio.AbstractEventLoop, done: Future[Any]) -> None:
        def cancel() -> None:
            if self._task is not None and not done.done():
                self._task.cancel()

        if done.done():
            return
        loop.call_soon_threadsafe(cancel)
        if wait([done], timeout=_GRACE_SECONDS).not_done and self._worker is not None:
            # It is stuck in code that does not give way: leave it and its loop to themselves.
            self._worker.end()
            self._worker = self._runner = None


class _Worker:
    """A thread that does one job after the other. Unlike an executor's, it is started before the
    first job, so that an interrupted caller never leaves a job without a thread or with two."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=self._work, name="event-loop", daemon=True).start()

    def do(self, job: Callable[[], Result], done: Future[Result]) -> None:
        """Let the thread do ``job`` and put what comes of it into ``done``."""

        def fulfil() -> None:
            try:
                result = job()
            except BaseException as problem:
                done.set_exception(problem)
            else:
                done.set_result(result)

        self._jobs.put(fulfil)

    def end(self) -> None:
        """End the thread after its last job."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
