"""Tables of a level over time."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.load.load import Loaded, LoadResult
from retrieval_bench.load.soak import Course, Part
from retrieval_bench.reports.render.cells import COUNT, SHORT_MS, Content, Form
from retrieval_bench.reports.render.table import AnyNote, Table, result, warning

_ONE = Form(lambda value: f"{value:,.1f}")
_GROWS = 1.0
"""Megabytes a minute above which it is a warning."""


def course_tables(load: LoadResult) -> list[Table]:
    """A table for each level that was watched."""
    return [_table(level, level.course) for level in load.levels if level.course is not None]


def _table(level: Loaded, course: Course) -> Table:
    served = any(part.server_mb is not None for part in course.parts)
    columns = ["until s", "calls", "failed", "p50 ms", "p99 ms", "memory MB"]
    rows = [_row(part, served=served) for part in course.parts]
    if served:
        columns.append("server MB")
    title = f"{level.result.name} over {course.parts[-1].until_s:,.0f} s"
    return Table(title, columns, rows, words=(), lead=_lead(level, course))


def _row(part: Part, *, served: bool) -> list[Content]:
    row: list[Content] = [
        _ONE(part.until_s),
        COUNT(part.calls),
        COUNT(part.failed),
        SHORT_MS(part.p50_ms),
        SHORT_MS(part.p99_ms),
        _ONE(part.memory_mb),
    ]
    return [*row, _ONE(part.server_mb)] if served else row


def _lead(level: Loaded, course: Course) -> list[AnyNote]:
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
