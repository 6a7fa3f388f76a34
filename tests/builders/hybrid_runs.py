"""Small runs whose every value can be computed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from retrieval_bench.core.types import Dataset, Document, LegTrace, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.calls import NOT_RUN, OK, Timings
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.runs.evaluation import evaluate
from retrieval_bench.runs.run import Run, pack_rankings
from retrieval_bench.runs.summary import Summary

Lists = Mapping[str, str]
"""Query -> documents of one letter each, best first."""


def make_dataset(
    qrels: Mapping[str, Mapping[str, int]], documents: Sequence[Document] = ()
) -> Dataset:
    """One query for each entry of ``qrels``; documents ``a`` to ``z`` unless given."""
    corpus = documents or [Document(c, f"text of {c}", c.upper()) for c in "abcdefghijklmnopqrst"]
    return build_dataset("tiny", corpus, [Query(q, f"what is {q}") for q in qrels], qrels)


def make_run(
    name: str,
    data: Dataset,
    fused: Lists,
    legs: Mapping[str, Lists] | None = None,
    *,
    k: int = 3,
    metrics: Sequence[str] = ("RR@3", "R@3"),
    failed: Mapping[str, str] | None = None,
    told: bool = True,
) -> Run:
    """A run over the evaluated queries of ``data``; a query that ``failed`` has no ranking.

    Args:
        told: False = the legs keep their lists to themselves, as old runs did.
    """
    failed = failed or {}
    query_ids = [query.id for query in data.evaluated]
    rankings = [
        None if q in failed else _ranking(fused.get(q, ""), legs or {}, q, told=told)
        for q in query_ids
    ]
    status = tuple(failed.get(q, OK) for q in query_ids)
    packed = pack_rankings(query_ids, rankings, k)
    rows = [at for at, one in enumerate(status) if one != NOT_RUN]
    evaluation = evaluate(
        packed.ranking[rows],
        packed.doc_ids,
        [query_ids[at] for at in rows],
        data.qrels,
        parse_metrics(metrics),
    )
    none = np.zeros(0, dtype=np.int32)
    summary = {
        "retriever": name,
        "dataset": {"name": data.name, "split": data.split, "fingerprint": data.fingerprint},
        "k": k,
        "convention": "trec",
        "metrics_version": 1,
    }
    timings = Timings(none.astype(np.int64), none, none, none, none.astype(np.bool_), {})
    return Run(Summary.model_validate(summary), {}, packed, status, timings, evaluation)


def _ranking(fused: str, legs: Mapping[str, Lists], query_id: str, *, told: bool) -> Ranking:
    traces = {}
    for leg, lists in legs.items():
        own = lists.get(query_id, "")
        ranks = [own.find(doc_id) + 1 for doc_id in fused]
        falling = np.arange(len(own), 0, -1, dtype=np.float64)
        scores = [falling[rank - 1] if rank else np.nan for rank in ranks]
        traces[leg] = LegTrace(ranks, scores, list(own) if told else None, falling)
    return Ranking(list(fused), None, {}, traces)
