"""The share of added documents that is visible over time, of the whole and of each leg."""

from __future__ import annotations

import numpy as np

from retrieval_bench.core.errors import counted
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.vega import Spec, mark
from retrieval_bench_writes.delays import Shown
from retrieval_bench_writes.freshness import Freshness

_LEAST_MS = 0.1
"""Where the axis of times begins."""


def visible_over_time(fresh: Freshness, width: int = vega.WIDTH) -> Spec:
    """Between the last polls without and the first with it; the line is that of the first with."""
    shown: dict[str, Shown] = {"whole" if fresh.legs else fresh.retriever: fresh.visible}
    shown |= {leg.name: leg.visible for leg in fresh.legs}
    names = list(shown)[: len(vega.STYLES)]
    limit = 1e3 * fresh.limit_s
    points = [
        {
            "system": name,
            "share": point.share,
            "ms": max(_LEAST_MS, limit if point.by_s is None else 1e3 * point.by_s),
            "low": max(_LEAST_MS, 1e3 * point.not_before_s),
        }
        for name in names
        for point in shown[name].course
    ]
    color, dash, _ = vega.told_apart(names, key=vega.legend(names, names, columns=2))
    scale = vega.scale_for([np.array([point[end] for point in points for end in ("low", "ms")])])
    x = vega.axis("ms", scale, "Milliseconds since the acknowledgement", width)
    y = vega.axis("share", vega.linear(0.0, 1.0), "Share that is found", width)
    both = {"x": x, "y": y, "color": color}
    layers = [
        mark("rule", points, {**both, "x2": {"field": "low"}}, opacity=0.3),
        mark("line", points, {**both, "strokeDash": dash}, interpolate="step-after"),
    ]
    median = fresh.visible.at(50.0)
    said = [] if median.at_most_s is None else [f"Half are found by {median.at_most_s:.3g} s."]
    never = fresh.visible.never.count
    return vega.picture(
        {"layer": layers, "height": 300},
        title=f"Visible over time: {fresh.retriever}",
        about=f"{fresh.dataset}, {counted(fresh.visible.n, 'write')}, {fresh.rate:g} a second",
        notes=["Faint: since the last poll without it."]
        + [f"{counted(never, 'write')} not found within {fresh.limit_s:g} s."] * (never > 0),
        said=said,
        width=width,
    )
