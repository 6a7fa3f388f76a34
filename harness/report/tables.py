"""What is shown of a run and of a comparison, as plain tables that every format renders."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.comparison import Comparison, Delta
from harness.errors import counted
from harness.measure.tutorial import TutorialLatency
from harness.report.stage_tables import stage_tables
from harness.report.table import Table
from harness.run import Run
from harness.stages import stage_report
from harness.types import Verdict

_TIMED_HOW = ("threads", "collector", "launches", "timeout_s")
"""Parameters that change what a call takes; how many calls there were does not."""

_LEVEL = re.compile(r"p[\d.]+")

SYSTEMS_PER_TABLE = 4
"""As many as fit beside each other in 80 columns."""

WARNINGS_SHOWN = 5
"""Of each run; the others are in its summary.json."""


def run_tables(run: Run) -> list[Table]:
    """Quality with intervals, latency; where the time of a call goes; what was measured on what."""
    summary = run.summary
    rows = [
        (
            name,
            quality_text(entry["mean"]),
            _interval(entry["ci95"], quality_text),
            f"n = {entry['n']}",
        )
        for name, entry in summary["metrics"].items()
    ]
    rows += [
        (name, quality_text(share), "", "hits with a judgement")
        for name, share in run.evaluation.judged.items()
    ]
    latency = _latency(run)
    latency_rows = _percentile_rows(latency, "", counted(latency.get("n", 0), "call"))
    latency_rows.append(("mean ms", _ms(latency.get("mean")), "", _spread(latency)))
    mix = latency.get("mix", {})
    if mix:
        queries = counted(mix.get("n", 0), "query")
        supported = {level: mix[level] for level in _levels(mix) if mix[level]["value"] is not None}
        latency_rows += _percentile_rows(supported, "by query ", f"{queries}, each its median")
    index_rows = _index_rows(summary)
    sections = [rows, latency_rows, index_rows]
    rules = [len(rows), len(rows) + len(sections[1])]
    main = Table(
        title=_title([summary], summary["retriever"]),
        columns=("", "value", "95 % interval", ""),
        rows=[row for section in sections for row in section],
        rules=rules if index_rows else rules[:1],
    )
    stages = stage_tables(
        run.name, stage_report(run.timings.wall_ns, run.timings.stages, parallel=run.parallel)
    )
    *first, last = [main, *stages]
    return [*first, replace(last, notes=[*last.notes, *_notes(run)])]


def _levels(latency: Mapping[str, Any]) -> list[str]:
    """Names of the percentiles that were reported."""
    return [name for name in latency if _LEVEL.fullmatch(name)]


def _percentile_rows(
    latency: Mapping[str, Any], prefix: str, of: str
) -> list[tuple[str, str, str, str]]:
    rows = [
        (f"{prefix}{level} ms", _ms(entry.get("value")), _interval(entry.get("ci95"), _ms), "")
        for level, entry in ((level, latency[level]) for level in _levels(latency))
    ]
    return [(*rows[0][:3], of), *rows[1:]] if rows else rows


def _spread(latency: Mapping[str, Any]) -> str:
    if latency.get("sd") is None:
        return ""
    return f"sd {_ms(latency['sd'])}, max {_ms(latency['max'])}"


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Systems side by side, then the paired differences of the first metric."""
    pairs = list(zip(comparison.names, comparison.runs, strict=True))
    blocks = [
        _side_by_side(comparison, pairs[start : start + SYSTEMS_PER_TABLE])
        for start in range(0, len(pairs), SYSTEMS_PER_TABLE)
    ]
    notes = [*_comparison_notes(pairs), *(f"warning: {text}" for text in comparison.warnings)]
    blocks[-1] = replace(blocks[-1], notes=notes)
    return [*blocks, _differences(comparison)]


def _side_by_side(comparison: Comparison, pairs: Sequence[tuple[str, Run]]) -> Table:
    rows: list[list[str]] = []
    for metric in comparison.metrics:
        entries = [run.summary["metrics"].get(str(metric), {}) for _, run in pairs]
        rows.append([str(metric)] + [quality_text(entry.get("mean")) for entry in entries])
        rows.append([""] + [_interval(entry.get("ci95"), _short_quality) for entry in entries])
    for name in dict.fromkeys(name for run in comparison.runs for name in run.evaluation.judged):
        shares = [run.evaluation.judged.get(name) for _, run in pairs]
        rows.append([name] + [quality_text(share) for share in shares])
    rules = [len(rows)]
    levels = dict.fromkeys(level for run in comparison.runs for level in _levels(_latency(run)))
    for level in levels:
        entries = [_latency(run).get(level, {}) for _, run in pairs]
        rows.append([f"{level} ms"] + [_ms(entry.get("value")) for entry in entries])
        if any(entry.get("ci95") for entry in entries):
            rows.append([""] + [_interval(entry.get("ci95"), _short_ms) for entry in entries])
    rules.append(len(rows))
    indexes = [run.summary.get("index", {}) for _, run in pairs]
    rows.append(["index s"] + [_seconds(index.get("seconds")) for index in indexes])
    rows.append(["calls"] + [f"{_latency(run).get('n', 0):,}" for _, run in pairs])
    for name, fact in _TOLD_WHERE_DIFFERENT.items():
        # Over all runs, so that tables below each other have the same rows.
        if len({fact(run) for run in comparison.runs}) > 1:
            rows.append([name] + [fact(run) for _, run in pairs])
    stalls = [_latency(run).get("stalls") or 0 for _, run in pairs]
    if any(stalls):
        rows.append(["stalls"] + [f"{n:,}" for n in stalls])
    failed = [run.summary.get("n_failed", 0) for _, run in pairs]
    if any(failed):
        rows.append(["failed"] + [str(n) for n in failed])
    no_search = [_unanswerable(run.summary) for _, run in pairs]
    if any(n for n, _ in no_search):
        rows.append(["needless"] + [f"{hits} of {n}" for n, hits in no_search])
    what = " / ".join(name for name, _ in pairs)
    return Table(
        _title([run.summary for run in comparison.runs], what),
        ["", *(name for name, _ in pairs)],
        rows,
        rules,
    )


def _latency(run: Run) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run.summary.get("latency_ms", {})
    return found


def _unanswerable(summary: Mapping[str, Any]) -> tuple[int, int]:
    """Queries that need no search: how many, and how many of them got hits."""
    found = summary.get("unanswerable", {})
    return found.get("n", 0), found.get("returned_hits", 0)


def _status(run: Run) -> str:
    return "PARTIAL" if run.summary.get("status") == "partial" else "complete"


def _threads(run: Run) -> str:
    return str(run.manifest.get("environment", {}).get("threads", "?"))


_TOLD_WHERE_DIFFERENT: Mapping[str, Callable[[Run], str]] = {
    "status": _status,
    "k": lambda run: str(run.summary.get("k", "?")),
    "threads": _threads,
    "rounds": lambda run: str(_latency(run).get("rounds", "?")),
}


def _comparison_notes(pairs: Sequence[tuple[str, Run]]) -> list[str]:
    runs = [run for _, run in pairs]
    data = {run.summary["dataset"]["fingerprint"]: run.summary["dataset"]["name"] for run in runs}
    if len(data) > 1:
        return [
            f"NOT COMPARABLE: these runs are on {len(data)} datasets ({', '.join(data.values())})"
        ]
    notes = [
        "quality: mean over queries, percentile-bootstrap interval; latency: all measured calls",
        *_said(_measured_on, pairs),
        _how_timed(runs),
    ]
    if any(_latency(run).get("stalls") for run in runs):
        notes.append(
            "stalls: calls far slower than their query usually is; they are in all figures"
        )
    if any(_unanswerable(run.summary)[0] for run in runs):
        notes.append("needless: queries that need no search and got hits (not in the means)")
    return [
        *notes,
        *_said(lambda run: _unsupported(run.summary), pairs),
        *_said(lambda run: run.summary.get("health", ()), pairs, "health"),
        *_said(lambda run: _shown_warnings(run.summary), pairs, "warning"),
    ]


def _how_timed(runs: Sequence[Run]) -> str:
    surroundings = [run.manifest.get("environment", {}) for run in runs]
    machines = {known.get("machine", {}).get("fingerprint") for known in surroundings}
    if len(machines) > 1:
        return "times: measured on different machines, NOT COMPARABLE"
    different = _different_settings(runs)
    if different:
        return f"times: measured with different {', '.join(different)}, NOT COMPARABLE"
    sessions = {run.manifest.get("session") for run in runs}
    if len(sessions) > 1 or None in sessions:
        return "times: measured at different times, a difference may be the machine's"
    return "times: measured together, alternating query by query"


def _different_settings(runs: Sequence[Run]) -> list[str]:
    """What the protocols say differently, in words; what a record does not hold is not known."""
    protocols = [
        {"threads": run.manifest.get("environment", {}).get("threads")}
        | run.manifest.get("protocol", {})
        for run in runs
    ]
    names = dict.fromkeys(name for protocol in protocols for name in protocol if name in _TIMED_HOW)
    return [
        name.removesuffix("_s").replace("_", "-")
        for name in names
        if len({str(protocol[name]) for protocol in protocols if name in protocol}) > 1
    ]


def _shown_warnings(summary: Mapping[str, Any]) -> list[str]:
    warnings = list(summary.get("warnings", ()))
    more = len(warnings) - WARNINGS_SHOWN
    if more <= 0:
        return warnings
    return [*warnings[:WARNINGS_SHOWN], f"... and {more:,} more in summary.json"]


def _said(
    sentences_of: Callable[[Run], Sequence[str]], pairs: Sequence[tuple[str, Run]], label: str = ""
) -> list[str]:
    """What runs say, each sentence once, behind the names of those that say it, if not all do."""
    speakers: dict[str, list[str]] = {}
    for name, run in pairs:
        for sentence in dict.fromkeys(sentences_of(run)):
            speakers.setdefault(sentence, []).append(name)
    notes = []
    for sentence, names in speakers.items():
        start, who = label, "" if len(names) == len(pairs) else ", ".join(names)
        if who:
            start = f"{label} ({who})" if label else who
        notes.append(f"{start}: {sentence}" if start else sentence)
    return notes


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
            (
                f"p: paired randomisation test ({comparison.resamples:,} resamples), "
                f"Holm over {tested} comparisons (all pairs and metrics)"
            ),
            "no verdict on latency here: it needs the duet, not two medians",
        ],
    )


def _difference_row(delta: Delta) -> list[str]:
    pair = f"{delta.b} - {delta.a}"
    if delta.difference is None:
        return [pair, "-", "-", "-", f"{delta.verdict.value} ({delta.reason})"]
    verdict = delta.verdict.value
    if delta.verdict is Verdict.UNDECIDED and delta.queries_needed is not None:
        verdict += f" (~{delta.queries_needed:,} more)"
    return [
        pair,
        f"{delta.difference:+.4f}",
        _interval(delta.ci95, lambda value: f"{value:+.3f}"),
        "-" if delta.p_adjusted is None else _p(delta.p_adjusted),
        verdict,
    ]


def _title(summaries: Sequence[Mapping[str, Any]], what: str) -> str:
    """What was measured on what; only what holds for all ``summaries``."""
    data = {f"{s['dataset']['name']} ({s['dataset']['split']})" for s in summaries}
    cuts = {s["k"] for s in summaries}
    title = f"{what} on {data.pop() if len(data) == 1 else f'{len(data)} datasets'}"
    if len(cuts) == 1:
        title += f", k = {cuts.pop()}"
    partial = all(s.get("status") == "partial" for s in summaries)
    return title + (" - PARTIAL RUN" if partial else "")


def _notes(run: Run) -> list[str]:
    summary = run.summary
    notes = _measured_on(run)
    needless, with_hits = _unanswerable(summary)
    if needless:
        notes.append(
            f"{with_hits} of {needless} queries that need no search got hits (not in the means)"
        )
    if summary.get("n_failed"):
        failed = counted(summary["n_failed"], "query")
        notes.append(f"FAILED on {failed}; an evaluated one counts 0 in every mean")
    stalls = _latency(run).get("stalls")
    if stalls:
        notes.append(f"{counted(stalls, 'call')} far slower than their query usually is (stalls)")
    notes += _unsupported(summary)
    if summary.get("n_collapsed"):
        hits = counted(summary["n_collapsed"], "hit")
        notes.append(f"{hits} of a unit that was already in the ranking")
    notes += [f"health: {fact}" for fact in summary.get("health", ())]
    notes += [f"warning: {warning}" for warning in _shown_warnings(summary)]
    if run.folder is not None:
        notes.append(f"run: {_relative(run)}")
    return notes


def _unsupported(summary: Mapping[str, Any]) -> list[str]:
    """Why percentiles are not given, equal reasons together."""
    missing: dict[str, list[str]] = {}
    latency = summary.get("latency_ms", {})
    for level in _levels(latency):
        reason = latency[level].get("reason")
        if reason:
            missing.setdefault(reason, []).append(level)
    mix = latency.get("mix", {})
    for level in _levels(mix):
        reason = mix[level].get("reason")
        if reason:
            missing.setdefault(reason, []).append(f"by query {level}")
    return [f"{', '.join(levels)} not given: {reason}" for reason, levels in missing.items()]


def _measured_on(run: Run) -> list[str]:
    data, latency = run.summary["dataset"], _latency(run)
    environment = run.manifest.get("environment", {})
    machine = environment.get("machine", {})
    n_documents, n_not_run = data.get("n_documents", 0), data.get("n_not_run", 0)
    corpus = counted(n_documents, "document") if n_documents else "no corpus (external)"
    not_run = f", {n_not_run:,} not judged in this split" if n_not_run else ""
    return [
        (
            f"data: {corpus}; queries: {data.get('n_queries', 0):,} evaluated, "
            f"{data.get('n_unanswerable', 0):,} need no search{not_run}"
        ),
        (
            f"calls: {_launches(latency)}{counted(latency.get('rounds', 0), 'round')} "
            f"after a warm-up of {latency.get('warm_up_calls', 0):,} ({_steady(latency)}), "
            f"{counted(environment.get('threads', 1), 'thread')} while searching"
        ),
        (
            f"machine: {machine.get('processor', 'unknown')}, "
            f"{machine.get('usable_cores', '?')} cores, {machine.get('python', 'Python ?')}"
        ),
        (
            f"convention {run.summary.get('convention', '?')}, "
            f"ties: {run.summary.get('tie_rule', '?')}; fingerprint {data['fingerprint'][:12]}"
        ),
    ]


def _launches(latency: Mapping[str, Any]) -> str:
    n = latency.get("launches", 1)
    return f"{n} launches of " if n > 1 else ""


def _steady(latency: Mapping[str, Any]) -> str:
    return "not steady" if latency.get("steady_after") is None else "steady"


def _index_rows(summary: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    index, n_documents = summary.get("index", {}), summary["dataset"].get("n_documents", 0)
    rows = []
    if index.get("seconds"):
        rate = f"{n_documents / index['seconds']:,.0f} documents/s" if n_documents else ""
        rows.append(("index s", _seconds(index["seconds"]), "", rate))
    if index.get("disk_bytes"):
        rows.append(("disk MB", f"{index['disk_bytes'] / 1e6:,.1f}", "", "kept by the retriever"))
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


def quality_text(value: float | None) -> str:
    """A quality with the digits that are worth printing."""
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


def interval_text(ends: Sequence[float] | None) -> str:
    """An interval of a quality; empty where there is none."""
    return _interval(ends, quality_text)


def _interval(ends: Sequence[float] | None, form: Any) -> str:
    return "" if ends is None else f"[{form(ends[0])}, {form(ends[1])}]"


def tutorial_table(name: str, dataset: str, k: int, found: TutorialLatency) -> Table:
    """The four figures of the usual notebook, and what keeps them from being relied on."""
    how = f"timed once by the wall clock, after {found.warmup} spent on warming up"
    return Table(
        f"{name} on {dataset}, k = {k}, timed as in a tutorial",
        ("", "ms"),
        [(level, _ms(getattr(found, level))) for level in ("mean", "p50", "p95", "p99")],
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
            "every part was built and checked; indexing starts with a real run",
            *([until] if most is None else []),
            *(f"warning: {warning}" for warning in document["warnings"]),
        ],
    )
