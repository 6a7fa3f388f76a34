"""How alike two systems answer: what can be said of rankings where nothing is judged.

Two measures of two lists, each from 0 (nothing in common) to 1 (the same list):

* overlap@k: documents that stand in both lists cut at k, over the length of the longer one. Where
  both lists are full this is the agreement at depth k; where one is shorter, the coefficient of
  Braun-Blanquet (1932), Plant Sociology. It knows no order within the first k.
* RBO, rank-biased overlap: the agreements at all depths, the first ones counting most, as far as
  the lists go, extrapolated from there on; of lists of uneven length, without ties. With p = 0.9
  the first ten ranks have 86 % of the weight. Webber, Moffat & Zobel (2010), A similarity measure
  for indefinite rankings, ACM TOIS 28(4), equation 32. A list that is the beginning of the other
  one has 1: how it goes on is not known.

Two empty lists are the same list; an empty one has nothing in common with any other.

Neither says which system is better: two that differ may both be right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import EMPTY
from retrieval_bench.measure.calls import OK
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.runs.evaluation import Mean
from retrieval_bench.runs.run import Run, clusters_of, equally_wide
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.intervals import SHARE, mean_intervals

PERSISTENCE = 0.9
"""p of RBO: how likely a reader goes on to the next rank."""

QUERIES, DOCUMENTS = 10, 3
"""So many queries that differ most are told, with so many first documents of each system."""

Positions = NDArray[np.int64]
Floats = NDArray[np.float64]


def shared(a: Positions, b: Positions) -> Positions:
    """(queries, depth), at least one deep: documents among the first 1, 2, ... of both lists.

    Args:
        a, b: (queries, width), numbers of documents, distinct in a row, :data:`.NONE` behind the
            last; the deeper one gives the depth.
    """
    n, depth = len(a), max(a.shape[1], b.shape[1], 1)
    size = int(max(a.max(initial=0), b.max(initial=0))) + 1
    (keys_a, ranks_a), (keys_b, ranks_b) = _keyed(a, size), _keyed(b, size)
    both, at_a, at_b = np.intersect1d(keys_a, keys_b, assume_unique=True, return_indices=True)
    deeper = np.maximum(ranks_a[at_a], ranks_b[at_b])
    counts = np.bincount(both // size * depth + deeper, minlength=n * depth)
    return np.asarray(counts.reshape(n, depth).cumsum(axis=1))


def _keyed(rows: Positions, size: int) -> tuple[Positions, Positions]:
    """One number for each hit, of its query and its document, and its rank from 0."""
    query, rank = np.nonzero(rows != NONE)
    return query * size + rows[query, rank], rank


def overlap(a: Positions, b: Positions) -> Floats:
    """(queries,): documents in both lists over the length of the longer one.

    Args:
        a, b: as of :func:`shared`, cut where they are to be compared.
    """
    longer = np.maximum(_lengths(a), _lengths(b))
    both = shared(a, b)[:, -1]
    return np.where(longer == 0, 1.0, both / np.maximum(longer, 1))


def rank_biased_overlap(a: Positions, b: Positions, p: float = PERSISTENCE) -> Floats:
    """(queries,): RBO, extrapolated from the lists as far as they go.

    Args:
        a, b: as of :func:`shared`.
        p: 0 < p < 1; the lower, the more the first ranks count.
    """
    common = shared(a, b).astype(np.float64)
    lengths = np.column_stack([_lengths(a), _lengths(b)])
    short, long = lengths.min(axis=1), lengths.max(axis=1)
    rows, depth = np.arange(len(a)), np.arange(1, common.shape[1] + 1)
    x_long = common[rows, np.maximum(long, 1) - 1]
    x_short = common[rows, np.maximum(short, 1) - 1]
    agreed_short = np.where(short == 0, 0.0, x_short / np.maximum(short, 1))
    beyond = np.maximum(depth - short[:, None], 0)  # as if the shorter one went on likewise
    agreement = (common + agreed_short[:, None] * beyond) / depth
    agreement[depth > long[:, None]] = 0.0
    seen = (1 - p) / p * (agreement * p**depth).sum(axis=1)
    rest = ((x_long - x_short) / np.maximum(long, 1) + agreed_short) * p**long
    return np.where(long == 0, 1.0, np.clip(seen + rest, 0.0, 1.0))


def _lengths(rows: Positions) -> Positions:
    return np.asarray((rows != NONE).sum(axis=1))


# -- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairLikeness(Documented):
    """Likeness of two systems.

    Attributes:
        a, b: the systems.
        n: queries that both answered, also those answered with an empty list.
        overlap: mean of overlap@k over them, with its 95 % interval.
        rbo: mean of RBO, likewise.
        same: queries with the same documents in the same order.
    """

    a: str
    b: str
    n: int
    overlap: Mean
    rbo: Mean
    same: int


@dataclass(frozen=True, slots=True)
class TitledDocument:
    """A document.

    Attributes:
        id: of the document.
        title: of the document; None where it is not known.
    """

    id: str
    title: str | None


@dataclass(frozen=True, slots=True)
class FirstDocuments:
    """First documents of a system.

    Attributes:
        name: of the system.
        documents: the best first.
    """

    name: str
    documents: list[TitledDocument]


@dataclass(frozen=True, slots=True)
class Differing(Documented):
    """A query that systems answer differently.

    Attributes:
        query_id: of it.
        rbo: mean over the pairs of systems that answered it.
        overlap: mean of overlap@k, likewise.
        first: system -> ids of its first documents; without those that did not answer.
        text: of the query; empty where it is not known.
        titles: document id -> its title, or the beginning of its text, as far as known.
    """

    KEYS = "query_id text=known_text rbo overlap systems"

    query_id: str
    rbo: float
    overlap: float
    first: Mapping[str, tuple[str, ...]]
    text: str = ""
    titles: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    @property
    def known_text(self) -> str | None:
        """The text of the query; None where it is not known."""
        return self.text or None

    @property
    def systems(self) -> list[FirstDocuments]:
        """The first documents of each system, with their titles."""
        return [
            FirstDocuments(name, [TitledDocument(doc, self.titles.get(doc)) for doc in doc_ids])
            for name, doc_ids in self.first.items()
        ]


@dataclass(frozen=True, slots=True)
class Likeness(Documented):
    """Likeness of the systems of one dataset.

    Attributes:
        k: lists are cut there.
        p: persistence of RBO.
        pairs: of the systems.
        differing: the queries that differ most, the lowest RBO first, then the lowest overlap; only
            those that two systems or more answered, and not the same.
        without_texts: why these have no texts; empty where they have.
    """

    KEYS = "k p pairs differing without_texts"

    p: ClassVar[float] = PERSISTENCE
    k: int
    pairs: tuple[PairLikeness, ...]
    differing: tuple[Differing, ...]
    without_texts: str = "the texts were not looked for"

    def silent(self) -> Likeness:
        """The same without any text."""
        bare = tuple(replace(differing, text="", titles={}) for differing in self.differing)
        return replace(self, differing=bare, without_texts="texts were left out")


def likeness(
    names: Sequence[str], runs: Sequence[Run], pairs: Sequence[tuple[int, int]]
) -> Likeness:
    """Return how alike ``runs`` on the same queries answer.

    Args:
        names: of the systems, told apart.
        pairs: places of those that are put side by side.
    """
    k = min(run.summary.k for run in runs)
    lists = _aligned(names, runs, k)
    values = np.full((2, len(lists.query_ids), len(pairs)), np.nan)
    likenesses, labels = list[PairLikeness](), clusters_of(runs)
    for at, (i, j) in enumerate(pairs):
        rows = np.flatnonzero(lists.answered[i] & lists.answered[j])
        a, b = lists.lists[i][rows], lists.lists[j][rows]
        values[0, rows, at], values[1, rows, at] = overlap(a, b), rank_biased_overlap(a, b)
        clusters = Clusters.of_queries(labels, [lists.query_ids[row] for row in rows.tolist()])
        same = int(np.count_nonzero((a == b).all(axis=1)))
        means = _means(values[:, rows, at], clusters)
        likenesses.append(PairLikeness(names[i], names[j], len(rows), *means, same))
    return Likeness(k, tuple(likenesses), _differing(lists, values))


@dataclass(frozen=True, slots=True)
class _Aligned:
    """The lists of several systems on the queries that all of them have.

    Attributes:
        lists: of each system (queries, depth), by numbers that stand for the same documents in all.
        answered: of each system (queries,).
        doc_ids: what the numbers stand for.
    """

    names: tuple[str, ...]
    query_ids: tuple[str, ...]
    lists: tuple[Positions, ...]
    answered: tuple[NDArray[np.bool_], ...]
    doc_ids: tuple[str, ...]

    def first(self, at: int) -> dict[str, tuple[str, ...]]:
        """System -> the ids of its first documents for a query, if it answered."""
        return {
            name: tuple(self.doc_ids[doc] for doc in rows[at, :DOCUMENTS].tolist() if doc != NONE)
            for name, rows, answered in zip(self.names, self.lists, self.answered, strict=True)
            if answered[at]
        }

    def differ(self, at: int) -> bool:
        """Return whether two systems answered a query with different lists."""
        rows = [rows[at] for rows, of in zip(self.lists, self.answered, strict=True) if of[at]]
        return any(not np.array_equal(rows[0], row) for row in rows[1:])


def _differing(lists: _Aligned, values: Floats) -> tuple[Differing, ...]:
    """The queries that differ most.

    Args:
        values: (2, queries, pairs), overlap and RBO, NaN where one of a pair did not answer.
    """
    known = np.isfinite(values[1])
    means = np.where(known, values, 0.0).sum(axis=2) / np.maximum(known.sum(axis=1), 1)
    overlaps, rbos = means
    order = np.lexsort((overlaps.round(9), rbos.round(9)))
    chosen = [at for at in order.tolist() if known[at].any() and lists.differ(at)]
    return tuple(
        Differing(lists.query_ids[at], float(rbos[at]), float(overlaps[at]), lists.first(at))
        for at in chosen[:QUERIES]
    )


def _means(values: Floats, clusters: Clusters | None) -> tuple[Mean, Mean]:
    """Return the means of the two measures, (2, queries)."""
    n = values.shape[1]
    ends = mean_intervals(values.T, [SHARE, SHARE], clusters=clusters)
    overlaps, rbos = (
        Mean(
            float(row.mean()) if n else float("nan"),
            None if np.isnan(low) else (float(low), float(high)),
            n,
        )
        for row, (low, high) in zip(values, ends, strict=True)
    )
    return overlaps, rbos


def _aligned(names: Sequence[str], runs: Sequence[Run], k: int) -> _Aligned:
    """Lists cut at ``k``, equally wide."""
    others = [set(run.rankings.query_ids) for run in runs[1:]]
    ids = [
        query_id
        for query_id in runs[0].rankings.query_ids
        if all(query_id in other for other in others)
    ]
    numbers: dict[str, int] = {}
    lists, answered = [], []
    for run in runs:
        rankings = run.rankings
        place = {query_id: at for at, query_id in enumerate(rankings.query_ids)}
        rows = np.array([place[query_id] for query_id in ids], dtype=np.int64)
        number = [numbers.setdefault(doc_id, len(numbers)) for doc_id in rankings.doc_ids]
        # behind the last hit: NONE
        lists.append(np.array([*number, NONE])[rankings.ranking[rows, :k]])
        answered.append(np.array([run.status[at] == OK for at in rows.tolist()], dtype=bool))
    return _Aligned(
        tuple(names), tuple(ids), tuple(equally_wide(*lists)), tuple(answered), tuple(numbers)
    )
