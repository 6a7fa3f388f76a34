"""What the harness itself takes of each measured query, outside and inside the timed call."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from retrieval_bench.core.progress import Phase, Step
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import LegTrace, Query, Ranking
from retrieval_bench.measure.calls import System
from retrieval_bench.measure.protocol import Protocol, plan
from retrieval_bench.measure.runner import measure as run
from retrieval_bench.reports.progress_bar import Bars
from tests.benchmarks import children
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.timing import middle

K = 100
N_IDS = 100_000
LIMIT = 50e-6
MEMORY_LIMIT = 100e6
"""Bytes for a million recorded calls."""


def measure(options: Options) -> Group:
    """Rows for the shapes in which a retriever may answer."""
    n_queries, rounds, repeats = (50, 4, 1) if options.quick else (200, 25, 7)
    ids = [f"doc-{i:07d}" for i in range(N_IDS)]
    known = set(ids)
    queries = [Query(f"q{i}", "six terms of a synthetic query") for i in range(n_queries)]
    rng = np.random.default_rng(11)
    answers = {query.id: _ranking(ids, rng) for query in queries}
    cases = {
        "a Ranking": _Fixed(answers),
        "a Ranking, with the bar": _Fixed(answers),
        "(id, score) pairs": _Fixed({q: _pairs(r) for q, r in answers.items()}),
        "an RRF hybrid, 2 legs": _Fixed({q: _hybrid(r) for q, r in answers.items()}),
        "a Ranking, ties unordered": _Fixed({q: _tied(r) for q, r in answers.items()}),
        "nothing": _Nothing(),
    }
    found: dict[str, list[_Parts]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, retriever in cases.items():
            bar = Bars(_Terminal()) if name.endswith("bar") else None
            found[name].append(_loop(retriever, known, queries, rounds, bar))
    empty = found.pop("nothing")
    rows = [
        Row(
            f"beyond the call: {name}",
            middle([parts.beyond for parts in parts_of]),
            "s",
            at_most=LIMIT,
            absolute=True,
        )
        for name, parts_of in found.items()
    ]
    bare = _bare(_Nothing().search, queries)
    inside = middle([parts.timed for parts in empty])
    before = middle([parts.before for parts in empty])
    return Group(
        f"Harness time per query, k = {K}",
        [
            *rows,
            Row("timed call that does nothing", inside, "s", bare, "by a bare clock"),
            Row("once, before the first timed call", before, "s"),
            *_recorded(20_000 if options.quick else 1_000_000),
        ],
        [
            (
                f"measure() with {rounds} rounds of {n_queries} queries, answers of {K} hits made "
                f"before, their ids checked against {N_IDS:,}; medians of {repeats}"
            ),
            (
                "beyond the call: wall time of the measured rounds, collections included, less the "
                "sum of the timed calls, per timed call"
            ),
            (
                "timed call that does nothing: the harness's part of every recorded time; between "
                "its two readings of the clock stands nothing but search()"
            ),
        ],
    )


def _recorded(n_calls: int) -> list[Row]:
    """Memory of recorded calls, in a process of its own; none where it cannot be measured."""
    grown = children.answer("recorded", str(n_calls))["bytes"]
    if grown is None:
        return []
    limit = MEMORY_LIMIT * n_calls / 1e6 if n_calls >= 1_000_000 else None
    return [
        Row(
            f"memory for {n_calls:,} calls",
            grown,
            "bytes",
            at_most=limit,
            absolute=limit is not None,
        )
    ]


class _Parts(NamedTuple):
    """Seconds per call beyond the timed ones; of a timed call; before the first of them."""

    beyond: float
    timed: float
    before: float


class _Fixed(Retriever):
    """Answers from a dictionary."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    def search(self, query: Query, k: int) -> Any:
        return self._answers[query.id]


class _Nothing(Retriever):
    """Has no hits."""

    _none = Ranking(())

    def search(self, query: Query, k: int) -> Ranking:
        return self._none


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _loop(
    retriever: Retriever, known: set[str], queries: Sequence[Query], rounds: int, bar: Bars | None
) -> _Parts:
    protocol = Protocol(rounds=rounds)
    calls = plan(protocol, len(queries))
    clock = time.perf_counter
    marks: dict[int, float] = {}
    with bar or nullcontext(), bar.phase(Phase(Step.SEARCHING)) if bar else nullcontext() as draw:

        def progress(done: int, total: int) -> None:
            if draw is not None:
                draw(done, total)
            if done in (calls.warm_up, total):
                marks[done] = clock()

        start = clock()
        (found,) = run([System("fixed", retriever, known)], queries, K, protocol, progress=progress)
    timed = found.timings.wall_ns
    rounds_began, ended = marks[calls.warm_up], marks[calls.total]
    return _Parts(
        (ended - rounds_began - float(timed.sum()) / 1e9) / len(timed),
        float(np.median(timed)) / 1e9,
        rounds_began - start,
    )


def _bare(search: Callable[[Query, int], object], queries: Sequence[Query]) -> float:
    """Seconds between two readings of the clock around ``search``: the median of a plain loop."""
    clock = time.perf_counter_ns
    elapsed = []
    for query in list(queries) * 20:
        start = clock()
        search(query, K)
        elapsed.append(clock() - start)
    return float(np.median(elapsed)) / 1e9


def _ranking(ids: Sequence[str], rng: np.random.Generator) -> Ranking:
    chosen = rng.choice(len(ids), K, replace=False)
    return Ranking([ids[i] for i in chosen], np.sort(rng.random(K))[::-1])


def _pairs(ranking: Ranking) -> list[tuple[str, float]]:
    return [(hit.doc_id, hit.score) for hit in ranking]


def _hybrid(ranking: Ranking) -> Ranking:
    """As RRF gives it when the legs share no hit: pairs of equal scores, in order of their ids."""
    ids = list(ranking.doc_ids)
    pairs = [sorted(ids[i : i + 2]) for i in range(0, K, 2)]
    scores = np.repeat(1.0 / (60 + np.arange(1, K // 2 + 1)), 2)
    ranks = np.arange(1, K + 1, dtype=np.int32)
    falling = np.linspace(1, 0, K)
    legs = {name: LegTrace(ranks, falling, ids, falling) for name in ("bm25", "dense")}
    stages = {"tokenize": 10, "sparse": 20, "dense": 30, "fuse": 40}
    return Ranking([doc_id for pair in pairs for doc_id in pair], scores, stages, legs)


def _tied(ranking: Ranking) -> Ranking:
    """Equal scores in an order of the engine's own, which the harness has to correct."""
    return Ranking(ranking.doc_ids, np.repeat(np.arange(K // 5, 0, -1.0), 5))
