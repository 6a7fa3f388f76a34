"""Who computes: processes of this machine, or a Dask cluster, as an ``Executor`` either way.

Tasks are functions of modules with small arguments: paths and numbers. What they make is files in
a folder that all workers see, so that nothing is lost with whoever waits for it.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any

from retrieval_bench.core.calls.foreign import message_of
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.core.progress import Task
from retrieval_bench_scale.cluster import connected

_LOCAL = re.compile(r"local:([1-9]\d{0,3})")
_TRIES = 8
"""Of a task whose process is killed."""

one_at_a_time = threading.Lock()
"""Held by tasks: workers of a cluster may have several threads, an encoder has one caller, and
limits on threads hold for a process."""


@contextmanager
def executor(on: str, folder: Path) -> Iterator[tuple[Executor, int]]:
    """What runs tasks, and how many it runs at once. In the end what still runs is given up.

    Args:
        on: ``local:N`` for so many processes, or the address of a Dask scheduler, whose workers
            prove that they are like this process: see :mod:`retrieval_bench_scale.cluster`.
        folder: that all workers must see under the same path.

    Raises:
        ConfigError: another word, a cluster that is not there, or a worker that differs.
    """
    if found := _LOCAL.fullmatch(on):
        with _Processes(int(found[1])) as local:
            yield local, int(found[1])
    elif on.startswith("tcp://"):
        with connected(on, folder) as cluster:
            yield cluster.client.get_executor(), max(1, sum(cluster.client.nthreads().values()))
    else:
        raise ConfigError(
            f"--on {on}",
            accepted="local:N for N processes of this machine, or tcp://HOST:PORT of a Dask "
            "scheduler",
            fix="such as --on local:4",
        )


def run_all(
    pool: Executor, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], tell: Task
) -> None:
    """Call ``function`` with each of ``tasks``; returns when all are done.

    Raises:
        HarnessError, OSError: that the first one failed with.
        ConfigError: the workers were lost, or it failed with something else.
    """
    futures: list[Future[Any]] = [pool.submit(function, *task) for task in tasks]
    try:
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            tell(done, len(tasks))
    except HarnessError:
        raise
    except Exception as problem:  # each executor has errors of its own for lost workers
        if isinstance(problem, OSError) and problem.errno is not None:
            raise
        raise ConfigError(
            f"the workers failed with {message_of(problem)}",
            accepted="workers that stay, with enough memory for the model",
            fix="run it again, with fewer of them where memory was short; what is done is kept",
        ) from problem
    finally:
        for future in futures:
            future.cancel()


class _Processes(Executor):
    """``n`` processes; one that is killed takes only its own task with it, which is done again.

    A pool of ``n`` processes ends as a whole when one of them is killed: hence ``n`` pools of one,
    each with a thread that waits for it.
    """

    def __init__(self, n: int) -> None:
        self._threads = ThreadPoolExecutor(n)
        self._own = threading.local()
        self._pools: dict[ProcessPoolExecutor, int] = {}
        self._ended = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._threads.submit(self._run, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        self._ended = True
        for pid in list(self._pools.values()):
            with suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        for pool in list(self._pools):
            pool.shutdown()

    def _run(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        for left in reversed(range(_TRIES)):
            try:
                return self._pool().submit(fn, *args, **kwargs).result()
            except BrokenProcessPool:
                broken = self._own.__dict__.pop("pool")
                self._pools.pop(broken, None)
                broken.shutdown()
                if self._ended or not left:
                    raise
        raise AssertionError

    def _pool(self) -> ProcessPoolExecutor:
        """That of this thread."""
        if "pool" not in self._own.__dict__:
            self._own.pool = ProcessPoolExecutor(1, get_context("spawn"), _begin)
            self._pools[self._own.pool] = self._own.pool.submit(os.getpid).result()
            if self._ended:
                raise BrokenProcessPool
        pool: ProcessPoolExecutor = self._own.pool
        return pool


def _begin() -> None:
    """In a new process: Ctrl-C is for whoever waits for it, without whom it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
