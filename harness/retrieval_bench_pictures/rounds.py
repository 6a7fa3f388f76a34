"""Did the machine change while it was measured: latency from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted, distinct_names
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.render.text import clean, number
from retrieval_bench.stats.percentiles import medians, percentile
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.latency import Calls
from retrieval_bench_pictures.lettering import fitted, wrapped
from retrieval_bench_pictures.vega import Spec, mark

_MARKED_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class _Drift:
    """A system from round to round.

    Attributes:
        median: of all calls.
        rows: percent above the usual time and its 95 % interval, None where there are too few
            calls, one for each round that has some; rounds count from 1.
    """

    name: str
    median: str
    rows: Sequence[Spec]

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest change."""
        changes = [row["change"] for row in self.rows]
        return min(changes, default=0.0), max(changes, default=0.0)

    @property
    def summary(self) -> str:
        course = counted(len(self.rows), "round")
        if len(self.rows) > 1:
            course += ", {} to {}".format(*map(_change, self.ends))
        return course + f", median {self.median}" * bool(self.median)


def rounds(systems: Sequence[Calls], *, about: str = "", width: int = vega.WIDTH) -> Spec:
    """Return how far the calls of each round lie from what is usual: a quiet machine is a level.

    The usual time of a call is the median of its query over all rounds (where the queries are not
    known: of all calls), so that what a round asks does not matter. A round is the median of its
    calls in percent of that; one system has a band, the 95 % interval. Of more than eight systems
    those that moved most are told apart.
    """
    names = distinct_names([s.name for s in systems])
    drifts = [_drift(clean(name), calls) for name, calls in zip(names, systems, strict=True)]
    order = sorted(range(len(drifts)), key=lambda i: (drifts[i].ends[0] - drifts[i].ends[1], i))
    foremost = [drifts[i] for i in sorted(order[: len(vega.STYLES)])]
    rest = [drifts[i] for i in sorted(order[len(vega.STYLES) :])]
    notes = []
    if len(drifts) == 1:
        notes.append("The band is the 95 % interval of the median of each round.")
    if rest:
        notes.append(f"Thin lines are {counted(len(rest), 'other system')}, which moved less.")
    return vega.picture(
        _content(foremost, rest, width),
        title="Drift: the calls of each round against the whole run",
        about=about,
        notes=notes,
        said=[f"{drift.name}: {drift.summary}." for drift in drifts],
        width=width,
    )


def _content(foremost: Sequence[_Drift], rest: Sequence[_Drift], width: int) -> Spec:
    rows = [row for drift in foremost for row in drift.rows]
    thin = [row for drift in rest for row in drift.rows]
    band = [row for row in rows if row["low"] is not None] if len(foremost) == 1 else []
    shown = [row["change"] for row in (*rows, *thin)]
    shown += [row[end] for row in band for end in ("low", "high")]
    # At least 5 % to each side: a quiet run is to look quiet.
    scale = vega.linear(min([-5, *(1.1 * v for v in shown)]), max([5, *(1.1 * v for v in shown)]))
    last = max((row["round"] for row in (*rows, *thin)), default=1)
    percent = "(datum.value > 0 ? '+' : '') + datum.label + ' %'"
    x = vega.axis("round", vega.linear(0.5, last + 0.5), "Round", values=vega.whole(1, last))
    y = vega.axis("change", scale, "Median of the round", width, labelExpr=percent)
    room = width - 2 * vega.MARGIN - 60
    labels = [f"{fitted(d.name, 190)}: {d.summary}" for d in foremost]
    if not vega.is_wide(width):
        labels = ["\n".join([fitted(d.name, room), *wrapped(d.summary, room)]) for d in foremost]
    names = [drift.name for drift in foremost]
    color, dash, shape = vega.told_apart(names, key=vega.legend(names, labels))
    each = {"detail": {"field": "system"}}
    points = rows if last <= _MARKED_ROUNDS else []
    return {
        "height": 260,
        "encoding": {"x": x, "y": y},
        "layer": [
            mark("line", thin, each, color=vega.SOFT, strokeWidth=0.5),
            mark("area", band, vega.span("y", y, "low", "high"), color=vega.FILL),
            mark("rule", [{"change": 0}], {"x": {"value": 0}, "x2": {"value": {"expr": "width"}}},
                 strokeWidth=0.8),
            mark("line", rows, {"color": color, "strokeDash": dash}),
            mark("point", points, {"color": color, "shape": shape}),
        ],
    }  # fmt: skip


def _drift(name: str, calls: Calls) -> _Drift:
    known = np.isfinite(calls.ms)
    ms = calls.ms[known]
    each = np.zeros(len(ms), np.int64) if calls.round is None else calls.round[known]
    usual = _usual(ms, None if calls.query is None else calls.query[known])
    # Where the usual time is 0, a call can only be equal to it or off every scale.
    percent = 100 * (np.divide(ms, usual, out=np.ones_like(ms), where=usual > 0) - 1)
    rows = []
    for at in np.unique(each).tolist():
        of_round = percent[each == at]
        low, high = percentile(of_round, 50.0).ci95 or (None, None)
        change = float(np.median(of_round))
        rows.append({"system": name, "round": at + 1, "change": change, "low": low, "high": high})
    return _Drift(name, f"{number(float(np.median(ms)))} ms" if len(ms) else "", rows)


def _usual(ms: NDArray[np.float64], query: NDArray[np.int32] | None) -> NDArray[np.float64]:
    """For each call the median of its query, or of all calls."""
    if query is None or not len(ms):
        return np.full(len(ms), np.median(ms) if len(ms) else 0.0)
    return np.asarray(medians(ms, query)[np.unique(query, return_inverse=True)[1]])


def _change(percent: float) -> str:
    return signed(percent, 1, " %").replace("-", "−")
