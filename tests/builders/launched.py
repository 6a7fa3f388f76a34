"""Retrievers that do something bad in a launch of their own."""

from __future__ import annotations

from typing import Any

from retrieval_bench.measure.calls import Timings
from retrieval_bench.runs.summary import Summary

SCRIPTED = """
import ctypes, os, signal, sys, threading, time
from pathlib import Path
from retrieval_bench import Retriever
from own import Overlap


class Normal(Overlap):
    def describe(self):
        return {"hash seed": os.environ["PYTHONHASHSEED"], "hash": hash("word"),
                "lock": threading.Lock()}


class Second(Normal):
    pass


class InLaunch(Overlap):
    '''Does something bad in its fifth search, in each launch what its place in the list says.'''

    def __init__(self, *, actions):
        super().__init__()
        self.action, self.n = actions[int(os.environ["PYTHONHASHSEED"]) - 1], 0

    def search(self, query, k):
        self.n += 1
        if self.n == 5:
            if self.action == "exit":
                os._exit(3)
            if self.action == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.action == "segfault":
                ctypes.string_at(0)
            if self.action == "contract":
                return [("d1", float("nan"))]
            if self.action == "hang":
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
                libc = ctypes.PyDLL(None)  # keeps Python's lock
                while True:
                    libc.pause()
        return super().search(query, k)


class Loud(Overlap):
    def search(self, query, k):
        print("소리 " * 2000)
        os.write(1, b"raw\\n")
        return super().search(query, k)


class Waits(Overlap):
    '''Says that it searches, and is slow in the launch named.'''

    def __init__(self, *, launch=2):
        super().__init__()
        self.slow = os.environ["PYTHONHASHSEED"] == str(launch)
        self.n = 0

    def search(self, query, k):
        self.n += 1
        if self.slow and self.n > 60:
            if self.n == 61:
                Path("part").write_text(str(os.getpid()))
                Path("part").rename("searching")
            time.sleep(0.05)
        return super().search(query, k)
"""


def resummarize(summary: Summary, timings: Timings) -> Summary:
    return summary.replace(latency_ms={"n": len(timings.wall_ns)})


def bad(*actions: str) -> dict[str, Any]:
    return {"target": "scripted:InLaunch", "name": "bad", "params": {"actions": list(actions)}}
