"""A file of labels of people and of a model, for the systems of a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from retrieval_bench.core.types import Ranking
from retrieval_bench.experiment.until import Target
from retrieval_bench.measure.calls import OK
from retrieval_bench.metrics import Judgements, judge_lists, one_metric
from retrieval_bench.runs.run import Run, pack_rankings
from retrieval_bench_labels.label import Kind, Label, Pair, Pool
from retrieval_bench_labels.store import Store
from tests.builders.pools import pool_of
from tests.builders.runs import numbered, run

Grade = Callable[[str, str], int | None]
"""Of a query and a document; None = no label."""


def label_all(store: Store, who: str, kind: Kind, grade: Grade) -> Pool:
    """All of the pool in ``store`` that ``grade`` has a grade for."""
    pool = store.pool()
    digests = pool.digests()
    said = {pair: grade(*pair) for pair in pool.pairs}
    store.add_all(
        Label(pair, who, given, kind, digests[pair])
        for pair, given in said.items()
        if given is not None
    )
    return pool


def only_store() -> Store:
    """The file of labels of a user's folder that has one."""
    (path,) = Path("results/labels").glob("*.sqlite")
    return Store(path)


def truth_of(qrels: Mapping[str, Mapping[str, int]]) -> Callable[[Pair], int]:
    """The grade of a pair by judgements, 0 where there is none."""
    return lambda pair: qrels.get(pair.query_id, {}).get(pair.doc_id, 0)


def systems(
    n: int = 60, metrics: tuple[str, ...] = ("nDCG@10", "R@10"), noises: tuple[float, ...] = (1, 3)
) -> tuple[list[Run], dict[Pair, int]]:
    """Runs on ``n`` queries that order their documents by worth and noise, and the true grades."""
    rng, ids = np.random.default_rng(0), numbered(n)
    worth = {query: rng.normal(size=40) for query in ids}
    runs = []
    for at, noise in enumerate(noises):
        rankings = [
            Ranking([f"{q}-{d}" for d in np.argsort(-(worth[q] + rng.normal(0, noise, 40)))[:10]])
            for q in ids
        ]
        packed = pack_rankings(ids, rankings, 10)
        made = run(f"s{at}", np.zeros((n, len(metrics))), ids, metrics=metrics)
        runs.append(replace(made, rankings=packed, status=(OK,) * n))
    truth = {Pair(q, f"{q}-{d}"): int(of[d] > 1) for q, of in worth.items() for d in range(40)}
    return runs, truth


def half_alike(runs: Sequence[Run], step: int = 1) -> list[Run]:
    """Two runs; on every second query the other returns what the first does, or, by a step of -1,
    the same the other way round."""
    first, other = runs
    ids = first.rankings.query_ids
    rankings = [
        Ranking(
            list((other if at % 2 else first).rankings.row(at).doc_ids)[:: 1 if at % 2 else step]
        )
        for at in range(len(ids))
    ]
    return [first, replace(other, rankings=pack_rankings(ids, rankings, 10))]


def differences(runs: Sequence[Run], truth: Mapping[Pair, int], metric: str) -> dict[str, float]:
    """Query -> the second less the first by all true grades of what either returns."""
    ids = runs[0].rankings.query_ids
    lists = [{q: run.rankings.row(at).doc_ids for at, q in enumerate(ids)} for run in runs]
    grades = Judgements({q: {d: truth[Pair(q, d)] for of in lists for d in of[q]} for q in ids})
    a, b = (one_metric(metric).compute(judge_lists(of, ids, grades)) for of in lists)
    return dict(zip(ids, (b - a).tolist(), strict=True))


def pooled(
    path: Path,
    runs: Sequence[Run],
    target: Target = Target.POPULATION,
    metric: str = "nDCG@10",
) -> Store:
    """A file of labels with the pool of ``runs``, in which nothing is judged."""
    lists = {
        of.name: {q: of.rankings.row(at).doc_ids for at, q in enumerate(of.rankings.query_ids)}
        for of in runs
    }
    store = Store.create(path)
    store.put_pool(pool_of(lists, 0, metric, target))
    return store
