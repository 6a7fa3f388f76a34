"""Tables of a history: the subjects, or the runs of one and the duets beside them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import change_text, ms_text, quality_text, signed
from retrieval_bench.reports.render.cells import COUNT, MILLISECONDS, QUALITY, RATIO, Content
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result
from retrieval_bench.reports.render.words import metric_label, on_dataset
from retrieval_bench_regress.history.facts import Figure, Found, SavedRun
from retrieval_bench_regress.history.trends import P50, P95, Line, Step, Subject

LEFT_OUT_SHOWN = 5
"""The JSON document names all."""


def history_tables(
    subjects: Sequence[Subject], records: Found, notes: Sequence[str] = ()
) -> list[Table]:
    """One table of runs and one of duets; of several subjects a line each.

    Args:
        notes: to stand at the end, such as where the picture is.
    """
    last = [*_left_out(records), *notes]
    if len(subjects) != 1:
        return [_overview(subjects, last)]
    (subject,) = subjects
    tables = [_runs(subject)] if subject.runs else []
    tables += [_duets(subject)] if subject.duets else []
    return [*tables[:-1], tables[-1].with_notes(last)]


# -- several subjects ----------------------------------------------------------------------------


def _overview(subjects: Sequence[Subject], notes: Sequence[str]) -> Table:
    rows: list[list[Content]] = []
    for subject in subjects:
        newest = next((run for run in reversed(subject.runs) if run.counts), None)
        metric = subject.metrics[0] if subject.metrics else ""
        rows.append(
            [
                subject.retriever,
                subject.dataset,
                COUNT(subject.n_runs),
                f"{subject.last:%Y-%m-%d %H:%M}",
                metric_label(metric),
                QUALITY(_value(newest.metrics.get(metric) if newest else None)),
                MILLISECONDS(_value(newest.latency.get(P50) if newest else None)),
            ]
        )
    retrievers = {subject.retriever for subject in subjects}
    command = ["retrieval-bench", "data", "history"]
    command.append(subjects[0].retriever if subjects else "NAME")
    command += ["--dataset", subjects[0].dataset] if len(retrievers) == 1 else []
    return Table(
        f"Saved runs of {counted(len(retrievers), 'retriever')}",
        ("retriever", "dataset", "runs", "last, UTC", "metric", "mean", "p50 ms"),
        rows,
        notes=[
            "mean and p50 are those of the newest run.",
            next_step(f"To see one over time, with a picture: {shlex.join(command)}"),
            *notes,
        ],
        words=(0, 1, 3, 4),
    )


# -- runs ----------------------------------------------------------------------------------------


def _runs(subject: Subject) -> Table:
    runs, metrics = subject.runs, subject.metrics
    configs = len(subject.configs) > 1
    lined = len(subject.quality_lines) > 1 or len(subject.latency_lines) > 1
    columns = ["date, UTC", "revision", *(["cfg"] if configs else [])]
    columns += [*map(metric_label, metrics), "p50", "p95", *(["line"] if lined else [])]
    rows: list[list[Content]] = []
    for at, run in enumerate(runs):
        row: list[Content] = [f"{run.created:%Y-%m-%d %H:%M}", run.revision]
        if configs:
            changed = at > 0 and run.config != runs[at - 1].config
            row.append(f"{subject.configs.index(run.config) + 1}{'*' if changed else ''}")
        row += [QUALITY(_value(run.metrics.get(metric))) for metric in metrics]
        row += [MILLISECONDS(_value(run.latency.get(level))) for level in (P50, P95)]
        row += [_on_line(run)] if lined else []
        rows.append(row)
    words = {0, 1, columns.index("cfg") if configs else 0}
    words |= {len(columns) - 1} if lined else set()
    return Table(
        _title(subject, len(runs), subject.n_runs, "run"),
        columns,
        rows,
        notes=_legend(subject, lined=lined),
        words=tuple(sorted(words)),
        lead=[
            *_newest(subject),
            *(note for step in subject.steps for note in step_words(subject, step, lined=lined)),
        ],
    )


def _newest(subject: Subject) -> list[AnyNote]:
    """The figures of the last whole run, as a sentence."""
    run = next((run for run in reversed(subject.runs) if run.counts), None)
    if run is None:
        return []
    figures = [
        f"{metric_label(metric)} {QUALITY(_value(run.metrics[metric])).text}"
        for metric in subject.metrics[:1]
        if metric in run.metrics
    ]
    if (p50 := _value(run.latency.get(P50))) is not None:
        figures.append(f"p50 {ms_text(p50)} ms")
    return [result(f"The newest run ({run.created:%Y-%m-%d %H:%M}): {', '.join(figures)}.")]


def _title(subject: Subject, shown: int, there: int, noun: str) -> str:
    some = "" if shown == there else f"the newest {shown:,} of "
    return f"{subject.retriever} {on_dataset(subject.dataset)}: {some}{counted(there, noun)}"


def _on_line(run: SavedRun) -> str:
    if not run.counts:
        return run.status
    return "".join(filter(None, (run.quality_line, run.latency_line)))


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


def _legend(subject: Subject, *, lined: bool) -> list[str]:
    runs = subject.runs
    notes = ["p50, p95: milliseconds of a call. The oldest run is listed first."]
    if any(run.dirty for run in runs):
        notes.append("+: files differed from the commit.")
    if len(subject.configs) > 1:
        notes.append(f"cfg: {'; '.join(_configs(subject))}. *: changed from the run before.")
    if lined:
        notes.append(
            "line: compare only runs on the same line; letters stand for quality, numbers for time."
        )
    notes += [f"{what}: {words}" for what, words in line_words(subject, lined=lined)]
    cut_short = sum(not run.counts for run in runs)
    if cut_short:
        notes.append(
            f"{counted(cut_short, 'run')} cut short: on no line, since the means are over other "
            "queries."
        )
    failed = sum(run.failed > 0 for run in runs)
    if failed:
        notes.append(f"Calls failed in {counted(failed, 'run')}: see n_failed in --format json.")
    return notes


def _configs(subject: Subject) -> list[str]:
    """Each config: what it has otherwise than the one before it."""
    first: dict[str | None, SavedRun] = {}
    for run in subject.runs:
        first.setdefault(run.config, run)
    known = list(first.values())
    configs = []
    for at, run in enumerate(known):
        name = f"{at + 1} = {(run.config or 'an object')[:6]}"
        if at:
            name += f" ({_difference(known[at - 1].params, run.params)})"
        configs.append(name)
    return configs


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    shown = [f"{key}={after.get(key, 'not set')}" for key in changed[:3]]
    if len(changed) > 3:
        shown.append(f"{len(changed) - 3} more")
    return ", ".join(shown) or "in its legs"


# -- lines ---------------------------------------------------------------------------------------


def line_words(subject: Subject, *, lined: bool = True) -> list[tuple[str, str]]:
    """Name of each line and in words what its runs have in common; of several lines what tells
    them apart."""
    machines = {run.same_latency.get("machine"): run.machine for run in subject.runs}
    different = _differing([line.same for line in subject.latency_lines])
    return [
        *(
            (f"line {line.label}" if lined else "quality", _quality_words(line))
            for line in subject.quality_lines
        ),
        *(
            (f"line {line.label}" if lined else "times", _latency_words(line, machines, different))
            for line in subject.latency_lines
        ),
    ]


def _quality_words(line: Line) -> str:
    same = line.same
    return (
        f"{same['split']}, k = {same['k']}, data {str(same['fingerprint'])[:12]}, convention "
        f"{same['convention']}, metrics version {same['metrics_version']}"
    )


def _latency_words(line: Line, machines: Mapping[Any, str], different: Sequence[str]) -> str:
    same = line.same
    machine = same["machine"]
    told = [f"{machines.get(machine, '?')} ({machine})", counted(int(same["threads"]), "thread")]
    if same["beside"]:
        told.append(f"beside {', '.join(same['beside'])}")
    flat = {**same, **same["protocol"]}
    told += [
        f"{key.removesuffix('_s').replace('_', '-')} "
        + ("not set" if flat[key] is None else str(flat[key])[:12])
        for key in different
        if key not in ("machine", "threads", "beside") and key in flat
    ]
    return ", ".join(told)


def _differing(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    flat = [{k: v for k, v in {**line, **line["protocol"]}.items() if k != "protocol"}
            for line in lines]  # fmt: skip
    return [key for key in dict.fromkeys(k for item in flat for k in item)
            if len({str(item.get(key)) for item in flat}) > 1]  # fmt: skip


# -- steps ---------------------------------------------------------------------------------------


def step_words(subject: Subject, step: Step, *, lined: bool = True) -> list[AnyNote]:
    """Say where the line moved most, how much equal code moves, and what decides. No verdict."""
    before, after = step.before, step.after
    names = [before.revision, after.revision]
    if before.config != after.config:
        numbers = [subject.configs.index(run.config) + 1 for run in (before, after)]
        names = [f"{name} (cfg {at})" for name, at in zip(names, numbers, strict=True)]
    on_line = f"line {step.line}, " if lined else ""
    form = ms_text if step.figure == P50 else quality_text
    a, b = (form(value) for value in step.values)
    size = change_text(step.change) if step.figure == P50 else signed(step.change)
    text = f"Largest step of {step.figure}: {size} from {names[0]} to {names[1]}"
    text += f" ({on_line}{a} to {b}{' ms' if step.figure == P50 else ''})."
    decides = next_step(shlex.join(step.decides))
    if step.figure != P50:
        return [result(f"{text} Is it more than chance?"), decides]
    text += " This is no verdict: "
    text += (
        "saved times of equal code differ, too (no code was run twice here)."
        if step.equal_code is None
        else f"runs of equal code differ by up to {100 * step.equal_code:.1f} % here."
    )
    if step.decides:
        return [result(f"{text} A duet decides:"), decides]
    if before.commit == after.commit is not None:
        why = "both are one revision"
    elif before.code is None or after.code is None:
        why = "the files of one are in no commit"
    else:
        why = "the saved runs do not tell how to make one of them again"
    return [result(f"{text} No duet can decide it afterwards: {why}.")]


# -- duets ---------------------------------------------------------------------------------------


def _duets(subject: Subject) -> Table:
    several = len(subject.trends) > 1
    rows: list[list[Content]] = [
        [
            f"{duet.created:%Y-%m-%d %H:%M}",
            duet.revision,
            *(
                RATIO(None) if ratio is None else RATIO(ratio.value, ratio.interval)
                for ratio in map(duet.ratios.get, (P50, P95))
            ),
            duet.verdict,
            *([duet.trend or "-"] if several else []),
        ]
        for duet in subject.duets
    ]
    columns = ["date, UTC", "revision", "p50", "p95", "verdict"]
    return Table(
        _title(subject, len(subject.duets), subject.n_duets, "duet"),
        [*columns, *(["line"] if several else [])],
        rows,
        notes=[
            (
                "Latency ratio, revision / pinned revision, with its 98 % interval: a trend, not a "
                "gate."
            ),
            *_trend_words(subject),
        ],
        words=(0, 1, 4, 5) if several else (0, 1, 4),
    )


def _trend_words(subject: Subject) -> list[str]:
    messages = [f"line {line.label}: against {trend_words(line)}" for line in subject.trends]
    free = sum(duet.pinned is None for duet in subject.duets)
    if free:
        messages.append(f"{counted(free, 'duet')} on no line: side a is not a revision (--rev-a).")
    return messages


def trend_words(line: Line) -> str:
    """Say what the duets of a line were played against, and where."""
    same = line.same
    told = [f"{same['retriever']} at {str(same['commit'])[:7]}", *same["overrides"]]
    return f"{' '.join(told)}, {same['split']}, k = {same['k']}, machine {same['machine']}"


def _left_out(records: Found) -> list[str]:
    messages = [
        f"Left out: {left_out.folder}: {left_out.reason}."
        for left_out in records.left_out[:LEFT_OUT_SHOWN]
    ]
    more = len(records.left_out) - LEFT_OUT_SHOWN
    if more > 0:
        messages.append(
            f"Left out: {more:,} more folders that are not runs; --format json names them."
        )
    if records.copies:
        count = "counts" if records.copies == 1 else "count"
        messages.append(f"{counted(records.copies, 'run')} stood there twice and {count} once.")
    return messages
