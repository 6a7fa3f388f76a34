"""Recall against exact search over the time it takes, at each value of a parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.text import number
from retrieval_bench.runs.records import PICTURES, add_files
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.draw import svg
from retrieval_bench_pictures.vega import Spec, mark, span
from retrieval_bench_scale.approximate.swept import Sweep, SweptLevel

_LOG_FROM = 4.0


def sweep_curve(sweep: Sweep, *, width: int = vega.WIDTH) -> Spec:
    """A line for each level, a point for each value; what is wanted is a dashed line, the cheapest
    value that finds it has a ring, and the exhaustive search stands at 1."""
    rows = [row for level in sweep.levels for row in _rows(level)]
    missing = sum(len(level.values) for level in sweep.levels) - len(rows)
    exact = [
        {"system": level.name, "ms": level.exact_ms, "recall": 1.0}
        for level in sweep.levels
        if level.exact_ms
    ]
    notes = [
        (
            f"Dashed: the recall that is wanted, {sweep.target_recall:g}. Rings: the cheapest "
            "value shown to reach it. Squares: an exhaustive search."
        )
    ]
    if missing:
        notes.append(f"Left out: {counted(missing, 'value')} without a recall or a p50.")
    return vega.picture(
        _content(sweep, rows, exact, width),
        title=f"{sweep.retriever}: what {sweep.parameter} finds and takes",
        about=f"{sweep.dataset}, k = {sweep.k}",
        notes=notes,
        said=[_said(sweep, level) for level in sweep.levels],
        width=width,
    )


def keep_sweep(sweep: Sweep) -> None:
    """Put the picture into the folder of a saved sweep.

    Raises:
        MissingDependencyError: vl-convert-python is not installed.
        RecordError: it cannot be written; the sweep itself is complete.
    """
    if sweep.folder is not None:
        add_files(sweep.folder, {f"{PICTURES}/sweep.svg": svg(sweep_curve(sweep))})


def _rows(level: SweptLevel) -> list[Spec]:
    return [
        {"system": level.name, "value": f"{one.value:g}", "ms": one.ms, "recall": one.recall,
         "low": low, "high": high, "chosen": one.value == level.cheapest}
        for one in level.values
        if one.ms is not None and one.recall is not None
        for low, high in [one.ci95 or (one.recall, one.recall)]
    ]  # fmt: skip


def _said(sweep: Sweep, level: SweptLevel) -> str:
    points = ", ".join(
        f"{sweep.parameter} {row['value']} finds {row['recall']:.3f} in {number(row['ms'])} ms"
        for row in _rows(level)
    )
    return f"{level.name}: {points}."


def _content(sweep: Sweep, rows: list[Spec], exact: list[Spec], width: int) -> Spec:
    names = [level.name for level in sweep.levels]
    times = [row["ms"] for row in (*rows, *exact) if row["ms"]]
    scale = vega.scale_for([np.array(times)], _LOG_FROM)
    told = "p50 in ms" + ", logarithmic" * (scale["type"] == "log")
    bare = any(one.search_ms is not None for level in sweep.levels for one in level.values)
    x = vega.axis("ms", scale, told + ", without encoding the query" * bare)
    ends = [row[end] for row in rows for end in ("low", "high")]
    upwards = vega.around([*ends, sweep.target_recall, *([1.0] * bool(exact))], 0.05)
    y = vega.axis("recall", upwards, f"Exact top {sweep.k} found", width)
    color, dash, shape = vega.told_apart(
        names, key=vega.legend(names, names, 4) if names[1:] else None
    )
    across: Spec = {"x": {"value": 0}, "x2": {"value": {"expr": "width"}}, "y": y}
    label: dict[str, Any] = {"align": "left", "dx": 8, "dy": 10, "color": vega.SOFT}
    place, target = {"x": x, "y": y}, [{"recall": sweep.target_recall}]
    return {
        "height": 300,
        "layer": [
            mark("rule", target, across, strokeDash=[4, 3], color=vega.SOFT),
            mark("line", rows, {**place, "color": color, "strokeDash": dash, **vega.UNSORTED}),
            mark("errorbar", rows, {"x": x, **span("y", y, "low", "high"), "color": color}),
            mark("point", rows, {**place, "color": color, "shape": shape}),
            mark("point", exact, {**place, "color": color}, shape="square", filled=False, size=70),
            mark("point", [row for row in rows if row["chosen"]], place, filled=False,
                 stroke=vega.INK, strokeWidth=1.6, size=240),
            mark("text", rows, {**place, "text": {"field": "value"}}, **label),
        ],
    }  # fmt: skip
