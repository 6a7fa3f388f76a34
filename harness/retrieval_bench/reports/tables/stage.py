"""What is shown of the stages of a call, and of a hybrid's legs."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.render.table import Table
from retrieval_bench.runs.stages import TAIL, Legs, Stage, StageReport, Times

IN_TURN, TOGETHER = "one after the other", "side by side"

_SLOWEST = f"{100 - TAIL:g} %"


def stage_tables(name: str, report: StageReport) -> list[Table]:
    """Where the time of a call of the retriever ``name`` goes; for a hybrid also its legs one after
    the other against side by side. Nothing for a retriever that reports no stages."""
    if report.call is None:
        return []
    tables = [_stages(name, report, report.call)]
    if report.legs is not None:
        tables.append(_legs(name, report.legs))
    return tables


def stage_sentences(report: StageReport) -> list[str]:
    """What to take from the stages, in plain words: what takes most of a call, and for a hybrid
    which order of the legs was measured, what the other would take, and which leg decides."""
    if report.call is None:
        return []
    direct = [stage for stage in report.stages if stage.direct]
    most = max(direct, key=lambda stage: stage.share)
    said = [f"{most.name} takes {_percent(most.share)} of the time of a call"]
    if report.overlapping:
        said.append(
            f"stages ran at the same time in {report.overlapping:,} of "
            f"{counted(report.call.n, 'call')}: their shares add up to more than 100 %"
        )
    if report.legs is not None:
        said += _on_legs(report.legs)
    return said


def _stages(name: str, report: StageReport, call: Times) -> Table:
    direct = [stage for stage in report.stages if stage.direct]
    inner = [stage for stage in report.stages if not stage.direct]
    rows = [_row(stage) for stage in direct]
    rows.append(("whole call", *_figures(call), "100.0 %", f"{call.n:,}"))
    rows += [_row(stage) for stage in inner]
    notes = ["share: of the time of all calls that report stages"]
    if inner:
        notes.append("below the whole call: parts of the stages above it")
    return Table(
        f"Stages of {name}",
        ("stage", "p50 ms", "p95 ms", "mean ms", "share", "calls"),
        rows,
        [len(direct), len(direct) + 1] if inner else [len(direct)],
        [*notes, *stage_sentences(report)],
    )


def _row(stage: Stage) -> tuple[str, ...]:
    return (stage.name, *_figures(stage.times), _percent(stage.share), f"{stage.times.n:,}")


def _legs(name: str, legs: Legs) -> Table:
    known = ["measured", "computed"]
    serial, parallel = reversed(known) if legs.parallel_measured else known
    rows = [
        (IN_TURN, *_figures(legs.serial), serial, "", ""),
        (TOGETHER, *_figures(legs.parallel), parallel, "", ""),
    ]
    rows += [
        (
            f"leg {leg.name}",
            *_figures(leg.times),
            "measured",
            _percent(leg.longest / legs.n),
            _percent(leg.longest_in_tail / legs.tail) if legs.tail else "-",
        )
        for leg in legs.of
    ]
    return Table(
        f"Legs of {name}",
        ("", "p50 ms", "p95 ms", "mean ms", "", "longest", "tail"),
        rows,
        [2],
        [
            "longest: calls in which no other leg takes longer",
            f"tail: the same among the slowest {_SLOWEST} of calls",
        ],
        words=(0, 4),
    )


def _on_legs(legs: Legs) -> list[str]:
    ran, other, measured, computed = IN_TURN, TOGETHER, legs.serial, legs.parallel
    if legs.parallel_measured:
        ran, other, measured, computed = TOGETHER, IN_TURN, legs.parallel, legs.serial
    limit = "at most" if legs.parallel_measured else "at least"
    said = [
        f"legs ran {ran}: {_ms(measured.p50)} ms at the median",
        f"{other} it would be {limit} {_ms(computed.p50)} ms (computed from the same calls)",
    ]
    decisive = legs.decisive
    if decisive is not None:
        part = round(100 * decisive.longest_in_tail / legs.tail)
        extra = [(leg.name, leg.extra_in_tail) for leg in legs.of if leg.extra_in_tail is not None]
        above = ", ".join(f"{name} {signed(ms, 3, ' ms')}" for name, ms in extra)
        said += [
            f"the tail is decided by {decisive.name}",
            f"{decisive.name} is the longest leg in {part} % of the slowest {_SLOWEST} of calls",
            f"legs take in these calls, against their own medians: {above}",
        ]
    return said


def _figures(times: Times) -> tuple[str, str, str]:
    return _ms(times.p50), _ms(times.p95), _ms(times.mean)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 100 else f"{value:,.0f}"
