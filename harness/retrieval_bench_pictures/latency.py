"""How the latency of all calls is distributed, with its percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted, distinct_names
from retrieval_bench.reports.render.text import clean, number
from retrieval_bench.stats.percentiles import Percentile, quantiles
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.lettering import fitted, interval, width_of, wrapped
from retrieval_bench_pictures.rows import rows_of
from retrieval_bench_pictures.vega import Spec, mark, span

_NOTES = 8

_STEPS = 240
"""Of a curve that are drawn, at most."""


@dataclass(frozen=True, slots=True)
class Calls:
    """All measured calls of one system.

    Attributes:
        name: shown as it is; equal names are told apart by a number.
        ms: milliseconds, one for each call, failed ones included. Values that are not finite are
            left out and counted.
        failed: one for each call; None = none failed.
        query: position of the query, one for each call; None = not known.
        round: one for each call; None = all in one.
        percentiles: what is marked; one without a value is not, and its reason is written.
    """

    name: str
    ms: NDArray[np.float64]
    failed: NDArray[np.bool_] | None = None
    query: NDArray[np.int32] | None = None
    round: NDArray[np.int32] | None = None
    percentiles: Sequence[Percentile] = ()


class _Shown:
    """A system under the name it is shown by.

    Attributes:
        ms: sorted and finite.
        count: of calls, in words.
        marks: percentiles that have a value, with their ends.
        figures: the same in words.
    """

    def __init__(self, name: str, calls: Calls) -> None:
        self.name, self.calls = clean(name), calls
        self.ms = np.sort(calls.ms[np.isfinite(calls.ms)])
        failed = 0 if calls.failed is None else int(calls.failed.sum())
        self.count = counted(len(self.ms), "call") + f" ({failed:,} failed)" * bool(failed)
        known = [(p, p.value) for p in calls.percentiles if p.value is not None]
        self.marks: list[Spec] = [
            {"system": self.name, "level": p.level, "share": p.level / 100, "ms": value,
             "low": low, "high": high}
            for p, value in known
            for low, high in [p.ci95 or (value, value)]
        ]  # fmt: skip
        self.figures = ", ".join(
            f"p{p.level:g} {number(value)} ms" + (f" {interval(p.ci95)}" if p.ci95 else "")
            for p, value in known
        )
        self.all = f"{self.name}: {self.count}" + f", {self.figures}" * bool(known)

    def figure(self, level: float) -> str:
        return next((number(mark["ms"]) for mark in self.marks if mark["level"] == level), "–")


def ecdf(systems: Sequence[Calls], *, about: str = "", width: int = vega.WIDTH) -> Spec:
    """Share of calls finished within a given time, percentiles and their intervals.

    Up to eight systems are curves in one pair of axes; more, which no reader could tell apart,
    are one row each, from the fastest to the slowest median. Of very many calls
    no more are drawn than can be seen.
    """
    names = distinct_names([s.name for s in systems])
    shown = [_Shown(name, calls) for name, calls in zip(names, systems, strict=True)]
    ends = [float(m[end]) for s in shown for m in s.marks for end in ("low", "ms", "high")]
    scale = vega.scale_for([*(s.ms for s in shown), np.array(ends)])
    levels = sorted({p.level for s in systems for p in s.percentiles})
    many = len(shown) > len(vega.STYLES)
    legend = ["A bar holds 5 to 95 % of the calls, its line all of them."] if many else []
    title = "share of calls finished within a given time"
    return vega.picture(
        (_rows if many else _curves)(shown, levels, vega.milliseconds(scale), width),
        title=f"Latency of {len(shown)} systems, by median" if many else f"Latency: {title}",
        about=about,
        notes=[*legend, *_notes(shown, scale)],
        said=[f"{system.all}." for system in shown],
        width=width,
    )


def _curves(systems: Sequence[_Shown], levels: Sequence[float], x: Spec, width: int) -> Spec:
    names = [system.name for system in systems]
    key = vega.legend(names, [_label(system, width) for system in systems])
    color, dash, shape = vega.told_apart(names, key=key)
    share = "datum.value * 100 + ' %'"
    quarters = {"values": [0, 0.25, 0.5, 0.75, 1], "labelExpr": share}
    y = vega.axis("share", vega.linear(0, 1), "Share of calls", width, **quarters)
    points = [(system.name, *_steps(system.ms)) for system in systems]
    curves = [
        {"system": name, "ms": ms, "share": share}
        for name, times, shares in points
        for ms, share in zip(times.tolist(), shares.tolist(), strict=True)
    ]
    marks = [mark for system in systems for mark in system.marks]
    # The names of those near the top stand a little apart.
    lines = [
        {"share": level / 100, "name": f"p{level:g}", "dy": 6 if 90 <= level <= 95 else -3}
        for level in levels
    ]
    whole = {"x": {"value": 0}, "x2": {"value": {"expr": "width"}}}
    beside = {"x": {"value": {"expr": "width + 6"}}, "text": {"field": "name"}}
    name = {"align": "left", "baseline": "middle", "dy": {"expr": "datum.dy"}}
    stroke = {"x": x, "color": color, "strokeDash": dash, **vega.UNSORTED}
    return {
        "height": 290 if vega.is_wide(width) else 260,
        "encoding": {"y": y},
        "layer": [
            mark("rule", lines, whole, color=vega.DOT, strokeDash=[2, 2], strokeWidth=0.7),
            mark("text", lines, beside, color=vega.SOFT, **name),
            mark("line", curves, stroke, interpolate="step-after"),
            mark("errorbar", marks, {**span("x", x, "low", "high"), "color": color}, ticks=True),
            mark("point", marks, {"x": x, "color": color, "shape": shape}),
        ],
    }


def _label(system: _Shown, width: int) -> str:
    """Label a system in the legend: name, calls and percentiles, on a narrow picture below."""
    room = width - 2 * vega.MARGIN - 64
    count = f": {system.count}"
    if vega.is_wide(width):
        behind = count + f", {system.figures}" * bool(system.marks)
        return fitted(fitted(system.name, 190) + behind, room)
    name = fitted(system.name, room - width_of(count))
    return "\n".join([name + count, *wrapped(system.figures, room)])


def _steps(ordered: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The empirical distribution function of sorted values at its steps; of very many values at
    steps so near in height that they look like a line."""
    n = len(ordered)
    ranks = vega.thinned(n, _STEPS)
    times = np.concatenate([ordered[:1], ordered[ranks]])
    return times, np.append(0.0, (ranks + 1) / max(n, 1))[: len(times)]


def _rows(systems: Sequence[_Shown], levels: Sequence[float], x: Spec, width: int) -> Spec:
    systems = sorted(systems, key=lambda s: float(np.median(s.ms)) if len(s.ms) else np.inf)
    wide = vega.is_wide(width)
    heads = {f"p{level:g}": level for level in levels}
    spans = [
        {"row": row, "least": least, "low": low, "high": high, "most": most}
        for row, system in enumerate(systems)
        if len(system.ms)
        for least, low, high, most in [quantiles(system.ms, [0, 0.05, 0.95, 1]).tolist()]
    ]
    marks = [
        {"row": row, "system": f"p{mark['level']:g}", "ms": mark["ms"]}
        for row, system in enumerate(systems)
        for mark in system.marks
    ]
    color, _, shape = vega.told_apart(list(heads), key={})
    return rows_of(
        [f"{system.name}, {system.count}" if wide else system.name for system in systems],
        [
            mark("rule", spans, span("x", x, "least", "most"), color=vega.DOT, strokeWidth=1),
            mark("rule", spans, span("x", x, "low", "high"), color=vega.FILL, strokeWidth=7),
            mark("point", marks, {"x": x, "color": color, "shape": shape}),
        ],
        names=230 if wide else 128,
        figures={
            head: [system.figure(level) for system in systems]
            for head, level in list(heads.items())[: 4 if wide else 2]
        },
    )


def _notes(systems: Sequence[_Shown], scale: Spec) -> list[str]:
    """Note the facts that the picture does not show; of many systems the first few notes."""
    missing: dict[str, list[str]] = {}
    for system in systems:
        if reasons := "; ".join(p.reason for p in system.calls.percentiles if p.reason):
            missing.setdefault(reasons, []).append(fitted(system.name, 120))
    notes = vega.notes_on_times([system.ms for system in systems], scale, "left")
    notes += [
        f"{reason}." if len(names) == len(systems) else f"{', '.join(names)}: {reason}."
        for reason, names in missing.items()
    ]
    notes += [
        f"{fitted(system.name, 240)} has {counted(lost, 'call')} without a time."
        for system in systems
        if (lost := len(system.calls.ms) - len(system.ms))
    ]
    if more := len(notes[_NOTES:]):
        are = "is" if more == 1 else "are"
        notes[_NOTES:] = [f"{counted(more, 'more note')} {are} left out."]
    return notes
