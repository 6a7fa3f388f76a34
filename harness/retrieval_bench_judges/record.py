"""The record of a judge that is asked: every call is on disk before it is made, and its raw answer,
with the label, before the next one.

A call that a crash cut off was paid for, and its answer is lost: it counts with what the dearest
call until now cost, and is made again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError
from retrieval_bench_judges.evidence import PROMPTED
from retrieval_bench_judges.judges import Answer
from retrieval_bench_labels.label import Label, Pair
from retrieval_bench_labels.store import Store

_LAYOUT = """
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT, who TEXT NOT NULL, query TEXT NOT NULL, doc TEXT NOT NULL,
    answer TEXT, tokens REAL, cost REAL);
CREATE TABLE IF NOT EXISTS again (
    who TEXT NOT NULL, query TEXT NOT NULL, doc TEXT NOT NULL, digest TEXT NOT NULL, grade INTEGER,
    PRIMARY KEY (who, query, doc, digest))
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """The calls of a judge, over all times.

    Attributes:
        calls: that were made, but those that the endpoint refused.
        cut_off: of these, calls that failed or were cut off, of which no answer was kept.
        tokens, cost: that were reported; None where none were. ``cost`` counts a call that was cut
            off like the dearest one.
        dearest: cost of one call.
    """

    calls: int
    cut_off: int
    tokens: float | None
    cost: float | None
    dearest: float


class JudgeRecord(Store):
    """A file of labels with the calls of judges.

    Args:
        path: of the file, which is there.
        who: name of the judge.
    """

    def __init__(self, path: Path, who: str) -> None:
        super().__init__(path)
        self._who = who
        with self._open() as base, base:
            base.executescript(_LAYOUT)

    def begin(self, pair: Pair) -> int:
        """Keep that a call is made now; gives its number."""
        with self._open() as base, base:
            kept = base.execute(
                "INSERT INTO calls (who, query, doc) VALUES (?, ?, ?)", (self._who, *pair)
            )
            return int(kept.lastrowid or 0)

    def finish(self, call: int, label: Label, given: Answer, *, again: bool) -> None:
        """Keep an answer and the label that was read in it, both or none; ``again``, beside the
        label that counts."""

        def beside(base: sqlite3.Connection) -> None:
            base.execute(
                "UPDATE calls SET answer = ?, tokens = ?, cost = ? WHERE id = ?",
                (given.answer, given.tokens, given.cost, call),
            )
            if again:
                said = (self._who, *label.pair, label.digest, label.grade)
                base.execute("INSERT OR REPLACE INTO again VALUES (?, ?, ?, ?, ?)", said)

        self.add_all([] if again else [label], beside)

    def again(self) -> dict[Pair, bool | None]:
        """Give what was asked about twice, and whether the judge said the same, None where neither
        answer has a grade; of texts as they are now."""
        labels = {x.pair: x for x in self.labels() if x.who == self._who}
        with self._open() as base:
            rows = base.execute(
                "SELECT query, doc, digest, grade FROM again WHERE who = ?", (self._who,)
            ).fetchall()
        given = {Pair(query, doc): (digest, grade) for query, doc, digest, grade in rows}
        return {
            pair: None if labels[pair].grade is grade is None else labels[pair].grade == grade
            for pair, (digest, grade) in given.items()
            if pair in labels and labels[pair].digest == digest
        }

    def spent(self) -> Spent:
        """Return what was asked and what it cost."""
        with self._open() as base:
            calls, answered, tokens, cost, dearest = base.execute(
                "SELECT count(*), count(answer), sum(tokens), sum(cost), max(cost) FROM calls "
                "WHERE who = ?",
                (self._who,),
            ).fetchone()
        lost = calls - answered
        whole = None if cost is None else cost + lost * dearest
        return Spent(calls, lost, tokens, whole, dearest or 0.0)

    def forget(self, call: int) -> None:
        """Take out a call that was refused: it cost nothing."""
        with self._open() as base, base:
            base.execute("DELETE FROM calls WHERE id = ?", (call,))

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Keep what the judge is, with what it has spent until now; queries that were ever
        ``prompted`` stay so.

        Raises:
            ConfigError: one of these is not in the pool, or the name is that of labels of another
                model or prompt.
        """
        before = (self.fact(PROMPTED) or {}).get(self._who, {})
        labels, spent = sum(label.who == self._who for label in self.labels()), self.spent()
        for key in ("model", "prompt"):
            asked = {*facts} - {"prompted"} and {key, "source"} & {*before}
            if labels and asked and before.get(key) != facts.get(key):
                raise ConfigError(
                    f"labels of {self._who!r} are of another {key}: {before.get(key)!r}",
                    where="--who",
                    accepted="one model and one prompt for a name",
                    fix="give this one a name of its own",
                )
        prompted = {*facts.get("prompted", ())}
        if prompted and (unknown := sorted(prompted - {q.id for q in self.pool().queries})):
            raise ConfigError(
                f"query {unknown[0]!r} is not in the pool",
                where="--prompted",
                accepted="ids of queries of the pool",
                fix="leave it out",
            )
        same = [said for said in self.again().values() if said is not None]
        own = {
            "prompted": sorted({*before.get("prompted", ()), *prompted}),
            "labels": labels,
            "answered": spent.calls - spent.cut_off,
            "again": len(same),
            "same": sum(same),
            "tokens": spent.tokens,
            "cost": spent.cost,
        }
        whole = json.loads(json.dumps({**before, **facts, **own}))
        self.set_fact(PROMPTED, {**(self.fact(PROMPTED) or {}), self._who: whole})
