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

Cut = Literal["required", "optional", "refused", "recall"]


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
    cut: Cut
    params: Mapping[str, Kind] = field(default_factory=dict)
    mean: Literal["arithmetic", "geometric", "sum"] = "arithmetic"
    compared: bool = True
    scale: Scale | None = None
    meaning: str = ""


_REL: Mapping[str, Kind] = {"rel": int}
_GAINS: Mapping[str, Kind] = {"gains": "gains"}
_ROUNDING: Mapping[str, Kind] = {"rounding": ("nearest", "up")}


def _share(
    compute: Callable[..., NDArray[np.float64]],
    meaning: str,
    *,
    cut: Cut = "refused",
    params: Mapping[str, Kind] = _REL,
) -> Definition:
    """A metric from 0 to 1, by default without a cut-off."""
    return Definition(compute, cut, params, scale=SHARE, meaning=meaning)


def _count(
    compute: Callable[..., NDArray[np.float64]], meaning: str, *, params: Mapping[str, Kind] = _REL
) -> Definition:
    """A sum over all queries, of which more is not better."""
    return Definition(compute, "refused", params, "sum", compared=False, meaning=meaning)


DEFINITIONS: Mapping[str, Definition] = {
    "nDCG": _share(
        ranking.ndcg,
        "how good the order of {hits} is: 1 is the best possible, 0 means that nothing "
        "relevant is there",
        cut="optional",
        params={"gain": ("linear", "exp"), "ideal": ("judged", "returned"), **_GAINS},
    ),
    "AP": _share(
        ranking.average_precision,
        "how early all relevant documents stand in {hits}: 1 means before all others, 0 "
        "that none is there",
        cut="optional",
        params={**_REL, "norm": ("relevant", "hits")},
    ),
    "RR": _share(
        ranking.reciprocal_rank,
        "how early the first relevant document stands in {hits}: 1 at the top, 0.5 in the "
        "second place, 0 where there is none",
        cut="optional",
    ),
    "P": _share(
        ranking.precision,
        "the share of relevant documents in {hits}",
        cut="required",
        params={**_REL, "relative": bool},
    ),
    "R": _share(
        ranking.recall,
        "the share of all relevant documents that are found in {hits}",
        cut="optional",
    ),
    "F1": _share(ranking.f1, "the harmonic mean of precision and recall in {hits}", cut="required"),
    "Success": Definition(
        ranking.success,
        "optional",
        _REL,
        scale=HIT,
        meaning="the share of the queries with a relevant document in {hits}",
    ),
    "Rprec": _share(
        ranking.r_precision,
        "the share of relevant documents in as many hits as there are such documents",
        params={**_REL, "mult": "number"},
    ),
    "Bpref": _share(
        ranking.bpref,
        "how seldom a document that was judged not relevant stands before a relevant one",
    ),
    "RBP": _share(
        ranking.rank_biased_precision,
        "how much a reader finds who goes on from hit to hit with a fixed probability",
        cut="optional",
        params={**_REL, "p": float},
    ),
    "ERR": _share(
        ranking.expected_reciprocal_rank,
        "how early a reader who stops at a good hit is expected to stop: 1 at the top",
        cut="optional",
        params={"highest": int},
    ),
    "Judged": _share(
        ranking.judged,
        "the share of documents with a judgement in {hits}",
        cut="required",
        params={},
    ),
    "GMAP": Definition(
        ranking.geometric_ap,
        "refused",
        _REL,
        mean="geometric",
        meaning="how early relevant documents stand, where the worst queries weigh most",
    ),
    "set_P": _share(
        ranking.set_precision,
        "the share of all hits that are relevant",
        params={**_REL, "relative": bool},
    ),
    "set_R": _share(
        ranking.set_recall, "the share of the relevant documents that are among all hits"
    ),
    "set_F": _share(
        ranking.set_f,
        "the mean of precision and recall over all hits",
        params={**_REL, "beta": "number"},
    ),
    "set_AP": _share(ranking.set_ap, "precision times recall of all hits, whatever their order"),
    "IPrec": _share(
        trec_measures.interpolated_precision,
        "the best precision there is from that share of the relevant documents on",
        cut="recall",
        params={**_REL, **_ROUNDING, "recall": "number"},
    ),
    "IAP": _share(
        trec_measures.interpolated_ap,
        "interpolated precision, averaged over eleven shares of the relevant documents",
        params={**_REL, **_ROUNDING, "recalls": "numbers"},
    ),
    "infAP": _share(
        trec_measures.inferred_ap,
        "what AP would be, guessed from a pool of which only a sample was judged",
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
    "G": _share(
        trec_measures.normalised_gain,
        "how much is gained, each hit discounted by what could have been gained before it",
        params=_GAINS,
    ),
    "binG": _share(
        trec_measures.binary_gain,
        "how few hits that are not relevant stand before the relevant ones",
    ),
    "nDCG_rel": _share(
        trec_measures.ndcg_at_relevant,
        "nDCG, averaged over the ranks of the relevant documents",
        params=_GAINS,
    ),
    "Rndcg": _share(
        trec_measures.ndcg_at_levels,
        "nDCG, averaged over the ranks where the best order goes to the next lower grade",
        params={**_REL, **_GAINS},
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
    "NumQ": _count(trec_measures.number_of_queries, "the number of queries", params={}),
    "NumRet": _count(trec_measures.number_returned, "the number of hits", params={}),
    "NumRelRet": _count(trec_measures.number_relevant_returned, "the number of relevant hits"),
    "NumRel": _count(
        trec_measures.number_relevant, "the number of relevant documents, returned or not"
    ),
    "NumNonrelRet": _count(
        trec_measures.number_nonrelevant, "the number of hits that were judged not relevant"
    ),
}
"""Name -> definition, in the order in which they are listed."""
