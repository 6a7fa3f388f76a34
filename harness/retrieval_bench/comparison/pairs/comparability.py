"""Runs that may be held against each other in quality, and what they have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrieval_bench.core.errors import distinct_names
from retrieval_bench.core.types import DROP
from retrieval_bench.data.needs_judgements import CHOSEN
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.summary import DatasetFacts

NOTHING_RELEVANT = "nothing could be compared: no evaluated query has a relevant document"


def by_dataset(runs: Sequence[Run]) -> list[tuple[str, list[str], list[Run]]]:
    """Runs on each dataset and split, in one order of systems: a name that only this group has,
    names of its systems, equal ones told apart, and their runs.

    Where no two runs are on the same dataset, all stand in one group: whoever gave them wants to
    hear why they cannot be compared.
    """
    places: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        data = run.summary.dataset
        places.setdefault((data.fingerprint, data.split), []).append(run)
    groups = list(places.values())
    if all(len(group) == 1 for group in groups):
        groups = [list(runs)]
    if len(groups) > 1:
        order = list(dict.fromkeys(run.name for run in runs))
        groups = [sorted(group, key=lambda run: order.index(run.name)) for group in groups]
    labels = _labels([group[0].summary.dataset for group in groups])
    return [
        (label, distinct_names([run.name for run in group]), group)
        for label, group in zip(distinct_names(labels), groups, strict=True)
    ]


def _labels(datasets: Sequence[DatasetFacts]) -> list[str]:
    """Their names; with the split where several have a name, and its splits tell them apart."""
    names = [data.name for data in datasets]
    rules = {data.self_hits for data in datasets}
    if len(rules) > 1:
        names = [
            f"{name}, hits on the query itself dropped" if data.self_hits == DROP else name
            for name, data in zip(names, datasets, strict=True)
        ]
    splits: dict[str, list[str]] = {}
    for name, data in zip(names, datasets, strict=True):
        splits.setdefault(name, []).append(data.split)
    return [
        f"{name} {data.split}" if 1 < len(splits[name]) == len(set(splits[name])) else name
        for name, data in zip(names, datasets, strict=True)
    ]


def common_metrics(runs: Sequence[Run]) -> tuple[Metric, ...]:
    """Return the metrics that all of ``runs`` have, in the order of the first."""
    return tuple(
        metric
        for metric in runs[0].evaluation.metrics
        if all(metric in run.evaluation.metrics for run in runs)
    )


def not_comparable(a: Run, b: Run) -> str:
    """Return why the quality of two runs cannot be compared; empty when it can."""
    rules = [run.summary.dataset.self_hits for run in (a, b)]
    if rules[0] != rules[1]:
        return f"hits on the query itself: self_hits {rules[0]} and {rules[1]}"
    for what in ("split", "fingerprint"):
        if getattr(a.summary.dataset, what) != getattr(b.summary.dataset, what):
            return f"different dataset {what}"
    for what in ("k", "convention", "metrics_version"):
        here, there = getattr(a.summary, what), getattr(b.summary, what)
        if here != there:
            return f"{what} {here} and {there}"
    if set(a.evaluation.query_ids) != set(b.evaluation.query_ids):
        return "different queries were finished"
    if a.summary.dataset.drawn_from is not None:
        return f"{CHOSEN}; `retrieval-bench label status` has the verdict"
    return _asked_apart(a, b)


def _asked_apart(a: Run, b: Run) -> str:
    if (a.asked is None) != (b.asked is None):
        return "only one of them was measured until decided"
    return "the queries were asked in different orders" if a.asked != b.asked else ""


def other_settings(names: Sequence[str], runs: Sequence[Run]) -> tuple[str, ...]:
    """A sentence for each kind of retriever that stands here with several settings."""
    kinds: dict[str, list[tuple[str, Run]]] = {}
    for name, run in zip(names, runs, strict=True):
        if (target := run.manifest.get("retriever", {}).get("target")) is not None:
            kinds.setdefault(target, []).append((name, run))
    return tuple(filter(None, (_what_differs(alike) for alike in kinds.values())))


def _what_differs(alike: Sequence[tuple[str, Run]]) -> str:
    settings = [run.settings | _language(run) for _, run in alike]
    names = dict.fromkeys(name for setting in settings for name in setting)
    differing = [name for name in names if len({setting.get(name) for setting in settings}) > 1]
    if not differing:
        return ""
    each = [
        f"{name} with {', '.join(f'{key} {own[key]}' for key in differing if key in own) or 'none'}"
        for (name, _), own in zip(alike, settings, strict=True)
    ]
    return f"Settings that differ: {'; '.join(each)}."


def _language(run: Run) -> dict[str, str]:
    """Name the language of the dataset, which decides on stems and stop words."""
    named = run.summary.dataset.language
    return {} if named is None else {"language": str(named)}


def nothing_judged(runs: Sequence[Run]) -> bool:
    """Return whether all of ``runs`` are on one dataset where nothing is judged."""
    data = [run.summary.dataset for run in runs]
    same = len({(item.fingerprint, item.split) for item in data}) == 1
    return same and not any(run.judged for run in runs)


def nothing_can_differ(a: Run, b: Run, metric: Metric) -> str:
    """Return why two runs have the same values of ``metric`` whatever they returned; empty where
    their rankings could differ in it, and where their values do."""
    if not np.array_equal(a.evaluation.values(metric), b.evaluation.values(metric)):
        return ""
    if nothing_is_relevant(a) and nothing_is_relevant(b):
        return NOTHING_RELEVANT
    for run in (a, b):
        depth, documents = run.summary.k, run.summary.dataset.n_documents or 0
        if not 0 < documents <= min(depth, metric.cut or depth):
            return ""
    values = a.evaluation.values(metric)
    if metric.name not in _BY_PRESENCE or not values.size or np.ptp(values) > 0:
        return ""
    return f"nothing could be compared: {metric} looks at the whole corpus"


def identical_rankings(a: Run, b: Run) -> bool:
    """Return whether two runs returned the same lists of documents, and not only empty ones."""
    if a.rankings.query_ids != b.rankings.query_ids:
        return False
    lists = [
        [run.rankings.row(at).doc_ids for at in range(len(run.rankings.query_ids))]
        for run in (a, b)
    ]
    return lists[0] == lists[1] and any(lists[0])


def nothing_is_relevant(run: Run) -> bool:
    """Return whether no query that ``run`` was evaluated on has a relevant document."""
    n = len(run.evaluation.query_ids)
    return bool(n) and run.summary.dataset.n_without_relevant == n


_BY_PRESENCE = ("R", "Success")
"""Metrics that do not ask at which rank a document stands."""
