"""Tables of a retriever under load, and of two loads side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrieval_bench.comparison.claims import unless_open
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import end_text, quality_text, short_ms, signed
from retrieval_bench.reports.render.cells import (
    COUNT,
    RATE,
    SHORT_MS,
    SHORT_QUALITY,
    Cell,
    Content,
    Form,
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
from retrieval_bench.runs.run import relative_folder
from retrieval_bench_load.engine.bracket import Capacity
from retrieval_bench_load.engine.levels import LevelResult, State
from retrieval_bench_load.engine.load import Loaded, LoadResult
from retrieval_bench_load.engine.soak import Course, Part
from retrieval_bench_load.engine.tails import Tail

_TOLD = 4
"""Levels of which it is told in short why they were not measured."""

_REFUSALS = 3
"""Levels of which refused requests are told in short, the last ones."""

_MOST = 0.5
"""Share of calls that repeat a query from which on it is told how to do without."""

_SHOWN = 8
"""Levels of a search for a limit that are shown in short."""


def load_tables(load: LoadResult, *, full: bool = False) -> list[Table]:
    """One table, a row for each level.

    Args:
        full: also the time of service, the generator's lag, and how well percentiles are known.
    """
    metric = load.unloaded.quality.metric if load.unloaded.quality else None
    times = ["p50 ms", "p95 ms", "p99 ms", "service p99"]
    columns = ["load", "answers/s", *times, "failed", "refused"]
    if metric:
        columns.append(metric_label(metric))
    rows = [_row("one at a time", load.unloaded, metric)]
    levels = list(load.levels) if full else _nearest(load)
    rows += [_row(level.result.name, level, metric) for level in levels]
    main = Table(
        f"{load.retriever} {on_dataset(load.dataset)} under load: "
        + unless_open("load", _answer(load), load.warnings),
        columns,
        rows,
        (1,),
        _notes(load, full=full),
        lead=[*_refusals(load, full=full), *_quality(load), *map(warning, load.warnings)],
    )
    courses = [_course(level, level.course) for level in load.levels if level.course is not None]
    return [main, *courses, *([_details(load)] if full else [])]


def _nearest(load: LoadResult) -> list[Loaded]:
    """The levels to show in short, by rising rate: of a search those around the limit."""
    levels = sorted(
        load.levels, key=lambda level: (level.result.clients or 0, level.result.rate or 0.0)
    )
    ends = load.capacity and [
        level for level in (load.capacity.keeps, load.capacity.breaks) if level
    ]
    if not ends or len(levels) <= _SHOWN:
        return levels
    middle = math.log(math.prod(ends)) / len(ends)
    far = {id(level): abs(math.log(level.result.rate or 1e-9) - middle) for level in levels}
    near = sorted(levels, key=lambda level: far[id(level)])[:_SHOWN]
    return [level for level in levels if level in near]


def _answer(load: LoadResult) -> str:
    """The highest load that it stood, and how."""
    if load.capacity is not None:
        return _capacity_words(load.capacity)
    open_ = [level.result for level in load.levels if level.result.clients is None]
    kept = [level for level in open_ if level.state is State.MEASURED]
    broken = [level for level in open_ if level.state is State.OVERLOADED]
    if kept:
        best = max(kept, key=lambda level: level.rate or 0.0)
        words = f"at {RATE.text(best.rate or 0.0)} queries a second {_tail_words(best)}"
        above = [level for level in broken if (level.rate or 0.0) > (best.rate or 0.0)]
        if above:
            least = min(above, key=lambda level: level.rate or 0.0)
            words += f"; overloaded at {RATE.text(least.rate or 0.0)}"
        return words
    if broken:
        least = min(broken, key=lambda level: level.rate or 0.0)
        return f"overloaded at {RATE.text(least.rate or 0.0)} queries a second"
    closed = [level.result for level in load.levels if level.result.state is State.MEASURED]
    if not closed:
        return "not measured"
    best = max(closed, key=lambda level: level.answered_rate)
    clients = counted(best.clients or 0, "client")
    rate = f"{RATE.text(best.rate_without_waits)} answers a second with {clients}"
    without = ", waits before repetitions left out" if best.waiting else ""
    return f"{rate}{without}; {_tail_words(best)}"


def _capacity_words(capacity: Capacity) -> str:
    """``keeps p99 below 200 ms up to 84 to 92 queries a second``."""
    limit, low, high = capacity.limit, capacity.keeps, capacity.breaks
    lost = f"; {capacity.not_measured} of {counted(capacity.levels, 'level')} not measured"
    rest = (" (rough)" if capacity.rough else "") + (lost if capacity.not_measured else "")
    if capacity.beyond:
        return f"one call at a time breaks {limit}"
    if low is None and high is None:
        return f"no rate was shown to keep {limit}, or to break it{rest}"
    if low is None:
        rate = RATE.text(high or 0.0)
        return f"{rate} queries a second break {limit}, and no rate was shown to keep it{rest}"
    if high is None:
        rate, why = RATE.text(low), "what breaks it was not found"
        if capacity.generator_ends:
            why = (
                f"the generator ends there (it could not make {RATE.text(capacity.generator_ends)})"
            )
        return f"keeps {limit} at {rate} queries a second at least; {why}{rest}"
    return f"keeps {limit} up to {RATE.text(low)} to {RATE.text(high)} queries a second{rest}"


def _tail_words(level: LevelResult) -> str:
    for percentile in reversed(level.latency):
        if percentile.ms is not None or percentile.above_ms is not None:
            return f"p{percentile.level:g} is {_ms(percentile)}"
    return "its percentiles are not known well enough"


def _ms(tail: Tail) -> str:
    if tail.ms is None:
        return f"> {(tail.above_ms or 0.0) / 1e3:g} s"
    low, high = tail.ci95 or (None, None)
    ends = "" if low is None else f" [{short_ms(low)}, {'-' if high is None else short_ms(high)}]"
    return f"{short_ms(tail.ms)}{ends} ms"


def _row(name: str, loaded: Loaded, metric: str | None) -> list[Content]:
    level = loaded.result
    if level.state is State.MEASURED:
        times = [tail_cell(tail) for tail in level.latency]
        service = tail_cell(level.service[-1])
    else:
        times = [Cell(str(level.state)), Cell(None), Cell(None)]
        service = Cell(None)
    failed = COUNT(level.failed) if level.failed else Cell("0")
    refused = COUNT(sum(level.refused.values())) if level.refused else Cell("0")
    row: list[Content] = [name, RATE(level.answered_rate), *times, service, failed, refused]
    if metric:
        row.append(SHORT_QUALITY(loaded.quality.mean if loaded.quality else None))
    return row


def tail_cell(tail: Tail) -> Cell:
    """A percentile; one of calls that were not answered in time is above the time-out."""
    if tail.above_ms is not None:
        return Cell(_ms(tail))
    return SHORT_MS(tail.ms)


def _quality(load: LoadResult) -> list[AnyNote]:
    """Return whether the answers under load are those without, in a sentence."""
    sure = [level for level in load.levels if level.quality is not None]
    changed = [level for level in sure if level.quality and level.quality.changed]
    failed = [level for level in sure if level.result.failed]
    if not sure:
        return []
    if not changed and not failed:
        compared = sum(level.quality.compared for level in sure if level.quality)
        if not compared:
            return ["Answers are not compared: no query was asked with and without load."]
        rest = sum(level.result.answered for level in sure) - compared
        text = "Every answer under load is one that the query also gets without load"
        if rest:
            text += f" ({compared:,} answers; {rest:,} more are to queries not asked without load)"
        return [result(f"{text}.")]
    notes: list[AnyNote] = []
    for measured in [*changed, *(item for item in failed if item not in changed)]:
        quality, level = measured.quality, measured.result
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


def _refusals(load: LoadResult, *, full: bool) -> list[AnyNote]:
    """Requests that failed, what the system got with those that were made again, and what clients
    that waited before that would have got."""
    levels = [("one at a time", load.unloaded.result)]
    levels += [(level.result.name, level.result) for level in load.levels]
    refused = [(name, level) for name, level in levels if level.refused]
    notes: list[AnyNote] = []
    for name, level in refused if full else refused[-_REFUSALS:]:
        n, requests = sum(level.refused.values()), level.requests_rate * level.seconds
        kinds = ", ".join(f"{kind}: {of:,}" for kind, of in level.refused.items())
        text = f"{name}: {n:,} of {requests:,.0f} requests were refused ({kinds})"
        if level.waiting:
            rate = RATE.text(level.requests_rate)
            text += f"; with those made again the service got {rate} requests a second"
        if level.waiting and level.clients:
            share, free = level.waiting / level.clients, RATE.text(level.rate_without_waits)
            text += f", and for {share:.0%} of the time clients waited before that: without these "
            text += f"waits it answers about {free} a second"
        notes.append(warning(f"{text}."))
    if (hidden := len(refused) - _REFUSALS) > 0 and not full:
        notes.append(warning(f"{counted(hidden, 'more level')} had refusals: -v tells of them."))
    return notes


def _notes(load: LoadResult, *, full: bool) -> list[AnyNote]:
    results = [
        level.result for level in (load.levels if full else _nearest(load)) if level.result.reasons
    ]
    notes: list[AnyNote] = []
    if load.status == "partial":
        notes.append(warning("PARTIAL: it was ended before all levels were made."))
    notes += [
        warning(f"{level.name} {level.state}: {'; '.join(level.reasons)}.")
        for level in (results if full else results[:_TOLD])
    ]
    if len(results) > _TOLD and not full:
        notes.append(warning(f"{len(results) - _TOLD} more levels were no better: -v says why."))
    hidden = len(load.levels) - len(_nearest(load))
    if hidden and not full:
        text = f"more: {counted(hidden, 'level')} farther from the limit: -v"
        notes.append(Note(text, NoteKind.MORE))
    notes += _fewer_queries(load)
    if load.capacity is not None and load.capacity.reason:
        notes.append(warning(f"The limit: {load.capacity.reason}."))
    bound = [level.result for level in load.levels if level.result.interpreter_bound]
    if bound:
        advice = "; --processes shares the load where cores are free"
        names = ", ".join(level.name for level in bound)
        notes.append(
            warning(
                f"{names}: the retriever runs in one Python process, whose lock let it "
                f"use one core{advice if any(level.clients is None for level in bound) else ''}."
            )
        )
    levels = [level.result for level in load.levels]
    short = [(level, tail) for level in levels for tail in level.latency if tail.reason]
    missing = [f"{level.name} p{tail.level:g}: {tail.reason}" for level, tail in short]
    if missing:
        more = f" (and {len(missing) - 1:,} more)" if missing[1:] and not full else ""
        shown = "; ".join(missing) if full else missing[0]
        source = "A longer --duration gives"
        if all(level.clients is None and level.planned is None for level, _ in short):
            source = "Only a longer recording gives"
        source = "Only more queries give" if load.plan.once else source
        notes.append(f"Not printed: {shown}{more}. {source} more calls.")
    notes.append(
        "Latency counts from when a call was due, service from when it was made. "
        f"{_asked(load)} k = {load.k}. {_repeated(load)}"
    )
    if load.folder is not None:
        notes.append(next_step(f"saved: {relative_folder(load)}"))
    return notes


def _fewer_queries(load: LoadResult) -> list[AnyNote]:
    """Whose quality is that of other queries than stand above it."""
    alone = load.unloaded.quality
    messages = [
        f"{level.result.name} {counted(level.quality.queries, 'query')}, "
        f"{quality_text(level.quality.unloaded)} without load"
        for level in load.levels
        if alone
        and level.quality
        and level.quality.queries != alone.queries
        and level.quality.unloaded is not None
    ]
    if not messages or alone is None or not alone.metric:
        return []
    more = f" (and {len(messages) - 1:,} more)" if messages[1:] else ""
    asked = f"queries that were asked with and without load, here {counted(alone.queries, 'query')}"
    return [f"{metric_label(alone.metric)} is that of the {asked}; {messages[0]}{more}."]


def _asked(load: LoadResult) -> str:
    at_times = any(level.result.clients is None for level in load.levels)
    processes = counted(load.processes if at_times else 1, "process")
    if load.external:
        most = max([load.slots, *(level.result.clients or 0 for level in load.levels)])
        more = ", more where a rate needs them" if any(load.plan.rates) or load.capacity else ""
        return f"Up to {counted(most, 'connection')} from {processes}{more}."
    how = counted(load.slots, "thread") if load.shared else "one call at a time"
    own = f"The retriever runs in the generator's own processes ({processes}, {how} each"
    apart = any(level.result.clients for level in load.levels) and not load.shared
    return f"{own}; of clients in turn, one each)." if apart else f"{own})."


def _repeated(load: LoadResult) -> str:
    if load.plan.once:
        return "No query was asked twice, but the first of each level in its warm-up."
    cache = ": answers may be remembered; --queries once asks each once" * (load.repeated >= _MOST)
    return f"{load.repeated:.0%} of the calls repeat a query{cache}."


def _details(load: LoadResult) -> Table:
    columns = ("load", "", "p50 ms", "p95 ms", "p99 ms", "calls that count")
    rows: list[Sequence[Content]] = []
    for level in [load.unloaded, *load.levels]:
        name = level.result.name
        kinds = (
            ("latency", level.result.latency),
            ("service", level.result.service),
            ("lag", level.result.lag),
        )
        for kind, names in kinds:
            if names:
                cells = [SHORT_MS(item.ms, _ends(item)) for item in names]
                rows.append([name, kind, *cells, COUNT(min(t.effective_calls for t in names))])
    return Table("How well the times are known", columns, rows, words=(0, 1))


def _ends(tail: Tail) -> tuple[float, float] | None:
    if tail.ci95 is None or tail.ci95[1] is None:
        return None
    return tail.ci95[0], tail.ci95[1]


# -- a level over time ---------------------------------------------------------------------------

_ONE = Form(lambda value: f"{value:,.1f}")
_GROWS = 1.0
"""Megabytes a minute above which it is a warning."""


def _course(level: Loaded, course: Course) -> Table:
    served = any(part.server_mb is not None for part in course.parts)
    columns = ["until s", "calls", "failed", "p50 ms", "p99 ms", "memory MB"]
    rows = [_part(part, served=served) for part in course.parts]
    if served:
        columns.append("server MB")
    title = f"{level.result.name} over {course.parts[-1].until_s:,.0f} s"
    return Table(title, columns, rows, words=(), lead=_of_course(level, course))


def _part(part: Part, *, served: bool) -> list[Content]:
    row: list[Content] = [
        _ONE(part.until_s),
        COUNT(part.calls),
        COUNT(part.failed),
        SHORT_MS(part.p50_ms),
        SHORT_MS(part.p99_ms),
        _ONE(part.memory_mb),
    ]
    return [*row, _ONE(part.server_mb)] if served else row


def _of_course(level: Loaded, course: Course) -> list[AnyNote]:
    notes: list[AnyNote] = []
    slopes = (
        ("the generator", course.memory_mb_a_minute),
        ("the server", course.server_mb_a_minute),
    )
    for whose, slope in slopes:
        if slope is not None:
            text = f"Memory of {whose} changes by {signed(slope, 2)} MB a minute."
            notes.append(warning(text) if slope > _GROWS else result(text))
    if course.drift is None:
        notes.append(result("p50 is not shown to drift."))
    else:
        change = signed(100 * (course.drift - 1), 0, " %")
        notes.append(warning(f"p50 drifts: {change} from the first part to the last."))
    for outage in course.outages:
        after = "no call was answered after that"
        if outage.seconds is not None:
            after = f"answered again {outage.seconds:,.1f} s later"
        lost = f"{counted(outage.calls, 'call')} had no answer from second {outage.begin_s:,.1f} on"
        notes.append(warning(f"Outage: {lost}; {after}."))
    if not level.result.failed:
        notes.append(result(f"Nothing was lost: all {level.result.calls:,} calls were answered."))
    return notes
