"""Pools of lists that are written down, and judgements of their documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from retrieval_bench.core.types import Document
from retrieval_bench.experiment.until import Target
from retrieval_bench.metrics import parse_metrics
from retrieval_bench_labels.decide.draws import all_bounds, drawn_order, weights
from retrieval_bench_labels.grades import Settled
from retrieval_bench_labels.label import Kind, Pair, Pool, PooledQuery

Lists = Mapping[str, Mapping[str, Sequence[str]]]


def pool_of(
    lists: Lists, seed: int = 0, metric: str = "nDCG@2", target: Target = Target.SPLIT
) -> Pool:
    """A pool of ``lists``, its queries in the order drawn."""
    ids = sorted({query for of in lists.values() for query in of})
    (parsed,) = parse_metrics([metric])
    chances = weights(all_bounds(parsed, list(lists.values()), ids))
    order = drawn_order(chances, seed)
    if target is Target.POPULATION:
        chances, order = np.sign(chances), drawn_order(np.ones(len(ids)), seed)
    queries = [
        PooledQuery(ids[at], ids[at], _union(lists, ids[at]), float(chances[at])) for at in order
    ]
    documents = {doc: Document(doc, doc) for query in queries for doc in query.documents}
    return Pool(
        "data", None, "test", "f", int(metric.split("@")[1]), seed, metric, 0.01, tuple(lists),
        lists, tuple(queries), documents, target=target,
    )  # fmt: skip


def _union(lists: Lists, query: str) -> tuple[str, ...]:
    return tuple(sorted({doc for of in lists.values() for doc in of.get(query, ())}))


def graded(grades: Mapping[Pair, int]) -> dict[Pair, Settled]:
    """What anna said."""
    return {pair: Settled(g, Kind.PERSON, ("anna",), (g,)) for pair, g in grades.items()}


def judged(pool: Pool, first: int, relevant: str = "g") -> dict[Pair, Settled]:
    """All documents of the first queries; those whose name begins with ``relevant`` are."""
    pairs = [Pair(q.id, doc) for q in pool.queries[:first] for doc in q.documents]
    return graded({pair: int(pair.doc_id.startswith(relevant)) for pair in pairs})


def two(n: int = 40) -> Lists:
    """b finds what is good first, a something else."""
    ids = [f"q{at:02}" for at in range(n)]
    return {"a": {q: [f"x{q}", f"y{q}"] for q in ids}, "b": {q: [f"g{q}", f"y{q}"] for q in ids}}


def mixed(n: int, better: int, same: int = 0) -> Lists:
    """Of ``n`` queries b has the good document first on the first ``better``, and last, where a has
    it first, on the others; on the last ``same`` both have the same list."""
    ids = [f"q{at:02}" for at in range(n)]
    up = {q: [f"g{q}", f"x{q}"] for q in ids}
    down = {q: of[::-1] for q, of in up.items()}
    b = {q: (up if at < better else down)[q] for at, q in enumerate(ids)}
    a = {q: (down if at < better else up)[q] for at, q in enumerate(ids)}
    return {"a": a | {q: b[q] for q in ids[n - same :]}, "b": b}
