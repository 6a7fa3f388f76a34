"""An engine that shows what is written when a test says so, on a clock that nobody waits for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_writes.freshness import Freshness, legs_of, polling_of, shown_of, warnings_of
from retrieval_bench_writes.probes import probes
from retrieval_bench_writes.study import Kind, Seen, Study

RESIDENTS = ("resident 1", "resident 2")
"""Documents that were there before: an answer is seldom alone."""


class VirtualClock:
    """Stands still but for sleeping and for calls."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        self.now += seconds


class RealClock(VirtualClock):
    """This machine's, in seconds."""

    def __call__(self) -> float:
        return time.perf_counter()

    @property
    def now(self) -> float:
        """What the engine goes by."""
        return time.perf_counter()

    @now.setter
    def now(self, value: float) -> None:
        time.sleep(max(0.0, value - time.perf_counter()))


class FreshEngine:
    """Finds the document whose first word is that of the query, and some others behind it.

    Args:
        shows: when a write that is acknowledged at a time is seen by searches.
        call_s: of a call, all of it before its effect.
        texts: whether answers have texts.
        loses: of the n-th write of a kind ("add", "replace", "delete"): it is acknowledged and
            never seen.
        fails: of the n-th call of a kind, or of "search": it raises.
    """

    def __init__(
        self,
        clock: VirtualClock,
        shows: Callable[[float], float] = lambda now: now,
        *,
        call_s: float = 0.001,
        texts: bool = False,
        loses: Callable[[str, int], bool] = lambda kind, n: False,
        fails: Callable[[str, int], bool] = lambda kind, n: False,
    ) -> None:
        self.clock, self.shows, self.call_s, self.texts = clock, shows, call_s, texts
        self.loses, self.fails = loses, fails
        self.versions: dict[str, list[tuple[float, str | None]]] = {}
        self.owner: dict[str, str] = {}
        self.calls: dict[str, int] = {}
        self.sent: list[tuple[float, str]] = []

    def add(self, documents: Sequence[Document]) -> None:
        for document in documents:
            kind = "replace" if document.id in self.versions else "add"
            self._write(kind, document.id, document.text)
            self.owner[document.text.split()[0]] = document.id

    def delete(self, ids: Sequence[str]) -> None:
        for doc_id in ids:
            self._write("delete", doc_id, None)

    def search(self, query: Query, k: int) -> Ranking:
        self._called("search")
        word = query.text.split()[0]
        asked = self.owner.get(word, "")
        first = [asked] if (self.text_of(asked) or "").startswith(word) else []
        behind = [name for name in [*self.versions][:2] if self.text_of(name)]
        ids = list(dict.fromkeys([*first, *RESIDENTS, *behind]))[:k]
        texts = [self.text_of(name) or "" for name in ids] if self.texts else None
        return Ranking(ids, [float(-rank) for rank in range(len(ids))], texts=texts)

    def text_of(self, doc_id: str) -> str | None:
        """What searches see of a document now; None where they do not see it."""
        seen = [text for when, text in self.versions.get(doc_id, ()) if when <= self.clock.now]
        return seen[-1] if seen else None

    def _write(self, kind: str, doc_id: str, text: str | None) -> None:
        number = self._called(kind)
        when = math.inf if self.loses(kind, number) else self.shows(self.clock.now)
        self.versions.setdefault(doc_id, []).append((when, text))
        self.sent.append((self.clock.now, kind))

    def _called(self, kind: str) -> int:
        number = self.calls[kind] = self.calls.get(kind, -1) + 1
        self.clock.sleep(self.call_s)
        if self.fails(kind, number):
            raise ConnectionError("the line broke")
        return number


def every(period: float) -> Callable[[float], float]:
    """A refresh at each multiple of ``period``."""
    return lambda now: math.ceil(now / period) * period


def study(n: int, engine: FreshEngine, **changed: Any) -> Study:
    """A study of ``n`` probes on the clock of ``engine``."""
    rng = np.random.default_rng(7)
    usual: Mapping[str, Any] = {
        "rate": 20.0,
        "k": 10,
        "limit_s": 20.0,
        "rng": rng,
        "clock": engine.clock,
        "sleep": engine.clock.sleep,
    }
    sources = ["The tide follows the moon", "달은 지구를 돈다", "月亮绕着地球转", "La mer monte"]
    made = probes(n, sources, "cafe", rng)
    return Study(writer=engine, probes=made, **{**usual, **changed})


def studied(n: int, engine: FreshEngine, **changed: Any) -> Seen:
    """What such a study sees, which cleans up as the measurement does."""
    made = study(n, engine, **changed)
    try:
        return made.run()
    finally:
        made.clean()


def fresh_of(seen: Seen, limit_s: float = 5.0) -> Freshness:
    """The record of it."""
    polling = polling_of(seen)
    return Freshness(
        retriever="articles",
        config="c0ffee",
        dataset="science-mini",
        split="test",
        fingerprint="fade",
        machine="d00d",
        k=10,
        collection="notes",
        rate=20.0,
        count=len(seen.writes),
        limit_s=limit_s,
        seed=42,
        status="complete" if seen.complete else "partial",
        visible=shown_of(seen, Kind.ADD),
        replaced=shown_of(seen, Kind.REPLACE),
        deleted=shown_of(seen, Kind.DELETE),
        legs=legs_of(seen),
        while_writing=None,
        kills=None,
        polling=polling,
        warnings=warnings_of(seen, polling),
    )
