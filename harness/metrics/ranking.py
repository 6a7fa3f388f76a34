"""Definitions of the ranking metrics under the convention ``trec``.

Notation: ``rel_i`` is the grade at rank i (from 1), ``h_i`` is 1 where ``rel_i >= rel`` (by default
1), R the number of judged documents with such a grade. All values lie in [0, 1]. Every function
takes a :class:`~harness.metrics.judged.JudgedRun` and gives float64 (queries,). A query without
relevant documents and one without hits get 0. Values equal ``trec_eval -c`` (NIST trec_eval 9.0.8).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.metrics.judged import JudgedRun

METRICS_VERSION = 1
"""Raised whenever a change moves the value of any metric; see CHANGELOG."""

Values = NDArray[np.float64]


def precision(run: JudgedRun, cut: int, *, rel: int = 1) -> Values:
    """P@k = hits in the top k / k, also when fewer than k were returned (trec_eval P)."""
    return np.asarray(run.hits(rel, cut).sum(axis=1) / float(cut))


def recall(run: JudgedRun, cut: int, *, rel: int = 1) -> Values:
    """R@k = hits in the top k / R (trec_eval recall)."""
    return _ratio(run.hits(rel, cut).sum(axis=1), run.n_relevant(rel))


def f1(run: JudgedRun, cut: int, *, rel: int = 1) -> Values:
    """F1@k = harmonic mean of P@k and R@k, 0 when both are 0 (ranx f1)."""
    p = precision(run, cut, rel=rel)
    r = recall(run, cut, rel=rel)
    return _ratio(np.asarray(2 * p * r), np.asarray(p + r))


def success(run: JudgedRun, cut: int, *, rel: int = 1) -> Values:
    """Success@k = 1 if any hit stands in the top k; also called hit rate (trec_eval success)."""
    return np.asarray(run.hits(rel, cut).any(axis=1), dtype=np.float64)


def reciprocal_rank(run: JudgedRun, cut: int | None, *, rel: int = 1) -> Values:
    """RR = 1 / rank of the first hit, 0 if there is none (within k) (trec_eval recip_rank)."""
    hits = run.hits(rel, cut)
    if hits.shape[1] == 0:
        return np.zeros(hits.shape[0])
    return np.asarray(np.where(hits.any(axis=1), 1.0 / (hits.argmax(axis=1) + 1.0), 0.0))


def average_precision(run: JudgedRun, cut: int | None, *, rel: int = 1) -> Values:
    """AP = (1/R) sum over i <= k of h_i * P@i; the divisor is R, neither min(k, R) nor the number
    of hits (trec_eval map, map_cut)."""
    hits = run.hits(rel, cut)
    precision_at = np.cumsum(hits, axis=1) / np.arange(1.0, hits.shape[1] + 1)
    return _ratio((precision_at * hits).sum(axis=1), run.n_relevant(rel))


def ndcg(run: JudgedRun, cut: int | None, *, gain: Literal["linear", "exp"] = "linear") -> Values:
    """nDCG = DCG / IDCG with DCG = sum over i <= k of gain(rel_i) / log2(i + 1).

    The gain is rel (Jarvelin & Kekalainen 2002; trec_eval ndcg, ndcg_cut), with ``gain=exp``
    2^rel - 1 (Burges 2005). IDCG is taken over all judged documents, best first, cut at k too.
    """
    return _ratio(_dcg(run.grades[:, :cut], gain), _dcg(run.ideal[:, :cut], gain))


def _dcg(grades: NDArray[np.int32], gain: str) -> Values:
    gains = grades.astype(np.float64)
    if gain == "exp":
        gains = np.exp2(gains) - 1.0
    discounted: Values = gains @ (1.0 / np.log2(np.arange(2.0, grades.shape[1] + 2)))
    return discounted


def _ratio(
    above: NDArray[np.floating | np.integer], below: NDArray[np.floating | np.integer]
) -> Values:
    result = np.zeros(len(above))
    np.divide(above, below, out=result, where=below > 0)
    return result
