"""Tables of one run, in short and in full, and of a plan to measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.data.self_queries import dropped
from retrieval_bench.experiment.planned_run import PlannedRun, Trial
from retrieval_bench.reports.render.cells import (
    COUNT,
    MEGABYTES,
    MILLISECONDS,
    QUALITY,
    SECONDS,
    Content,
)
from retrieval_bench.reports.render.table import (
    NOTHING,
    AnyNote,
    Findings,
    Table,
    next_step,
    warning,
)
from retrieval_bench.reports.render.words import metric_label, on_dataset, unit_note
from retrieval_bench.reports.tables.measure.hits import hits_cells, nothing_judged
from retrieval_bench.reports.tables.measure.stage import stage_tables
from retrieval_bench.reports.tables.run_facts import (
    measured_on,
    shown_warnings,
    title_of,
    unsupported,
)
from retrieval_bench.reports.tables.usage import usage_tables
from retrieval_bench.runs.run import Run, relative_folder
from retrieval_bench.runs.summary import Summary
from retrieval_bench.runs.timing_facts import LatencyFacts, PercentileFacts


def run_tables(run: Run, findings: Findings = NOTHING) -> list[Table]:
    """Quality with intervals, latency; where the time of a call goes; what was measured on what."""
    summary, latency = run.summary, run.summary.latency_ms
    quality_rows: list[list[Content]] = [
        [metric_label(name), QUALITY(entry.mean, entry.ci95), f"n = {entry.n:,}"]
        for name, entry in summary.metrics.items()
    ]
    quality_rows += [
        [name, QUALITY(share), "hits with a judgement"]
        for name, share in run.evaluation.judged.items()
    ]
    time_rows = _percentile_rows(latency.levels, "", counted(latency.n, "call"))
    time_rows.append(["mean ms", MILLISECONDS(latency.mean), _spread(latency)])
    supported = {
        level: percentile
        for level, percentile in latency.mix.levels.items()
        if percentile.value is not None
    }
    each = f"{counted(latency.mix.n, 'query')}, each its median"
    time_rows += _percentile_rows(supported, "per-query ", each)
    index_rows = _index_rows(summary)
    if not run.judged:
        quality_rows = [["hits a query", *hits_cells(run)]]
    sections = [quality_rows, time_rows, index_rows]
    main = Table(
        title_of([summary], summary.retriever),
        ("", "value", ""),
        [row for section in sections for row in section],
        [len(quality_rows), len(quality_rows) + len(time_rows)],
        words=(0, 2),
        lead=[*nothing_judged(run), *findings.lead],
    )
    tables = [main, *stage_tables(run.name, run.stages), *usage_tables(run.name, summary)]
    *first, last = [*tables, *findings.tables]
    return [*first, last.with_notes(_notes(run))]


def _percentile_rows(
    levels: Mapping[str, PercentileFacts], prefix: str, of: str
) -> list[list[Content]]:
    return [
        [f"{prefix}{level} ms", MILLISECONDS(entry.value, entry.ci95), of if at == 0 else ""]
        for at, (level, entry) in enumerate(levels.items())
    ]


def _spread(latency: LatencyFacts) -> str:
    if latency.sd is None:
        return ""
    sd, longest = MILLISECONDS(latency.sd).text, MILLISECONDS(latency.max).text
    return f"sd {sd}, max {longest}"


def without_selves(summary: Summary) -> list[str]:
    """Return how many hits on the query itself were dropped, where they are."""
    if not summary.n_self_hits:
        return []
    return [f"{dropped(summary.n_self_hits)} Such queries are asked for one hit more."]


def needless(summary: Summary) -> list[str]:
    """Return whether unanswerable queries returned results."""
    n, with_hits = summary.unanswerable.n, summary.unanswerable.returned_hits
    if not n:
        return []
    if n == 1:
        which = f"The unanswerable query returned {'results' if with_hits else 'nothing'}"
    else:
        share = f"All {n:,}" if with_hits == n else f"{with_hits or 'None'} of {n:,}"
        which = f"{share} unanswerable queries returned results"
    return [f"{which} (not in the scores)."]


def _notes(run: Run) -> list[AnyNote]:
    summary = run.summary
    notes = [*measured_on(run), *without_selves(summary), *needless(summary)]
    if summary.n_failed:
        failed = counted(summary.n_failed, "query")
        notes.append(warning(f"Search FAILED on {failed}: each evaluated one counts 0."))
    if answered := summary.answered:
        means = [
            f"{metric_label(name)} {QUALITY(entry.mean).text}"
            for name, entry in answered.metrics.items()
        ]
        over = f"Over the {answered.n:,} evaluated queries that were answered"
        notes.append(f"{over}: {', '.join(means)}.")
    stalls = run.summary.latency_ms.stalls
    if stalls:
        notes.append(
            f"{counted(stalls, 'call')} took far longer than their query usually does (stalls)."
        )
    data = summary.dataset
    notes += unit_note(data.n_clusters if data.cluster_key else None, data.cluster_key)
    notes += unsupported(summary)
    if summary.n_collapsed:
        hits = counted(summary.n_collapsed, "hit")
        notes.append(f"{hits} of a unit that was already in the ranking.")
    notes += summary.health
    notes += map(warning, shown_warnings(summary))
    if run.folder is not None:
        notes.append(next_step(f"saved: {relative_folder(run)}"))
    return notes


def _index_rows(summary: Summary) -> list[list[Content]]:
    index, n_documents = summary.index, summary.dataset.n_documents
    rows: list[list[Content]] = []
    if index.seconds:
        rate = f"{n_documents / index.seconds:,.0f} documents/s" if n_documents else ""
        rate = "a saved index, opened" if index.opened else rate
        rows.append(["index s", SECONDS(index.seconds), rate])
    if index.disk_bytes:
        rows.append(["disk MB", MEGABYTES(index.disk_bytes), "kept by the retriever"])
    if index.peak_rss_bytes:
        rows.append(["peak memory MB", MEGABYTES(index.peak_rss_bytes), "process"])
    if server := summary.server:
        of = f"{server.processes:,} process{'' if server.processes == 1 else 'es'}"
        if server.memory_bytes:
            rows.append(["server memory MB", MEGABYTES(server.memory_bytes), of])
        rows.append(["server cpu ms", MILLISECONDS(server.cpu_ms_per_call), "a call"])
    return rows


# -- without a run -------------------------------------------------------------------------------


def _trial(trial: Trial) -> str:
    documents = trial.documents
    over = "" if documents is None else f" over {counted(documents, 'document')}"
    return f"{trial.retriever} answered the first query{over}: {counted(trial.hits, 'hit')}."


def plan_table(plan: PlannedRun) -> Table:
    """Show the answer to ``--dry-run``: how many calls a run would make."""
    rows: Sequence[tuple[str, int | None]] = (
        ("queries", plan.queries),
        ("measured rounds", plan.rounds),
        ("measured calls per retriever", plan.measured_calls),
        ("launches", plan.launches),
        ("warm-up calls per retriever, at least", plan.warm_up_calls_at_least),
        ("all calls together, at least", plan.calls_at_least),
        ("all calls together, at most", plan.calls_at_most),
    )
    notes = [
        "Checked: configs with their parameters, the dataset; every retriever was built.",
        *map(_trial, plan.tried),
        *(f"Not checked: {what}." for what in plan.not_checked),
    ]
    if plan.calls_at_most is None:
        longest = plan.warm_up_seconds_at_most
        notes.append(f"The warm-up goes on until times settle, for {longest:g} s at most.")
    return Table(
        f"{', '.join(plan.retrievers)} {on_dataset(plan.dataset)}: nothing was run",
        ("", "calls"),
        [(name, COUNT(calls)) for name, calls in rows if calls is not None],
        notes=[*notes, *map(warning, plan.warnings)],
    )
