"""The one-page account of a run: what ``summary.json`` holds and every table is printed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from retrieval_bench.core.as_json.document import document
from retrieval_bench.core.ranking import OF_STAGES, TIE_RULE
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import EMPTY, KEEP, Dataset, Query, Ranking, Usage
from retrieval_bench.experiment.failing import answered_means, attempts_document
from retrieval_bench.measure.calls import NOT_RUN, OK, Measurement, Timings
from retrieval_bench.metrics.abstention import abstention
from retrieval_bench.metrics.measures import DEFAULT_CONVENTION, METRICS_VERSION
from retrieval_bench.metrics.tied import TieEffect
from retrieval_bench.runs.evaluation import Evaluation
from retrieval_bench.runs.latency import LEVELS, latency_report, without_times
from retrieval_bench.runs.records import SCHEMA_VERSION
from retrieval_bench.runs.stages import stage_report
from retrieval_bench.runs.summary import FilterFacts, Summary, UntilFacts
from retrieval_bench.runs.timing_facts import LatencyFacts
from retrieval_bench.runs.usage_means import usage_document

REPLAYED = "the rankings were read from a saved run"
"""Reading a saved ranking says nothing of who made it."""
FAILURES = "more calls failed than were answered: their times are those of failures"
"""Why a percentile is none of the retriever's, here and under load."""

ASKED_ONCE = "each query was asked once, without warm-up: --until-decided"
"""Why such times are not judged."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The retriever that was measured.

    Attributes:
        index: what building its index took: ``seconds``, ``peak_rss_bytes``, ``disk_bytes``.
        parallel: whether the legs of a hybrid search side by side; None where it has none.
        server: pid of the server that answers for it, where one is named.
        server_calls: that the server answered, those for other systems included; None = its own.
    """

    name: str
    capabilities: Capabilities
    index: Mapping[str, Any]
    parallel: bool | None = None
    server: int | None = None
    server_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Task of a run: the ``queries`` of a dataset, ``k`` hits each.

    Attributes:
        levels: of the percentiles that are reported.
        until_decided: how far a measurement until decided came; None of any other.
        clusters: label of the cluster of each query; empty where each is one by itself.
    """

    dataset: Dataset
    queries: Sequence[Query]
    k: int
    levels: Sequence[float] = LEVELS
    until_decided: UntilFacts | None = None
    clusters: Sequence[str] = ()


class WithoutParts(NamedTuple):
    """Answers of a retriever without each of its parts, found after its calls were timed.

    Attributes:
        rankings: part -> of all queries, None for one that is not known; of the parts that are.
        facts: what the summary says of each part.
        warnings: what keeps figures from being what they seem.
        spent: by whoever was asked.
    """

    rankings: Mapping[str, Sequence[Ranking | None]] = EMPTY
    facts: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()
    spent: Usage | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """Worth of a run's answers.

    Attributes:
        ties: what equal scores decide, where they decide something.
        filters: what filters did, where queries have some.
        parts: what each part of it buys.
    """

    evaluation: Evaluation
    ties: TieEffect | None = None
    filters: FilterFacts | None = None
    parts: Sequence[Mapping[str, Any]] = ()


def summarize(
    subject: Subject,
    task: Task,
    measurement: Measurement,
    scored: Scored,
    *,
    warnings: Sequence[str],
    health: Sequence[str],
) -> Summary:
    """The account of one run, without its ``run_id``, which is known when it is written.

    Args:
        warnings: what makes the figures less than they seem.
        health: what is worth knowing of the retriever and the texts, and no reason to worry.
    """
    dataset, queries, evaluation = task.dataset, task.queries, scored.evaluation
    status = measurement.status
    clusters = dict(zip([query.id for query in queries], task.clusters, strict=False))
    partial = measurement.interrupted or NOT_RUN in status
    timings, withheld = measurement.timings, REPLAYED if subject.capabilities.replays else ""
    if task.until_decided is not None:
        # What a call did inside is no more typical than how long it took.
        timings, withheld = replace(timings, stages={}), ASKED_ONCE
    facts = {
        "schema_version": SCHEMA_VERSION,
        "status": "partial" if partial else "complete",
        "retriever": subject.name,
        "dataset": {
            **document(dataset, "name split language fingerprint n_documents"),
            "n_queries": len(dataset.evaluated),
            "n_unanswerable": len(dataset.unanswerable),
            "n_without_relevant": len(
                {query.id for query in dataset.without_relevant} & set(evaluation.query_ids)
            ),
            **({"judges": dict(dataset.judges)} if dataset.judges else {}),
            **known_items(dataset),
            **({} if dataset.drawn_from is None else {"drawn_from": dataset.drawn_from}),
            **({} if dataset.self_hits == KEEP else {"self_hits": dataset.self_hits}),
            **({} if dataset.cluster_key is None else {"cluster_key": dataset.cluster_key}),
            **_n_clusters(clusters, evaluation.query_ids),
            "n_not_run": len(dataset.queries) - len({*queries, *dataset.unanswerable}),
        },
        "k": task.k,
        "convention": DEFAULT_CONVENTION,
        "tie_rule": _tie_rule(measurement, subject.capabilities),
        "metrics_version": METRICS_VERSION,
        "metrics": evaluation.as_dict(),
        "judged": dict(evaluation.judged),
        **({} if scored.ties is None else {"ties": document(scored.ties)}),
        **({} if dataset.judged else {"hits": hits(measurement, task.k)}),
        "unanswerable": unanswerable(queries, measurement),
        "latency_ms": latency(
            timings,
            warm_up_calls=measurement.warm_up_calls,
            steady_after=measurement.steady_after,
            overhead_ns=measurement.overhead_ns,
            levels=task.levels,
            withheld=withheld,
        ),
        **stages(timings, subject.parallel),
        **usage_document(measurement.timings, measurement.spent),
        **({"parts": list(scored.parts)} if scored.parts else {}),
        "index": subject.index,
        **server_document(measurement, subject.server, subject.server_calls),
        **({} if scored.filters is None else {"filters": scored.filters}),
        "n_collapsed": sum(r.collapsed for r in measurement.rankings if r is not None),
        **_self_hits(dataset, measurement),
        "n_failed": sum(s not in (OK, NOT_RUN) for s in status),
        "n_unreached": sum(s == NOT_RUN for s in status),
        **attempts_document(measurement.attempts, task.levels),
        **answered_means(
            evaluation,
            dict(zip([query.id for query in queries], status, strict=True)),
            intervals=task.until_decided is None,
            clusters={} if dataset.cluster_key is None else clusters,
        ),
        "health": list(health),
        "warnings": list(warnings),
        **({} if task.until_decided is None else {"until_decided": task.until_decided}),
    }
    return Summary.model_validate(facts)


def _n_clusters(clusters: Mapping[str, str], query_ids: Sequence[str]) -> dict[str, int]:
    labels = {clusters[query_id] for query_id in query_ids} if clusters else ()
    return {"n_clusters": len(labels)} if 0 < len(labels) < len(query_ids) else {}


def server_document(
    measurement: Measurement, server: int | None, calls: int | None = None
) -> dict[str, Any]:
    """``server`` of a summary: what the named process cost while calls were timed.

    Args:
        calls: that it answered, those of other systems included; None = of this one alone.
    """
    use = measurement.noise.get("servers", {}).get(str(server))
    if use is None:
        return {}
    calls = len(measurement.timings.wall_ns) if calls is None else calls
    return {
        "server": {
            "pid": server,
            "processes": use["processes"],
            "memory_bytes": use["memory_bytes"],
            "cpu_seconds": use["cpu_s"],
            "cpu_ms_per_call": 1_000 * use["cpu_s"] / calls if calls else None,
        }
    }


def unanswerable(queries: Sequence[Query], measurement: Measurement) -> dict[str, Any]:
    """Count the queries that no document answers: how many were run, how many
    got hits; and, where there are any, how well empty lists tell them from the others."""
    answered = [
        (query.answerable, len(ranking))
        for query, ranking in zip(queries, measurement.rankings, strict=True)
        if ranking is not None
    ]
    counts = abstention([kind for kind, _ in answered], [length for _, length in answered])
    report: dict[str, Any] = {"n": counts.n_unanswerable, "returned_hits": counts.false_return}
    if counts.n_unanswerable:
        report |= document(counts, "false_empty precision recall f1")
    return report


def latency(
    timings: Timings,
    *,
    warm_up_calls: int,
    steady_after: int | None,
    overhead_ns: int,
    levels: Sequence[float] = LEVELS,
    withheld: str = "",
) -> LatencyFacts:
    """Both families of percentiles and what surrounds them; failed calls are in every figure: a
    user waits for them.

    Args:
        withheld: why the times say nothing of the retriever; empty where they do.
    """
    report = latency_report(timings, levels)
    if not withheld and 2 * report.failed_calls > report.n:
        withheld = FAILURES
    if withheld:
        report = without_times(report, withheld)
    return report.replace(
        warm_up_calls=warm_up_calls, steady_after=steady_after, overhead=overhead_ns / 1e6
    )


def resummarize(summary: Summary, timings: Timings) -> Summary:
    """``summary`` with the latency and the stages of other ``timings``, such as those of several
    launches together."""
    before = summary.latency_ms
    report = latency(
        timings,
        warm_up_calls=before.warm_up_calls,
        steady_after=before.steady_after,
        overhead_ns=0,
        levels=[float(name[1:]) for name in before.levels],
        withheld=REPLAYED if before.intervals == REPLAYED else "",
    )
    legs = summary.legs
    parallel = None if legs is None else legs.measured == "parallel"
    return summary.replace(
        **usage_document(timings, None),
        latency_ms=report.replace(overhead=before.overhead),
        **stages(timings, parallel),
    )


def stages(timings: Timings, parallel: bool | None = None) -> dict[str, Any]:
    """``stages_ms``: what each stage takes; for a hybrid also ``legs``: serial against parallel."""
    return stage_report(timings.wall_ns, timings.stages, parallel=parallel).as_dict()


def known_items(dataset: Dataset) -> dict[str, Any]:
    """``known_items`` of the dataset in a summary, where there are any."""
    if dataset.known_items is None:
        return {}
    n, copied = dataset.known_items
    return {"known_items": {"n": n, "copied": copied}}


def hits(measurement: Measurement, k: int) -> dict[str, Any]:
    """``hits`` of a summary, where nothing is judged: how many the answered queries got."""
    counts = [len(ranking) for ranking in measurement.rankings if ranking is not None]
    return {
        "n": len(counts),
        "mean": sum(counts) / len(counts) if counts else None,
        "fewer_than_k": sum(count < k for count in counts),
        "none": sum(count == 0 for count in counts),
    }


def _self_hits(dataset: Dataset, measurement: Measurement) -> dict[str, int]:
    """``n_self_hits`` of a summary, where hits on the query itself are dropped: how many were."""
    if dataset.self_hits == KEEP:
        return {}
    return {
        "n_self_hits": sum(
            ranking.self_hits for ranking in measurement.rankings if ranking is not None
        )
    }


def _tie_rule(measurement: Measurement, can: Capabilities) -> str:
    if can.replays:
        return "as replayed"
    answers = [ranking for ranking in measurement.rankings if ranking]
    if answers and all(ranking.scores is None for ranking in answers):
        return "order of the list"
    return OF_STAGES if any(ranking.order is not None for ranking in answers) else TIE_RULE
