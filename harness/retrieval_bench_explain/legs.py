"""A hybrid beside its best leg, paired on the same queries: is fusion worth it?"""

from __future__ import annotations

from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.verdicts import PairJudge, Rules
from retrieval_bench.core.types import Dataset
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.resampling import RESAMPLES
from retrieval_bench_explain.diff import explain


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
