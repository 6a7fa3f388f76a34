"""How far a pipeline is after each of its steps: quality of its list so far, time until then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from retrieval_bench.core.types import Dataset
from retrieval_bench.metrics import Judgements, Metric, judge
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.stages import STEP
from retrieval_bench.stats.percentiles import percentile

_NS_PER_MS = 1e6


class Reached(NamedTuple):
    """What a pipeline has after one of its steps.

    Attributes:
        step: its name.
        quality: mean of the metric, were its list cut at k the answer.
        ms: percentile of the time until its end; None where it may not be printed.
    """

    step: str
    quality: float
    ms: float | None


def reached(run: Run, dataset: Dataset, metric: Metric, level: float) -> list[Reached]:
    """After each step of the pipeline that makes a list, the last one left out: that is the
    pipeline itself. Empty for what is no pipeline.

    Args:
        level: percentile of times.
    """
    lists, stages = run.rankings.step_lists, run.timings.stages
    steps = [name.removeprefix(STEP) for name in stages if name.startswith(STEP)]
    listed = [name for name in steps if name in lists]
    if len(listed) < 2 or not run.evaluation.query_ids or run.asked is not None:
        return []
    place = {query_id: at for at, query_id in enumerate(run.rankings.query_ids)}
    ids = list(run.evaluation.query_ids)
    rows = [place[query_id] for query_id in ids]
    k, judgements = run.summary.k, Judgements(dataset.qrels)
    calls = ~run.timings.failed
    found = []
    for name in listed[:-1]:
        own = run.rankings.kept(name)
        if own is None:
            continue
        values = metric.compute(judge(own[rows, :k], run.rankings.doc_ids, ids, judgements))
        until = [f"{STEP}{step}" for step in steps[: steps.index(name) + 1]]
        spent = np.sum([np.maximum(stages[stage][calls], 0) for stage in until], axis=0)
        time = percentile(spent / _NS_PER_MS, level)
        mean = float(np.ravel(metric.from_additive(metric.additive(values).mean()))[0])
        found.append(Reached(name, mean, time.value))
    return found
