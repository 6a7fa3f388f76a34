"""Values of the systems of a pool, query by query, by the grades of its documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from retrieval_bench.labels.grades import Settled
from retrieval_bench.labels.label import Pair
from retrieval_bench.metrics import Judgements, Metric, judge_lists
from retrieval_bench.stats.intervals import Floats


def values_by_grades(
    metric: Metric,
    lists: Sequence[Mapping[str, Sequence[str]]],
    query_ids: Sequence[str],
    grades: Mapping[Pair, Settled],
    counting: Collection[str],
) -> Floats:
    """(systems, queries); 0 for queries that do not count, and for those without a grade.

    Args:
        lists: of each system, by query; a query that it lacks has an empty list.
        counting: ids of the queries that count.
    """
    qrels: dict[str, dict[str, int]] = {}
    for pair, settled in grades.items():
        if pair.query_id in counting:
            qrels.setdefault(pair.query_id, {})[pair.doc_id] = settled.grade
    values = np.zeros((len(lists), len(query_ids)))
    judged = [place for place, query_id in enumerate(query_ids) if query_id in qrels]
    ids = [query_ids[place] for place in judged]
    judgements = Judgements(qrels)
    for row, of in enumerate(lists):
        run = judge_lists(
            {query_id: list(of.get(query_id, ())) for query_id in ids}, ids, judgements
        )
        values[row, judged] = metric.compute(run)
    return values
