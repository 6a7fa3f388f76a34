"""Parts that every specification shares: size and heading, systems that differ by more than their
colour, axes and legends. A specification is a plain dict in the words of Vega-Lite."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.text import clean
from retrieval_bench_pictures.lettering import in_words, wrapped

Spec = dict[str, Any]
"""A specification, or a part of one."""

VERSION = "5.21"
"""Of Vega-Lite: the newest of the fifth, which notebooks show."""

WIDTH, NARROW = 720, 358
"""Of a picture for a desk and of one for a phone, in px: a screen of 390 px shows the latter at its
natural size, between margins of 16 px."""

MARGIN = 8
"""Px that stay free around a picture."""

INK, SOFT, GRID, PAPER = "#1c1c1e", "#5c5c63", "#dcdce0", "#ffffff"
DOT, FILL = "#8d8d96", "#a9c4e4"

DARK = {
    INK: "#ececf0", SOFT: "#b0b0b8", GRID: "#3b3d44", PAPER: "#17181c", DOT: "#84848e",
    FILL: "#3f638f", "#0b57a4": "#74b4ff", "#c1440e": "#ff9a66", "#0d7a56": "#4fcfa3",
    "#7b3fa0": "#cf9df2", "#8a6100": "#e8c154", "#b1296c": "#ff8fc3", "#176f7d": "#63d2e2",
    "#4a4a50": "#c9c9d1",
}  # fmt: skip
"""Colour of a picture -> what it is on a dark screen. Nothing is drawn in another colour."""


class Style(NamedTuple):
    """Style of one system; ``dash`` is a pattern in px, empty for a solid line."""

    color: str
    dash: tuple[float, ...]
    shape: str


STYLES = (
    Style("#0b57a4", (), "circle"),
    Style("#c1440e", (6, 2.5), "square"),
    Style("#0d7a56", (1.5, 2), "triangle-up"),
    Style("#7b3fa0", (8, 2, 1.5, 2), "diamond"),
    Style("#8a6100", (3.5, 2), "triangle-down"),
    Style("#b1296c", (10, 3), "cross"),
    Style("#176f7d", (6, 2, 1.5, 2, 1.5, 2), "triangle-right"),
    Style("#4a4a50", (1, 3.5), "triangle-left"),
)
"""As many systems as one pair of axes can show apart."""

_NO_TIME = 1e-9
"""Milliseconds that no clock tells from 0."""

_CONFIG: Spec = {
    "aria": False,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "domainColor": SOFT, "tickColor": SOFT, "gridColor": GRID, "gridWidth": 0.7,
        "labelColor": INK, "titleColor": INK, "titleFontWeight": "normal",
        "labelFontSize": 11, "titleFontSize": 11, "labelLimit": 0, "titleLimit": 0,
        "labelOverlap": "greedy", "labelSeparation": 6, "titlePadding": 8, "tickSize": 4,
    },
    "title": {
        "anchor": "start", "frame": "bounds", "color": INK, "subtitleColor": SOFT,
        "fontSize": 14, "lineHeight": 18, "subtitleFontSize": 11, "subtitleLineHeight": 15,
        "subtitlePadding": 5, "offset": 12, "limit": 0,
    },
    "legend": {
        "orient": "bottom", "title": None, "labelLimit": 0, "labelFontSize": 11,
        "labelColor": INK, "labelOffset": 8, "rowPadding": 5, "columnPadding": 16, "offset": 12,
        "symbolSize": 70, "symbolLimit": 0, "layout": {"bottom": {"anchor": "start"}},
    },
    "text": {"color": INK, "fontSize": 11},
    "rule": {"color": INK},
    "point": {"filled": True, "size": 55, "opacity": 1},
    "line": {"strokeWidth": 1.6, "strokeJoin": "round"},
}  # fmt: skip


def is_wide(width: int) -> bool:
    """Return whether a picture has room for figures and labels beside its axes."""
    return width >= WIDTH


def picture(
    content: Spec,
    *,
    title: str,
    width: int,
    about: str = "",
    notes: Sequence[str] = (),
    said: Sequence[str] = (),
) -> Spec:
    """A whole specification around ``content``.

    Args:
        content: its marks, with their data and encoding. A single view is made as wide as there is
            room for; views beside each other have their own width.
        about, notes: what stands below the title, each from a line of its own on.
        said: sentences for those who do not see the picture, in front of the notes.
    """
    if not any(content.get(way) for way in ("layer", "concat", "hconcat", "vconcat")):
        content = {"height": 1, "layer": [mark("rule", [])]}
    room = width - 4 * MARGIN
    lines = [line for text in (about, *notes) for line in wrapped(text, room)]
    head = wrapped(title, room, size=14, bold=True, most=3) or [""]
    size = {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": in_words([*map(clean, said), *map(clean, notes)]),
        "title": {"text": head, "subtitle": lines},
        "background": PAPER,
        "padding": MARGIN,
        **(size if "layer" in content else {}),
        "config": _CONFIG,
        **content,
    }


def mark(
    kind: str, data: Sequence[Spec] | None = None, encoding: Spec | None = None, /, **look: Any
) -> Spec:
    """One layer: ``data`` (or that of the whole picture) as marks of one kind."""
    given = {} if data is None else {"data": {"values": list(data)}}
    return {**given, "mark": {"type": kind, **look}, "encoding": encoding or {}}


UNSORTED: Spec = {"order": {"value": None}}
"""Joins points in the order given."""


def span(way: str, channel: Spec, low: str, high: str) -> Spec:
    """The channels of a mark that reaches from the field ``low`` to ``high``."""
    return {way: {**channel, "field": low}, f"{way}2": {"field": high}}


def axis(
    field: str, scale: Spec, title: str | None = None, width: int = WIDTH, **look: Any
) -> Spec:
    """A quantitative channel with plain numbers at its ticks; on a logarithmic one 1, 2, 5, 10.

    Args:
        width: of the picture; the title of an upward axis stands above it on a narrow one.
    """
    # Where there are values, Vega takes a count for the most of them, and drops every other one.
    log = {"values": log_ticks(*scale["domain"])} if scale["type"] == "log" else {}
    count = {} if log or "values" in look else {"tickCount": 6}
    ticks: Spec = {"format": ",~r", **count, **log}
    if not is_wide(width):
        ticks |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleY": -10,
                  "titleBaseline": "bottom", "titleX": -36}  # fmt: skip
    return {
        "field": field, "type": "quantitative", "scale": {**scale, "nice": False, "zero": False},
        "title": title, "axis": {**ticks, **look},
    }  # fmt: skip


def milliseconds(scale: Spec, width: int = WIDTH) -> Spec:
    """The axis of the time of a call."""
    title = "Milliseconds per call" + ", logarithmic" * (scale["type"] == "log")
    return axis("ms", scale, title, width)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10 and so on between both, or decades where those would be too many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for multiples, step in (((1, 2, 5), 1), ((1,), 1), ((1,), -(-len(decades) // 8))):
        ticks = [float(f"{m}e{d}") for d in decades[::step] for m in multiples]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= 10:
            break
    return inside


def whole(first: int, last: int, most: int = 10) -> list[int]:
    """Whole numbers for the ticks of what is counted: multiples of 1, 2, 5, 10 and so on."""
    steps = (multiple * 10**decade for decade in range(12) for multiple in (1, 2, 5))
    step = next(step for step in steps if last - first < most * step)
    return [at for at in range(first, last + 1) if at % step == 0]


def scale_for(values: Iterable[NDArray[np.float64]], log_from: float = 20.0) -> Spec:
    """A scale that holds all ``values``, logarithmic where the largest is so many times the least.

    Values of 0 or less do not stretch a logarithmic axis: they lie on its low end.
    """
    parts = [part for part in values if part.size]
    low = min([float(p.min()) for p in parts], default=0.0)
    high = max([float(p.max()) for p in parts], default=0.0)
    if high <= _NO_TIME:
        return linear(0.0, 1.0)
    positive = min(float(p[p > _NO_TIME].min()) for p in parts if p.max() > _NO_TIME)
    if high / positive >= log_from:
        return {**linear(positive / 1.15, high * 1.15), "type": "log"}
    if low < 0.3 * high:
        return linear(0.0, high * 1.04)
    return around([low, high], 0.04)


def linear(low: float, high: float) -> Spec:
    """A linear scale; what lies outside is drawn at its end."""
    return {"type": "linear", "domain": [low, high], "clamp": True}


def around(values: Iterable[float | None], share: float) -> Spec:
    """A linear scale with a margin of this ``share`` to either side of the finite ``values``."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if not finite:
        return linear(0.0, 1.0)
    margin = share * (max(finite) - min(finite)) or 0.05
    return linear(min(finite) - margin, max(finite) + margin)


def notes_on_times(times: Sequence[NDArray[np.float64]], scale: Spec, end: str) -> list[str]:
    """Note the facts that an axis of times does not show: that there are none, or those of 0 at its
    ``end``."""
    if not any(map(len, times)):
        return ["There are no calls to show."]
    zeros = sum(int((ms < scale["domain"][0]).sum()) for ms in times)
    if scale["type"] != "log" or not zeros:
        return []
    return [f"The {end} end of the axis also holds {counted(zeros, 'call')} of 0 ms."]


def legend(names: Sequence[str], labels: Sequence[str], columns: int = 1) -> Spec:
    """A legend below the picture that says ``labels`` for ``names``; a label may have lines."""
    shown = {name: label.split("\n") for name, label in zip(names, labels, strict=True)}
    return {"columns": columns, "labelExpr": f"{json.dumps(shown)}[datum.value]"}


def told_apart(
    names: Sequence[str], styles: Sequence[Style] = STYLES, key: Spec | None = None
) -> tuple[Spec, Spec, Spec]:
    """The channels of colour, dash and shape by the field ``system``; ``key`` is the legend."""

    def channel(values: Sequence[Any], key: Spec | None) -> Spec:
        scale = {"domain": list(names), "range": list(values)}
        return {"field": "system", "type": "nominal", "sort": None, "scale": scale, "legend": key}

    styles, key = styles[: len(names)], key if names else None
    return (
        channel([style.color for style in styles], key),
        channel([style.dash or (1, 0) for style in styles], None),
        channel([style.shape for style in styles], key),
    )


def thinned(n: int, most: int) -> NDArray[np.int64]:
    """Return at most so many places of ``n``, equally far apart, the first and the last among
    them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))[:n]


def finite(value: float | None) -> float | None:
    """A number as JSON has it: None for one that is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)
