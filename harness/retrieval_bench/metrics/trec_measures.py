"""What trec_eval computes beside the metrics that everybody uses; notation as in :mod:`.measures`.

The source of each is the measure of trec_eval that its docstring names, as in versions 9.0.8 and 10
where it does not say which. A document that stands in a ranking twice counts at its first rank.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.metrics.judged import Hits, JudgedRun, ordinals
from retrieval_bench.metrics.measures import (
    SMALLEST_AP,
    Gained,
    GradeGains,
    Values,
    average_precision,
    bpref,
    discounts,
    graded,
    ranks_at,
    ratio,
)

ELEVEN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of the relevant documents."""

_EPSILON = 0.00001


Rounding = Literal["nearest", "up"]


def interpolated_precision(
    run: JudgedRun, *, recall: float, rel: int = 1, rounding: Rounding = "nearest"
) -> Values:
    """IPrec@r = the highest P@i over the ranks i that hold the c-th relevant hit or a later one; 0
    where there are fewer. c is r * R as a whole number (trec_eval 10 iprec_at_recall), with
    ``rounding=up`` the next one where .1 or more is left (trec_eval 9)."""
    hits, relevant = _relevant(run, rel)
    of = run.n_relevant(rel)
    needed = (ranks_at(recall, of) if rounding == "up" else _nearest(recall * of))[hits.row]
    best = np.zeros(run.n_queries)
    np.maximum.at(best, hits.row, np.where(relevant >= needed, relevant / hits.rank, 0.0))
    return best


def interpolated_ap(
    run: JudgedRun,
    *,
    recalls: tuple[float, ...] = ELEVEN,
    rel: int = 1,
    rounding: Rounding = "nearest",
) -> Values:
    """IAP = the mean of IPrec over ``recalls``, unless given 0, .1, ... 1 (trec_eval 11pt_avg)."""
    at = [interpolated_precision(run, recall=r, rel=rel, rounding=rounding) for r in recalls]
    return np.asarray(np.mean(at, axis=0))


def inferred_ap(run: JudgedRun, *, rel: int = 1) -> Values:
    """infAP = (1/R) sum over relevant hits of their expected precision (Yilmaz & Aslam 2006).

    At rank i that is 1/i + (pooled hits above / i) * (relevant above + e) / (judged above + 2e),
    with e = .00001, and 1 at rank 1. A hit is pooled where the judgements name it, and judged where
    its grade is not below 0 (trec_eval infAP).
    """
    hits = run.pooled.where(~run.pooled.repeated)
    pooled = ordinals(hits.row, run.n_queries) - 1
    of_judged = hits.grade >= 0
    hits, pooled = hits.where(of_judged), pooled[of_judged]
    judged = ordinals(hits.row, run.n_queries) - 1
    is_relevant = hits.grade >= rel
    hits, pooled, judged = hits.where(is_relevant), pooled[is_relevant], judged[is_relevant]
    above = ordinals(hits.row, run.n_queries) - 1
    expected = pooled / hits.rank * ((above + _EPSILON) / (judged + 2 * _EPSILON))
    return ratio(run.total(hits.row, 1 / hits.rank + expected), run.n_relevant(rel))


def log_odds_ap(run: JudgedRun, *, rel: int = 1) -> Values:
    """YAAP = log((1 + s) / (1 + R - s)) with s = R * AP: any number (Robertson 2012; trec_eval
    yaap)."""
    n_relevant = run.n_relevant(rel)
    s = average_precision(_distinct(run), None, rel=rel) * n_relevant
    return np.asarray(np.log((1.0 + s) / (1.0 + n_relevant - s)))


def geometric_bpref(run: JudgedRun, *, rel: int = 1) -> Values:
    """Bpref, at least 0.00001. Its mean is geometric, as that of GMAP (trec_eval gm_bpref)."""
    return np.maximum(bpref(run, rel=rel), SMALLEST_AP)


def binary_gain(run: JudgedRun, *, rel: int = 1) -> Values:
    """binG = (1/R) sum over relevant hits of 1 / log2(2 + hits above that are not relevant)
    (trec_eval binG)."""
    hits, relevant = _relevant(run, rel)
    return ratio(run.total(hits.row, 1 / np.log2(2 + hits.rank - relevant)), run.n_relevant(rel))


def normalised_gain(run: JudgedRun, *, gains: GradeGains = ()) -> Values:
    """G = sum over hits of gain / log2(2 + c - g), divided by the gain of all judged documents.

    At each rank g is the gain of the hits up to it, and c what the best order gains up to it, at
    least 1 a rank (trec_eval G). The gain of a grade is the grade, unless ``gains`` has it.
    """
    hits, best = graded(_distinct(run), gains)
    extra = _running(best, np.maximum(best.gain - 1, 0.0), run)
    cost = hits.rank + _up_to(best, extra, hits.row, hits.rank)
    missed = cost - _running(hits, hits.gain, run)
    return ratio(
        run.total(hits.row, hits.gain / np.log2(2 + missed)), run.total(best.row, best.gain)
    )


def ndcg_at_relevant(run: JudgedRun, *, gains: GradeGains = ()) -> Values:
    """nDCG_rel = the mean, over the documents that gain, of nDCG cut at their rank; for one that
    was not returned, DCG of all hits / IDCG (trec_eval ndcg_rel)."""
    hits, best = graded(_distinct(run), gains)
    dcg = _running(hits, hits.gain / discounts(hits.rank), run)
    ideal = best.gain / discounts(best.rank)
    idcg = _up_to(best, _running(best, ideal, run), hits.row, hits.rank)
    gaining = hits.gain > 0
    at_hits = run.total(hits.row[gaining], ratio(dcg, idcg)[gaining])
    whole = ratio(run.total(hits.row, hits.gain / discounts(hits.rank)), run.total(best.row, ideal))
    n_best = run.count(best.row)
    not_found = n_best - run.count(hits.row[gaining])
    return np.maximum(ratio(at_hits + not_found * whole, n_best), 0.0)


def ndcg_at_levels(run: JudgedRun, *, gains: GradeGains = (), rel: int = 1) -> Values:
    """Rndcg = the mean of nDCG cut at each rank where the best order goes to a lower gain, and of
    DCG / IDCG of all hits where two or more of them stand behind the last such rank; 0 without a
    document of grade ``rel`` (trec_eval Rndcg)."""
    hits, best = graded(_distinct(run), gains)
    gained, ideal = hits.gain / discounts(hits.rank), best.gain / discounts(best.rank)
    last = np.append(best.row[1:] != best.row[:-1], True)[: len(best.row)]
    steps = last | np.append(best.gain[1:] != best.gain[:-1], True)[: len(best.row)]
    row, rank = best.row[steps], best.rank[steps]
    dcg = _up_to(hits, _running(hits, gained, run), row, rank)
    points = ratio(dcg, _running(best, ideal, run)[steps])
    n_best = run.count(best.row)
    behind = (run.lengths > n_best + 1) & (n_best > 0)
    whole = ratio(run.total(hits.row, gained), run.total(best.row, ideal))
    mean = ratio(run.total(row, points) + np.where(behind, whole, 0.0), run.count(row) + behind)
    return np.where(run.n_relevant(rel) > 0, mean, 0.0)


def utility(
    run: JudgedRun,
    *,
    weights: tuple[float, ...] = (1.0, -1.0, 0.0, 0.0),
    docs: int = 0,
    rel: int = 1,
) -> Values:
    """Utility = the ``weights`` times relevant hits, other hits, relevant documents that were not
    returned, and all other documents of a collection of ``docs``: any number. A query without hits
    is worth 0 (trec_eval utility, with -N)."""
    if len(weights) != 4:
        raise ConfigError(
            f"{len(weights)} weights of Utility",
            where="--metrics",
            accepted="4: of relevant and other hits, of relevant and other documents not returned",
            fix="write Utility(weights=[1,-1,0,0])",
        )
    n_hits, n_relevant = run.count(run.relevant(rel).row), run.n_relevant(rel)
    parts = (
        n_hits,
        run.lengths - n_hits,
        n_relevant - n_hits,
        docs + n_hits - run.lengths - n_relevant,
    )
    worth = sum(weight * part for weight, part in zip(weights, parts, strict=True))
    return np.where(run.lengths > 0, worth, 0.0)


def unjudged(run: JudgedRun, cut: int) -> Values:
    """Unjudged@k = hits in the top k without a judgement, or with a grade below 0, / k, also when
    n < k (trec_eval 10 unj)."""
    known = run.count(run.judged.within(cut).row)
    return np.asarray((np.minimum(run.lengths, cut) - known) / float(cut))


def rbp_residual(run: JudgedRun, *, p: float = 0.9) -> Values:
    """RBP_resid = what RBP would rise by if all hits without a judgement, and everything behind
    the last hit, were relevant; 0 where all hits are judged (trec_eval 10 rbp_resid)."""
    known = run.total(run.judged.row, (1.0 - p) * p ** (run.judged.rank - 1.0))
    return np.where(run.count(run.judged.row) < run.lengths, 1.0 - known, 0.0)


def number_of_queries(run: JudgedRun) -> Values:
    """NumQ = 1 for each query (trec_eval num_q)."""
    return np.ones(run.n_queries)


def number_returned(run: JudgedRun) -> Values:
    """NumRet = hits (trec_eval num_ret)."""
    return run.lengths.astype(np.float64)


def number_relevant_returned(run: JudgedRun, *, rel: int = 1) -> Values:
    """NumRelRet = relevant hits (trec_eval num_rel_ret)."""
    return run.count(run.relevant(rel).row).astype(np.float64)


def number_relevant(run: JudgedRun, *, rel: int = 1) -> Values:
    """NumRel = R, relevant documents (trec_eval num_rel)."""
    return run.n_relevant(rel).astype(np.float64)


def number_nonrelevant(run: JudgedRun, *, rel: int = 1) -> Values:
    """NumNonrelRet = hits that were judged not relevant (trec_eval num_nonrel_judged_ret)."""
    hits = run.judged
    return run.count(hits.row[hits.grade < rel]).astype(np.float64)


def _nearest(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """Halves go up, as in C."""
    whole = np.floor(values)
    return np.asarray(whole + (values - whole >= 0.5)).astype(np.int64)


def _relevant(run: JudgedRun, rel: int) -> tuple[Hits, NDArray[np.int64]]:
    """The relevant hits, and how many there are up to each, itself included."""
    hits = run.relevant(rel)
    hits = hits.where(~hits.repeated)
    return hits, ordinals(hits.row, run.n_queries)


def _distinct(run: JudgedRun) -> JudgedRun:
    if not run.judged.repeated.any():
        return run
    return replace(run, judged=run.judged.where(~run.judged.repeated), _relevant={})


def _running(of: Gained, values: Values, run: JudgedRun) -> Values:
    """The sum of ``values`` up to each entry within its query."""
    place = ordinals(of.row, run.n_queries)
    # Side by side, so that a sum stays within its query.
    matrix = np.zeros((run.n_queries, int(place.max(initial=0)) + 1))
    matrix[of.row, place] = values
    return np.asarray(np.cumsum(matrix, axis=1)[of.row, place])


def _up_to(
    of: Gained,
    running: Values,
    row: NDArray[np.int64],
    rank: NDArray[np.int64],
) -> Values:
    """``running`` of the last entry of each ``row`` whose rank is ``rank`` or less; 0 for none."""
    span = int(max(of.rank.max(initial=0), rank.max(initial=0))) + 1
    at = np.searchsorted(of.row * span + of.rank, row * span + rank, side="right")
    before = np.searchsorted(of.row, row, side="left")
    return np.where(at > before, np.append(running, 0.0)[at - 1], 0.0)
