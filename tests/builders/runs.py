"""Runs of which a test states the values, the times or nothing at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Query, Ranking
from retrieval_bench.experiment.accounting import Scored, Subject, Task, summarize
from retrieval_bench.measure.calls import Measurement, Timings
from retrieval_bench.metrics import default_metrics, parse_metrics
from retrieval_bench.runs.evaluation import Evaluation, Mean, evaluate
from retrieval_bench.runs.run import Run, pack_rankings
from retrieval_bench.runs.summary import Summary


def numbered(n: int) -> list[str]:
    """The ids of ``n`` queries."""
    return [f"q{i:02}" for i in range(n)]


def run(
    name: str,
    values: ArrayLike,
    ids: Sequence[str] | None = None,
    *,
    metrics: Sequence[str] = ("nDCG@10",),
    **summary: Any,
) -> Run:
    """A run that has nothing but ``values``, one a query, or a column a metric."""
    table = np.array(values, dtype=np.float64).reshape(-1, len(metrics))
    n = len(table)
    means = table.mean(axis=0) if n else [float("nan")] * len(metrics)
    evaluation = Evaluation(
        tuple(ids or numbered(n)),
        parse_metrics(metrics),
        table,
        tuple(Mean(float(mean), None, n) for mean in means),
    )
    facts = {
        "retriever": name,
        "dataset": {"fingerprint": "f", "split": "test"},
        "k": 10,
        "convention": "trec",
        "metrics_version": 1,
    }
    none = timings(np.zeros((0, 0, 0)))
    return Run(
        Summary.model_validate(facts | summary), {}, pack_rankings([], [], 1), (), none, evaluation
    )


def failing(
    name: str, values: ArrayLike, at: Iterable[int], *, metrics: Sequence[str] = ("nDCG@10",)
) -> Run:
    """The same, failed on the queries ``at``, which therefore count 0, or GMAP's least."""
    counted, failed = np.array(values, dtype=np.float64).reshape(-1, len(metrics)), set(at)
    counted[sorted(failed)] = [0.00001 if metric == "GMAP" else 0.0 for metric in metrics]
    made = run(name, counted, metrics=metrics)
    ids = list(made.evaluation.query_ids)
    status = ["ConnectionError: 429" if i in failed else "ok" for i in range(len(ids))]
    return replace(made, rankings=pack_rankings(ids, [None] * len(ids), 10), status=tuple(status))


def timings(ms: Any) -> Timings:
    """Calls of a table of milliseconds (launches, rounds, queries); NaN = not made, below 0 =
    failed."""
    table = np.asarray(ms, dtype=float)
    launch, round_, query = np.indices(table.shape, dtype=np.int32).reshape(3, -1)
    rng = np.random.default_rng(7)
    places = np.argsort(rng.random(table.shape), axis=2).astype(np.int32).ravel()
    made = ~np.isnan(table.ravel())
    order = np.lexsort((places[made], round_[made], launch[made]))
    wall = table.ravel()[made][order]
    return Timings(
        np.rint(np.abs(wall) * 1e6).astype(np.int64),
        round_[made][order],
        places[made][order],
        query[made][order],
        wall < 0,
        {},
        launch[made][order],
    )


def taken(calls: Timings, which: NDArray[Any] | slice) -> Timings:
    """Some of ``calls``, or in another order, without their stages."""
    return Timings(
        calls.wall_ns[which],
        calls.round[which],
        calls.position[which],
        calls.query[which],
        calls.failed[which],
        {},
        calls.launch[which],
    )


def timed_run(ms: Any, name: str = "a", **changes: Any) -> Run:
    """Of a table (launches, rounds, queries)."""
    table = np.asarray(ms, dtype=float)
    dataset = {"fingerprint": "f", "split": "test"} | changes.pop("dataset", {})
    protocol = {"launches": 0, "collector": False, "timeout_s": 60.0} | changes.pop("protocol", {})
    environment = {"threads": 1, "machine": {"fingerprint": "m"}} | changes.pop("environment", {})
    ids = [f"q{i}" for i in range(table.shape[2])]
    facts = {"retriever": name, "dataset": dataset, "k": 10, "latency_ms": {"mean": 1.0, "n": 4}}
    return Run(
        Summary.model_validate(facts | changes.pop("summary", {})),
        {"protocol": protocol, "environment": environment, "session": "s", **changes},
        pack_rankings(ids, [None] * len(ids), 1),
        ("ok",) * len(ids),
        timings(table),
        cast(Evaluation, None),
    )


def sample_run(
    name: str,
    shift: int,
    calls: int = 1000,
    *,
    machine_of: str = "m",
    session: str = "s",
    threads: int = 1,
    min_calls: int = 1000,
    **changes: Any,
) -> Run:
    """A run of 40 queries: query i has its document at rank 1 + (i + shift) % 4."""
    queries = [Query(f"q{i}", f"text {i}") for i in range(40)]
    none = Query("none", "hello", metadata={"answerable": False})
    qrels = {query.id: {f"d{i}": 1} for i, query in enumerate(queries)}
    dataset = Dataset("tiny", None, (*queries, none), qrels, "test", "en", "f" * 32)
    rankings: list[Ranking | None] = []
    for i in range(40):
        ids = [f"x{j}" for j in range(3)]
        ids.insert((i + shift) % 4, f"d{i}")
        rankings.append(Ranking(ids, [4.0, 3.0, 2.0, 1.0]))
    rankings.append(Ranking(["x0"], [1.0]))
    wall = (np.arange(calls, dtype=np.int64) % 97 + 1) * 10_000 * (shift + 1)
    round_, query = np.divmod(np.arange(calls, dtype=np.int32), 40)
    failed = np.zeros(calls, dtype=bool)
    timings = Timings(wall, round_, query, query, failed, {"sparse": wall // 2})
    measurement = Measurement(rankings, ["ok"] * 41, timings, 250, 0, False, 80, 204)
    packed = pack_rankings([q.id for q in (*queries, none)], rankings, 10)
    evaluation = evaluate(
        packed.ranking[:40], packed.doc_ids, [q.id for q in queries], qrels, default_metrics(10)
    )
    index = {"seconds": 1.5, "peak_rss_bytes": 120_000_000, "disk_bytes": None}
    summary = summarize(
        Subject(name, Capabilities(), index),
        Task(dataset, (*queries, none), 10),
        measurement,
        Scored(evaluation),
        warnings=["a warning | with a bar"],
        health=["queries Latin 100 %"],
    )
    machine = {
        "processor": "Sample CPU",
        "usable_cores": 2,
        "python": "CPython 3.11.7",
        "fingerprint": machine_of,
    }
    manifest = {
        "environment": {"machine": machine, "threads": threads},
        "protocol": {"threads": threads, "min_calls": min_calls},
        "session": session,
    }
    return Run(summary.replace(**changes), manifest, packed, ("ok",) * 41, timings, evaluation)


def unjudged_run(
    name: str,
    lists: Mapping[str, Sequence[str]],
    *,
    k: int = 10,
    failed: Sequence[str] = (),
    dataset: str = "loose",
) -> Run:
    """A run on a dataset without judgements: query id -> ids of its hits; one call a query."""
    queries = tuple(Query(one, f"text of {one}") for one in lists)
    data = Dataset(dataset, None, queries, {}, "test", None, dataset.ljust(32, "f"))
    rankings = [None if one in failed else Ranking(list(ids)[:k]) for one, ids in lists.items()]
    status = ["ValueError: no" if one in failed else "ok" for one in lists]
    calls = timings(np.ones((1, 1, len(lists))))
    measurement = Measurement(rankings, status, calls, 250, 0, False, 80, 204)
    packed = pack_rankings(list(lists), rankings, k)
    evaluation = evaluate(packed.ranking[[]], packed.doc_ids, [], {}, default_metrics(k))
    index = {"seconds": 0.5, "peak_rss_bytes": 90_000_000, "disk_bytes": None}
    summary = summarize(
        Subject(name, Capabilities(), index),
        Task(data, queries, k),
        measurement,
        Scored(evaluation),
        warnings=[],
        health=[],
    )
    manifest = {"environment": {"machine": {"fingerprint": "m"}, "threads": 1}, "session": "s"}
    return Run(summary, manifest, packed, tuple(status), calls, evaluation)
