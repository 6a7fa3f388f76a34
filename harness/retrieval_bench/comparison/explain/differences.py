"""``diff``: where runs differ, and the queries of it that are looked at one by one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_bench.comparison.explain.diff import Explanation, Order, QueryDetail, explain
from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.needs_judgements import require_judged
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run

QUERIES = 5
"""So many are looked at."""


@dataclass(frozen=True, slots=True)
class Differences:
    """Where two runs differ, or a hybrid and its legs.

    Attributes:
        explanation: of all queries: systems, means, groups; ceilings on demand.
        details: of the queries that were chosen.
        texts: whether these have the texts of queries and documents.
    """

    explanation: Explanation
    details: Sequence[QueryDetail]
    texts: bool


def differences(
    runs: Sequence[Run],
    dataset: Dataset,
    metric: Metric | None = None,
    *,
    queries: int | None = QUERIES,
    query_ids: Sequence[str] = (),
    group: str | None = None,
    order: Order = "largest",
    texts: bool = True,
) -> Differences:
    """Explain where two runs differ, or one run of a hybrid and its legs.

    Args:
        metric: None = the first of the runs.
        queries: so many are looked at; None = all.
        query_ids: look at these instead.
        group: look only at queries of this group, such as "lost by fusion".
        order: largest difference first, or where the second run is worse, or better.
        texts: False leaves out the texts of queries and documents.

    Raises:
        ConfigError: runs that cannot be held against each other, a group or a query there is not.
    """
    require_judged(
        dataset, "explain", instead="compare shows the queries on which two runs differ most"
    )
    explanation = explain(runs, dataset, metric)
    if query_ids:
        places = [_place(explanation, query_id) for query_id in query_ids]
    else:
        label = None if group is None else _label(explanation, group)
        places = explanation.order(order, label)[:queries]
    return Differences(explanation, explanation.details(places, texts=texts), texts)


def _label(explanation: Explanation, group: str) -> str:
    """The label of a group that may be spelled with hyphens."""
    labels = dict.fromkeys(label for part in explanation.partitions for label in part.labels)
    spelled = {label.replace(" ", "-").casefold(): label for label in labels}
    label = spelled.get(group.strip().replace(" ", "-").casefold())
    if label is None:
        raise ConfigError(
            f"group {group!r}",
            where="--group",
            accepted=near_names(group, labels),
            fix="name one of the groups of the tables",
        )
    return label


def _place(explanation: Explanation, query_id: str) -> int:
    if query_id in explanation.query_ids:
        return explanation.query_ids.index(query_id)
    close = difflib.get_close_matches(query_id, explanation.query_ids, n=3)
    known = any(query.id == query_id for query in explanation.dataset.queries)
    raise ConfigError(
        f"query {query_id!r}" + (", which is not evaluated" if known else ""),
        where="--query",
        accepted="ids of evaluated queries" + (f", such as {', '.join(close)}" if close else ""),
        fix="leave --query out to see those that differ most",
    )
