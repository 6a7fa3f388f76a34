"""Tables of a cold start: the steps until the first answer, then what follows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.measure.steady import WINDOW, WINDOWS
from retrieval_bench.reports.render.cells import (
    COUNT,
    MEGABYTES,
    MILLISECONDS,
    SECONDS,
    Content,
    Form,
)
from retrieval_bench.reports.render.table import AnyNote, Table, in_short, legend, warning
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench_fresh.cold import STEADY_SECONDS, UNTIL_FIRST_ANSWER, ColdStart

_SHARE = 0.1
"""Of a step from which on the importing in it gets a row of its own."""

_IMPORTING = "  of that, importing"

_MEANING: Mapping[str, str] = {
    "interpreter": "Python starts",
    "import": "this project, the retriever's class and what its module imports",
    "build": "the retriever is made from its config",
    "model load": "what it loads before there are documents",
    "documents": "the corpus is read from its file",
    "index load": "an index that was saved before is read",
    "index build": "the index is made from the documents",
    _IMPORTING: "libraries that are imported only where they are needed",
    UNTIL_FIRST_ANSWER: (
        "the sum of the steps above it, without reading and checking queries and judgements, "
        "which only a benchmark does"
    ),
}


def cold_tables(start: ColdStart) -> list[Table]:
    """One table: a row for each step in milliseconds, searches, memory, index; and what it means.

    ``first process`` is apart from the others, over which median, min and max are.
    """
    document = start.as_dict()
    steps = _steps(document)
    searches = [
        _row("second query", document["steps_ms"]["second query"]),
        _row("first query again, warm", document["same_query_warm_ms"]),
        _row("calls until steady", document["calls_until_steady"], COUNT),
        _row("seconds until steady", document["seconds_until_steady"], SECONDS),
    ]
    memory = [
        _row(f"peak memory MB, {when}", entry, MEGABYTES)
        for when, entry in document["peak_rss_bytes"].items()
    ]
    data = document["dataset"]
    where = f"{on_dataset(data['name'])} ({data['split']})"
    title = f"Cold start of {start.retriever} {where}, k = {start.k}"
    partial = f" - PARTIAL: {start.finished} of {start.planned} processes"
    return [
        Table(
            title + (partial if start.status == "partial" else ""),
            ("ms, unless said otherwise", "median", "min", "max", "first process"),
            [*steps, *searches, *memory],
            (len(steps) - 1, len(steps), len(steps) + len(searches)),
            _notes(start, document, [str(row[0]) for row in steps]),
        )
    ]


def cold_brief(start: ColdStart) -> list[Table]:
    """The same until the first answer."""
    (table,) = cold_tables(start)
    few = replace(table, rows=table.rows[: table.rules[1]], rules=table.rules[:1])
    return in_short([few], "later queries, when it is steady, memory, what each step is")


def _steps(document: Mapping[str, Any]) -> list[list[Content]]:
    rows = []
    for step, entry in document["steps_ms"].items():
        if step == "second query" or not entry["values"]:
            continue
        rows.append(_row(step, entry))
        imports = document["imports_ms"].get(step)
        if imports and imports["median"] >= max(1.0, _SHARE * entry["median"]):
            rows.append(_row(_IMPORTING, imports))
    return [*rows, _row(UNTIL_FIRST_ANSWER, document["until_first_answer_ms"])]


def _row(name: str, entry: Mapping[str, Any], form: Form = MILLISECONDS) -> list[Content]:
    return [name, *(form(entry[which]) for which in ("median", "min", "max", "first"))]


def _notes(start: ColdStart, document: Mapping[str, Any], names: Sequence[str]) -> list[AnyNote]:
    meanings = (f"{name.strip()}: {_MEANING[name]}" for name in _MEANING if name in names)
    notes: list[AnyNote] = [
        legend(_processes(start)),
        f"{'; '.join(meanings)}.",
        "The second query is not the first. First query again: median of its later calls.",
        *_steady(start),
        *(f"No time of the step {step}: {reason}." for step, reason in start.without.items()),
        *_index(start, document["index"]),
        (
            "The operating system keeps files in memory that were read before, and only an "
            "administrator can undo that: at most the first process read from disk."
        ),
        *document["health"],
    ]
    if document["failed_calls"]:
        failed = counted(document["failed_calls"], "search")
        notes.append(warning(f"{failed} FAILED and are not counted above."))
    notes += map(warning, document["warnings"])
    if start.problem:
        problem = "; ".join(map(str.strip, start.problem.splitlines()))
        notes.append(warning(f"It stopped early: {problem}"))
    return notes


def _processes(start: ColdStart) -> str:
    n, others = start.finished, max(1, start.finished - 1)
    threads = f"Searches had {counted(start.threads, 'thread')}."
    if n == 1:
        return f"1 fresh process ran. {threads}"
    over = f"the {others} after the first" if others > 1 else "the second one"
    return (
        f"{n} fresh processes ran one after the other; median, min and max are over {over}. "
        f"{threads}"
    )


def _steady(start: ColdStart) -> list[AnyNote]:
    note = (
        "Steady: the times of three successive windows of 50 repeated queries agree within 2 %, "
        f"which takes at least {start.dataset.n_queries + WINDOW * WINDOWS:,} calls."
    )
    never = [process.calls for process in start.processes if not process.steady]
    if not never:
        return [note]
    return [
        note,
        warning(
            f"{len(never)} of the processes did not become steady within {STEADY_SECONDS:g} s (up "
            f"to {max(never):,} calls)."
        ),
    ]


def _index(start: ColdStart, index: Mapping[str, Any]) -> list[str]:
    sentences = []
    if index["how"] == "loaded" and index["build_ms"] is not None:
        ms = MILLISECONDS(index["build_ms"]).text
        sentences.append(f"The index was built and saved once by an earlier process, in {ms} ms.")
    elif index["how"] == "built":
        sentences.append(
            "The index was built in every process, for this retriever cannot save and load one."
        )
    if index["documents_per_second"] is not None:
        n, rate = start.dataset.n_documents, COUNT(index["documents_per_second"]).text
        indexed = f"{counted(n, 'document')} were indexed, {rate} a second"
        sentences.append(f"{indexed} (without importing).")
    if index["disk_bytes"] is not None:
        sentences.append(f"The index takes {MEGABYTES.text(index['disk_bytes'])} MB on disk.")
    return [" ".join(sentences)] if sentences else []
