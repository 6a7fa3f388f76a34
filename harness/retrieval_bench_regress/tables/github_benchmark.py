"""The newest run as the GitHub action ``benchmark-action/github-action-benchmark`` reads it.

Its tools ``customSmallerIsBetter`` and ``customBiggerIsBetter`` take a JSON array of objects with
``name``, ``unit``, ``value`` and, if wanted, ``range`` and ``extra``; one file has one direction.
The action keeps the series itself, under the commit that it runs for, and puts equal names on one
chart. So a file holds the newest run alone, and a name changes where two runs may not be held
against each other.

Source: the action's README and ``src/extract.ts`` (``extractCustomBenchmarkResult``), version 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from retrieval_bench_regress.history.facts import Figure, SavedRun
from retrieval_bench_regress.history.trends import Line, Subject

What = Literal["latency", "quality"]


def newest(subjects: Sequence[Subject], what: What) -> list[tuple[Subject, SavedRun]]:
    """The last complete run of each that has one and was to measure it."""
    newest = []
    for subject in subjects:
        complete = [r for r in subject.runs if r.counts and (r.timed or what != "latency")]
        newest += [(subject, complete[-1])] if complete else []
    return newest


def benchmark_entries(subjects: Sequence[Subject], what: What) -> list[dict[str, Any]]:
    """An entry for each percentile, or each metric, of the newest run of every subject."""
    entries = []
    for subject, run in newest(subjects, what):
        if what == "latency":
            lines, label, unit = subject.latency_lines, run.latency_line, "ms"
            figures = dict(run.latency)
        else:
            lines, label, unit = subject.quality_lines, run.quality_line, "mean"
            figures = {m: run.metrics[m] for m in subject.metrics if m in run.metrics}
        if label is None:
            continue
        line = next(line for line in lines if line.label == label)
        told = _told(run, line)
        for name, figure in figures.items():
            full = f"{subject.retriever} on {subject.dataset}: {name} [{line.id}]"
            entries.append({"name": full, "unit": unit, **_figure(figure), "extra": told})
    return entries


def _figure(figure: Figure) -> dict[str, Any]:
    """The value, and how far its interval reaches to the wider side."""
    if figure.interval is None:
        return {"value": figure.value}
    low, high = figure.interval
    reach = max(high - figure.value, figure.value - low)
    return {"value": figure.value, "range": f"± {reach:.4g}"}


def _told(run: SavedRun, line: Line) -> str:
    """Write the text that a chart shows beside a point, one fact a line."""
    facts = {"run": run.id, "revision": run.revision, "config": run.config or "-", **line.same}
    shown = {key: value for key, value in facts.items() if key not in ("protocol", "beside")}
    if line.same.get("beside"):
        shown["beside"] = ", ".join(line.same["beside"])
    return "\n".join(f"{key}: {value}" for key, value in shown.items())
