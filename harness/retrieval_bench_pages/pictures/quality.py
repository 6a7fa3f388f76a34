"""How good the systems are: for each metric a dot with its interval, the best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite

from retrieval_bench.core.errors import distinct_names
from retrieval_bench.reports.render.text import clean
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.lettering import fitted
from retrieval_bench_pictures.rows import COLUMN, rows_of
from retrieval_bench_pictures.vega import Spec, mark

Estimate = tuple[float, tuple[float, float] | None]
"""A mean and its 95 % interval; NaN = not known."""

_NOTE = (
    "A dot is a mean, its line the 95 % interval. Each metric is sorted and has an axis of its own."
)

_PANEL, _NAMES = vega.NARROW - 2 * vega.MARGIN, 130
"""Px of a panel, two of which have room on a wide picture, and of the names in it."""

_DESCRIBED = 4
"""Systems of each metric that are read aloud."""


def quality(
    names: Sequence[str],
    metrics: Mapping[str, Sequence[Estimate]],
    *,
    about: str = "",
    width: int = vega.WIDTH,
) -> Spec:
    """A panel for each metric, two beside each other where there is room; in each the systems from
    best to worst. Panels have axes of their own: lengths compare within one, not between two.

    Args:
        names: of the systems, shown as they are; equal ones are told apart by a number.
        metrics: name -> one estimate for each system.
    """
    shown = [clean(name) for name in distinct_names(names)]
    panels = {
        metric: sorted(zip(shown, each, strict=True), key=_order)
        for metric, each in metrics.items()
    }
    return vega.picture(
        {
            "concat": [_panel(metric, rows, shown) for metric, rows in panels.items()],
            "columns": 2 if vega.is_wide(width) else 1,
            "spacing": {"row": 14, "column": 20},
        },
        title="Quality, metric by metric",
        about=about,
        notes=[_NOTE],
        said=[_described(metric, rows) for metric, rows in panels.items()],
        width=width,
    )


def _order(row: tuple[str, Estimate]) -> float:
    return -row[1][0] if isfinite(row[1][0]) else inf


def _panel(metric: str, rows: Sequence[tuple[str, Estimate]], names: Sequence[str]) -> Spec:
    data = [
        {"row": at, "system": name, "mean": mean, "low": low, "high": high}
        for at, (name, (mean, ci95)) in enumerate(rows)
        if isfinite(mean)
        for low, high in [ci95 or (mean, mean)]
    ]
    ends = [end for _, (mean, ci95) in rows for end in ci95 or (mean,)]
    x = vega.axis("mean", vega.around(ends, 0.06), tickCount=4)
    alike = [vega.STYLES[0]._replace(color=vega.INK)] * len(names)
    styles = vega.STYLES if len(names) <= len(vega.STYLES) else alike
    color, _, shape = vega.told_apart(names, styles)
    return {
        "title": {"text": fitted(metric, _PANEL, bold=True), "fontSize": 11, "offset": 6},
        **rows_of(
            [name for name, _ in rows],
            [
                mark("rule", data, {**vega.span("x", x, "low", "high"), "color": color}),
                mark("point", data, {"x": x, "color": color, "shape": shape}),
            ],
            names=_NAMES,
            width=_PANEL - _NAMES - COLUMN - 4,
            figures={"": [f"{mean:.4f}" if isfinite(mean) else "–" for _, (mean, _) in rows]},
        ),
    }


def _described(metric: str, rows: Sequence[tuple[str, Estimate]]) -> str:
    said = [
        f"{name} {mean:.4f}" + (f" [{ci95[0]:.4f}, {ci95[1]:.4f}]" if ci95 else "")
        for name, (mean, ci95) in rows
        if isfinite(mean)
    ]
    more = len(said) - _DESCRIBED
    said[_DESCRIBED:] = [f"and {more} more"] if more > 0 else []
    return f"{metric}: {', '.join(said)}."
