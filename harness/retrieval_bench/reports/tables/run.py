"""What is shown of one run, and of a plan to measure, as plain tables that every format renders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import interval_of, ms_text, quality_text, seconds_text
from retrieval_bench.measure.tutorial import TutorialLatency
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables.run_facts import (
    latency_of,
    levels,
    measured_on,
    shown_warnings,
    title_of,
    unanswerable,
    unsupported,
)
from retrieval_bench.reports.tables.stage import stage_tables
from retrieval_bench.runs.run import Run, relative_folder
from retrieval_bench.runs.stages import stage_report


def run_tables(run: Run) -> list[Table]:
    """Quality with intervals, latency; where the time of a call goes; what was measured on what."""
    summary = run.summary
    rows = [
        (
            name,
            quality_text(entry["mean"]),
            interval_of(entry["ci95"], quality_text),
            f"n = {entry['n']}",
        )
        for name, entry in summary["metrics"].items()
    ]
    rows += [
        (name, quality_text(share), "", "hits with a judgement")
        for name, share in run.evaluation.judged.items()
    ]
    latency = latency_of(run)
    latency_rows = _percentile_rows(latency, "", counted(latency.get("n", 0), "call"))
    latency_rows.append(("mean ms", ms_text(latency.get("mean")), "", _spread(latency)))
    mix = latency.get("mix", {})
    if mix:
        queries = counted(mix.get("n", 0), "query")
        supported = {level: mix[level] for level in levels(mix) if mix[level]["value"] is not None}
        latency_rows += _percentile_rows(supported, "by query ", f"{queries}, each its median")
    index_rows = _index_rows(summary)
    sections = [rows, latency_rows, index_rows]
    rules = [len(rows), len(rows) + len(sections[1])]
    main = Table(
        title=title_of([summary], summary["retriever"]),
        columns=("", "value", "95 % interval", ""),
        rows=[row for section in sections for row in section],
        rules=rules if index_rows else rules[:1],
    )
    stages = stage_tables(
        run.name, stage_report(run.timings.wall_ns, run.timings.stages, parallel=run.parallel)
    )
    *first, last = [main, *stages]
    return [*first, replace(last, notes=[*last.notes, *_notes(run)])]


def _percentile_rows(
    latency: Mapping[str, Any], prefix: str, of: str
) -> list[tuple[str, str, str, str]]:
    rows = [
        (
            f"{prefix}{level} ms",
            ms_text(entry.get("value")),
            interval_of(entry.get("ci95"), ms_text),
            "",
        )
        for level, entry in ((level, latency[level]) for level in levels(latency))
    ]
    return [(*rows[0][:3], of), *rows[1:]] if rows else rows


def _spread(latency: Mapping[str, Any]) -> str:
    if latency.get("sd") is None:
        return ""
    return f"sd {ms_text(latency['sd'])}, max {ms_text(latency['max'])}"


def _notes(run: Run) -> list[str]:
    summary = run.summary
    notes = measured_on(run)
    needless, with_hits = unanswerable(summary)
    if needless:
        notes.append(
            f"{with_hits} of {needless} queries that need no search got hits (not in the means)"
        )
    if summary.get("n_failed"):
        failed = counted(summary["n_failed"], "query")
        notes.append(f"FAILED on {failed}; an evaluated one counts 0 in every mean")
    stalls = latency_of(run).get("stalls")
    if stalls:
        notes.append(f"{counted(stalls, 'call')} far slower than their query usually is (stalls)")
    notes += unsupported(summary)
    if summary.get("n_collapsed"):
        hits = counted(summary["n_collapsed"], "hit")
        notes.append(f"{hits} of a unit that was already in the ranking")
    notes += [f"health: {fact}" for fact in summary.get("health", ())]
    notes += [f"warning: {warning}" for warning in shown_warnings(summary)]
    if run.folder is not None:
        notes.append(f"run: {relative_folder(run)}")
    return notes


def _index_rows(summary: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    index, n_documents = summary.get("index", {}), summary["dataset"].get("n_documents", 0)
    rows = []
    if index.get("seconds"):
        rate = f"{n_documents / index['seconds']:,.0f} documents/s" if n_documents else ""
        rows.append(("index s", seconds_text(index["seconds"]), "", rate))
    if index.get("disk_bytes"):
        rows.append(("disk MB", f"{index['disk_bytes'] / 1e6:,.1f}", "", "kept by the retriever"))
    if index.get("peak_rss_bytes"):
        rows.append(("peak memory MB", f"{index['peak_rss_bytes'] / 1e6:,.0f}", "", "process"))
    return rows


def tutorial_table(name: str, dataset: str, k: int, found: TutorialLatency) -> Table:
    """The four figures of the usual notebook, and what keeps them from being relied on."""
    how = f"timed once by the wall clock, after {found.warmup} spent on warming up"
    return Table(
        f"{name} on {dataset}, k = {k}, timed as in a tutorial",
        ("", "ms"),
        [(level, ms_text(getattr(found, level))) for level in ("mean", "p50", "p95", "p99")],
        notes=[
            f"{counted(found.n, 'query')} {how}; no quality, no interval, nothing saved",
            *(f"warning: {warning}" for warning in found.warnings),
        ],
    )


def plan_table(document: Mapping[str, Any]) -> Table:
    """What ``--dry-run`` says: how many calls a run would make."""
    most, seconds = document["calls_at_most"], document["warm_up_seconds_at_most"]
    at_most = [] if most is None else [("all calls together, at most", f"{most:,}")]
    until = f"the warm-up goes on until times are steady, for {seconds:g} s at most"
    return Table(
        f"{', '.join(document['retrievers'])} on {document['dataset']}: nothing was run",
        ("", "calls"),
        [
            ("queries", f"{document['queries']:,}"),
            ("measured rounds", f"{document['rounds']:,}"),
            ("measured calls per retriever", f"{document['measured_calls']:,}"),
            ("launches", f"{document['launches']:,}"),
            ("warm-up calls per retriever, at least", f"{document['warm_up_calls_at_least']:,}"),
            ("all calls together, at least", f"{document['calls_at_least']:,}"),
            *at_most,
        ],
        notes=[
            "checked: configs with their parameters, the dataset; every retriever was built",
            *(f"not checked: {what}" for what in document["not_checked"]),
            *([until] if most is None else []),
            *(f"warning: {warning}" for warning in document["warnings"]),
        ],
    )
