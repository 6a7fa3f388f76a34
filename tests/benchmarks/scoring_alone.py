"""Scoring in a process of its own: a large run in time and memory, and a first call.

``python -m tests.benchmarks.scoring_alone large QUERIES HITS`` and ``... first QUERIES HITS``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.metrics import Judgements, Metric, judge, parse_metrics
from retrieval_bench.metrics.definitions import DEFINITIONS, Definition
from tests.benchmarks import children, memory
from tests.benchmarks.report import Options, Row
from tests.benchmarks.timing import middle, timed

_N_DOCUMENTS = 8_841_823
"""Passages of MS MARCO; their ids are their numbers there."""

_CUTS = (10, 100, 1000)


def measure(options: Options) -> tuple[list[Row], list[str]]:
    """Rows, and notes on them."""
    queries, hits = (200, 100) if options.quick else (7_000, 1_000)
    small, turns = (200, 1) if options.quick else (5_000, 5)
    large = children.answer("scoring_alone", "large", str(queries), str(hits))
    first = [children.answer("scoring_alone", "first", str(small), "100") for _ in range(turns)]
    arrays, metrics = large["arrays"], f"all {large['metrics']:.0f} metrics"
    rows = [
        Row(
            f"{queries:,} x {hits:,} hits, {metrics}: time",
            large["wall"],
            "s",
            at_most=3.0,
            absolute=True,
        )
    ]
    if "peak" in large:
        memory_row = Row(
            f"{queries:,} x {hits:,} hits, {metrics}: memory",
            arrays + large["peak"],
            "bytes",
            arrays,
            "run's arrays",
            at_most=6,
        )
        rows.append(memory_row)
    rows.append(
        Row(
            "first call in a fresh process",
            middle([one["first"] for one in first]),
            "s",
            middle([one["second"] for one in first]),
            "second call",
            at_most=2,
        )
    )
    return rows, [
        (
            f"{queries:,} x {hits:,}: one fresh process; as many documents as MS MARCO has, "
            f"{large['distinct']:,.0f} distinct ids, judgements made ready too; every metric of "
            f"the suite, each variant, cut at {', '.join(map(str, _CUTS))} and not at all"
        ),
        "memory: the run's arrays (ranking and scores), and the most that scoring added to them",
        f"first call: medians of {turns} fresh processes, {small:,} queries x 100 hits, 6 metrics",
    ]


def whole_suite() -> tuple[Metric, ...]:
    """Every metric in each of its variants, at each cut-off that it takes."""
    return parse_metrics(
        [
            f"{name}({variant}){cut}"
            for name, definition in DEFINITIONS.items()
            if definition.compared
            for variant in _variants(definition)
            for cut in _cuts(definition)
        ]
    )


def _variants(definition: Definition) -> list[str]:
    needed = [f"{key}=0.8" for key, values in definition.params.items() if values is float]
    variants = [needed]
    for key, values in definition.params.items():
        if isinstance(values, tuple):
            variants += [[*needed, f"{key}={value}"] for value in values]
        elif values is int:
            variants.append([*needed, f"{key}={5 if key == 'highest' else 2}"])
    return [", ".join(variant) for variant in variants]


def _cuts(definition: Definition) -> list[str]:
    if definition.cut == "refused":
        return [""]
    if definition.cut == "recall":
        return ["@0.5"]
    cuts = [f"@{cut}" for cut in _CUTS]
    return cuts if definition.cut == "required" else ["", *cuts]


class _Run:
    """Rankings, and judgements as MS MARCO's: one relevant document a query, or two."""

    def __init__(self, n_queries: int, n_hits: int) -> None:
        rng = np.random.default_rng(3)
        self.query_ids = [f"q{i}" for i in range(n_queries)]
        picked = np.stack(
            [rng.choice(_N_DOCUMENTS, n_hits, replace=False) for _ in range(n_queries)]
        )
        used, places = np.unique(picked, return_inverse=True)
        self.doc_ids = list(map(str, used.tolist()))
        self.ranking: NDArray[np.int32] = places.reshape(picked.shape).astype(np.int32)
        self.scores = np.sort(rng.random(picked.shape), axis=1)[:, ::-1].copy()
        relevant = rng.integers(0, _N_DOCUMENTS, (n_queries, 2))
        is_found = rng.random(n_queries) < 0.8
        relevant[is_found, 0] = picked[is_found, rng.integers(0, n_hits, n_queries)[is_found]]
        n_relevant = np.where(rng.random(n_queries) < 0.07, 2, 1)
        self.qrels: Mapping[str, Mapping[str, int]] = {
            query_id: {str(one): 1 for one in of[:n].tolist()}
            for query_id, of, n in zip(self.query_ids, relevant, n_relevant, strict=True)
        }

    def score(self, metrics: tuple[Metric, ...]) -> NDArray[np.float64]:
        """All values, (queries, metrics)."""
        joined = judge(self.ranking, self.doc_ids, self.query_ids, Judgements(self.qrels))
        return np.column_stack([metric.compute(joined) for metric in metrics])


def _large(n_queries: int, n_hits: int) -> dict[str, float]:
    run, metrics = _Run(n_queries, n_hits), whole_suite()
    (wall, _), grown = memory.grown(lambda: timed(lambda: run.score(metrics)))
    measured = {
        "wall": wall,
        "metrics": float(len(metrics)),
        "distinct": float(len(run.doc_ids)),
        "arrays": float(run.ranking.nbytes + run.scores.nbytes),
    }
    return measured if grown is None else measured | {"peak": float(grown)}


def _first(n_queries: int, n_hits: int) -> dict[str, float]:
    run = _Run(n_queries, n_hits)
    metrics = parse_metrics(["nDCG@10", "AP@100", "RR", "P@10", "R@100", "Success@1"])
    first, values = timed(lambda: run.score(metrics))
    second, again = timed(lambda: run.score(metrics))
    if not np.array_equal(values, again):
        raise RuntimeError("two calls, two results")
    return {"first": first, "second": second}


if __name__ == "__main__":
    work = {"large": _large, "first": _first}[sys.argv[1]]
    print(json.dumps(work(*map(int, sys.argv[2:]))))
