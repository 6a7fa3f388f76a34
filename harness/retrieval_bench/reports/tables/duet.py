"""What is shown of a duet: the verdict, each gate, and what could have been seen."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import change_text, interval_of
from retrieval_bench.duets.decision import GATES
from retrieval_bench.duets.result import WORDS, DuetResult, GateResult
from retrieval_bench.reports.render.table import Table


def duet_tables(result: DuetResult) -> list[Table]:
    """One table: a line for each gate, and how it was measured."""
    return [
        Table(
            f"{result.word}: {_side(result, 'b')} beside {_side(result, 'a')}",
            ("", "time b/a", "98 % interval", "limit", "visible", "verdict"),
            [_row(gate) for gate in result.gates],
            notes=[*_measured(result), *_explained(result), *result.warnings],
            words=(0, 5),
        )
    ]


def _side(result: DuetResult, which: str) -> str:
    about = result.a if which == "a" else result.b
    return f"{which} = {about.get('name')}"


def _row(gate: GateResult) -> list[str]:
    change = None if gate.ratio is None else gate.ratio - 1
    ends = None if gate.interval is None else [end - 1 for end in gate.interval]
    return [
        gate.gate,
        change_text(change),
        interval_of(ends, lambda end: f"{100 * end:+.1f}") or "-",
        change_text(gate.limit),
        change_text(gate.visible),
        WORDS[gate.verdict],
    ]


def _measured(result: DuetResult) -> list[str]:
    """What was done: sides, calls, time."""
    data = result.dataset
    done = (
        f"{counted(result.queries, 'query')} of {data.get('name')}, k = {data.get('k')}; "
        f"{counted(result.calls, 'pair')} of calls in {counted(result.launches, 'launch')}, "
        f"{result.measured_s:.1f} s of measuring in {result.total_s:.0f} s"
    )
    told = [done]
    if result.one_core:
        told.append(
            f"both sides searched on the same core in {counted(result.one_core, 'launch')}"
            if result.one_core < result.launches
            else "both sides searched on the same core"
        )
    if result.median_ns is not None:
        a, b = (ns / 1e6 for ns in result.median_ns)
        told.append(f"a call takes {a:.3g} ms on side a, {b:.3g} ms on side b (median)")
    if result.other_rankings is not None:
        same = result.other_rankings == 0
        changed = f"differ for {counted(result.other_rankings, 'query')}: is quality the same?"
        told.append("both sides return the same rankings" if same else f"the rankings {changed}")
    if result.reason:
        told.append(result.reason)
    if result.interrupted:
        told.append("interrupted: only what was measured until then is in it")
    return told


def _explained(result: DuetResult) -> Sequence[str]:
    judged = [gate for gate in result.gates if gate.ratio is not None]
    told = [f"{gate.gate}: {gate.reason}" for gate in result.gates if gate.reason]
    told += [
        f"{gate.gate}: a first sign of slower was shown again by new launches"
        for gate in judged
        if gate.confirmed
    ]
    if judged:
        names = "; ".join(f"{gate.gate}: {GATES[gate.gate].about}" for gate in judged)
        beyond = ", ".join(f"{gate.gate} {change_text(gate.beyond)}" for gate in judged)
        told.append(names)
        told.append(
            f"FAIL: shown to be slower by more than {beyond}; PASS: shown to be within the limit; "
            "visible: what 9 of 10 duets with this noise find"
        )
    return told
