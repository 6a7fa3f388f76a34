"""The newest run as the GitHub action ``benchmark-action/github-action-benchmark`` reads it.

Its tools ``customSmallerIsBetter`` and ``customBiggerIsBetter`` take a JSON array of objects with
``name``, ``unit``, ``value`` and, if wanted, ``range`` and ``extra``; one file has one direction.
The action keeps the series itself, under the commit that it runs for, and puts equal names on one
chart. So a file holds the newest run alone, and its key is a part of the name.

Source: the action's README and ``src/extract.ts`` (``extractCustomBenchmarkResult``), version 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from retrieval_bench_regress.history.facts import Figure, SavedRun
from retrieval_bench_regress.history.history import Subject

What = Literal["latency", "quality"]


def newest(subjects: Sequence[Subject], what: What) -> list[tuple[Subject, SavedRun]]:
    """The last complete run of each that has one and was to measure it."""
    newest = []
    for subject in subjects:
        keyed = [r for r in subject.runs if (r.same_times if what == "latency" else r.same_quality)]
        newest += [(subject, keyed[-1])] if keyed else []
    return newest


def benchmark_entries(subjects: Sequence[Subject], what: What) -> list[dict[str, Any]]:
    """An entry for each percentile, or each metric, of the newest run of every subject."""
    entries = []
    for subject, run in newest(subjects, what):
        if what == "latency":
            same, unit, figures = run.same_times, "ms", dict(run.latency)
        else:
            same, unit = run.same_quality, "mean"
            figures = {m: run.metrics[m] for m in subject.metrics if m in run.metrics}
        shared = {} if same is None else {**same.facts}
        shared["beside"] = ", ".join(shared.get("beside", ()))
        facts = {"run": run.id, "revision": run.revision, "config": run.config or "-", **shared}
        extra = "\n".join(f"{k}: {v}" for k, v in facts.items() if v != "" and k != "protocol")
        for name, figure in figures.items():
            full = f"{subject.retriever} on {subject.dataset}: {name} [{same}]"
            entries.append({"name": full, "unit": unit, **_figure(figure), "extra": extra})
    return entries


def _figure(figure: Figure) -> dict[str, Any]:
    """The value, and how far its interval reaches to the wider side."""
    if figure.interval is None:
        return {"value": figure.value}
    low, high = figure.interval
    reach = max(high - figure.value, figure.value - low)
    return {"value": figure.value, "range": f"± {reach:.4g}"}
