"""What is shown of a run and of a comparison, as plain tables that every format renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.comparison import Comparison, Delta
from harness.errors import counted
from harness.run import Run
from harness.types import Verdict

LEVELS = ("p50", "p95", "p99")

SYSTEMS_PER_TABLE = 4
"""As many as fit beside each other in 80 columns."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text. The first column is left-aligned, the others right; ``rules`` are the numbers
    of the rows that start a new section; ``notes`` stand below, one a line."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    rules: Sequence[int] = ()
    notes: Sequence[str] = field(default=())


def run_tables(run: Run) -> list[Table]:
    """One table: quality with intervals, latency, what was measured on what."""
    summary = run.summary
    rows = [
        (name, _quality(entry["mean"]), _interval(entry["ci95"], _quality), f"n = {entry['n']}")
        for name, entry in summary["metrics"].items()
    ]
    latency = summary["latency_ms"]
    latency_rows = [
        (f"{level} ms", _ms(latency[level]["value"]), _interval(latency[level]["ci95"], _ms), "")
        for level in LEVELS
    ]
    latency_rows[0] = (*latency_rows[0][:3], counted(latency["n"], "call"))
    latency_rows.append(("mean ms", _ms(latency["mean"]), "", ""))
    stages = [
        (f"  {stage}", _ms(entry["p50"]), "", "p50 of stage")
        for stage, entry in summary["stages_ms"].items()
    ]
    index_rows = _index_rows(summary["index"])
    sections = [rows, latency_rows + stages, index_rows]
    rules = [len(rows), len(rows) + len(sections[1])]
    return [
        Table(
            title=_title(summary, summary["retriever"]),
            columns=("", "value", "95 % interval", ""),
            rows=[row for section in sections for row in section],
            rules=rules if index_rows else rules[:1],
            notes=_notes(run),
        )
    ]


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Systems side by side, then the paired differences of the first metric."""
    pairs = list(zip(comparison.names, comparison.runs, strict=True))
    blocks = [
        _side_by_side(comparison, pairs[start : start + SYSTEMS_PER_TABLE])
        for start in range(0, len(pairs), SYSTEMS_PER_TABLE)
    ]
    blocks[-1] = replace(blocks[-1], notes=_comparison_notes(pairs))
    return [*blocks, _differences(comparison)]


def _side_by_side(comparison: Comparison, pairs: Sequence[tuple[str, Run]]) -> Table:
    rows: list[list[str]] = []
    for metric in comparison.metrics:
        entries = [run.summary["metrics"][str(metric)] for _, run in pairs]
        rows.append([str(metric)] + [_quality(entry["mean"]) for entry in entries])
        rows.append([""] + [_interval(entry["ci95"], _short_quality) for entry in entries])
    rules = [len(rows)]
    for level in LEVELS:
        entries = [run.summary["latency_ms"][level] for _, run in pairs]
        rows.append([f"{level} ms"] + [_ms(entry["value"]) for entry in entries])
        if any(entry["ci95"] for entry in entries):
            rows.append([""] + [_interval(entry["ci95"], _short_ms) for entry in entries])
    rules.append(len(rows))
    rows.append(["index s"] + [_seconds(run.summary["index"].get("seconds")) for _, run in pairs])
    rows.append(["calls"] + [f"{run.summary['latency_ms']['n']:,}" for _, run in pairs])
    failed = [run.summary["n_failed"] for _, run in pairs]
    if any(failed):
        rows.append(["failed"] + [str(n) for n in failed])
    no_search = [run.summary["unanswerable"] for _, run in pairs]
    if any(entry["n"] for entry in no_search):
        rows.append(["needless"] + [f"{e['returned_hits']} of {e['n']}" for e in no_search])
    title = _title(pairs[0][1].summary, " / ".join(name for name, _ in pairs))
    return Table(title, ["", *(name for name, _ in pairs)], rows, rules)


def _comparison_notes(pairs: Sequence[tuple[str, Run]]) -> list[str]:
    first = pairs[0][1]
    data = {
        run.summary["dataset"]["fingerprint"]: run.summary["dataset"]["name"] for _, run in pairs
    }
    if len(data) > 1:
        return [
            f"NOT COMPARABLE: these runs are on {len(data)} datasets ({', '.join(data.values())})"
        ]
    notes = [
        "quality: mean over queries, percentile-bootstrap interval; latency: all measured calls",
        *_measured_on(first),
        _how_timed([run for _, run in pairs]),
    ]
    if first.summary["unanswerable"]["n"]:
        notes.append("needless: queries that need no search and got hits (not in the means)")
    return [
        *notes,
        *_unsupported(first.summary),
        *_said_by("health", pairs),
        *_said_by("warnings", pairs),
    ]


def _how_timed(runs: Sequence[Run]) -> str:
    machines = {run.manifest["environment"]["machine"]["fingerprint"] for run in runs}
    if len(machines) > 1:
        return "times: measured on different machines, NOT COMPARABLE"
    if len({run.manifest["session"] for run in runs}) > 1:
        return "times: measured at different times, a difference may be the machine's"
    return "times: measured together, alternating query by query"


def _said_by(kind: str, pairs: Sequence[tuple[str, Run]]) -> list[str]:
    """What runs say, each sentence once, behind the names of those that say it."""
    speakers: dict[str, list[str]] = {}
    for name, run in pairs:
        for sentence in run.summary[kind]:
            speakers.setdefault(sentence, []).append(name)
    label = "health" if kind == "health" else "warning"
    return [
        f"{label}: {sentence}"
        if len(names) == len(pairs)
        else f"{label} ({', '.join(names)}): {sentence}"
        for sentence, names in speakers.items()
    ]


def _differences(comparison: Comparison) -> Table:
    metric = str(comparison.metrics[0])
    rows = [_difference_row(delta) for delta in comparison.deltas if delta.metric == metric]
    tested = sum(delta.p is not None for delta in comparison.deltas)
    return Table(
        f"Paired differences in {metric}",
        ["", "difference", "95 % interval", "p (Holm)", "verdict"],
        rows,
        (),
        [
            "difference: the first named minus the second; the verdict speaks of the first",
            f"p: paired randomisation test, Holm over {tested} comparisons (all pairs and metrics)",
            "no verdict on latency here: it needs the duet, not two medians",
        ],
    )


def _difference_row(delta: Delta) -> list[str]:
    pair = f"{delta.b} - {delta.a}"
    if delta.difference is None:
        return [pair, "-", "-", "-", f"{delta.verdict.value} ({delta.reason})"]
    verdict = delta.verdict.value
    if delta.verdict is Verdict.UNDECIDED and delta.queries_needed is not None:
        verdict += f" (~{delta.queries_needed:,} queries)"
    return [
        pair,
        f"{delta.difference:+.4f}",
        _interval(delta.ci95, lambda value: f"{value:+.3f}"),
        "-" if delta.p_adjusted is None else _p(delta.p_adjusted),
        verdict,
    ]


def _title(summary: Mapping[str, Any], what: str) -> str:
    data = summary["dataset"]
    partial = " - PARTIAL RUN" if summary["status"] == "partial" else ""
    return f"{what} on {data['name']} ({data['split']}), k = {summary['k']}{partial}"


def _notes(run: Run) -> list[str]:
    summary = run.summary
    notes = _measured_on(run)
    none = summary["unanswerable"]
    if none["n"]:
        notes.append(
            f"{none['returned_hits']} of {none['n']} queries that need no search got hits "
            "(not in the means)"
        )
    if summary["n_failed"]:
        failed = counted(summary["n_failed"], "query")
        notes.append(f"FAILED on {failed}; an evaluated one counts 0 in every mean")
    notes += _unsupported(summary)
    if summary["n_collapsed"]:
        notes.append(f"{summary['n_collapsed']:,} hits belonged to a unit already in the ranking")
    notes += [f"health: {fact}" for fact in summary["health"]]
    notes += [f"warning: {warning}" for warning in summary["warnings"]]
    if run.folder is not None:
        notes.append(f"run: {_relative(run)}")
    return notes


def _unsupported(summary: Mapping[str, Any]) -> list[str]:
    """Why percentiles are not given, equal reasons together."""
    missing: dict[str, list[str]] = {}
    for level in LEVELS:
        reason = summary["latency_ms"][level].get("reason")
        if reason:
            missing.setdefault(reason, []).append(level)
    return [f"{', '.join(levels)} not given: {reason}" for reason, levels in missing.items()]


def _measured_on(run: Run) -> list[str]:
    data, latency = run.summary["dataset"], run.summary["latency_ms"]
    environment = run.manifest["environment"]
    machine = environment["machine"]
    corpus = counted(data["n_documents"], "document")
    if not data["n_documents"]:
        corpus = "no corpus (external)"
    not_run = f", {data['n_not_run']:,} not judged in this split" if data["n_not_run"] else ""
    return [
        (
            f"data: {corpus}; queries: {data['n_queries']:,} evaluated, "
            f"{data['n_unanswerable']:,} need no search{not_run}"
        ),
        (
            f"calls: {counted(latency['rounds'], 'round')} "
            f"after a warm-up of {latency['warm_up_calls']:,}, "
            f"{counted(environment['threads'], 'thread')} while searching"
        ),
        f"machine: {machine['processor']}, {machine['usable_cores']} cores, {machine['python']}",
        (
            f"convention {run.summary['convention']}, ties: {run.summary['tie_rule']}; "
            f"fingerprint {data['fingerprint'][:12]}"
        ),
    ]


def _index_rows(index: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = []
    if index.get("seconds") is not None:
        rows.append(("index s", _seconds(index["seconds"]), "", ""))
    if index.get("peak_rss_bytes"):
        rows.append(("peak memory MB", f"{index['peak_rss_bytes'] / 1e6:,.0f}", "", "process"))
    return rows


def _relative(run: Run) -> str:
    from pathlib import Path

    folder = run.folder
    if folder is None:
        return "(not saved)"
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)


def _quality(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _short_quality(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)


def _short_ms(value: float) -> str:
    return f"{value:.3g}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0") if value < 1 else "1"


def _interval(ends: Sequence[float] | None, form: Any) -> str:
    return "" if ends is None else f"[{form(ends[0])}, {form(ends[1])}]"


def plan_table(document: Mapping[str, Any]) -> Table:
    """What ``--dry-run`` says: how many calls a run would make."""
    return Table(
        f"{', '.join(document['retrievers'])} on {document['dataset']}: nothing was run",
        ("", "calls"),
        [
            ("queries", f"{document['queries']:,}"),
            ("measured rounds", f"{document['rounds']:,}"),
            ("measured calls per retriever", f"{document['measured_calls']:,}"),
            ("warm-up calls per retriever, at most", f"{document['warm_up_calls_at_most']:,}"),
            ("all calls together, at most", f"{document['calls_at_most']:,}"),
        ],
        notes=[
            "every part was built and checked; indexing starts with a real run",
            *(f"warning: {warning}" for warning in document["warnings"]),
        ],
    )
