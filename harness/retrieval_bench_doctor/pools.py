"""How much of what systems return is judged, and whether one of them was judged better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.types import EMPTY, Qrels
from retrieval_bench.metrics import Judgements, Metric, judge_lists
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import SHARE, Floats, mean_interval, mean_intervals

NEARLY_ALL = 0.95
"""Of one system so much is judged, if the judgements were pooled from it."""
CLEARLY = 0.1
"""So much less is judged of another one, if they were not pooled from that as well."""

_QUERIES, _JUDGED, _NOT_RELEVANT, _DEPTH = 20, 100, 50, 3
"""What it takes at least to say whether a pool is that of one system: queries, judged documents,
documents judged not relevant, and judgements of the median query."""

Lists = Mapping[str, Sequence[str]]
"""Query id -> ids of the hits, best first; a query without hits is left out."""


@dataclass(frozen=True, slots=True)
class JudgedAt:
    """The share of a system's top hits that is judged, a mean over queries.

    Attributes:
        retriever: the system.
        k: how many hits are looked at.
        n: queries with hits.
        mean: of these.
        ci95: its 95 % interval; None below two queries.
    """

    retriever: str
    k: int
    n: int
    mean: float
    ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Held:
    """Judged documents in a system's top k.

    Attributes:
        retriever: the system.
        judged: share of all judged documents.
        relevant: share of the relevant ones.
    """

    retriever: str
    judged: float
    relevant: float


@dataclass(frozen=True, slots=True)
class Pool:
    """Two systems beside the judgements, on the queries for which both found something.

    Attributes:
        n: queries.
        documents: judged ones.
        judged: of either system, at the depth to which the median query is judged, k at most.
        held: of either system, in its top k.
        difference: of the shares judged, the first minus the second.
        ci95: of the difference.
        favours: the system whose hits are judged nearly all, while far fewer of the other's are;
            empty where there is none.
        alone: whether nearly all judged documents stand in the top k of that one: the judgements
            look pooled from it alone.
    """

    n: int
    documents: int
    judged: tuple[JudgedAt, JudgedAt]
    held: tuple[Held, Held]
    difference: float
    ci95: tuple[float, float]
    favours: str
    alone: bool


def judged_at(
    name: str, lists: Lists, qrels: Qrels, k: int, labels: Mapping[str, str] = EMPTY
) -> JudgedAt | None:
    """Judged@k of the queries that have hits; None where none has.

    A list without hits has nothing unjudged in it: it is left out, while the metric counts it as 0.
    """
    ids = sorted(query_id for query_id in lists if query_id in qrels)
    if not ids:
        return None
    values = _values(lists, ids, Judgements(qrels), k)
    return _shares(name, k, values, Clusters.of_queries(labels, ids))


def too_little_for_a_pool(lists: Lists, qrels: Qrels) -> str:
    """Return why nobody can tell from which systems documents were pooled; empty where one can.

    A pool shows in the documents that are judged *not* relevant: a good system returns most of the
    relevant ones, wherever these came from, but only what was pooled from it has all of its
    mistakes judged, too.
    """
    rows = [qrels[query_id] for query_id in lists if query_id in qrels]
    grades = [grade for row in rows for grade in row.values() if grade >= 0]
    if len(rows) < _QUERIES:
        return f"{len(rows):,} queries with hits were asked, {_QUERIES} are needed"
    if (negatives := grades.count(0)) < _NOT_RELEVANT:
        return f"{negatives:,} documents are judged as not relevant, {_NOT_RELEVANT} are needed"
    if len(grades) < _JUDGED or _depth(rows) < _DEPTH:
        return f"the median query needs {_DEPTH} judgements, and all together {_JUDGED}"
    return ""


def pool(
    first: tuple[str, Lists],
    other: tuple[str, Lists],
    qrels: Qrels,
    k: int,
    labels: Mapping[str, str] = EMPTY,
) -> Pool | None:
    """Return whether the judgements cover first of two systems far better; None where nobody can
    tell.

    The rule: of first system at least 95 % of the top hits are judged, on average, of the other at
    least 0.1 less, and the 95 % interval of the difference, query by query, excludes 0. Hits are
    looked at as deep as the median query is judged (k at most), so that a pool that is shallower
    than k shows as well. If moreover 95 % of all judged documents stand in the top k of the first,
    the judgements look pooled from it alone.

    What it does not do: it stays silent on a pool of several systems that the two are alike to, on
    two systems that find the same, and on judgements that cover neither (Judged@k says that). It
    stays silent, too, where everything is judged: then nothing of either is unjudged. It cannot
    tell why first is judged better, a pool that was made without the other, or another first which
    returns what nobody would pool; both favour the first.
    """
    (name, lists), (name2, lists2) = first, other
    ids = sorted(query_id for query_id in lists if query_id in lists2 and query_id in qrels)
    both = {query_id: lists[query_id] for query_id in ids}
    if too_little_for_a_pool(both, qrels):
        return None
    rows = [qrels[query_id] for query_id in ids]
    cut = min(k, _depth(rows))
    judgements = Judgements(qrels)
    values = _values(lists, ids, judgements, cut)
    values2 = _values(lists2, ids, judgements, cut)
    differences = values - values2
    of = Clusters.of_queries(labels, ids)
    ends = mean_intervals(differences[:, None], [SHARE.of_differences], clusters=of)[0]
    shares, shares2 = _shares(name, cut, values, of), _shares(name2, cut, values2, of)
    held, held2 = _held(name, lists, ids, qrels, k), _held(name2, lists2, ids, qrels, k)
    favours, alone = "", False
    if ends[0] > 0 or ends[1] < 0:
        better, worse = (shares, shares2) if ends[0] > 0 else (shares2, shares)
        if better.mean >= NEARLY_ALL and better.mean - worse.mean >= CLEARLY:
            favours = better.retriever
            alone = (held if better is shares else held2).judged >= NEARLY_ALL
    return Pool(
        len(ids),
        sum(grade >= 0 for row in rows for grade in row.values()),
        (shares, shares2),
        (held, held2),
        float(differences.mean()),
        (float(ends[0]), float(ends[1])),
        favours,
        alone,
    )


def _shares(name: str, k: int, values: Floats, clusters: Clusters | None) -> JudgedAt:
    ends = mean_interval(values, SHARE, clusters=clusters)
    return JudgedAt(name, k, len(values), float(values.mean()), ends)


def _values(
    lists: Lists, ids: Sequence[str], judgements: Judgements, k: int
) -> NDArray[np.float64]:
    return Metric("Judged", k).compute(judge_lists(lists, ids, judgements))


def _depth(rows: Sequence[Mapping[str, int]]) -> int:
    return int(np.median([sum(grade >= 0 for grade in row.values()) for row in rows]))


def _held(name: str, lists: Lists, ids: Sequence[str], qrels: Qrels, k: int) -> Held:
    """A grade below 0 is not judged, as everywhere."""
    graded = [
        (grade, doc_id in top)
        for query_id in ids
        for top in [frozenset(lists[query_id][:k])]
        for doc_id, grade in qrels[query_id].items()
        if grade >= 0
    ]
    relevant = [inside for grade, inside in graded if grade > 0]
    judged = sum(inside for _, inside in graded) / len(graded)
    return Held(name, judged, sum(relevant) / len(relevant) if relevant else 0.0)
