"""Tables of a duet under load."""

from __future__ import annotations

from dataclasses import replace

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import short_ms
from retrieval_bench.duets.result import DuetResult
from retrieval_bench.reports.render.table import AnyNote, Table
from retrieval_bench.reports.tables.guard.duet import duet_tables


def load_duet_tables(result: DuetResult) -> list[Table]:
    """Build the table of any duet; how it was measured is told in its own words."""
    of = result.blocks
    if of is None:
        return duet_tables(result)
    bare = replace(result, gates=tuple(replace(gate, confirmed=None) for gate in result.gates))
    (table,) = duet_tables(bare)
    data, pairs = result.dataset, counted(result.launches, "pair")
    how = f"{pairs} of blocks of {of.seconds:g} s at {of.rate:g} calls a second, on {data['name']},"
    notes: list[AnyNote] = [f"{how} k = {data['k']}; {result.total_s:.0f} s in all."]
    if of.p99_ms is not None:
        a, b = map(short_ms, of.p99_ms)
        notes.append(f"p99 over all blocks, not judged: {a} ms on side a and {b} ms on side b.")
    if any(gate.confirmed for gate in result.gates):
        notes.append("New pairs of blocks confirmed the first sign of a slow-down.")
    return [replace(table, notes=[*notes, *table.notes[1:]])]
