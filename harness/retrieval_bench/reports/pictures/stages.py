"""Where the time of a call goes: one bar for each stage of each system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrieval_bench.core.errors import distinct_names
from retrieval_bench.reports.pictures.canvas import WIDTH, Canvas, canvas, scale_for, set_scale
from retrieval_bench.reports.pictures.palette import FILL, INK, PAPER, SOFT
from retrieval_bench.reports.pictures.text import cut, in_words, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Times = tuple[float, float]
"""Median and 95th percentile, ms; NaN = not known."""

_LEFT, _TOP, _PLOT_WIDTH = 190, 58, 370
_ROW = 19


@dataclass(frozen=True, slots=True)
class StageTimes:
    """What one system says of its parts.

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


class _Kind(NamedTuple):
    fill: str
    hatch: str
    legend: str


_CALL = _Kind(SOFT, "", "the whole call")
_STAGE = _Kind(FILL, "", "stage")
_LEG = _Kind(PAPER, "////", "made of stages: a leg, or legs together")
_KINDS = (_CALL, _STAGE, _LEG)


class _Bar(NamedTuple):
    at: float
    label: str
    times: Times
    kind: _Kind


def stages(systems: Sequence[StageTimes], *, about: str = "") -> str:
    """A bar as long as the median of each stage and a line to its 95th percentile, as SVG.

    All bars begin at 0 on one linear axis, so that lengths compare, also between systems; the
    figures stand beside them for those too short to see.

    Args:
        about: a line under the heading, such as dataset and machine.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    names = distinct_names([s.name for s in systems])
    groups = [list(_bars(s)) for s in systems]
    rows = sum(len(bars) + 1.6 for bars in groups)
    kinds = [k for k in _KINDS if any(b.kind is k for g in groups for b in g)]
    down = _ROW * max(rows, 1.0)
    height = int(_TOP + down + 74)
    with canvas(height) as sheet:
        sheet.head("Where the time of a call goes", about)
        axes = sheet.panel(_LEFT, _TOP, _PLOT_WIDTH, down, grid="x")
        values = np.array([t for g in groups for b in g for t in b.times])
        largest = values[np.isfinite(values)].max(initial=0.0)
        set_scale(axes.xaxis, scale_for([np.array([0.0, largest])]), ticks=6)
        axes.set_ylim(max(rows, 1.0), 0)
        axes.set_yticks([])
        start = 0.0
        placed = []
        for name, bars in zip(names, groups, strict=True):
            sheet.write(16, _TOP + _ROW * (start + 1) + 2, cut(name, 90), bold=True)
            placed += [bar._replace(at=start + 1.6 + bar.at) for bar in bars]
            start += len(bars) + 1.6
        _draw(axes, placed)
        _write(sheet, placed)
        sheet.write(
            _LEFT + _PLOT_WIDTH / 2, _TOP + down + 34, "milliseconds per call", anchor="center"
        )
        x = float(_LEFT)
        for kind in kinds:
            sheet.box(x, _TOP + down + 49, 16, 10, fill=kind.fill, edge=INK, hatch=kind.hatch)
            sheet.write(x + 22, _TOP + down + 58, kind.legend, color=SOFT)
            x += 40 + 6 * len(kind.legend)
        return sheet.svg(
            title="Where the time of a call goes: stages",
            description=in_words(
                [
                    f"{name}: " + "; ".join(f"{b.label} {_in_words(b.times)}" for b in bars) + "."
                    for name, bars in zip(names, groups, strict=True)
                ]
            ),
        )


def _bars(system: StageTimes) -> Iterator[_Bar]:
    parts = [] if system.call is None else [("whole call", system.call, _CALL)]
    parts += [(label, times, _STAGE) for label, times in system.stages.items()]
    parts += [(label, times, _LEG) for label, times in system.legs.items()]
    for at, (label, times, kind) in enumerate(parts):
        yield _Bar(at, label, times, kind)


def _draw(axes: Axes, bars: Sequence[_Bar]) -> None:
    for kind in _KINDS:
        alike = [bar for bar in bars if bar.kind is kind and np.isfinite(bar.times[0])]
        axes.barh(
            [bar.at for bar in alike],
            [bar.times[0] for bar in alike],
            height=0.66,
            color=kind.fill,
            edgecolor=INK,
            linewidth=0.8,
            hatch=kind.hatch,
            clip_on=False,
        )
    tails = [bar for bar in bars if np.isfinite(bar.times).all()]
    if not tails:
        return
    at = np.array([bar.at for bar in tails])
    medians, ends = np.array([bar.times for bar in tails]).T
    axes.hlines(at, medians, ends, color=INK, linewidth=1, clip_on=False)
    axes.vlines(ends, at - 0.22, at + 0.22, color=INK, linewidth=1.2, clip_on=False)


def _write(sheet: Canvas, bars: Sequence[_Bar]) -> None:
    """Labels and figures, column by column: neighbours of one kind take little room in the file."""
    columns = (WIDTH - 76, WIDTH - 16)
    for x, head in zip(columns, ("median", "p95"), strict=True):
        sheet.write(x, _TOP - 4, head, color=SOFT, anchor="right")
    for bar in bars:
        sheet.write(_LEFT - 8, _height(bar), cut(bar.label, 24), anchor="right")
    for x, i in zip(columns, (0, 1), strict=True):
        for bar in bars:
            sheet.write(x, _height(bar), number(bar.times[i]), anchor="right")


def _height(bar: _Bar) -> float:
    """The base line of the text beside a bar."""
    return _TOP + _ROW * bar.at + 4


def _in_words(times: Times) -> str:
    median, p95 = times
    if not np.isfinite(median):
        return "not known"
    return number(median) + (f", p95 {number(p95)}" if np.isfinite(p95) else "") + " ms"
