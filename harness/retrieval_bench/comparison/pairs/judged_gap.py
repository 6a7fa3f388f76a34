"""Differences that may be the judges': the system that is ahead is the one whose hits they saw.

A hit without a judgement counts as not relevant. That can only have made a winner of the system
whose hits are judged more, and only where judgements of the others could turn the order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_bench.comparison.pairs.comparability import not_comparable
from retrieval_bench.comparison.pairs.holm import Pair
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.metrics import Metric, parse_metric
from retrieval_bench.metrics.bounds import bounds
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.randomization import ROUNDING

JUDGED_GAP = 0.05
"""Systems whose share of judged hits differs by this much are not seen equally well."""


def judged_gap(
    names: Sequence[str], runs: Sequence[Run], pairs: Sequence[Pair], metric: Metric
) -> tuple[str, ...]:
    """A warning where the system that is ahead in ``metric`` has hits that are judged far more than
    those of the other one, and judgements of the rest could turn that; of several pairs the one
    that is farthest apart.

    Args:
        pairs: places of the systems that are compared.
    """
    warnings = []
    for judged in dict.fromkeys(name for run in runs for name in run.evaluation.judged):
        shares = [_Share.of(run, judged) for run in runs]
        ordered = [_ahead_first(pair, runs, metric) for pair in pairs if _both(pair, runs, judged)]
        ordered.sort(key=lambda pair: shares[pair[1]].judged - shares[pair[0]].judged)
        for ahead, behind in ordered:
            more, less = shares[ahead], shares[behind]
            if more.judged - less.judged < JUDGED_GAP:
                break
            unseen = _queries_unseen(more, less, metric, parse_metric(judged))
            if _can_turn(runs[ahead], runs[behind], metric, unseen):
                of = " of the queries with hits" if more.empty or less.empty else ""
                text = (
                    f"{judged}{of} is {less.judged:.2f} for {names[behind]} and {more.judged:.2f} "
                    f"for {names[ahead]}: hits without a judgement count as not relevant, so "
                    f"{names[ahead]} may look better because more of its hits were judged."
                )
                warnings.append(Notice(text, Code.JUDGED_GAP))
                break
    return tuple(warnings)


@dataclass(frozen=True, slots=True)
class _Share:
    """Share of a run's hits that is judged.

    Attributes:
        judged: mean over the queries with hits: an empty list, as of a query that failed, counts 0
            in ``Judged`` and has nothing that a judge could have missed.
        answered, empty: queries with hits and without.
    """

    judged: float
    answered: int
    empty: int

    @classmethod
    def of(cls, run: Run, judged: str) -> _Share:
        n = len(run.evaluation.query_ids)
        answered = sum(map(bool, _lists(run)))
        share = run.evaluation.judged.get(judged, 0.0)
        return cls(share * n / answered if answered else 0.0, answered, n - answered)


def _both(pair: Pair, runs: Sequence[Run], judged: str) -> bool:
    a, b = (runs[at] for at in pair)
    known = judged in a.evaluation.judged and judged in b.evaluation.judged
    return known and bool(a.evaluation.query_ids) and not not_comparable(a, b)


def _ahead_first(pair: Pair, runs: Sequence[Run], metric: Metric) -> Pair:
    a, b = pair
    first, second = (runs[at].evaluation.mean(metric).mean for at in pair)
    return (a, b) if first > second else (b, a)


def _queries_unseen(more: _Share, less: _Share, metric: Metric, judged: Metric) -> int | None:
    """Count the queries on which at most a hit that ``metric`` looks at is not judged; None = on
    all."""
    if metric.cut is None or judged.cut is None or metric.cut > judged.cut:
        return None
    unjudged = (share.answered * (1 - share.judged) * judged.cut for share in (more, less))
    return sum(math.ceil(hits - ROUNDING) for hits in unjudged)


def _can_turn(ahead: Run, behind: Run, metric: Metric, unseen: int | None) -> bool:
    """Return whether grades for the hits of ``unseen`` queries could put ``behind`` ahead."""
    if ahead.evaluation.mean(metric).mean <= behind.evaluation.mean(metric).mean + ROUNDING:
        return False  # neither is ahead
    if metric.scale is None:
        return True
    of_a, of_b = (
        one.evaluation.values(metric, sorted(one.evaluation.query_ids)) for one in (ahead, behind)
    )
    lead = of_a - of_b
    both = zip(_lists(behind), _lists(ahead), strict=True)
    least = np.array([bounds(metric, *lists)[0] for lists in both])
    falls = np.sort(lead - least)[::-1]
    return bool(falls[:unseen].sum() > lead.sum() + ROUNDING)


def _lists(run: Run) -> Iterator[list[str]]:
    """Hits of the evaluated queries, in the order of the ids; a query without a row has none."""
    row_of = {query_id: at for at, query_id in enumerate(run.rankings.query_ids)}
    for query_id in sorted(run.evaluation.query_ids):
        at = row_of.get(query_id)
        yield [] if at is None else list(run.rankings.row(at).doc_ids)
