"""What a cold start shows: the steps until the first answer, then what follows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.experiment.cold import STEADY_SECONDS, UNTIL_FIRST_ANSWER, ColdStart
from retrieval_bench.measure.steady import WINDOW, WINDOWS
from retrieval_bench.reports.render.table import Table

_SHARE = 0.1
"""Of a step from which on the importing in it gets a row of its own."""

_MEANING: Mapping[str, str] = {
    "interpreter": "Python starts",
    "import": "this project, the retriever's class and what its module imports",
    "build": "the retriever is made from its config",
    "model load": "what it loads before there are documents",
    "documents": "the corpus is read from its file",
    "index load": "an index that was saved before is read",
    "index build": "the index is made from the documents",
}

_OUTSIDE = (
    f"{UNTIL_FIRST_ANSWER}: the sum of the steps above it; reading and checking queries and "
    "judgements, which only a benchmark does, is in none of them"
)
_AGAIN = (
    "the second query is another one than the first; first query again: median of its later calls"
)
_FILES = (
    "files: the operating system keeps files in memory that were read before, and only an "
    "administrator can undo that; at most the first process read from disk"
)


def cold_tables(start: ColdStart) -> list[Table]:
    """One table: a row for each step in milliseconds, searches, memory, index; and what it means.

    ``first process`` is apart from the others, over which median, min and max are.
    """
    document = start.as_dict()
    steps = _steps(document)
    searches = [
        _row("second query", document["steps_ms"]["second query"], _ms),
        _row("first query again, warm", document["same_query_warm_ms"], _ms),
        _row("calls until steady", document["calls_until_steady"], _whole),
        _row("seconds until steady", document["seconds_until_steady"], _seconds),
    ]
    memory = [
        _row(f"peak memory MB, {when}", entry, _megabytes)
        for when, entry in document["peak_rss_bytes"].items()
    ]
    data = document["dataset"]
    title = f"cold start of {start.retriever} on {data['name']} ({data['split']}), k = {start.k}"
    partial = f" - PARTIAL: {len(start.processes)} of {start.planned} processes"
    return [
        Table(
            title + (partial if start.partial else ""),
            ("ms, unless said otherwise", "median", "min", "max", "first process"),
            [*steps, *searches, *memory],
            (len(steps) - 1, len(steps), len(steps) + len(searches)),
            _notes(start, document),
        )
    ]


def _steps(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for step, entry in document["steps_ms"].items():
        if step == "second query" or not entry["values"]:
            continue
        rows.append(_row(step, entry, _ms))
        imports = document["imports_ms"].get(step)
        if imports and imports["median"] >= max(1.0, _SHARE * entry["median"]):
            rows.append(_row("  importing in it", imports, _ms))
    return [*rows, _row(UNTIL_FIRST_ANSWER, document["until_first_answer_ms"], _ms)]


def _row(
    name: str, entry: Mapping[str, Any], form: Callable[[float | None], str]
) -> tuple[str, ...]:
    return (name, *(form(entry[which]) for which in ("median", "min", "max", "first")))


def _notes(start: ColdStart, document: Mapping[str, Any]) -> list[str]:
    steps = [step for step, entry in document["steps_ms"].items() if entry["values"]]
    notes = [
        _processes(start),
        "; ".join(f"{step}: {_MEANING[step]}" for step in steps if step in _MEANING),
    ]
    if any("importing" in row[0] for row in _steps(document)):
        notes.append("importing in it: libraries that are imported only where they are needed")
    notes += [
        _OUTSIDE,
        _AGAIN,
        _steady(start),
        *(f"{step} not given: {reason}" for step, reason in start.without.items()),
        *_index(start, document["index"]),
        _FILES,
    ]
    if document["failed_calls"]:
        notes.append(f"FAILED searches, not counted above: {document['failed_calls']:,}")
    notes += [f"health: {fact}" for fact in document["health"]]
    notes += [f"warning: {warning}" for warning in document["warnings"]]
    if start.problem:
        notes.append("stopped early: " + "; ".join(map(str.strip, start.problem.splitlines())))
    return notes


def _processes(start: ColdStart) -> str:
    n, others = len(start.processes), len(start.others)
    threads = counted(start.threads, "thread")
    if n == 1:
        return f"1 fresh process; {threads} while searching"
    over = f"the {others} after the first" if others > 1 else "the second one"
    return (
        f"{n} fresh processes, one after the other; median, min and max over {over}; "
        f"{threads} while searching"
    )


def _steady(start: ColdStart) -> str:
    never = sum(not process.steady for process in start.processes)
    earliest = f"seen at the earliest after {start.n_queries + WINDOW * WINDOWS:,} calls"
    note = (
        "steady: the times of three successive windows of 50 repeated queries agree within 2 % "
        f"({earliest})"
    )
    if not never:
        return note
    calls = max(process.calls for process in start.processes if not process.steady)
    return (
        f"{note}; NOT reached by {never} of {len(start.processes)} processes "
        f"within {STEADY_SECONDS:g} s (up to {calls:,} calls)"
    )


def _index(start: ColdStart, index: Mapping[str, Any]) -> Sequence[str]:
    parts = []
    if index["how"] == "loaded" and index["build_ms"] is not None:
        parts.append(
            f"built and saved once by a process before these, in {_ms(index['build_ms'])} ms"
        )
    elif index["how"] == "built":
        parts.append("built in every process, for this retriever cannot save and load one")
    if index["documents_per_second"] is not None:
        n = start.dataset["n_documents"]
        rate = f"{index['documents_per_second']:,.0f}"
        parts.append(f"{counted(n, 'document')}, {rate} documents/s (importing left out)")
    if index["disk_bytes"] is not None:
        parts.append(f"{index['disk_bytes'] / 1e6:,.2f} MB on disk")
    return [f"index: {'; '.join(parts)}"] if parts else []


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value / 1e6:,.0f}"
