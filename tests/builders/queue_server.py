"""A service of one worker whose service times are known by the number of the call, and which writes
down when each call came and was answered. ``python -m tests.builders.queue_server`` is the server;
:class:`Asking` a retriever that calls it."""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench import Query, Retriever
from retrieval_bench.core.retriever import Capabilities

_MOST = 1 << 20


def service_s(seed: int, mean_s: float) -> NDArray[np.float64]:
    """Seconds that the worker takes for each call, in the order in which calls come."""
    return np.random.default_rng(seed).exponential(mean_s, _MOST)


class Server:
    """Listens on this machine only; one thread serves, one after the other.

    Args:
        stall_s, each_s: it stands still so long, so often.
    """

    def __init__(self, times: NDArray[np.float64], stall_s: float, each_s: float):
        self.times = times
        self.came: list[int] = []
        self.done: list[int] = []
        self._stall_s, self._each_s = stall_s, each_s
        self._waiting: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        for run in (self._accept, self._serve):
            threading.Thread(target=run, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        while connection.recv(1):
            self.came.append(time.perf_counter_ns())
            self._waiting.put(connection)

    def _serve(self) -> None:
        stalled = time.perf_counter()
        while True:
            connection = self._waiting.get()
            if self._stall_s and time.perf_counter() - stalled > self._each_s:
                time.sleep(self._stall_s)
                stalled = time.perf_counter()
            _sleep(self.times[len(self.done)])
            self.done.append(time.perf_counter_ns())
            try:
                connection.sendall(b"!")
            except OSError:
                continue


def _sleep(seconds: float) -> None:
    """More exactly than the system: the last part is waited for."""
    until = time.perf_counter() + seconds
    if seconds > 3e-4:
        time.sleep(seconds - 2e-4)
    while time.perf_counter() < until:
        time.sleep(0)


class Running:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self.config = {
            "target": "tests.builders.queue_server:Asking",
            "params": {"port": port},
            "name": "queue",
        }

    def stamps(self, folder: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """When calls came and when they were answered since the last time, nanoseconds."""
        path = folder / "stamps.npz"
        self.say({"write": str(path)})
        with np.load(path) as kept:
            return kept["came"], kept["done"]

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()


@contextmanager
def running(**given: Any) -> Iterator[Running]:
    """A server with these service times: ``seed``, ``mean_s``, ``stall_s``, ``each_s``."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(given)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            yield Running(process, int(process.stdout.readline()))
        finally:
            process.kill()


class Asking(Retriever):
    """Calls it over a connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection: socket.socket | None = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=True)

    def search(self, query: Query, k: int) -> list[tuple[str, float]]:
        if self._connection is None:
            self._connection = connect(self.port)
        self._connection.sendall(b"?")
        if not self._connection.recv(1):
            self._connection = None
            raise ConnectionError("the server has gone")
        return [("phy-001", 1.0)]


def connect(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _main(seed: int, mean_s: float, stall_s: float = 0.0, each_s: float = 0.0) -> None:
    sys.setswitchinterval(0.0002)
    server = Server(service_s(seed, mean_s), stall_s, each_s)
    say = sys.stdout.write
    say(f"{server.socket.getsockname()[1]}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        n = len(server.done)
        np.savez(json.loads(line)["write"], came=server.came[:n], done=server.done[:n])
        server.came.clear()
        server.done.clear()
        say("written\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(**json.loads(sys.argv[1]))
