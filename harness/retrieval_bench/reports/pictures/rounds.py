"""Did the machine change while it was measured: latency from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted, distinct_names
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.pictures.canvas import (
    WIDTH,
    Canvas,
    canvas,
    dashed,
    frame_for,
    is_wide,
    marked,
)
from retrieval_bench.reports.pictures.latency import Calls
from retrieval_bench.reports.pictures.palette import FILL, INK, SOFT, STYLES
from retrieval_bench.reports.render.text import fitted, in_words, number, width_of
from retrieval_bench.stats.percentiles import medians, percentile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _SYSTEM = 18, 40
"""Px of a system in the legend, also where it takes two lines."""

_INDENT = 44
_MARKED_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class _Drift:
    """Percent above the usual time, one for each round that has calls; rounds count from 1.

    ``low`` and ``high`` are the 95 % interval of ``middle``, NaN where there are too few calls.
    """

    name: str
    course: str
    median: str
    round: NDArray[np.int64]
    low: NDArray[np.float64]
    middle: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def summary(self) -> str:
        return f"{self.course}{'; median of all calls ' if self.median else ''}{self.median}"

    @property
    def spread(self) -> float:
        return float(np.ptp(self.middle)) if len(self.middle) else 0.0


def rounds(systems: Sequence[Calls], *, about: str = "", width: int = WIDTH) -> str:
    """How far the calls of each round lie from what is usual, as SVG: a quiet machine is a level.

    The usual time of a call is the median of its query over all rounds (where the queries are not
    known: of all calls), so that what a round asks does not matter. A round is the median of its
    calls in percent of that; one system has a band, the 95 % interval. Of more than eight systems
    those that moved most are told apart.

    Args:
        about: a line under the heading, such as dataset and machine.
        width: of the sheet, in px.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    names = distinct_names([s.name for s in systems])
    drifts = [_drift(name, calls) for name, calls in zip(names, systems, strict=True)]
    order = sorted(range(len(drifts)), key=lambda i: (-drifts[i].spread, i))
    foremost = [drifts[i] for i in sorted(order[: len(STYLES)])]
    rest = [drifts[i] for i in sorted(order[len(STYLES) :])]
    notes = []
    if len(drifts) == 1:
        notes.append("The band is the 95 % interval of the median of each round.")
    if rest:
        notes.append(f"Thin lines are {counted(len(rest), 'other system')}, which moved less.")
    wide = is_wide(width)
    low, high = _range(drifts)
    widest = max(width_of(_change(end)) for end in (low, high))
    frame = frame_for(width, 260 if wide else 230, labels=widest)
    top = frame.bottom + 60
    height = top + (_ROW if wide else _SYSTEM) * len(foremost) + 6 * bool(notes)
    title = "Drift: the calls of each round against the whole run"
    with canvas(height, width, title=title, about=about, notes=notes) as sheet:
        axes = sheet.panel(*frame)
        for drift in rest:
            axes.plot(drift.round, drift.middle, color=SOFT, linewidth=0.5, clip_on=False)
        if len(drifts) == 1:
            only = drifts[0]
            axes.fill_between(
                only.round, only.low, only.high, color=FILL, linewidth=0, clip_on=False
            )
        for drift, style in zip(foremost, STYLES, strict=False):
            look = {**marked(style), "linestyle": dashed(style.dash), "linewidth": 1.6}
            if len(drift.round) > _MARKED_ROUNDS:
                look["marker"] = "None"
            axes.plot(drift.round, drift.middle, **look)
        axes.set_ylim(low, high)
        _axes(axes, drifts)
        sheet.label(frame, across="Round", upwards="Median of the round")
        _legend(sheet, foremost, top)
        return sheet.svg(
            title="Drift of latency from round to round",
            description=in_words([f"{drift.name}: {drift.summary}." for drift in drifts]),
        )


def _legend(sheet: Canvas, drifts: Sequence[_Drift], top: float) -> None:
    """How each system is drawn, its name, and behind it, on a narrow sheet below it, its course."""
    wide = is_wide(sheet.width)
    left, end = sheet.margin + _INDENT, sheet.width - sheet.margin
    for at, (drift, style) in enumerate(zip(drifts, STYLES, strict=False)):
        y = top + (_ROW if wide else _SYSTEM) * at
        behind = drift.summary if wide else f"median {drift.median}" if drift.median else ""
        sheet.sample(left - 26, y - 4, style)
        sheet.write(left, y, fitted(drift.name, end - left - width_of(behind) - 12))
        sheet.write(end, y, behind, anchor="right", color=INK if wide else SOFT)
        if not wide:
            sheet.write(left, y + 16, fitted(drift.course, end - left), color=SOFT)


def _drift(name: str, calls: Calls) -> _Drift:
    finite = np.isfinite(calls.ms)
    ms = calls.ms[finite]
    each = np.zeros(len(ms), np.int64) if calls.round is None else calls.round[finite]
    numbers = np.unique(each)
    usual = _usual(ms, None if calls.query is None else calls.query[finite])
    # Where the usual time is 0, a call can only be equal to it or off every scale.
    percent = 100 * (np.divide(ms, usual, out=np.ones_like(ms), where=usual > 0) - 1)
    middle, low, high = np.full((3, len(numbers)), np.nan)
    for i, number_ in enumerate(numbers.tolist()):
        of_round = percent[each == number_]
        middle[i] = np.median(of_round)
        low[i], high[i] = percentile(of_round, 50.0).ci95 or (np.nan, np.nan)
    course = counted(len(numbers), "round")
    if len(numbers) > 1:
        course += f" from {_change(middle.min(), 1)} to {_change(middle.max(), 1)}"
    median = f"{number(float(np.median(ms)))} ms" if len(ms) else ""
    return _Drift(name, course, median, numbers.astype(np.int64) + 1, low, middle, high)


def _usual(ms: NDArray[np.float64], query: NDArray[np.int32] | None) -> NDArray[np.float64]:
    """For each call the median of its query, or of all calls."""
    if query is None or not len(ms):
        return np.full(len(ms), np.median(ms) if len(ms) else 0.0)
    return np.asarray(medians(ms, query)[np.unique(query, return_inverse=True)[1]])


def _range(drifts: Sequence[_Drift]) -> tuple[float, float]:
    """Of all that is drawn, and at least 5 % to each side: a quiet run is to look quiet."""
    banded = len(drifts) == 1
    shown = [a for d in drifts for a in ((d.low, d.middle, d.high) if banded else (d.middle,))]
    values = np.concatenate([np.zeros(1), *shown])
    values = values[np.isfinite(values)]
    return min(-5.0, 1.1 * float(values.min())), max(5.0, 1.1 * float(values.max()))


def _axes(axes: Axes, drifts: Sequence[_Drift]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    last = max((int(d.round.max()) for d in drifts if len(d.round)), default=1)
    axes.set_xlim(0.5, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}" if 1 <= v <= last else ""))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: _change(v)))
    axes.axhline(0, color=INK, linewidth=0.8, clip_on=False)


def _change(percent: float, decimals: int = 0) -> str:
    return signed(percent, decimals, " %").replace("-", "−")
