"""Processes of the generator on the workers of a cluster.

A worker may not have children of its own kind, so a task there starts the process as
:mod:`.generator` does here, and passes on what both sides say.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_launches import child
from retrieval_bench_load.engine.generator import CLOSING_S, SILENT, WORKER, Member
from retrieval_bench_scale.cluster import Cluster, dask

_LOOK_S = 0.5
_HERE = "here"
"""Said again and again: a controller that was killed must not leave its processes behind."""

_SILENCE_S = 30.0


class RemoteMember(Member):
    """One process on a worker, seen from here.

    Args:
        worker: its address.
        spec, folder: what the process is told, and where it runs.
    """

    def __init__(self, cluster: Cluster, worker: str, spec: Mapping[str, Any], folder: str) -> None:
        self._told: SimpleQueue[dict[str, Any] | str] = SimpleQueue()
        self.worker = worker
        self._cluster = cluster
        name = f"retrieval-bench-{token_hex(8)}"
        self._said, self._heard = (
            dask().Queue(f"{name}-{way}", client=cluster.client) for way in ("in", "out")
        )
        self._task = cluster.client.submit(
            relayed, name, dict(spec), folder, workers=[worker], retries=0, pure=False
        )
        self._ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def alive(self) -> bool:
        return not self._ended.is_set()

    def say(self, message: Mapping[str, Any]) -> None:
        self._said.put(dict(message))

    def hear(self, until: float | None) -> dict[str, Any] | str:
        try:
            left = None if until is None else max(0.0, until - time.monotonic())
            message = self._told.get(timeout=left)
        except Empty:
            return SILENT
        if isinstance(message, str):
            self._told.put(message)  # whoever asks again hears the same
        return message

    def close(self) -> None:
        with suppress(Exception):  # the cluster may have gone
            self._said.put(None)
            self._ended.wait(2 * CLOSING_S)
            self._task.cancel()
        self._ended.set()

    def _listen(self) -> None:
        end = f"was lost with its worker {self.worker}"
        while self._cluster.has(self.worker):
            try:
                self._said.put(_HERE)
                message = self._heard.get(timeout=_LOOK_S)
            except TimeoutError:
                if self._task.status == "error":
                    end = f"could not be started on {self.worker}: {self._task.exception()}"
                    break
                continue
            except Exception as problem:  # the cluster has gone
                end = f"was lost with its cluster: {problem}"
                break
            if "ended" in message:
                end = message["ended"]
                break
            self._told.put(message)
        self._ended.set()
        self._told.put(end)


def place(cluster: Cluster, spec: Mapping[str, Any]) -> Callable[[Sequence[Member]], Member]:
    """Starts one process after the other, each on the worker that has the fewest.

    Raises, when it is called:
        ConfigError: no worker is left, or each has as many as it has threads.
    """
    folder = str(Path.cwd())

    def start(there: Sequence[Member]) -> Member:
        busy = Counter(one.worker for one in there if isinstance(one, RemoteMember))
        threads = cluster.client.nthreads()
        free = [one for one in cluster.workers if busy[one] < threads.get(one, 0)]
        if not free:
            raise ConfigError(
                f"{len(there) + 1} processes of the generator on the cluster",
                where=f"--on {cluster.address}",
                accepted=f"at most {sum(threads.values())}: one for each thread of its workers",
                fix="start more workers, or give fewer --processes",
            )
        return RemoteMember(cluster, min(free, key=lambda one: busy[one]), spec, folder)

    return start


def relayed(name: str, spec: Mapping[str, Any], folder: str) -> None:
    """On a worker: a process of the generator, and the two queues that lead to it."""
    client = dask().get_client()
    said, heard = (dask().Queue(f"{name}-{way}", client=client) for way in ("in", "out"))
    with child.started(WORKER, spec, more=True, folder=folder) as process:

        def pass_on() -> None:
            with suppress(Exception):  # either side may end first, or say nothing for too long
                while (message := said.get(timeout=_SILENCE_S)) is not None:
                    if message != _HERE:
                        process.tell(message)
                process.end(CLOSING_S)
            process.process.kill()

        threading.Thread(target=pass_on, daemon=True).start()
        while (message := process.next()) is not None:
            heard.put(message)
        heard.put({"ended": process.ended()})
