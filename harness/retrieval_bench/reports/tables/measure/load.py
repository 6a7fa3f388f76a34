"""What is shown of a retriever under load."""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import end_text, quality_text, short_ms, signed
from retrieval_bench.load.capacity import Capacity
from retrieval_bench.load.levels import LevelResult, State
from retrieval_bench.load.load import Loaded, LoadResult
from retrieval_bench.load.tails import Tail
from retrieval_bench.reports.render.cells import (
    RATE,
    SHORT_MS,
    SHORT_QUALITY,
    Cell,
    Content,
    count,
)
from retrieval_bench.reports.render.table import (
    AnyNote,
    Note,
    NoteKind,
    Table,
    next_step,
    result,
    warning,
)
from retrieval_bench.reports.render.words import metric_label, on_dataset
from retrieval_bench.reports.tables.measure.load_course import course_tables
from retrieval_bench.runs.run import relative_folder

_TOLD = 4
"""Levels of which it is told in short why they were not measured."""

_SHOWN = 8
"""Levels of a search for a limit that are shown in short."""


def load_tables(load: LoadResult, *, full: bool = False) -> list[Table]:
    """One table, a row for each level.

    Args:
        full: also the time of service, the generator's lag, and how well percentiles are known.
    """
    metric = load.unloaded.quality.metric if load.unloaded.quality else None
    columns = ["load", "answers/s", "p50 ms", "p95 ms", "p99 ms", "service p99", "failed"]
    if metric:
        columns.append(metric_label(metric))
    rows = [_row("one at a time", load.unloaded, metric)]
    levels = list(load.levels) if full else _nearest(load)
    rows += [_row(one.result.name, one, metric) for one in levels]
    main = Table(
        f"{load.retriever} {on_dataset(load.dataset)} under load: {_answer(load)}",
        columns,
        rows,
        (1,),
        _notes(load, full=full),
        lead=[*_quality(load), *map(warning, load.warnings)],
    )
    return [main, *course_tables(load), *([_details(load)] if full else [])]


def _nearest(load: LoadResult) -> list[Loaded]:
    """The levels to show in short, by rising rate: of a search those around the limit."""
    levels = sorted(load.levels, key=lambda one: (one.result.clients or 0, one.result.rate or 0.0))
    ends = load.capacity and [one for one in (load.capacity.keeps, load.capacity.breaks) if one]
    if not ends or len(levels) <= _SHOWN:
        return levels
    middle = math.log(math.prod(ends)) / len(ends)
    far = {id(one): abs(math.log(one.result.rate or 1e-9) - middle) for one in levels}
    near = sorted(levels, key=lambda one: far[id(one)])[:_SHOWN]
    return [one for one in levels if one in near]


def _rate(rate: float) -> str:
    return RATE.text(rate)


def _answer(load: LoadResult) -> str:
    """The highest load that it stood, and how."""
    if load.capacity is not None:
        return _capacity_words(load.capacity)
    open_ = [one.result for one in load.levels if one.result.clients is None]
    kept = [one for one in open_ if one.state is State.MEASURED]
    broken = [one for one in open_ if one.state is State.OVERLOADED]
    if kept:
        best = max(kept, key=lambda one: one.rate or 0.0)
        words = f"at {_rate(best.rate or 0.0)} queries a second {_tail_words(best)}"
        above = [one for one in broken if (one.rate or 0.0) > (best.rate or 0.0)]
        if above:
            least = min(above, key=lambda one: one.rate or 0.0)
            words += f"; overloaded at {_rate(least.rate or 0.0)}"
        return words
    if broken:
        least = min(broken, key=lambda one: one.rate or 0.0)
        return f"overloaded at {_rate(least.rate or 0.0)} queries a second"
    closed = [one.result for one in load.levels if one.result.state is State.MEASURED]
    if not closed:
        return "not measured"
    best = max(closed, key=lambda one: one.answered_rate)
    clients = counted(best.clients or 0, "client")
    return f"{_rate(best.answered_rate)} answers a second with {clients}, {_tail_words(best)}"


def _capacity_words(capacity: Capacity) -> str:
    """``keeps p99 below 200 ms up to 84 to 92 queries a second``."""
    limit, low, high = capacity.limit, capacity.keeps, capacity.breaks
    if low is None and high is None:
        return f"no rate was shown to keep {limit}, or to break it"
    if low is None:
        return (
            f"{_rate(high or 0.0)} queries a second break {limit}, and no rate was shown to keep it"
        )
    if high is None:
        return f"keeps {limit} at {_rate(low)} queries a second; what breaks it was not found"
    rough = " (rough)" if capacity.rough else ""
    return f"keeps {limit} up to {_rate(low)} to {_rate(high)} queries a second{rough}"


def _tail_words(level: LevelResult) -> str:
    for one in reversed(level.latency):
        if one.ms is not None or one.above_ms is not None:
            return f"p{one.level:g} is {_ms(one)}"
    return "its percentiles are not known well enough"


def _ms(tail: Tail) -> str:
    if tail.ms is None:
        return f"> {(tail.above_ms or 0.0) / 1e3:g} s"
    low, high = tail.ci95 or (None, None)
    ends = "" if low is None else f" [{short_ms(low)}, {'-' if high is None else short_ms(high)}]"
    return f"{short_ms(tail.ms)}{ends} ms"


def _row(name: str, one: Loaded, metric: str | None) -> list[Content]:
    level = one.result
    if level.state is State.MEASURED:
        times = [_cell(tail) for tail in level.latency]
        service = _cell(level.service[-1])
    else:
        times = [Cell(str(level.state)), Cell(None), Cell(None)]
        service = Cell(None)
    failed = count(level.failed) if level.failed else Cell("0")
    row: list[Content] = [name, Cell(level.answered_rate, RATE), *times, service, failed]
    if metric:
        row.append(Cell(one.quality.mean if one.quality else None, SHORT_QUALITY))
    return row


def _cell(tail: Tail) -> Cell:
    if tail.above_ms is not None:
        return Cell(_ms(tail))
    return Cell(tail.ms, SHORT_MS)


def _quality(load: LoadResult) -> list[AnyNote]:
    """Whether the answers under load are those without, in a sentence."""
    sure = [one for one in load.levels if one.quality is not None]
    changed = [one for one in sure if one.quality and one.quality.changed]
    failed = [one for one in sure if one.result.failed]
    if not sure:
        return []
    if not changed and not failed:
        compared = sum(one.quality.compared for one in sure if one.quality)
        rest = sum(one.result.answered for one in sure) - compared
        text = "Every answer under load is one that the query also gets without load"
        if rest:
            text += f" ({compared:,} answers; {rest:,} more are to queries not asked without load)"
        return [result(f"{text}.")]
    notes: list[AnyNote] = []
    for one in [*changed, *(one for one in failed if one not in changed)]:
        quality, level = one.quality, one.result
        if quality is None:
            continue
        parts = []
        if quality.changed:
            share = f"{quality.changed:,} of {quality.compared:,} answers differ from those without"
            parts.append(f"{share} load ({quality.empty:,} empty, {quality.fewer:,} shorter)")
        if level.failed:
            kinds = ", ".join(f"{n:,} {kind}" for kind, n in level.errors.items())
            parts.append(f"{level.failed:,} of {level.calls:,} calls had no answer ({kinds})")
        if quality.difference is not None and quality.ci95 is not None and quality.metric:
            low, high = quality.ci95
            gap = f"{signed(quality.difference, 3)} [{end_text(low)}, {end_text(high)}]"
            parts.append(f"{metric_label(quality.metric)} {gap}")
        notes.append(warning(f"{level.name}: {'; '.join(parts)}."))
    return notes


def _notes(load: LoadResult, *, full: bool) -> list[AnyNote]:
    told = [one.result for one in (load.levels if full else _nearest(load)) if one.result.reasons]
    notes: list[AnyNote] = [
        warning(f"{one.name} {one.state}: {'; '.join(one.reasons)}.")
        for one in (told if full else told[:_TOLD])
    ]
    if len(told) > _TOLD and not full:
        notes.append(warning(f"{len(told) - _TOLD} more levels were no better: -v says why."))
    hidden = len(load.levels) - len(_nearest(load))
    if hidden and not full:
        text = f"more: {counted(hidden, 'level')} farther from the limit: -v"
        notes.append(Note(text, NoteKind.MORE))
    notes += _fewer_queries(load)
    if load.capacity is not None and load.capacity.reason:
        notes.append(warning(f"The limit: {load.capacity.reason}."))
    bound = [one.result.name for one in load.levels if one.result.interpreter_bound]
    if bound:
        notes.append(
            warning(
                f"{', '.join(bound)}: the retriever runs in one Python process, whose lock let it "
                "use one core; --processes shares the load."
            )
        )
    missing = [
        f"{one.result.name} p{tail.level:g}: {tail.reason}"
        for one in load.levels
        for tail in one.result.latency
        if tail.reason
    ]
    if missing:
        more = f" (and {len(missing) - 1:,} more)" if missing[1:] and not full else ""
        shown = "; ".join(missing) if full else missing[0]
        notes.append(f"Not printed: {shown}{more}. A longer --duration gives more calls.")
    notes.append(
        "Latency counts from when a call was due, service from when it was made. "
        f"{_asked(load)} k = {load.k}."
    )
    if load.folder is not None:
        notes.append(next_step(f"saved: {relative_folder(load)}"))
    return notes


def _fewer_queries(load: LoadResult) -> list[AnyNote]:
    """Whose quality is that of other queries than stand above it."""
    alone = load.unloaded.quality
    told = [
        f"{one.result.name} {counted(one.quality.queries, 'query')}, "
        f"{quality_text(one.quality.unloaded)} without load"
        for one in load.levels
        if alone and one.quality and one.quality.queries != alone.queries
    ]
    if not told or alone is None or not alone.metric:
        return []
    more = f" (and {len(told) - 1:,} more)" if told[1:] else ""
    asked = f"queries that were asked with and without load, here {counted(alone.queries, 'query')}"
    return [f"{metric_label(alone.metric)} is that of the {asked}; {told[0]}{more}."]


def _asked(load: LoadResult) -> str:
    processes = counted(load.processes, "process")
    if load.external:
        most = max([load.slots, *(one.result.clients or 0 for one in load.levels)])
        return f"Up to {counted(most, 'connection')} from {processes}."
    how = counted(load.slots, "thread") if load.shared else "one call at a time"
    own = f"The retriever runs in the generator's own processes ({processes}, {how} each"
    apart = any(one.result.clients for one in load.levels) and not load.shared
    return f"{own}; of clients in turn, one each)." if apart else f"{own})."


def _details(load: LoadResult) -> Table:
    columns = ("load", "", "p50 ms", "p95 ms", "p99 ms", "calls that count")
    rows: list[Sequence[Content]] = []
    for one in [load.unloaded, *load.levels]:
        name = one.result.name
        kinds = (
            ("latency", one.result.latency),
            ("service", one.result.service),
            ("lag", one.result.lag),
        )
        for kind, found in kinds:
            if found:
                cells = [Cell(one.ms, SHORT_MS, _ends(one)) for one in found]
                rows.append([name, kind, *cells, count(min(t.effective_calls for t in found))])
    return Table("How well the times are known", columns, rows, words=(0, 1))


def _ends(tail: Tail) -> tuple[float, float] | None:
    if tail.ci95 is None or tail.ci95[1] is None:
        return None
    return tail.ci95[0], tail.ci95[1]
