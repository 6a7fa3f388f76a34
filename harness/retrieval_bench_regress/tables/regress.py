"""Tables of ``baseline`` and ``regress``: what is beside what, each gate, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from retrieval_bench.comparison.claims import Claim, in_doubt
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import end_text
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.cells import (
    CHANGE,
    DIFFERENCE,
    MILLISECONDS,
    QUALITY,
    RATIO,
    Content,
    P,
)
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result, warning
from retrieval_bench.reports.render.text import cut
from retrieval_bench.reports.render.words import BOUND, bound_text, metric_label, on_dataset
from retrieval_bench_duet.result import WORDS
from retrieval_bench_duet.tables.duet import duet_tables
from retrieval_bench_regress.gate import Regression
from retrieval_bench_regress.latency_gates import LatencyGate, LatencyResult
from retrieval_bench_regress.quality_gates import ChangedQuery, QualityGate, QualityResult

MOST_QUERIES = 10
"""Of more changed queries only the number is shown; the JSON document has all."""

_COMMIT, _TEXT = 10, 32


def regress_tables(regression: Regression, *, texts: bool = True) -> list[Table]:
    """The gates under the verdict; the changed queries; the duet, where there was one.

    Args:
        texts: show how each changed query begins, beside its id.
    """
    quality_gates = regression.quality.gates if regression.quality else ()
    latency_gates = regression.latency.gates if regression.latency else ()
    start = len(quality_gates)
    tables = [
        Table(
            f"{WORDS[regression.verdict]}{_in_doubt(regression)}: {_subject(regression.subject)}",
            ("", "baseline", "now", "change", "limit", "verdict"),
            [*map(_quality_row, quality_gates), *map(_latency_row, latency_gates)],
            [start] if start and latency_gates else [],
            [
                *_against(regression),
                *_reasons(regression),
                *regression.notes,
                *map(next_step, regression.advice),
                *map(warning, regression.warnings),
                *_saved(regression.run),
            ],
            words=(0, 5),
        )
    ]
    if regression.quality is not None and regression.quality.changed:
        shown = regression.texts if texts else {}
        tables.append(_changed_table(regression.quality, shown))
    duet = None if regression.latency is None else regression.latency.duet
    if duet is not None and duet.gates:
        tables += duet_tables(duet)
    return tables


def _in_doubt(regression: Regression) -> str:
    """Say of a verdict that a warning makes void what it judges."""
    judged = {Claim.QUALITY: regression.quality, Claim.SPEED: regression.latency}
    subjects = [claim for claim, gates in judged.items() if gates is not None]
    return in_doubt("regress", regression.warnings, *subjects)


def baseline_tables(document: Mapping[str, Any]) -> list[Table]:
    """Show the baselines kept now, beside those kept before; from the document of ``baseline``."""
    revision, changes = document["revision"], document["changes"]
    again = any(change["before"] is not None for change in changes)
    machine = document["machine"]
    return [
        Table(
            f"Baseline of {_subject(document)}",
            ("", *(["before", "now"] if again else ["kept"])),
            [_kept_row(change, again) for change in changes],
            notes=[
                *(
                    result(f"written: {path} ({_use(path, machine)})")
                    for path in document["written"]
                ),
                *(
                    result(f"kept, since the rankings are the same as before: {path}")
                    for path in document["kept"]
                ),
                *([] if revision is None else [f"Revision: {_revision_text(revision)}."]),
                *document["notes"],
                *map(warning, document["warnings"]),
                *_saved(document["run"]),
                *map(next_step, _next(document["next"])),
            ],
        )
    ]


def _next(command: str) -> list[str]:
    """Advise what to do with a baseline; a machine that is another one each day can judge no
    latency."""
    if "--policy" in command:
        return [f"next:  commit what was written; at each change: {command}"]
    same = "on a machine that stays the same commit both files and leave --policy out"
    return [
        f"next:  commit the file on quality; at each change: {command} --policy quality",
        f"       ({same}:",
        "       latency is judged, too)",
    ]


def _use(path: str, machine: str) -> str:
    """Name the use of a file of a baseline."""
    return "latency, on this machine" if PurePath(path).parent.name == machine else "quality"


def _kept_row(change: Mapping[str, Any], again: bool) -> list[Content]:
    unit = change["unit"]
    form = MILLISECONDS if unit else QUALITY
    name = f"{change['figure']} {unit}" if unit else metric_label(change["figure"])
    return [name, *([form(change["before"])] if again else []), form(change["now"])]


def _saved(folder: str | None) -> list[AnyNote]:
    return [] if folder is None else [next_step(f"saved: {folder}")]


def _subject(facts: Mapping[str, Any]) -> str:
    data = facts["dataset"]
    return f"{facts['retriever']} {on_dataset(data['name'])} ({data['split']}), k = {facts['k']}"


def _quality_row(gate: QualityGate) -> list[Content]:
    return [
        metric_label(gate.metric),
        QUALITY(gate.before),
        QUALITY(gate.now),
        DIFFERENCE(gate.difference),
        f"{-gate.limit:g}",
        WORDS[gate.verdict],
    ]


def _latency_row(gate: LatencyGate) -> list[Content]:
    ratio = gate.ratio if gate.ratio is not None else gate.stored
    return [gate.gate, "", "", RATIO(ratio), CHANGE(gate.limit), WORDS[gate.verdict]]


def _against(regression: Regression) -> list[str]:
    """Note the baselines that today was compared with."""
    revision = regression.subject["revision"]
    now = None if revision is None else _revision_text(revision)
    notes = []
    for name, facts in regression.baselines.items():
        if name == "latency" and regression.latency is None:
            continue
        day = f" of {facts['date'][:10]}" if "date" in facts else ""
        before = facts["revision"] and _revision_text(facts["revision"])
        commits = ""
        if before == now:
            commits = f", both at {now}" if now else ""
        else:
            made = f"made at {before}" if before else "made without a git commit"
            commits = f" ({made}); now {now or 'without a git commit'}"
        notes.append(f"{name.capitalize()}: compared with {facts['path']}{day}{commits}.")
    return notes


def _revision_text(revision: Mapping[str, Any]) -> str:
    changed = " with uncommitted files" if revision["dirty"] else ""
    return str(revision["commit"])[:_COMMIT] + changed


def _reasons(regression: Regression) -> list[str]:
    reasons = []
    if regression.quality is not None:
        reasons += _quality_reasons(regression.quality)
    if regression.latency is not None:
        reasons += _latency_reasons(regression.latency)
    return reasons


def _quality_reasons(quality: QualityResult) -> list[str]:
    if quality.reason:
        return [f"Quality: {quality.reason}"]
    if not quality.changed:
        judged = counted(quality.n, "evaluated query")
        some = f", {quality.failed} of them failed then and now" if quality.failed else ""
        missing = [f"{g.metric}: {g.reason}" for g in quality.gates if g.verdict is Verdict.MISSING]
        return [f"Quality: all rankings are identical ({judged}{some}).", *missing]
    bound = [BOUND] if any(g.bound is not None and _has_figures(g) for g in quality.gates) else []
    return [_gate_reason(gate) for gate in quality.gates] + bound


def _has_figures(gate: QualityGate) -> bool:
    return gate.ci is not None and (gate.p is None or bool(gate.lower))


def _gate_reason(gate: QualityGate) -> str:
    figures = []
    if gate.ci is not None and _has_figures(gate):
        low, high = gate.ci
        figures = [f"interval [{end_text(low, 4)}, {end_text(high, 4)}]"] if low < high else []
        figures += [] if gate.bound is None else [bound_text(gate.bound)]
        figures += [] if gate.p is None else [f"p {P(gate.p).text}"]
    if gate.verdict is Verdict.UNDECIDED and gate.queries_needed is not None:
        more = counted(gate.queries_needed, "more query")
        figures.append(f"about {more} would show the difference")
    reason = f"{metric_label(gate.metric)}: {gate.reason}"
    return f"{reason} ({', '.join(figures)})" if figures else reason


def _latency_reasons(latency: LatencyResult) -> list[str]:
    return [f"Latency: {latency.reason}", *(f"Not judged: {item}." for item in latency.unsupported)]


def _changed_table(quality: QualityResult, texts: Mapping[str, str]) -> Table:
    """Queries with another ranking, those first that lost most in what is judged."""
    metrics = [gate.metric for gate in quality.gates if gate.before is not None]
    moved = [
        query
        for query in quality.changed
        if query.values and (query.failed or any(a != b for a, b in query.values.values()))
    ]
    moved.sort(key=lambda query: min(_gains(query, metrics), default=0.0))
    shown = moved[:MOST_QUERIES]
    judged = sum(bool(query.values) for query in quality.changed)
    notes = []
    if more := len(moved) - len(shown):
        notes.append(f"{more:,} more queries with other figures: --format json has all.")
    if judged > len(moved):
        notes.append(
            f"{counted(judged - len(moved), 'query')} with another ranking and the same figures."
        )
    if judged < len(quality.changed):
        other = counted(len(quality.changed) - judged, "unanswerable query")
        notes.append(f"{other} with another ranking, which no score counts.")
    return Table(
        f"Rankings that changed: {judged} of {counted(quality.n, 'evaluated query')}",
        ("query", *map(metric_label, metrics)),
        [(_asked(query.query_id, texts), *_values(query, metrics)) for query in shown],
        notes=notes,
        words=(0,),
    )


def _asked(query_id: str, texts: Mapping[str, str]) -> str:
    """The id of a query, and how its text begins."""
    text = texts.get(query_id, query_id)
    return query_id if text == query_id else f"{query_id}: {cut(text, _TEXT)}"


def _gains(query: ChangedQuery, metrics: Sequence[str]) -> list[float]:
    return [query.values[name][1] - query.values[name][0] for name in metrics]


def _values(query: ChangedQuery, metrics: Sequence[str]) -> list[str]:
    """Old and new of each metric."""
    failed = " (failed)" if query.failed else ""
    return [f"{a:.4f} -> {b:.4f}{failed}" for a, b in (query.values[name] for name in metrics)]
