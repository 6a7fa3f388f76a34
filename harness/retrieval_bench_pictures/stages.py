"""Account of where the time of a call goes: one bar for each stage of each system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrieval_bench.core.errors import distinct_names
from retrieval_bench.reports.render.text import clean, number
from retrieval_bench.runs.stages import StageReport
from retrieval_bench.runs.timing_facts import TimesFacts
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.rows import rows_of
from retrieval_bench_pictures.vega import Spec, Style, mark

_CALL, _STAGE, _LEG = "Whole call", "Stage", "Leg, or legs together: made of stages"
_KINDS = {
    _CALL: Style(vega.SOFT, (), "square"),
    _STAGE: Style(vega.FILL, (), "square"),
    _LEG: Style(vega.PAPER, (3, 2), "square"),
}


def stages(
    systems: Sequence[tuple[str, StageReport]], *, about: str = "", width: int = vega.WIDTH
) -> Spec:
    """A bar as long as the median of each stage and a line to its 95th percentile. What a hybrid
    takes with its legs one after the other and side by side is shown apart: it is made of stages.

    All bars begin at 0 on one linear axis, so that lengths compare, also between systems; the
    figures stand beside them for those too short to see.

    Args:
        systems: names, shown as they are, and equal ones told apart by a number; each with the
            stages of its calls.
    """
    names = [clean(name) for name in distinct_names([name for name, _ in systems])]
    labels: list[str] = []
    figures: list[tuple[str, str]] = []
    heads, data, said, top = [], [], [], 0.0
    for name, (_, report) in zip(names, systems, strict=True):
        heads.append(len(labels))
        labels.append(name)
        figures.append(("", ""))
        words = []
        for label, kind, times in _bars(report):
            tail = "" if times.p95 is None else number(times.p95)
            top = max(top, times.p50, times.p95 or 0.0)
            row = {"row": len(labels), "system": kind, "stage": clean(label)}
            data.append({**row, "median": times.p50, "p95": times.p95})
            labels.append(label)
            figures.append((number(times.p50), tail or "–"))
            words.append(f"{label} {number(times.p50)}{tail and f', p95 {tail}'} ms")
        said.append(f"{name}: {'; '.join(words)}.")
    kinds = [kind for kind in _KINDS if any(row["system"] == kind for row in data)]
    styles = [_KINDS[kind] for kind in kinds]
    color, dash, _ = vega.told_apart(kinds, styles, {"symbolStrokeColor": vega.INK})
    x = vega.axis("median", vega.linear(0, 1.04 * top or 1.0), "Milliseconds per call")
    tails = [row for row in data if row["p95"] is not None]
    bar = {"stroke": vega.INK, "strokeWidth": 0.8, "height": 11}
    end = {"color": vega.INK, "height": 8, "width": 1.2}
    content = rows_of(
        labels,
        [
            mark("bar", data, {"x": x, "color": color, "strokeDash": dash}, **bar),
            mark("rule", tails, vega.span("x", x, "median", "p95"), strokeWidth=1),
            mark("tick", tails, {"x": {**x, "field": "p95"}}, **end),
        ],
        names=190 if vega.is_wide(width) else 120,
        figures={"Median": [m for m, _ in figures], "p95": [p for _, p in figures]},
        bold=heads,
    )
    title = "Where the time of a call goes: stages"
    return vega.picture(content, title=title, about=about, said=said, width=width)


def _bars(report: StageReport) -> Iterator[tuple[str, str, TimesFacts]]:
    """Label, kind and times of each."""
    if report.call is not None:
        yield "whole call", _CALL, report.call
    yield from ((name, _STAGE, stage) for name, stage in report.stages.items() if stage.direct)
    if report.legs is not None:
        yield "legs in a row", _LEG, report.legs.serial
        yield "legs side by side", _LEG, report.legs.parallel
