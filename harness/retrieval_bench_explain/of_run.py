"""Findings on a measured run: its best leg, and what its parts buy."""

from __future__ import annotations

from retrieval_bench.comparison.claims import left_open
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.verdicts import PairJudge, Rules
from retrieval_bench.comparison.recommendation import maybe_chance
from retrieval_bench.core.errors import DataError, counted
from retrieval_bench.core.figures import signed
from retrieval_bench.core.types import Dataset, Verdict
from retrieval_bench.reports.render.cells import TIMES
from retrieval_bench.reports.render.table import AnyNote, Findings, result, warning
from retrieval_bench.reports.render.words import ends_text
from retrieval_bench.reports.tables.again import named_again
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.resampling import RESAMPLES
from retrieval_bench_explain.diff import explain
from retrieval_bench_explain.ledger import ledger_of
from retrieval_bench_explain.parts import Parts
from retrieval_bench_explain.tables.ledger import asking, ledger_table, loud


def findings_on(run: Run, dataset: Dataset) -> Findings:
    """Find what the parts of a run buy."""
    try:
        parts = Parts(best_leg(run, dataset), ledger_of(run, dataset))
    except DataError:  # of a list that only a part gave
        gone = (
            "rules read texts of hits, which are not kept, and there is no corpus to look them up"
        )
        return Findings([result(f"What its parts buy is not known: {gone}.")])
    return told(run, parts)


def told(run: Run, parts: Parts) -> Findings:
    """Put it into words and tables."""
    leg, ledger = parts.leg, parts.ledger
    lead = [] if leg is None else [_beside_leg(run, leg)]
    next_ = "" if leg is None else f"retrieval-bench explain {named_again([run])}"
    if ledger is None:
        return Findings(lead, next=next_, records=[parts])
    # Of a hybrid, the sentence on its best leg says some of it already.
    brief = loud(ledger, but=() if leg is None else ("leg", "fusion", "depth"))
    return Findings(lead, brief, [ledger_table(ledger)], next_ or asking(run), [parts])


def _beside_leg(run: Run, leg: Delta) -> AnyNote:
    """Return how the best leg of a hybrid, b, does beside it, a."""
    if why := left_open("explain", run.summary.warnings):
        return result(f"It is not held against {leg.b}, its best leg, while this is open: {why}.")
    mean = run.evaluation.means[0].mean
    if leg.ratio is not None:  # of geometric means
        times = TIMES(leg.ratio[0], leg.ratio[1:])
        gap = f"{mean * leg.ratio[0]:.3f}, {times.text} {times.more}"
    elif leg.difference is None or leg.ci is None:
        why = leg.reason or "it is not known"
        return result(f"{leg.b}, its best leg, cannot be compared with it: {why}.")
    else:
        gap = f"{mean + leg.difference:.3f}, {signed(leg.difference, 3)} {ends_text(leg.ci)}"
    if leg.doubted and leg.bound is not None:
        gap += maybe_chance(f" {ends_text(leg.bound)}")
    fusion = (
        f"fusion hurt {leg.wins or 0:,} of {counted(leg.n, 'query')} and helped {leg.losses or 0:,}"
    )
    if leg.verdict is Verdict.BETTER:
        return warning(f"Use {leg.b} alone: {gap}. Compared with it, {fusion}.")
    if leg.verdict is Verdict.WORSE:
        return result(f"Its best leg alone, {leg.b}, is worse: {gap}; {fusion}.")
    if leg.verdict is Verdict.EQUIVALENT:
        return result(f"Its best leg alone, {leg.b}, is just as good: {gap}; {fusion}.")
    return result(f"These queries can't tell it from {leg.b}, its best leg, alone: {gap}.")


def best_leg(run: Run, dataset: Dataset) -> Delta | None:
    """The leg with the highest mean (b) beside the fused ranking (a), by the first metric, tested
    with all legs as one family; None for a run without lists of legs."""
    metric = run.evaluation.metrics[0]
    if not run.judged or not run.rankings.leg_lists or (metric.cut or 0) > run.summary.k:
        return None
    explanation = explain([run], dataset, metric)
    legs = explanation.legs_of(0)
    if not legs or not explanation.query_ids:
        return None
    names = [system.leg or system.name for system in explanation.systems]
    columns = [explanation.values[:, [at]] for at in range(len(names))]
    clusters = [Clusters.of_queries(run.clusters, explanation.query_ids)] * len(columns)
    judge = PairJudge(run.summary.dataset.name, names, (metric,), columns, clusters=clusters)
    deltas = judge.judged([(0, leg) for leg in legs], Rules(MARGIN, (), RESAMPLES))
    means = [explanation.means[leg].mean for leg in legs]
    return deltas[means.index(max(means))]
