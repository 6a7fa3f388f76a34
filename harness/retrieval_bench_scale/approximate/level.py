"""All values of a parameter under one kind of filter: what an exhaustive search finds, then every
value in turn, call by call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from retrieval_bench.core.calls.foreign import failing, foreign_code
from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, coded
from retrieval_bench.core.progress import Task
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Dataset, Query, Ranking
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.filtered import filtered
from retrieval_bench.experiment.warnings import remembered, unsteady
from retrieval_bench.measure.calls import NOT_RUN, Measurement, System, Timings
from retrieval_bench.measure.environment import machine
from retrieval_bench.measure.machine.disturbances import disturbances
from retrieval_bench.measure.runner import measure
from retrieval_bench.runs.dataset import clusters_in
from retrieval_bench.runs.latency import latency_report
from retrieval_bench.runs.timing_facts import PercentileFacts
from retrieval_bench.stats.clusters import Clusters, number_of
from retrieval_bench.stats.recall import Recall
from retrieval_bench_scale.approximate.exact_top import TIE_MARGIN, ExactTopK, exact_top_k
from retrieval_bench_scale.approximate.selectivity import FilterSetting
from retrieval_bench_scale.approximate.swept import (
    SweptLevel,
    SweptValue,
    Wanted,
    cheapest,
    reach_of,
    undecided,
)

_ENCODE = "encode"
_SHORT_MS = 1.0
"""Of longer exhaustive searches fewer are timed: all of them in turns would take very long."""
_P50 = (50.0,)


def measured_level(
    exact: System,
    systems: Mapping[float, System],
    layer: FilterSetting,
    experiment: Experiment,
    *,
    wanted: Wanted,
    progress: Task,
) -> tuple[SweptLevel | None, list[str]]:
    """What ``systems`` find and take, one for each value, and warnings of their times; None where
    the user stopped it before the first call counted.

    The exhaustive search is not measured between their calls: it would leave the processor's caches
    full of its own vectors. It is timed like them, for ``k`` hits, after a warm-up, and as often in
    a row, for half of the queries before them and for the others after them, since a machine gets
    faster or slower meanwhile: which hits are right takes some more, and no times.
    """
    k, protocol, data = experiment.k, experiment.protocol, experiment.dataset
    once = replace(protocol, rounds=1)
    (true,) = measure([exact], layer.queries, k + TIE_MARGIN, replace(once, warm_up_s=0.0))
    if true.interrupted:
        return None, []
    short = (_p50s(true.timings)[0].value or 0.0) < _SHORT_MS
    timed_on, often = (layer.queries, protocol) if short else (layer.queries[:: len(systems)], once)
    before, *_ = measure([exact] * len(systems), timed_on[::2], k, often)
    if before.interrupted:
        return None, []
    truths = [
        None if ranking is None else _truth(exact, query, ranking, k)
        for query, ranking in zip(layer.queries, true.rankings, strict=True)
    ]
    found = measure([*systems.values()], layer.queries, k, protocol, progress=progress)
    if not any(len(one.timings.wall_ns) for one in found):
        return None, []
    partial = any(measured.interrupted for measured in found)
    timed = [before.timings]
    if not partial and len(timed_on) > 1:
        after, *_ = measure([exact] * len(systems), timed_on[1::2], k, often)
        timed.append(after.timings)
    reached = [
        truth is not None and all(one.status[at] != NOT_RUN for one in found)
        for at, truth in enumerate(truths)
    ]
    kept = [truth if there else None for truth, there in zip(truths, reached, strict=True)]
    ids = [query.id for query, truth in zip(layer.queries, kept, strict=True) if truth is not None]
    clusters = Clusters.of_queries(clusters_in(data, layer.queries), ids)
    rows = [
        _value(
            value, one, system, layer.queries, kept, dataset=data, wanted=wanted, clusters=clusters
        )
        for (value, system), one in zip(systems.items(), found, strict=True)
    ]
    chosen = cheapest(rows)
    whole, search = _p50s(_joined(timed))
    level = SweptLevel(
        layer.name,
        layer.share,
        sum(reached),
        whole.value,
        search.value if search else None,
        tuple(rows),
        chosen.value if chosen else None,
        undecided(rows, chosen),
        partial=partial,
        clusters=number_of(clusters),
    )
    disturbed = disturbances(found[0].noise, machine(), protocol.threads)
    told: list[str] = [*coded(disturbed, Code.BUSY)]
    told += [text for one in found for text in unsteady(experiment.candidates[0], one)]
    told += [text for one in found for text in remembered(latency_report(one.timings))]
    told += [text for one in [true, *found] for text in one.warnings]
    if lost := true.rankings.count(None):
        queries = counted(lost, "query")
        told.append(f"The exhaustive search failed for {queries}, which are left out.")
    return level, told


def _truth(exact: System, query: Query, ranking: Ranking, k: int) -> ExactTopK | None:
    can = exact.retriever.capabilities
    failed = failing("an exhaustive search", where=f"query {query.id!r}")

    def again(depth: int) -> Ranking:
        with foreign_code(failed):
            raw = exact.retriever.search(query, depth)
        return checked_ranking(raw, depth, exact.known_ids, has_scores=can.has_scores)

    return exact_top_k(ranking, k, can.score_tolerance, again)


def _value(
    value: float,
    found: Measurement,
    system: System,
    queries: Sequence[Query],
    truths: Sequence[ExactTopK | None],
    *,
    dataset: Dataset,
    wanted: Wanted,
    clusters: Clusters | None,
) -> SweptValue:
    recalls = [
        None if truth is None else truth.recall(ranking)
        for truth, ranking in zip(truths, found.rankings, strict=True)
    ]
    of = Recall.of([one for one in recalls if one is not None], wanted.tail, clusters)
    whole, search = _p50s(found.timings)
    of_filters = filtered(dataset, queries, found.rankings, system.retriever.capabilities)
    return SweptValue(
        value,
        of.mean,
        of.ci95,
        of.tail,
        of.tail_ci95,
        reach_of(of.tail_ci95 if wanted.by_tail else of.ci95, wanted.share),
        whole.value,
        whole.ci95,
        search.value if search else None,
        search.ci95 if search else None,
        sum(
            ranking is None and truth is not None
            for ranking, truth in zip(found.rankings, truths, strict=True)
        ),
        of_filters.leaked if of_filters else None,
        tuple(recalls),
    )


def _joined(parts: Sequence[Timings]) -> Timings:
    """The calls of all ``parts``, whose rounds follow each other."""
    rounds = np.cumsum([0, *(1 + int(part.round.max(initial=-1)) for part in parts)])
    stages = set.intersection(*(set(part.stages) for part in parts))
    return Timings(
        np.concatenate([part.wall_ns for part in parts]),
        np.concatenate([part.round + at for part, at in zip(parts, rounds, strict=False)]),
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.query for part in parts]),
        np.concatenate([part.failed for part in parts]),
        {name: np.concatenate([part.stages[name] for part in parts]) for name in sorted(stages)},
    )


def _p50s(timings: Timings) -> tuple[PercentileFacts, PercentileFacts | None]:
    """Of whole calls, and of what is left of them without encoding the query; None where nobody
    says how long that took."""
    whole = latency_report(timings, _P50).at("p50")
    encoding = timings.stages.get(_ENCODE)
    if encoding is None:
        return whole, None
    searching = replace(timings, wall_ns=timings.wall_ns - np.maximum(encoding, 0))
    return whole, latency_report(searching, _P50).at("p50")
