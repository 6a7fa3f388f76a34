"""How much of a metric equal scores decide: its best and its worst value over their orders.

A rule for ties makes a value reproducible; that the order of ids is right nobody says. A metric
that ranks decide is highest where each tie is sorted by grade, the best first, and lowest where it
is sorted the other way round. Documents of equal score that were cut off take part as far as they
are known; of how many queries they are not is told beside.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted
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
        unknown: queries whose first hits end in a tie, and nobody knows what else has that score:
            the mean could be anything beyond ``worst`` and ``best``, too.
    """

    metric: str | None
    cut: int | None
    share: float
    constant: bool
    worst: float | None = None
    best: float | None = None
    unknown: int = 0

    def notice(self, instead: str) -> Notice:
        """Warn of it.

        Args:
            instead: a sentence on what to give in place of such scores.
        """
        hits = "hits" if self.cut is None else f"first {self.cut:,} hits"
        hits = "first hits" if self.cut == 1 else hits
        text = (
            f"{100 * self.share:.0f} % of the {hits} share their score with another hit, and the "
            "order of ids decides between them"
        )
        if self.constant:
            text = "All hits of a query have the same score, so their order is that of their ids"
        known = self.metric is not None and self.worst is not None and self.best is not None
        if self.metric is not None and (self.best or 0.0) - (self.worst or 0.0) >= LEAST:
            text += (
                f": in other orders {label_of(self.metric)} would be anything from "
                f"{self.worst:.3f} to {self.best:.3f}"
            )
        text += f". {instead}"
        if self.unknown:
            queries = counted(self.unknown, "query")
            text += f" What else has the score of the last hit is not known for {queries}: "
            text += "the range may be wider." if known else "that may decide more."
        return Notice(text, Code.TIES)


def tie_effect(
    run: JudgedRun,
    metrics: Sequence[Metric],
    *,
    depth: int | None = None,
    unknown: Collection[int] = (),
) -> TieEffect | None:
    """Measure the effect of ties on the first metric of which they decide :data:`LEAST` or more, or
    may decide it; None where there is none. Of metrics that are not ours only the share of such
    hits is known: that is told where none of ours is there.

    Args:
        run: also with hits that were cut off and tie with the last one that was not.
        depth: where they were cut; None = nowhere.
        unknown: numbers of queries that end in a tie which may go on.
    """
    if run.ties is None or not run.n_queries:
        return None
    ours = [metric for metric in metrics if metric.name in DEFINITIONS]
    if not ours:
        share, cut = run.ties.share(metrics[0].cut), metrics[0].cut
        few = share < LEAST
        return None if few else TieEffect(str(metrics[0]), cut, share, is_constant(run.ties))
    if not _matters(run) and not unknown:
        return None
    worst, best = (_reordered(run, best=which).as_if(depth) for which in (False, True))
    for metric in ours:
        low, high = _mean(metric, worst), _mean(metric, best)
        open_ = _reached(run.ties, run.lengths, sorted(unknown), metric.cut)
        if high - low >= LEAST or open_ >= LEAST * run.n_queries:
            share = run.ties.share(metric.cut if depth is None else min(metric.cut or depth, depth))
            constant = is_constant(run.ties)
            return TieEffect(str(metric), metric.cut, share, constant, low, high, open_)
    return None


_FIRST = 10
"""Hits that count most in a metric that has no cut."""


def _reached(
    ties: TiedHits, lengths: NDArray[np.int64], rows: Sequence[int], cut: int | None
) -> int:
    """How many of the queries ``rows`` have their last tie among the hits that count."""
    if not rows:
        return 0
    last = lengths[rows]
    first, _ = ties.ranks(np.array(rows), last)
    within = cut or _FIRST
    return int(np.count_nonzero((first <= within) & (last >= within)))


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
