"""Measurements as tidy columns: one row for each mean, query, call, hit or pair.

CSV is written from them, and a notebook gets them as a pandas DataFrame. Figures are as they were
computed, unrounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.errors import HarnessError, check_known
from retrieval_bench.core.installed.installation import require
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.runs.dataset import dataset_of
from retrieval_bench.runs.run import Run

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, Any]
Named = Sequence[tuple[str, Run]]
"""Runs, each behind the name that it is to have."""

MEANS = ("dataset", "system", "metric", "mean", "low", "high", "n")
"""Columns of CSV; ``difference``, ``against``, ``p``, ``verdict`` and ``queries`` follow where
there is more than means of all queries."""
DIFFERENCES = ("dataset", "system", "metric", "difference", "low", "high", "n")
"""The same of a pair: a difference is no mean, and has a column of its own."""


def figure_row(columns: Sequence[str], of: Sequence[Any], figure: Any, ci95: Any, n: Any) -> Row:
    """A row of CSV.

    Args:
        columns: :data:`MEANS` or :data:`DIFFERENCES`.
        of: their first three.
        figure, ci95, n: the others.
    """
    low, high = (None, None) if ci95 is None else ci95
    return dict(zip(columns, (*of, figure, low, high, n), strict=True))


mean_row = partial(figure_row, MEANS)


def means(runs: Named) -> Iterator[Row]:
    """A row for each metric (hits, where nothing is judged) and each percentile of a run, with its
    95 % interval; ``n`` counts queries, or calls."""
    for name, run in runs:
        data = run.summary.dataset.name
        of_metrics = zip(run.evaluation.metrics, run.evaluation.means, strict=True)
        for metric, mean in of_metrics if run.judged else ():
            yield mean_row((data, name, str(metric)), mean.mean, mean.ci95, mean.n)
        if (hits := run.summary.hits) is not None:
            yield mean_row((data, name, "hits"), hits.mean, None, hits.n)
        latency = run.summary.latency_ms
        for level, entry in latency.levels.items():
            if entry.value is not None:
                yield mean_row((data, name, f"{level} ms"), entry.value, entry.ci95, latency.n)


def compared(groups: Sequence[DatasetComparison], further: Iterable[Row] = ()) -> list[Row]:
    """Means of all runs, differences of all pairs with p and verdict, and ``further`` rows; where
    nothing is judged, how alike each pair answers."""
    rows = []
    for group in groups:
        named = list(zip(group.names, group.runs, strict=True))
        rows += [row | {"dataset": group.dataset} for row in means(named)]
        rows += pairs([group])
    rows += further
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


def pairs(groups: Sequence[DatasetComparison]) -> Iterator[Row]:
    """Differences of all pairs; where nothing is judged, how alike they answer."""
    for group in groups:
        yield from map(pair, group.deltas)
        yield from group.rows()


def pair(delta: Delta) -> Row:
    """The difference of one pair: of ``system`` minus ``against``."""
    of = (delta.dataset, delta.b, delta.metric)
    return figure_row(DIFFERENCES, of, delta.difference, delta.ci, delta.n) | {
        "against": delta.a,
        "p": delta.p_adjusted,
        "verdict": delta.verdict.value,
    }


def queries(runs: Named) -> Iterator[Row]:
    """A row for each evaluated query and metric, with the text and the tags of the query where the
    dataset is there."""
    by_dataset: dict[str, Mapping[str, Row]] = {}
    for name, run in runs:
        fingerprint = str(run.summary.dataset.fingerprint)
        if fingerprint not in by_dataset:
            by_dataset[fingerprint] = _known(run)
        known = by_dataset[fingerprint]
        for metric in run.evaluation.metrics:
            for query, value in zip(
                run.evaluation.query_ids, run.evaluation.values(metric).tolist(), strict=True
            ):
                row = {"system": name, "query": query, "metric": str(metric), "value": value}
                yield row | known.get(query, {})


def _known(run: Run) -> Mapping[str, Row]:
    """Texts and tags by query; nothing where the dataset is not found again."""
    try:
        dataset = dataset_of([run])
    except HarnessError:
        return {}
    return {query.id: {"text": query.text, "tags": list(query.tags)} for query in dataset.queries}


def calls(runs: Named) -> Iterator[Row]:
    """A row for each measured call."""
    for name, run in runs:
        timings, ids = run.timings, run.rankings.query_ids
        columns = (timings.query, timings.launch, timings.round, timings.wall_ns, timings.failed)
        of_calls = zip(*(column.tolist() for column in columns), strict=True)
        for query, launch, round_, wall, failed in of_calls:
            call = {"launch": launch, "round": round_, "ms": wall / 1e6, "failed": failed}
            yield {"system": name, "query": ids[query], **call}


def hits(runs: Named) -> Iterator[Row]:
    """A row for each hit of each query."""
    for name, run in runs:
        rankings = run.rankings
        for query, row, scores in zip(
            rankings.query_ids, rankings.ranking.tolist(), rankings.scores.tolist(), strict=True
        ):
            for rank, (document, score) in enumerate(zip(row, scores, strict=True), start=1):
                if document != NONE:
                    yield {
                        "system": name,
                        "query": query,
                        "rank": rank,
                        "document": rankings.doc_ids[document],
                        "score": score,
                    }


def frame(what: str, runs: Named, **more: Callable[[], Iterable[Row]]) -> DataFrame:
    """The rows of the kind ``what`` of ``runs`` as a DataFrame.

    Args:
        more: further kinds, and what gives their rows.

    Raises:
        ConfigError: no kind is called that.
        MissingDependencyError: pandas is not installed.
    """
    own = {"means": means, "queries": queries, "calls": calls, "hits": hits}
    kinds: dict[str, Callable[[], Iterable[Row]]] = {
        **{name: partial(rows, runs) for name, rows in own.items()},
        **more,
    }
    fix = f"name one of them, such as to_frame({next(iter(kinds))!r})"
    check_known(what, kinds, f"no frame of {what!r}", fix=fix)
    require("pandas", "notebook", "to_frame()")
    import pandas as pd

    return pd.DataFrame(list(kinds[what]()))
