"""Tables of a duet: the verdict, each gate, and what could have been seen."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.duets.decision import GATES
from retrieval_bench.duets.result import WORDS, DuetResult, GateResult
from retrieval_bench.reports.render.cells import CHANGE, RATIO, Content
from retrieval_bench.reports.render.table import AnyNote, Table, warning


def duet_tables(result: DuetResult) -> list[Table]:
    """One table: a line for each gate, and how it was measured."""
    return [
        Table(
            f"{result.word}: {_side(result, 'b')} beside {_side(result, 'a')}",
            ("", "time b/a", "limit", "visible", "verdict"),
            [_row(gate) for gate in result.gates],
            notes=[*_measured(result), *_explained(result), *map(warning, result.warnings)],
            words=(0, 4),
        )
    ]


def _side(result: DuetResult, which: str) -> str:
    about = result.a if which == "a" else result.b
    return f"{which} = {about.get('name')}"


def _row(gate: GateResult) -> list[Content]:
    return [
        gate.gate,
        RATIO(gate.ratio, gate.interval),
        CHANGE(gate.limit),
        CHANGE(gate.visible),
        WORDS[gate.verdict],
    ]


def _measured(result: DuetResult) -> list[AnyNote]:
    """Note how it was measured: sides, calls, time."""
    data = result.dataset
    notes: list[AnyNote] = [
        (
            f"{counted(result.queries, 'query')} of {data.get('name')}, k = {data.get('k')}; "
            f"{counted(result.calls, 'pair')} of calls in {counted(result.launches, 'launch')}, "
            f"{result.measured_s:.1f} s of measuring in {result.total_s:.0f} s."
        )
    ]
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
        notes += [
            "; ".join(f"{gate.gate}: {GATES[gate.gate].about}" for gate in judged) + ".",
            (
                f"FAIL: shown to be slower by more than {beyond}. PASS: shown to be within the "
                "limit. Brackets: 98 % interval. visible: smallest slow-down that a duet with this "
                "noise would catch 9 times out of 10."
            ),
        ]
    return notes
