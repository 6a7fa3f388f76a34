"""The one-page account of a run: what ``summary.json`` holds and every table is printed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.evaluation import Evaluation
from harness.measure.runner import NOT_RUN, OK, Measurement
from harness.metrics import METRICS_VERSION, conventions
from harness.metrics.abstention import abstention
from harness.percentiles import Percentile, percentile
from harness.ranking import TIE_RULE
from harness.retriever import Capabilities
from harness.types import Dataset, Query

SCHEMA_VERSION = 1
"""Of ``summary.json``; 1: first version."""

LEVELS = (50.0, 95.0, 99.0)


def summarize(
    *,
    retriever: str,
    dataset: Dataset,
    queries: Sequence[Query],
    k: int,
    evaluation: Evaluation,
    measurement: Measurement,
    index: dict[str, Any],
    warnings: Sequence[str],
    capabilities: Capabilities,
    health: Sequence[str],
) -> dict[str, Any]:
    """The summary of one run, without its ``run_id``, which is known when it is written."""
    status = measurement.status
    partial = measurement.interrupted
    return {
        "schema_version": SCHEMA_VERSION,
        "status": "partial" if partial else "complete",
        "retriever": retriever,
        "dataset": {
            "name": dataset.name,
            "split": dataset.split,
            "language": dataset.language,
            "fingerprint": dataset.fingerprint,
            "n_documents": dataset.n_documents,
            "n_queries": len(dataset.evaluated),
            "n_unanswerable": len(dataset.unanswerable),
            "n_not_run": len(dataset.queries) - len(queries),
        },
        "k": k,
        "convention": conventions.DEFAULT,
        "tie_rule": _tie_rule(measurement),
        "metrics_version": METRICS_VERSION,
        "metrics": quality(evaluation),
        "judged": dict(evaluation.judged),
        "unanswerable": unanswerable(queries, measurement),
        "latency_ms": latency(measurement, replayed=capabilities.replays),
        "stages_ms": stages(measurement),
        "index": index,
        "n_collapsed": sum(r.collapsed for r in measurement.rankings if r is not None),
        "n_failed": sum(s not in (OK, NOT_RUN) for s in status),
        "n_unreached": sum(s == NOT_RUN for s in status),
        "health": list(health),
        "warnings": list(warnings),
    }


def quality(evaluation: Evaluation) -> dict[str, Any]:
    """Means with intervals, by metric name."""
    return {
        str(metric): {
            "mean": _number(mean.mean),
            "ci95": None if mean.ci95 is None else list(mean.ci95),
            "n": mean.n,
        }
        for metric, mean in zip(evaluation.metrics, evaluation.means, strict=True)
    }


def unanswerable(queries: Sequence[Query], measurement: Measurement) -> dict[str, Any]:
    """Of the queries that no document answers: how many were run, how many got hits; and, where
    there are any, how well empty lists tell them from the others."""
    answered = [
        (query.answerable, len(ranking))
        for query, ranking in zip(queries, measurement.rankings, strict=True)
        if ranking is not None
    ]
    found = abstention([kind for kind, _ in answered], [length for _, length in answered])
    report: dict[str, Any] = {"n": found.n_unanswerable, "returned_hits": found.false_return}
    if found.n_unanswerable:
        report |= {
            "false_empty": found.false_empty,
            "precision": found.precision,
            "recall": found.recall,
            "f1": found.f1,
        }
    return report


def latency(measurement: Measurement, *, replayed: bool = False) -> dict[str, Any]:
    """Percentiles over all measured calls, failed ones included: what a user waits.

    A replayed run yields no latency: reading a saved ranking says nothing of who made it.
    """
    timings = measurement.timings
    ms = timings.wall_ns / 1e6
    report: dict[str, Any] = {
        "family": "call",
        "n": len(ms),
        "rounds": int(timings.round.max(initial=-1)) + 1,
        "warm_up_calls": measurement.warm_up_calls,
        "overhead": measurement.overhead_ns / 1e6,
        "failed_calls": int(timings.failed.sum()),
        "mean": _number(ms.mean()) if len(ms) else None,
        "min": _number(ms.min()) if len(ms) else None,
        "max": _number(ms.max()) if len(ms) else None,
    }
    for level in LEVELS:
        result = percentile(ms, level)
        if replayed:
            result = Percentile(level, None, None, "the rankings were read from a saved run")
        report[f"p{level:g}"] = _percentile(result)
    if replayed:
        report |= dict.fromkeys(("mean", "min", "max"))
    return report


def stages(measurement: Measurement) -> dict[str, Any]:
    """Mean and median milliseconds of each stage that the retriever reports."""
    report = {}
    for name, nanoseconds in measurement.timings.stages.items():
        ms = nanoseconds[nanoseconds >= 0] / 1e6
        report[name] = {
            "mean": _number(ms.mean()),
            "p50": _number(np.median(ms)),
            "n": len(ms),
        }
    return report


def _tie_rule(measurement: Measurement) -> str:
    answers = [ranking for ranking in measurement.rankings if ranking]
    unscored = bool(answers) and all(ranking.scores is None for ranking in answers)
    return "order of the list" if unscored else TIE_RULE


def _percentile(result: Percentile) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "value": result.value,
        "ci95": None if result.ci95 is None else list(result.ci95),
    }
    if result.reason:
        entry["reason"] = result.reason
    return entry


def _number(value: float | np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None
