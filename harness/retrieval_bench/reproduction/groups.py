"""Several systems on one dataset, by group of queries and under several conventions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrieval_bench.metrics.conventions import Convention, convention
from retrieval_bench.reproduction.answered import Answered, NotAtHandError
from retrieval_bench.reproduction.published import PublishedTable
from retrieval_bench.scoring.scoring import Scored

ALL = "all"
NO_GROUP = "(none)"


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """One system under one convention.

    Attributes:
        means: metric -> group -> mean; a group without a query that counts is left out.
        n: group -> queries that count; conventions leave out different ones.
        missing: queries to score that the system does not have.
        reason: why there is nothing, empty otherwise.
    """

    system: str
    convention: str
    means: Mapping[str, Mapping[str, float]]
    n: Mapping[str, int]
    missing: int = 0
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """One of ``rows`` in the JSON document."""
        return {name: getattr(self, name) for name in GroupMeans.__slots__}


@dataclass(frozen=True, slots=True)
class GroupTable:
    """Systems by conventions, with the groups in the order of the queries, "all" last.

    Attributes:
        metrics: convention -> the explicit metrics that the plain names stand for there.
        rows: none where the dataset is not at hand; ``reason`` says why.
    """

    dataset: str
    k: int
    by: str
    groups: tuple[str, ...]
    metrics: Mapping[str, tuple[str, ...]]
    rows: tuple[GroupMeans, ...]
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """``table`` of the JSON document."""
        return {
            "dataset": self.dataset,
            "k": self.k,
            "by": self.by,
            "groups": list(self.groups),
            "rows": [row.as_dict() for row in self.rows],
            "reason": self.reason,
        }


def group_table(wanted: PublishedTable, answered: Answered) -> GroupTable:
    """The means of all systems of ``wanted``."""
    rules = [convention(name) for name in wanted.conventions]
    metrics = {r.name: tuple(str(metric) for metric in r.parse(wanted.metrics)) for r in rules}
    try:
        data = answered.data(wanted.dataset)
    except NotAtHandError as problem:
        frame = (wanted.dataset, wanted.k, wanted.by, (ALL,), metrics)
        return GroupTable(*frame, rows=(), reason=str(problem))
    group_of: dict[str, str] = {}
    if data.dataset is not None:
        group_of = {q.id: str(q.metadata.get(wanted.by, NO_GROUP)) for q in data.dataset.queries}
    groups = (*dict.fromkeys(group_of.values()), ALL)
    rows = [
        _row(system, wanted, rule, answered, group_of)
        for rule in rules
        for system in wanted.systems
    ]
    return GroupTable(wanted.dataset, wanted.k, wanted.by, groups, metrics, tuple(rows))


def _row(
    system: str,
    wanted: PublishedTable,
    rules: Convention,
    answered: Answered,
    group_of: Mapping[str, str],
) -> GroupMeans:
    try:
        scored = answered.scored(system, wanted.dataset, wanted.k, rules, wanted.metrics)
    except NotAtHandError as problem:
        return GroupMeans(system, rules.name, {}, {}, reason=str(problem))
    means, n = means_by_group(scored, group_of)
    return GroupMeans(system, rules.name, means, n, scored.counts.missing)


def means_by_group(
    scored: Scored, group_of: Mapping[str, str]
) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Metric -> group -> mean over its queries that count, and group -> how many these are; the
    group "all" has all of them."""
    evaluation = scored.evaluation
    rows: dict[str, list[int]] = {}
    for at, query_id in enumerate(evaluation.query_ids):
        rows.setdefault(group_of.get(query_id, NO_GROUP), []).append(at)
    if rows:
        rows[ALL] = list(range(len(evaluation.query_ids)))
    means = {
        str(metric): {
            group: float(np.mean(evaluation.per_query[of, column])) for group, of in rows.items()
        }
        for column, metric in enumerate(evaluation.metrics)
    }
    return means, {group: len(of) for group, of in rows.items()}
