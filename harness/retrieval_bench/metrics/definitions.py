"""Metrics that there are, as a table: how each is computed, and what its name may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.metrics import measures as ranking
from retrieval_bench.metrics import trec_measures
from retrieval_bench.stats.intervals import HIT, SHARE, Scale

Kind = (
    tuple[str, ...] | type[int] | type[float] | type[bool] | Literal["number", "numbers", "gains"]
)
"""What a parameter may be: one of some words; a whole number from 1; a number between 0 and 1; True
or False; any number from 0; numbers ``[1,-1,0.5]``; gains of grades, ``{1:3.5,2:9}``."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Definition of a metric: how it is computed and which parameters it knows; what a plug-in
    registers.

    Attributes:
        compute: called as ``compute(run, cut, **params)``, without ``cut`` where it is refused;
            gives float64 (queries,). A parameter that has its default is left out of the name and
            of the call; one without a default is required.
        cut: whether a cut-off is needed, allowed or refused; with "recall" what stands behind the @
            is no rank but the parameter ``recall``, a share from 0 to 1.
        params: parameter name -> the values it may take, see :data:`Kind`.
        mean: how values of queries become one; a geometric mean needs values above 0, and counts
            are summed.
        compared: whether more is better; where it is not, a value describes a run, and only
            ``score run`` shows it.
        scale: what the value of a query can be; None = not known, as with a gain that has no limit
            (and wherever gains are given, or the mean is geometric).
        meaning: a sentence on what a value says, for somebody who does not know it; ``{hits}``
            stands for the hits that count.
    """

    compute: Callable[..., NDArray[np.float64]]
    cut: Literal["required", "optional", "refused", "recall"]
    params: Mapping[str, Kind] = field(default_factory=dict)
    mean: Literal["arithmetic", "geometric", "sum"] = "arithmetic"
    compared: bool = True
    scale: Scale | None = None
    meaning: str = ""


_REL: Mapping[str, Kind] = {"rel": int}
_GAINS: Mapping[str, Kind] = {"gains": "gains"}
_ROUNDING: Mapping[str, Kind] = {"rounding": ("nearest", "up")}

DEFINITIONS: Mapping[str, Definition] = {
    "nDCG": Definition(
        ranking.ndcg,
        "optional",
        {"gain": ("linear", "exp"), "ideal": ("judged", "returned"), **_GAINS},
        scale=SHARE,
        meaning="how good the order of {hits} is: 1 is the best possible, 0 means that nothing "
        "relevant is there",
    ),
    "AP": Definition(
        ranking.average_precision,
        "optional",
        {**_REL, "norm": ("relevant", "hits")},
        scale=SHARE,
        meaning="how early all relevant documents stand in {hits}: 1 means before all others, 0 "
        "that none is there",
    ),
    "RR": Definition(
        ranking.reciprocal_rank,
        "optional",
        _REL,
        scale=SHARE,
        meaning="how early the first relevant document stands in {hits}: 1 at the top, 0.5 in the "
        "second place, 0 where there is none",
    ),
    "P": Definition(
        ranking.precision,
        "required",
        {**_REL, "relative": bool},
        scale=SHARE,
        meaning="the share of relevant documents in {hits}",
    ),
    "R": Definition(
        ranking.recall,
        "optional",
        _REL,
        scale=SHARE,
        meaning="the share of all relevant documents that are found in {hits}",
    ),
    "F1": Definition(
        ranking.f1,
        "required",
        _REL,
        scale=SHARE,
        meaning="the harmonic mean of precision and recall in {hits}",
    ),
    "Success": Definition(
        ranking.success,
        "optional",
        _REL,
        scale=HIT,
        meaning="the share of the queries with a relevant document in {hits}",
    ),
    "Rprec": Definition(
        ranking.r_precision,
        "refused",
        {**_REL, "mult": "number"},
        scale=SHARE,
        meaning="the share of relevant documents in as many hits as there are such documents",
    ),
    "Bpref": Definition(
        ranking.bpref,
        "refused",
        _REL,
        scale=SHARE,
        meaning="how seldom a document that was judged not relevant stands before a relevant one",
    ),
    "RBP": Definition(
        ranking.rank_biased_precision,
        "optional",
        {**_REL, "p": float},
        scale=SHARE,
        meaning="how much a reader finds who goes on from hit to hit with a fixed probability",
    ),
    "ERR": Definition(
        ranking.expected_reciprocal_rank,
        "optional",
        {"highest": int},
        scale=SHARE,
        meaning="how early a reader who stops at a good hit is expected to stop: 1 at the top",
    ),
    "Judged": Definition(
        ranking.judged,
        "required",
        scale=SHARE,
        meaning="the share of documents with a judgement in {hits}",
    ),
    "GMAP": Definition(
        ranking.geometric_ap,
        "refused",
        _REL,
        mean="geometric",
        meaning="how early relevant documents stand, where the worst queries weigh most",
    ),
    "set_P": Definition(
        ranking.set_precision,
        "refused",
        {**_REL, "relative": bool},
        scale=SHARE,
        meaning="the share of all hits that are relevant",
    ),
    "set_R": Definition(
        ranking.set_recall,
        "refused",
        _REL,
        scale=SHARE,
        meaning="the share of the relevant documents that are among all hits",
    ),
    "set_F": Definition(
        ranking.set_f,
        "refused",
        {**_REL, "beta": "number"},
        scale=SHARE,
        meaning="the mean of precision and recall over all hits",
    ),
    "set_AP": Definition(
        ranking.set_ap,
        "refused",
        _REL,
        scale=SHARE,
        meaning="precision times recall of all hits, whatever their order",
    ),
    "IPrec": Definition(
        trec_measures.interpolated_precision,
        "recall",
        {**_REL, **_ROUNDING, "recall": "number"},
        scale=SHARE,
        meaning="the best precision there is from that share of the relevant documents on",
    ),
    "IAP": Definition(
        trec_measures.interpolated_ap,
        "refused",
        {**_REL, **_ROUNDING, "recalls": "numbers"},
        scale=SHARE,
        meaning="interpolated precision, averaged over eleven shares of the relevant documents",
    ),
    "infAP": Definition(
        trec_measures.inferred_ap,
        "refused",
        _REL,
        scale=SHARE,
        meaning="what AP would be, guessed from a pool of which only a sample was judged",
    ),
    "YAAP": Definition(
        trec_measures.log_odds_ap,
        "refused",
        _REL,
        meaning="AP, smoothed, on the scale of log odds: 0 is even, more is better",
    ),
    "GMBpref": Definition(
        trec_measures.geometric_bpref,
        "refused",
        _REL,
        mean="geometric",
        meaning="how seldom a document that was judged not relevant stands before a relevant one, "
        "where the worst queries weigh most",
    ),
    "G": Definition(
        trec_measures.normalised_gain,
        "refused",
        _GAINS,
        scale=SHARE,
        meaning="how much is gained, each hit discounted by what could have been gained before it",
    ),
    "binG": Definition(
        trec_measures.binary_gain,
        "refused",
        _REL,
        scale=SHARE,
        meaning="how few hits that are not relevant stand before the relevant ones",
    ),
    "nDCG_rel": Definition(
        trec_measures.ndcg_at_relevant,
        "refused",
        _GAINS,
        scale=SHARE,
        meaning="nDCG, averaged over the ranks of the relevant documents",
    ),
    "Rndcg": Definition(
        trec_measures.ndcg_at_levels,
        "refused",
        {**_REL, **_GAINS},
        scale=SHARE,
        meaning="nDCG, averaged over the ranks where the best order goes to the next lower grade",
    ),
    "Utility": Definition(
        trec_measures.utility,
        "refused",
        {**_REL, "weights": "numbers", "docs": int},
        meaning="relevant hits less the other ones, or as weighed",
    ),
    "Unjudged": Definition(
        trec_measures.unjudged,
        "required",
        compared=False,
        scale=SHARE,
        meaning="the share of documents without a judgement in {hits}",
    ),
    "RBP_resid": Definition(
        trec_measures.rbp_residual,
        "refused",
        {"p": float},
        compared=False,
        scale=SHARE,
        meaning="by how much RBP could rise if all that is not judged were relevant",
    ),
    "NumQ": Definition(
        trec_measures.number_of_queries,
        "refused",
        mean="sum",
        compared=False,
        meaning="the number of queries",
    ),
    "NumRet": Definition(
        trec_measures.number_returned,
        "refused",
        mean="sum",
        compared=False,
        meaning="the number of hits",
    ),
    "NumRelRet": Definition(
        trec_measures.number_relevant_returned,
        "refused",
        _REL,
        mean="sum",
        compared=False,
        meaning="the number of relevant hits",
    ),
    "NumRel": Definition(
        trec_measures.number_relevant,
        "refused",
        _REL,
        mean="sum",
        compared=False,
        meaning="the number of relevant documents, returned or not",
    ),
    "NumNonrelRet": Definition(
        trec_measures.number_nonrelevant,
        "refused",
        _REL,
        mean="sum",
        compared=False,
        meaning="the number of hits that were judged not relevant",
    ),
}
"""Name -> definition, in the order in which they are listed."""
