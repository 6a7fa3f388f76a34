"""Runs with all that the page shows: times, a hybrid with legs, and texts that mean no good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import Dataset, Document, LegTrace, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.accounting import Scored, Subject, Task, summarize
from retrieval_bench.measure.calls import Measurement, Timings
from retrieval_bench.metrics import default_metrics
from retrieval_bench.runs.evaluation import evaluate
from retrieval_bench.runs.run import Run, pack_rankings

NASTY = [
    "<script>window.broken = 1</script> \"quoted\" & 'single'",
    "</script><img src=x onerror='window.broken = 2'> -->",
    "</details></div><style>body{display:none}</style>",
    "line\u2028separator\u2029paragraph \x00\x07 \ud800 control",
    "\u202eright to left override 왼쪽 \u2066isolate",
    "ما هي عاصمة فرنسا؟",
    "양자 컴퓨터는 어떻게 작동합니까?",
    "为什么天空是蓝色的？ 👩‍👩‍👧",
    "{{ template }} ${javascript} \\u003c &lt;b&gt; &amp;",
    "]]> <!-- <![CDATA[",
]


def make_dataset(n: int = 30, name: str = "sample") -> Dataset:
    """``n`` queries; query i has document i as the relevant one, and every third one more."""
    documents = [
        Document(f"d{i}", f"text of document {i} {NASTY[i % len(NASTY)]}", _title(i))
        for i in range(n + 10)
    ]
    queries = [
        Query(f"q{i}", f"question {i} {NASTY[i % len(NASTY)]}", metadata={"tags": [f"tag {i % 2}"]})
        for i in range(n)
    ]
    qrels = {
        f"q{i}": {f"d{i}": 2, **({f"d{i + 1}": 1} if i % 3 == 0 else {}), f"d{i + 5}": 0}
        for i in range(n)
    }
    return build_dataset(name, documents, queries, qrels)


def _title(i: int) -> str:
    return f"title {i} {NASTY[(i + 3) % len(NASTY)]}" if i % 4 else ""


def make_runs(
    data: Dataset,
    names: Sequence[str] = ("one", "two", "both"),
    *,
    rounds: int = 10,
    replayed: bool = False,
    warnings: Sequence[str] = ("a warning <b>",),
) -> list[Run]:
    """A run for each name, each better than the one before; the third one is a hybrid."""
    return [
        _run(data, name, at, rounds, replayed=replayed, warnings=warnings)
        for at, name in enumerate(names)
    ]


def _run(
    data: Dataset, name: str, at: int, rounds: int, *, replayed: bool, warnings: Sequence[str]
) -> Run:
    rng = np.random.default_rng(at)
    queries = data.evaluated
    rankings: list[Ranking | None] = []
    for i, query in enumerate(queries):
        ids = [f"d{(i + 11 + j) % (len(queries) + 10)}" for j in range(5)]
        rank = int(rng.geometric(0.3 + 0.05 * min(at, 10))) - 1
        if rank < 5:
            ids[rank] = f"d{query.id[1:]}"
        ids = list(dict.fromkeys(ids))
        legs = {}
        if at == 2:
            for leg, found in (("sparse", ids[::-1]), ("dense", [f"d{i}", *ids[:2]])):
                own = list(dict.fromkeys(found))
                ranks = [own.index(one) + 1 if one in own else 0 for one in ids]
                scores = [float(10 - rank) if rank else float("nan") for rank in ranks]
                legs[leg] = LegTrace(ranks, scores, own, [float(9 - j) for j in range(len(own))])
        falling = [float(5 - j) for j in range(len(ids))]
        rankings.append(Ranking(ids, falling, {}, legs))
    n = len(queries)
    wall = (rng.lognormal(1 + at % 7, 0.3, rounds * n) * 1e6).astype(np.int64)
    round_, query_at = np.divmod(np.arange(rounds * n, dtype=np.int32), n)
    stages = {"sparse": wall // 2} if at == 2 else {}
    timings = Timings(wall, round_, query_at, query_at, np.zeros(rounds * n, dtype=bool), stages)
    status = ["ok"] * n
    measurement = Measurement(rankings, status, timings, 60, 0, False, 80, 50)
    packed = pack_rankings([query.id for query in queries], rankings, 10)
    evaluation = evaluate(
        packed.ranking, packed.doc_ids, packed.query_ids, data.qrels, default_metrics(10)
    )
    index = {"seconds": 1.5, "peak_rss_bytes": 120_000_000, "disk_bytes": 3_000_000}
    summary = summarize(
        Subject(name, Capabilities(replays=replayed), index),
        Task(data, queries, 10),
        measurement,
        Scored(evaluation),
        warnings=warnings,
        health=["queries Latin 100 %"],
    )
    return Run(summary, _manifest(), packed, tuple(status), timings, evaluation)


def _manifest() -> dict[str, Any]:
    machine = {"processor": "Sample", "usable_cores": 2, "python": "3", "fingerprint": "m"}
    return {
        "created": "2026-01-02T03:04:05+00:00",
        "session": "s",
        "environment": {"machine": machine, "threads": 1},
        "protocol": {"threads": 1},
    }
