"""Sentences on a run: what was measured on what, what is missing and why."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import LEAST_SHOWN_MS
from retrieval_bench.core.notices import Code, says
from retrieval_bench.data.needs_judgements import judged_by
from retrieval_bench.reports.render.table import AnyNote, Note, NoteKind
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench.runs.run import Run
from retrieval_bench.runs.summary import DatasetFacts, Summary
from retrieval_bench.runs.timing_facts import LatencyFacts

_ABSOLUTE = re.compile(
    r"""(?<![\w:/.…~])(?:/(?:[^/\s"'<>:,;]+/)+|[A-Za-z]:\\(?:[^\\\s"'<>:,;]+\\)*)"""
)
"""The folders of an absolute path within a text; not those of a URL."""

WARNINGS_SHOWN = 5
"""Of each run; the others are in its summary.json."""


def title_of(summaries: Sequence[Summary], what: str) -> str:
    """Write the title: what was measured on what; only what holds for all ``summaries``."""
    data = {f"{on_dataset(s.dataset.name)} ({s.dataset.split})" for s in summaries}
    cuts = {s.k for s in summaries}
    title = f"{what} {data.pop() if len(data) == 1 else f'on {len(data)} datasets'}"
    if len(cuts) == 1:
        title += f", k = {cuts.pop()}"
    partial = all(s.status == "partial" for s in summaries)
    return title + (" - PARTIAL RUN" if partial else "")


def measured_on(run: Run) -> list[AnyNote]:
    """Data, calls, machine and convention, a sentence each."""
    data = run.summary.dataset
    environment = run.manifest.get("environment", {})
    machine = environment.get("machine", {})
    n = data.n_unanswerable
    besides = [f"{counted(n, 'unanswerable query')} not scored"] * bool(n)
    besides += [f"{data.n_not_run:,} not judged in this split"] * bool(data.n_not_run)
    if filters := run.summary.filters:
        leaked = ", no hit outside of it" if filters.leaked == 0 else ""
        besides.append(f"{counted(filters.queries, 'query')} with a filter{leaked}")
    counting = evaluated(data)
    if not run.judged:
        counting = f"{counted(len(run.rankings.query_ids), 'query')}, none of them judged"
    return [
        f"Data: {corpus(data)}; {'; '.join([counting, *besides])}.",
        *_calls(run),
        (
            f"Machine: {machine.get('processor', 'unknown')}, "
            f"{machine.get('usable_cores', '?')} cores, {machine.get('python', 'Python ?')}."
        ),
        (
            f"Convention: {run.summary.convention}; ties: "
            f"{run.summary.tie_rule}; data fingerprint {data.fingerprint[:12]}."
        ),
    ]


def _calls(run: Run) -> list[AnyNote]:
    """Say how queries were asked; nothing of rankings that were read from a file."""
    latency, until = run.summary.latency_ms, run.summary.until_decided
    if until is not None and run.asked is not None:
        asked = f"{until.asked:,} of {counted(until.queries, 'query')}"
        return [f"Calls: {asked}, each asked once, without warm-up, until decided."]
    if replayed(run):
        return []
    threads = run.manifest.get("environment", {}).get("threads", 1)
    return [
        Note(
            f"Calls: {_launches(latency)}{counted(latency.rounds, 'round')} after "
            f"{counted(latency.warm_up_calls, 'call')} of warm-up ({_steady(latency)}), "
            f"{counted(threads, 'thread')}.",
            NoteKind.WARNING if latency.steady_after is None else NoteKind.METHOD,
        )
    ]


def replayed(run: Run) -> bool:
    """Say whether times are left out because rankings were read from a file."""
    latency = run.summary.latency_ms
    return run.asked is None and latency.mean is None and latency.n > 0


def corpus(data: DatasetFacts) -> str:
    """Return how many documents there are."""
    n = data.n_documents
    return counted(n, "document") if n else "no corpus here (external)"


def evaluated(data: DatasetFacts) -> str:
    """Return how many queries count."""
    return f"{counted(data.n_queries, 'evaluated query')}{origin_of(data)}"


def origin_of(data: DatasetFacts) -> str:
    """Return who judged the queries, and how many of them were made from the document that answers
    them; nothing where that is not known."""
    message = ""
    if made := data.known_items:
        copied = made.get("copied")
        words = "" if copied is None else f", {100 * copied:.0f} % of their words copied"
        message += f" ({made['n']:,} known-item{words})"
    if judges := judged_by(data.judges):
        message += f", {judges}"
    return message


def _launches(latency: LatencyFacts) -> str:
    n = latency.launches
    return f"{n} launches of " if n > 1 else ""


def _steady(latency: LatencyFacts) -> str:
    settled = latency.steady_after is not None
    return "times had settled" if settled else "times had not settled"


def unsupported(summary: Summary) -> list[str]:
    """Return why percentiles are missing, equal reasons together."""
    missing: dict[str, list[str]] = {}
    latency = summary.latency_ms
    for prefix, family in (("", latency.levels), ("per-query ", latency.mix.levels)):
        for level, entry in family.items():
            if entry.reason:
                missing.setdefault(entry.reason, []).append(f"{prefix}{level}")
    return [f"No {', '.join(names)}: {reason}." for reason, names in missing.items()]


def of_one_run(run: Run) -> list[str]:
    """The first warnings of a run in a comparison, which itself tells of equal questions."""
    about = [text for text in run.summary.warnings if not says([text], Code.SAME_QUESTION)]
    return shown_warnings(run.summary.replace(warnings=about))


def shown_warnings(summary: Summary) -> list[str]:
    """The first warnings, and how many more there are."""
    warnings = list(summary.warnings)
    more = len(warnings) - WARNINGS_SHOWN
    if more <= 0:
        return warnings
    return [*warnings[:WARNINGS_SHOWN], f"... and {more:,} more in summary.json"]


def below_clock(run: Run) -> bool:
    """Return whether half of the calls took no time that a clock can tell."""
    p50 = run.summary.latency_ms.at("p50").value
    return p50 is not None and p50 < LEAST_SHOWN_MS


def without_folders(value: Any) -> Any:
    """``value`` with "…/NAME" for every absolute path in its strings: a page that is passed on need
    not say where things lie on the machine of its author."""
    if isinstance(value, str):
        absolute = PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute()
        if absolute and not re.search(r"\n|[:,;] ", value):  # else a sentence
            return "…/" + re.split(r"[/\\]", value.rstrip("/\\"))[-1]
        return _ABSOLUTE.sub("…/", value)
    if isinstance(value, Mapping):
        return {key: without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(item) for item in value]
    return value
