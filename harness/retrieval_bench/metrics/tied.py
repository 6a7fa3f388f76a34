"""How much of a metric equal scores decide: its best and its worst value over their orders.

A rule for ties makes a value reproducible; that the order of ids is right nobody says. A metric
that ranks decide is highest where each tie is sorted by grade, the best first, and lowest where it
is sorted the other way round. What is put in order is what was returned: documents of equal score
that a retriever cut off are not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.metrics.definitions import DEFINITIONS
from retrieval_bench.metrics.judged import Hits, JudgedRun
from retrieval_bench.metrics.names import Metric, label_of
from retrieval_bench.metrics.ties import TiedHits

LEAST = 0.01
"""From this difference between best and worst on, ties are told."""

NEARLY_ALL = 0.9
"""From this share of the rankings on, their scores count as constant."""


FROM_RETRIEVER = "Return ids alone, best first, or scores that tell the hits apart."
FROM_ELSEWHERE = (
    "Give scores that tell the hits apart, or ids alone, best first, as {query: [id, ...]} in JSON "
    "or Python: the ranks in a run file are not read."
)
FROM_FUSION = (
    "Fusion by ranks gives the same score to hits whose ranks two of its retrievers (legs) swap. "
    "To break such ties, give the legs unequal weights, or fuse scores."
)
"""What to give in place of equal scores."""


@dataclass(frozen=True, slots=True)
class TieEffect:
    """Effect of equal scores on one metric.

    Attributes:
        metric: its name; None where nothing is judged.
        cut: the rank down to which hits count; None = all.
        share: of these hits, those that have the score of another hit of their query.
        constant: whether nearly all rankings have one score for all of their hits.
        worst, best: the mean over queries in the worst and in the best order of equal scores; None
            of a metric that is not ours, or where nothing is judged.
    """

    metric: str | None
    cut: int | None
    share: float
    constant: bool
    worst: float | None = None
    best: float | None = None

    def notice(self, instead: str) -> Notice:
        """Warn of it.

        Args:
            instead: a sentence on what to give in place of such scores.
        """
        hits = "hits" if self.cut is None else f"first {self.cut:,} hits"
        text = (
            f"{100 * self.share:.0f} % of the {hits} share their score with another hit, and the "
            "order of ids decides between them"
        )
        if self.constant:
            text = "All hits of a query have the same score, so their order is that of their ids"
        if self.metric is not None and self.worst is not None and self.best is not None:
            text += (
                f": in other orders {label_of(self.metric)} would be anything from "
                f"{self.worst:.3f} to {self.best:.3f}"
            )
        return Notice(f"{text}. {instead}", Code.TIES)


def tie_effect(run: JudgedRun, metrics: Sequence[Metric]) -> TieEffect | None:
    """Measure the effect of ties on the first metric of which they decide :data:`LEAST` or more;
    None where there is none. Of metrics that are not ours only the share of such hits is known:
    that is told where none of ours is there."""
    if run.ties is None or not run.n_queries:
        return None
    ours = [metric for metric in metrics if metric.name in DEFINITIONS]
    if not ours:
        share, cut = run.ties.share(metrics[0].cut), metrics[0].cut
        few = share < LEAST
        return None if few else TieEffect(str(metrics[0]), cut, share, is_constant(run.ties))
    if not _matters(run):
        return None
    worst, best = (_reordered(run, best=which) for which in (False, True))
    for metric in ours:
        low, high = _mean(metric, worst), _mean(metric, best)
        if high - low >= LEAST:
            share = run.ties.share(metric.cut)
            return TieEffect(str(metric), metric.cut, share, is_constant(run.ties), low, high)
    return None


def is_constant(ties: TiedHits) -> bool:
    """Return whether nearly all rankings with hits have several, and one score for all of them."""
    answered = np.count_nonzero(ties.lengths)
    return bool(np.count_nonzero(ties.constant()) >= NEARLY_ALL * answered)


def _matters(run: JudgedRun) -> bool:
    """Return whether enough queries have a relevant hit in a tie for a mean to change by that
    much."""
    assert run.ties is not None
    hits = run.relevant()
    first, last = run.ties.ranks(hits.row, hits.rank)
    return len(np.unique(hits.row[last > first])) >= LEAST * run.n_queries


def _mean(metric: Metric, run: JudgedRun) -> float:
    values = metric.additive(metric.compute(run))
    scale = run.n_queries if metric.counts else 1
    return scale * float(metric.from_additive(values.mean()))


def _reordered(run: JudgedRun, *, best: bool) -> JudgedRun:
    """``run`` with the judged hits of each tie sorted by grade: in front of the others, the highest
    first, or behind them, the highest last."""
    assert run.ties is not None
    hits = run.pooled
    first, last = run.ties.ranks(hits.row, hits.rank)
    order = np.lexsort((-hits.grade if best else hits.grade, first, hits.row))
    hits = Hits(hits.row[order], hits.rank[order], hits.grade[order], hits.repeated[order])
    first, last = first[order], last[order]
    place, n = _places(hits, first)
    rank = first + place if best else last - n + 1 + place
    hits = hits._replace(rank=rank)
    return replace(run, judged=hits.where(hits.grade >= 0), pooled=hits, ties=None, _relevant={})


def _places(hits: Hits, first: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place hits, which are sorted by query and tie, within their ties: the place of each, from 0,
    and the number of hits in its tie."""
    begins = np.ones(len(first), dtype=bool)
    begins[1:] = (hits.row[1:] != hits.row[:-1]) | (first[1:] != first[:-1])
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, len(first)))
    return np.arange(len(first)) - np.repeat(starts, sizes), np.repeat(sizes, sizes)
