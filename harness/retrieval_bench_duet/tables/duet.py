"""Tables of a duet: the verdict, each gate, and what could have been seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrieval_bench.comparison.claims import in_doubt
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import short_ms
from retrieval_bench.reports.render.cells import CHANGE, RATIO, Content
from retrieval_bench.reports.render.table import AnyNote, Table, warning
from retrieval_bench_duet.decision import GATES
from retrieval_bench_duet.result import WORDS, BlockFacts, DuetResult, GateResult


def duet_tables(result: DuetResult) -> list[Table]:
    """One table: a line for each gate, and how it was measured."""
    shown, word = result, f"{result.word}{in_doubt('duet', result.warnings)}"
    if result.blocks is not None:  # which tells of launches in words of its own
        shown = replace(result, gates=tuple(replace(gate, confirmed=None) for gate in result.gates))
    return [
        Table(
            f"{word}: {_side(result, 'b')} beside {_side(result, 'a')}",
            ("", "time b/a", "limit", "visible", "verdict"),
            [_row(gate) for gate in result.gates],
            notes=[
                *([_calls(result)] if result.blocks is None else _blocks(result, result.blocks)),
                *_measured(result),
                *_explained(shown),
                *map(warning, result.warnings),
            ],
            words=(0, 4),
        )
    ]


def _side(result: DuetResult, which: str) -> str:
    about = result.a if which == "a" else result.b
    return f"{which} = {about.name}"


def _row(gate: GateResult) -> list[Content]:
    return [
        gate.gate,
        RATIO(gate.ratio, gate.interval),
        CHANGE(gate.limit),
        CHANGE(gate.visible),
        WORDS[gate.verdict],
    ]


def _calls(result: DuetResult) -> str:
    data = result.dataset
    return (
        f"{counted(result.queries, 'query')} of {data.name}, k = {data.k}; "
        f"{counted(result.calls, 'pair')} of calls in {counted(result.launches, 'launch')}, "
        f"{result.measured_s:.1f} s of measuring in {result.total_s:.0f} s."
    )


def _blocks(result: DuetResult, of: BlockFacts) -> list[str]:
    data, pairs = result.dataset, counted(result.launches, "pair")
    how = f"{pairs} of blocks of {of.seconds:g} s at {of.rate:g} calls a second, on {data.name},"
    notes = [f"{how} k = {data.k}; {result.total_s:.0f} s in all."]
    if of.p99_ms is not None:
        a, b = map(short_ms, of.p99_ms)
        notes.append(f"p99 over all blocks, not judged: {a} ms on side a and {b} ms on side b.")
    if any(gate.confirmed for gate in result.gates):
        notes.append("New pairs of blocks confirmed the first sign of a slow-down.")
    return notes


def _measured(result: DuetResult) -> list[AnyNote]:
    """Note what the two sides did."""
    notes: list[AnyNote] = []
    if result.one_core:
        some = result.one_core < result.launches
        where = f" in {counted(result.one_core, 'launch')}" if some else ""
        notes.append(f"Both sides searched on the same core{where}.")
    if result.median_ns is not None:
        a, b = (ns / 1e6 for ns in result.median_ns)
        notes.append(f"The median call takes {a:.3g} ms on side a and {b:.3g} ms on side b.")
    if result.other_rankings == 0:
        notes.append("Both sides return the same rankings.")
    elif result.other_rankings is not None:
        queries = counted(result.other_rankings, "query")
        notes.append(warning(f"The rankings differ on {queries}: check that quality is the same."))
    if result.reason:
        notes.append(result.reason)
    if result.interrupted:
        notes.append(warning("Interrupted: only what was measured until then counts."))
    return notes


def _explained(result: DuetResult) -> Sequence[str]:
    judged = [gate for gate in result.gates if gate.ratio is not None]
    notes = [f"{gate.gate}: {gate.reason}" for gate in result.gates if gate.reason]
    notes += [
        f"{gate.gate}: new launches confirmed the first sign of a slow-down."
        for gate in judged
        if gate.confirmed
    ]
    if judged:
        beyond = ", ".join(f"{gate.gate} {CHANGE(gate.beyond).text}" for gate in judged)
        if result.blocks is None:
            about = "; ".join(f"{gate.gate}: {GATES[gate.gate].about}" for gate in judged)
            notes.append(f"{about}.")
        notes += [
            (
                f"FAIL: shown to be slower by more than {beyond}. PASS: shown to be within the "
                "limit. Brackets: 98 % interval. visible: smallest slow-down that a duet with this "
                "noise would catch 9 times out of 10."
            )
        ]
    return notes
