"""Did the machine change while it was measured: latency from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted, distinct_names
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.pictures.canvas import WIDTH, Canvas, canvas, dashed, marked
from retrieval_bench.reports.pictures.latency import Calls
from retrieval_bench.reports.pictures.palette import FILL, INK, SOFT, STYLES
from retrieval_bench.reports.pictures.text import cut, in_words, number
from retrieval_bench.stats.percentiles import medians, percentile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 64, 58, 640, 260
_ROW = 18
_MARKED_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class _Drift:
    """Percent above the usual time, one for each round that has calls; rounds count from 1.

    ``low`` and ``high`` are the 95 % interval of ``middle``, NaN where there are too few calls.
    """

    name: str
    told: str
    round: NDArray[np.int64]
    low: NDArray[np.float64]
    middle: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def spread(self) -> float:
        return float(np.ptp(self.middle)) if len(self.middle) else 0.0


def rounds(systems: Sequence[Calls], *, about: str = "") -> str:
    """How far the calls of each round lie from what is usual, as SVG: a quiet machine is a level.

    The usual time of a call is the median of its query over all rounds (where the queries are not
    given: of all calls), so that what a round asks does not matter. A round is the median of its
    calls in percent of that; one system has a band, the 95 % interval. Of more than eight systems
    those that moved most are told apart.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    names = distinct_names([s.name for s in systems])
    drifts = [_drift(name, calls) for name, calls in zip(names, systems, strict=True)]
    order = sorted(range(len(drifts)), key=lambda i: (-drifts[i].spread, i))
    foremost = [drifts[i] for i in sorted(order[: len(STYLES)])]
    rest = [drifts[i] for i in sorted(order[len(STYLES) :])]
    top = _TOP + _PLOT_HEIGHT + 60
    height = top + _ROW * (len(foremost) + bool(rest))
    with canvas(height) as sheet:
        sheet.head("Drift: the calls of each round against the whole run", about)
        axes = sheet.panel(_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT)
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
        _axes(sheet, axes, drifts)
        for i, (drift, style) in enumerate(zip(foremost, STYLES, strict=False)):
            y = top + _ROW * i
            sheet.sample(34, y - 4, style)
            sheet.write(60, y, cut(drift.name, 40))
            sheet.write(WIDTH - 16, y, drift.told, anchor="right")
        if rest:
            told = f"thin lines: {counted(len(rest), 'other system')}, which moved less"
            sheet.write(60, top + _ROW * len(foremost), told, color=SOFT)
        return sheet.svg(
            title="Drift of latency from round to round",
            description=in_words([f"{drift.name}: {drift.told}." for drift in drifts]),
        )


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
    told = counted(len(numbers), "round")
    if len(numbers) > 1:
        told += f" from {_change(middle.min(), 1)} to {_change(middle.max(), 1)}"
    if len(ms):
        told += f"; median of all calls {number(float(np.median(ms)))} ms"
    return _Drift(name, told, numbers.astype(np.int64) + 1, low, middle, high)


def _usual(ms: NDArray[np.float64], query: NDArray[np.int32] | None) -> NDArray[np.float64]:
    """For each call the median of its query, or of all calls."""
    if query is None or not len(ms):
        return np.full(len(ms), np.median(ms) if len(ms) else 0.0)
    return np.asarray(medians(ms, query)[np.unique(query, return_inverse=True)[1]])


def _axes(sheet: Canvas, axes: Axes, drifts: Sequence[_Drift]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    banded = len(drifts) == 1
    shown = [a for d in drifts for a in ((d.low, d.middle, d.high) if banded else (d.middle,))]
    values = np.concatenate([np.zeros(1), *shown])
    values = values[np.isfinite(values)]
    # At least 5 % to each side: a quiet run is to look quiet.
    axes.set_ylim(min(-5.0, 1.1 * float(values.min())), max(5.0, 1.1 * float(values.max())))
    last = max((int(d.round.max()) for d in drifts if len(d.round)), default=1)
    axes.set_xlim(0.5, last + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}" if 1 <= v <= last else ""))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: _change(v)))
    axes.axhline(0, color=INK, linewidth=0.8, clip_on=False)
    middle = _TOP + _PLOT_HEIGHT / 2
    sheet.write(14, middle, "median of the round", anchor="center", upwards=True)
    label = "round" + (" (band: 95 % interval of its median)" if banded else "")
    sheet.write(_LEFT + _PLOT_WIDTH / 2, _TOP + _PLOT_HEIGHT + 34, label, anchor="center")


def _change(percent: float, decimals: int = 0) -> str:
    return signed(percent, decimals, " %").replace("-", "−")
