"""What is shown of ``baseline`` and ``regress``: what is beside what, each gate, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import (
    change_text,
    interval_of,
    ms_text,
    p_text,
    quality_text,
    signed,
)
from retrieval_bench.core.types import Verdict
from retrieval_bench.duets.result import WORDS
from retrieval_bench.regression.gate import Regression
from retrieval_bench.regression.latency import LatencyGate, LatencyResult
from retrieval_bench.regression.quality import ChangedQuery, QualityGate, QualityResult
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables.duet import duet_tables

MOST_QUERIES = 10
"""Of more changed queries only the number is shown; the JSON document has all."""

_COMMIT = 10


def regress_tables(found: Regression) -> list[Table]:
    """The gates under the verdict; the changed queries; the duet, where there was one."""
    told = [
        *_against(found),
        *_reasons(found),
        *(f"note: {note}" for note in found.notes),
        *(f"do: {sentence}" for sentence in found.advice),
        *(f"warning: {warning}" for warning in found.warnings),
        *_saved(found.run),
    ]
    rows = [_quality_row(gate) for gate in (found.quality.gates if found.quality else ())]
    start = len(rows)
    rows += [_latency_row(gate) for gate in (found.latency.gates if found.latency else ())]
    tables = [
        Table(
            f"{WORDS[found.verdict]}: {_subject(found.subject)}",
            ("", "baseline", "now", "change", "limit", "verdict"),
            rows,
            rules=[start] if 0 < start < len(rows) else [],
            notes=told,
            words=(0, 5),
        )
    ]
    if found.quality is not None and found.quality.changed:
        tables.append(_changed_table(found.quality))
    duet = None if found.latency is None else found.latency.duet
    if duet is not None and duet.gates:
        tables += duet_tables(duet)
    return tables


def baseline_tables(document: Mapping[str, Any]) -> list[Table]:
    """What is kept now, beside what was kept before; from the document of ``baseline``."""
    written = [f"written: {path}" for path in document["written"]]
    kept = [f"the same rankings as before, kept: {path}" for path in document["kept"]]
    revision = document["revision"]
    where = [] if revision is None else [f"revision {_revision_text(revision)}"]
    return [
        Table(
            f"Baseline of {_subject(document)}",
            ("", "before", "now"),
            [
                (
                    " ".join(filter(None, (change["figure"], change["unit"]))),
                    *(_figure(change[when], change["unit"]) for when in ("before", "now")),
                )
                for change in document["changes"]
            ],
            notes=[
                *written,
                *kept,
                *where,
                *(f"note: {note}" for note in document["notes"]),
                *(f"warning: {warning}" for warning in document["warnings"]),
                *_saved(document["run"]),
            ],
        )
    ]


def _saved(folder: str | None) -> list[str]:
    return [] if folder is None else [f"run: {folder}"]


def _subject(facts: Mapping[str, Any]) -> str:
    data = facts["dataset"]
    return f"{facts['retriever']} on {data['name']} ({data['split']}), k = {facts['k']}"


def _quality_row(gate: QualityGate) -> tuple[str, ...]:
    return (
        gate.metric,
        quality_text(gate.before),
        quality_text(gate.now),
        signed(gate.difference),
        f"{-gate.limit:g}",
        WORDS[gate.verdict],
    )


def _latency_row(gate: LatencyGate) -> tuple[str, ...]:
    ratio = gate.ratio if gate.ratio is not None else gate.stored
    return (
        gate.gate,
        "",
        "",
        change_text(None if ratio is None else ratio - 1),
        change_text(gate.limit),
        WORDS[gate.verdict],
    )


def _against(found: Regression) -> list[str]:
    """What today was held against."""
    told = []
    revision = found.subject["revision"]
    now = "these files" if revision is None else _revision_text(revision)
    for name, facts in found.baselines.items():
        parts = [f"{name}: {now} against {_revision_text(facts['revision'])}"]
        if "date" in facts:
            parts.append(f"of {facts['date'][:10]}")
        told.append(f"{' '.join(parts)}, {facts['path']}")
    return told


def _revision_text(revision: Mapping[str, Any] | None) -> str:
    if revision is None:
        return "no revision"
    changed = " with changed files" if revision["dirty"] else ""
    return str(revision["commit"])[:_COMMIT] + changed


def _reasons(found: Regression) -> list[str]:
    told = []
    if found.quality is not None:
        told += _quality_reasons(found.quality)
    if found.latency is not None:
        told += _latency_reasons(found.latency)
    return told


def _quality_reasons(found: QualityResult) -> list[str]:
    if found.reason:
        return [f"quality: {found.reason}"]
    if not found.changed:
        judged = counted(found.n, "judged query")
        some = f", {found.failed} of them failed then and now" if found.failed else ""
        missing = [f"{g.metric}: {g.reason}" for g in found.gates if g.verdict is Verdict.MISSING]
        return [f"quality: rankings identical, {judged}{some}", *missing]
    told = []
    for gate in found.gates:
        figures = []
        if gate.p is not None and gate.lower:
            ends = interval_of(gate.ci95, lambda end: f"{end:+.4f}")
            figures = [f"95 % interval {ends}", f"p {p_text(gate.p)}"]
        if gate.verdict is Verdict.UNDECIDED and gate.queries_needed is not None:
            figures.append(
                f"about {counted(gate.queries_needed, 'more query')} would show the difference"
            )
        told.append(
            f"{gate.metric}: {gate.reason}" + (f" ({', '.join(figures)})" if figures else "")
        )
    return told


def _latency_reasons(found: LatencyResult) -> list[str]:
    return [f"latency: {found.reason}", *(f"not judged: {one}" for one in found.unsupported)]


def _changed_table(found: QualityResult) -> Table:
    metrics = [gate.metric for gate in found.gates if gate.before is not None]
    shown = found.changed[:MOST_QUERIES]
    more = len(found.changed) - len(shown)
    judged = sum(bool(query.values) for query in found.changed)
    notes = [f"and {more:,} more; --format json has all"] if more else []
    if judged < len(found.changed):
        other = counted(len(found.changed) - judged, "query")
        notes.append(f"{other} of them that no document answers: in no mean")
    return Table(
        f"Other rankings than the baseline's: {judged} of {counted(found.n, 'judged query')}",
        ("query", *metrics),
        [(query.query_id, *_values(query, metrics)) for query in shown],
        notes=notes,
    )


def _values(query: ChangedQuery, metrics: Sequence[str]) -> list[str]:
    """Old and new of each metric."""
    if not query.values:
        return ["-" for _ in metrics]
    return [
        " -> ".join(quality_text(value) for value in query.values[metric])
        + (" (failed)" if query.failed else "")
        for metric in metrics
    ]


def _figure(value: float | None, unit: str) -> str:
    return ms_text(value) if unit else quality_text(value)
