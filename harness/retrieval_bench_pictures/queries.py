"""Slow queries: every call of every query, queries by their median."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.text import number
from retrieval_bench.stats.percentiles import medians
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.lettering import fitted
from retrieval_bench_pictures.vega import Spec, mark

_SLOWEST = 6
"""Queries that are named."""

_DOTS, _STEPS = 3_000, 400
"""Calls, on a wide picture, and medians that are drawn, at most."""

_APART = 100
"""Queries up to which the calls of each stand side by side in the order made."""

_CROSS = "M-1,-1L1,1M-1,1L1,-1"


def per_query(
    ms: NDArray[np.float64],
    query: NDArray[np.int32],
    labels: Sequence[str],
    *,
    failed: NDArray[np.bool_] | None = None,
    name: str = "",
    about: str = "",
    width: int = vega.WIDTH,
) -> Spec:
    """Every call as a dot over its query, the medians as a line, the slowest queries by name.

    Of calls that would hide each other one is drawn, and how many are is written above; failed
    ones are crosses.

    Args:
        ms, query: one for each call; ``query`` is a position in ``labels``. Times that are not
            finite are left out.
        labels: how the queries are called, any text; equal ones are different queries.
        failed: one for each call; None = none failed.
        name: of the system.
    """
    keep = np.isfinite(ms)
    broken = np.zeros(len(ms), dtype=bool) if failed is None else failed
    lost, ms, query, broken = int((~keep).sum()), ms[keep], query[keep], broken[keep]
    asked, position = np.unique(query, return_inverse=True)
    middle = medians(ms, query) if len(ms) else ms
    order = np.argsort(middle, kind="stable")
    rank = np.argsort(order, kind="stable")[position]
    scale, n = vega.scale_for([ms]), len(order)
    x = np.round(1 + rank + _offsets(rank, n), 3)
    drawn = _visible(x, ms, broken, scale, _DOTS * width // vega.WIDTH)

    def rows(which: NDArray[np.int64]) -> list[Spec]:
        places = zip(x[which].tolist(), ms[which].tolist(), strict=True)
        return [{"query": place, "ms": time} for place, time in places]

    dots = f"{len(drawn):,} of {counted(len(ms), 'call')}; the others lie under or beside these."
    if len(drawn) == len(ms):
        dots = f"all {counted(len(ms), 'call')}."
    notes = [f"Dots are {dots} The line is the median of each query."] if n else []
    notes += [f"Crosses are failed calls: {int(broken.sum()):,}."] if broken.any() else []
    notes += vega.notes_on_times([ms], scale, "lower")
    notes += [f"The picture leaves out {counted(lost, 'call')} without a time."] if lost else []
    slow = [(fitted(labels[asked[at]], 190), number(middle[at])) for at in order[::-1][:_SLOWEST]]
    named = ", ".join(f"{label} ({time} ms)" for label, time in slow)
    notes += [f"Slowest: {named}."] if n else []
    ends = f"{number(middle[order[0]])} and {number(middle[order[-1]])} ms" if n else ""
    across = f"{counted(n, 'query')}, from the fastest to the slowest median"
    place = vega.linear(0.5, max(n, 1) + 0.5)
    at = {
        "x": vega.axis("query", place, across, grid=False, values=vega.whole(1, n)),
        "y": vega.milliseconds(scale, width),
    }
    calls = rows(drawn[~broken[drawn]]), rows(drawn[broken[drawn]])
    layers = _layers(*calls, middle[order], 2.6 if len(ms) > 300 else 4.0)
    return vega.picture(
        {"height": 300, "encoding": at, "layer": layers},
        title="Every call, per query" + f": {name}" * bool(name),
        about=about,
        notes=notes,
        said=[f"Medians of {counted(n, 'query')} lie between {ends}."] if n else [],
        width=width,
    )


def _layers(
    calls: Sequence[Spec], failed: Sequence[Spec], medians: NDArray[np.float64], size: float
) -> list[Spec]:
    # All dots are one line that breaks behind each point, drawn with a round pen: a tenth of the
    # bytes of so many marks.
    dots = [row for dot in calls for row in (dot, {**dot, "ms": None})]
    some = vega.thinned(len(medians), _STEPS)
    edges = [*(some + 0.5).tolist(), len(medians) + 0.5]
    heights = [*medians[some].tolist(), *medians[-1:].tolist()]
    line = [{"query": q, "ms": m} for q, m in zip(edges, heights, strict=False)]
    look = {"color": vega.INK, "filled": False, "size": 30, "strokeWidth": 1.2}
    pen = {"color": vega.DOT, "strokeCap": "round", "strokeWidth": size}
    return [
        mark("line", dots, vega.UNSORTED, **pen),
        mark("point", failed, shape=_CROSS, **look),
        mark("line", line, vega.UNSORTED, color=vega.INK, interpolate="step-after"),
    ]


def _offsets(rank: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """Return where in the slot of its query a call stands, -0.35 to 0.35: in the order made."""
    if n > _APART:
        return np.zeros(len(rank))
    order, calls = np.argsort(rank, kind="stable"), np.bincount(rank)
    visit = np.empty(len(rank))
    visit[order] = np.arange(len(rank)) - np.repeat(np.cumsum(calls) - calls, calls)
    return np.asarray(0.7 * ((visit + 0.5) / calls[rank] - 0.5))


def _visible(
    x: NDArray[np.float64],
    ms: NDArray[np.float64],
    failed: NDArray[np.bool_],
    scale: Spec,
    most: int,
) -> NDArray[np.int64]:
    """Calls to draw: one for each cell of a grid that some call lies in, failed ones apart.

    The cells are as small as the number of dots allows, so that a dot that stands alone is never
    left out.
    """
    low, high = scale["domain"]
    up, top = np.clip(ms, low, high) - low, high - low
    if scale["type"] == "log":
        up, top = np.log1p(up / low), np.log(high / low)
    across, up, size = 700 * x / max(x.max(initial=1.0), 1.0), 300 * up / top, 1.0
    while True:
        columns, rows = (across / size).astype(np.int64), (up / size).astype(np.int64)
        first = np.unique((1000 * columns + rows) * 2 + failed, return_index=True)[1]
        if len(first) <= most:
            return np.asarray(np.sort(first))
        size *= max(1.02, (len(first) / most) ** 0.4)
