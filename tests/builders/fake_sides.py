"""Processes of a duet that answer from a script, without a process and without time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrieval_bench_duet.launch import BrokenSideError, LostError
from retrieval_bench_duet.sides import Side

Slower = Callable[[int, int], float]
"""(number of the launch, query) -> what the time of a call is multiplied with."""


class FakeSides:
    """Stands in for :class:`retrieval_bench_duet.launch.SideProcess`.

    Attributes:
        slower: by the name of a retriever; sides that are not named are not slowed.
        lost: name of the retriever -> numbers of the launches in which it dies.
        dies: name of the retriever -> "digests" or "last": at what it dies.
        failing: query numbers at which a retriever raises.
        threaded: retrievers that search with several threads.
        unkept: those that the system keeps to no core; ``cores``: what was tried.
    """

    def __init__(self, n_queries: int = 60, noise: float = 0.02, seed: int = 1) -> None:
        self.n_queries = n_queries
        self.noise = noise
        self.layout = 0.006  # by which processes of one code differ
        self.rng = np.random.default_rng(seed)
        self.slower: dict[str, Slower] = {}
        self.dies: dict[str, str] = {}
        self.last: dict[str, dict[str, Any]] = {}
        self.lost: dict[str, set[int]] = {}
        self.failing: dict[str, set[int]] = {}
        self.broken: dict[str, str] = {}
        self.broken_at: dict[tuple[str, int], str] = {}
        self.failing_at: dict[tuple[str, int], set[int]] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        self.digest_of: dict[str, int] = {}
        self.calls: list[tuple[str, list[int]]] = []
        self.opened: list[tuple[str, int]] = []
        self.threaded: set[str] = set()
        self.unkept: set[str] = set()
        self.cores: list[tuple[str, int | None]] = []
        self.open = 0
        self.interrupt_after: int | None = None

    def __call__(
        self, side: Side, spec: Mapping[str, Any], *, hash_seed: int, call_s: float
    ) -> _FakeProcess:
        name = str(side.retriever)
        self.opened.append((name, hash_seed))
        self.open += 1
        return _FakeProcess(self, name, hash_seed - 1)


def _as_usual(launch: int, query: int) -> float:
    return 1.0


class _FakeProcess:
    def __init__(self, sides: FakeSides, name: str, launch: int) -> None:
        self.sides, self.name, self.launch = sides, name, launch
        self.layout = sides.rng.normal(0, sides.layout)
        self.closed = False

    def ready(self) -> dict[str, Any]:
        if self.name in self.sides.broken:
            raise BrokenSideError(self.sides.broken[self.name])
        if why := self.sides.broken_at.get((self.name, self.launch)):
            raise BrokenSideError(why)
        usual = {
            "name": self.name,
            "queries": [f"q{i}" for i in range(self.sides.n_queries)],
            "dataset": "made",
            "fingerprint": "f",
            "files": [],
            "config": {},
        }
        return usual | self.sides.facts.get(self.name, {})

    def times(self, queries: Sequence[int]) -> array[int]:
        sides = self.sides
        sides.calls.append((self.name, list(queries)))
        if sides.interrupt_after is not None and len(sides.calls) > sides.interrupt_after:
            raise KeyboardInterrupt
        if self.launch in sides.lost.get(self.name, ()):
            raise LostError(f"{self.name}: it ended (killed by SIGKILL)", self)
        slower = sides.slower.get(self.name, _as_usual)
        at = self.name, self.launch
        failing = {*sides.failing.get(self.name, ()), *sides.failing_at.get(at, ())}
        noise = np.exp(sides.noise * sides.rng.standard_normal(len(queries)) + self.layout)
        return array(
            "q",
            [
                -1
                if query in failing
                else int((2e6 + 3e4 * query) * slower(self.launch, query) * one)
                for query, one in zip(queries, noise.tolist(), strict=True)
            ],
        )

    def rest(self) -> None:
        return

    def one_threaded(self) -> bool:
        return self.name not in self.sides.threaded

    def keep_to(self, core: int | None) -> bool:
        self.sides.cores.append((self.name, core))
        return self.name not in self.sides.unkept

    def digests(self, queries: Sequence[int]) -> list[int]:
        self._may_die("digests")
        return [self.sides.digest_of.get(self.name, 0)] * len(queries)

    def last(self) -> dict[str, Any]:
        self._may_die("last")
        usual = {"environment": {"threads": 1}, "complaints": []}
        return usual | self.sides.last.get(self.name, {})

    def _may_die(self, at: str) -> None:
        if self.sides.dies.get(self.name) == at:
            raise LostError(f"{self.name}: it gave no answer in time", self)

    def close(self) -> None:
        assert not self.closed
        self.closed = True
        self.sides.open -= 1
