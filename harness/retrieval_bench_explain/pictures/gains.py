"""Differences of two systems: the difference on every query, from the largest loss to the largest
gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.stats.randomization import signs
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.lettering import fitted
from retrieval_bench_pictures.vega import Spec, mark

_LABELS = 3
"""Queries named at either end."""

_BARS = 300
"""Queries from which neighbours share a bar."""


def gains(
    differences: NDArray[np.float64],
    labels: Sequence[str],
    *,
    a: str,
    b: str,
    metric: str,
    about: str = "",
    width: int = vega.WIDTH,
) -> Spec:
    """The differences b - a as bars in rising order, the queries at both ends by name.

    Args:
        differences: one for each query, finite.
        labels: how the queries are called, any text.
        a, b: names of the systems.
        metric: what is subtracted.
    """
    order = np.argsort(differences, kind="stable")
    values, n = differences[order], len(differences)
    reach = 1.08 * float(np.abs(values).max(initial=0.0)) or 1.08
    across = f"{counted(n, 'query')}, from the largest loss to the largest gain"
    upwards = f"{fitted(b, 150)} − {fitted(a, 150)}"
    bare = {"ticks": False, "labels": False, "grid": False}
    x = vega.axis("query", vega.linear(0, max(n, 1)), across, **bare)
    y = vega.axis("difference", vega.linear(-reach, reach), upwards, width, tickCount=8)
    bars = {"x": x, **vega.UNSORTED}
    shape = {"interpolate": "step-after"}
    mean = [{"difference": float(values.mean())}] if n else []
    layers = [
        mark("area", _bars(values, 1), bars, color=vega.STYLES[0].color, **shape),
        mark("area", _bars(values, -1), bars, color=vega.STYLES[1].color, **shape),
        mark("rule", [{"difference": 0}], strokeWidth=0.8),
        mark("rule", mean, color=vega.SOFT, strokeDash=[4, 3]),
    ]
    return vega.picture(
        {"height": 240, "encoding": {"y": y}, "layer": layers},
        title=f"Differences in {metric} between {b} and {a}, per query",
        about=about,
        notes=_notes(values, [labels[at] for at in order], a, b),
        width=width,
    )


def _bars(values: NDArray[np.float64], sign: int) -> list[Spec]:
    """Edges and heights of the bars of one ``sign``, all others of no height; of very many queries
    some, equally far apart, the first and the last among them."""
    at = vega.thinned(len(values), _BARS)
    heights = (sign * np.maximum(sign * values[at], 0)).tolist()
    edges = [*at.tolist(), len(values)]
    ends = zip(edges, [*heights, *heights[-1:]], strict=False)
    return [{"query": edge, "difference": height} for edge, height in ends]


def _notes(values: NDArray[np.float64], labels: Sequence[str], a: str, b: str) -> list[str]:
    """Return how many queries won and lost, the mean, and the queries at both ends."""
    n, sign = len(values), signs(values)
    won, lost = int((sign > 0).sum()), int((sign < 0).sum())
    counts = (
        f"{fitted(b, 190)} is above {fitted(a, 190)} on {counted(won, 'query')}, below it on "
        f"{lost:,} and equal to it on {n - won - lost:,}."
    )
    if not n:
        return [counts]
    notes = [counts, f"Dashed line: the mean difference is {signed(values.mean())}."]
    losses = [at for at in range(min(_LABELS, n)) if values[at] < 0]
    gained = [at for at in range(n - 1, max(n - 1 - _LABELS, -1), -1) if values[at] > 0]
    for what, places in (("losses", losses), ("gains", gained)):
        named = [f"{fitted(labels[at], 190)} ({signed(values[at], 3)})" for at in places]
        notes += [f"Largest {what}: {', '.join(named)}."] if named else []
    return notes
