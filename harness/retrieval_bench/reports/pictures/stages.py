"""Account of where the time of a call goes: one bar for each stage of each system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from retrieval_bench.core.errors import distinct_names
from retrieval_bench.reports.pictures import vega
from retrieval_bench.reports.pictures.rows import rows_of
from retrieval_bench.reports.pictures.vega import Spec, Style, mark
from retrieval_bench.reports.render.text import clean, number

Times = tuple[float, float]
"""Median and 95th percentile, ms; NaN = not known."""

_CALL, _STAGE, _LEG = "Whole call", "Stage", "Leg, or legs together: made of stages"
_KINDS = {
    _CALL: Style(vega.SOFT, (), "square"),
    _STAGE: Style(vega.FILL, (), "square"),
    _LEG: Style(vega.PAPER, (3, 2), "square"),
}


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Times of one system's parts.

    Attributes:
        name: shown as it is; equal names are told apart by a number.
        stages: the parts in the order shown.
        legs: what is made of such parts, such as the legs of a hybrid, or all of them one after
            the other and side by side; shown apart, for their time is in ``stages`` already.
        call: the whole call, as measured from outside.
    """

    name: str
    stages: Mapping[str, Times]
    legs: Mapping[str, Times] = field(default_factory=dict)
    call: Times | None = None

    def bars(self) -> Iterator[tuple[str, str, Times]]:
        """Label, kind and times of each."""
        if self.call is not None:
            yield "whole call", _CALL, self.call
        yield from ((label, _STAGE, times) for label, times in self.stages.items())
        yield from ((label, _LEG, times) for label, times in self.legs.items())


def stages(systems: Sequence[StageTimes], *, about: str = "", width: int = vega.WIDTH) -> Spec:
    """A bar as long as the median of each stage and a line to its 95th percentile.

    All bars begin at 0 on one linear axis, so that lengths compare, also between systems; the
    figures stand beside them for those too short to see.
    """
    names = [clean(name) for name in distinct_names([s.name for s in systems])]
    labels: list[str] = []
    figures: list[tuple[str, str]] = []
    heads, data, said, top = [], [], [], 0.0
    for name, system in zip(names, systems, strict=True):
        heads.append(len(labels))
        labels.append(name)
        figures.append(("", ""))
        for label, kind, (median, p95) in system.bars():
            top = max([top, *filter(isfinite, (median, p95))])
            row = {"row": len(labels), "system": kind, "stage": clean(label)}
            data.append({**row, "median": vega.finite(median), "p95": vega.finite(p95)})
            labels.append(label)
            figures.append((number(median), number(p95)))
        said.append(f"{name}: {'; '.join(map(_in_words, system.bars()))}.")
    kinds = [kind for kind in _KINDS if any(row["system"] == kind for row in data)]
    styles = [_KINDS[kind] for kind in kinds]
    color, dash, _ = vega.told_apart(kinds, styles, {"symbolStrokeColor": vega.INK})
    x = vega.axis("median", vega.linear(0, 1.04 * top or 1.0), "Milliseconds per call")
    known = [row for row in data if row["median"] is not None]
    tails = [row for row in known if row["p95"] is not None]
    bar = {"stroke": vega.INK, "strokeWidth": 0.8, "height": 11}
    end = {"color": vega.INK, "height": 8, "width": 1.2}
    content = rows_of(
        labels,
        [
            mark("bar", known, {"x": x, "color": color, "strokeDash": dash}, **bar),
            mark("rule", tails, vega.span("x", x, "median", "p95"), strokeWidth=1),
            mark("tick", tails, {"x": {**x, "field": "p95"}}, **end),
        ],
        names=190 if vega.is_wide(width) else 120,
        figures={"Median": [m for m, _ in figures], "p95": [p for _, p in figures]},
        bold=heads,
    )
    title = "Where the time of a call goes: stages"
    return vega.picture(content, title=title, about=about, said=said, width=width)


def _in_words(bar: tuple[str, str, Times]) -> str:
    label, _, (median, p95) = bar
    tail = f", p95 {number(p95)}" if isfinite(p95) else ""
    return f"{label} {number(median)}{tail} ms" if isfinite(median) else f"{label} not known"
