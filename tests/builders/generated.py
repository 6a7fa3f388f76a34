"""Seeded runs and judgements, made to hit what metrics get wrong, and an ordering of their own.

Nothing here uses the code that is tested: the order of hits is worked out again, from the rule.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Scores = Literal["distinct", "equal", "nearly equal", "wide", "normal"]

EVERY_KIND: tuple[Scores, ...] = ("distinct", "equal", "nearly equal", "wide", "normal")

_SCRIPTS = ("d", "문서", "书", "é", "وثيقة", "～", "😀")
"""The last two stand in another order in UTF-16 than by code points."""

_LENGTHS = (1, 1, 2, 3, 5, 10, 30, 100, 300, 1000)
_LENGTH_WEIGHTS = (0.06, 0.06, 0.1, 0.14, 0.16, 0.2, 0.14, 0.08, 0.04, 0.02)


@dataclass(frozen=True)
class Generated:
    """Judgements and a run; queries that the run lacks are missing, none has an empty ranking."""

    qrels: dict[str, dict[str, int]]
    scores: dict[str, dict[str, float]]

    @property
    def lists(self) -> dict[str, list[str]]:
        """The rankings in trec_eval's order."""
        return {query_id: in_order(row) for query_id, row in self.scores.items()}

    def joined_with(self, other: Generated) -> Generated:
        """Both, which must not share a query."""
        return Generated({**self.qrels, **other.qrels}, {**self.scores, **other.scores})


def single(score: float) -> float:
    """``score`` as C casts it to float."""
    try:
        number: float = struct.unpack("<f", struct.pack("<f", score))[0]
    except OverflowError:
        return math.copysign(math.inf, score)
    return number


def in_order(row: Mapping[str, float]) -> list[str]:
    """Documents by score in single precision, falling, equal ones by the bytes of their id,
    falling."""
    return sorted(row, key=lambda doc: (single(row[doc]), doc.encode()), reverse=True)


def in_order_up(row: Mapping[str, float]) -> list[str]:
    """Documents by score in double precision, falling, equal ones by id, rising."""
    return sorted(row, key=lambda doc: (-row[doc], doc.encode()))


def as_arrays(
    lists: Mapping[str, list[str]], query_ids: Iterable[str]
) -> tuple[NDArray[np.int32], list[str]]:
    """Positions in a list of documents, -1 behind the last hit, and that list."""
    rows = [lists.get(query_id, []) for query_id in query_ids]
    doc_ids = sorted({doc_id for row in rows for doc_id in row})
    position = {doc_id: at for at, doc_id in enumerate(doc_ids)}
    ranking = np.full((len(rows), max(map(len, rows), default=0)), -1, dtype=np.int32)
    for at, row in enumerate(rows):
        ranking[at, : len(row)] = [position[doc_id] for doc_id in row]
    return ranking, doc_ids


def generated(
    seed: int,
    queries: int,
    *,
    kinds: tuple[Scores, ...] = EVERY_KIND,
    lowest: int = -2,
    highest: int = 4,
    lengths: tuple[int, ...] = _LENGTHS,
    missing: float = 0.05,
    without_relevant: float = 0.05,
    scripts: tuple[str, ...] = _SCRIPTS,
) -> Generated:
    """Queries with 1 to 1,000 hits and up to 60 judgements each.

    Args:
        kinds: how scores are drawn; "nearly equal" are so in single precision only, "wide" run from
            below the smallest single to above the greatest.
        lowest: of the grades. At least one grade of a query is 0 or more, for trec_eval writes
            outside its memory where all are negative.
        missing: share of queries that the run lacks.
        without_relevant: share of queries with no grade above 0.
    """
    rng = np.random.default_rng(seed)
    weights = np.array(_LENGTH_WEIGHTS[: len(lengths)])
    qrels: dict[str, dict[str, int]] = {}
    scores: dict[str, dict[str, float]] = {}
    for i in range(queries):
        query_id = f"{seed:03}-{i:05}"
        hits = int(rng.choice(lengths, p=weights / weights.sum()))
        pool = [
            f"{scripts[script]}{number}"
            for script, number in zip(
                rng.integers(0, len(scripts), size=hits + 20), rng.permutation(hits + 20),
                strict=True,
            )
        ]  # fmt: skip
        n_judged = int(rng.integers(1, min(60, len(pool)) + 1))
        top = 0 if rng.random() < without_relevant else int(rng.integers(1, highest + 1))
        grades = rng.integers(lowest, top + 1, size=n_judged)
        grades[0] = max(grades[0], 0)
        judged = rng.choice(len(pool), size=n_judged, replace=False)
        qrels[query_id] = {pool[at]: int(g) for at, g in zip(judged, grades, strict=True)}
        if rng.random() >= missing:
            drawn = _draw(rng, kinds[int(rng.integers(len(kinds)))], hits)
            scores[query_id] = dict(zip(pool[:hits], drawn, strict=True))
    return Generated(qrels, scores)


def _draw(rng: np.random.Generator, kind: Scores, n: int) -> list[float]:
    draw: dict[Scores, Callable[[], NDArray[Any]]] = {
        "distinct": lambda: rng.permutation(n) - n / 3,
        "equal": lambda: rng.integers(0, n // 3 + 1, size=n),
        "nearly equal": lambda: 1000 + rng.integers(0, 5, size=n) * 1e-6 + rng.integers(0, 3),
        "wide": lambda: rng.choice([-1.0, 0.0, 1.0], size=n) * 10.0 ** rng.integers(-320, 300, n),
        "normal": lambda: rng.normal(size=n),
    }
    return [float(score) for score in draw[kind]()]


def generated_lists(
    seed: int, queries: int, *, repeated: bool = True
) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    """Judgements and short rankings as documents, some empty, some with documents repeated.

    About a tenth of the queries has no judgement at all, another no relevant document, and a
    tenth is missing from the rankings.
    """
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    lists: dict[str, list[str]] = {}
    for i in range(queries):
        query_id = f"질문{i}"
        kind = rng.random()
        n_judged = 0 if kind < 0.1 else int(rng.integers(1, 7))
        highest = 0 if kind < 0.2 else int(rng.integers(1, 4))
        docs = rng.choice(10, size=n_judged, replace=False)
        qrels[query_id] = {f"d{d}": int(rng.integers(0, highest + 1)) for d in docs}
        if rng.random() >= 0.1:
            n = int(rng.integers(0, 8))
            hits = rng.choice(10, size=n, replace=repeated)
            lists[query_id] = [f"d{d}" for d in hits]
    return qrels, lists
