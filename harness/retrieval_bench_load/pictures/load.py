"""Latency against load: where a queue begins, and where a limit breaks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.text import number
from retrieval_bench.runs.records import PICTURES, add_files
from retrieval_bench_load.engine.levels import LevelResult, State
from retrieval_bench_load.engine.load import LoadResult
from retrieval_bench_load.engine.tails import LEVELS, Tail
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.draw import svg
from retrieval_bench_pictures.vega import Spec, mark, span

_SERVICE = "service p50"


def load_curve(load: LoadResult, *, width: int = vega.WIDTH) -> Spec:
    """p50, p95 and p99 of latency, and p50 of service, against the rate that was offered; of a load
    by clients alone against their number. A search for a limit has its bracket.

    Levels that are overloaded have no percentiles, and stand as a mark at the upper edge; those
    that were not measured are left out and counted.
    """
    opened = [level.result for level in load.levels if level.result.clients is None]
    levels = opened or [level.result for level in load.levels]
    levels = [level for level in levels if level.state is not State.NOT_MEASURED]
    lost = len(opened or load.levels) - len(levels)
    rows = sorted(
        (row for level in levels for row in _rows(level)),
        key=lambda row: (row["system"], row["load"]),
    )
    over = [{"load": _load(level)} for level in levels if level.state is State.OVERLOADED]
    unit = "calls a second" if opened else "clients in turn"
    notes = [f"A cross at the upper edge is overloaded: {unit} that it does not keep up with."]
    if lost:
        notes.append(f"Left out: {counted(lost, 'level')} not measured.")
    if load.capacity is not None and load.capacity.keeps and load.capacity.breaks:
        notes.append(f"Shaded: between the highest rate shown to keep {load.capacity.limit} and "
                     "the lowest shown to break it.")  # fmt: skip
    said = [f"{level.name}: {_said(level)}." for level in levels]
    return vega.picture(
        _content(load, rows, over, unit, width),
        title=f"Latency under load: {load.retriever}",
        about=f"{load.dataset}, k = {load.k}",
        notes=notes if over else notes[1:],
        said=said,
        width=width,
    )


def keep_curve(load: LoadResult) -> None:
    """Put the picture into the folder of a saved load that has a level to show.

    Raises:
        MissingDependencyError: vl-convert-python is not installed.
        RecordError: it cannot be written; the load itself is complete.
    """
    shown = any(level.result.state is not State.NOT_MEASURED for level in load.levels)
    if load.folder is not None and shown:
        add_files(load.folder, {f"{PICTURES}/load.svg": svg(load_curve(load))})


def _load(level: LevelResult) -> float:
    return float(level.clients or level.planned or level.rate or 0.0)


def _rows(level: LevelResult) -> Iterator[Spec]:
    tails: list[tuple[str, Tail]] = [
        (f"p{percentile.level:g}", percentile) for percentile in level.latency
    ]
    tails += [(_SERVICE, percentile) for percentile in level.service[:1]]
    for name, percentile in tails:
        if percentile.ms is not None:
            low, high = percentile.ci95 or (percentile.ms, percentile.ms)
            ends = {"low": low, "high": percentile.ms if high is None else high}
            yield {"system": name, "load": _load(level), "ms": percentile.ms, **ends}


def _said(level: LevelResult) -> str:
    known = [
        f"p{percentile.level:g} {number(percentile.ms)} ms"
        for percentile in level.latency
        if percentile.ms is not None
    ]
    return ", ".join(known) or str(level.state)


def _content(load: LoadResult, rows: list[Spec], over: list[Spec], unit: str, width: int) -> Spec:
    names = [*(f"p{p:g}" for p in LEVELS), _SERVICE]
    capacity = load.capacity
    ends = [] if capacity is None else [e for e in (capacity.keeps, capacity.breaks) if e]
    limit = [] if capacity is None else [{"ms": capacity.limit.ms}]
    loads = [row["load"] for row in (*rows, *over)] + ends
    times = [row[end] for row in rows for end in ("low", "high")] + [item["ms"] for item in limit]
    y_scale = vega.scale_for([np.array(times)])
    x_scale = vega.linear(0.0, 1.05 * max(loads, default=1.0))
    x = vega.axis("load", x_scale, unit.capitalize())
    y = vega.axis("ms", y_scale, "Milliseconds", width)
    color, dash, shape = vega.told_apart(names, key=vega.legend(names, names, 4))
    band = [{"from": ends[0], "to": ends[-1]}] if len(ends) > 1 else []
    across = {"x": {"value": 0}, "x2": {"value": {"expr": "width"}}, "y": y}
    upright = {"y": {"value": 0}, "y2": {"value": {"expr": "height"}}}
    return {
        "height": 280,
        "layer": [
            mark("rect", band, {**span("x", x, "from", "to"), **upright}, color=vega.FILL),
            mark("rule", limit, across, strokeDash=[4, 3], color=vega.SOFT),
            mark("line", rows, {"x": x, "y": y, "color": color, "strokeDash": dash}),
            mark("errorbar", rows, {"x": x, **span("y", y, "low", "high"), "color": color}),
            mark("point", rows, {"x": x, "y": y, "color": color, "shape": shape}),
            mark("point", over, {"x": x, "y": {"value": 4}}, shape="cross", color=vega.INK),
        ],
    }
