"""The short output of ``bench`` and ``compare``: the answer, what changes how it must be read, the
figures that it rests on, and what to do next. The rest is behind ``-v``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from retrieval_bench.comparison.comparability import other_settings
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.recommendation import Recommendation
from retrieval_bench.comparison.speed import timed_differently, timed_together
from retrieval_bench.comparison.verdicts import Delta
from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import loudest_first
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.reports.render.cells import (
    MEGABYTES,
    SHORT_DIFFERENCE,
    SHORT_MS,
    SHORT_QUALITY,
    Cell,
    Content,
)
from retrieval_bench.reports.render.table import (
    Note,
    NoteKind,
    Table,
    kind_of,
    next_step,
    result,
    warning,
)
from retrieval_bench.reports.tables.board import board_tables
from retrieval_bench.reports.tables.comparison import how_timed, queries_of, said
from retrieval_bench.reports.tables.labels import metric_label, verdict_label
from retrieval_bench.reports.tables.run import beside_leg, needless
from retrieval_bench.reports.tables.run_facts import (
    corpus,
    latency_of,
    levels,
)
from retrieval_bench.runs.run import Run, relative_folder

SYSTEMS_SHOWN, WARNINGS_SHOWN = 8, 4
"""The others are behind ``-v``."""

# -- a run ---------------------------------------------------------------------------------------


def run_brief(run: Run, leg: Delta | None = None) -> Table:
    """The answer, what changes how it must be read, the figures that the run stands behind, where
    it was saved, and what to do next.

    Args:
        leg: of a hybrid, its best leg beside it.
    """
    summary, latency = run.summary, latency_of(run)
    lead = [beside_leg(run, leg)] if leg is not None else []
    warnings = [*map(warning, _warnings(run))]
    lead += warnings[:WARNINGS_SHOWN]
    if len(warnings) > WARNINGS_SHOWN:
        lead.append(warning(f"{len(warnings) - WARNINGS_SHOWN} more warnings: -v shows them."))
    means = list(zip(run.evaluation.metrics, run.evaluation.means, strict=True))
    rows: list[list[Content]] = [
        [metric_label(metric), Cell(mean.mean, SHORT_QUALITY, mean.ci95)]
        for metric, mean in means[1:]
    ]
    rows += [["latency", text] for text in [_latency(latency)] if text]
    rows += [["ready in", text] for text in [_ready(summary)] if text]
    notes: list[str] = list(needless(summary))
    folder = [] if run.folder is None else [next_step(f"saved: {relative_folder(run)}")]
    explain = [next_step("next:  retrieval-bench explain @last")] if leg and folder else []
    there = "summary.txt there" if folder else "-v"
    more = next_step(f"more:  {there} (stages, legs, all percentiles and notes)")
    return Table(
        _title(run),
        ("", ""),
        rows,
        notes=[*notes, *folder, *explain, more],
        words=(0, 1),
        lead=lead,
    )


def _title(run: Run) -> str:
    metric, mean = run.evaluation.metrics[0], run.evaluation.means[0]
    cell = Cell(mean.mean, SHORT_QUALITY, mean.ci95)
    figures = [f"{metric_label(metric)} {cell.text} {cell.more}".strip()]
    p50 = latency_of(run).get("p50", {})
    if p50.get("value") is not None:
        time = Cell(p50["value"], SHORT_MS, p50.get("ci95"))
        figures.append(f"{f'p50 {time.text} {time.more}'.strip()} ms")
    partial = " (PARTIAL RUN)" if run.summary.get("status") == "partial" else ""
    return f"{run.name} on {run.summary['dataset']['name']}{partial}: {', '.join(figures)}"


def _warnings(run: Run) -> list[str]:
    """What changes how the figures must be read."""
    summary = run.summary
    failed = []
    if summary.get("n_failed"):
        queries = counted(summary["n_failed"], "query")
        failed = [f"Search FAILED on {queries}: each evaluated one counts 0 in every mean."]
    return [*failed, *loudest_first(summary.get("warnings", ()))]


def _latency(latency: Mapping[str, Any]) -> str:
    """The percentiles that the run stands behind."""
    figures = []
    for level in levels(latency):
        entry = latency[level]
        if entry.get("value") is None or (level == "p99" and entry.get("ci95") is None):
            continue
        cell = Cell(entry["value"], SHORT_MS, entry.get("ci95"))
        figures.append(f"{level} {cell.text} {cell.more}".strip())
    if not figures:
        return ""
    return f"{'   '.join(figures[:2])} ms over {counted(latency['n'], 'call')}, 1 client"


def _ready(summary: Mapping[str, Any]) -> str:
    index, n = summary.get("index", {}), summary["dataset"].get("n_documents", 0)
    if index.get("seconds") is None:
        return ""
    memory = index.get("peak_rss_bytes")
    peak = f", peak memory {MEGABYTES.text(memory)} MB" if memory else ""
    return f"{index['seconds']:.1f} s (indexing {counted(n, 'document')}){peak}"


# -- a comparison --------------------------------------------------------------------------------


def comparison_brief(comparison: Comparison, *, measured: bool = True) -> list[Table]:
    """For each dataset the answer, what changes how it must be read, and one table with the pairs
    against the leader; then systems over datasets.

    Args:
        measured: whether the runs were measured and saved now.
    """
    tables = [
        _group_brief(comparison, group, answer)
        for group, answer in zip(comparison.groups, comparison.recommendations, strict=True)
    ]
    boards = board_tables(comparison) if len(comparison.groups) > 1 else []
    folders = [run.folder for run in comparison.runs if run.folder is not None]
    saved = []
    if folders and measured:
        where = str(PurePath(relative_folder(comparison.runs[0])).parent)
        saved = [
            next_step("share: retrieval-bench report @last"),
            next_step(f"saved: {counted(len(folders), 'run')} in {where}"),
        ]
    again = "retrieval-bench compare @last -v" if folders and measured else "-v"
    more = f"more:  {again} (all metrics, all pairs, latency tests, how it was measured)"
    *first, last = [*tables, *boards]
    return [*first, last.with_notes([*saved, next_step(more)])]


def _group_brief(comparison: Comparison, group: DatasetComparison, answer: Recommendation) -> Table:
    metric, runs = group.metrics[0], group.runs
    leader = comparison.baseline or answer.system or group.ranked(metric)[0][0]
    depth = [m for m in group.metrics if m.name == "R"]
    deepest = max(depth, key=lambda m: m.cut or math.inf, default=None)
    beside = {name: against(group, metric, name, leader) for name in group.names if name != leader}
    levels_shown = [
        level
        for level in ("p50", "p95")
        if any(latency_of(run).get(level, {}).get("value") is not None for run in runs)
    ]
    ranked = group.ranked(metric)
    shown = sorted(ranked, key=lambda pair: pair[0] != leader)[:SYSTEMS_SHOWN]
    rows: list[list[Content]] = []
    for name, run in shown:
        row: list[Content] = [name, Cell(run.evaluation.mean(metric).mean, SHORT_QUALITY)]
        row += beside.get(name, ("-", ""))
        if deepest is not None:
            row.append(Cell(run.evaluation.mean(deepest).mean, SHORT_QUALITY))
        times = [latency_of(run).get(level, {}).get("value") for level in levels_shown]
        rows.append([*row, *(Cell(time, SHORT_MS) for time in times)])
    columns = ["system", metric_label(metric), f"against {leader}", ""]
    columns += [metric_label(deepest)] if deepest is not None else []
    lead: list[str] = [result(" ".join([answer.sentence, *answer.reasons[:1]]))]
    warnings = _warnings_of(group)
    lead += warnings[:WARNINGS_SHOWN]
    if len(warnings) > WARNINGS_SHOWN:
        lead.append(warning(f"{len(warnings) - WARNINGS_SHOWN} more warnings: -v shows them."))
    notes: list[str] = list(map(result, answer.reasons[1:3]))
    notes += other_settings(group.names, runs)
    if len(ranked) > len(shown):
        left_out = f"{counted(len(ranked) - len(shown), 'more system')}: -v shows all."
        notes.append(Note(left_out, NoteKind.MORE))
    if any(word != "not compared" for _, word in beside.values()):
        corrected = " after Holm's correction" if len(group.of(metric)) > 1 else ""
        notes.append(
            f'"better", "worse": paired randomisation test, p < .05{corrected}; brackets: 95 % '
            "intervals of the difference."
        )
    return Table(
        _title_of(group),
        [*columns, *(f"{level} ms" for level in levels_shown)],
        rows,
        notes=notes,
        words=(0, 3),
        lead=lead,
    )


def _title_of(group: DatasetComparison) -> str:
    cuts = sorted({run.summary["k"] for run in group.runs})
    timed = ""
    if any(latency_of(run).get("mean") is not None for run in group.runs):
        together = timed_together(group.runs) and not timed_differently(group.runs)
        timed = f"; times {'interleaved' if together else 'measured apart'}, 1 client"
    documents = {corpus(run.summary["dataset"]) for run in group.runs}
    of = f", {documents.pop()}" if len(documents) == 1 else ""
    return f"{group.dataset}: {queries_of(group)}{of}, top {' / '.join(map(str, cuts))}{timed}"


def against(
    group: DatasetComparison, metric: Metric, name: str, leader: str
) -> tuple[Content, Content]:
    """The difference of ``name`` from ``leader`` with its interval, and the verdict on it."""
    for delta in group.of(metric):
        if {delta.a, delta.b} == {name, leader}:
            break
    else:
        return "-", "not compared"
    sign = 1 if delta.b == name else -1
    gap = None if delta.difference is None else sign * delta.difference
    ends = None if delta.ci95 is None else sorted(sign * end for end in delta.ci95)
    turned = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    verdict = delta.verdict if sign == 1 else turned.get(delta.verdict, delta.verdict)
    return Cell(gap, SHORT_DIFFERENCE, ends), verdict_label(verdict)


def _warnings_of(group: DatasetComparison) -> list[str]:
    """What changes how the answer must be read."""
    pairs = list(zip(group.names, group.runs, strict=True))
    timed = how_timed(group.runs)
    return [
        *map(warning, group.warnings),
        *([timed] if kind_of(timed) is NoteKind.WARNING else []),
        *said(
            lambda run: list(map(warning, loudest_first(run.summary.get("warnings", ())))), pairs
        ),
    ]
