"""Definitions of the ranking metrics.

Notation: ``rel_i`` is the grade at rank i (from 1), ``h_i`` is 1 where ``rel_i >= rel`` (by default
1), n the number of hits returned, R the number of judged documents with such a grade. Every
function takes a :class:`.JudgedRun` and gives float64 (queries,) in [0, 1].
A query without relevant documents and one without hits get 0, unless said otherwise. With their
default parameters the values equal ``trec_eval -c`` (NIST trec_eval 9.0.8) where it has the metric.

A document that stands in a ranking twice (an error in the convention ``trec``) is counted at each
rank, and a value may then leave [0, 1]; except where documents are counted rather than ranks: R@k,
Rprec, Bpref, set_P, set_R and set_F.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import DataError
from retrieval_bench.metrics.judged import Hits, Ideal, JudgedRun, ordinals

METRICS_VERSION = 1
"""Raised whenever a change moves the value of any metric; see CHANGELOG."""

DEFAULT_CONVENTION = "trec"
"""What runs that are measured here are judged by: trec_eval's reading of each metric."""

SMALLEST_AP = 1e-5
"""What GMAP takes an AP below it for, so that one query without hits does not make it 0."""

_HIGHEST_EXPONENT = 900

Values = NDArray[np.float64]

GradeGains = tuple[tuple[int, float], ...]
"""Grades with what they gain; a grade that is not here gains what it does anyway."""


class Gained(NamedTuple):
    """Gains of documents at some ranks; in the order of queries and ranks.

    Attributes:
        row: int64, the query.
        rank: int64, from 1.
        gain: float64, never 0.
    """

    row: NDArray[np.int64]
    rank: NDArray[np.int64]
    gain: Values

    def within(self, cut: int | None) -> Gained:
        """Return the gains at ranks up to ``cut``."""
        if cut is None:
            return self
        return self.where(self.rank <= cut)

    def where(self, wanted: NDArray[np.bool_]) -> Gained:
        """Return the gains for which ``wanted`` is true."""
        return Gained(self.row[wanted], self.rank[wanted], self.gain[wanted])


def precision(run: JudgedRun, cut: int, *, rel: int = 1, relative: bool = False) -> Values:
    """P@k = sum of h_i over i <= k, divided by k, also when n < k (trec_eval P); with ``relative``
    by the most that there can be, min(k, R) (trec_eval relative_P)."""
    hits = run.count(run.relevant(rel, cut).row)
    if relative:
        return ratio(hits, np.minimum(cut, run.n_relevant(rel)))
    return np.asarray(hits / float(cut))


def recall(run: JudgedRun, cut: int | None, *, rel: int = 1) -> Values:
    """R@k = relevant documents in the top k (without k: in all hits) / R (trec_eval recall)."""
    return ratio(_documents(run, run.relevant(rel, cut)), run.n_relevant(rel))


def f1(run: JudgedRun, cut: int, *, rel: int = 1) -> Values:
    """F1@k = harmonic mean of P@k and R@k, 0 when both are 0 (ranx f1)."""
    return _harmonic_mean(precision(run, cut, rel=rel), recall(run, cut, rel=rel))


def success(run: JudgedRun, cut: int | None, *, rel: int = 1) -> Values:
    """Success@k = 1 if any hit stands in the top k (without k: anywhere), else 0; also called hit
    rate (trec_eval success)."""
    return np.asarray(run.count(run.relevant(rel, cut).row) > 0, dtype=np.float64)


def reciprocal_rank(run: JudgedRun, cut: int | None, *, rel: int = 1) -> Values:
    """RR = 1 / rank of the first hit, 0 if there is none (within k) (trec_eval recip_rank)."""
    hits = run.relevant(rel, cut)
    first = hits.where(ordinals(hits.row, run.n_queries) == 1)
    return run.total(first.row, 1.0 / first.rank)


def average_precision(
    run: JudgedRun,
    cut: int | None,
    *,
    rel: int = 1,
    norm: Literal["relevant", "hits"] = "relevant",
) -> Values:
    """AP = (1/R) sum over i <= k of h_i * P@i (trec_eval map, map_cut).

    The divisor is R, neither min(k, R) nor the number of hits. With ``norm=hits`` it is the number
    of hits within k, which forgives every relevant document that was not found: the definition of
    several competitions and libraries, never printed as plain AP.
    """
    hits = run.relevant(rel, cut)
    n_relevant = ordinals(hits.row, run.n_queries)
    divisor = run.count(hits.row) if norm == "hits" else run.n_relevant(rel)
    return ratio(run.total(hits.row, n_relevant / hits.rank), divisor)


def geometric_ap(run: JudgedRun, *, rel: int = 1) -> Values:
    """AP, at least 0.00001. The mean of GMAP is geometric: exp(mean of log AP), which weighs a
    doubling of a hard query like that of an easy one (Robertson 2006; trec_eval gm_map)."""
    return np.maximum(average_precision(run, None, rel=rel), SMALLEST_AP)


def ndcg(
    run: JudgedRun,
    cut: int | None,
    *,
    gain: Literal["linear", "exp"] = "linear",
    ideal: Literal["judged", "returned"] = "judged",
    gains: GradeGains = (),
) -> Values:
    """nDCG = DCG / IDCG with DCG = sum over i <= k of gain(rel_i) / log2(i + 1).

    The gain is rel (Jarvelin & Kekalainen 2002; trec_eval ndcg, ndcg_cut), with ``gain=exp``
    2^rel - 1 (Burges 2005). IDCG is taken over all judged documents, best first, cut at k too;
    with ``ideal=returned`` over the returned documents only, which gives 1 to any ranking that has
    its few hits in front, however many it missed. ``gains`` are those of single grades, 0 among
    them; all others have theirs from ``gain``.

    Raises:
        DataError: a grade for which 2^rel is no number any more.
    """
    if gains:
        gained, wanted = graded(run, gains, gain, ideal)
        gained, wanted = gained.within(cut), wanted.within(cut)
        return ratio(
            run.total(gained.row, gained.gain / discounts(gained.rank)),
            run.total(wanted.row, wanted.gain / discounts(wanted.rank)),
        )
    hits = run.relevant(1, cut)
    best = (_sorted_hits(run) if ideal == "returned" else run.ideal).within(cut)
    return ratio(
        run.total(hits.row, _gains(hits.grade, gain) / discounts(hits.rank)),
        run.total(best.row, _gains(best.grade, gain) / discounts(best.rank)),
    )


def r_precision(run: JudgedRun, *, rel: int = 1, mult: float = 1.0) -> Values:
    """Rprec = relevant documents in the first R / R (trec_eval Rprec); with ``mult`` in the first
    mult * R, a rest of .1 or more counted as one (trec_eval Rprec_mult)."""
    hits = run.relevant(rel)
    cuts = ranks_at(mult, run.n_relevant(rel))
    return ratio(_documents(run, hits.where(hits.rank <= cuts[hits.row])), cuts)


def ranks_at(share: float, of: NDArray[np.int64]) -> NDArray[np.int64]:
    """``share`` of each number as a whole one, as trec_eval 9 rounds it."""
    return np.asarray(share * of + 0.9).astype(np.int64)


def bpref(run: JudgedRun, *, rel: int = 1) -> Values:
    """Bpref = (1/R) sum over retrieved relevant documents of 1 - min(a, R) / min(N, R).

    a counts the judged non-relevant documents above it, N all judged non-relevant ones; the term is
    1 when a is 0. Documents without a judgement do not matter (Buckley & Voorhees 2004, as
    corrected in trec_eval 8).
    """
    n_relevant = run.n_relevant(rel)
    hits = run.judged.where(~run.judged.repeated)
    # Above a relevant hit stand as many judged ones as it has, less the relevant ones.
    is_relevant = hits.grade >= rel
    place = ordinals(hits.row, run.n_queries)[is_relevant]
    row = hits.row[is_relevant]
    above = place - ordinals(row, run.n_queries)
    limit = np.minimum(run.n_judged - n_relevant, n_relevant)[row]
    lost = np.zeros(len(row))
    np.divide(np.minimum(above, n_relevant[row]), limit, out=lost, where=above > 0)
    return ratio(run.total(row, 1.0 - lost), n_relevant)


def rank_biased_precision(run: JudgedRun, cut: int | None, *, p: float, rel: int = 1) -> Values:
    """RBP(p) = (1 - p) sum over i (<= k) of h_i * p^(i - 1): what a reader finds who goes on to the
    next hit with probability p (Moffat & Zobel 2008)."""
    hits = run.relevant(rel, cut)
    return run.total(hits.row, (1.0 - p) * p ** (hits.rank - 1.0))


def expected_reciprocal_rank(run: JudgedRun, cut: int | None, *, highest: int = 4) -> Values:
    """ERR@k = sum over i <= k of (R_i / i) * product over j < i of (1 - R_j), where
    R_i = (2^rel_i - 1) / 2^highest is the chance that the document satisfies, and ``highest`` the
    highest grade there can be (Chapelle et al. 2009; gdeval, where it is 4).

    Raises:
        DataError: a grade above ``highest``.
    """
    highest_grade = int(run.ideal.grade.max(initial=0))
    if highest_grade > highest:
        raise DataError(
            f"grade {highest_grade} in the judgements, and ERR as asked for ends at grade "
            f"{highest}",
            where="the metric ERR",
            accepted=f"grades from 0 to {highest}",
            fix=f"ask for ERR(highest={highest_grade}), with the cut-off behind it",
        )
    hits = run.relevant(1, cut)
    # (2^grade - 1) / 2^highest, without numbers that grow out of bounds.
    satisfied = np.exp2(hits.grade - float(highest)) - np.exp2(-float(highest))
    place = ordinals(hits.row, run.n_queries)
    # Hits side by side, so that a running product stays within its query.
    goes_on = np.ones((run.n_queries, int(place.max(initial=0)) + 1))
    goes_on[hits.row, place] = 1.0 - satisfied
    reached = np.cumprod(goes_on, axis=1)[hits.row, place - 1]
    return run.total(hits.row, satisfied / hits.rank * reached)


def judged(run: JudgedRun, cut: int) -> Values:
    """Judged@k = judged documents in the top k / min(k, n), 0 for an empty list (ir_measures). Says
    how much of what a metric sees is known; a grade below 0 counts as not judged."""
    return ratio(run.count(run.judged.within(cut).row), np.minimum(run.lengths, cut))


def set_precision(run: JudgedRun, *, rel: int = 1, relative: bool = False) -> Values:
    """set_P = relevant documents returned / n, whatever their order (trec_eval set_P); with
    ``relative`` / min(n, R) (trec_eval set_relative_P)."""
    most = np.minimum(run.lengths, run.n_relevant(rel)) if relative else run.lengths
    return ratio(_documents(run, run.relevant(rel)), most)


def set_recall(run: JudgedRun, *, rel: int = 1) -> Values:
    """set_R = relevant documents returned / R, whatever their order (trec_eval set_recall)."""
    return ratio(_documents(run, run.relevant(rel)), run.n_relevant(rel))


def set_f(run: JudgedRun, *, rel: int = 1, beta: float = 1.0) -> Values:
    """set_F = (b + 1) P R / (b P + R) of set_P and set_R, 0 when both are 0: their harmonic mean
    where b = ``beta`` is 1. The weight is b itself, not its square (trec_eval set_F)."""
    p, r = set_precision(run, rel=rel), set_recall(run, rel=rel)
    return ratio(np.asarray((beta + 1.0) * p * r), np.asarray(beta * p + r))


def set_ap(run: JudgedRun, *, rel: int = 1) -> Values:
    """set_AP = set_P * set_R (trec_eval set_map)."""
    return set_precision(run, rel=rel) * set_recall(run, rel=rel)


def _documents(run: JudgedRun, hits: Hits) -> NDArray[np.int64]:
    """Number of distinct documents among the hits of each query."""
    return run.count(hits.row[~hits.repeated])


def graded(
    run: JudgedRun,
    gains: GradeGains,
    gain: Literal["linear", "exp"] = "linear",
    ideal: Literal["judged", "returned"] = "judged",
) -> tuple[Gained, Gained]:
    """Compute the gains of the hits of each query, and those of the best order of all its judged
    documents (or of the returned ones): gains above 0, highest first."""
    own, best = run.judged, _sorted_hits(run) if ideal == "returned" else run.ideal
    if ideal == "judged":  # behind the judgements stand those with a grade below 0
        counted = best.rank <= run.n_judged[best.row]
        best = Ideal(best.row[counted], best.rank[counted], best.grade[counted])
    gained = Gained(own.row, own.rank, _special_gains(own.grade, gains, gain))
    wanted = Gained(best.row, best.rank, _special_gains(best.grade, gains, gain))
    order = np.lexsort((-wanted.gain, wanted.row))
    order = order[wanted.gain[order] > 0]
    row = wanted.row[order]
    return (
        gained.where(gained.gain != 0),
        Gained(row, ordinals(row, run.n_queries), wanted.gain[order]),
    )


def _special_gains(grades: NDArray[np.int32], gains: GradeGains, gain: str) -> Values:
    result = _gains(grades, gain)
    for grade, special in gains:
        result[grades == grade] = special
    return result


def _sorted_hits(run: JudgedRun) -> Ideal:
    """The hits of each query in their best order."""
    hits = run.judged
    order = np.lexsort((-hits.grade, hits.row))
    return Ideal(hits.row[order], ordinals(hits.row, run.n_queries), hits.grade[order])


def _gains(grades: NDArray[np.int32], gain: str) -> Values:
    if gain == "linear":
        return grades.astype(np.float64)
    highest = int(grades.max(initial=0))
    if highest > _HIGHEST_EXPONENT:
        raise DataError(
            f"grade {highest} in the judgements: 2^grade is no number any more",
            where="the metric nDCG(gain=exp)",
            accepted=f"grades up to {_HIGHEST_EXPONENT}",
            fix="use the linear gain, or smaller grades",
        )
    return np.asarray(np.exp2(grades) - 1.0)


def discounts(ranks: NDArray[np.int64]) -> Values:
    """log2(i + 1) at each rank i, looked up: a logarithm for each rank, not for each hit."""
    return np.asarray(np.log2(np.arange(2.0, int(ranks.max(initial=0)) + 2))[ranks - 1])


def _harmonic_mean(a: Values, b: Values) -> Values:
    return ratio(np.asarray(2 * a * b), np.asarray(a + b))


def ratio(
    above: NDArray[np.floating | np.integer], below: NDArray[np.floating | np.integer]
) -> Values:
    """``above`` / ``below``, 0 where ``below`` is 0 (or less)."""
    result = np.zeros(len(above))
    np.divide(above, below, out=result, where=below > 0)
    return result
