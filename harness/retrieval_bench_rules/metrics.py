"""Metrics of slots: how many are filled, and whether what must not come stayed away.

Of slots a run has an entry for each that a hit fills, at the rank of that hit, in place of relevant
documents: so ``Success@k`` and ``RR@k`` are those of the kernel, with a hit that fills a slot for a
relevant one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from retrieval_bench.core.types import Qrels, by_rule
from retrieval_bench.metrics import Definition, JudgedRun
from retrieval_bench.metrics.measures import Values, recall
from retrieval_bench.stats.intervals import HIT, SHARE
from retrieval_bench_rules.rules import EARLY

DEFINED = ("SlotR", "AllSlots", "Clean", "Within", "Success", "RR")
"""Names of all metrics that mean something where truth is by rule."""


def slot_recall(run: JudgedRun, cut: int) -> Values:
    """SlotR@k = slots that are filled in the top k / all slots of the query; 0 where a query
    expects nothing."""
    return recall(run, cut)


def all_slots(run: JudgedRun, cut: int) -> Values:
    """AllSlots@k = 1 where every slot of the query is filled in the top k, else 0; 0 where it
    expects nothing."""
    return np.asarray(recall(run, cut) >= 1.0, dtype=np.float64)


def clean(run: JudgedRun, cut: int) -> Values:
    """Clean@k = 1 where no forbidden hit stands in the top k, else 0; 1 where nothing is
    forbidden."""
    met = run.pooled.within(cut)
    return np.asarray(run.count(met.row[met.grade < 0]) == 0, dtype=np.float64)


def within(run: JudgedRun) -> Values:
    """Within = 1 where each slot with `within` is filled at that rank or before, else 0; 1 where
    there is no such slot."""
    early = run.relevant(EARLY)
    in_time = run.count(early.row[~early.repeated])
    return np.asarray(in_time >= run.n_relevant(EARLY), dtype=np.float64)


METRICS: Mapping[str, Definition] = {
    "SlotR": Definition(
        slot_recall,
        "required",
        scale=SHARE,
        meaning="the share of what a query expects that is found in {hits}",
    ),
    "AllSlots": Definition(
        all_slots,
        "required",
        scale=HIT,
        meaning="the share of the queries that find all they expect in {hits}",
    ),
    "Clean": Definition(
        clean,
        "required",
        scale=HIT,
        meaning="the share of the queries without a forbidden hit in {hits}",
    ),
    "Within": Definition(
        within,
        "refused",
        scale=HIT,
        meaning="the share of the queries that find early what must come early",
    ),
}
"""Defined where truth is by rule, and nowhere else."""


def usual(k: int, qrels: Qrels) -> Sequence[str]:
    """Choose the metrics where none are asked for, by what the rules of ``qrels`` say."""
    grades = {grade for of in by_rule(qrels).values() for grade in of.slots.values()}
    names = [f"SlotR@{k}", f"AllSlots@{k}", f"RR@{k}", "Success@1"] * (max(grades, default=0) > 0)
    names += [f"Clean@{k}"] * (min(grades, default=0) < 0)
    return [*names, *["Within"] * (EARLY in grades)]
