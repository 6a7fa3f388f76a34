"""``compare --judged-by`` of many systems: labels read, fit, both verdicts."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from retrieval_bench_judges.judged_by import compare_judged
from retrieval_bench_labels.label import Kind, Pair
from tests.benchmarks.report import Group, Options, Row
from tests.benchmarks.timing import middle, race
from tests.builders.judged import label_all, pooled, systems

METRICS = ("nDCG@10", "R@10", "RR@10", "P@10", "AP@10")


def measure(options: Options) -> Group:
    """One row: the median of the whole comparison."""
    n = 60 if options.quick else 300
    runs, truth = systems(n, METRICS, noises=(0.5, 0.7, 0.9, 1.1, 1.3, 1.5))
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        store = pooled(Path(folder) / "labels.sqlite", runs)
        first = {query.id for query in store.pool().queries[: n // 5]}
        label_all(
            store, "anna", Kind.PERSON, lambda q, d: truth[Pair(q, d)] if q in first else None
        )
        label_all(
            store, "gpt", Kind.MODEL, lambda q, d: truth[Pair(q, d)] ^ int(rng.random() < 0.1)
        )
        took = race({"ours": lambda _turn: compare_judged(runs, store)}, 3 if options.quick else 9)
    row = Row(
        f"{n} queries x 6 systems x 5 metrics",
        middle(took["ours"]),
        "s",
        at_most=1.0,
        absolute=True,
    )
    return Group("Verdicts of people's labels with a model's", [row], ["from the file of labels"])
