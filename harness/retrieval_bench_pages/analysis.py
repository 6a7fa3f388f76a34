"""All that a report says of a comparison, worked out before anything is written: recommendations,
slices, values query by query, and each hybrid against its legs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison, Recommendation
from retrieval_bench.comparison.pairs.comparability import not_comparable
from retrieval_bench.core.types import Dataset
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench_explain.diff import Explanation, explain
from retrieval_bench_explain.ledger import ledger_of
from retrieval_bench_explain.partitions import Partition
from retrieval_bench_explain.parts import Ledger
from retrieval_bench_explain.slices import Slicing, slicings
from retrieval_bench_explain.steps import Reached, reached
from retrieval_bench_pages.pictures.of_comparison import time_level


@dataclass(frozen=True, eq=False)
class QueryValues:
    """Queries of some systems that can be compared with each other.

    Attributes:
        names: of the systems.
        pair: places of the two that are looked at first, a and b; a difference is b minus a.
        values: float64 (queries, systems) of ``metric``.
        explained: each hybrid among the systems that kept the lists of its legs, against these.
        partitions: groups of queries by legs and fusion, of all of ``explained``.
    """

    dataset: Dataset
    metric: Metric
    names: tuple[str, ...]
    runs: tuple[Run, ...]
    pair: tuple[int, int]
    query_ids: tuple[str, ...]
    values: NDArray[np.float64]
    explained: tuple[Explanation, ...]
    partitions: tuple[Partition, ...]

    def order(self) -> list[int]:
        """Places of all queries, those first that tell most: in turn by the difference of the pair
        and by how far any two systems are apart."""
        a, b = self.pair
        by_pair = np.argsort(-np.abs(self.values[:, b] - self.values[:, a]).round(9), kind="stable")
        spread = self.values.max(axis=1) - self.values.min(axis=1)
        by_spread = np.argsort(-spread.round(9), kind="stable")
        return list(dict.fromkeys(np.column_stack([by_pair, by_spread]).ravel().tolist()))


@dataclass(frozen=True, eq=False)
class GroupAnalysis:
    """One dataset of a comparison.

    Attributes:
        without_dataset: why there is no dataset, and so neither slices nor single queries; empty
            where there is one.
        slicings: of all metrics.
        queries: None without a dataset, or where no two systems can be compared.
        ledgers: of each system that is made of parts, what they buy.
        paths: system -> how far it is after each of its steps, for pipelines.
    """

    group: DatasetComparison
    recommendation: Recommendation
    without_dataset: str = ""
    slicings: tuple[Slicing, ...] = ()
    queries: QueryValues | None = None
    ledgers: tuple[Ledger, ...] = ()
    paths: Mapping[str, Sequence[Reached]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Analysis:
    """A comparison with all that is worked out from it."""

    comparison: Comparison
    groups: tuple[GroupAnalysis, ...]

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """One for each dataset."""
        return tuple(group.recommendation for group in self.groups)


def analyse(comparison: Comparison, sources: Sequence[Dataset | str]) -> Analysis:
    """Work out everything.

    Args:
        sources: for each group of the comparison its dataset, or why it is not there.
    """
    parts = zip(comparison.groups, sources, comparison.recommendations, strict=True)
    groups = tuple(_group(*part) for part in parts)
    return Analysis(replace(comparison, groups=tuple(group.group for group in groups)), groups)


def _group(
    group: DatasetComparison, source: Dataset | str, recommendation: Recommendation
) -> GroupAnalysis:
    group = group.with_texts(source)
    if isinstance(source, str):
        return GroupAnalysis(group, recommendation, source)
    if not group.judged:
        return GroupAnalysis(group, recommendation)
    # The intervals of slices are those of a number of queries that was fixed beforehand.
    sliced = all(run.asked is None for run in group.runs)
    first = recommendation.system or group.highest(group.metrics[0])
    groups = slicings(group, source, baseline=first) if sliced else ()
    queries = query_values(group, source, first)
    metric, level = group.metrics[0], float(time_level(group.runs).removeprefix("p") or 50)
    named = list(zip(group.names, group.runs, strict=True))
    shown = [replace(run, summary=run.summary.replace(retriever=name)) for name, run in named]
    ledgers = [ledger_of(run, source) for run in shown]
    return GroupAnalysis(
        group,
        recommendation,
        "",
        tuple(groups),
        queries,
        tuple(ledger for ledger in ledgers if ledger is not None),
        {name: reached(run, source, metric, level) for name, run in named},
    )


def query_values(
    group: DatasetComparison, dataset: Dataset, best: str | None
) -> QueryValues | None:
    """Return the query values of the systems of a group that can be compared with ``best`` (with
    the first one that can be with any, where it is None); None where there are no two.

    The pair at first is the best system and the highest mean among the others.
    """
    metric = group.metrics[0]
    for main in [best] if best is not None else group.names:
        run = group.runs[group.names.index(main)]
        places = [at for at, other in enumerate(group.runs) if not not_comparable(run, other)]
        if len(places) > 1 and run.evaluation.query_ids:
            break
    else:
        return None
    runs = [group.runs[at] for at in places]
    names = [group.names[at] for at in places]
    query_ids = run.evaluation.query_ids
    values = np.column_stack([run.evaluation.values(metric, query_ids) for run in runs])
    b = names.index(main)
    others = [at for at in range(len(names)) if at != b]
    a = max(others, key=lambda at: values[:, at].mean())
    explained = _explained(runs, names, dataset, metric)
    return QueryValues(
        dataset,
        metric,
        tuple(names),
        tuple(runs),
        (a, b),
        query_ids,
        values,
        tuple(explained),
        tuple(part for explanation in explained for part in _partitions(explanation, query_ids)),
    )


def _explained(
    runs: Sequence[Run], names: Sequence[str], dataset: Dataset, metric: Metric
) -> list[Explanation]:
    """Every hybrid that kept the lists of its legs, under the name that it has here."""
    return [
        explain([replace(run, summary=run.summary.replace(retriever=name))], dataset, metric)
        for run, name in zip(runs, names, strict=True)
        if run.rankings.leg_lists and (metric.cut or 0) <= run.summary.k
    ]


def _partitions(explained: Explanation, query_ids: Sequence[str]) -> list[Partition]:
    """Return the partitions by legs and by fusion, in the order of ``query_ids``."""
    place = {query_id: at for at, query_id in enumerate(explained.query_ids)}
    order = [place[query_id] for query_id in query_ids]
    return [
        replace(
            part,
            labels=tuple(f"{part.of}: {label}" for label in part.labels),
            member=part.member[order],
            values=part.values[order],
            later=part.later[order],
            before=part.before[order],
        )
        for part in explained.partitions
    ]
