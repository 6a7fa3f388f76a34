"""Tables of the stages of a call, and of a hybrid's legs."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.render.cells import COUNT, PERCENT, Cell, Content, Form
from retrieval_bench.reports.render.table import Table
from retrieval_bench.runs.stages import TAIL, StageReport
from retrieval_bench.runs.timing_facts import LegsFacts, StageFacts, TimesFacts

IN_TURN, TOGETHER = "one after the other", "side by side"

_SLOWEST = f"{100 - TAIL:g} %"
_MS = Form(lambda value: f"{value:.3f}" if value < 100 else f"{value:,.0f}")


def stage_tables(name: str, report: StageReport) -> list[Table]:
    """Return where the time of a call of the retriever ``name`` goes; for a hybrid also its legs
    one after the other against side by side. Nothing for a retriever that reports no stages."""
    if report.call is None:
        return []
    tables = [_stages(name, report, report.call)]
    if report.legs is not None:
        tables.append(_legs(name, report.legs))
    return tables


def stage_sentences(report: StageReport) -> list[str]:
    """Say in plain words what to take from the stages: what takes most of a call, and for a hybrid
    which order of the legs was measured, what the other would take, and which leg decides."""
    if report.call is None:
        return []
    direct = {name: stage.share for name, stage in report.stages.items() if stage.direct}
    most = max(direct, key=lambda name: direct[name])
    sentences = [f"{most} takes {PERCENT(direct[most]).text} of the time of a call."]
    if report.overlapping:
        sentences.append(
            f"Stages ran at the same time in {report.overlapping:,} of "
            f"{counted(report.call.n, 'call')}: their shares add up to more than 100 %."
        )
    return [*sentences, *(_on_legs(report.legs) if report.legs is not None else ())]


def _stages(name: str, report: StageReport, call: TimesFacts) -> Table:
    direct = [_row(name, stage) for name, stage in report.stages.items() if stage.direct]
    inner = [_row(name, stage) for name, stage in report.stages.items() if not stage.direct]
    whole: list[Content] = ["whole call", *_figures(call), PERCENT(1.0), COUNT(call.n)]
    rows = [*direct, whole, *inner]
    below = " Rows below the whole call are sub-steps." if inner else ""
    return Table(
        f"Stages of {name}",
        ("stage", "p50 ms", "p95 ms", "mean ms", "share", "calls"),
        rows,
        [len(direct), len(direct) + 1] if inner else [len(direct)],
        [
            f"Share of total time, over the calls that report stages.{below}",
            *stage_sentences(report),
        ],
    )


def _row(name: str, stage: StageFacts) -> list[Content]:
    return [name, *_figures(stage), PERCENT(stage.share), COUNT(stage.n)]


def _legs(name: str, legs: LegsFacts) -> Table:
    known = ["measured", "computed"]
    serial, parallel = known if legs.measured == "serial" else reversed(known)
    rows: list[list[Content]] = [
        [IN_TURN, *_figures(legs.serial), serial, "", ""],
        [TOGETHER, *_figures(legs.parallel), parallel, "", ""],
        *(_leg_row(leg, legs) for leg in legs.of),
    ]
    return Table(
        f"Legs of {name}",
        ("", "p50 ms", "p95 ms", "mean ms", "", "longest", "tail"),
        rows,
        [2],
        [
            (
                "longest: share of calls in which no other leg takes longer; tail: the same among "
                f"the slowest {_SLOWEST} of calls."
            )
        ],
        words=(0, 4),
    )


def _leg_row(name: str, legs: LegsFacts) -> list[Content]:
    leg = legs.of[name]
    tail = leg.longest_in_tail / legs.tail if legs.tail else None
    shares = PERCENT(leg.longest / legs.n), PERCENT(tail)
    return [f"leg {name}", *_figures(leg), "measured", *shares]


def _on_legs(legs: LegsFacts) -> list[str]:
    both = {IN_TURN: legs.serial.p50, TOGETHER: legs.parallel.p50}
    ran, other = reversed(both) if legs.measured == "parallel" else both
    limit = "at most" if ran == TOGETHER else "at least"
    sentences = [
        (
            f"The legs ran {ran}: median {_MS.text(both[ran])} ms. Run {other}, they would take "
            f"{limit} {_MS.text(both[other])} ms (computed from the same calls)."
        )
    ]
    decisive = legs.decisive
    if decisive is not None:
        part = round(100 * legs.of[decisive].longest_in_tail / legs.tail)
        extra = {name: leg.extra_in_tail for name, leg in legs.of.items()}
        above = ", ".join(
            f"{name} {signed(ms, 3, ' ms')}" for name, ms in extra.items() if ms is not None
        )
        sentences.append(
            f"{decisive} decides the tail: it is the longest leg in {part} % of the slowest "
            f"{_SLOWEST} of calls. Beside their own medians, the legs take there: {above}."
        )
    return sentences


def _figures(times: TimesFacts) -> tuple[Cell, Cell, Cell]:
    return _MS(times.p50), _MS(times.p95), _MS(times.mean)
